"""What the card says of the results: the tables, and the facts that its sentences are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builder import sentences
from builder.leaderboard import MEAN
from builder.results import Results, replay
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Benchmark
    from builder.leaderboard import Leaderboard
    from builder.sentences import Lead, PrintedTable, Spread, ViewGap
    from builder.statistics import Statistics
    from builder.tree import ReleaseTree

METRICS = {"rcp": "RCP-nDCG", "qrel": "qrel-nDCG"}
LEVEL = 95
"""Percent of a bootstrap interval (`significance.interval`)."""

_NATIVE = "native"


@dataclass(frozen=True)
class Reranker:
    """A row of the tables: its name there, its run's name, and the model it stands for (None: not declared)."""

    table: str
    run: str
    model: str | None


@dataclass(frozen=True)
class TieEffect:
    """What tie rule b changes in the printed values of a view and metric against a."""

    view: str
    metric: str
    spread: Spread


@dataclass(frozen=True)
class Reading:
    """What the statistics say of one metric, native view, ties by group mean (method spec section 13).

    Attributes:
        metric: its printed name.
        lead: the first two systems; None with fewer than two that have a Mean.
        pairs: pairs of systems.
        ties: pairs whose Means lie closer than 0.02.
        separated: the mean share of pairs that the t-test separates in a domain, None without a pair.
        intervals: by system, the 95 % bootstrap interval of its Mean.
    """

    metric: str
    lead: Lead | None
    pairs: int
    ties: int
    separated: float | None
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ResultFacts:
    """The tables in the order metric, view, tie rule, and what is said of them.

    Attributes:
        tables: the leaderboards.
        rerankers: their rows.
        absent: table names of rerankers that the tree has no run of.
        tie_effects: one a view and metric.
        view_gaps: by printed metric name, what the six-language view changes under tie rule b.
        readings: one a metric; empty where no system has a Mean.
        kendall_tau: between the orders of both metrics; None where undefined.
    """

    tables: tuple[Leaderboard, ...]
    rerankers: tuple[Reranker, ...]
    absent: tuple[str, ...]
    tie_effects: tuple[TieEffect, ...]
    view_gaps: Mapping[str, ViewGap]
    readings: tuple[Reading, ...]
    kendall_tau: float | None

    def table(self, metric: str, view: str, ties: str) -> Leaderboard:
        """One of the tables."""
        return next(board for board in self.tables if (board.metric, board.view, board.ties) == (metric, view, ties))


def result_facts(tree: ReleaseTree, benchmark: Benchmark) -> ResultFacts | None:
    """Replay the tree's runs; None where it has none of the benchmark's rerankers.

    Raises:
        InputError, DataError: as `results.replay`.
    """
    if not benchmark.rerankers or not tree.has("runs"):
        return None
    found = _replayed(tree, benchmark)
    if not found.tables[0].rows:
        return None
    order = sorted(range(len(found.tables)), key=lambda index: list(METRICS).index(found.tables[index].metric))
    tables = tuple(found.tables[index] for index in order)
    printed = {(board.metric, board.view, board.ties): sentences.print_table(board) for board in tables}
    readings = [
        _reading(printed[board.metric, board.view, board.ties], statistics)
        for board, statistics in zip(found.tables, found.statistics, strict=bool(found.statistics))
        if (board.view, board.ties) == (_NATIVE, "b")
    ]
    tau = next((item.kendall_tau for item in found.agreements if (item.view, item.ties) == (_NATIVE, "b")), None)
    return ResultFacts(
        tables=tables,
        rerankers=tuple(
            Reranker(table, run, benchmark.card.get("reranker_models", {}).get(run))
            for run, table in benchmark.rerankers.items()
            if run in tables[0].models
        ),
        absent=tuple(benchmark.rerankers[run] for run in found.absent),
        tie_effects=tuple(
            TieEffect(view, METRICS[metric], sentences.compare(table, printed[metric, view, "b"]))
            for (metric, view, ties), table in printed.items()
            if ties == "a" and _has_values([table])
        ),
        view_gaps={
            METRICS[metric]: sentences.view_gap(table, printed[metric, "six-language", "b"])
            for (metric, view, ties), table in printed.items()
            if (view, ties) == (_NATIVE, "b") and _has_values([table, printed[metric, "six-language", "b"]])
        },
        readings=tuple(readings),
        kendall_tau=tau,
    )


def _replayed(tree: ReleaseTree, benchmark: Benchmark) -> Results:
    """The tables with their statistics, or without where no system has a Mean to make any of."""
    try:
        return replay(tree, benchmark, {}, with_statistics=True)
    except DataError:
        # What is wrong with the data is wrong without statistics too, and is raised again.
        return replay(tree, benchmark, {})


def _reading(table: PrintedTable, statistics: Statistics) -> Reading:
    ranked = sum(cells[table.columns.index(MEAN)] is not None for cells in table.rows.values())
    return Reading(
        metric=METRICS[table.metric],
        lead=sentences.lead(table) if ranked > 1 else None,
        pairs=len(statistics.pairs),
        ties=sum(pair.tie for pair in statistics.pairs),
        separated=None if math.isnan(statistics.separated_mean) else statistics.separated_mean,
        intervals=statistics.intervals,
    )


def _has_values(tables: Sequence[PrintedTable]) -> bool:
    """Whether each table prints a Mean: only then every comparison has something to compare."""
    return all(any(cells[-1] is not None for cells in table.rows.values()) for table in tables)
