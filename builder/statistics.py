"""The statistics of a leaderboard: what its differences are worth (method spec section 13)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from builder.significance import (
    FailureModes,
    failure_modes,
    interval,
    is_tie,
    kendall_tau,
    paired_tests,
    resampled_means,
    separated_share,
    sign_flips,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from builder.benchmark import Benchmark
    from builder.leaderboard import DomainValues, Leaderboard


@dataclass(frozen=True)
class Pair:
    """Two systems of a table.

    Attributes:
        first: table name of A.
        second: table name of B.
        gap: Mean of B minus Mean of A, a fraction.
        low: lower end of the gap's 95 % bootstrap interval.
        high: upper end.
        tie: whether the gap is below 0.02.
        p_values: by domain, of the paired t-test; None where it is undefined.
    """

    first: str
    second: str
    gap: float
    low: float
    high: float
    tie: bool
    p_values: Mapping[str, float | None]


@dataclass(frozen=True)
class Statistics:
    """The statistics of one table, over the systems that have a Mean.

    Attributes:
        intervals: by system, the 95 % bootstrap interval of its Mean.
        pairs: each pair of systems.
        separated: by domain, the share of pairs that the t-test separates.
        separated_mean: their unweighted mean; NaN with fewer than two systems.
        failure_modes: by domain.
    """

    intervals: Mapping[str, tuple[float, float]]
    pairs: tuple[Pair, ...]
    separated: Mapping[str, float]
    separated_mean: float
    failure_modes: Mapping[str, FailureModes]


@dataclass(frozen=True)
class Agreement:
    """How two tables of one view and tie rule, by gains (rcp) and by grades (qrel), order the systems.

    Attributes:
        view: which queries.
        ties: which tie rule.
        kendall_tau: between the two orders by Mean; None where a Mean does not vary.
        sign_flips: by pair of systems, at how many queries the two metrics disagree about which is better.
    """

    view: str
    ties: str
    kendall_tau: float | None
    sign_flips: Mapping[tuple[str, str], int]


def statistics(benchmark: Benchmark, values: Mapping[str, DomainValues], board: Leaderboard) -> Statistics:
    """Tests, intervals and shares of a table; a system without a Mean is left out.

    Args:
        benchmark: domains, languages, native languages.
        values: by domain, the per-query values that the table was made of.
        board: the table.

    Raises:
        DataError: no system has a Mean, or no domain has a query with a value.
    """
    means = board.values[:, -1]
    kept = np.flatnonzero(~np.isnan(means))
    names = [board.rows[row] for row in kept]
    per_query = {name: of_view(benchmark, values[name], board)[kept] for name in benchmark.domains}
    tests = {name: paired_tests(table) for name, table in per_query.items()}
    shares = {name: separated_share(found) for name, found in tests.items()}
    resampled = resampled_means(list(per_query.values()))
    pairs = []
    for index, test in enumerate(next(iter(tests.values()))):
        first, second = test.first, test.second
        low, high = interval(resampled[:, second] - resampled[:, first])
        before, after = float(means[kept[first]]), float(means[kept[second]])
        p_values = {name: found[index].p_value for name, found in tests.items()}
        pairs.append(Pair(names[first], names[second], after - before, low, high, is_tie(before, after), p_values))
    return Statistics(
        intervals={name: interval(resampled[:, row]) for row, name in enumerate(names)},
        pairs=tuple(pairs),
        separated=shares,
        separated_mean=math.fsum(shares.values()) / len(shares),
        failure_modes={name: failure_modes(table) for name, table in per_query.items()},
    )


def agreement(
    benchmark: Benchmark, values: Mapping[str, DomainValues], rcp: Leaderboard, qrel: Leaderboard
) -> Agreement:
    """Compare two tables of the same systems, over those that have a Mean in both."""
    kept = np.flatnonzero(~np.isnan(rcp.values[:, -1]) & ~np.isnan(qrel.values[:, -1]))
    flips = {
        (rcp.rows[first], rcp.rows[second]): sum(
            sign_flips(of_view(benchmark, domain, rcp), of_view(benchmark, domain, qrel), first, second)
            for domain in values.values()
        )
        for first, second in combinations(kept.tolist(), 2)
    }
    tau = kendall_tau(rcp.values[kept, -1], qrel.values[kept, -1])
    return Agreement(rcp.view, rcp.ties, tau, flips)


def of_view(benchmark: Benchmark, values: DomainValues, board: Leaderboard) -> NDArray[np.float64]:
    """(rows of the table, queries): the per-query values of a domain that the table's view takes in."""
    table = values.values[board.metric, board.ties][[values.models.index(model) for model in board.models]]
    if board.view == "native":
        return table[:, values.columns_of(benchmark.domains[values.domain].native_language)]
    return table
