"""Gains: every link of method spec section 9.1, from an ability in logits to a gain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from provenance.errors import DataError, UsageError, Where

FloatArray = NDArray[np.float64]
ThetaLink = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

DEFAULT_LINK = "weighted_discrimination"


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), in two branches: never overflows, and is exactly 0 and 1 at -800 and 800."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def probabilities(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """`(pages, criteria)`: the chance that a page of ability `theta` passes a criterion."""
    return sigmoid(gamma * (theta[:, np.newaxis] - beta))


def weighted_discrimination(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """The mean chance to pass, weighted by discrimination: in (0, 1), strictly increasing in theta."""
    share: FloatArray = (gamma * probabilities(theta, gamma, beta)).sum(axis=1) / gamma.sum()
    return share


def mean_criterion(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """The mean chance to pass."""
    mean: FloatArray = probabilities(theta, gamma, beta).sum(axis=1) / len(gamma)
    return mean


def criterion(theta: FloatArray, gamma: FloatArray, beta: FloatArray, *, number: int) -> FloatArray:
    """The chance to pass criterion `number`, counted from 1."""
    if number > len(gamma):
        raise DataError(f"there is no criterion C{number}: the item parameters hold {len(gamma)} criteria")
    return sigmoid(gamma[number - 1] * (theta - beta[number - 1]))


def sigmoid_theta(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:  # noqa: ARG001 - one signature for every link
    """The sigmoid of theta: the chance to pass a criterion of discrimination 1 and difficulty 0."""
    return sigmoid(theta)


def sigmoid_mean_beta(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:  # noqa: ARG001 - as above
    """The sigmoid of theta less the mean difficulty."""
    return sigmoid(theta - beta.sum() / len(beta))


def excess_probability(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """The mean of what the chances to pass exceed 0.5 by."""
    mean: FloatArray = np.maximum(0.0, probabilities(theta, gamma, beta) - 0.5).sum(axis=1) / len(gamma)
    return mean


def gated_weighted(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """`weighted_discrimination`, but 0 below the easiest criterion's difficulty."""
    return np.where(theta < beta.min(), 0.0, weighted_discrimination(theta, gamma, beta))


def power2_weighted(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:
    """The square of `weighted_discrimination`."""
    return weighted_discrimination(theta, gamma, beta) ** 2


def linear_theta(theta: FloatArray, gamma: FloatArray, beta: FloatArray) -> FloatArray:  # noqa: ARG001 - as above
    """Where theta lies between the easiest and the hardest difficulty, clipped to [0, 1]; 0.5 if they are equal."""
    low, high = beta.min(), beta.max()
    if low == high:
        return np.full(len(theta), 0.5)
    place: FloatArray = np.clip((theta - low) / (high - low), 0.0, 1.0)
    return place


def count(passes: ArrayLike, placements: ArrayLike) -> FloatArray:
    """The share of passed verdicts over a page's placements; needs no 2PL fit.

    Args:
        passes: `(pages, criteria)`, how often a page passed each criterion.
        placements: `(pages,)`, how often it was judged; at least once.

    Raises:
        DataError: the lengths differ, a page was never judged, or passed more often than it was judged.
    """
    passed, n = np.asarray(passes, dtype=np.float64), np.asarray(placements, dtype=np.float64)
    if passed.ndim != 2 or passed.shape[1] == 0 or n.shape != passed.shape[:1]:  # noqa: PLR2004 - two axes
        raise DataError(f"passes {passed.shape} and placements {n.shape} do not fit: (pages, criteria) and (pages,)")
    _each(np.logical_and(np.isfinite(n), n >= 1), n, "placements", "a page needs at least one placement")
    within = np.logical_and(passed >= 0, passed <= n[:, np.newaxis])
    _each(np.all(within, axis=1), passed, "passes", "passes lie in 0..placements")
    share: FloatArray = passed.sum(axis=1) / (passed.shape[1] * n)
    return share


def qrel_linear(grade: ArrayLike) -> FloatArray:
    """The human grade itself."""
    return _finite(grade, "grade")


def qrel_exponential(grade: ArrayLike) -> FloatArray:
    """2^grade - 1."""
    return np.exp2(_finite(grade, "grade")) - 1.0


THETA_LINKS: dict[str, ThetaLink] = {
    DEFAULT_LINK: weighted_discrimination,
    "weighted_criterion": weighted_discrimination,
    "mean_criterion": mean_criterion,
    **{f"criterion_C{number}": partial(criterion, number=number) for number in range(1, 6)},
    "sigmoid_theta": sigmoid_theta,
    "sigmoid_mean_beta": sigmoid_mean_beta,
    "excess_probability": excess_probability,
    "gated_weighted": gated_weighted,
    "power2_weighted": power2_weighted,
    "linear_theta": linear_theta,
}
"""Links of theta, gamma and beta, by name: what `gains` offers."""

LINKS: dict[str, Callable[..., FloatArray]] = {
    **THETA_LINKS,
    "count": count,
    "qrel_linear": qrel_linear,
    "qrel_exponential": qrel_exponential,
}
"""Every link by name; `count` takes passes and placements, the `qrel` links take grades."""


def gains(theta: ArrayLike, gamma: ArrayLike, beta: ArrayLike, link: str = DEFAULT_LINK) -> FloatArray:
    """The gain of each page, float64, by a link of theta (method spec section 9.1).

    Uses no BLAS, and each gain hangs on its own theta alone: bit-exact for any order, sharding or number of threads.

    Args:
        theta: `(pages,)`, abilities in logits.
        gamma: `(criteria,)`, discriminations; their sum is above 0.
        beta: `(criteria,)`, difficulties in logits.
        link: a name of `THETA_LINKS`.

    Raises:
        UsageError: `link` is no link of theta.
        DataError: a value is not finite, gamma and beta differ in length, or gamma does not sum to more than 0.
    """
    if link not in THETA_LINKS:
        raise UsageError(f"'{link}' is no link of theta", remedy=f"choose one of {', '.join(THETA_LINKS)}")
    t, g, b = _finite(theta, "theta"), _finite(gamma, "gamma"), _finite(beta, "beta")
    if len(g) != len(b) or len(g) == 0:
        raise DataError(f"gamma holds {len(g)} criteria and beta {len(b)}; they need the same number, at least one")
    if not g.sum() > 0:
        raise DataError("gamma must sum to more than 0", where=Where(column="gamma", value=g.tolist()))
    return THETA_LINKS[link](t, g, b)


def _finite(values: ArrayLike, column: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"{column} has shape {array.shape}; a plain list of numbers is needed")
    _each(np.isfinite(array), array, column, "every value must be finite")
    return array


def _each(good: NDArray[np.bool_], values: FloatArray, column: str, rule: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(rule, where=Where(row=row, column=column, value=values[row].tolist()))
