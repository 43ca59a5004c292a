"""Each query's ideal top 10 in two releases: which pages, and in which order (pure).

A query's ideal list is its pool by gain, descending; pages of equal gain by document id, descending as strings (tie
rule (a) of nDCG).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.diff.rows import OLD
from builder.ndcg import K

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class TopChanges:
    """Queries of one domain that have a pool in both releases, in the order of `query_ids`.

    Attributes:
        domain: its name.
        query_ids: the queries.
        overlap: share of the ideal top 10 that is in both (of the longer list where pools are smaller than 10).
        same_order: whether both lists are the same, page by page.
        tau: Kendall's tau-b between old and new gains of the pages of either list; NaN where it is undefined (a page
            or none, or equal gains throughout).
    """

    domain: str
    query_ids: list[str]
    overlap: NDArray[np.float64]
    same_order: NDArray[np.bool_]
    tau: NDArray[np.float64]


def top_changes(domain: str, pairs: pl.DataFrame, *, k: int = K) -> TopChanges:
    """Compare the ideal top k of each query.

    Args:
        domain: its name.
        pairs: query-id, corpus-id, gain, gain@old: every pair of either release, a null where one has no such pair.
        k: the cut.
    """
    ranked = (
        pairs.lazy()
        .filter(pl.col("gain").is_not_null() | pl.col("gain" + OLD).is_not_null())
        .sort("query-id", "corpus-id", descending=[False, True])
        .with_columns(_rank("gain").alias("now"), _rank("gain" + OLD).alias("before"))
        .filter((pl.col("now") <= k) | (pl.col("before") <= k))
        .collect()
    )
    in_new, in_old = (pl.col("now") <= k).fill_null(value=False), (pl.col("before") <= k).fill_null(value=False)
    queries = (
        ranked.group_by("query-id", maintain_order=True)
        .agg(
            (in_new & in_old).sum().alias("shared"),
            pl.max_horizontal(in_new.sum(), in_old.sum()).alias("size"),
            (in_new.any() & in_old.any()).alias("comparable"),
            (in_new & in_old & (pl.col("now") == pl.col("before"))).sum().alias("in_place"),
        )
        .filter("comparable")
    )
    common = ranked.drop_nulls(["gain", "gain" + OLD])
    return TopChanges(
        domain,
        queries["query-id"].to_list(),
        (queries["shared"] / queries["size"]).to_numpy(),
        (queries["in_place"] == queries["size"]).to_numpy(),
        _taus(common, queries["query-id"]),
    )


def top_document(domains: Sequence[TopChanges], *, k: int = K) -> dict[str, Any]:
    """All domains' queries together; None where no query can be compared."""
    overlap = np.concatenate([np.zeros(0), *(item.overlap for item in domains)])
    order = np.concatenate([np.zeros(0, np.bool_), *(item.same_order for item in domains)])
    tau = np.concatenate([np.zeros(0), *(item.tau for item in domains)])
    defined = tau[~np.isnan(tau)]
    return {
        "k": k,
        "queries": len(overlap),
        "mean_overlap": _mean(overlap),
        "min_overlap": float(overlap.min()) if len(overlap) else None,
        "same_pages": int(np.count_nonzero(overlap == 1.0)),
        "same_order": int(np.count_nonzero(order)),
        "kendall_tau": _mean(defined),
        "tau_undefined": int(np.count_nonzero(np.isnan(tau))),
    }


def kendall_taus(old: NDArray[np.float64], new: NDArray[np.float64], filled: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row: (queries, pages) values before and after, and which places hold a page.

    Agrees with SciPy's `kendalltau` within 1e-12; NaN where a side does not vary.
    """
    pair = filled[:, :, None] & filled[:, None, :]
    before = np.sign(old[:, :, None] - old[:, None, :]) * pair
    after = np.sign(new[:, :, None] - new[:, None, :]) * pair
    agree = (before * after).sum(axis=(1, 2))
    scale = np.sqrt((before != 0).sum(axis=(1, 2)) * (after != 0).sum(axis=(1, 2)).astype(np.float64))
    taus: NDArray[np.float64] = np.divide(agree, scale, out=np.full(len(old), math.nan), where=scale > 0)
    return taus


def _rank(gain: str) -> pl.Expr:
    """1-based place in the ideal list; null for a page without a gain. Rows stand by document id, descending."""
    place = pl.col(gain).rank("ordinal", descending=True)
    return place.over("query-id")


def _taus(common: pl.DataFrame, query_ids: pl.Series) -> NDArray[np.float64]:
    places = pl.DataFrame({"query-id": query_ids}).with_row_index("row")
    rows = common.join(places, on="query-id", how="inner", maintain_order="left").with_columns(
        pl.int_range(pl.len()).over("query-id").alias("column")
    )
    at = (rows["row"].to_numpy(), rows["column"].to_numpy())
    shape = (len(query_ids), int(at[1].max(initial=-1)) + 1)
    old, new, filled = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    old[at], new[at], filled[at] = rows["gain" + OLD].to_numpy(), rows["gain"].to_numpy(), True
    return kendall_taus(old, new, filled)


def _mean(values: NDArray[np.float64]) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None
