"""Slices of Parquet files: the rows of some queries, or of one model, read without the rest.

A slice is read straight from the row groups that hold it, so a table larger than memory is worked on a slice at a time,
in any process. Rows keep their numbers in the file, for messages.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from builder.tables import check_columns, open_parquet, readable, refuse_bad_values, sound
from provenance.errors import DataError, Where
from provenance.ids import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BATCH = 16_384
_Parts = tuple[tuple["Path", tuple[int, ...]], ...]


@dataclass(frozen=True)
class Slice:
    """The rows whose `column` has one of `values`; `parts` are all files, each with its row groups that hold some."""

    column: str
    values: tuple[str, ...]
    parts: _Parts


def by_value(files: Sequence[Path], column: str, schema: pa.Schema) -> dict[str, Slice]:
    """Every value of a column that holds ids, with its rows.

    Raises:
        InputError: a file is missing.
        DataError: a file is broken, a column of `schema` is missing or of another type, a value is null.
    """
    scanned = _scan(files, column, schema)
    return {value: _slice(files, column, [value], scanned) for value in scanned}


def by_queries(files: Sequence[Path], schema: pa.Schema, *, rows: int) -> list[Slice]:
    """Slices of whole queries in canonical order, of at least `rows` rows but for the last; errors as `by_value`."""
    column = "query-id"
    scanned = _scan(files, column, schema)
    ordered = canonical(pl.DataFrame({column: list(scanned)}, schema={column: pl.String}))[column]
    slices, taken, size = [], [], 0
    for query in ordered:
        taken.append(query)
        size += scanned[query].rows
        if size >= rows:
            slices.append(_slice(files, column, taken, scanned))
            taken, size = [], 0
    if taken:
        slices.append(_slice(files, column, taken, scanned))
    return slices


def read(part: Slice, schema: pa.Schema, *, nullable: frozenset[str] = frozenset()) -> tuple[pl.DataFrame, np.ndarray]:
    """The slice's rows in file order, and the number of each in its file (counted on over several files).

    Raises:
        DataError: a damaged file; a null outside `nullable`, a NaN or an infinity.
    """
    wanted = pa.array(part.values, pa.string())
    kept, numbers = [], [np.zeros(0, dtype=np.int64)]
    start = 0
    for path, groups in part.parts:
        with open_parquet(path) as file, readable(path):
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            for group in groups:
                row = start + sum(sizes[:group])
                for batch in map(sound, file.iter_batches(_BATCH, row_groups=[group], columns=schema.names)):
                    mask = pc.is_in(batch.column(part.column).cast(pa.string()), wanted)
                    kept.append(pa.Table.from_batches([batch.filter(mask)]).select(schema.names).cast(schema))
                    numbers.append(row + np.flatnonzero(mask.to_numpy(zero_copy_only=False)))
                    row += batch.num_rows
        start += sum(sizes)
    table = pa.concat_tables(kept) if kept else schema.empty_table()
    frame, rows = pl.DataFrame(pl.from_arrow(table)), np.concatenate(numbers)
    first = part.parts[0][0]
    with numbered(rows, str(first)):
        refuse_bad_values(frame, first, nullable)
    return frame, rows


@contextlib.contextmanager
def numbered(rows: np.ndarray, file: str) -> Iterator[None]:
    """Errors about a row of the slice name the row of the file."""
    try:
        yield
    except DataError as error:
        where = error.where
        if where is None or where.row is None or where.file != file:
            raise
        place = replace(where, row=int(rows[where.row]))
        raise type(error)(error.what, where=place, remedy=error.remedy) from None


@dataclass
class _Place:
    """Where a value stands: how many rows it has, and in which row groups of which file (by its place)."""

    rows: int = 0
    groups: set[tuple[int, int]] = field(default_factory=set)


def _scan(files: Sequence[Path], column: str, schema: pa.Schema) -> dict[str, _Place]:
    """Every value of a column; only that column is read."""
    found: dict[str, _Place] = defaultdict(_Place)
    for place, path in enumerate(files):
        check_columns(path, schema)
        row = 0
        with open_parquet(path) as file, readable(path):
            for group in range(file.num_row_groups):
                values = sound(file.read_row_group(group, [column])).column(0).cast(pa.string())
                if values.null_count:
                    with numbered(row + np.arange(len(values)), str(path)):
                        refuse_bad_values(pl.DataFrame({column: pl.Series(pl.from_arrow(values))}), path)
                for counted in pc.value_counts(values).to_pylist():
                    found[counted["values"]].rows += counted["counts"]
                    found[counted["values"]].groups.add((place, group))
                row += len(values)
    if not found:
        raise DataError(
            "the file holds no row",
            where=Where(", ".join(str(path) for path in files), column=column),
            remedy="it was not written to its end: run the step that makes it again.",
        )
    return found


def _slice(files: Sequence[Path], column: str, values: Sequence[str], scanned: dict[str, _Place]) -> Slice:
    groups = sorted(set().union(*(scanned[value].groups for value in values)))
    parts = tuple((path, tuple(group for at, group in groups if at == place)) for place, path in enumerate(files))
    return Slice(column, tuple(values), parts)
