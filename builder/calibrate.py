"""From raw judge answers to gains: windows, abilities, one 2PL fit over the suite, gains (method spec sections 5-9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from builder.inputs import ANSWERS
from builder.judged import Judged
from builder.tables import read_frame
from provenance import bradley_terry, gain, irt, irt_objective, windows
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from builder.inputs import JudgeInputs
    from builder.steps import Steps

LINK = "weighted_discrimination"
WINDOWS_A_SHARD = 4096
"""Windows a shard, about: a constant, so that shards do not depend on how many workers there are."""


@dataclass(frozen=True)
class DomainJudgement:
    """One domain's answers, read and fitted within queries.

    `abilities` has query-id, corpus-id, ability; `placements` the valid rubric rows; `accounts` counts each stage's
    windows by phase and outcome.
    """

    abilities: pl.DataFrame
    placements: pl.DataFrame
    accounts: Mapping[str, Any]


def calibrate(
    inputs: JudgeInputs, judge: str, pools: Mapping[str, pl.DataFrame], executor: Executor, steps: Steps
) -> Judged:
    """Decode every answer, fit abilities within each query and one 2PL over all domains, and link theta to gain.

    Args:
        inputs: where the raw answers lie.
        judge: the judge's name, for the documents.
        pools: each domain's pool, in the benchmark's domain order.
        executor: runs shards; results do not depend on it.
        steps: times the steps.

    Raises:
        InputError, DataError: answers are missing or malformed as a table; a window shows a page outside the pool; a
            pool page has no ability.
        FitError: a fit does not converge.
    """
    judged = {domain: _judge_domain(inputs, domain, pool, executor, steps) for domain, pool in pools.items()}
    with steps.time("2pl"):
        counts = irt.count(
            pl.concat([_named(item.placements, domain) for domain, item in judged.items()]),
            pl.concat([_named(item.abilities, domain) for domain, item in judged.items()]),
        )
        if counts.skipped:
            raise DataError(
                f"{counts.skipped} rubric placements are of pages without an ability",
                where=Where(str(inputs.path)),
                remedy="every page that the rubric stage shows must stand in the tournament.",
            )
        fit = irt.fit(counts)
    with steps.time("gains"):
        scale = fit.queries()
        rows = {domain: _thetas(item.abilities, scale, fit, domain) for domain, item in judged.items()}
    return Judged(
        gains={domain: frame.select("query-id", "corpus-id", "theta", "gain") for domain, frame in rows.items()},
        criteria={domain: item.placements for domain, item in judged.items()},
        calibration={
            domain: frame.select("query-id", "corpus-id", "ability", "tau", "alpha") for domain, frame in rows.items()
        },
        item_params=item_params(fit),
        windows={"judge": judge, "domains": {domain: item.accounts for domain, item in judged.items()}},
        made="here",
    )


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


def _judge_domain(
    inputs: JudgeInputs, domain: str, pool: pl.DataFrame, executor: Executor, steps: Steps
) -> DomainJudgement:
    with steps.time("tournament answers", domain):
        path = inputs.answers("tournament", domain)
        table = windows.checked(_read_answers(path), "tournament", file=str(path))
        _refuse_foreign(table, pool, str(path))
        parts = list(executor.map(_tournament_shard, _shards(table)))
        tournament = pl.concat([part[0] for part in parts])
        abilities = pl.concat([part[1] for part in parts])
        _refuse_unjudged(abilities, pool, str(path))
    with steps.time("rubric answers", domain):
        path = inputs.answers("rubric", domain)
        table = windows.checked(_read_answers(path), "rubric", file=str(path))
        _refuse_foreign(table, pool, str(path))
        rubric = windows.join(list(executor.map(windows.parse_rubric, _shards(table))))
    accounts = {"tournament": windows.account(tournament), "rubric": windows.account(rubric.windows)}
    return DomainJudgement(abilities, rubric.placements, accounts)


def _tournament_shard(block: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A shard's windows with their outcomes, and the abilities of its queries."""
    parsed = windows.parse_tournament(block)
    return parsed.windows, bradley_terry.fit(parsed.scores, parsed.shown)


def _read_answers(path: Path) -> pl.DataFrame:
    return read_frame(path, ANSWERS, nullable=frozenset({"answer", "finish_reason"}))


def _shards(table: pl.DataFrame) -> list[pl.DataFrame]:
    return windows.query_blocks(table, max(1, table.height // WINDOWS_A_SHARD))


def _refuse_foreign(table: pl.DataFrame, pool: pl.DataFrame, file: str) -> None:
    shown = table.select("query-id", pl.col("corpus-ids").alias("corpus-id")).explode("corpus-id").unique()
    foreign = shown.join(pool, on=["query-id", "corpus-id"], how="anti").sort("query-id", "corpus-id")
    if foreign.height:
        query, page = foreign.row(0)
        raise DataError(
            f"a window of query '{query}' shows a page that is not in its pool ({foreign.height} such pairs)",
            where=Where(file, column="corpus-ids", value=page),
            remedy="the answers belong to another pool: judge and build from the same first stage.",
        )


def _refuse_unjudged(abilities: pl.DataFrame, pool: pl.DataFrame, file: str) -> None:
    missing = pool.join(abilities, on=["query-id", "corpus-id"], how="anti")
    if missing.height:
        row = missing.row(0, named=True)
        raise DataError(
            f"page '{row['corpus-id']}' of query '{row['query-id']}' has no ability ({missing.height} such pairs): "
            "no usable tournament answer reaches it",
            where=Where(file, column="query-id", value=row["query-id"]),
            remedy="ask the judge again for the windows of this query; a gain is never made up.",
        )


def _named(frame: pl.DataFrame, domain: str) -> pl.DataFrame:
    """Query ids are unique within a domain only; the fit takes all domains at once (method spec section 1.2)."""
    return frame.with_columns(pl.lit(f"{domain}||").add(pl.col("query-id")).alias("query-id"))


def _thetas(abilities: pl.DataFrame, scale: pl.DataFrame, fit: irt.ItemFit, domain: str) -> pl.DataFrame:
    """Each page of a domain with theta = tau * ability + alpha, and its gain."""
    named = _named(abilities, domain).join(scale, on="query-id", how="left", maintain_order="left")
    unscaled = named.filter(pl.col("tau").is_null())
    if unscaled.height:
        query = unscaled["query-id"][0]
        raise DataError(
            f"no usable rubric answer reaches query '{query}': it has no tau and alpha",
            where=Where(column="query-id", value=query),
            remedy="ask the judge again for the rubric windows of this query; a gain is never made up.",
        )
    frame = abilities.with_columns(named["tau"], named["alpha"])
    frame = frame.with_columns((pl.col("tau") * pl.col("ability") + pl.col("alpha")).alias("theta"))
    values = gain.gains(frame["theta"].to_numpy(), fit.gamma, fit.beta, link=LINK)
    return frame.with_columns(pl.Series("gain", values, dtype=pl.Float64))
