"""Bradley-Terry abilities from the scores of listwise windows (method spec section 6).

A window of w scored pages is w(w-1)/2 comparisons of weight 2/w, each with the label sigmoid(score gap). The
objective depends on a query's comparisons only through the summed weight W and weighted label Y of each
pair of pages, so these are what is kept: `Pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from provenance import cholesky
from provenance.checks import refuse, refuse_repeats
from provenance.errors import DataError, FitError, Where
from provenance.gain import sigmoid
from provenance.ids import canonical

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RIDGE = 1e-4
LABEL_RANGE = (0.01, 0.99)
_MAX_ITERATIONS = 50
_MAX_HALVINGS = 40
_ROUNDING = 1e-13  # of an objective of order 1; near the minimum its fall is smaller than that
_LARGEST_EXPONENT = 700.0  # exp of it is still finite
# Logits. A Hessian that is off by a short step shrinks the error about a hundredfold a step, a fresh one squares it;
# either way what is left after a last step is below 1e-10.
_SHORT_STEP = 1e-2
_LAST_STEP = 1e-8


@dataclass(frozen=True)
class Pairs:
    """What is known of one query: for each compared pair of pages its weight and its weighted label.

    Pairs are ordered by (`first`, `second`), `first < second`, each pair once.
    """

    pages: int
    """How many pages the query has; pages are numbered from 0."""
    first: IntArray
    second: IntArray
    weight: FloatArray
    """Sum of the comparisons' weights, above 0."""
    label: FloatArray
    """Sum of weight times label, the label being the chance that `first` beats `second`."""

    @cached_property
    def total(self) -> float:
        """The weight of all comparisons."""
        return max(float(self.weight.sum()), 1e-9)

    @cached_property
    def runs(self) -> IntArray:
        """Where a run of pairs with the same `first` starts."""
        return _starts(self.first)

    def wins(self) -> FloatArray:
        """`(pages, pages)`: the weight with which the row's page beats the column's."""
        matrix = np.zeros((self.pages, self.pages))
        matrix[self.first, self.second] = self.label
        matrix[self.second, self.first] = self.weight - self.label
        return matrix


def aggregate(pages: int, winner: ArrayLike, loser: ArrayLike, weight: ArrayLike, label: ArrayLike) -> Pairs:
    """Sum comparisons by pair; `label` is the chance that `winner` beats `loser`.

    Comparisons are added in the order given, so the result is bit-exact.

    Raises:
        DataError: a comparison names an unknown page or a page twice, a weight is not above 0, a label not in [0, 1].
    """
    i, j = np.asarray(winner, dtype=np.int64), np.asarray(loser, dtype=np.int64)
    w, y = np.asarray(weight, dtype=np.float64), np.asarray(label, dtype=np.float64)
    if not i.shape == j.shape == w.shape == y.shape or i.ndim != 1:
        raise DataError(f"comparisons differ in length: {i.shape}, {j.shape}, {w.shape}, {y.shape}")
    checks = [
        ((i >= 0) & (i < pages) & (j >= 0) & (j < pages), "a comparison names an unknown page"),
        (i != j, "a page is compared with itself"),
        ((w > 0) & np.isfinite(w), "a comparison's weight must be above 0"),
        ((y >= 0) & (y <= 1), "a comparison's label must lie in [0, 1]"),
    ]
    for good, rule in checks:
        if not good.all():
            row = int(np.argmin(good))
            raise DataError(rule, where=Where(row=row, value=(int(i[row]), int(j[row]), float(w[row]), float(y[row]))))
    key = np.minimum(i, j) * pages + np.maximum(i, j)
    weights = _sums(key, w, pages * pages)
    labels = _sums(key, w * np.where(i < j, y, 1.0 - y), pages * pages)
    seen = np.flatnonzero(weights)
    return Pairs(pages, seen // max(pages, 1), seen % max(pages, 1), weights[seen], labels[seen])


def comparisons(page: IntArray, score: FloatArray, starts: IntArray, pages: int) -> Pairs:
    """The comparisons of one query's windows, summed by pair.

    Windows of one width are taken together, narrow ones first; within a width in the order given.

    Args:
        page: `(placements,)`, the page's number, windows one after the other.
        score: `(placements,)`, its score in that window, in logits.
        starts: `(windows + 1,)`, where each window starts, and the end.
        pages: how many pages the query has.

    Raises:
        DataError: a window shows a page twice or names an unknown page.
    """
    widths = np.diff(starts)
    winners, losers, weights, labels = [], [], [], []
    for width in np.unique(widths[widths > 1]).tolist():
        rows = starts[:-1][widths == width, np.newaxis] + np.arange(width)
        above, below = np.triu_indices(width, k=1)
        shown, scored = page[rows], score[rows]
        label = np.clip(sigmoid(scored[:, above] - scored[:, below]).ravel(), *LABEL_RANGE)
        winners.append(shown[:, above].ravel())
        losers.append(shown[:, below].ravel())
        weights.append(np.full(label.size, 2.0 / width))
        labels.append(label)
    if not winners:
        return aggregate(pages, [], [], [], [])
    return aggregate(pages, *(np.concatenate(part) for part in (winners, losers, weights, labels)))


def objective(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> float:
    """Weighted mean cross entropy plus the ridge; theta in logits, `(pages,)`.

    The data term depends on differences only, so theta_raw may stand for theta.
    """
    return _evaluate(theta, pairs, ridge)[0]


def gradient(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages,)`: the gradient of `objective` with respect to theta_raw."""
    return _evaluate(theta, pairs, ridge)[1]


def hessian(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages, pages)`: the lower triangle of the Hessian of `objective`; above the diagonal are zeros."""
    return _lower(_evaluate(theta, pairs, ridge)[2], pairs, ridge)


def standard_errors(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages,)`: 1 / sqrt(information of a page's own comparisons + ridge), the ridge unscaled here."""
    own = _spread(_evaluate(theta, pairs, ridge)[2], pairs, 1)
    return 1.0 / np.sqrt(own + ridge)


def _evaluate(theta: FloatArray, pairs: Pairs, ridge: float) -> tuple[float, FloatArray, FloatArray]:
    """Objective, gradient, and each pair's information weight * p * (1 - p): they share one exponential."""
    gap = theta.take(pairs.first) - theta.take(pairs.second)
    odds = np.exp(np.minimum(-gap, _LARGEST_EXPONENT))
    p = 1.0 / (1.0 + odds)
    lost = np.maximum(np.log1p(odds), -gap)  # -log p, right also where the exponent was cut
    loss = ((pairs.weight - pairs.label) * gap + pairs.weight * lost).sum()
    passed = pairs.weight * p
    value = float(loss / pairs.total + ridge / 2 * (theta * theta).sum())
    slope = _spread(passed - pairs.label, pairs, -1) / pairs.total + ridge * theta
    return value, slope, passed * (1.0 - p)


def _lower(information: FloatArray, pairs: Pairs, ridge: float) -> FloatArray:
    matrix = np.zeros((pairs.pages, pairs.pages))
    matrix.ravel()[pairs.second * pairs.pages + pairs.first] = -information / pairs.total
    np.fill_diagonal(matrix, _spread(information, pairs, 1) / pairs.total + ridge)
    return matrix


def _spread(values: FloatArray, pairs: Pairs, sign: int) -> FloatArray:
    """Each pair's value added to its first page, and added (or, with sign -1, taken) from its second."""
    total = sign * _sums(pairs.second, values, pairs.pages)
    if values.size:  # `first` is sorted, so its sums are those of runs
        total[pairs.first[pairs.runs]] += np.add.reduceat(values, pairs.runs)
    return total


def _sums(key: IntArray, values: FloatArray, size: int) -> FloatArray:
    # The stubs do not know that weights make the sums float64.
    return np.bincount(key, values, size).astype(np.float64, copy=False)


def _start(pairs: Pairs) -> FloatArray:
    """A page's mean label, in logits, over its comparisons: right but for the strength of its opponents."""
    label = np.clip(pairs.label / pairs.weight, *LABEL_RANGE)
    seen = _spread(pairs.weight, pairs, 1)
    mean = _spread(pairs.weight * np.log(label / (1.0 - label)), pairs, -1) / np.where(seen > 0, seen, 1.0)
    start: FloatArray = mean - mean.mean()
    return start


def abilities(pairs: Pairs, ridge: float = RIDGE) -> FloatArray | None:
    """`(pages,)`: the abilities in logits that minimise `objective`, with mean zero; None without convergence.

    Newton's method. A step that does not lower the objective is halved, and once the steps are short the last
    Hessian is kept. The objective is strictly convex, so the minimum is one point; it is met to 1e-10 or better.
    Bit-exact for any number of threads.
    """
    theta = _start(pairs)
    value, slope, information = _evaluate(theta, pairs, ridge)
    factor = None
    for _ in range(_MAX_ITERATIONS):
        if factor is None:
            factor = cholesky.Factor(_lower(information, pairs, ridge))
        step = factor.solve(slope)
        longest = np.abs(step).max()
        if longest < _LAST_STEP:
            theta = theta - step
            centred: FloatArray = theta - theta.mean()
            return centred
        for halvings in range(_MAX_HALVINGS):  # noqa: B007 - read after the loop
            trial = _evaluate(theta - step, pairs, ridge)
            if trial[0] <= value + _ROUNDING:
                break
            step /= 2
        else:
            return None
        theta = theta - step
        value, slope, information = trial
        if halvings > 0 or longest > _SHORT_STEP:
            factor = None
    return None


def fit(scores: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """Abilities of every page of every query, each query by itself.

    A query with fewer than two scored pages in every window has no comparison and so no abilities: it is absent from
    the result, and the caller decides what that means. A page that was shown but never scored has the ability that the
    ridge gives it: zero before centring.

    Args:
        scores: the valid windows: `query-id, call_index, position, corpus-id, score`; `position` is 1-based, the order
            in the prompt; `score` in logits. Row order does not matter.
        shown: `query-id, corpus-id`: every page shown in any window of the query, valid or not, in order of first
            appearance.

    Returns:
        `query-id, corpus-id, ability`: queries in canonical order, pages as in `shown`; abilities in logits, summing to
        zero within a query. Bit-exact for any row order of `scores` and any number of threads.

    Raises:
        DataError: a page is listed twice, was never shown, or appears twice in a window; a score is not finite.
        FitError: queries whose fit did not converge, by id.
    """
    pages = _number_pages(shown)
    placed = _place(scores, pages)
    ids = pages["query-id"].unique(maintain_order=True).to_list()
    page_starts = np.append(_starts(pages["query"].to_numpy()), pages.height)
    query, page = placed["query"].to_numpy(), placed["page"].to_numpy()
    score = placed["score"].to_numpy()
    window_starts = np.append(_starts(query, placed["call_index"].to_numpy()), placed.height)
    first_window = np.searchsorted(query[window_starts[:-1]], np.arange(len(ids) + 1))
    ability = np.full(pages.height, np.nan)
    failed = []
    for q, query_id in enumerate(ids):
        windows = window_starts[first_window[q] : first_window[q + 1] + 1]
        here = slice(int(page_starts[q]), int(page_starts[q + 1]))
        pairs = comparisons(page, score, windows, here.stop - here.start)
        if not pairs.weight.size:
            continue
        found = abilities(pairs)
        if found is None:
            failed.append(query_id)
        else:
            ability[here] = found
    if failed:
        raise FitError(
            f"Bradley-Terry did not converge for {len(failed)} queries: {', '.join(failed[:10])}",
            remedy="look at these queries' scores: gaps of hundreds of logits, or a broken answer decoder",
        )
    return pages.select("query-id", "corpus-id", ability=pl.Series(ability)).filter(pl.col("ability").is_not_nan())


def _number_pages(shown: pl.DataFrame) -> pl.DataFrame:
    refuse_repeats(shown, ["query-id", "corpus-id"], column="corpus-id", file=None)
    pages = canonical(shown.select("query-id", "corpus-id"))
    return pages.with_columns(
        query=pl.col("query-id").rle_id().cast(pl.Int64),
        page=pl.int_range(pl.len(), dtype=pl.Int64).over("query-id"),
    )


def _place(scores: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    window = ["query-id", "call_index"]
    placed = scores.select(*window, "position", "corpus-id", pl.col("score").cast(pl.Float64))
    placed = placed.join(pages, on=["query-id", "corpus-id"], how="left", maintain_order="left")
    for bad, what, column in (
        (~pl.col("score").is_finite().fill_null(value=False), "a score is not finite", "score"),
        (pl.col("page").is_null(), "a scored page was never shown for this query", "corpus-id"),
        (pl.struct(*window, "corpus-id").is_duplicated(), "a window scores a page twice", "corpus-id"),
        (pl.struct(*window, "position").is_duplicated(), "a window has two pages at one position", "position"),
    ):
        remedy = "decode the tournament answers again: only a complete answer has scores."
        refuse(placed, bad, what, column=column, file=None, remedy=remedy, context=[*window, "position"])
    return placed.sort("query", "call_index", "position")


def _starts(*keys: NDArray[np.int64]) -> IntArray:
    """Where a run of equal keys starts."""
    if not keys[0].size:
        return np.zeros(0, dtype=np.int64)
    changed = np.zeros(keys[0].size, dtype=np.bool_)
    changed[0] = True
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changed)
