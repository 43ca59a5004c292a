"""Reciprocal rank fusion of first-stage retrievers (method spec section 2).

A first-stage table has one row a retrieved page: `retriever`, `query-id`, `corpus-id`, `rank`
(int64, from 1), `score` (float64). Rows of the retriever `rrf_fused` are a stored fusion: they are
checked, never fused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from provenance import checks
from provenance.errors import DataError, Where
from provenance.ids import canonical
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

FUSED = "rrf_fused"
TOLERANCE = 1e-12

_SCHEMA: dict[str, pl.DataType] = {
    "retriever": pl.String(),
    "query-id": pl.String(),
    "corpus-id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}


def check_first_stage(
    first_stage: pl.DataFrame, *, retrievers: Sequence[str], query_ids: Sequence[str], file: str | None
) -> None:
    """Refuse a first-stage table that is not a set of ranked lists.

    Args:
        first_stage: the table in its file's row order.
        retrievers: the benchmark's retrievers.
        query_ids: the domain's queries.
        file: the table's file, for messages.

    Raises:
        DataError: a column is missing or of another type; a null; an unknown retriever or query; a score that is
            not finite; a page twice in one list; ranks of a list that are not exactly 1..n; a retriever without
            any row.
    """
    checks.require_columns(first_stage, _SCHEMA, file=file)
    checks.refuse_nulls(first_stage, list(_SCHEMA), file=file)
    checks.refuse_unknown(first_stage, "retriever", [*retrievers, FUSED], "the benchmark's retrievers", file=file)
    checks.refuse_unknown(first_stage, "query-id", query_ids, "the domain's queries", file=file)
    checks.refuse_not_finite(first_stage, "score", file=file, context=("retriever", "query-id", "corpus-id"))
    checks.refuse_repeats(first_stage, ("retriever", "query-id", "corpus-id"), column="corpus-id", file=file)
    _refuse_broken_ranks(first_stage, file=file)
    present = set(first_stage["retriever"].unique())
    for retriever in retrievers:
        # An empty list for a query is data; no list at all is a file that was not written to its end.
        if retriever not in present:
            raise DataError(
                f"the retriever {quoted(retriever)} has no row for any query",
                where=Where(file, column="retriever"),
                remedy="add its lists, or remove it from the benchmark file's [fusion] retrievers.",
            )


def _refuse_broken_ranks(first_stage: pl.DataFrame, *, file: str | None) -> None:
    lists = ["retriever", "query-id"]
    expected = "expected"
    ordered = (
        first_stage.with_row_index(checks.ROW)
        .sort([*lists, "rank"], maintain_order=True)
        .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(lists).alias(expected))
    )
    # The first wrong rank of a list is the fault; those after it only follow from it.
    faults = ordered.filter(pl.col("rank") != pl.col(expected)).unique(lists, keep="first", maintain_order=True)
    checks.refuse(
        faults,
        pl.lit(value=True),
        "the ranks of a list are not 1, 2, 3, ... without gap or repetition",
        column="rank",
        file=file,
        remedy="number the list's rows from 1; 'expected' is the rank that should stand there.",
        context=(*lists, expected),
    )


def fuse(
    first_stage: pl.DataFrame, *, retrievers: Sequence[str], k: int, depth: int, query_ids: Sequence[str]
) -> pl.DataFrame:
    """Fuse the retrievers' lists: a page's score is the sum of 1 / (k + rank) over the lists that hold it.

    Method spec section 2. Each sum starts at 0.0 and adds in the order of `retrievers`, in float64, so the
    scores are bit-exact. Equal scores go by first sight in the scan of the first retriever's list from its
    top, then the second's, and so on.

    Args:
        first_stage: a table that passes `check_first_stage`; rows of `rrf_fused` are passed over.
        retrievers: names in their contractual order.
        k: the constant, at least 1.
        depth: how many rows of each list count, and how many fused rows a query keeps, at least 1.
        query_ids: the queries to fuse.

    Returns:
        `query-id`, `corpus-id`, `rank` (int64, from 1), `score`; at most `depth` rows a query, in canonical order.

    Raises:
        DataError: no retriever has a row for one of the queries.
    """
    order = {name: position for position, name in enumerate(retrievers)}
    rows = first_stage.filter(
        pl.col("retriever").is_in(list(retrievers)),
        pl.col("rank") <= depth,
        pl.col("query-id").is_in(list(query_ids)),
    )
    contribution = 1.0 / (k + pl.col("rank"))
    position = pl.col("retriever").replace_strict(order, return_dtype=pl.Int64)
    pages = rows.group_by("query-id", "corpus-id").agg(
        *(
            pl.when(pl.col("retriever") == name).then(contribution).max().fill_null(0.0).alias(f"part {name}")
            for name in retrievers
        ),
        (position * depth + pl.col("rank")).min().alias("seen"),
    )
    # Elementwise additions, one after the other: a grouped sum promises no order of its terms.
    score = pl.lit(0.0)
    for name in retrievers:
        score = score + pl.col(f"part {name}")
    fused = (
        canonical(pages.with_columns(score.alias("score")).sort("score", "seen", descending=[True, False]))
        .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query-id").alias("rank"))
        .filter(pl.col("rank") <= depth)
        .select("query-id", "corpus-id", "rank", "score")
    )
    missing = sorted(set(query_ids) - set(fused["query-id"].unique()))
    if missing:
        raise DataError(
            f"no retriever has a row for the query ({len(missing)} such queries)",
            where=Where(column="query-id", value=missing[0]),
            remedy="run the first stage for it, or take the query out of the benchmark.",
        )
    return fused


def check_fused(first_stage: pl.DataFrame, fused: pl.DataFrame, *, file: str | None) -> None:
    """The stored `rrf_fused` rows, if there are any, are the fusion: same ids in order, scores within 1e-12.

    Args:
        first_stage: a table that passes `check_first_stage`.
        fused: what `fuse` makes of it.
        file: the table's file, for messages.

    Raises:
        DataError: names the first row, in canonical order, that differs.
    """
    stored = first_stage.with_row_index(checks.ROW).filter(pl.col("retriever") == FUSED)
    if stored.is_empty():
        return
    both = canonical(stored.join(fused, on=["query-id", "rank"], how="full", suffix=" (ours)", coalesce=True), "rank")
    other_page = pl.col("corpus-id").ne_missing(pl.col("corpus-id (ours)"))
    other_score = (pl.col("score") - pl.col("score (ours)")).abs() > TOLERANCE
    different = both.filter(other_page | other_score)
    if different.is_empty():
        return
    row = different.row(0, named=True)
    place = f"query-id {row['query-id']!r}, rank {row['rank']}"
    if row["corpus-id"] == row["corpus-id (ours)"]:
        what, column = f"the stored score is not the fusion's, {row['score (ours)']!r}", "score"
    elif row["corpus-id"] is None:
        what, column = f"a stored row is missing: the fusion has {row['corpus-id (ours)']!r}", "corpus-id"
    elif row["corpus-id (ours)"] is None:
        what, column = "a stored row too many: the fusion ends before it", "corpus-id"
    else:
        what, column = f"the stored page is not the fusion's, {row['corpus-id (ours)']!r}", "corpus-id"
    raise DataError(
        f"rows of '{FUSED}' differ from the fusion of the lists: {what} ({place}; {different.height} rows differ)",
        where=Where(file, row=row[checks.ROW], column=column, value=row[column]),
        remedy="check the order of [fusion] retrievers and k in the benchmark file, or leave the stored rows out.",
    )
