"""R1: runs are whole, and their ranks and positions are what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from builder.proofs.outcome import Coverage, Finding, Gap, Measure
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, proof

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from builder.proofs.facts import Facts, Table

_PAIR = ["query-id", "corpus-id"]
_LIST = ["model", "query-id"]


@proof("R1", "each run scores each pool pair once; rank_by_score and stored_position are what they say")
def runs(facts: Facts) -> Iterator[Finding]:
    """Proves that every model of a domain's runs has exactly the pool's pairs, and no other.

    `rank_by_score` is 1, 2, 3, ... by (score, corpus-id as text), both descending (tie rule a), null where the score is
    null; -0.0 and 0.0 are one score. `stored_position` is a permutation of 1..n within (model, query). It does not
    prove that a model gave these scores, nor that stored_position is the input's order, which no tree holds. Without a
    benchmark file it cannot say which models there should be.
    """
    nulls: dict[str, float] = {"pairs without a score": 0.0}
    yield from _domains(facts, nulls)
    for name, value in nulls.items():
        yield Measure(name, value)


def _domains(facts: Facts, nulls: dict[str, float]) -> Iterator[Finding]:
    def one(facts: Facts, domain: str) -> Iterator[Finding]:
        table = facts.one("runs", domain)
        frame = facts.frame(table, ["model", *_PAIR, "score", "rank_by_score", "stored_position"])
        pool = facts.frame(facts.one("pool", domain), _PAIR).select(_PAIR)
        yield Coverage(frame.height, len(table.files), frame["query-id"].n_unique())
        nulls["pairs without a score"] += frame["score"].null_count()
        if facts.has_benchmark:
            yield from unlike_models(frame, table, facts.benchmark.rerankers)
        else:
            yield Gap(f"{domain}: no benchmark file says which models there should be")
        yield from unlike_pool(frame, pool, table)
        yield from wrong_ranks(frame, table)

    yield from each_domain(one)(facts)


def unlike_models(frame: pl.DataFrame, table: Table, models: Iterable[str]) -> Iterator[pl.DataFrame]:
    """Models that the benchmark file does not name, and models that are missing."""
    known = list(models)
    foreign = frame.filter(~pl.col("model").is_in(known)).unique("model", keep="first", maintain_order=True)
    yield failures(foreign, table, rule="model", column="model", message="the benchmark file has no such reranker")
    absent = [name for name in known if name not in set(frame["model"].unique())]
    gone = pl.DataFrame({"model": absent}, schema={"model": pl.String})
    yield failures(gone, table, rule="model", column="model", message="the reranker has no row")


def unlike_pool(frame: pl.DataFrame, pool: pl.DataFrame, table: Table) -> Iterator[pl.DataFrame]:
    """Pairs outside the pool, and pairs of the pool that a model lacks."""
    extra = frame.join(pool, on=_PAIR, how="anti", maintain_order="left")
    yield failures(extra, table, rule="pool-pair", column="corpus-id", message="the scored page is not in the pool")
    # Pairs a model has are counted first: only models that lack some are looked at pair by pair.
    for model, rows in frame.join(pool, on=_PAIR, how="semi").group_by("model", maintain_order=True):
        if rows.select(pl.struct(_PAIR).n_unique()).item() < pool.height:
            gone = pool.join(rows, on=_PAIR, how="anti", maintain_order="left").with_columns(
                pl.lit(model[0]).alias("model")
            )
            message = pl.format("the model {} has no row for this pool pair", pl.col("model"))
            yield failures(gone, table, rule="pool-pair", column="corpus-id", message=message)


def wrong_ranks(frame: pl.DataFrame, table: Table) -> Iterator[pl.DataFrame]:
    """Ranks that tie rule (a) does not give, and positions that are no permutation of 1..n."""
    # Adding 0.0 makes -0.0 and 0.0 one value, as they are one score.
    by_score = [pl.col("score") + 0.0, pl.col("corpus-id")]
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST)
    ranked = frame.sort(
        [*_LIST, *by_score], descending=[False, False, True, True], nulls_last=True, maintain_order=True
    ).with_columns(pl.when(pl.col("score").is_not_null()).then(place).alias("place"))
    bad = ranked.filter(pl.col("rank_by_score").ne_missing(pl.col("place")))
    message = pl.format("its rank by score is {}", pl.col("place").cast(pl.String).fill_null("null: it has no score"))
    yield failures(bad, table, rule="rank_by_score", column="rank_by_score", message=message)
    stored = frame.sort([*_LIST, "stored_position"], maintain_order=True).with_columns(place.alias("place"))
    wrong = stored.filter(pl.col("stored_position") != pl.col("place")).unique(_LIST, keep="first", maintain_order=True)
    message = pl.format("the positions of this model and query lack {}", pl.col("place"))
    yield failures(wrong, table, rule="stored_position", column="stored_position", message=message)
