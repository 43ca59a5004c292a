"""What a difference between two systems is worth (method spec section 13).

All functions take per-query values, (systems, queries) float64. NaN marks a query that a metric leaves out (the same
for all systems of a table); it is left out here too. Test statistics agree with SciPy's within 1e-12; bootstrap
resamples are drawn bit-exactly, their means agree within 1e-12 on any machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

ALPHA = 0.05
TIE_GAP = 0.02
RESAMPLES = 10_000
# Values are compared after rounding to this many decimals (the method spec leaves the tolerance open).
EQUAL_DECIMALS = 12
_DRAWS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class PairTest:
    """A paired two-sided t-test of the second system against the first, over the queries of one domain.

    Attributes:
        first: position of system A.
        second: position of system B.
        difference: the mean of B minus A.
        p_value: None where the test is undefined: fewer than two queries, or no variance in the differences.
    """

    first: int
    second: int
    difference: float
    p_value: float | None

    @property
    def separated(self) -> bool:
        """Whether p < 0.05, without a correction for multiple tests; an undefined test separates nothing."""
        return self.p_value is not None and self.p_value < ALPHA


@dataclass(frozen=True)
class FailureModes:
    """Shares of a domain's queries that tell systems apart badly; NaN without a query.

    Attributes:
        saturation: every system scores 1.
        floor: every system scores 0.
        compression: more than half of the pairs of systems score the same.
    """

    saturation: float
    floor: float
    compression: float


def paired_tests(values: NDArray[np.float64]) -> list[PairTest]:
    """The t-test of each of the n(n-1)/2 pairs of systems, in the order (0, 1), (0, 2), ..."""
    labelled = _labelled(values)
    return [_paired(labelled, first, second) for first, second in combinations(range(len(labelled)), 2)]


def separated_share(tests: Sequence[PairTest]) -> float:
    """The share of pairs that are separated; NaN without a pair. The mean over domains is unweighted."""
    return sum(test.separated for test in tests) / len(tests) if tests else math.nan


def resampled_means(
    domains: Sequence[NDArray[np.float64]], *, resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Bootstrap by query: the macro mean of every system in each resample, (resamples, systems).

    Queries are drawn with replacement within each domain, domain after domain from one stream of
    `numpy.random.default_rng(seed)`, the same draw for every system. Macro mean: unweighted over the domains. A domain
    without a query is left out. The difference of two columns is a resample of the systems' difference.

    Raises:
        DataError: no domain has a query.
    """
    drawn = [labelled for values in domains if (labelled := _labelled(values)).shape[1]]
    if not drawn:
        raise DataError("nothing to resample: no domain has a query with a value")
    random = np.random.default_rng(seed)
    total = np.zeros((resamples, len(drawn[0])))
    for values in drawn:
        start = 0
        for counts in _draw_counts(random, values.shape[1], resamples):
            total[start : start + len(counts)] += counts @ values.T / values.shape[1]
            start += len(counts)
    return total / len(drawn)


def interval(resampled: NDArray[np.float64], *, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of one statistic's resamples (numpy's linear interpolation)."""
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return float(low), float(high)


def failure_modes(values: NDArray[np.float64]) -> FailureModes:
    """Saturation, floor and compression of a domain; values equal to 12 decimals are the same."""
    rounded = np.round(_labelled(values), EQUAL_DECIMALS)
    systems, queries = rounded.shape
    if not queries:
        return FailureModes(math.nan, math.nan, math.nan)
    same = np.zeros(queries, dtype=np.int64)
    for first, second in combinations(range(systems), 2):
        same += rounded[first] == rounded[second]
    pairs = systems * (systems - 1) // 2
    return FailureModes(
        saturation=float(np.mean(np.all(rounded == 1.0, axis=0))),
        floor=float(np.mean(np.all(rounded == 0.0, axis=0))),
        compression=float(np.mean(2 * same > pairs)),
    )


def kendall_tau(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Kendall's tau-b between two orders of the systems; None where it is undefined (a constant column)."""
    tau = float(stats.kendalltau(first, second).statistic)
    return None if math.isnan(tau) else tau


def sign_flips(rcp: NDArray[np.float64], qrel: NDArray[np.float64], first: int, second: int) -> int:
    """The number of queries at which the metrics' differences of two systems have opposite signs (product below 0).

    Args:
        rcp: (systems, queries) values under one metric.
        qrel: the same queries under the other.
        first: position of system A.
        second: position of system B.
    """
    product = (rcp[second] - rcp[first]) * (qrel[second] - qrel[first])
    return int(np.count_nonzero(product < 0))


def is_tie(first: float, second: float) -> bool:
    """Whether two means lie closer than 0.02, the gap below which the method calls systems tied."""
    return round(abs(second - first), EQUAL_DECIMALS) < TIE_GAP


def reading(first: str, first_mean: float, second: str, second_mean: float) -> str:
    """One plain sentence about two systems' means (fractions)."""
    gap = abs(second_mean - first_mean)
    if is_tie(first_mean, second_mean):
        return f"{first} and {second} tie: their gap of {100 * gap:.1f} points is below {100 * TIE_GAP:.0f}."
    ahead, behind = (first, second) if first_mean > second_mean else (second, first)
    return f"{ahead} is ahead of {behind} by {100 * gap:.1f} points."


def _labelled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The queries that have a value for every system."""
    return values[:, ~np.isnan(values).any(axis=0)]


def _paired(values: NDArray[np.float64], first: int, second: int) -> PairTest:
    differences = values[second] - values[first]
    count = len(differences)
    mean = math.fsum(differences) / count if count else math.nan
    if count < 2 or differences.max() == differences.min():  # noqa: PLR2004 - a variance takes two
        return PairTest(first, second, mean, None)
    deviation = math.sqrt(math.fsum((differences - mean) ** 2) / (count - 1))
    statistic = mean / (deviation / math.sqrt(count))
    # stdtr is Student's cumulative distribution; two-sided.
    return PairTest(first, second, mean, 2 * float(special.stdtr(count - 1, -abs(statistic))))


def _draw_counts(random: np.random.Generator, queries: int, resamples: int) -> Iterator[NDArray[np.float64]]:
    """How often each query is drawn in each resample, (some resamples, queries), in blocks of bounded memory."""
    at_once = max(1, _DRAWS_AT_ONCE // queries)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        draws = random.integers(0, queries, size=(rows, queries))
        flat = (draws + queries * np.arange(rows)[:, None]).ravel()
        yield np.bincount(flat, minlength=rows * queries).reshape(rows, queries).astype(np.float64)
