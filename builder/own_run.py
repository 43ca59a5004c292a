"""Reading one's own run (`builder.coverage` matches it with a benchmark).

A run holds one system: a score for (query, page) pairs. Formats, by file name (`.gz` is read too, but for Parquet):

    .parquet          columns query-id, corpus-id, score (and subset)
    .csv              the same columns, named in the first line
    .jsonl, .ndjson   an object a line with the same keys; ids are strings
    .trec, .run, .txt a TREC run: query-id Q0 corpus-id rank score tag, by spaces; rank is ignored, as trec_eval does

A folder holds such files, each named by a subset or a domain (`energy.parquet`, `energy__french.trec`), for the formats
and runs that have no `subset` column. Other columns are left alone. A null (empty) score means "not ranked". Nothing is
guessed: a row that cannot be read is named and the run refused.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from builder import documents
from builder.tables import check_columns, open_parquet, read_frame
from provenance import checks
from provenance.errors import DataError, InputError, UsageError, Where
from provenance.numbers import decimal
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

COLUMNS = ("query-id", "corpus-id", "score")
SUBSET = "subset"
_TREC_FIELDS = 6
_EXACT_INTEGER = 2**53
_LONGEST_TEXT = 2**30
"""Bytes that a zipped run may unpack to: some ten times as many as a run of ViDoRe v3 has."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCHEMA = {"query-id": pl.String(), "corpus-id": pl.String(), "score": pl.Float64()}


def read_run(path: Path) -> pl.DataFrame:
    """Read a run: [query-id, corpus-id, score], and `subset` where the file has it or a folder's files name it.

    Raises:
        InputError: no such file, or a folder without a run.
        UsageError: the file's name does not say its format.
        DataError: a row cannot be read, an id is missing, a score is no number, NaN or infinite, a pair is scored
            twice.
    """
    if not path.is_dir():
        return _read_file(path)
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not files:
        raise InputError("no run lies in this folder", where=Where(str(path)), remedy="name a run file, or its folder.")
    parts = [
        _read_file(file).select(*COLUMNS, pl.lit(file.name.split(".")[0], dtype=pl.String).alias(SUBSET))
        for file in files
    ]
    whole = pl.concat(parts)
    refuse_duplicates(whole, str(path))
    return whole


def _read_file(path: Path) -> pl.DataFrame:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if zipped else suffixes)[-1:]
    if not path.is_file():
        raise InputError("no such run", where=Where(str(path)), remedy="check the path of --run.")
    if kind == [".parquet"] and not zipped:
        run = _parquet(path)
    elif kind == [".csv"]:
        run = _frame(_csv_rows(path, _lines(path, zipped=zipped)), path)
    elif kind in ([".jsonl"], [".ndjson"]):
        run = _frame(_json_rows(path, _lines(path, zipped=zipped)), path)
    elif kind in ([".trec"], [".run"], [".txt"]):
        run = _frame(_trec_rows(path, _lines(path, zipped=zipped)), path)
    else:
        raise UsageError(
            f"the name '{path.name}' does not say the format of the run",
            remedy="name it .parquet, .csv, .jsonl or .trec (a TREC run); .gz may follow but for Parquet.",
        )
    _refuse_bad_scores(run, str(path))
    refuse_duplicates(run, str(path))
    return run


def _parquet(path: Path) -> pl.DataFrame:
    check_columns(path, pa.schema([("query-id", pa.string()), ("corpus-id", pa.string())]))
    with open_parquet(path) as file:
        found = file.schema_arrow
    whole = found.names.count("score") == 1 and pa.types.is_integer(found.field("score").type)
    fields = [("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.int64() if whole else pa.float64())]
    if SUBSET in found.names:
        fields.append((SUBSET, pa.string()))
    run = read_frame(path, pa.schema(fields), nullable=frozenset({"score"}))
    for name, kind in zip(run.columns, run.dtypes, strict=True):
        if kind == pl.String:
            checks.refuse(
                run,
                pl.col(name) == "",
                f"'{name}' is empty",
                column=name,
                file=str(path),
                remedy="name it in every row.",
            )
    wide = (
        run.with_row_index("row").filter(~pl.col("score").is_between(-_EXACT_INTEGER, _EXACT_INTEGER))
        if whole
        else run.clear()
    )
    if len(wide):
        raise DataError(
            "an integer score is too large to be exact as float64",
            where=Where(str(path), wide["row"][0], "score", wide["score"][0]),
            remedy="write the scores as float64.",
        )
    return run.with_columns(pl.col("score").cast(pl.Float64))


def _csv_rows(path: Path, lines: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), strict=True)
    try:
        header = next(reader, [])
        lacking = [name for name in COLUMNS if name not in header]
        if len(set(header)) < len(header):
            raise DataError(
                f"the header names a column twice ({', '.join(header)})",
                where=Where(str(path)),
                remedy="name each column once.",
            )
        if lacking:
            raise DataError(
                f"column '{lacking[0]}' is missing (there are: {', '.join(header)})",
                where=Where(str(path), column=lacking[0]),
                remedy="name the columns query-id, corpus-id and score (and subset) in the first line.",
            )
        for row, cells in enumerate(reader):
            if len(cells) != len(header):
                raise DataError(
                    f"a row has {len(cells)} cells, the header {len(header)}",
                    where=Where(str(path), row, value=",".join(cells)),
                    remedy="write as many cells in every line; quote a cell that holds a comma.",
                )
            entry = dict(zip(header, cells, strict=True))
            _refuse_missing_ids(path, row, entry)
            score = _parse_score(path, row, entry["score"]) if entry["score"] else None
            yield entry["query-id"], entry["corpus-id"], score, entry.get(SUBSET)
    except csv.Error as error:
        raise DataError(
            f"not a CSV file: {error}", where=Where(str(path)), remedy="write it again, with a header line."
        ) from error


def _json_rows(path: Path, lines: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for row, line in enumerate(lines):
        try:
            entry = documents.parse(line)
        except ValueError as error:
            raise DataError(
                f"not a JSON object: {error}",
                where=Where(str(path), row, value=line),
                remedy="write one object a line, with the keys query-id, corpus-id and score.",
            ) from error
        if not isinstance(entry, dict):
            raise DataError("not a JSON object", where=Where(str(path), row, value=entry))
        _refuse_missing_ids(path, row, entry)
        score = entry.get("score", "")
        whole = isinstance(score, int) and not isinstance(score, bool) and abs(score) <= _EXACT_INTEGER
        if not (whole or isinstance(score, float) or score is None):
            raise DataError(
                "the score is no number that is exact as float64",
                where=Where(str(path), row, "score", score),
                remedy="write a decimal number, or null where the page was not ranked.",
            )
        yield entry["query-id"], entry["corpus-id"], None if score is None else float(score), entry.get(SUBSET)


def _trec_rows(path: Path, lines: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for row, line in enumerate(lines):
        fields = line.split()
        if len(fields) != _TREC_FIELDS:
            raise DataError(
                f"a line of a TREC run has six fields, this one has {len(fields)}",
                where=Where(str(path), row, value=line),
                remedy="write: query-id Q0 corpus-id rank score tag.",
            )
        yield fields[0], fields[2], _parse_score(path, row, fields[4]), None


def _parse_score(path: Path, row: int, text: str) -> float:
    try:
        return decimal(text)
    except ValueError as error:
        raise DataError(
            "the score is no number",
            where=Where(str(path), row, "score", text),
            remedy="write a decimal number.",
        ) from error


def _frame(rows: Iterator[tuple[Any, ...]], path: Path) -> pl.DataFrame:
    run = pl.DataFrame(list(rows), schema={**_SCHEMA, SUBSET: pl.String()}, orient="row")
    unnamed = run[SUBSET].null_count()
    if 0 < unnamed < len(run):
        raise DataError(
            "some rows name a subset and some do not",
            where=Where(str(path), int(run[SUBSET].is_null().arg_max() or 0), SUBSET),
            remedy="name the subset in every row, or in none.",
        )
    return run.drop(SUBSET) if unnamed == len(run) else run


def _content(path: Path, *, zipped: bool) -> bytes:
    if not zipped:
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            content = file.read(_LONGEST_TEXT + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"not a gzip file: {error}", where=Where(str(path)), remedy="write the run again.") from error
    if len(content) > _LONGEST_TEXT:
        raise DataError(
            f"it unpacks to more than {_LONGEST_TEXT:,} bytes",
            where=Where(str(path)),
            remedy="write the run as Parquet, or a file a subset into a folder.",
        )
    return content


def _lines(path: Path, *, zipped: bool) -> list[str]:
    """The lines of a text file, without those that are empty at its end."""
    try:
        text = _content(path, zipped=zipped).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: {error}", where=Where(str(path)), remedy="write the run as UTF-8.") from error
    # Not str.splitlines: an id may hold one of the rarer line separators.
    return text.replace("\r\n", "\n").rstrip("\n").split("\n") if text.strip() else []


def _refuse_missing_ids(path: Path, row: int, entry: Mapping[str, Any]) -> None:
    for name in ("query-id", "corpus-id", SUBSET):
        value = entry.get(name)
        if (name in entry or name != SUBSET) and not _is_id(value):
            raise DataError(
                f"'{name}' is missing or is no string",
                where=Where(str(path), row, name, value),
                remedy="every row names its query and its page, as strings.",
            )


def _is_id(value: object) -> bool:
    """Whether a value is a string that is not empty and that UTF-8 can hold (JSON can name half a character)."""
    return isinstance(value, str) and value != "" and (value.isascii() or not _SURROGATE.search(value))


def _refuse_bad_scores(run: pl.DataFrame, where: str) -> None:
    wrong = run.with_row_index("row").filter(~pl.col("score").is_finite())
    if len(wrong):
        score = wrong["score"][0]
        raise DataError(
            "the score is NaN" if math.isnan(score) else "the score is infinite",
            where=Where(where, wrong["row"][0], "score", score),
            remedy="give a finite score, or leave it null where the page was not ranked.",
        )


def refuse_duplicates(run: pl.DataFrame, where: str) -> None:
    """Refuse a pair that is scored twice (in the same subset, where the run names subsets).

    Raises:
        DataError: the second row of such a pair is named.
    """
    keys = [name for name in (SUBSET, "query-id", "corpus-id") if name in run.columns]
    twice = run.with_row_index("row").filter(~pl.struct(keys).is_first_distinct())
    if len(twice):
        raise DataError(
            f"page {quoted(twice['corpus-id'][0])} is scored twice for query {quoted(twice['query-id'][0])}",
            where=Where(where, twice["row"][0], "corpus-id", twice["corpus-id"][0]),
            remedy="give each system its own file; where ids repeat from domain to domain, add a column 'subset'.",
        )
