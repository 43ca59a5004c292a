"""Check the rows of a Parquet file against a JSON Schema in one streaming pass.

Compiled rules run over row batches; the rows that fail go to `jsonschema`, whose message is shown. Memory is that of
one batch, whatever the file's length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from builder.json_schemas import Validator, shorten
from builder.row_compiler import Check, Residual, RowRules, compile_rows
from builder.tables import plain, sound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROW_FAILURES = pl.Schema(
    {
        "rule": pl.String,
        "row": pl.Int64,
        "column": pl.String,
        "value": pl.String,
        "query-id": pl.String,
        "corpus-id": pl.String,
        "message": pl.String,
    }
)
BATCH_BYTES = 32 * 2**20
BATCH_ROWS = 2**17
EXPLAINED = 200
"""Failing rows a batch whose message comes from `jsonschema`; the others get the same sentence without it."""

_WIDER: dict[type[pl.DataType], type[pl.DataType]] = {
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32), pl.Int64),
    pl.Float32: pl.Float64,
}


def check_file(path: Path, schema: Mapping[str, Any]) -> tuple[int, pl.DataFrame]:
    """Rows read, and every failure (`ROW_FAILURES`; a row of -1 means the whole file).

    Raises:
        OSError, pyarrow.ArrowException: the file cannot be read, or holds strings that are not UTF-8.
        DataError: the schema uses an unknown keyword.
    """
    with pq.ParquetFile(path, memory_map=False) as file:
        metadata = file.metadata
        stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(metadata.num_rows, 1) // max(stored, 1)))
        return check_batches(map(sound, file.iter_batches(batch_size=rows)), file.schema_arrow, schema)


def check_batches(
    batches: Iterator[pa.RecordBatch], arrow: pa.Schema, schema: Mapping[str, Any]
) -> tuple[int, pl.DataFrame]:
    """As `check_file`, over record batches that share the Arrow schema `arrow`."""
    empty = widen(pl.DataFrame(pl.from_arrow(plain(arrow).empty_table())))
    rules = compile_rows(schema, empty.schema)
    failures = [
        _frame([{"rule": fault.keyword, "row": -1, "column": fault.column, "message": fault.message}])
        for fault in rules.faults
    ]
    done = 0
    for batch in batches:
        frame = widen(pl.DataFrame(pl.from_arrow(batch)))
        failures += _check_frame(frame, rules, schema, done)
        done += frame.height
    return done, pl.concat(failures) if failures else pl.DataFrame(schema=ROW_FAILURES)


def widen(frame: pl.DataFrame) -> pl.DataFrame:
    """Small integers as Int64 and Float32 as Float64, which changes no value; the Arrow types are another rule's."""
    return frame.with_columns(
        pl.col(name).cast(_WIDER[type(dtype)]) for name, dtype in frame.schema.items() if type(dtype) in _WIDER
    )


def _check_frame(frame: pl.DataFrame, rules: RowRules, schema: Mapping[str, Any], done: int) -> Iterator[pl.DataFrame]:
    if rules.checks:
        verdicts = frame.select(check.holds.all().alias(str(number)) for number, check in enumerate(rules.checks))
        broken = [check for check, holds in zip(rules.checks, verdicts.row(0), strict=True) if not holds]
        if broken:
            yield _explain(frame, broken, schema, done)
    for residual in rules.residuals:
        failing = _by_jsonschema(frame, residual, schema, done)
        if failing:
            yield _frame(failing)


def _explain(frame: pl.DataFrame, broken: list[Check], schema: Mapping[str, Any], done: int) -> pl.DataFrame:
    """The failing rows of a batch: place and value from the compiled rule, message from `jsonschema`."""
    validator = Validator(schema)
    messages: dict[int, dict[tuple[str, str], str]] = {}
    rows = frame.with_row_index("__row")
    found: list[pl.DataFrame] = []
    for check in broken:
        bad = rows.filter(~check.holds)
        values = _values(bad, check.column)
        texts = []
        for place, (row, value) in enumerate(zip(bad["__row"], values, strict=True)):
            if place < EXPLAINED and check.keyword != "finite":
                if row not in messages:
                    messages[row] = _messages(validator, frame.row(row, named=True))
                text = messages[row].get((check.column, check.keyword))
            else:
                text = None
            texts.append(text or _sentence(check, value))
        found.append(
            pl.DataFrame(
                {
                    "rule": [check.keyword] * bad.height,
                    "row": [done + row for row in bad["__row"]],
                    "column": [check.column] * bad.height,
                    "value": values,
                    "query-id": ids(bad, "query-id", schema),
                    "corpus-id": ids(bad, "corpus-id", schema),
                    "message": texts,
                },
                schema=ROW_FAILURES,
            )
        )
    return pl.concat(found).sort("row", maintain_order=True)


def _sentence(check: Check, value: str) -> str:
    if check.keyword == "finite":
        return f"{value} is not a finite number"
    return f"{value} breaks '{check.keyword}': {check.limit!r}"


def _messages(validator: Any, row: dict[str, Any]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for error in validator.iter_errors(row):
        path = ".".join(str(part) for part in error.absolute_path if not isinstance(part, int))
        found.setdefault((path, str(error.validator)), shorten(error.message))
    return found


def _by_jsonschema(
    frame: pl.DataFrame, residual: Residual, schema: Mapping[str, Any], done: int
) -> list[dict[str, Any]]:
    """Every row of a batch through `jsonschema`, on one column or on all."""
    validator = Validator(residual.schema)
    found = []
    queries, pages = ids(frame, "query-id", schema), ids(frame, "corpus-id", schema)
    cells = frame.iter_rows(named=True) if residual.column is None else iter(frame[residual.column].to_list())
    for row, cell in enumerate(cells):
        for error in validator.iter_errors(cell):
            parts = ([] if residual.column is None else [residual.column]) + [
                str(part) for part in error.absolute_path if not isinstance(part, int)
            ]
            found.append(
                {
                    "rule": str(error.validator),
                    "row": done + row,
                    "column": ".".join(parts),
                    "value": shorten(repr(error.instance)),
                    "query-id": queries[row],
                    "corpus-id": pages[row],
                    "message": shorten(error.message),
                }
            )
    return found


def _values(bad: pl.DataFrame, column: str) -> list[str]:
    name, *fields = column.split(".") if column not in bad.columns else [column]
    expr = pl.col(name)
    for field in fields:
        expr = expr.struct.field(field)
    return [shorten(repr(value)) for value in bad.select(expr.alias("value"))["value"].to_list()]


def ids(frame: pl.DataFrame, name: str, schema: Mapping[str, Any] | None = None) -> pl.Series:
    """The column `query-id` or `corpus-id` for a report (or what the schema's `x-ids` names); nulls where none is."""
    column: str = (schema or {}).get("x-ids", {}).get(name, name)
    if column in frame.columns and frame.schema[column] == pl.String:
        return frame[column].alias(name)
    return pl.Series(name, [None] * frame.height, dtype=pl.String)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=ROW_FAILURES)
