"""Two versions of one table, row by row: what was added, removed and changed, by key (pure).

The key of a kind is the first `x-unique` rule of its schema; for a corpus, as `upstream.read_pages` gives it, the id.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from builder.json_schemas import schema
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OLD = "@old"
"""Suffix of a column's value in the old table."""


@dataclass(frozen=True)
class RowChanges:
    """How many rows two versions of a table share, and in how many a column differs; adds up over tables."""

    rows_old: int = 0
    rows_new: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: RowChanges) -> RowChanges:
        """The sum of both."""
        return RowChanges(
            self.rows_old + other.rows_old,
            self.rows_new + other.rows_new,
            self.added + other.added,
            self.removed + other.removed,
            self.changed + other.changed,
            dict(Counter(self.columns) + Counter(other.columns)),
        )

    @property
    def none(self) -> bool:
        """Whether both versions hold the same rows, in whatever order."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True)
class Matched:
    """Rows of two versions of a table, by key.

    Attributes:
        both: the new rows whose key is in both, in the new order; `<column>@old` beside each column of the old table.
        added: new rows whose key the old table has not.
        removed: old rows whose key the new table has not.
    """

    both: pl.DataFrame
    added: pl.DataFrame
    removed: pl.DataFrame


def key(kind: str) -> list[str]:
    """The columns that name a row of a kind."""
    return list(schema(kind)["x-unique"][0])


def match(old: pl.DataFrame, new: pl.DataFrame, keys: Sequence[str], *, what: str) -> Matched:
    """Join two versions of a table by key.

    Args:
        old: its rows before.
        new: its rows now; it may have columns more than `old`.
        keys: the columns that name a row.
        what: the table, for messages.

    Raises:
        DataError: a key stands twice in one of them.
    """
    values = [name for name in old.columns if name not in keys]
    before = old.select(*keys, *(pl.col(name).alias(name + OLD) for name in values))
    if old.height == new.height and old.select(keys).equals(new.select(keys)):
        return Matched(pl.concat([new, before.drop(keys)], how="horizontal"), new.clear(), old.clear())
    for name, frame in (("old", old), ("new", new)):
        twice = frame.filter(frame.select(keys).is_duplicated())
        if twice.height:
            values_twice = ", ".join(str(twice[column][0]) for column in keys)
            raise DataError(
                f"a row of the {name} release stands twice",
                where=Where(what, column=keys[-1], value=values_twice),
                remedy="run `release validate` on it: proof S2 names every such row.",
            )
    return Matched(
        both=new.join(before, on=keys, how="inner", nulls_equal=True, maintain_order="left"),
        added=new.join(old, on=keys, how="anti", nulls_equal=True, maintain_order="left"),
        removed=old.join(new, on=keys, how="anti", nulls_equal=True, maintain_order="left"),
    )


def differs(column: str) -> pl.Expr:
    """Whether a row of `Matched.both` holds another value than before; null equals null, floats compare exactly."""
    return pl.col(column).ne_missing(pl.col(column + OLD))


def count(matched: Matched) -> RowChanges:
    """What a match says, counted."""
    columns = [name.removesuffix(OLD) for name in matched.both.columns if name.endswith(OLD)]
    flags = matched.both.select(differs(name).alias(name) for name in columns)
    by_column = {name: int(flags[name].sum()) for name in columns}
    return RowChanges(
        rows_old=matched.both.height + matched.removed.height,
        rows_new=matched.both.height + matched.added.height,
        added=matched.added.height,
        removed=matched.removed.height,
        changed=int(flags.select(pl.any_horizontal(pl.all()).sum()).item()) if columns else 0,
        columns={name: number for name, number in by_column.items() if number},
    )
