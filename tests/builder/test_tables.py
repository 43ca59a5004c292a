"""Reading Parquet strictly and writing it in one form; digests of content."""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digests import content_digest
from builder.layout import SCHEMAS
from builder.tables import batches, read_arrow, read_frame, write_table, write_tables
from provenance.errors import DataError, InputError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("query-id", pa.string()), ("score", pa.float64()), ("rank", pa.int64())])


def write(path: Path, **columns: pa.Array) -> Path:
    """A Parquet file of the given columns."""
    pq.write_table(pa.table({name.replace("_", "-"): column for name, column in columns.items()}), path)
    return path


def test_other_layouts_and_narrower_types_are_widened(tmp_path: Path) -> None:
    """large_string, dictionaries, float32 and int32 hold values of our types: they come back as ours, values kept."""
    path = write(
        tmp_path / "a.parquet",
        query_id=pa.array(["a", "b"], pa.large_string()).dictionary_encode(),
        score=pa.array([0.5, 0.25], pa.float32()),
        rank=pa.array([1, 2], pa.int32()),
    )
    expected = pl.DataFrame({"query-id": ["a", "b"], "score": [0.5, 0.25], "rank": [1, 2]})
    assert expected.equals(read_frame(path, SCHEMA))


@pytest.mark.parametrize(
    ("column", "array"),
    [
        ("rank", pa.array([1.0, 2.0], pa.float64())),
        ("rank", pa.array([1, 2], pa.uint64())),
        ("score", pa.array([1, 2], pa.int64())),
        ("score", pa.array(["1", "2"])),
        ("query_id", pa.array([1, 2])),
    ],
)
def test_a_type_is_never_narrowed(column: str, array: pa.Array, tmp_path: Path) -> None:
    """A column whose values our type might not hold is refused by name, also where these values would fit."""
    columns = {"query_id": pa.array(["a", "b"]), "score": pa.array([0.5, 1.0]), "rank": pa.array([1, 2])}
    path = write(tmp_path / "a.parquet", **{**columns, column: array})
    with pytest.raises(DataError, match=column.replace("_", "-")):
        read_frame(path, SCHEMA)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    """The columns that are there are listed."""
    with pytest.raises(DataError, match=r"column 'rank' is missing \(there are: query-id, score\)"):
        read_frame(write(tmp_path / "a.parquet", query_id=pa.array(["a"]), score=pa.array([1.0])), SCHEMA)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_unusable_values_are_refused_with_their_row(value: float | None, tmp_path: Path) -> None:
    """A null, a NaN and an infinity are each refused, with file, row, column and value."""
    path = write(
        tmp_path / "a.parquet",
        query_id=pa.array(["a", "b", "c"]),
        score=pa.array([1.0, value, 2.0], pa.float64()),
        rank=pa.array([1, 2, 3]),
    )
    with pytest.raises(DataError) as caught:
        read_frame(path, SCHEMA)
    where = caught.value.where
    assert where is not None
    assert (str(path), 1, "score") == (where.file, where.row, where.column)


def test_a_null_is_kept_where_it_is_allowed(tmp_path: Path) -> None:
    """A nullable column keeps its nulls."""
    path = write(
        tmp_path / "a.parquet", query_id=pa.array(["a"]), score=pa.array([None], pa.float64()), rank=pa.array([1])
    )
    assert [None] == read_frame(path, SCHEMA, nullable=frozenset({"score"}))["score"].to_list()


@pytest.mark.parametrize(
    ("content", "needle"),
    [
        (b"", "not a whole Parquet file"),
        (b"PAR1 and nothing more", "not a whole Parquet file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "git-lfs pointer"),
    ],
)
def test_what_is_no_parquet_is_refused(content: bytes, needle: str, tmp_path: Path) -> None:
    """An empty file, another format and a git-lfs pointer each get their own sentence."""
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match=needle):
        read_frame(tmp_path / "a.parquet", SCHEMA)


def test_a_missing_file_is_a_missing_input(tmp_path: Path) -> None:
    """No file: exit code 4, not 3."""
    with pytest.raises(InputError):
        read_frame(tmp_path / "a.parquet", SCHEMA)


def test_written_tables_have_one_form(tmp_path: Path) -> None:
    """zstd, a page index, exact types, no metadata of ours but the corpus' own; the same table gives the same bytes."""
    frame = pl.DataFrame({"text": ["t"], "id": ["query-test-0"]})
    for name in ("a", "b"):
        write_table(frame, "queries", tmp_path / f"{name}.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    column = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
    assert ("ZSTD", True) == (column.compression, column.has_column_index)
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert pa.schema([("id", pa.string()), ("text", pa.string())]).equals(schema, check_metadata=True)


def test_metadata_of_inner_fields_is_left_out(tmp_path: Path) -> None:
    """An inner field of a list or a struct may say anything, in bytes that are no text: its values are read."""
    note = {b"note": b"\xff"}
    inner = pa.field("element", pa.string(), metadata=note)
    pair = pa.struct([pa.field("a", pa.list_(inner), metadata=note)])
    schema = pa.schema([pa.field("ids", pa.list_(inner), metadata=note), ("pair", pair)])
    rows = [{"ids": ["x", "y"], "pair": {"a": ["z"]}}]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "a.parquet")
    assert rows == pl.DataFrame(pl.from_arrow(read_arrow(tmp_path / "a.parquet"))).to_dicts()
    (batch,) = batches(tmp_path / "a.parquet")
    assert rows == pl.DataFrame(pl.from_arrow(batch)).to_dicts()


def test_a_table_of_another_shape_is_a_bug(tmp_path: Path) -> None:
    """The writer takes exactly its kind's columns."""
    with pytest.raises(TypeError):
        write_table(pl.DataFrame({"id": ["a"]}), "queries", tmp_path / "a.parquet")


def test_the_content_digest_is_its_definition() -> None:
    """For two rows of a string and an integer column the digest equals one written out by hand."""

    def sha(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    text = "/".join([sha(b"\1\1"), sha(struct.pack("<2q", 1, 2)), sha(b"aob")])
    number = "/".join([sha(b"\1\0"), sha(b""), sha(struct.pack("<2q", 7, 0))])
    expected = sha(b"2" + f"\0t\0string\0{text}\0n\0int64\0{number}".encode())
    batch = pa.record_batch({"t": pa.array(["a", "ob"]), "n": pa.array([7, None])})
    assert expected == content_digest(batch.schema, [batch])


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": st.none() | st.text(max_size=4),
            "f": st.none() | st.floats(allow_nan=False),
            "l": st.lists(st.text(max_size=2), max_size=3),
            "b": st.booleans(),
        }
    ),
    max_size=12,
)
MIXED = pa.schema([("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.string())), ("b", pa.bool_())])


def digest(rows: list[dict[str, Any]], size: int) -> str:
    """The digest of rows fed `size` at a time."""
    return content_digest(MIXED, pa.Table.from_pylist(rows, schema=MIXED).to_batches(max_chunksize=size))


@given(ROWS, st.integers(1, 5))
def test_batches_do_not_matter_to_the_digest(rows: list[dict[str, Any]], size: int) -> None:
    """However the rows are cut into batches, the digest is the same."""
    assert digest(rows, 1_000) == digest(rows, size)


@given(ROWS, ROWS)
def test_other_rows_have_another_digest(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Digests are equal exactly when rows are; null differs from empty, -0.0 from 0.0."""
    columns = "sflb"
    same = repr([[row[name] for name in columns] for row in one]) == repr(
        [[row[name] for name in columns] for row in other]
    )
    assert same == (digest(one, 3) == digest(other, 3))


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=8))
def test_how_a_table_is_cut_changes_no_byte(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    """A table that comes in pieces, empty ones among them, is written as the whole one is, over row groups too."""
    folder = tmp_path_factory.mktemp("cut")
    rows = 600
    images = [{"bytes": bytes([row % 256, row // 256]), "path": f"{row}.png"} for row in range(rows)]
    texts = [f"text {row}" * (row % 5) for row in range(rows)]
    data = {"image": images, "id": [str(row) for row in range(rows)], "text": texts}
    whole = pa.table(data, schema=SCHEMAS["corpus"])
    write_table(whole, "corpus", folder / "whole")
    edges = [0, *sorted(cuts), rows]
    pieces = [whole.slice(start, end - start) for start, end in pairwise(edges)]
    write_tables(pieces, "corpus", folder / "cut")
    assert (folder / "whole").read_bytes() == (folder / "cut").read_bytes()
    assert whole.equals(pq.read_table(folder / "whole").replace_schema_metadata(None))
    assert [100] * 6 == [pq.read_metadata(folder / "whole").row_group(group).num_rows for group in range(6)]
