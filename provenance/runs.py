"""Reranker runs over the judged pool, ranked under tie rule (a) (method spec sections 10 and 16.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from provenance import checks
from provenance.errors import DataError, Where
from provenance.ids import id_number
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCHEMA: dict[str, pl.DataType] = {
    "model": pl.String(),
    "query-id": pl.String(),
    "corpus-id": pl.String(),
    "score": pl.Float64(),
}
_KEYS = ("model", "query-id", "corpus-id")
_PAIR = ("query-id", "corpus-id")
_LIST = ("model", "query-id")


def rank(runs: pl.DataFrame, pool: pl.DataFrame, *, models: Sequence[str], file: str | None) -> pl.DataFrame:
    """Rank each model's scores of each query's pool: score descending, then page id descending as a string.

    Args:
        runs: `model`, `query-id`, `corpus-id`, `score` (float64 or null), in the file's row order.
        pool: `query-id`, `corpus-id`, `pool_rank`.
        models: the benchmark's rerankers, in its order.
        file: the table's file, for messages.

    Returns:
        `model`, `query-id`, `corpus-id`, `score`, `rank_by_score` (int64, from 1; null where the score is null),
        `stored_position` (int64, from 1: the row's place among the input's rows of its model and query). Rows by
        model in the order of `models`, query number, pool rank. Scores are the input's, bit for bit.

    Raises:
        DataError: a column is missing or of another type; a null key; NaN or infinity; an unknown model or one
            without rows; a pair scored twice, a pair outside the pool, or a pair of the pool that a model lacks.
    """
    checks.require_columns(runs, _SCHEMA, file=file)
    checks.refuse_nulls(runs, _KEYS, file=file)
    checks.refuse_unknown(runs, "model", models, "the benchmark's rerankers", file=file)
    checks.refuse_not_finite(runs, "score", file=file, context=_KEYS)
    checks.refuse_repeats(runs, _KEYS, column="corpus-id", file=file)
    stored = (
        runs.select(*_KEYS, "score")
        .with_row_index(checks.ROW)
        .join(pool.select(*_PAIR, "pool_rank"), on=_PAIR, how="left", maintain_order="left")
    )
    checks.refuse(
        stored,
        pl.col("pool_rank").is_null(),
        "a scored page is not in the query's pool",
        column="corpus-id",
        file=file,
        remedy="score the pages of provenance/pool, and only those.",
        context=_KEYS,
    )
    _refuse_missing(runs, pool, models=models, file=file)

    order = {name: position for position, name in enumerate(models)}
    # Adding 0.0 makes -0.0 and 0.0 one value, as they are one score.
    by_score = [pl.col("score") + 0.0, pl.col("corpus-id")]
    return (
        stored.with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST).alias("stored_position"))
        .sort([*_LIST, *by_score], descending=[False, False, True, True], nulls_last=True)
        .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST).alias("place"))
        .with_columns(
            pl.when(pl.col("score").is_not_null()).then(pl.col("place")).alias("rank_by_score"),
            pl.col("model").replace_strict(order, return_dtype=pl.Int64).alias("order"),
        )
        .sort("order", id_number("query-id"), "query-id", "pool_rank")
        .select("model", *_PAIR, "score", "rank_by_score", "stored_position")
    )


def _refuse_missing(runs: pl.DataFrame, pool: pl.DataFrame, *, models: Sequence[str], file: str | None) -> None:
    present = set(runs["model"].unique())
    for model in models:
        if model not in present:
            raise DataError(
                f"the model {quoted(model)} has no row",
                where=Where(file, column="model"),
                remedy="add its scores, or remove it from the benchmark file's [rerankers].",
            )
    if runs.height == len(models) * pool.height:
        return  # pairs are unique and in the pool, so equal counts mean none is missing
    every = pool.select(_PAIR).join(pl.DataFrame({"model": list(models)}), how="cross")
    missing = every.join(runs, on=_KEYS, how="anti").sort("model", id_number("query-id"), "query-id", "corpus-id")
    first = missing.row(0, named=True)
    raise DataError(
        f"the model {quoted(first['model'])} has no score for a page of the pool of query {quoted(first['query-id'])} "
        f"({missing.height} such pairs)",
        where=Where(file, column="corpus-id", value=first["corpus-id"]),
        remedy="score it; where the model gave none, write the row with a null score.",
    )


def unranked(ranked: pl.DataFrame) -> dict[str, int]:
    """How many pairs each model of a ranked table left without a score; models without such a pair are left out."""
    nulls = ranked.filter(pl.col("score").is_null()).group_by("model", maintain_order=True).len("pairs")
    return dict(nulls.iter_rows())
