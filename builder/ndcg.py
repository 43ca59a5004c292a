"""nDCG@k with linear gains, over all queries of many systems at once (method spec section 10).

RCP-nDCG, qrel-nDCG and Count-nDCG differ in their gains only:

    metric   gains of a query's pages                          a query whose ideal is 0
    rcp      the calibrated gains of its pool                  0
    qrel     the human grades, 0 for a page without one        NaN, left out of means
    count    passed verdicts over all verdicts on the page     0

Two tie rules order pages of exactly equal score:

    a        document id descending, compared as strings (as trec_eval does)
    b        every page of a class of equal scores gets the class's mean gain, and the class is spread over its ranks

Everything is float64 and bit-defined, so that a plain loop gives the same bits:

* DCG starts at 0.0 and adds `gain / math.log2(rank + 1)` in rank order, for rank 1 to k;
* a class's total starts at 0.0 and adds its gains in the order of tie rule (a); its mean is `total / size`;
* the ideal is the DCG of *all* gains of the query, sorted descending; nDCG is `DCG / ideal`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from provenance.errors import DataError, UsageError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Flags: TypeAlias = NDArray[np.bool_]
    Places: TypeAlias = NDArray[np.intp]

Metric: TypeAlias = Literal["rcp", "qrel", "count"]
TieRule: TypeAlias = Literal["a", "b"]
METRICS: tuple[Metric, ...] = get_args(Metric)
TIE_RULES: tuple[TieRule, ...] = get_args(TieRule)

K = 10
# Queries handled at once: their scores and gains (150 pages a query) stay in the processor's cache.
_BLOCK = 2048


def ndcg(
    scores: Floats,
    ranked: Flags,
    gains: Mapping[Metric, Floats],
    *,
    k: int = K,
    ties: Sequence[TieRule] = TIE_RULES,
) -> dict[tuple[Metric, TieRule], Floats]:
    """The nDCG@k of every system and query, for each metric and tie rule; bit-exact.

    Args:
        scores: (systems, queries, pages) scores. A query's pages are its judged pool, *document ids descending as
            strings*: tie rule (a) is the order of the columns.
        ranked: (systems, queries, pages) whether the system ranked the page. A page that is not ranked takes no rank
            but counts in the ideal; its score is ignored.
        gains: by metric, (queries, pages) gains, finite and at least 0. Pad a smaller pool with gain 0, unranked.
        k: the cut, at least 1.
        ties: the tie rules wanted.

    Returns:
        (systems, queries) values in [0, 1] by (metric, tie rule). A query of which nothing is ranked has 0.

    Raises:
        UsageError: `k` is below 1.
        DataError: a ranked score is not finite, or a gain is negative or not finite.
    """
    if k < 1:
        raise UsageError(f"nDCG@{k} is not defined", remedy="cut at rank 1 or later.")
    _refuse_infinite(scores, ranked)
    systems, queries, _ = scores.shape
    values = {(metric, rule): np.empty((systems, queries)) for metric in gains for rule in ties}
    ideals = {metric: ideal_dcg(table, k=k) for metric, table in gains.items()}
    for system in range(systems):
        for start in range(0, queries, _BLOCK):
            block = slice(start, start + _BLOCK)
            pages, filled, opens = _top(scores[system, block], ranked[system, block], k)
            for metric, table in gains.items():
                taken = np.where(filled, np.take_along_axis(table[block], pages, axis=1), 0.0)
                for rule in ties:
                    credited = taken if rule == "a" else _class_means(taken, opens)
                    values[metric, rule][system, block] = _over(dcg(credited, k=k), ideals[metric][block], metric)
    return values


def dcg(gains: Floats, *, k: int = K) -> Floats:
    """The DCG@k of gains in rank order: (queries, ranks) -> (queries,)."""
    total = np.zeros(gains.shape[0])
    for rank in range(1, min(k, gains.shape[1]) + 1):
        total += gains[:, rank - 1] / math.log2(rank + 1)
    return total


def ideal_dcg(gains: Floats, *, k: int = K) -> Floats:
    """The DCG@k of the best order of all gains: (queries, pages) -> (queries,).

    Raises:
        DataError: a gain is negative or not finite.
    """
    wrong = ~(np.isfinite(gains) & (gains >= 0))
    if wrong.any():
        query, page = (int(index) for index in np.argwhere(wrong)[0])
        raise DataError(
            f"a gain is negative or not finite (query {query}, page {page} of the array)",
            where=Where(column="gain", value=float(gains[query, page])),
            remedy="gains are finite and at least 0: mend the qrels.",
        )
    return dcg(np.sort(gains, axis=1)[:, ::-1], k=k)


def _over(total: Floats, ideal: Floats, metric: Metric) -> Floats:
    """`total / ideal`; where the ideal is 0, what the metric says of such a query."""
    undefined = math.nan if metric == "qrel" else 0.0
    return np.divide(total, ideal, out=np.full_like(total, undefined), where=ideal > 0)


def _top(scores: Floats, ranked: Flags, k: int) -> tuple[Places, Flags, Flags]:
    """The pages that share or beat the k-th best score, in the order of tie rule (a).

    Nothing below them can matter: a class of equal scores that reaches a rank up to k is here as a whole.

    Returns:
        Three (queries, width) arrays: the page's column, whether the place is filled, and whether a class of equal
        scores opens here.
    """
    candidates = np.where(ranked, scores, -np.inf)
    pages = candidates.shape[1]
    cut = np.partition(candidates, pages - k, axis=1)[:, pages - k, None] if pages > k else -np.inf
    kept = ranked & (candidates >= cut)
    size = np.count_nonzero(kept, axis=1)
    query, page = np.nonzero(kept)
    place = np.arange(query.size) - np.repeat(np.cumsum(size) - size, size)
    shape = (len(size), max(1, int(size.max(initial=0))))
    best = np.full(shape, -np.inf)
    best[query, place] = candidates[query, page]
    column = np.zeros(shape, dtype=np.intp)
    column[query, place] = page
    # Stable: equal scores keep the columns' order, which is the document id descending.
    order = np.argsort(-best, axis=1, kind="stable")
    best = np.take_along_axis(best, order, axis=1)
    opens = np.ones(shape, dtype=np.bool_)
    opens[:, 1:] = best[:, 1:] != best[:, :-1]
    return np.take_along_axis(column, order, axis=1), np.arange(shape[1]) < size[:, None], opens


def _class_means(gains: Floats, opens: Flags) -> Floats:
    """Each place's mean gain over its class: running totals to the right, the quotient carried back to the left."""
    queries, width = gains.shape
    totals, sizes = np.empty_like(gains), np.empty_like(gains)
    total, size = np.zeros(queries), np.zeros(queries)
    for place in range(width):
        total = np.where(opens[:, place], 0.0, total) + gains[:, place]
        size = np.where(opens[:, place], 0.0, size) + 1.0
        totals[:, place], sizes[:, place] = total, size
    means = totals / sizes
    for place in range(width - 2, -1, -1):
        means[:, place] = np.where(opens[:, place + 1], means[:, place], means[:, place + 1])
    return means


def _refuse_infinite(scores: Floats, ranked: Flags) -> None:
    for system in range(len(scores)):
        wrong = ranked[system] & ~np.isfinite(scores[system])
        if wrong.any():
            query, page = (int(index) for index in np.argwhere(wrong)[0])
            raise DataError(
                f"a score is not finite (system {system}, query {query}, page {page} of the array)",
                where=Where(column="score", value=float(scores[system, query, page])),
                remedy="leave out the pages that the system did not rank, or give them a finite score.",
            )
