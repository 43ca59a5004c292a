"""Canonical order of ids: by the number an id ends in, then by the id itself."""

from __future__ import annotations

import polars as pl


def id_number(column: str) -> pl.Expr:
    """The trailing integer of an id column (`query-test-12` -> 12), as int64; ids without one sort first (-1).

    Canonical row order is `sort(id_number("query-id"), "query-id", ...)` (DESIGN section 3).
    """
    return pl.col(column).str.extract(r"(\d{1,18})$", 1).cast(pl.Int64).fill_null(-1)


def canonical(frame: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Rows sorted by the number of `query-id`, then `query-id`, then `keys`; stable."""
    return frame.sort([id_number("query-id"), "query-id", *keys], maintain_order=True)
