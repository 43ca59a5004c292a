"""Slices of Parquet files: whole queries, wherever their rows stand, with the rows' numbers in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import slices
from provenance import checks
from provenance.errors import DataError, InputError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("query-id", pa.string()), ("value", pa.int64())])


def write(path: Path, queries: list[str | None], group: int) -> Path:
    """Rows of queries, numbered, a few to a row group."""
    table = pa.table({"query-id": queries, "value": range(len(queries))}, schema=SCHEMA)
    pq.write_table(table, path, row_group_size=group)
    return path


@settings(deadline=None)
@given(queries=st.lists(st.sampled_from("abcde"), min_size=1, max_size=30), rows=st.integers(1, 12), data=st.data())
def test_every_row_stands_in_exactly_one_slice(
    tmp_path_factory: pytest.TempPathFactory, queries: list[str], rows: int, data: st.DataObject
) -> None:
    """However rows are shuffled over row groups, each is read once, in file order, with its number, its query whole."""
    group = data.draw(st.integers(1, len(queries)))
    path = write(tmp_path_factory.mktemp("file") / "t.parquet", list(queries), group)
    cut = slices.by_queries([path], SCHEMA, rows=rows)
    assert sorted(set(queries)) == [value for part in cut for value in part.values]
    for part in cut:
        frame, numbers = slices.read(part, SCHEMA)
        expected = [(query, row) for row, query in enumerate(queries) if query in part.values]
        assert expected == frame.rows()
        assert [row for _, row in expected] == numbers.tolist()
    assert all(sum(queries.count(value) for value in part.values) >= rows for part in cut[:-1])


def test_queries_are_in_canonical_order(tmp_path: Path) -> None:
    """Slices follow each other by the number in the id, not by the text."""
    path = write(tmp_path / "t.parquet", ["q-10", "q-9", "q-2"], 2)
    assert [("q-2", "q-9"), ("q-10",)] == [part.values for part in slices.by_queries([path], SCHEMA, rows=2)]


def test_only_row_groups_that_hold_the_values_are_read(tmp_path: Path) -> None:
    """A slice knows its row groups; damage elsewhere does not touch it."""
    path = write(tmp_path / "t.parquet", ["a", "a", "b", "b", "a", "c"], 2)
    assert {"a": (0, 2), "b": (1,), "c": (2,)} == {
        value: part.parts[0][1] for value, part in slices.by_value([path], "query-id", SCHEMA).items()
    }


def test_rows_are_counted_over_several_files(tmp_path: Path) -> None:
    """The second file's rows go on from the first's."""
    files = [write(tmp_path / "1.parquet", ["a", "b"], 1), write(tmp_path / "2.parquet", ["b", "a"], 1)]
    frame, numbers = slices.read(slices.by_value(files, "query-id", SCHEMA)["b"], SCHEMA)
    assert [("b", 1), ("b", 0)] == frame.rows()
    assert [1, 2] == numbers.tolist()


def test_a_refusal_names_the_row_of_the_file(tmp_path: Path) -> None:
    """A check of a slice's third row speaks of where that row stands in the file."""
    path = write(tmp_path / "t.parquet", ["b", "a", "b", "a", "a"], 2)
    frame, numbers = slices.read(slices.by_value([path], "query-id", SCHEMA)["a"], SCHEMA)
    wrong = {"column": "value", "file": str(path), "remedy": "none"}
    with pytest.raises(DataError) as caught, slices.numbered(numbers, str(path)):
        checks.refuse(frame, pl.col("value") == 4, "four", **wrong)
    assert caught.value.where is not None
    assert 4 == caught.value.where.row


def test_a_null_in_a_slice_names_the_row_of_the_file(tmp_path: Path) -> None:
    """A null among the slice's values is refused at its place in the file."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"query-id": ["b", "a", "b", "a"], "value": [1, 2, 3, None]}, schema=SCHEMA), path)
    with pytest.raises(DataError, match="row 3"):
        slices.read(slices.by_value([path], "query-id", SCHEMA)["a"], SCHEMA)
    nullable = frozenset({"value"})
    frame, _ = slices.read(slices.by_value([path], "query-id", SCHEMA)["a"], SCHEMA, nullable=nullable)
    assert [2, None] == frame["value"].to_list()


def test_a_null_id_is_refused(tmp_path: Path) -> None:
    """A row of no query belongs to no slice, so it is refused while the file is cut."""
    path = write(tmp_path / "t.parquet", ["a", "a", None], 1)
    with pytest.raises(DataError, match="row 2"):
        slices.by_queries([path], SCHEMA, rows=1)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    """No file is an input that is missing; another type of column is a fault of the data."""
    with pytest.raises(InputError):
        slices.by_queries([tmp_path / "none.parquet"], SCHEMA, rows=1)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"query-id": [1], "value": [1]}), other)
    with pytest.raises(DataError, match="query-id"):
        slices.by_queries([other], SCHEMA, rows=1)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    """A table that holds nothing was not written to its end."""
    with pytest.raises(DataError, match="no row"):
        slices.by_queries([write(tmp_path / "t.parquet", [], 1)], SCHEMA, rows=1)
