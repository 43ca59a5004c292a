"""The two fits at ViDoRe v3's size, each beside what people use today, on the same data.

Seconds are the processor's, of one thread: other work on the machine does not count.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import choix
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.report import Line
from provenance import bradley_terry, irt
from provenance.irt_objective import Counts, Parameters, gradient, moments, objective

QUERIES, PAGES, CRITERIA = 14_514, 150, 5
CLOSE = 1e-6  # of the optimum's mean objective
PATIENCE = 100  # times our own seconds: then L-BFGS-B is stopped
SAMPLE = 200  # queries that choix is run on
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
GAMMA, BETA = np.array([1.3, 1.15, 1.0, 0.9, 0.65]), np.array([-2.2, -1.0, 0.1, 1.1, 2.0])


def fits(share: float) -> list[Line]:
    """Both fits at a share of the queries."""
    queries = max(1, round(QUERIES * share))
    return [two_pl(queries, share), bradley(queries, share)]


def two_pl(queries: int, share: float) -> Line:
    """Our 2PL beside scipy's L-BFGS-B on the same objective: once in plain numpy, once with our own evaluation."""
    counts = made_up_counts(queries)
    start = time.process_time()
    fit = irt.fit(counts)
    ours = time.process_time() - start
    steepest = max(fit.item_gradient, fit.query_gradient / counts.verdicts)
    said = []
    for name, function in (("in plain numpy", plain(counts)), ("with our evaluation", our_own(counts))):
        seconds, evaluations, gap = lbfgs(function, queries, fit.objective, PATIENCE * ours + 1)
        reached = f"within {CLOSE:g}" if gap <= CLOSE else f"still {gap:.1e} above it"
        said.append(f"{name} {reached} after {seconds:,.1f} s, {evaluations} evaluations: {seconds / ours:,.0f} times")
    beside = (
        f"gradient {steepest:.0e} in {fit.iterations} steps; scipy L-BFGS-B on the same objective and counts, "
        f"{' and '.join(said)} as long"
    )
    return Line("2PL fit", share, ours, counts.placements, "placements", beside=beside)


def made_up_counts(queries: int) -> Counts:
    """1,000 placements a query over 150 pages, verdicts drawn from the model."""
    random = np.random.default_rng([17, queries])
    ability = random.normal(0, 1.5, (queries, PAGES))
    ability -= ability.mean(axis=1, keepdims=True)
    placed = np.where(np.arange(PAGES) < PAGES * 2 // 3, 7, 6)  # 100 windows of 10
    n = random.permuted(np.broadcast_to(placed, ability.shape), axis=1)
    tau, alpha = np.exp(random.normal(0, 0.3, (queries, 1))), random.normal(0, 1.5, (queries, 1))
    chance = 1 / (1 + np.exp(-GAMMA * ((tau * ability + alpha)[..., np.newaxis] - BETA)))
    passes = random.binomial(n[..., np.newaxis], chance).reshape(-1, CRITERIA).astype(np.float64)
    return Counts(
        query_ids=tuple(f"query-test-{query}" for query in range(queries)),
        corpus_ids=tuple(f"corpus-test-{page}" for page in range(PAGES)) * queries,
        starts=np.arange(0, ability.size + 1, PAGES),
        ability=ability.ravel(),
        n=n.ravel().astype(np.float64),
        passes=passes,
        placements=int(n.sum()),
        skipped=0,
    )


class _Enough(Exception):  # noqa: N818 - it is no error
    """The optimum is close, or patience is over."""


def lbfgs(function: Function, queries: int, optimum: float, limit: float) -> tuple[float, int, float]:
    """Seconds, evaluations, and how far above the optimum L-BFGS-B was when it got close or time was up."""
    first = Parameters.start(CRITERIA, queries)
    began = time.process_time()
    best, evaluations = np.inf, 0

    def watched(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, evaluations
        value, slope = function(x)
        best, evaluations = min(best, value), evaluations + 1
        if best - optimum <= CLOSE or time.process_time() - began > limit:
            raise _Enough
        return value, slope

    # scipy's own settings, but that it does not stop by itself.
    options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0}
    start = np.concatenate([first.u, first.v, first.t, first.alpha])
    with contextlib.suppress(_Enough):
        minimize(watched, start, jac=True, method="L-BFGS-B", options=options)
    return time.process_time() - began, evaluations, best - optimum


def our_own(counts: Counts) -> Function:
    """The mean objective and its gradient as our fit evaluates them: block by block, in a core's cache."""
    queries = len(counts.query_ids)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        at = Parameters(x[:CRITERIA], x[CRITERIA : 2 * CRITERIA], x[2 * CRITERIA : -queries], x[-queries:])
        m = moments(counts, at)
        slope = gradient(counts, at, m)
        every = np.concatenate([slope.shared, slope.query[:, 0], slope.query[:, 1]])
        return objective(counts, at, m), every / counts.verdicts

    return function


def plain(counts: Counts) -> Function:
    """The same as one writes it down: whole arrays, from method spec section 8.1."""
    queries, verdicts = len(counts.query_ids), counts.verdicts
    of = np.repeat(np.arange(queries), np.diff(counts.starts))
    b, n, passes = counts.ability, counts.n[:, np.newaxis], counts.passes

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        u, v, t, alpha = x[:CRITERIA], x[CRITERIA : 2 * CRITERIA], x[2 * CRITERIA : -queries], x[-queries:]
        weight = np.exp(np.minimum(u, 10.0))
        gamma, beta, tau = CRITERIA * weight / weight.sum(), v - v.mean(), np.logaddexp(0.0, t)
        depth = (tau[of] * b + alpha[of])[:, np.newaxis] - beta
        logit = gamma * depth
        loss = (n * np.logaddexp(0.0, logit) - passes * logit).sum()
        priors = ((tau - 1.0) ** 2).sum() / 2 + (alpha**2).sum() / 8
        ridge = 1e-4 / 2 * ((u**2).sum() + (v**2).sum())
        r = n * expit(logit) - passes
        by_theta = (r * gamma).sum(axis=1)
        by_gamma, by_beta = (r * depth).sum(axis=0), -gamma * r.sum(axis=0)
        by_u = gamma * (by_gamma - (by_gamma * gamma).sum() / CRITERIA)
        by_v = by_beta - by_beta.mean()
        by_t = (np.bincount(of, by_theta * b, queries) + tau - 1.0) * expit(t)
        by_alpha = np.bincount(of, by_theta, queries) + alpha / 4
        slope = np.concatenate([by_u, by_v, by_t, by_alpha]) / verdicts
        slope[: 2 * CRITERIA] += 1e-4 * x[: 2 * CRITERIA]
        return float((loss + priors) / verdicts + ridge), slope

    return function


def bradley(queries: int, share: float) -> Line:
    """Our Bradley-Terry from windows; on a sample, its fit alone beside choix on the same matrix, in turn."""
    ours = fitted = summing = theirs = furthest = 0.0
    sampled = min(SAMPLE, queries)
    for query in range(queries):
        page, score, starts = made_up_windows(query)
        start = time.process_time()
        pairs = bradley_terry.comparisons(page, score, starts, PAGES)
        summed = time.process_time()
        abilities = bradley_terry.abilities(pairs)
        done = time.process_time()
        ours += done - start
        if abilities is None:
            raise SystemExit(f"query {query} did not converge")
        if query >= sampled:
            continue
        fitted += done - summed
        summing += summed - start
        start = time.process_time()
        wins = pairs.wins()
        found = choix.ilsr_pairwise_dense(wins)
        theirs += time.process_time() - start
        # Without a ridge both maximise the likelihood of the same matrix.
        same = bradley_terry.abilities(pairs, ridge=1e-13)
        furthest = max(furthest, float(np.abs(found - same).max()))
    mine, choixs, every = 1e3 * fitted / sampled, 1e3 * theirs / sampled, theirs / sampled * queries
    whole = (theirs + summing) / (fitted + summing)
    beside = (
        f"from the windows; the fit alone {mine:.2f} ms a query on a sample of {sampled}, in turn with "
        f"choix.ilsr_pairwise_dense on the same matrices, {choixs:.2f} ms ({every:,.0f} s for all, extrapolated): "
        f"{theirs / fitted:.1f} times as long, {whole:.1f} times with the summing of "
        f"comparisons that both need; without ridge abilities differ by at most {furthest:.0e}"
    )
    return Line("Bradley-Terry", share, ours, queries, "queries", beside=beside)


def made_up_windows(query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The 216 windows of 10 of one query: pages, scores, starts."""
    random = np.random.default_rng([23, query])
    truth = random.normal(0, 1.5, PAGES)
    balanced = np.concatenate([random.permutation(PAGES) for _ in range(4)]).reshape(-1, 10)[:53]
    order = np.argsort(-truth)
    near = order[random.integers(0, PAGES - 9, 83)[:, np.newaxis] + np.arange(10)]
    windows = np.concatenate([balanced, balanced[:, ::-1], near[:27], near[:27, ::-1], near[27:]])
    score = np.clip(truth[windows] + random.normal(0, 0.8, windows.shape), -5, 5).round(1)
    return windows.ravel(), score.ravel(), np.arange(0, windows.size + 1, 10)
