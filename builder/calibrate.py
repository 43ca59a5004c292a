"""From raw judge answers to gains: windows, abilities, one 2PL fit over the suite, gains (method spec sections 5-9).

Answers are read, decoded and fitted a block of queries at a time, each block a shard that any worker can do; only
abilities, counts and gains are ever held for all queries.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.answer_shards import Account, begin, frames, pairs
from builder.judged import Judged
from provenance import gain, irt, irt_objective
from provenance.errors import DataError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from builder.inputs import JudgeInputs
    from builder.shards import ShardStore, Tables
    from builder.steps import Steps

LINK = "weighted_discrimination"
_FIT_THREADS = 2
_PAIR = ["query-id", "corpus-id"]


def calibrate(  # noqa: PLR0917
    inputs: JudgeInputs,
    judge: str,
    pools: Mapping[str, Path],
    store: ShardStore,
    digests: Mapping[Path, str],
    steps: Steps,
) -> Judged:
    """Decode every answer, fit abilities within each query and one 2PL over all domains, and link theta to gain.

    Args:
        inputs: where the raw answers lie.
        judge: the judge's name, for the documents.
        pools: each domain's pool as it was written, in the benchmark's domain order.
        store: has shards done; results do not depend on its runner.
        digests: the SHA-256 of each file of answers and of each pool.
        steps: times the steps.

    Raises:
        InputError, DataError: answers are missing or malformed as a table; a window shows a page outside the pool; a
            pool page has no ability; a query has no verdict.
        FitError: a fit does not converge.
    """
    begun = {
        stage: {
            domain: begin(stage, inputs.answers(stage, domain), pool, store, digests) for domain, pool in pools.items()
        }
        for stage in ("tournament", "rubric")
    }
    accounts: dict[str, dict[str, Account]] = {domain: {} for domain in pools}
    abilities: dict[str, pl.DataFrame] = {}
    for domain, tables in begun["tournament"].items():
        with steps.time("tournament answers", domain):
            file = str(inputs.answers("tournament", domain))
            abilities[domain], accounts[domain]["tournament"] = _abilities(tables, pools[domain], file)
    counts: list[irt_objective.Counts] = []
    for domain, tables in begun["rubric"].items():
        with steps.time("rubric answers", domain):
            file = str(inputs.answers("rubric", domain))
            counted, accounts[domain]["rubric"] = _counts(tables, abilities[domain], domain, file)
            counts += counted
    with steps.time("2pl"), ThreadPoolExecutor(_FIT_THREADS) as threads:
        fit = irt.fit(_join(counts), threads)
    with steps.time("gains"):
        scale = fit.queries()
        rows = {domain: _thetas(frame, scale, fit, domain) for domain, frame in abilities.items()}
    return Judged(
        gains={domain: frame.select("query-id", "corpus-id", "theta", "gain") for domain, frame in rows.items()},
        criteria=begun["rubric"],
        calibration={
            domain: frame.select("query-id", "corpus-id", "ability", "tau", "alpha") for domain, frame in rows.items()
        },
        item_params=item_params(fit),
        windows=_windows(judge, accounts),
        made="here",
    )


def _windows(judge: str, accounts: Mapping[str, Mapping[str, Account]]) -> dict[str, Any]:
    """The document of a judge's windows."""
    return {
        "judge": judge,
        "domains": {
            domain: {stage: account.in_order() for stage, account in stages.items()}
            for domain, stages in accounts.items()
        },
        "flagged": {
            domain: {stage: account.flagged for stage, account in stages.items()} for domain, stages in accounts.items()
        },
    }


def item_params(fit: irt.ItemFit) -> dict[str, Any]:
    """The document of a fit: its parameters, the link, the priors, and what was fitted how closely."""
    return {
        "gamma": [float(value) for value in fit.gamma],
        "beta": [float(value) for value in fit.beta],
        "num_criteria": len(fit.gamma),
        "link": LINK,
        "priors": {
            "tau": {"mean": 1.0, "sd": irt_objective.TAU_SD},
            "alpha": {"mean": 0.0, "sd": irt_objective.ALPHA_SD},
            "item_ridge": irt_objective.ITEM_RIDGE,
        },
        "fit": {
            "mode": "tournament",
            "dtype": "float64",
            "placements": int(fit.placements),
            "queries": len(fit.tau),
            "objective": float(fit.objective),
            "iterations": int(fit.iterations),
            "tolerance": {"query_gradient": irt.QUERY_TOLERANCE, "item_gradient": irt.ITEM_TOLERANCE},
        },
    }


def _abilities(tables: Tables, pool: Path, file: str) -> tuple[pl.DataFrame, Account]:
    account = Account()
    nothing = pl.DataFrame(schema={"query-id": pl.String, "corpus-id": pl.String, "ability": pl.Float64})
    abilities = pl.concat([nothing, *frames(tables, account)])
    missing = pairs(pool).join(abilities, on=_PAIR, how="anti")
    if missing.height:
        row = missing.row(0, named=True)
        raise DataError(
            f"page {quoted(row['corpus-id'])} of query {quoted(row['query-id'])} has no ability "
            f"({missing.height} such pairs): "
            "no usable tournament answer reaches it",
            where=Where(file, column="query-id", value=row["query-id"]),
            remedy="ask the judge again for the windows of this query; a gain is never made up.",
        )
    return abilities, account


def _counts(
    tables: Tables, abilities: pl.DataFrame, domain: str, file: str
) -> tuple[list[irt_objective.Counts], Account]:
    """What the 2PL needs of a domain's verdicts, a block of queries each, in canonical order."""
    account = Account()
    counts, unread = [], abilities["query-id"].unique(maintain_order=True)
    for placements in frames(tables, account):
        queries = placements["query-id"].unique()
        if queries.is_empty():
            continue
        unread = unread.filter(~unread.is_in(queries.implode()))
        own = abilities.filter(pl.col("query-id").is_in(queries.implode()))
        counts.append(irt.count(_named(placements, domain), _named(own, domain)))
    if not unread.is_empty():
        raise DataError(
            f"no usable rubric answer reaches query {quoted(unread[0])} ({len(unread)} such queries): "
            "it has no tau and alpha",
            where=Where(file, column="query-id", value=unread[0]),
            remedy="ask the judge again for the rubric windows of this query; a gain is never made up.",
        )
    return counts, account


def _join(blocks: Sequence[irt_objective.Counts]) -> irt_objective.Counts:
    """The counts of all blocks as one: queries domain by domain, in canonical order within each."""
    shift = np.cumsum([0, *(len(block.ability) for block in blocks)])
    starts = [block.starts[:-1] + first for block, first in zip(blocks, shift, strict=False)]
    return irt_objective.Counts(
        query_ids=tuple(query for block in blocks for query in block.query_ids),
        corpus_ids=tuple(page for block in blocks for page in block.corpus_ids),
        starts=np.concatenate([*starts, shift[-1:]]),
        ability=np.concatenate([block.ability for block in blocks]),
        n=np.concatenate([block.n for block in blocks]),
        passes=np.concatenate([block.passes for block in blocks]),
        placements=sum(block.placements for block in blocks),
        skipped=sum(block.skipped for block in blocks),
    )


def _named(frame: pl.DataFrame, domain: str) -> pl.DataFrame:
    """Query ids are unique within a domain only; the fit takes all domains at once (method spec section 1.2)."""
    return frame.with_columns(pl.lit(f"{domain}||").add(pl.col("query-id")).alias("query-id"))


def _thetas(abilities: pl.DataFrame, scale: pl.DataFrame, fit: irt.ItemFit, domain: str) -> pl.DataFrame:
    """Each page of a domain with theta = tau * ability + alpha, and its gain."""
    named = _named(abilities, domain).join(scale, on="query-id", how="left", maintain_order="left")
    frame = abilities.with_columns(named["tau"], named["alpha"])
    frame = frame.with_columns((pl.col("tau") * pl.col("ability") + pl.col("alpha")).alias("theta"))
    values = gain.gains(frame["theta"].to_numpy(), fit.gamma, fit.beta, link=LINK)
    return frame.with_columns(pl.Series("gain", values, dtype=pl.Float64))
