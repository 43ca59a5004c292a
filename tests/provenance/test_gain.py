"""Gains: the worked numbers of method spec section 17.2, and the links' laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance import gain
from provenance.errors import DataError, UsageError

GAMMA, BETA = [1.2, 1.0, 0.8], [-2.0, 0.0, 3.0]
FIVE_GAMMA, FIVE_BETA = [1.2, 1.0, 1.1, 0.9, 0.8], [-2.0, -0.5, 0.0, 0.8, 1.7]
P_AT_0 = [0.916827304, 0.5, 0.083172696]


@pytest.mark.parametrize(
    ("theta", "chances", "expected"),
    [
        (0.0, P_AT_0, 0.5555769738),
        (-5.0, [0.026596994, 0.006692851, 0.001658801], 0.0133120947),
        (5.0, [0.999775183, 0.993307149, 0.832018385], 0.9528840257),
    ],
)
def test_weighted_discrimination_of_three_criteria(theta: float, chances: list[float], expected: float) -> None:
    """The spec's chances to pass and weighted gain of three criteria."""
    for number, chance in enumerate(chances, start=1):
        assert chance == pytest.approx(gain.gains([theta], GAMMA, BETA, f"criterion_C{number}")[0], abs=1e-9)
    assert expected == pytest.approx(gain.gains([theta], GAMMA, BETA)[0], abs=1e-10)
    assert expected == gain.gains([theta], GAMMA, BETA, "weighted_criterion")[0].round(10)


def test_weighted_discrimination_of_five_criteria() -> None:
    """The spec's three gains of five criteria."""
    expected = [0.7753222705, 0.4900049532, 0.6537700053]
    assert expected == pytest.approx(gain.gains([1.4, -0.3, 0.6], FIVE_GAMMA, FIVE_BETA), abs=1e-10)


@pytest.mark.parametrize(("passes", "n", "expected"), [([2, 2, 1, 0, 0], 2, 0.5), ([1, 0, 0, 0, 0], 1, 0.2)])
def test_count_link(passes: list[int], n: int, expected: float) -> None:
    """The spec's two shares of passed verdicts."""
    assert expected == pytest.approx(gain.LINKS["count"]([passes], [n])[0], abs=1e-15)


def test_sigmoid_is_exact_far_out() -> None:
    """The two-branch sigmoid gives exactly 0, 0.5 and 1 at -800, 0 and 800."""
    assert [0.0, 0.5, 1.0] == gain.gains([-800.0, 0.0, 800.0], [1.0], [0.0]).tolist()


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("mean_criterion", sum(P_AT_0) / 3),
        ("sigmoid_theta", 0.5),
        ("sigmoid_mean_beta", 1 / (1 + np.exp(1 / 3))),
        ("excess_probability", (P_AT_0[0] - 0.5) / 3),
        ("gated_weighted", 0.5555769738),
        ("power2_weighted", 0.5555769738**2),
        ("linear_theta", 2 / 5),
    ],
)
def test_other_links_at_zero(link: str, expected: float) -> None:
    """Every other link of theta at theta 0, by hand from the spec's chances."""
    assert expected == pytest.approx(gain.gains([0.0], GAMMA, BETA, link)[0], abs=1e-9)


def test_gated_and_linear_ends() -> None:
    """Below the easiest difficulty the gate is shut; the line is clipped at both ends, and 0.5 if it has no length."""
    assert gain.gains([-2.0001], GAMMA, BETA, "gated_weighted").tolist() == [0.0]
    assert gain.gains([-2.0], GAMMA, BETA, "gated_weighted")[0] > 0.0
    assert gain.gains([-9.0, 9.0], GAMMA, BETA, "linear_theta").tolist() == [0.0, 1.0]
    assert gain.gains([7.0], [1.0, 1.0], [1.0, 1.0], "linear_theta").tolist() == [0.5]


def test_qrel_links() -> None:
    """Grades 0, 1, 2 give themselves, and 2^grade - 1."""
    assert gain.LINKS["qrel_linear"]([0, 1, 2]).tolist() == [0.0, 1.0, 2.0]
    assert gain.LINKS["qrel_exponential"]([0, 1, 2]).tolist() == [0.0, 1.0, 3.0]


logit = st.floats(-20, 20)
five = st.lists(st.floats(0.05, 5), min_size=5, max_size=5)


@given(theta=logit, scale=st.floats(0.2, 5), shift=st.floats(-5, 5))
def test_the_weighted_gain_is_invariant(theta: float, scale: float, shift: float) -> None:
    """(a theta + b, a beta + b, gamma / a) gives the same gain."""
    moved = gain.gains([scale * theta + shift], np.array(FIVE_GAMMA) / scale, scale * np.array(FIVE_BETA) + shift)
    assert gain.gains([theta], FIVE_GAMMA, FIVE_BETA) == pytest.approx(moved, abs=1e-12)


@given(gamma=five, low=logit, rise=st.floats(1e-3, 10))
def test_the_weighted_gain_increases(gamma: list[float], low: float, rise: float) -> None:
    """The gain rises with theta and lies in [0, 1] (strictly inside where float64 can tell)."""
    first, second = gain.gains([low, low + rise], gamma, FIVE_BETA)
    assert 0.0 < first <= second <= 1.0
    assert first < second or first > 1 - 1e-9


@pytest.mark.parametrize(
    ("theta", "gamma", "beta", "words"),
    [
        ([0.0, np.nan], GAMMA, BETA, r"row 1, column 'theta', value nan"),
        ([0.0], [1.0, np.inf, 1.0], BETA, "column 'gamma', value inf"),
        ([0.0], GAMMA, [0.0, 1.0], "gamma holds 3 criteria and beta 2"),
        ([0.0], [1.0, -1.0], [0.0, 1.0], "sum to more than 0"),
        ([0.0], [], [], "at least one"),
        ([[0.0]], GAMMA, BETA, r"theta has shape \(1, 1\)"),
    ],
)
def test_bad_input_is_refused(theta: list[float], gamma: list[float], beta: list[float], words: str) -> None:
    """A value that is not finite, unequal lengths and a sum of gamma not above 0 are refused with their place."""
    with pytest.raises(DataError, match=words):
        gain.gains(theta, gamma, beta)


def test_unknown_links_are_refused() -> None:
    """A link that is none of theta's, and a criterion that the fit does not have, are refused."""
    with pytest.raises(UsageError, match="'count' is no link of theta"):
        gain.gains([0.0], GAMMA, BETA, "count")
    with pytest.raises(DataError, match="no criterion C4"):
        gain.gains([0.0], GAMMA, BETA, "criterion_C4")


@pytest.mark.parametrize(("passes", "n"), [([[1, 3]], [2]), ([[0, 0]], [0]), ([[0, 0]], [1, 1]), ([[-1, 0]], [1])])
def test_impossible_counts_are_refused(passes: list[list[int]], n: list[int]) -> None:
    """More passes than placements, no placement, unequal lengths and negative passes are refused."""
    with pytest.raises(DataError):
        gain.count(passes, n)
