"""Reading and writing Parquet: strict about columns and types on the way in, one fixed form on the way out."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from builder import documents
from builder.layout import SCHEMAS
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CORPUS_METADATA = {
    b"huggingface": json.dumps(
        {
            "info": {
                "features": {
                    "image": {"_type": "Image"},
                    "id": {"dtype": "string", "_type": "Value"},
                    "text": {"dtype": "string", "_type": "Value"},
                }
            }
        }
    ).encode()
}
"""Schema metadata of corpus files, and of no other: without it the image column loads as a plain struct."""

UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises for a damaged file; the last for a column's name."""

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

IMAGE_ROWS = 100
TABLE_ROWS = 262_144


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        InputError: there is no such file.
        DataError: it is no whole Parquet file (truncated, another format, a git-lfs pointer).
    """
    documents.present(path)
    with readable(path):
        return pq.ParquetFile(path)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """What Arrow raises in the block about a damaged file becomes a `DataError` that names it."""
    try:
        yield
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def read_arrow(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A whole Parquet file as an Arrow table, its own types kept.

    Raises:
        InputError, DataError: as `open_parquet`; a damaged page inside the file is a DataError too.
    """
    with open_parquet(path) as file, readable(path):
        return sound(file.read(columns=columns))


def batches(path: Path, columns: list[str] | None = None, *, rows: int = TABLE_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file in order, a batch at a time; errors as `read_arrow`."""
    with open_parquet(path) as file, readable(path):
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield sound(batch)


def sound(rows: Rows) -> Rows:
    """The rows without metadata, if their strings are UTF-8 and their offsets in bounds.

    Arrow does not check that as it reads, and Polars believes it.

    Raises:
        pyarrow.ArrowInvalid: they are not, or a column is of a type at which Polars falls over.
    """
    for field in rows.schema:
        _refuse_unknown(field)
    rows.validate(full=True)
    return rows.cast(plain(rows.schema))


def _refuse_unknown(field: pa.Field) -> None:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal256(kind):
        raise pa.ArrowInvalid(f"column '{field.name}' is {kind}, which cannot be read")
    for number in range(kind.num_fields):
        _refuse_unknown(kind.field(number))


def plain(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata, of inner fields too: it may hold any bytes."""
    return pa.schema([_plain(field) for field in schema])


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain(inner) for inner in kind])
    elif pa.types.is_large_list(kind):
        kind = pa.large_list(_plain(kind.value_field))
    elif pa.types.is_fixed_size_list(kind):
        kind = pa.list_(_plain(kind.value_field), kind.list_size)
    elif pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field))
    return pa.field(field.name, kind, field.nullable)


def read_frame(path: Path, schema: pa.Schema, *, nullable: frozenset[str] = frozenset()) -> pl.DataFrame:
    """The columns of `schema` from a Parquet file, widened to its types, never narrowed; other columns are left out.

    Raises:
        InputError: no such file.
        DataError: a column is missing or of another type; a null outside `nullable`; a NaN or an infinity.
    """
    check_columns(path, schema)
    with readable(path):
        table = read_arrow(path, schema.names).cast(schema)
    frame = pl.DataFrame(pl.from_arrow(table))
    refuse_bad_values(frame, path, nullable)
    return frame


def check_columns(path: Path, schema: pa.Schema) -> None:
    """Refuse a Parquet file that lacks a column of `schema`, or has it with a type that would have to be narrowed.

    Raises:
        InputError: no such file.
        DataError: a column is missing or of another type.
    """
    with open_parquet(path) as file, readable(path):
        found = file.schema_arrow
    for field in schema:
        if field.name not in found.names:
            raise DataError(
                f"column '{field.name}' is missing (there are: {', '.join(found.names)})",
                where=Where(str(path), column=field.name),
                remedy=f"write the file with the columns {', '.join(schema.names)}.",
            )
        if found.names.count(field.name) > 1:
            raise DataError(
                f"column '{field.name}' stands twice",
                where=Where(str(path), column=field.name),
                remedy="write each column once.",
            )
        actual = found.field(field.name).type
        if not _widens(actual, field.type):
            raise DataError(
                f"column '{field.name}' is {actual}, expected {field.type}",
                where=Where(str(path), column=field.name),
                remedy=f"write the column as {field.type}; a type is never narrowed here.",
            )


def conform(table: pa.Table | pl.DataFrame, kind: str) -> pa.Table:
    """The table with exactly the columns and types of its kind, and no metadata but the corpus' own.

    Raises:
        TypeError: a column is missing, foreign or of another type than the kind's: a bug of the caller.
    """
    schema = SCHEMAS[kind]
    arrow = table.to_arrow() if isinstance(table, pl.DataFrame) else table
    if sorted(arrow.schema.names) != sorted(schema.names):
        raise TypeError(f"{kind} has columns {arrow.schema.names}, its schema {schema.names}")
    for field in schema:
        if not _widens(arrow.schema.field(field.name).type, field.type):
            raise TypeError(f"{kind}.{field.name} is {arrow.schema.field(field.name).type}, its schema {field.type}")
    metadata = CORPUS_METADATA if kind == "corpus" else None
    return arrow.select(schema.names).cast(schema).replace_schema_metadata(metadata)


def write_table(table: pa.Table | pl.DataFrame, kind: str, path: Path) -> None:
    """Write a table of a release: zstd, page index, fixed row groups; the same table gives the same bytes."""
    write_tables([table], kind, path)


def write_tables(pieces: Iterable[pa.Table | pl.DataFrame], kind: str, path: Path) -> None:
    """Write a table that comes in pieces, as `write_table` would write it whole: how it is cut changes no byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = SCHEMAS[kind].with_metadata(CORPUS_METADATA if kind == "corpus" else None)
    size = IMAGE_ROWS if kind == "corpus" else TABLE_ROWS
    waiting = schema.empty_table()
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, write_page_index=True) as writer:
        for piece in pieces:
            waiting = pa.concat_tables([waiting, conform(piece, kind)])
            while len(waiting) >= size:
                writer.write_table(waiting.slice(0, size).combine_chunks(), row_group_size=size)
                waiting = waiting.slice(size)
        if len(waiting):
            writer.write_table(waiting.combine_chunks(), row_group_size=size)


_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.string(): (pa.large_string(), pa.string_view()),
    pa.binary(): (pa.large_binary(), pa.binary_view()),
    pa.int64(): (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    pa.float64(): (pa.float32(),),
}
"""What each type of our schemas takes in beside itself: other layouts of the same values, narrower numbers."""


def _widens(actual: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of `actual` is a value of `wanted`."""
    if pa.types.is_dictionary(actual):
        return _widens(actual.value_type, wanted)
    if pa.types.is_list(wanted):
        is_list = pa.types.is_list(actual) or pa.types.is_large_list(actual)
        return is_list and _widens(actual.value_type, wanted.value_type)
    if pa.types.is_struct(wanted) and pa.types.is_struct(actual):
        fields = {field.name: field.type for field in actual}
        return fields.keys() == {field.name for field in wanted} and all(
            _widens(fields[field.name], field.type) for field in wanted
        )
    return actual == wanted or actual in _WIDER.get(wanted, ())


def refuse_bad_values(frame: pl.DataFrame, path: Path, nullable: frozenset[str] = frozenset()) -> None:
    """Refuse a null outside `nullable`, a NaN or an infinity in what was read from `path`.

    Raises:
        DataError: names the first such row of the first such column.
    """
    for name, dtype in frame.schema.items():
        bad = pl.col(name).is_null() if name not in nullable else pl.lit(value=False)
        if isinstance(dtype, pl.List):
            bad = bad | (pl.col(name).list.drop_nulls().list.len() < pl.col(name).list.len())
        if dtype == pl.Float64:
            bad = bad | (pl.col(name).is_not_null() & ~pl.col(name).is_finite())
        rows = frame.select(bad.arg_true().alias("row"))["row"]
        if rows.len():
            row = int(rows[0])
            (value,) = frame.select(name).row(row)
            raise DataError(
                f"{rows.len()} row(s) of column '{name}' hold no usable value",
                where=Where(str(path), row, name, "null" if value is None else value),
                remedy="mend the rows at their source: a missing value is never filled in here.",
            )


def _unreadable(path: Path, error: Exception) -> DataError:
    head = path.read_bytes()[:40] if path.is_file() else b""
    if head.startswith(b"version https://git-lfs"):
        what, remedy = "a git-lfs pointer lies where a Parquet file should be", "run `git lfs pull` where it came from."
    else:
        what = f"not a whole Parquet file: {str(error).splitlines()[0]}"
        remedy = "it may be cut off or of another format: fetch or write it again."
    return DataError(what, where=Where(str(path)), remedy=remedy)
