"""The results of a release tree: its runs and one's own, replayed to tables and statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from builder.coverage import match_run
from builder.leaderboard import PAIR, VIEWS, Leaderboard, View, count_gains, domain_values, leaderboard
from builder.ndcg import TIE_RULES, Metric, TieRule
from builder.statistics import Agreement, Statistics, agreement, statistics
from provenance.errors import DataError, InputError, UsageError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Benchmark, Subset
    from builder.coverage import Coverage, MatchedRun
    from builder.leaderboard import DomainValues
    from builder.tree import ReleaseTree

_OWN = "own run: "


@dataclass(frozen=True)
class Results:
    """What `release results` shows.

    Attributes:
        tables: in the order of views, metrics, tie rules.
        statistics: one a table, in the same order; empty where not asked for.
        agreements: of each view and tie rule, where both rcp and qrel are there and statistics are asked for.
        coverage: by one's own run's table name, how it meets the benchmark.
        simulated: whether the tree says that its judge is simulated.
        absent: rerankers of the benchmark file that the tree has no run of.
    """

    tables: tuple[Leaderboard, ...]
    statistics: tuple[Statistics, ...]
    agreements: tuple[Agreement, ...]
    coverage: Mapping[str, Coverage]
    simulated: bool
    absent: tuple[str, ...]


def replay(
    tree: ReleaseTree,
    benchmark: Benchmark,
    own: Mapping[str, pl.DataFrame],
    *,
    metrics: Sequence[Metric] = ("rcp", "qrel"),
    ties: Sequence[TieRule] = TIE_RULES,
    views: Sequence[View] = VIEWS,
    with_statistics: bool = False,
) -> Results:
    """Replay a tree's runs, and one's own among them.

    Rows are the rerankers of the benchmark file that the tree has runs of, in its order, then one's own runs.

    Args:
        tree: the release.
        benchmark: its benchmark file.
        own: by name, runs of `own_run.read_run`.
        metrics: which gains.
        ties: which tie rules.
        views: which queries.
        with_statistics: also the tests, intervals and shares of method spec section 13.

    Raises:
        InputError: the tree lacks what a metric or the rows need.
        UsageError: two runs would have the same name.
        DataError: the tree is not of this benchmark, or breaks a rule; a run matches nothing.
    """
    qrels = _qrels(tree, benchmark)
    matched = {name: match_run(run, qrels, where=name) for name, run in own.items()}
    every = _names(benchmark, list(own))
    # One domain after the other: the runs of all of them together would not fit a small machine.
    values = {
        domain: domain_values(
            domain,
            {subset.language: frame for subset, frame in qrels.items() if subset.domain == domain},
            _runs(tree, domain, matched),
            models=list(every),
            metrics=metrics,
            ties=ties,
            count=_count(tree, domain) if "count" in metrics else None,
        )
        for domain in benchmark.domains
    }
    absent = [run for row, run in enumerate(every) if not any(found.ranked[row].any() for found in values.values())]
    names = {run: table for run, table in every.items() if run not in absent}
    wanted = [(view, metric, rule) for view in views for metric in metrics for rule in ties]
    tables = tuple(
        leaderboard(benchmark, values, view=view, metric=metric, ties=rule, names=names)
        for view, metric, rule in wanted
    )
    return Results(
        tables=tables,
        statistics=tuple(statistics(benchmark, values, table) for table in tables) if with_statistics else (),
        agreements=_agreements(benchmark, values, tables) if with_statistics else (),
        coverage={name: run.coverage for name, run in matched.items()},
        simulated=_simulated(tree),
        absent=tuple(absent),
    )


def _qrels(tree: ReleaseTree, benchmark: Benchmark) -> dict[Subset, pl.DataFrame]:
    wanted = {subset.name: subset for subset in benchmark.subsets()}
    if set(wanted) != set(tree.subsets()):
        odd = sorted(set(wanted) ^ set(tree.subsets()))
        raise DataError(
            f"the tree is not of benchmark '{benchmark.name}': {odd[0]} is in one of them only",
            where=Where(str(tree.path)),
            remedy="name the tree's benchmark file with --benchmark.",
        )
    return {subset: tree.table("qrels", subset=name) for name, subset in wanted.items()}


def _runs(tree: ReleaseTree, domain: str, matched: Mapping[str, MatchedRun]) -> pl.DataFrame:
    columns = ["model", *PAIR, "score"]
    stored = [tree.table("runs", split=domain).select(columns)] if tree.has("runs") else []
    if not stored and not matched:
        raise InputError(
            "the tree has no runs (no config provenance-runs)",
            where=Where(str(tree.path)),
            remedy="give a run of your own with --run.",
        )
    own = [
        run.domains[domain].select(pl.lit(_OWN + name).alias("model"), *PAIR, "score") for name, run in matched.items()
    ]
    return pl.concat([*stored, *own])


def _simulated(tree: ReleaseTree) -> bool:
    """What the tree's own entry in releases.json (the last one) says of its judge."""
    judge = tree.entries[-1].get("judge") if tree.entries else None
    return isinstance(judge, dict) and judge.get("simulated") is True


def _names(benchmark: Benchmark, own: Sequence[str]) -> dict[str, str]:
    """Run name -> table name, in table order."""
    names = dict(benchmark.rerankers)
    for name in own:
        if name in names.values():
            raise UsageError(
                f"two systems would be called '{name}'", remedy="rename the run's file: its name is the system's name."
            )
        names[_OWN + name] = name
    return names


def _count(tree: ReleaseTree, domain: str) -> pl.DataFrame:
    if not tree.has("judge_criteria"):
        raise InputError(
            "the tree has no criteria (no config provenance-judge-criteria), so Count-nDCG is not defined",
            where=Where(str(tree.path)),
            remedy="leave out --metric count.",
        )
    return count_gains(tree.table("judge_criteria", split=domain), where=f"provenance-judge-criteria of {domain}")


def _agreements(
    benchmark: Benchmark, values: Mapping[str, DomainValues], tables: Sequence[Leaderboard]
) -> tuple[Agreement, ...]:
    of = {(table.view, table.ties, table.metric): table for table in tables}
    return tuple(
        agreement(benchmark, values, table, of[view, ties, "qrel"])
        for (view, ties, metric), table in of.items()
        if metric == "rcp" and (view, ties, "qrel") in of
    )
