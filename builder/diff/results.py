"""Both releases' runs replayed on both releases' gains, a domain at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from builder.diff.boards import board_document
from builder.diff.sides import Part
from builder.leaderboard import PAIR, VIEWS, DomainValues, domain_values, leaderboard
from builder.ndcg import TIE_RULES, Metric
from builder.statistics import of_view, statistics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

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

    Args:
        benchmark: as `common_benchmark` gives it, with at least one domain.
        values: by domain.
    """
    sides = tuple({domain: pair[side] for domain, pair in values.items()} for side in (0, 1))
    names = tuple(
        {
            run: table
            for row, (run, table) in enumerate(benchmark.rerankers.items())
            if any(found.ranked[row].any() for found in side.values())
        }
        for side in sides
    )
    if not names[0].keys() & names[1].keys():
        return
    for view in VIEWS:
        for metric in METRICS:
            for rule in TIE_RULES:
                old, new = (
                    leaderboard(benchmark, side, view=view, metric=metric, ties=rule, names=named)
                    for side, named in zip(sides, names, strict=True)
                )
                before = statistics(benchmark, sides[0], old)
                same = old.rows == new.rows and _same(benchmark, sides, old)
                after = before if same else statistics(benchmark, sides[1], new)
                yield board_document(old, new, before, after)


def _same(benchmark: Benchmark, sides: tuple[Mapping[str, DomainValues], ...], board: Leaderboard) -> bool:
    """Whether a table is made of the same values in both releases: then so are its statistics."""
    before, after = ([of_view(benchmark, side[domain], board) for domain in benchmark.domains] for side in sides)
    return all(np.array_equal(one, other, equal_nan=True) for one, other in zip(before, after, strict=True))
