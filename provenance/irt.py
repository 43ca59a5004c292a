"""The 2PL calibration in tournament mode: counts from rubric placements, and the fit (method spec section 8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import polars as pl

from provenance import cholesky
from provenance.errors import DataError, FitError, Where
from provenance.ids import canonical
from provenance.irt_objective import Arrow, Counts, FloatArray, Gradient, Parameters, gradient, hessian, moments
from provenance.irt_objective import objective as mean_objective

CRITERIA = ("C1", "C2", "C3", "C4", "C5")

QUERY_TOLERANCE = 1e-9
"""Largest allowed gradient of the summed objective by a query's t or alpha."""
ITEM_TOLERANCE = 1e-11
"""Largest allowed gradient of the mean objective by u or v."""
_MAX_ITERATIONS = 200
_MAX_HALVINGS = 40
_LONGEST_T_STEP = 4.0


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
    _refuse(placements, ~pl.all_horizontal(pl.col(names).is_in([0, 1]).fill_null(value=False)), "a verdict is 0 or 1")
    _refuse(ability, ~pl.col("ability").is_finite().fill_null(value=False), "an ability must be finite")
    pair = ["query-id", "corpus-id"]
    _refuse(ability, pl.struct(pair).is_duplicated(), "a page has two abilities")
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


def _refuse(frame: pl.DataFrame, bad: pl.Expr, rule: str) -> None:
    rows = frame.select(bad.alias("bad"))["bad"].arg_true()
    if rows.len():
        row = int(rows[0])
        raise DataError(
            f"{rule} ({rows.len()} rows break this)", where=Where(row=row, value=frame.row(row, named=True))
        )


def fit(counts: Counts, executor: Executor | None = None) -> ItemFit:
    """Minimise the objective of method spec section 8.1 from its start, by Newton's method.

    A step solves the arrow system: each query's 2 x 2 block is eliminated, the Schur complement gives the step in the
    2C item parameters, and each query's step follows. Where the Hessian is not positive definite the Fisher
    information stands in. A step that does not lower the objective is halved.

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
            if lower <= value + 1e-14 * abs(value):  # near the minimum the fall is smaller than rounding
                break
            step = Parameters(step.u / 2, step.v / 2, step.t / 2, step.alpha / 2)
        else:
            break
        at, m, value = trial, found, lower
    worst = [counts.query_ids[j] for j in np.argsort(-by_query, kind="stable")[:10] if by_query[j] >= QUERY_TOLERANCE]
    raise FitError(
        f"the 2PL fit did not converge: after {iteration} iterations {int((by_query >= QUERY_TOLERANCE).sum())} queries "
        f"have a gradient of {QUERY_TOLERANCE:g} or more (the worst: {', '.join(worst) or 'none'}; "
        f"{by_query.max():.2e}), and the items' is {by_item:.2e}",
        remedy="look at these queries' rubric verdicts and abilities",
    )


def newton_step(exact: Arrow, expected: Arrow, slope: Gradient) -> Parameters:
    """What to take from the parameters: the solution of the arrow system for the gradient `slope`.

    A query whose exact block is not positive definite gets its expected one; if the Schur complement then is not, all
    of the system is the expected one. A query's t moves by at most 4: far out on the softplus a step means nothing.
    """
    corner, determinant = exact.query[:, 0, 0], _determinant(exact.query)
    sound = (corner > 0) & (determinant > 1e-10 * corner * exact.query[:, 1, 1])
    query = np.where(sound[:, np.newaxis, np.newaxis], exact.query, expected.query)
    cross = np.where(sound[:, np.newaxis, np.newaxis], exact.cross, expected.cross)
    try:
        shared, own = _eliminate(Arrow(exact.shared, query, cross), slope)
    except np.linalg.LinAlgError:
        shared, own = _eliminate(expected, slope)
    half = len(shared) // 2
    t = np.clip(own[:, 0], -_LONGEST_T_STEP, _LONGEST_T_STEP)
    return Parameters(shared[:half], shared[half:], t, own[:, 1])


def _eliminate(arrow: Arrow, slope: Gradient) -> tuple[FloatArray, FloatArray]:
    inverse = np.empty_like(arrow.query)
    inverse[:, 0, 0], inverse[:, 1, 1] = arrow.query[:, 1, 1], arrow.query[:, 0, 0]
    inverse[:, 0, 1] = inverse[:, 1, 0] = -arrow.query[:, 0, 1]
    inverse /= _determinant(arrow.query)[:, np.newaxis, np.newaxis]
    carried = np.einsum("jab,jbk->jak", inverse, arrow.cross)
    schur = arrow.shared - np.einsum("jak,jal->kl", arrow.cross, carried)
    shared = cholesky.Factor(schur).solve(slope.shared - np.einsum("jak,ja->k", carried, slope.query))
    own = np.einsum("jab,jb->ja", inverse, slope.query) - np.einsum("jak,k->ja", carried, shared)
    return shared, own


def _determinant(block: FloatArray) -> FloatArray:
    determinant: FloatArray = block[:, 0, 0] * block[:, 1, 1] - block[:, 0, 1] ** 2
    return determinant
