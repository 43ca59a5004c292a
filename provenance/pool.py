"""The judged pool: the fused list with missing ground truth injected (method spec section 3)."""

from __future__ import annotations

import polars as pl

from provenance import checks
from provenance.errors import DataError, Where
from provenance.ids import canonical

_PAIR = ("query-id", "corpus-id")


def inject(fused: pl.DataFrame, positives: pl.DataFrame, *, size: int) -> pl.DataFrame:
    """Put every positive page that the fused list misses into the pool, in place of its lowest non-positive pages.

    Method spec section 3, the recommended reading: the fused order is kept; the missing positives, by ascending
    document id (as strings), each take the lowest place whose page is neither positive nor injected already.

    Args:
        fused: `query-id`, `corpus-id`, `rank` (from 1), `score`, as `fusion.fuse` returns it.
        positives: `query-id`, `corpus-id` of every page with a grade above 0; each pair once.
        size: pages a pool.

    Returns:
        `query-id`, `corpus-id`, `pool_rank` (int64, from 1), `rrf_score` (0.0 where injected), `gt_injected`;
        exactly `size` rows a query, in canonical order. Values are bit-exact.

    Raises:
        DataError: a query has fewer than `size` fused rows; a positive pair is null or there twice; a query has
            more missing positives than non-positive pages to give way.
    """
    checks.refuse_nulls(positives, _PAIR, file=None)
    checks.refuse_repeats(positives.select(_PAIR), _PAIR, column="corpus-id", file=None)
    listed = fused.filter(pl.col("rank") <= size)
    _refuse_short(listed, positives, size)

    labelled = positives.select(*_PAIR, pl.lit(value=True).alias("positive"))
    kept = listed.join(labelled, on=_PAIR, how="left", maintain_order="left").with_columns(
        pl.col("positive").fill_null(value=False)
    )
    missing = (
        positives.select(_PAIR)
        .join(listed, on=_PAIR, how="anti")
        .sort(_PAIR)
        .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query-id").alias("slot"))
        .rename({"corpus-id": "injected"})
    )
    # Non-positive places counted from the bottom: the i-th missing positive takes place i.
    places = (
        kept.filter(~pl.col("positive"))
        .sort("query-id", "rank", descending=[False, True])
        .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query-id").alias("slot"))
        .select("query-id", "rank", "slot")
    )
    swaps = missing.join(places, on=["query-id", "slot"], how="left")
    checks.refuse(
        swaps.rename({"injected": "corpus-id"}),
        pl.col("rank").is_null(),
        "a positive page cannot be injected: every page of the pool is positive already",
        column="corpus-id",
        file=None,
        remedy="raise pool_size in the benchmark file, or check the query's labels.",
        context=("query-id",),
    )
    pool = kept.join(swaps.select("query-id", "rank", "injected"), on=["query-id", "rank"], how="left")
    swapped = pl.col("injected").is_not_null()
    return canonical(
        pool.select(
            "query-id",
            pl.coalesce("injected", "corpus-id").alias("corpus-id"),
            pl.col("rank").alias("pool_rank"),
            pl.when(swapped).then(0.0).otherwise(pl.col("score")).alias("rrf_score"),
            swapped.alias("gt_injected"),
        ),
        "pool_rank",
    )


def _refuse_short(listed: pl.DataFrame, positives: pl.DataFrame, size: int) -> None:
    queries = pl.concat([listed.select("query-id"), positives.select("query-id")]).unique()
    counts = canonical(
        queries.join(listed.group_by("query-id").len("rows"), on="query-id", how="left").with_columns(
            pl.col("rows").fill_null(0)
        )
    )
    short = counts.filter(pl.col("rows") < size)
    if short.is_empty():
        return
    first = short.row(0, named=True)
    raise DataError(
        f"the fused list has {first['rows']} pages, a pool needs {size} ({short.height} such queries)",
        where=Where(column="query-id", value=first["query-id"]),
        remedy="retrieve more pages in the first stage, or lower pool_size in the benchmark file.",
    )
