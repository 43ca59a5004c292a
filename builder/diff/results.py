"""Both releases' runs replayed on both releases' gains, a domain at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from builder.diff.boards import board_document
from builder.diff.sides import Part
from builder.leaderboard import PAIR, VIEWS, DomainValues, domain_values, leaderboard
from builder.ndcg import TIE_RULES, Metric
from builder.significance import interval, is_tie, paired_tests, resampled_means
from builder.statistics import Pair, of_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from builder.benchmark import Benchmark
    from builder.diff.sides import Side
    from builder.leaderboard import Leaderboard

METRICS: tuple[Metric, ...] = ("rcp", "qrel")
Values = tuple[DomainValues, DomainValues]
"""The per-query values of a domain, before and now."""


def common_benchmark(benchmark: Benchmark, old: Side, new: Side) -> Benchmark:
    """The benchmark cut to the domains, and the languages in all of them, that both releases have."""
    shared = set(old.tree.subsets()) & set(new.tree.subsets())
    domains = {
        name: item
        for name, item in benchmark.domains.items()
        if f"{name}__{item.native_language}" in shared and all(Part("runs", name) in side.parts for side in (old, new))
    }
    languages = {
        name: code
        for name, code in benchmark.languages.items()
        if all(f"{domain}__{name}" in shared for domain in domains)
    }
    return replace(benchmark, domains=domains, languages=languages)


def replay_domain(
    benchmark: Benchmark,
    domain: str,
    sides: tuple[Side, Side],
    qrels: tuple[Mapping[str, pl.DataFrame], Mapping[str, pl.DataFrame]],
    *,
    same_runs: bool,
    same_labels: bool,
    same_gains: bool,
) -> Values:
    """The values of a domain in both releases. What is the same in both is read and computed once.

    Args:
        benchmark: as `common_benchmark` gives it.
        domain: which domain.
        sides: the old and the new release.
        qrels: by language, query-id, corpus-id, score, gain, before and now.
        same_runs: whether the runs of the domain are the same, row for row.
        same_labels: whether its pairs and labels are, and which pairs have a gain.
        same_gains: whether its gains are too.

    Raises:
        InputError, DataError: a table is missing or broken (`leaderboard.domain_values`).
    """
    models = list(benchmark.rerankers)
    runs = _runs(sides[0], domain)
    before = domain_values(domain, qrels[0], runs, models=models, metrics=METRICS)
    if same_runs and same_labels and same_gains:
        return before, before
    if not same_runs:
        runs = _runs(sides[1], domain)
    if not (same_runs and same_labels):
        return before, domain_values(domain, qrels[1], runs, models=models, metrics=METRICS)
    # qrel-nDCG is a function of labels, pool and runs alone, and these are the same.
    after = domain_values(domain, qrels[1], runs, models=models, metrics=("rcp",))
    return before, replace(after, values={**before.values, **after.values})


def _runs(side: Side, domain: str) -> pl.DataFrame:
    return side.tree.table("runs", split=domain, columns=["model", *PAIR, "score"])


def same_values(values: Mapping[str, Values], metric: Metric) -> bool:
    """Whether every query of every system has the same value of a metric in both releases, to the last bit."""
    return all(
        before.models == after.models
        and before.queries.equals(after.queries)
        and all(
            np.array_equal(before.values[metric, rule], after.values[metric, rule], equal_nan=True)
            for rule in TIE_RULES
        )
        for before, after in values.values()
    )


def board_documents(benchmark: Benchmark, values: Mapping[str, Values]) -> Iterator[dict[str, Any]]:
    """Every table of view, metric and tie rule, compared (`boards.board_document`).

    A metric under which no query has a value (qrel-nDCG without a label) has no tables.

    Args:
        benchmark: as `common_benchmark` gives it, with at least one domain.
        values: by domain.
    """
    sides = tuple({domain: pair[side] for domain, pair in values.items()} for side in (0, 1))
    names = [_names(benchmark, side) for side in sides]
    if not names[0].keys() & names[1].keys():
        return
    for view in VIEWS:
        for metric in METRICS:
            tables = [
                [leaderboard(benchmark, side, view=view, metric=metric, ties=rule, names=named) for rule in TIE_RULES]
                for side, named in zip(sides, names, strict=True)
            ]
            found = [_per_query(benchmark, side, boards) for side, boards in zip(sides, tables, strict=True)]
            if any(np.isnan(board.values).all() for boards in tables for board in boards):
                continue
            pairs = [_pairs(benchmark, tables[0], found[0])]
            pairs.append(pairs[0] if _same(tables, found) else _pairs(benchmark, tables[1], found[1]))
            yield from map(board_document, *tables, *pairs)


def _names(benchmark: Benchmark, side: Mapping[str, DomainValues]) -> dict[str, str]:
    """Run name -> table name of the systems that rank something, in table order."""
    return {
        run: table
        for row, (run, table) in enumerate(benchmark.rerankers.items())
        if any(found.ranked[row].any() for found in side.values())
    }


def _per_query(
    benchmark: Benchmark, side: Mapping[str, DomainValues], boards: Sequence[Leaderboard]
) -> list[NDArray[np.float64]]:
    """By domain, (tables x systems, queries): the values that the tables of one view and metric are made of."""
    return [np.vstack([of_view(benchmark, side[domain], board) for board in boards]) for domain in benchmark.domains]


def _same(tables: Sequence[Sequence[Leaderboard]], found: Sequence[Sequence[NDArray[np.float64]]]) -> bool:
    """Whether tables are made of the same values in both releases: then so are their statistics."""
    return tables[0][0].rows == tables[1][0].rows and all(
        np.array_equal(one, other, equal_nan=True) for one, other in zip(*found, strict=True)
    )


def _pairs(
    benchmark: Benchmark, boards: Sequence[Leaderboard], found: Sequence[NDArray[np.float64]]
) -> list[list[Pair]]:
    """Every pair of systems that have a Mean, for each table; as `statistics.statistics` has them.

    The tables share one set of resamples, drawn once: that is what takes the time.
    """
    resampled = resampled_means(found)
    systems = len(boards[0].rows)
    result = []
    for place, board in enumerate(boards):
        own = slice(place * systems, (place + 1) * systems)
        tests = [paired_tests(table[own]) for table in found]
        means = resampled[:, own]
        pairs = []
        for number, test in enumerate(tests[0]):
            first, second = test.first, test.second
            before, after = float(board.values[first, -1]), float(board.values[second, -1])
            if not math.isnan(before + after):
                low, high = interval(means[:, second] - means[:, first])
                p_values = {
                    domain: of_domain[number].p_value
                    for domain, of_domain in zip(benchmark.domains, tests, strict=True)
                }
                tie = is_tie(before, after)
                pairs.append(Pair(board.rows[first], board.rows[second], after - before, low, high, tie, p_values))
        result.append(pairs)
    return result
