"""From rows that break a rule to failures that name config, file, row, column and value."""

from __future__ import annotations

import polars as pl

from builder.proofs.facts import FILE, ROW, Table
from builder.proofs.outcome import FAILURES
from builder.row_rules import ids


def failures(
    bad: pl.DataFrame,
    table: Table,
    *,
    rule: str,
    column: str | None,
    message: str | pl.Expr,
    value: str | pl.Expr | None = None,
) -> pl.DataFrame:
    """One failure a row of `bad`.

    Args:
        bad: rows with `facts.ROW` and `facts.FILE` where they are rows of the table's files; without them (a row that
            is missing) the first file is named and no row.
        table: the table they belong to.
        rule: the rule's short name.
        column: the column at fault.
        message: what is wrong; an expression may quote the row's values.
        value: the column or expression whose value is shown; `column` by default.
    """
    placed = {ROW, FILE} <= set(bad.columns)
    names = pl.Series([*table.files, ""])
    shown = value if value is not None else column
    expr = pl.col(shown) if isinstance(shown, str) else shown
    result = bad.select(
        pl.lit(rule).alias("rule"),
        pl.lit(table.config).alias("config"),
        (pl.lit(names).gather(pl.col(FILE)) if placed else pl.lit(table.files[0] if table.files else None)).alias(
            "file"
        ),
        (pl.col(ROW) if placed else pl.lit(None, pl.Int64)).alias("row"),
        pl.lit(column, pl.String).alias("column"),
        (pl.lit(None, pl.String) if expr is None else _text(bad, expr)).alias("value"),
        ids(bad, "query-id"),
        ids(bad, "corpus-id"),
        (pl.lit(message) if isinstance(message, str) else message).alias("message"),
    )
    return result.cast(FAILURES).sort("file", "row", nulls_last=True, maintain_order=True)


def _text(bad: pl.DataFrame, expr: pl.Expr) -> pl.Series:
    values = bad.select(expr.alias("value"))["value"]
    return pl.Series("value", [_show(value) for value in values.to_list()], dtype=pl.String)


def _show(value: object) -> str:
    text = value if isinstance(value, str) else "null" if value is None else repr(value)
    return text if len(text) <= 200 else text[:197] + "..."  # noqa: PLR2004 - enough to recognise it by
