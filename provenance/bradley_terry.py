"""Bradley-Terry abilities from the scores of listwise windows (method spec section 6).

A window of w scored pages is w(w-1)/2 comparisons of weight 2/w, each with the label sigmoid(score gap). The
objective depends on a query's comparisons only through the summed weight W and weighted label Y of each
pair of pages, so these are what is kept: `Pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from provenance import cholesky
from provenance.checks import refuse, refuse_repeats
from provenance.errors import DataError, FitError, Where
from provenance.ids import canonical

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RIDGE = 1e-4
LABEL_RANGE = (0.01, 0.99)
_LARGEST_GAP = float(np.log(99.0))  # logits: the gap whose label is 0.99
_MAX_ITERATIONS = 50
_MAX_HALVINGS = 40
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
    number = _first_number(pages)[np.minimum(i, j)] + np.maximum(i, j)
    first, second = _upper(pages)
    weights = _sums(number, w, first.size)
    labels = _sums(number, w * np.where(i < j, y, 1.0 - y), first.size)
    seen = np.flatnonzero(weights > 0)
    return Pairs(pages, first[seen], second[seen], weights[seen], labels[seen])


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
    first, second = _upper(pages)
    weights, labels = np.zeros(first.size), np.zeros(first.size)
    for width in np.unique(widths[widths > 1]).tolist():
        begin = starts[:-1][widths == width, np.newaxis]
        rows = begin + page.take(begin + np.arange(width)).argsort(axis=1)
        shown, scored = page.take(rows), score.take(rows)
        _refuse_windows(shown, pages)
        low, high = _upper(width)
        gap = scored.take(high, axis=1) - scored.take(low, axis=1)
        np.clip(gap, -_LARGEST_GAP, _LARGEST_GAP, out=gap)  # as clipping the label, and no exponential overflows
        label = 1.0 / (1.0 + np.exp(gap, out=gap))
        number = (_first_number(pages)[shown].take(low, axis=1) + shown.take(high, axis=1)).ravel()
        weights += 2.0 / width * np.bincount(number, minlength=first.size)
        labels += 2.0 / width * _sums(number, label.ravel(), first.size)
    seen = np.flatnonzero(weights > 0)
    return Pairs(pages, first[seen], second[seen], weights[seen], labels[seen])


def _refuse_windows(shown: IntArray, pages: int) -> None:
    """`shown`: `(windows, width)`, the pages of each window in ascending order."""
    for bad, what in (
        (shown[:, 1:] == shown[:, :-1], "a window shows a page twice"),
        ((shown < 0) | (shown >= pages), "a window shows an unknown page"),
    ):
        if bad.any():
            raise DataError(what, where=Where(value=shown[int(bad.any(axis=1).argmax())].tolist()))


def objective(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> float:
    """Weighted mean cross entropy plus the ridge; theta in logits, `(pages,)`.

    The data term depends on differences only, so theta_raw may stand for theta.
    """
    gap = theta.take(pairs.first) - theta.take(pairs.second)
    loss = ((pairs.weight - pairs.label) * gap + pairs.weight * np.logaddexp(0.0, -gap)).sum()
    return float(loss / pairs.total + ridge / 2 * (theta * theta).sum())


def gradient(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages,)`: the gradient of `objective` with respect to theta_raw."""
    return _slope(theta, pairs, ridge)[0]


def hessian(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages, pages)`: the lower triangle of the Hessian of `objective`; above the diagonal are zeros."""
    return _Curvature(pairs, ridge).matrix(_slope(theta, pairs, ridge)[1])


def standard_errors(theta: FloatArray, pairs: Pairs, ridge: float = RIDGE) -> FloatArray:
    """`(pages,)`: 1 / sqrt(information of a page's own comparisons + ridge), the ridge unscaled here."""
    own = _spread(_slope(theta, pairs, ridge)[1], pairs, 1)
    return 1.0 / np.sqrt(own + ridge)


def _slope(theta: FloatArray, pairs: Pairs, ridge: float) -> tuple[FloatArray, FloatArray]:
    """The gradient, and each pair's information weight * p * (1 - p): they share one exponential."""
    gap = theta.take(pairs.second) - theta.take(pairs.first)
    p = 1.0 / (1.0 + np.exp(np.minimum(gap, _LARGEST_EXPONENT)))
    passed = pairs.weight * p
    return _spread(passed - pairs.label, pairs, -1) / pairs.total + ridge * theta, passed * (1.0 - p)


class _Curvature:
    """The lower triangle of a query's Hessian, in one block of memory: only the pairs' places are ever written."""

    def __init__(self, pairs: Pairs, ridge: float) -> None:
        self._pairs, self._ridge = pairs, ridge
        self._matrix = np.zeros((pairs.pages, pairs.pages))
        self._place = pairs.second * pairs.pages + pairs.first

    def matrix(self, information: FloatArray) -> FloatArray:
        """`(pages, pages)`; the next call overwrites it."""
        flat = self._matrix.ravel()
        flat[self._place] = -information / self._pairs.total
        flat[:: self._pairs.pages + 1] = _spread(information, self._pairs, 1) / self._pairs.total + self._ridge
        return self._matrix


def _spread(values: FloatArray, pairs: Pairs, sign: int) -> FloatArray:
    """Each pair's value added to its first page, and added (or, with sign -1, taken) from its second."""
    total = sign * _sums(pairs.second, values, pairs.pages)
    if values.size:  # `first` is sorted, so its sums are those of runs
        total[pairs.first[pairs.runs]] += np.add.reduceat(values, pairs.runs)
    return total


def _sums(key: IntArray, values: FloatArray, size: int) -> FloatArray:
    # The stubs do not know that weights make the sums float64.
    return np.bincount(key, values, size).astype(np.float64, copy=False)


@lru_cache(maxsize=64)
def _upper(size: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the places above the diagonal, by row: all pairs of `size` pages."""
    return np.triu_indices(size, k=1)


@lru_cache(maxsize=64)
def _first_number(pages: int) -> IntArray:
    """`(pages,)`: what added to the second page of a pair gives the pair's number in `_upper(pages)`."""
    first: IntArray = np.arange(pages)
    return first * (2 * pages - first - 1) // 2 - first - 1


def _start(pairs: Pairs, curvature: _Curvature) -> FloatArray:
    """Least squares: gaps as near as can be to the pairs' own logits, weighted by their information."""
    label = np.clip(pairs.label / pairs.weight, *LABEL_RANGE)
    information = pairs.weight * label * (1.0 - label)
    slope = _spread(information * np.log(label / (1.0 - label)), pairs, -1) / pairs.total
    return cholesky.Factor(curvature.matrix(information)).solve(slope)


def abilities(pairs: Pairs, ridge: float = RIDGE) -> FloatArray | None:
    """`(pages,)`: the abilities in logits that minimise `objective`, with mean zero; None without convergence.

    Newton's method. A step that does not shorten the gradient is halved: along a Newton direction a short enough step
    always does. Once the steps are short the last Hessian is kept while it serves. The objective is strictly convex, so
    the minimum is one point; it is met to 1e-10 or better. Bit-exact for any number of threads.
    """
    with cholesky.one_thread():
        return _minimum(pairs, ridge)


def _minimum(pairs: Pairs, ridge: float) -> FloatArray | None:
    curvature = _Curvature(pairs, ridge)
    theta = _start(pairs, curvature)
    theta -= theta.mean()
    slope, information = _slope(theta, pairs, ridge)
    factor = None
    for _ in range(_MAX_ITERATIONS):
        kept = factor is not None
        if factor is None:
            factor = cholesky.Factor(curvature.matrix(information))
        step = factor.solve(slope)
        step -= step.mean()  # which is rounding: the gradient's sum is the ridge times theta's, and both are 0
        longest = np.abs(step).max()
        if longest < _LAST_STEP:
            theta = theta - step
            centred: FloatArray = theta - theta.mean()
            return centred
        length = slope @ slope
        for halvings in range(_MAX_HALVINGS):  # noqa: B007 - read after the loop
            trial = _slope(theta - step, pairs, ridge)
            if kept or trial[0] @ trial[0] < length:
                break
            step /= 2
        else:
            return None
        if trial[0] @ trial[0] >= length:  # the kept Hessian serves no more
            factor = None
            continue
        theta = theta - step
        slope, information = trial
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
