"""The 2PL calibration in tournament mode: counts from rubric placements, and the fit (method spec section 8.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from provenance import cholesky
from provenance.checks import refuse, refuse_repeats
from provenance.errors import DataError, FitError
from provenance.ids import canonical
from provenance.irt_objective import Arrow, Counts, FloatArray, Gradient, Parameters, gradient, hessian, moments
from provenance.irt_objective import objective as mean_objective

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

CRITERIA = ("C1", "C2", "C3", "C4", "C5")

QUERY_TOLERANCE = 1e-9
"""Largest allowed gradient of the summed objective by a query's t or alpha."""
ITEM_TOLERANCE = 1e-11
"""Largest allowed gradient of the mean objective by u or v."""
_MAX_ITERATIONS = 200
_MAX_HALVINGS = 40
_ROUNDING = 1e-14  # of an objective of order 1; near the minimum its fall is smaller than that
_LONGEST_STEP = 2.0
_SOUND = 0.1  # least share of the expected information that the Hessian must keep


_DECODE = "decode the rubric answers again: only a complete answer has verdicts."
_ABILITY = "fit the abilities again."


@dataclass(frozen=True)
class ItemFit:
    """A converged fit: C items, J queries in canonical order."""

    gamma: FloatArray
    beta: FloatArray
    u: FloatArray
    v: FloatArray
    query_ids: tuple[str, ...]
    tau: FloatArray
    alpha: FloatArray
    objective: float
    """The mean objective at the minimum."""
    iterations: int
    query_gradient: float
    """Largest absolute gradient of the summed objective by a query's t or alpha."""
    item_gradient: float
    """Largest absolute gradient of the mean objective by u or v."""
    placements: int
    """Placements the fit used."""
    skipped: int
    """Placements whose page has no ability."""

    def queries(self) -> pl.DataFrame:
        """`query-id, tau, alpha`, in canonical order."""
        return pl.DataFrame({"query-id": list(self.query_ids), "tau": self.tau, "alpha": self.alpha})


def count(placements: pl.DataFrame, ability: pl.DataFrame, criteria: Sequence[str] = CRITERIA) -> Counts:
    """Placements and passes of each page that has an ability, in queries with at least one such placement.

    Query ids must be unique over everything that is fitted together: put the domain before them
    (`<domain>||<query-id>`) where domains number their queries alike.

    Args:
        placements: `query-id, corpus-id` and one column a criterion holding 0 or 1; a row for each page of each valid
            rubric window. Row order does not matter.
        ability: `query-id, corpus-id, ability`, one row a page.
        criteria: the criteria's columns, lenient to strict.

    Returns:
        Queries in canonical order, a query's pages as in `ability`. Placements whose page has no ability are skipped
        and counted in `skipped`; a query without any counted placement is absent.

    Raises:
        DataError: a verdict is not 0 or 1, an ability is not finite or a page has two, or no placement can be counted.
    """
    names = list(criteria)
    pair = ["query-id", "corpus-id"]
    for name in names:
        good = pl.col(name).is_in([0, 1]).fill_null(value=False)
        refuse(placements, ~good, "a verdict is not 0 or 1", column=name, file=None, remedy=_DECODE, context=pair)
    finite = pl.col("ability").is_finite().fill_null(value=False)
    refuse(ability, ~finite, "an ability is not finite", column="ability", file=None, remedy=_ABILITY, context=pair)
    refuse_repeats(ability, pair, column="ability", file=None)
    judged = placements.group_by(pair).agg(pl.len().alias("n"), pl.col(names).cast(pl.Int64).sum())
    pages = canonical(ability.select(*pair, "ability")).join(judged, on=pair, how="left", maintain_order="left")
    # A page without a row of its own was placed 0 times and passed 0 times: these are counts, not values made up.
    pages = pages.with_columns(pl.col("n", *names).fill_null(0)).filter(pl.col("n").sum().over("query-id") > 0)
    if pages.is_empty():
        raise DataError(
            "no rubric placement is of a page with an ability, so there is nothing to fit",
            remedy="check that rubric and tournament answers are of the same queries and pages",
        )
    queries = pages.group_by("query-id", maintain_order=True).agg(pl.len())
    counted = int(pages["n"].sum())
    return Counts(
        query_ids=tuple(queries["query-id"]),
        corpus_ids=tuple(pages["corpus-id"]),
        starts=np.concatenate([[0], np.cumsum(queries["len"].to_numpy(), dtype=np.int64)]),
        ability=pages["ability"].cast(pl.Float64).to_numpy(),
        n=pages["n"].cast(pl.Float64).to_numpy(),
        passes=np.ascontiguousarray(pages.select(pl.col(names).cast(pl.Float64)).to_numpy()),
        placements=counted,
        skipped=placements.height - counted,
    )


def fit(counts: Counts, executor: Executor | None = None) -> ItemFit:
    """Minimise the objective of method spec section 8.1 from its start, by Newton's method.

    A step solves the arrow system: each query's 2 x 2 block is eliminated, the Schur complement gives the step in the
    2C item parameters, and each query's step follows (`newton_step`). A step that does not lower the objective is
    halved. Real data take about ten steps. A query whose verdicts fall as ability rises has its best tau at 0, which
    softplus never meets: its tau shrinks by a factor e a step, until its gradient is small enough.

    Args:
        counts: what `count` gives.
        executor: works on blocks of queries side by side; the result has the same bits with any executor or none, and
            for any number of BLAS threads.

    Raises:
        FitError: the gradients did not fall below `QUERY_TOLERANCE` and `ITEM_TOLERANCE`; names the queries.
    """
    at = Parameters.start(counts.passes.shape[1], len(counts.query_ids))
    m = moments(counts, at, executor)
    value = mean_objective(counts, at, m)
    for iteration in range(_MAX_ITERATIONS + 1):
        slope = gradient(counts, at, m)
        by_query = np.abs(slope.query).max(axis=1)
        by_item = float(np.abs(slope.shared).max()) / counts.verdicts
        if by_query.max() < QUERY_TOLERANCE and by_item < ITEM_TOLERANCE:
            return ItemFit(
                gamma=at.gamma,
                beta=at.beta,
                u=at.u,
                v=at.v,
                query_ids=counts.query_ids,
                tau=at.tau,
                alpha=at.alpha,
                objective=value,
                iterations=iteration,
                query_gradient=float(by_query.max()),
                item_gradient=by_item,
                placements=counts.placements,
                skipped=counts.skipped,
            )
        step = newton_step(hessian(counts, at, m), hessian(counts, at, m, expected=True), slope)
        for _ in range(_MAX_HALVINGS):
            trial = Parameters(at.u - step.u, at.v - step.v, at.t - step.t, at.alpha - step.alpha)
            found = moments(counts, trial, executor)
            lower = mean_objective(counts, trial, found)
            if lower <= value + _ROUNDING:
                break
            step = Parameters(step.u / 2, step.v / 2, step.t / 2, step.alpha / 2)
        else:
            break
        at, m, value = trial, found, lower
    far = [counts.query_ids[j] for j in np.argsort(-by_query, kind="stable") if by_query[j] >= QUERY_TOLERANCE]
    raise FitError(
        f"the 2PL fit did not converge in {iteration} iterations: {len(far)} queries have a gradient of "
        f"{QUERY_TOLERANCE:g} or more, the largest {by_query.max():.2e} (the worst: {', '.join(far[:10]) or 'none'}); "
        f"the items' gradient is {by_item:.2e} (allowed: {ITEM_TOLERANCE:g})",
        remedy="look at these queries' rubric verdicts and abilities",
    )


def newton_step(exact: Arrow, expected: Arrow, slope: Gradient) -> Parameters:
    """What to take from the parameters: the solution of the arrow system for the gradient `slope`.

    A query whose exact block is not positive definite, or nearly so, gets its expected one. If the Schur complement
    then is not, all of the system is the expected one. Where t or alpha by itself would move by more than
    `_LONGEST_STEP` its curvature is raised: a query far from its place must not hold up the line search of all.
    What is solved is thus always positive definite, so the step leads downhill.
    """
    sound = _determinant(exact.query) > _SOUND * _determinant(expected.query)
    sound &= exact.query[:, 0, 0] > _SOUND * expected.query[:, 0, 0]
    query = np.where(sound[:, np.newaxis, np.newaxis], exact.query, expected.query)
    cross = np.where(sound[:, np.newaxis, np.newaxis], exact.cross, expected.cross)
    try:
        shared, own = _eliminate(Arrow(exact.shared, query, cross), slope)
    except np.linalg.LinAlgError:
        shared, own = _eliminate(expected, slope)
    half = len(shared) // 2
    return Parameters(shared[:half], shared[half:], own[:, 0], own[:, 1])


def _eliminate(arrow: Arrow, slope: Gradient) -> tuple[FloatArray, FloatArray]:
    query = arrow.query.copy()
    for k in range(2):
        query[:, k, k] = np.maximum(query[:, k, k], np.abs(slope.query[:, k]) / _LONGEST_STEP)
    inverse = np.empty_like(query)
    inverse[:, 0, 0], inverse[:, 1, 1] = query[:, 1, 1], query[:, 0, 0]
    inverse[:, 0, 1] = inverse[:, 1, 0] = -query[:, 0, 1]
    inverse /= _determinant(query)[:, np.newaxis, np.newaxis]
    carried = np.einsum("jab,jbk->jak", inverse, arrow.cross)
    schur = arrow.shared - np.einsum("jak,jal->kl", arrow.cross, carried)
    with cholesky.one_thread():
        shared = cholesky.Factor(schur).solve(slope.shared - np.einsum("jak,ja->k", carried, slope.query))
    own = np.einsum("jab,jb->ja", inverse, slope.query) - np.einsum("jak,k->ja", carried, shared)
    return shared, own


def _determinant(block: FloatArray) -> FloatArray:
    determinant: FloatArray = block[:, 0, 0] * block[:, 1, 1] - block[:, 0, 1] ** 2
    return determinant
