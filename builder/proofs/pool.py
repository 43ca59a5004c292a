"""P1, P2 and P3: fusion, injection, and the tables that repeat the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from builder.json_schemas import schema
from builder.layout import FUSED
from builder.proofs.facts import FILE, ROW, Facts, Table
from builder.proofs.outcome import Coverage, Finding
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, proof
from provenance.errors import DataError
from provenance.fusion import TOLERANCE, fuse
from provenance.ids import canonical
from provenance.pool import inject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PAIR = ["query-id", "corpus-id"]
_LIST = ["retriever", "query-id"]


@proof("P1", "fusing the published first stage reproduces rrf_fused: ids, order, scores within 1e-12")
@each_domain
def fusion(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves that the published `rrf_fused` list is the reciprocal rank fusion of the published lists.

    The benchmark file's k, retrievers and their order; method spec section 2. It does not prove that a retriever
    really gave its list.
    """
    benchmark = facts.benchmark
    table = facts.one("first_stage", domain)
    frame = facts.frame(table, ["retriever", "query-id", "corpus-id", "rank", "score"])
    yield Coverage(frame.height, len(table.files), frame["query-id"].n_unique())
    retrievers = benchmark.fusion.retrievers
    yield from lists(frame, table, retrievers)
    stored = frame.filter(pl.col("retriever") == FUSED)
    own = frame.filter(pl.col("retriever").is_in(list(retrievers)))
    fused = fuse(
        own,
        retrievers=retrievers,
        k=benchmark.fusion.k,
        depth=benchmark.pool_size,
        query_ids=own["query-id"].drop_nulls().unique().to_list(),
    )
    yield from unlike_fused(stored, fused, table)


def lists(frame: pl.DataFrame, table: Table, retrievers: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Lists of unknown retrievers, retrievers without a list, and ranks that are not 1, 2, 3, ..."""
    foreign = frame.filter(~pl.col("retriever").is_in([*retrievers, FUSED]))
    yield failures(
        foreign, table, rule="retriever", column="retriever", message="the benchmark file has no such retriever"
    )
    absent = [name for name in (*retrievers, FUSED) if name not in set(frame["retriever"].unique())]
    gone = pl.DataFrame({"retriever": absent}, schema={"retriever": pl.String})
    yield failures(gone, table, rule="retriever", column="retriever", message="the retriever has no row for any query")
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST).alias("place")
    ordered = frame.sort([*_LIST, "rank"], maintain_order=True).with_columns(place)
    wrong = ordered.filter(pl.col("rank") != pl.col("place")).unique(_LIST, keep="first", maintain_order=True)
    yield failures(
        wrong, table, rule="rank", column="rank", message=pl.format("the list's rank {} is not there", "place")
    )


def unlike_fused(stored: pl.DataFrame, fused: pl.DataFrame, table: Table) -> Iterator[pl.DataFrame]:
    """Where the stored fusion differs from the recomputed one, by (query, rank)."""
    ours = fused.select("query-id", "rank", pl.col("corpus-id").alias("page"), pl.col("score").alias("sum"))
    joined = stored.join(ours, on=["query-id", "rank"], how="left", maintain_order="left")
    extra = joined.filter(pl.col("page").is_null())
    yield failures(extra, table, rule="fused-extra", column="rank", message="the fusion has no such rank")
    other = joined.filter(pl.col("page").is_not_null() & pl.col("corpus-id").ne_missing(pl.col("page")))
    message = pl.format("fusing the lists gives {} at this rank", pl.col("page"))
    yield failures(other, table, rule="fused-page", column="corpus-id", message=message)
    same = joined.filter(pl.col("corpus-id") == pl.col("page"))
    off = same.filter(~((pl.col("score") - pl.col("sum")).abs() <= TOLERANCE).fill_null(value=False))
    message = pl.format("fusing the lists gives the score {}", pl.col("sum"))
    yield failures(off, table, rule="fused-score", column="score", message=message)
    gone = ours.rename({"page": "corpus-id"}).join(stored, on=["query-id", "rank"], how="anti", maintain_order="left")
    message = pl.format("rrf_fused lacks rank {}, where the fusion has this page", pl.col("rank"))
    yield failures(gone, table, rule="fused-missing", column="corpus-id", message=message)


@proof("P2", "the pool is the fused list with ground truth injected by the stated rule")
@each_domain
def injection(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves, query by query, what method spec section 3 states of a pool.

    Its size is the benchmark file's and ranks are 1..n; every positive is in it; injected pages, and only they, have
    score 0, are positive and were missed by the fused list; the others keep the fused order and score; the pages that
    gave way are the lowest non-positives. A tree made by this tool must also have each page at the very rank that the
    tool's reading of the rule gives. It does not prove that the fused list or the labels are right (P1, U1).
    """
    size = facts.benchmark.pool_size
    table = facts.one("pool", domain)
    pool = facts.frame(table, [*_PAIR, "pool_rank", "rrf_score", "gt_injected"])
    yield Coverage(pool.height, len(table.files), pool["query-id"].n_unique())
    yield from sizes(pool, table, size)
    stage = facts.one("first_stage", domain)
    fused = facts.frame(stage, ["retriever", *_PAIR, "rank", "score"]).filter(
        (pl.col("retriever") == FUSED) & (pl.col("rank") <= size)
    )
    qrels = pl.concat([frame for _, frame in facts.domain_frame("qrels", domain, [*_PAIR, "score"])])
    positives = qrels.filter(pl.col("score") > 0).select(_PAIR).unique(maintain_order=True)
    yield from invariants(pool, fused, positives, table)
    if facts.made_here:
        yield from unlike_rule(pool, fused.drop(ROW, FILE), positives, table, size)
        yield out_of_order(pool, canonical(pool, "pool_rank"), table)


def sizes(pool: pl.DataFrame, table: Table, size: int) -> Iterator[pl.DataFrame]:
    """Pools of another size than the benchmark's (`x-group-size`), and ranks that are not 1..n."""
    by: list[str] = schema(table.kind)["x-group-size"]["by"]
    counts = pool.group_by(by, maintain_order=True).len("pages")
    bad = counts.filter(pl.col("pages") != size)
    message = f"the pool needs {size} pages"
    yield failures(bad, table, rule="x-group-size", column=by[0], value="pages", message=message)
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query-id").alias("place")
    ranked = pool.sort("query-id", "pool_rank", maintain_order=True).with_columns(place)
    wrong = ranked.filter(pl.col("pool_rank") != pl.col("place")).unique("query-id", keep="first", maintain_order=True)
    yield failures(
        wrong, table, rule="rank", column="pool_rank", message=pl.format("the pool's rank {} is not there", "place")
    )


def invariants(
    pool: pl.DataFrame, fused: pl.DataFrame, positives: pl.DataFrame, table: Table
) -> Iterator[pl.DataFrame]:
    """What holds of any reading of the injection rule."""
    marked = positives.with_columns(pl.lit(value=True).alias("positive"))
    first = fused.select(*_PAIR, pl.col("rank").alias("fused_rank"), pl.col("score").alias("fused_score"))
    rows = (
        pool.join(marked, on=_PAIR, how="left", maintain_order="left")
        .join(first, on=_PAIR, how="left", maintain_order="left")
        .with_columns(pl.col("positive").fill_null(value=False))
    )
    injected = pl.col("gt_injected")
    yield failures(
        rows.filter(injected != (pl.col("rrf_score") == 0.0)),
        table,
        rule="injected-score",
        column="rrf_score",
        message="injected pages, and only they, have rrf_score 0",
    )
    yield failures(
        rows.filter(injected & ~pl.col("positive")),
        table,
        rule="injected-positive",
        column="gt_injected",
        message="an injected page is not positive",
    )
    yield failures(
        rows.filter(injected & pl.col("fused_rank").is_not_null()),
        table,
        rule="injected-missed",
        column="gt_injected",
        message=pl.format("an injected page was not missed: the fused list has it at rank {}", pl.col("fused_rank")),
    )
    kept = rows.filter(~injected)
    yield failures(
        kept.filter(pl.col("fused_rank").is_null()),
        table,
        rule="kept-page",
        column="corpus-id",
        message="the page is neither injected nor in the fused list",
    )
    yield failures(
        kept.filter(pl.col("fused_rank").is_not_null() & pl.col("rrf_score").ne_missing(pl.col("fused_score"))),
        table,
        rule="kept-score",
        column="rrf_score",
        message=pl.format("the fused list has the score {}", pl.col("fused_score")),
    )
    ordered = kept.sort("query-id", "pool_rank", maintain_order=True)
    before = pl.col("fused_rank").shift(1).over("query-id")
    yield failures(
        ordered.filter(pl.col("fused_rank") < before),
        table,
        rule="kept-order",
        column="pool_rank",
        message="a page that was kept stands below one that the fused list has below it",
    )
    gone = marked.join(pool, on=_PAIR, how="anti", maintain_order="left")
    yield failures(gone, table, rule="positive", column="corpus-id", message="a positive page is not in the pool")
    yield from gave_way(rows, fused, marked, table)


def gave_way(rows: pl.DataFrame, fused: pl.DataFrame, marked: pl.DataFrame, table: Table) -> Iterator[pl.DataFrame]:
    """Pages that left the fused list although a lower non-positive page stayed."""
    out = fused.join(rows, on=_PAIR, how="anti", maintain_order="left").join(marked, on=_PAIR, how="left")
    yield failures(
        out.filter(pl.col("positive").is_not_null()).drop(ROW, FILE),
        table,
        rule="gave-way",
        column="corpus-id",
        message="a positive page of the fused list is not in the pool",
    )
    stayed = rows.filter(~pl.col("gt_injected") & ~pl.col("positive")).group_by("query-id")
    lowest = stayed.agg(pl.col("fused_rank").max().alias("lowest"))
    early = out.filter(pl.col("positive").is_null()).join(lowest, on="query-id", how="inner", maintain_order="left")
    message = pl.format(
        "it gave way at fused rank {} although the non-positive page at rank {} stayed",
        pl.col("rank"),
        pl.col("lowest"),
    )
    bad = early.filter(pl.col("rank") < pl.col("lowest")).drop(ROW, FILE)
    yield failures(bad, table, rule="gave-way", column="corpus-id", message=message)


def unlike_rule(
    pool: pl.DataFrame, fused: pl.DataFrame, positives: pl.DataFrame, table: Table, size: int
) -> Iterator[pl.DataFrame]:
    """Pages that stand at another rank than the tool's reading of the rule gives; only where it can be applied."""
    whole = fused.group_by("query-id").len().filter(pl.col("len") == size)["query-id"].implode()
    known = pl.col("query-id").is_in(whole)
    try:
        wanted = inject(
            fused.filter(known).select("query-id", "corpus-id", "rank", "score"), positives.filter(known), size=size
        )
    except DataError as error:
        bad = pl.DataFrame({"query-id": [None], "corpus-id": [None]}, schema=dict.fromkeys(_PAIR, pl.String))
        yield failures(bad, table, rule="rule", column="corpus-id", message=f"the rule cannot be applied: {error.what}")
        return
    ours = wanted.select("query-id", "pool_rank", pl.col("corpus-id").alias("page"))
    joined = pool.join(ours, on=["query-id", "pool_rank"], how="inner", maintain_order="left")
    bad = joined.filter(pl.col("corpus-id").ne_missing(pl.col("page")))
    message = pl.format("the rule puts {} at this rank", pl.col("page"))
    yield failures(bad, table, rule="rule", column="corpus-id", message=message)


def out_of_order(frame: pl.DataFrame, wanted: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The first row of a table that does not stand where canonical order puts it."""
    differs = (frame[ROW] != wanted[ROW]) | (frame[FILE] != wanted[FILE])
    bad = frame.filter(differs).head(1)
    return failures(bad, table, rule="order", column=None, message="from this row on, rows are not in canonical order")


@proof("P3", "top_ranked is the pool in pool order; qrels has one row a pool pair")
@each_domain
def repeats(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves that both tables of every subset hold exactly the pool's pairs of the subset's queries.

    top_ranked in pool order; qrels, where this tool made the tree, in pool order too. A subset's queries are those of
    its queries table, so a query that is missing from it is J1's or U1's.
    """
    pool = canonical(facts.frame(facts.one("pool", domain), [*_PAIR, "pool_rank"]).drop(ROW, FILE), "pool_rank")
    for table, queries in facts.domain_frame("queries", domain, ["id"]):
        own = pool.filter(pl.col("query-id").is_in(queries["id"].drop_nulls().implode()))
        for kind, check in (("qrels", _qrels), ("top_ranked", _top_ranked)):
            for repeat in facts.subsets(kind, domain):
                if repeat.language == table.language:
                    yield from check(facts, repeat, own)


def _qrels(facts: Facts, table: Table, own: pl.DataFrame) -> Iterator[Finding]:
    frame = facts.frame(table, _PAIR)
    yield Coverage(frame.height, len(table.files), frame["query-id"].n_unique())
    gone = own.join(frame, on=_PAIR, how="anti", maintain_order="left")
    yield failures(
        gone, table, rule="pool-pair", column="corpus-id", message="the pool has this pair, the qrels have not"
    )
    extra = frame.join(own, on=_PAIR, how="anti", maintain_order="left")
    yield failures(
        extra, table, rule="pool-pair", column="corpus-id", message="the qrels have a pair that is not in the pool"
    )
    if facts.made_here and gone.is_empty() and extra.is_empty():
        ranked = frame.join(own, on=_PAIR, how="left", maintain_order="left")
        yield out_of_order(ranked, canonical(ranked, "pool_rank"), table)


def _top_ranked(facts: Facts, table: Table, own: pl.DataFrame) -> Iterator[Finding]:
    frame = facts.frame(table, ["query-id", "corpus-ids"])
    yield Coverage(frame.height, len(table.files))
    wanted = own.group_by("query-id", maintain_order=True).agg(pl.col("corpus-id").alias("pool"))
    joined = frame.join(wanted, on="query-id", how="left", maintain_order="left")
    bad = joined.filter(pl.col("pool").is_not_null() & pl.col("corpus-ids").ne_missing(pl.col("pool")))
    first = [
        next((i for i, (a, b) in enumerate(zip(ours, pool, strict=False)) if a != b), min(len(ours), len(pool)))
        for ours, pool in zip(bad["corpus-ids"].fill_null([]).to_list(), bad["pool"].to_list(), strict=True)
    ]
    placed = bad.with_columns(pl.Series("first", first, dtype=pl.Int64))
    page = pl.col("corpus-ids").list.get(pl.col("first"), null_on_oob=True)
    theirs = pl.col("pool").list.get(pl.col("first"), null_on_oob=True).fill_null("nothing")
    named = placed.with_columns(page.alias("corpus-id"))
    message = pl.format("the pool has {} at rank {}", theirs, pl.col("first") + 1)
    yield failures(
        named, table, rule="pool-order", column="corpus-ids", value=page.fill_null("nothing"), message=message
    )
    if facts.made_here:
        yield out_of_order(frame, canonical(frame), table)
