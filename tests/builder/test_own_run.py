"""Reading one's own run: every format gives the same table, every fault is named with its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.own_run import read_run
from provenance.errors import DataError, InputError, ReleaseError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    ("query-test-0", "corpus-test-01", 0.1),
    ("query-test-0", "corpus-test-1", -2.5e-7),
    ("query-test-10", "x", 3.0),
]
FRAME = pl.DataFrame(ROWS, schema={"query-id": pl.String, "corpus-id": pl.String, "score": pl.Float64}, orient="row")
CSV = "query-id,corpus-id,score\n"
HALF_NAMED = """\
{"query-id": "q", "corpus-id": "a", "score": 1, "subset": "s"}
{"query-id": "q", "corpus-id": "b", "score": 1}
"""

Rows = list[tuple[str, str, float | None]]


def as_csv(rows: Rows) -> str:
    """A CSV run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query-id", "corpus-id", "score"])
    writer.writerows((query, page, "" if score is None else repr(score)) for query, page, score in rows)
    return text.getvalue()


def as_jsonl(rows: Rows) -> str:
    """A JSON Lines run."""
    return "".join(
        json.dumps({"query-id": query, "corpus-id": page, "score": score}, ensure_ascii=False) + "\n"
        for query, page, score in rows
    )


def as_trec(rows: Rows) -> str:
    """A TREC run, whose ranks are wrong on purpose."""
    return "".join(f"{query} Q0 {page} 1 {score!r} mine\n" for query, page, score in rows)


def write(folder: Path, name: str, text: str | bytes) -> Path:
    """A file in a folder, zipped if its name says so."""
    content = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", as_csv(ROWS)),
        ("r.CSV", "\ufeff" + as_csv(ROWS).replace("\n", "\r\n")),
        ("r.csv.gz", as_csv(ROWS)),
        ("r.jsonl", as_jsonl(ROWS)),
        ("r.ndjson", as_jsonl(ROWS)),
        ("r.jsonl.gz", as_jsonl(ROWS) + "\n\n"),
        ("r.trec", as_trec(ROWS)),
        ("r.run.gz", as_trec(ROWS)),
        ("r.txt", as_trec(ROWS).replace(" ", "\t")),
        ("other-order.csv", "note,score,corpus-id,query-id\n" + "".join(f"n,{s!r},{c},{q}\n" for q, c, s in ROWS)),
    ],
)
def test_text_formats(tmp_path: Path, name: str, text: str) -> None:
    """Each text format gives the same table, in file order, ids as they are written."""
    assert FRAME.equals(read_run(write(tmp_path, name, text)))


def test_parquet(tmp_path: Path) -> None:
    """A Parquet run gives its table; other columns are left out, float32 and integer scores are widened."""
    path = tmp_path / "r.parquet"
    FRAME.with_columns(model=pl.lit("m")).write_parquet(path)
    assert FRAME.equals(read_run(path))
    FRAME.with_columns(pl.col("score").cast(pl.Float32)).write_parquet(path)
    assert FRAME["score"].cast(pl.Float32).to_list() == read_run(path)["score"].to_list()
    FRAME.with_columns(score=pl.Series([1, -2, 2**53])).write_parquet(path)
    assert [1.0, -2.0, 2.0**53] == read_run(path)["score"].to_list()


def test_null_scores(tmp_path: Path) -> None:
    """An empty or null score means "not ranked": it stays null."""
    rows: Rows = [("q", "a", None), ("q", "b", 1.0)]
    FRAME.head(2).with_columns(score=pl.Series([None, 1.0])).write_parquet(tmp_path / "r.parquet")
    paths = [write(tmp_path, "r.csv", as_csv(rows)), write(tmp_path, "r.jsonl", as_jsonl(rows)), tmp_path / "r.parquet"]
    assert [[None, 1.0]] * 3 == [read_run(path)["score"].to_list() for path in paths]


def test_subset_column(tmp_path: Path) -> None:
    """A subset column is read; the same pair may stand once in each subset."""
    path = write(tmp_path, "r.csv", "subset,query-id,corpus-id,score\nnorth,q,a,1\nsouth,q,a,2\n")
    assert [("q", "a", 1.0, "north"), ("q", "a", 2.0, "south")] == read_run(path).rows()
    lines = '{"subset": "north", "query-id": "q", "corpus-id": "a", "score": 1}\n'
    assert [("q", "a", 1.0, "north")] == read_run(write(tmp_path, "r.jsonl", lines)).rows()


def test_folder(tmp_path: Path) -> None:
    """A folder's files name their subset."""
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, "south.trec.gz", "q Q0 b 1 2.0 t\n")
    write(folder, "north.csv", CSV + "q,a,1\n")
    assert [("q", "a", 1.0, "north"), ("q", "b", 2.0, "south")] == read_run(folder).rows()
    write(folder, "south.csv", CSV + "q,b,1\n")
    with pytest.raises(DataError, match="scored twice"):
        read_run(folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.csv", CSV + "q,a,1\nq,b,high\n", r"no number \[.*r\.csv, row 1, column 'score', value 'high'\]"),
        ("r.csv", CSV + "q,a,1_0\n", r"no number .*value '1_0'"),
        ("r.csv", CSV + "q,a,nan\n", r"NaN .*row 0, column 'score'"),
        ("r.csv", CSV + "q,a,-inf\n", r"infinite .*row 0, column 'score'"),
        ("r.csv", CSV + "q,a,1\nq,a,2\n", r"page 'a' is scored twice for query 'q' .*row 1"),
        ("r.csv", CSV + "q,a,1\n,a,2\n", r"'query-id' is missing.*row 1, column 'query-id'"),
        ("r.csv", CSV + "q,a,1,\n", r"4 cells, the header 3.*row 0"),
        ("r.csv", CSV + "q,a\n", r"2 cells, the header 3.*row 0"),
        ("r.csv", "query-id,doc,score\nq,a,1\n", r"column 'corpus-id' is missing \(there are: query-id, doc, score\)"),
        ("r.csv", "query-id,corpus-id,score,score\nq,a,1,2\n", "names a column twice"),
        ("r.csv", CSV + 'q,"a,1\n', "not a CSV file"),
        ("r.csv", "", "column 'query-id' is missing"),
        ("r.csv", b"\xff\xfe", "not UTF-8"),
        ("r.jsonl", '{"query-id": "q"', r"not a JSON object.*row 0"),
        ("r.jsonl", "[1]\n", r"not a JSON object.*row 0"),
        (
            "r.jsonl",
            '{"query-id": 7, "corpus-id": "a", "score": 1}\n',
            r"'query-id' is missing or is no string.*value 7",
        ),
        ("r.jsonl", '{"query-id": "q", "corpus-id": "a"}\n', r"no number.*column 'score'"),
        ("r.jsonl", '{"query-id": "q", "corpus-id": "a", "score": true}\n', r"no number.*value True"),
        ("r.jsonl", '{"query-id": "q", "corpus-id": "a", "score": 9007199254740993}\n', r"exact as float64"),
        ("r.jsonl", '{"query-id": "q", "corpus-id": "a", "score": NaN}\n', r"NaN.*row 0"),
        ("r.jsonl", '{"query-id": "\\ud800", "corpus-id": "a", "score": 1}\n', r"half of a character.*row 0"),
        ("r.jsonl", HALF_NAMED, r"some rows name a subset.*row 1"),
        ("r.trec", "q Q0 a 1 0.5\n", r"six fields, this one has 5.*row 0"),
        ("r.trec", "q Q0 a 1 0.5 t\nq Q0 b 2 - t\n", r"no number.*row 1, column 'score', value '-'"),
        ("r.trec", "q Q0 a 1 inf t\n", r"infinite.*row 0"),
    ],
)
def test_faults(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    """A row that cannot be read refuses the run; the message says which row and which value."""
    with pytest.raises(DataError, match=message):
        read_run(write(tmp_path, name, text))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, math.nan], r"column 'score'"),
        (["1", "2"], r"column 'score' is large_string|column 'score' is string"),
        ([1, 2**53 + 1], r"too large.*row 1, column 'score'"),
    ],
)
def test_parquet_faults(tmp_path: Path, scores: list[float] | list[str], message: str) -> None:
    """A Parquet run with NaN, with scores as text or with integers that floats lack is refused."""
    path = tmp_path / "r.parquet"
    FRAME.head(2).with_columns(score=pl.Series(scores)).write_parquet(path)
    with pytest.raises(DataError, match=message):
        read_run(path)


def test_not_gzip(tmp_path: Path) -> None:
    """A file that only pretends to be zipped is refused."""
    path = tmp_path / "r.csv.gz"
    path.write_bytes(b"query-id")
    with pytest.raises(DataError, match="not a gzip file"):
        read_run(path)
    path.write_bytes(gzip.compress(b"query-id" * 100)[:-12])
    with pytest.raises(DataError, match="not a gzip file"):
        read_run(path)


def test_no_file(tmp_path: Path) -> None:
    """A missing file and an empty folder are missing inputs; an unknown suffix is a usage error."""
    with pytest.raises(InputError, match="no such run"):
        read_run(tmp_path / "r.csv")
    with pytest.raises(InputError, match="no run lies in this folder"):
        read_run(tmp_path)
    with pytest.raises(UsageError, match=r"'r\.xlsx' does not say the format"):
        read_run(write(tmp_path, "r.xlsx", ""))


_IDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), min_size=1, max_size=8)
_ENTRIES = st.dictionaries(
    st.tuples(_IDS, _IDS),
    st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    min_size=1,
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=_ENTRIES)
def test_round_trip(tmp_path: Path, entries: dict[tuple[str, str], float | None]) -> None:
    """CSV and JSON Lines give back every id and every bit of every score."""
    rows: Rows = [(query, page, score) for (query, page), score in entries.items()]
    for name, text in (("r.csv", as_csv(rows)), ("r.jsonl", as_jsonl(rows))):
        found = read_run(write(tmp_path, name, text)).rows()
        assert [(*row[:2], repr(row[2])) for row in rows] == [(*row[:2], repr(row[2])) for row in found]


_HOSTILE = st.text(st.sampled_from('{}[]",:\\ \t\r\n\x00qa1.e-nulscorey-id\ud800'), max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(
        st.binary(max_size=40),
        _HOSTILE.map(lambda text: text.encode("utf-8", "replace")),
        _HOSTILE.map(lambda text: (CSV + text).encode("utf-8", "replace")),
        st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=3), st.lists).map(
            lambda value: json.dumps({"query-id": "q", "corpus-id": value, "score": value}).encode()
        ),
    ),
    suffix=st.sampled_from(["csv", "jsonl", "trec", "parquet", "csv.gz"]),
)
def test_never_a_traceback(tmp_path: Path, text: bytes, suffix: str) -> None:
    """Whatever a file holds, reading it gives a run or an error of the tree."""
    path = tmp_path / f"r.{suffix}"
    path.write_bytes(text)
    try:
        run = read_run(path)
    except ReleaseError as error:
        assert error.exit_code in {3, 4}  # noqa: PT017 - either outcome is right
    else:
        assert run.columns[:3] == ["query-id", "corpus-id", "score"]
