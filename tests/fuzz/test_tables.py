"""Parquet tables: of another type, with nulls, with columns twice, and damaged byte by byte."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import READERS, validated, world
from support.fuzzing import mutated_bytes, read, short

from builder.inputs import ANSWERS
from builder.layout import PROVENANCE_KINDS, SCHEMAS
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: dict[str, tuple[pa.Schema, list[dict[str, Any]]]] = {
    "qrels": (
        SCHEMAS["qrels"],
        [
            {"query-id": f"query-test-{n}", "corpus-id": "corpus-test-0", "score": n, "gain": 0.5, "theta": -1.5}
            for n in range(4)
        ],
    ),
    "top_ranked": (
        SCHEMAS["top_ranked"],
        [{"query-id": f"query-test-{n}", "corpus-ids": ["corpus-test-0", "corpus-test-1"]} for n in range(3)],
    ),
    "criteria": (
        SCHEMAS["judge_criteria"],
        [
            {"query-id": "query-test-0", "call_index": n, "corpus-id": "c", "finish_reason": "stop"}
            | {f"C{c}": n % 2 for c in range(1, 6)}
            for n in range(4)
        ],
    ),
    "pages": (
        SCHEMAS["corpus"],
        [{"image": {"bytes": b"\x89PNG", "path": "a.png"}, "id": f"corpus-test-{n}", "text": ""} for n in range(3)],
    ),
    "judgements": (
        ANSWERS,
        [
            {
                "query-id": f"query-test-{n // 2}",
                "call_index": n,
                "phase": "random",
                "corpus-ids": ["a", "b"],
                "answer": json.dumps({"ranking": [1, 2], "scores": {"1": 0.5, "2": n}}),
                "finish_reason": "stop",
            }
            for n in range(4)
        ],
    ),
    "own_run": (
        pa.schema([("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.float64())]),
        [{"query-id": "q", "corpus-id": f"c{n}", "score": n / 2} for n in range(4)],
    ),
}
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"\xff\xfeab")]
)


def table(kind: str) -> pa.Table:
    """A table that its reader takes."""
    schema, rows = ROWS[kind]
    return pa.Table.from_pylist(rows, schema=schema)


def parquet(value: pa.Table, **options: Any) -> bytes:
    """The table as a file."""
    sink = io.BytesIO()
    pq.write_table(value, sink, **options)
    return sink.getvalue()


def _columns(rows: int) -> dict[str, Callable[[], pa.Array]]:
    """Columns to put in place of a right one, so many rows each."""
    return {
        "null": lambda: pa.array([None] * rows, pa.null()),
        "bool": lambda: pa.array([True] * rows),
        "strings": lambda: pa.array(["x"] * rows),
        "large strings": lambda: pa.array(["x"] * rows, pa.large_string()),
        "views": lambda: pa.array(["x"] * rows, pa.string_view()),
        "null strings": lambda: pa.array([None] * rows, pa.string()),
        "empty strings": lambda: pa.array([""] * rows),
        "numbers as strings": lambda: pa.array(["1"] * rows),
        "no UTF-8": lambda: pa.concat_arrays([NOT_UTF8] * rows)[:rows],
        "dictionary": lambda: pa.array(["x"] * rows, pa.dictionary(pa.int32(), pa.string())),
        "dictionary with null": lambda: pa.array(([None, "x"] * rows)[:rows], pa.dictionary(pa.int32(), pa.string())),
        "dictionary of no UTF-8": lambda: pa.DictionaryArray.from_arrays([0] * rows, NOT_UTF8),
        "binary": lambda: pa.array([b"\xff"] * rows),
        "nan": lambda: pa.array([float("nan")] * rows),
        "inf": lambda: pa.array([float("-inf")] * rows),
        "float32": lambda: pa.array([0.5] * rows, pa.float32()),
        "float16": lambda: pa.array([0.5] * rows, pa.float16()),
        "int8": lambda: pa.array([-1] * rows, pa.int8()),
        "int64": lambda: pa.array([2**63 - 1] * rows, pa.int64()),
        "uint64": lambda: pa.array([2**64 - 1] * rows, pa.uint64()),
        "decimal": lambda: pa.array([1] * rows, pa.decimal128(5, 0)),
        "time": lambda: pa.array([0] * rows, pa.timestamp("us", tz="Europe/Berlin")),
        "list": lambda: pa.array([["x"]] * rows),
        "list of null": lambda: pa.array([[None, "x"]] * rows),
        "null list": lambda: pa.array([None] * rows, pa.list_(pa.string())),
        "empty list": lambda: pa.array([[]] * rows, pa.list_(pa.string())),
        "list twice": lambda: pa.array([["x", "x"]] * rows),
        "list of lists": lambda: pa.array([[["x"]]] * rows),
        "list of dictionary": lambda: pa.array([["x"]] * rows, pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        "fixed list": lambda: pa.array([["x"]] * rows, pa.list_(pa.string(), 1)),
        "large list": lambda: pa.array([["x"]] * rows, pa.large_list(pa.large_string())),
        "list of no UTF-8": lambda: pa.ListArray.from_arrays(
            list(range(rows + 1)), pa.concat_arrays([NOT_UTF8] * rows)[:rows]
        ),
        "struct": lambda: pa.array([{"path": "a", "bytes": b"x"}] * rows),
        "struct of null": lambda: pa.array(
            [{"bytes": None, "path": None}] * rows, SCHEMAS["corpus"].field("image").type
        ),
        "null struct": lambda: pa.array([None] * rows, SCHEMAS["corpus"].field("image").type),
        "struct of strings": lambda: pa.array([{"bytes": "x", "path": 1}] * rows),
        "fixed binary": lambda: pa.array([b"ab"] * rows, pa.binary(2)),
        "date": lambda: pa.array([1] * rows, pa.date32()),
        "time of day": lambda: pa.array([1] * rows, pa.time32("s")),
        "duration": lambda: pa.array([1] * rows, pa.duration("s")),
        "wide decimal": lambda: pa.array([1] * rows, pa.decimal256(60, 2)),
        "map": lambda: pa.array([[("a", "b")]] * rows, pa.map_(pa.string(), pa.string())),
    }


@st.composite
def odd_tables(draw: st.DrawFn, right: pa.Table) -> bytes:
    """A right table with columns replaced, removed, doubled or added, and written in one of several ways."""
    value = right
    if draw(st.integers(0, 9)) == 0:
        value = value.slice(0, 0)
    columns = _columns(max(len(value), 1))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, value.num_columns - 1))
        name = draw(st.sampled_from(sorted(columns)))
        new = columns[name]()[: len(value)]
        change = draw(st.sampled_from(["replace", "replace", "replace", "remove", "double", "add", "metadata"]))
        if change == "replace":
            value = value.set_column(at, value.column_names[at], new)
        elif change == "remove" and value.num_columns > 1:
            value = value.remove_column(at)
        elif change == "double":
            value = value.append_column(value.column_names[at], new)
        elif change == "add":
            value = value.append_column(draw(st.sampled_from(["more", "", "subset", "language", "\u0661"])), new)
        else:
            value = value.replace_schema_metadata({b"huggingface": b"{", b"pandas": b"\xff", b"account": b"1"})
    options = draw(
        st.sampled_from(
            [{}, {"row_group_size": 1}, {"compression": "zstd"}, {"use_dictionary": False}, {"version": "1.0"}]
        )
    )
    try:
        return parquet(value, **options)
    except pa.ArrowException:
        # A type that Parquet does not have.
        return parquet(right)


@pytest.mark.parametrize("kind", ROWS)
def test_valid_tables_are_read(kind: str) -> None:
    """What the others mangle is good."""
    assert not isinstance(read(READERS[kind], parquet(table(kind)), "some.parquet"), ReleaseError)


@pytest.mark.parametrize("kind", ROWS)
def test_tables_of_other_columns(kind: str) -> None:
    """Types, nulls, dictionaries, nesting, columns twice: the right table, or an error that names the file."""

    @short(100)
    @given(odd_tables(table(kind)))
    def holds(content: bytes) -> None:
        read(READERS[kind], content, "some.parquet")

    holds()


@pytest.mark.parametrize("kind", ROWS)
def test_damaged_tables(kind: str) -> None:
    """Footers, flipped bytes, cut ends: the right table, or an error that names the file."""
    valid = [parquet(table(kind)), parquet(table(kind), compression="zstd", row_group_size=2, write_page_index=True)]

    @short(100)
    @given(st.sampled_from(valid).flatmap(mutated_bytes))
    def holds(content: bytes) -> None:
        read(READERS[kind], content, "some.parquet")

    holds()


@short(8)
@given(data=st.data(), name=st.sampled_from(["qrels", "top_ranked", "queries", *PROVENANCE_KINDS]))
def test_proofs_of_a_tree_with_an_odd_table(data: st.DataObject, name: str) -> None:
    """`release validate` comes to its end on a tree with such a table, and names it."""
    folder = f"provenance/{name}/paper" if name in PROVENANCE_KINDS else f"paper__english/{name}"
    right = pq.read_table(world() / "out" / "v1-toy" / f"{folder}.parquet")
    read(validated, data.draw(odd_tables(right)), f"{name}.parquet")
