"""The certificate of a published fit: gradients of the declared objective at the published values, without refitting.

Method spec section 8.1. With r = n p - k per (query, page, criterion), p = sigma(gamma_c (theta - beta_c)), the fit is
stationary in

* alpha_j:  sum gamma_c r + alpha_j / s_alpha^2 = 0
* tau_j:    sum gamma_c r b + (tau_j - 1) / s_tau^2 = 0   (times d tau / d t = 1 - exp(-tau) for the raw t)
* u_m:      [gamma_m G_m - (gamma_m / C) sum_c gamma_c G_c] / (N C) + l u_m = 0,  G_c = sum r (theta - beta_c)
* v_m:      [B_m - mean B] / (N C) + l v_m = 0,  B_c = -gamma_c sum r

u and v are not published. Both gradients above sum to zero over the criteria without their ridge, because gamma and
beta do not change when all u or all v shift; so at a stationary point sum u = sum v = 0, and u = log gamma - mean log
gamma, v = beta. (The clamp of u at 10 is taken not to bind: it cannot while gamma's ratio stays below e^10.)

Where the abilities are not published, they sum to zero in a query, so alpha is theta's mean, tau b = theta - alpha, and
tau is a root of tau^2 - m tau + s_tau^2 S = 0 with S = sum gamma_c r (theta - alpha) and m the prior's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from provenance.gain import sigmoid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_ULPS = 8.0
"""How many roundings a published theta, p and their products may have gone through: a generous constant."""
_UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass(frozen=True)
class Items:
    """The shared parameters and the declared objective."""

    gamma: FloatArray
    beta: FloatArray
    tau_mean: float
    tau_sd: float
    alpha_mean: float
    alpha_sd: float
    ridge: float
    dtype: str | None
    query_tolerance: float | None
    item_tolerance: float | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Items:
        """From item_params; priors that are not recorded are the method's (s_tau 1, s_alpha 2, ridge 1e-4)."""
        priors = document.get("priors", {})
        fit = document.get("fit", {})
        tolerance = fit.get("tolerance", {})
        tau, alpha = priors.get("tau", {}), priors.get("alpha", {})
        return cls(
            np.asarray(document["gamma"], dtype=np.float64),
            np.asarray(document["beta"], dtype=np.float64),
            tau.get("mean", 1.0),
            tau.get("sd", 1.0),
            alpha.get("mean", 0.0),
            alpha.get("sd", 2.0),
            priors.get("item_ridge", 1e-4),
            fit.get("dtype"),
            tolerance.get("query_gradient"),
            tolerance.get("item_gradient"),
        )

    @property
    def judged(self) -> bool:
        """Whether the document records enough to bound the residuals."""
        return self.dtype in _UNIT and self.query_tolerance is not None and self.item_tolerance is not None


@dataclass(frozen=True)
class Block:
    """A domain: `(P,)` query numbers (0..J-1), theta, ability, n; `(P, C)` passes; `(J,)` tau, alpha.

    `ability` and `tau` are None where no calibration is published.
    """

    query: NDArray[np.int64]
    theta: FloatArray
    ability: FloatArray | None
    n: FloatArray
    passes: FloatArray
    tau: FloatArray | None
    alpha: FloatArray


@dataclass(frozen=True)
class QueryResiduals:
    """`(J,)` each: the residuals of a domain's queries and what rounding may make of them.

    `tau` is the gradient by t where abilities are known, and None where they are not; then `discriminant` (negative
    where no tau solves the equation) and `root` (the larger one, NaN without) take its place.
    """

    alpha: FloatArray
    tau: FloatArray | None
    discriminant: FloatArray | None
    root: FloatArray | None
    alpha_bound: FloatArray
    tau_bound: FloatArray


@dataclass
class SharedSums:
    """What the shared gradients need of every domain; adds up."""

    by_gamma: FloatArray
    r: FloatArray
    wobble: float = 0.0
    placements: float = 0.0
    loss: float = 0.0
    priors: float = 0.0

    @classmethod
    def zero(cls, criteria: int) -> SharedSums:
        """Nothing summed yet."""
        return cls(np.zeros(criteria), np.zeros(criteria))


def judge_block(block: Block, items: Items, sums: SharedSums) -> QueryResiduals:
    """The residuals of a domain's queries; adds the domain to `sums`."""
    gamma, beta = items.gamma, items.beta
    logit = gamma * (block.theta[:, np.newaxis] - beta)
    p = sigmoid(logit)
    expected = block.n[:, np.newaxis] * p
    r = expected - block.passes
    weighted = (gamma * r).sum(axis=1)
    queries = len(block.alpha)
    # A theta that is off by u (|theta| + |beta| + 1) moves n gamma p by at most n gamma^2 p (1 - p) times that; the
    # sums themselves round by u a term. float32 fits publish values that were rounded so.
    unit = _ULPS * _UNIT.get(items.dtype or "float64", 0.0)
    reach = np.abs(block.theta)[:, np.newaxis] + np.abs(beta) + 1.0
    wobble = unit * (gamma**2 * expected * (1.0 - p) * reach + gamma * (expected + block.passes)).sum(axis=1)
    alpha = _by_query(block.query, weighted, queries) + (block.alpha - items.alpha_mean) / items.alpha_sd**2
    alpha_bound = _by_query(block.query, wobble, queries) + unit * np.abs(block.alpha) / items.alpha_sd**2

    tau = discriminant = root = None
    if block.ability is not None and block.tau is not None:
        lever = block.ability
        slope = -np.expm1(-block.tau)
        tau = slope * (
            _by_query(block.query, weighted * lever, queries) + (block.tau - items.tau_mean) / items.tau_sd**2
        )
        tau_bound = _by_query(block.query, (wobble + unit * np.abs(weighted)) * np.abs(lever), queries)
        tau_bound += unit * (np.abs(block.tau) + items.tau_mean) / items.tau_sd**2
    else:
        lever = block.theta - block.alpha[block.query]
        total = items.tau_sd**2 * _by_query(block.query, weighted * lever, queries)
        discriminant = items.tau_mean**2 - 4.0 * total
        root = (items.tau_mean + np.sqrt(np.where(discriminant >= 0, discriminant, np.nan))) / 2.0
        root = np.where(root > 0, root, np.nan)
        tau_bound = 4.0 * items.tau_sd**2 * _by_query(block.query, wobble * np.abs(lever), queries)

    sums.by_gamma += (r * (block.theta[:, np.newaxis] - beta)).sum(axis=0)
    sums.r += r.sum(axis=0)
    sums.wobble += float((wobble * (np.abs(block.theta) + np.abs(beta).max() + 1.0)).sum())
    sums.placements += float(block.n.sum())
    small = np.log1p(np.exp(-np.abs(logit)))
    sums.loss += float((block.n[:, np.newaxis] * (np.maximum(logit, 0.0) + small) - block.passes * logit).sum())
    if block.tau is not None:
        sums.priors += float(
            ((block.tau - items.tau_mean) ** 2).sum() / (2 * items.tau_sd**2)
            + ((block.alpha - items.alpha_mean) ** 2).sum() / (2 * items.alpha_sd**2)
        )
    return QueryResiduals(alpha, tau, discriminant, root, alpha_bound, tau_bound)


def shared_gradients(sums: SharedSums, items: Items) -> tuple[FloatArray, FloatArray, float]:
    """`(C,)` gradients of the mean objective by u and by v, ridge included, and what rounding may make of them."""
    criteria = len(items.gamma)
    verdicts = sums.placements * criteria
    u, v = raw_items(items)
    weighted = items.gamma * sums.by_gamma
    by_u = (weighted - items.gamma / criteria * weighted.sum()) / verdicts + items.ridge * u
    by_beta = -items.gamma * sums.r
    by_v = (by_beta - by_beta.mean()) / verdicts + items.ridge * v
    rounding = 2.0 * sums.wobble / verdicts + _ULPS * _UNIT.get(items.dtype or "float64", 0.0) * items.ridge * float(
        np.abs(u).max() + np.abs(v).max() + 1.0
    )
    return by_u, by_v, rounding


def mean_objective(sums: SharedSums, items: Items) -> float:
    """The declared objective at the published values (needs tau and alpha)."""
    verdicts = sums.placements * len(items.gamma)
    u, v = raw_items(items)
    return (sums.loss + sums.priors) / verdicts + items.ridge / 2.0 * float((u**2).sum() + (v**2).sum())


def raw_items(items: Items) -> tuple[FloatArray, FloatArray]:
    """The raw u and v behind gamma and beta: both sum to zero at a stationary point (see the module's docstring)."""
    logs = np.log(items.gamma)
    return logs - logs.mean(), items.beta - items.beta.mean()


def _by_query(query: NDArray[np.int64], values: FloatArray, queries: int) -> FloatArray:
    return np.bincount(query, weights=values, minlength=queries).astype(np.float64, copy=False)


def largest(values: Sequence[float] | FloatArray) -> float:
    """The largest absolute value, 0 of none, NaN where one is NaN."""
    array = np.abs(np.asarray(values, dtype=np.float64))
    return float(array.max()) if array.size else 0.0
