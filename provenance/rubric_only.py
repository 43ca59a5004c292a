"""The 2PL calibration without a tournament: marginal maximum likelihood on rubric verdicts (method spec section 8.2).

A page's ability is a standard normal variable that is integrated out on a fixed grid. What is known of a page is how
often it was placed and how often it passed each criterion; pages with the same counts are one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from provenance.errors import DataError, FitError, Where
from provenance.gain import sigmoid

FloatArray = NDArray[np.float64]

PRIOR_SD = 1.0
GRID: FloatArray = np.linspace(-18.0, 10.0, 561)
_PRIOR: FloatArray = -0.5 * (GRID / PRIOR_SD) ** 2
_LOG_PRIOR: FloatArray = _PRIOR - np.log(np.exp(_PRIOR).sum())
_CLIP = 1e-9
_GAMMA_RANGE = (0.05, 20.0)
_BETA_RANGE = (-10.0, 10.0)
_MAX_ITERATIONS = 800
_LARGEST_SHARE = 0.90
_AT_THE_BOUND = 0.999
_FEWEST_PASSING = 0.02
_BLOCK = 512  # patterns; a block's grid stays in cache, and the sum over blocks has one order


@dataclass(frozen=True)
class Patterns:
    """Distinct counts, in lexical order: `n` `(D,)` placements, `passes` `(D, C)`, `pages` `(D,)` with these counts."""

    n: FloatArray
    passes: FloatArray
    pages: FloatArray

    @classmethod
    def of(cls, n: ArrayLike, passes: ArrayLike) -> Self:
        """Merge pages with equal counts.

        Args:
            n: `(P,)`, placements of each page, at least 1.
            passes: `(P, C)`, in how many of them it passed each criterion; C is at least 2.

        Raises:
            DataError: the shapes do not fit, or passes do not lie in 0..n.
        """
        placed, passed = np.asarray(n, dtype=np.float64), np.asarray(passes, dtype=np.float64)
        if passed.ndim != 2 or passed.shape[1] < 2 or placed.shape != passed.shape[:1] or not len(placed):  # noqa: PLR2004 - axes, and two criteria
            raise DataError(
                f"n {placed.shape} and passes {passed.shape} do not fit: (pages,) and (pages, criteria), "
                "at least one page and two criteria"
            )
        good = (placed >= 1) & (passed >= 0).all(axis=1) & (passed <= placed[:, np.newaxis]).all(axis=1)
        if not good.all():
            row = int(np.argmin(good))
            where = Where(row=row, column="passes", value=passed[row].tolist())
            raise DataError(f"passes must lie in 0..n, and n ({placed[row]:g}) be at least 1", where=where)
        rows, pages = np.unique(np.column_stack([placed, passed]), axis=0, return_counts=True)
        return cls(rows[:, 0], rows[:, 1:], pages.astype(np.float64))


@dataclass(frozen=True)
class RubricFit:
    """Item parameters on the prior's scale (theta has mean 0 and standard deviation 1)."""

    gamma: FloatArray
    beta: FloatArray
    negative_log_likelihood: float
    ordinal_only: bool
    """Discriminations are all at their bound, or hardly a page passes anything: only the order of pages means much."""


@dataclass(frozen=True)
class Scale:
    """The reported scale: theta' = slope * theta + shift, on which gamma has mean 1 and beta mean 0."""

    slope: float
    shift: float

    @classmethod
    def of(cls, gamma: FloatArray, beta: FloatArray) -> Self:
        """The scale that centres a fit."""
        slope = float(gamma.mean())
        return cls(slope, -slope * float(beta.mean()))

    def items(self, gamma: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gamma and beta as reported."""
        return gamma / self.slope, self.slope * beta + self.shift

    def pages(self, theta: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Theta and its standard error as reported; the prior becomes N(shift, slope * sd)."""
        return self.slope * theta + self.shift, self.slope * error


def objective(gamma: FloatArray, beta: FloatArray, patterns: Patterns) -> float:
    """The negative log likelihood of all pages, theta integrated out; binomial coefficients left out."""
    return _evaluate(gamma, beta, patterns)[0]


def gradient(gamma: FloatArray, beta: FloatArray, patterns: Patterns) -> FloatArray:
    """`(2C,)`: the gradient of `objective` by log gamma and beta."""
    return _evaluate(gamma, beta, patterns)[1]


def fit(patterns: Patterns) -> RubricFit:
    """Item parameters by L-BFGS-B within the method's bounds, from its start.

    scipy's default tolerances are part of the method: where a criterion hardly ever passes the likelihood is nearly
    flat, and a closer search moves on by a few hundredths in gamma.

    Raises:
        FitError: no convergence, or one criterion takes more than 90 % of the discrimination.
    """
    criteria = patterns.passes.shape[1]

    def value_and_slope(x: FloatArray) -> tuple[float, FloatArray]:
        return _evaluate(np.exp(x[:criteria]), x[criteria:], patterns)

    low, high = np.log(_GAMMA_RANGE)
    found = minimize(
        value_and_slope,
        np.concatenate([np.zeros(criteria), np.linspace(1.0, 4.0, criteria)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * criteria + [_BETA_RANGE] * criteria,
        options={"maxiter": _MAX_ITERATIONS},
    )
    if not found.success:
        raise FitError(
            f"the rubric-only fit did not converge in {found.nit} iterations: {found.message}",
            remedy="look at the verdicts: criteria that never or always pass leave little to fit",
        )
    gamma, beta = np.exp(found.x[:criteria]), found.x[criteria:]
    if gamma.max() > _LARGEST_SHARE * gamma.sum():
        raise FitError(
            f"criterion {int(gamma.argmax()) + 1} takes {gamma.max() / gamma.sum():.1%} of the discrimination "
            f"(allowed: {_LARGEST_SHARE:.0%}); gains would be this one criterion",
            remedy="judge more pages, or drop the criterion",
        )
    passing = patterns.pages[patterns.passes.any(axis=1)].sum() / patterns.pages.sum()
    ordinal_only = bool((gamma >= _AT_THE_BOUND * _GAMMA_RANGE[1]).all() or passing < _FEWEST_PASSING)
    return RubricFit(gamma, beta, float(found.fun), ordinal_only)


def abilities(gamma: FloatArray, beta: FloatArray, n: ArrayLike, passes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Each page's ability and its standard error: mean and standard deviation of its posterior, `(P,)` each.

    Raises:
        DataError: as `Patterns.of`.
    """
    Patterns.of(n, passes)
    placed, passed = np.asarray(n, dtype=np.float64), np.asarray(passes, dtype=np.float64)
    passing, failing, _ = _log_chances(gamma, beta)
    theta, error = np.empty(len(placed)), np.empty(len(placed))
    for first in range(0, len(placed), _BLOCK):
        rows = slice(first, first + _BLOCK)
        posterior, _ = _posterior(placed[rows], passed[rows], passing, failing)
        theta[rows] = (posterior * GRID).sum(axis=1)
        error[rows] = np.sqrt((posterior * (GRID - theta[rows, np.newaxis]) ** 2).sum(axis=1))
    return theta, error


def _log_chances(gamma: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`(G, C)` each: log of the clipped chance to pass and to fail, and the logits, NaN where the clip binds."""
    logit = gamma * (GRID[:, np.newaxis] - beta)
    p = sigmoid(logit)
    clipped = np.clip(p, _CLIP, 1.0 - _CLIP)
    return np.log(clipped), np.log1p(-clipped), np.where(clipped == p, logit, np.nan)


def _posterior(
    n: FloatArray, passes: FloatArray, passing: FloatArray, failing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """`(D, G)` posterior weights on the grid, and `(D,)` log likelihoods."""
    # einsum of two operands is numpy's own loop: the sum's order does not hang on BLAS.
    joint = np.einsum("dc,gc->dg", passes, passing) + np.einsum("dc,gc->dg", n[:, np.newaxis] - passes, failing)
    joint += _LOG_PRIOR
    top = joint.max(axis=1, keepdims=True)
    weight = np.exp(joint - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]


def _evaluate(gamma: FloatArray, beta: FloatArray, patterns: Patterns) -> tuple[float, FloatArray]:
    passing, failing, logit = _log_chances(gamma, beta)
    value = 0.0
    placed, passed = np.zeros(len(GRID)), np.zeros((len(GRID), len(gamma)))
    for first in range(0, len(patterns.n), _BLOCK):
        rows = slice(first, first + _BLOCK)
        n, passes, pages = patterns.n[rows], patterns.passes[rows], patterns.pages[rows]
        posterior, likelihood = _posterior(n, passes, passing, failing)
        posterior *= pages[:, np.newaxis]
        value -= float((pages * likelihood).sum())
        placed += np.einsum("dg,d->g", posterior, n)
        passed += np.einsum("dg,dc->gc", posterior, passes)
    bound = np.isnan(logit)
    miss = np.where(bound, 0.0, placed[:, np.newaxis] * np.exp(passing) - passed)
    by_log_gamma = (miss * np.where(bound, 0.0, logit)).sum(axis=0)
    return value, np.concatenate([by_log_gamma, -gamma * miss.sum(axis=0)])
