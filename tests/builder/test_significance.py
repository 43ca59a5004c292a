"""Tests, resamples and failure modes against SciPy and small cases done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from builder import significance
from builder.significance import (
    FailureModes,
    PairTest,
    failure_modes,
    interval,
    is_tie,
    kendall_tau,
    paired_tests,
    reading,
    resampled_means,
    separated_share,
    sign_flips,
)
from provenance.errors import DataError


@given(values=hnp.arrays(np.float64, (3, 12), elements=st.floats(0.0, 1.0, width=16)))
def test_paired_tests_are_scipys(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    """Every pair's p value is that of scipy.stats.ttest_rel, and None where the differences do not vary."""
    found = {(test.first, test.second): test for test in paired_tests(values)}
    assert [(0, 1), (0, 2), (1, 2)] == list(found)
    for (first, second), test in found.items():
        differences = values[second] - values[first]
        assert pytest.approx(np.mean(differences), abs=1e-15) == test.difference
        if len(set(differences)) == 1:
            assert test.p_value is None
        else:
            expected = stats.ttest_rel(values[second], values[first]).pvalue
            assert pytest.approx(expected, abs=1e-12) == test.p_value


def test_paired_test_by_hand() -> None:
    """Differences 1, 2, 3 have mean 2, deviation 1, t = 2 sqrt 3: p = 1 - t / sqrt(t^2 + 2) at 2 degrees of freedom."""
    t = 2 * math.sqrt(3)
    (test,) = paired_tests(np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]))
    assert test.difference == 2.0
    assert pytest.approx(1 - t / math.sqrt(t * t + 2), abs=1e-12) == test.p_value
    assert not test.separated


@pytest.mark.parametrize("values", [[[0.1], [0.9]], [[0.5, 0.25], [0.75, 0.5]], [[], []]])
def test_undefined_tests(values: list[list[float]]) -> None:
    """Fewer than two queries, or differences that are all the same, leave a pair not separated and p undefined."""
    (test,) = paired_tests(np.array(values, dtype=np.float64))
    assert (None, False) == (test.p_value, test.separated)


def test_left_out_queries() -> None:
    """A query that the metric leaves out (NaN) is no part of a test."""
    values = np.array([[0.0, math.nan, 0.0, 0.0], [1.0, math.nan, 2.0, 3.0]])
    assert paired_tests(np.delete(values, 1, axis=1)) == paired_tests(values)


def test_separated_share() -> None:
    """The share counts p < 0.05, strictly, over all pairs; an undefined test counts as a pair."""
    tests = [PairTest(0, 1, 0.1, 0.049), PairTest(0, 2, 0.1, 0.05), PairTest(1, 2, 0.0, None)]
    assert 1 / 3 == separated_share(tests)
    assert math.isnan(separated_share([]))


def test_resamples_by_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each resample draws queries with replacement per domain, one draw for all systems, in any block size."""
    random = np.random.default_rng(5)
    domains = [random.random((3, 7)), random.random((3, 4))]
    generator = np.random.default_rng(0)
    draws = [generator.integers(0, 7, size=(50, 7)), generator.integers(0, 4, size=(50, 4))]
    expected = [
        [
            np.mean([np.mean(values[system, drawn[row]]) for values, drawn in zip(domains, draws, strict=True)])
            for system in range(3)
        ]
        for row in range(50)
    ]
    for at_once in (2_000_000, 30, 1):
        monkeypatch.setattr(significance, "_DRAWS_AT_ONCE", at_once)
        assert pytest.approx(np.array(expected), abs=1e-12) == resampled_means(domains, resamples=50)


def test_same_draw_for_both_systems() -> None:
    """Two systems that differ by a constant differ by it in every resample."""
    first = np.random.default_rng(2).random(30)
    resampled = resampled_means([np.array([first, first + 0.25])], resamples=100)
    assert pytest.approx(np.full(100, 0.25), abs=1e-12) == resampled[:, 1] - resampled[:, 0]


def test_resample_of_nothing() -> None:
    """No domain with a query is refused; a domain without a labelled query is left out of the mean."""
    empty, full = np.full((2, 3), math.nan), np.array([[0.5, 0.5], [1.0, 1.0]])
    assert [[0.5, 1.0]] == resampled_means([empty, full], resamples=1).tolist()
    with pytest.raises(DataError, match="nothing to resample"):
        resampled_means([empty])


def test_interval() -> None:
    """The percentile interval of 0..100 at 95 % is [2.5, 97.5]."""
    assert pytest.approx((2.5, 97.5)) == interval(np.arange(101.0))


def test_failure_modes() -> None:
    """Of four queries one is saturated, one at the floor; three systems have three pairs, so two same ones compress."""
    values = np.array([[1.0, 0.0, 0.3, 0.3], [1.0, 0.0, 0.3, 0.2], [1.0, 0.0, 0.3 + 1e-14, 0.3]])
    assert FailureModes(saturation=0.25, floor=0.25, compression=0.75) == failure_modes(values)


def test_compression_is_more_than_half() -> None:
    """Four systems in two equal couples share 2 of 6 pairs; three equal ones 3 of 6, which is not more than half."""
    values = np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.2, 0.1, 0.1], [0.2, 0.2, 0.1]])
    assert 1 / 3 == failure_modes(values).compression


def test_failure_modes_of_nothing() -> None:
    """Without a query no share is defined."""
    modes = failure_modes(np.empty((2, 0)))
    assert all(math.isnan(share) for share in (modes.saturation, modes.floor, modes.compression))


def test_kendall_tau() -> None:
    """One swapped neighbour among four systems leaves tau 4/6; a constant order has none."""
    assert pytest.approx(4 / 6) == kendall_tau(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    assert kendall_tau(np.array([1.0, 2.0]), np.array([1.0, 1.0])) is None


def test_sign_flips() -> None:
    """A flip is a query at which the metrics disagree about who is better; an equal score is no flip."""
    rcp = np.array([[0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.6, 0.5]])
    qrel = np.array([[0.5, 0.5, 0.5, 0.5], [0.4, 0.6, 0.6, 0.9]])
    assert sign_flips(rcp, qrel, 0, 1) == 2


@pytest.mark.parametrize(("first", "second", "tie"), [(0.9, 0.919, True), (0.92, 0.94, False), (0.5, 0.47, False)])
def test_ties(first: float, second: float, tie: bool) -> None:
    """A gap below 0.02 is a tie; one of 0.02 is none, whatever floats make of it."""
    assert tie == is_tie(first, second)


def test_readings() -> None:
    """The plain reading names who is ahead and by how many points, or says that the two tie."""
    assert reading("A", 0.90, "B", 0.95) == "B is ahead of A by 5.0 points."
    assert reading("A", 0.90, "B", 0.91) == "A and B tie: their gap of 1.0 points is below 2."
