"""The 2PL's objective on counts, with its gradient and its Hessian in arrow form (method spec section 8.1).

The objective is kept in two units. *Summed* is the negative log posterior: a sum over verdicts, queries and the item
ridge times N * C. *Mean* is that over N * C, as the method states it. The item parameters enter through
gamma = C softmax(min(u, 10)) and beta = v - mean(v), a query's through tau = softplus(t) and alpha.

Every derivative hangs on the verdicts through five sums a query and criterion, because the logit is linear in the
page's ability. These `Moments` are all that touches the pages; they are made query by query, so cutting the
queries into blocks and giving these to any number of workers leaves every bit as it is. BLAS sees matrices of
C rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from provenance.gain import sigmoid

if TYPE_CHECKING:
    from concurrent.futures import Executor

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TAU_SD = 1.0
ALPHA_SD = 2.0
ITEM_RIDGE = 1e-4
_HIGHEST_U = 10.0
_BLOCK = 64  # queries; a block's arrays stay in a core's cache


@dataclass(frozen=True)
class Counts:
    """How often each page was judged and passed each criterion; P pages of J queries in canonical order, C criteria."""

    query_ids: tuple[str, ...]
    corpus_ids: tuple[str, ...]
    starts: IntArray
    """`(J + 1,)`: where each query's pages start, and the end."""
    ability: FloatArray
    """`(P,)`: Bradley-Terry abilities in logits."""
    n: FloatArray
    """`(P,)`: placements of each page, 0 included."""
    passes: FloatArray
    """`(P, C)`: placements in which the page passed the criterion."""
    placements: int
    """N: placements counted."""
    skipped: int
    """Placements left out because their page has no ability."""

    @property
    def verdicts(self) -> int:
        """N * C."""
        return self.placements * int(self.passes.shape[1])


@dataclass(frozen=True)
class Parameters:
    """The free parameters: `u`, `v` of the C items and `t`, `alpha` of the J queries."""

    u: FloatArray
    v: FloatArray
    t: FloatArray
    alpha: FloatArray

    @classmethod
    def start(cls, criteria: int, queries: int) -> Self:
        """Where the fit starts: gamma = 1, beta = 0, tau = 1, alpha = 0."""
        t = np.full(queries, np.log(np.expm1(1.0)))
        return cls(np.zeros(criteria), np.zeros(criteria), t, np.zeros(queries))

    @classmethod
    def of(cls, gamma: ArrayLike, beta: ArrayLike, tau: ArrayLike, alpha: ArrayLike) -> Self:
        """The parameters behind published estimates: the ridge puts u and v at mean zero."""
        logs, tau = np.log(np.asarray(gamma, dtype=np.float64)), np.asarray(tau, dtype=np.float64)
        v = np.asarray(beta, dtype=np.float64)
        t = tau + np.log(-np.expm1(-tau))
        return cls(logs - logs.mean(), v - v.mean(), t, np.asarray(alpha, dtype=np.float64))

    @property
    def gamma(self) -> FloatArray:
        """`(C,)`: discriminations, above 0 and summing to C."""
        capped = np.minimum(self.u, _HIGHEST_U)
        weight = np.exp(capped - capped.max())
        gamma: FloatArray = len(weight) * weight / weight.sum()
        return gamma

    @property
    def beta(self) -> FloatArray:
        """`(C,)`: difficulties in logits, with mean zero."""
        beta: FloatArray = self.v - self.v.mean()
        return beta

    @property
    def tau(self) -> FloatArray:
        """`(J,)`: slopes, above 0."""
        return np.maximum(self.t, 0.0) + np.log1p(np.exp(-np.abs(self.t)))


@dataclass(frozen=True)
class Moments:
    """Sums over a query's pages of the loss, its slope r and its curvature h in the logit, weighted by ability.

    `loss` is `(J,)`, the others `(J, C)`: r, r b, h, h b, h b^2.
    """

    loss: FloatArray
    r: FloatArray
    rb: FloatArray
    h: FloatArray
    hb: FloatArray
    hbb: FloatArray


@dataclass(frozen=True)
class Gradient:
    """Of the summed objective: `shared` `(2C,)` for (u, v), `query` `(J, 2)` for (t, alpha)."""

    shared: FloatArray
    query: FloatArray


@dataclass(frozen=True)
class Arrow:
    """The Hessian of the summed objective; all that is not here is zero.

    `shared` `(2C, 2C)` for (u, v); `query` `(J, 2, 2)` for (t, alpha); `cross` `(J, 2, 2C)` between the two.
    """

    shared: FloatArray
    query: FloatArray
    cross: FloatArray


class Block(NamedTuple):
    """What a block of J queries with P pages needs to make its moments; `starts` begins at 0."""

    starts: IntArray
    ability: FloatArray
    n: FloatArray
    passes: FloatArray
    tau: FloatArray
    alpha: FloatArray
    gamma: FloatArray
    beta: FloatArray


def moments(counts: Counts, at: Parameters, executor: Executor | None = None) -> Moments:
    """The moments of every query; with an executor, blocks of queries are worked on side by side."""
    tau, gamma, beta = at.tau, at.gamma, at.beta
    blocks = []
    for first in range(0, len(tau), _BLOCK):
        queries = slice(first, first + _BLOCK)
        starts = counts.starts[first : first + _BLOCK + 1]
        pages = slice(int(starts[0]), int(starts[-1]))
        data = (starts - starts[0], counts.ability[pages], counts.n[pages], counts.passes[pages])
        blocks.append(Block(*data, tau[queries], at.alpha[queries], gamma, beta))
    done = map(block_moments, blocks) if executor is None else executor.map(block_moments, blocks)
    return Moments(*(np.concatenate(part) for part in zip(*done, strict=True)))


def block_moments(block: Block) -> tuple[FloatArray, ...]:
    """The fields of `Moments` for one block of queries: a pure function of arrays, so any worker can have it."""
    starts, ability, n, passes, tau, alpha, gamma, beta = block
    sizes = np.diff(starts)
    theta = np.repeat(tau, sizes) * ability + np.repeat(alpha, sizes)
    logit = (theta[:, np.newaxis] - beta) * gamma
    small = np.exp(-np.abs(logit))
    p = np.where(logit >= 0, 1.0, small) / (1.0 + small)
    b = ability[:, np.newaxis]
    expected = n[:, np.newaxis] * p
    r = expected - passes
    h = expected * (1.0 - p)
    loss = n[:, np.newaxis] * (np.maximum(logit, 0.0) + np.log1p(small)) - passes * logit
    by_criterion = [np.add.reduceat(values, starts[:-1], axis=0) for values in (loss, r, r * b, h, h * b, h * b * b)]
    return by_criterion[0].sum(axis=1), *by_criterion[1:]


def regulariser(at: Parameters, verdicts: int) -> float:
    """The priors on tau and alpha and the item ridge, in mean units."""
    priors = ((at.tau - 1.0) ** 2).sum() / (2 * TAU_SD**2) + (at.alpha**2).sum() / (2 * ALPHA_SD**2)
    return float(priors / verdicts + ITEM_RIDGE / 2 * ((at.u**2).sum() + (at.v**2).sum()))


def objective(counts: Counts, at: Parameters, m: Moments | None = None) -> float:
    """The mean objective, exactly as method spec section 8.1 states it."""
    m = moments(counts, at) if m is None else m
    return float(m.loss.sum() / counts.verdicts) + regulariser(at, counts.verdicts)


def gradient(counts: Counts, at: Parameters, m: Moments | None = None) -> Gradient:
    """The gradient of the summed objective; divide `shared` by `counts.verdicts` for that of the mean."""
    m = moments(counts, at) if m is None else m
    gamma, tau = at.gamma, at.tau
    slope = sigmoid(at.t)
    shift = at.alpha[:, np.newaxis] - at.beta
    by_t = slope * ((m.rb * gamma).sum(axis=1) + (tau - 1.0) / TAU_SD**2)
    by_alpha = (m.r * gamma).sum(axis=1) + at.alpha / ALPHA_SD**2
    by_gamma = (tau[:, np.newaxis] * m.rb + shift * m.r).sum(axis=0)
    by_beta = -gamma * m.r.sum(axis=0)
    ridge = counts.verdicts * ITEM_RIDGE
    by_u = by_gamma @ _gamma_by_u(at) + ridge * at.u
    by_v = by_beta - by_beta.mean() + ridge * at.v
    return Gradient(np.concatenate([by_u, by_v]), np.stack([by_t, by_alpha], axis=1))


def hessian(counts: Counts, at: Parameters, m: Moments | None = None, *, expected: bool = False) -> Arrow:
    """The Hessian of the summed objective; with `expected`, the Fisher information and priors in its place.

    The Fisher form drops every second derivative that is multiplied by a residual. It is positive definite everywhere,
    the Hessian only near the minimum.
    """
    m = moments(counts, at) if m is None else m
    gamma, tau = at.gamma, at.tau
    slope = sigmoid(at.t)
    residual = 0.0 if expected else 1.0
    r, rb = residual * m.r, residual * m.rb
    shift = at.alpha[:, np.newaxis] - at.beta
    steep, step = tau[:, np.newaxis], slope[:, np.newaxis]
    h_depth = steep * m.hb + shift * m.h  # the sum over pages of h (theta - beta)
    h_depth_b = steep * m.hbb + shift * m.hb

    query = np.empty((len(tau), 2, 2))
    bend = slope * (1.0 - slope) * ((rb * gamma).sum(axis=1) + residual * (tau - 1.0) / TAU_SD**2)
    query[:, 0, 0] = slope**2 * ((m.hbb * gamma**2).sum(axis=1) + 1.0 / TAU_SD**2) + bend
    query[:, 0, 1] = query[:, 1, 0] = slope * (m.hb * gamma**2).sum(axis=1)
    query[:, 1, 1] = (m.h * gamma**2).sum(axis=1) + 1.0 / ALPHA_SD**2

    gamma_by_u = _gamma_by_u(at)
    beta_by_v = np.eye(len(gamma)) - 1.0 / len(gamma)
    by_gamma = np.stack([step * (gamma * h_depth_b + rb), gamma * h_depth + r], axis=1)
    by_beta = -(gamma**2) * np.stack([step * m.hb, m.h], axis=1)
    # einsum of two operands is numpy's own loop, so the sum's order does not hang on BLAS.
    cross = np.concatenate(
        [np.einsum("jac,ck->jak", by_gamma, gamma_by_u), np.einsum("jac,ck->jak", by_beta, beta_by_v)], axis=2
    )
    gamma_gamma = (steep * h_depth_b + shift * h_depth).sum(axis=0)
    gamma_beta = -(gamma * h_depth + r).sum(axis=0)
    beta_beta = gamma**2 * m.h.sum(axis=0)
    by_u_u = gamma_by_u.T @ (gamma_gamma[:, np.newaxis] * gamma_by_u)
    by_u_u += _gamma_by_u_u(at, (steep * rb + shift * r).sum(axis=0))
    by_u_v = gamma_by_u.T @ (gamma_beta[:, np.newaxis] * beta_by_v)
    by_v_v = beta_by_v.T @ (beta_beta[:, np.newaxis] * beta_by_v)
    shared = np.block([[by_u_u, by_u_v], [by_u_v.T, by_v_v]])
    shared += counts.verdicts * ITEM_RIDGE * np.eye(len(shared))
    return Arrow(shared, query, cross)


def _gamma_by_u(at: Parameters) -> FloatArray:
    gamma, free = at.gamma, at.u < _HIGHEST_U
    return (np.diag(gamma) - np.outer(gamma, gamma) / len(gamma)) * free


def _gamma_by_u_u(at: Parameters, by_gamma: FloatArray) -> FloatArray:
    """The second derivatives of gamma by u, each times the gradient by its gamma, summed."""
    gamma, free = at.gamma, at.u < _HIGHEST_U
    share = gamma / len(gamma)
    apart = np.eye(len(gamma)) - share  # rows: gamma; columns: u
    pull = by_gamma * gamma
    bent = apart.T @ (pull[:, np.newaxis] * apart) - pull.sum() * (np.diag(share) - np.outer(share, share))
    masked: FloatArray = bent * np.outer(free, free)
    return masked
