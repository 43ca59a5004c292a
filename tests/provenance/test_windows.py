"""Tables of windows: malformed ones are refused, and every window of a good one is accounted for."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from provenance.errors import DataError
from provenance.windows import (
    Rubric,
    Tournament,
    account,
    checked,
    flagged,
    join,
    parse_rubric,
    parse_tournament,
    query_blocks,
    read_rubric,
    read_tournament,
)

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "query-id": pl.String,
    "call_index": pl.Int64,
    "phase": pl.String,
    "corpus-ids": pl.List(pl.String),
    "answer": pl.String,
    "finish_reason": pl.String,
}


def _tournament(*values: float) -> str:
    """A tournament answer with these scores in prompt order."""
    names = [f"doc_{slot}" for slot in range(1, len(values) + 1)]
    return json.dumps({"ranking": names, "scores": dict(zip(names, values, strict=True))})


def _rubric(*rows: str) -> str:
    """A rubric answer with one string of five digits a document."""
    return json.dumps(
        {
            f"doc_{slot}": {"reasoning": "r", "criteria": {f"C{k}": int(digit) for k, digit in enumerate(row, start=1)}}
            for slot, row in enumerate(rows, start=1)
        }
    )


def _table(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """A table of windows from rows of six values."""
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


GOOD = _table(
    ("query-test-10", 0, "random", ["c", "b"], _tournament(0.5, -1.0), "stop"),
    ("query-test-9", 1, "adaptive", ["a", "c"], None, "content_filter"),
    ("query-test-9", 0, "stratified", ["b", "a"], _tournament(1.0, 2.0), None),
    ("query-test-10", 1, "random", ["c", "a"], '{"ranking"', "length"),
)


def test_a_tournament_is_read_in_canonical_order() -> None:
    """Windows, scores and shown pages come by query number, then call; a refused window still shows its pages."""
    read = read_tournament(GOOD, file="t.parquet")
    assert [
        ("query-test-9", 0, "stratified", "fitted"),
        ("query-test-9", 1, "adaptive", "refused"),
        ("query-test-10", 0, "random", "fitted"),
        ("query-test-10", 1, "random", "truncated"),
    ] == read.windows.rows()
    assert [
        ("query-test-9", 0, 1, "b", 1.0),
        ("query-test-9", 0, 2, "a", 2.0),
        ("query-test-10", 0, 1, "c", 0.5),
        ("query-test-10", 0, 2, "b", -1.0),
    ] == read.scores.rows()
    assert [
        ("query-test-9", "b"),
        ("query-test-9", "a"),
        ("query-test-9", "c"),
        ("query-test-10", "c"),
        ("query-test-10", "b"),
        ("query-test-10", "a"),
    ] == read.shown.rows()


def test_a_rubric_is_read_in_canonical_order() -> None:
    """Placements of fitted windows come by query number, call and prompt position, with the finish reason."""
    table = _table(
        ("query-test-2", 1, "stratified", ["a"], _rubric("00001"), "length"),
        ("query-test-2", 0, "random", ["c", "a"], _rubric("11010", "10000"), None),
        ("query-test-1", 0, "random", ["c", "a"], _rubric("11010"), "stop"),
    )
    read = read_rubric(table, file="r.parquet")
    assert ["incomplete", "fitted", "fitted"] == read.windows["outcome"].to_list()
    assert [
        ("query-test-2", 0, "c", 1, 1, 0, 1, 0, None),
        ("query-test-2", 0, "a", 1, 0, 0, 0, 0, None),
        ("query-test-2", 1, "a", 0, 0, 0, 0, 1, "length"),
    ] == read.placements.rows()


def test_the_columns_and_types_are_fixed_even_without_rows() -> None:
    """An empty table and a table without a fitted window give the same types as any other."""
    window = {"query-id": pl.String, "call_index": pl.Int64, "phase": pl.String, "outcome": pl.String}
    placement = {"query-id": pl.String, "call_index": pl.Int64}
    score = placement | {"position": pl.Int64, "corpus-id": pl.String, "score": pl.Float64}
    criteria = dict.fromkeys(["C1", "C2", "C3", "C4", "C5"], pl.Int64)
    unfitted = _table(("q1", 0, "random", ["a"], None, None))
    for table in (GOOD.clear(), unfitted, GOOD):
        read = read_tournament(table, file="t.parquet")
        assert window == dict(read.windows.schema)
        assert score == dict(read.scores.schema)
        assert {"query-id": pl.String, "corpus-id": pl.String} == dict(read.shown.schema)
    for table in (GOOD.clear(), unfitted):
        rubric = read_rubric(table, file="r.parquet")
        assert window == dict(rubric.windows.schema)
        expected = placement | {"corpus-id": pl.String} | criteria | {"finish_reason": pl.String}
        assert expected == dict(rubric.placements.schema)


@pytest.mark.parametrize(
    ("changes", "column", "row", "value"),
    [
        ({"query-id": None}, "query-id", 2, None),
        ({"call_index": None}, "call_index", 2, None),
        ({"call_index": -1}, "call_index", 2, "-1"),
        ({"call_index": 1}, "call_index", 1, "1"),
        ({"phase": None}, "phase", 2, None),
        ({"phase": "final"}, "phase", 2, "'final'"),
        ({"corpus-ids": None}, "corpus-ids", 2, None),
        ({"corpus-ids": []}, "corpus-ids", 2, "[]"),
        ({"corpus-ids": ["a", "b", "a"]}, "corpus-ids", 2, "['a', 'b', 'a']"),
        ({"corpus-ids": ["a", None]}, "corpus-ids", 2, "['a', None]"),
    ],
)
def test_a_malformed_row_is_refused(changes: dict[str, Any], column: str, row: int, value: str | None) -> None:
    """The message names file, row, column and value of the first broken row."""
    rows = GOOD.rows(named=True)
    rows[2] |= changes
    with pytest.raises(DataError) as caught:
        read_tournament(pl.DataFrame(rows, schema=SCHEMA), file="t.parquet")
    place = f"t.parquet, row {row}, column '{column}'"
    message = str(caught.value)
    if value is None:
        assert f"the value is null [{place}]" in message
    else:
        assert f"[{place}, value {value}]" in message


def test_a_rubric_has_no_adaptive_phase() -> None:
    """A phase that is no part of a stage's schedule is refused (method spec section 7.1)."""
    table = _table(("q1", 0, "adaptive", ["a"], _rubric("00000"), "stop"))
    with pytest.raises(DataError, match="a phase is one of random, stratified"):
        read_rubric(table, file="r.parquet")


@pytest.mark.parametrize("column", list(SCHEMA))
def test_a_missing_column_is_refused(column: str) -> None:
    """The message names the file and the column."""
    with pytest.raises(DataError, match=rf"needs the column '{column}' \[t.parquet"):
        read_tournament(GOOD.drop(column), file="t.parquet")


@pytest.mark.parametrize(
    ("column", "dtype"), [("call_index", pl.Int32), ("call_index", pl.String), ("phase", pl.Categorical)]
)
def test_a_column_of_another_type_is_refused(column: str, dtype: Any) -> None:
    """Nothing is cast, not even where it could be."""
    with pytest.raises(DataError, match=rf"the column '{column}' must be"):
        read_tournament(GOOD.with_columns(pl.col(column).cast(dtype)), file="t.parquet")


_TOURNAMENT_ANSWERS = [
    _tournament(1.0, -1.0),
    _tournament(0.0),
    '{"a": \\',
    "prose",
    None,
    '{"ranking": [], "scores": {}}',
]
_RUBRIC_ANSWERS = [_rubric("10101", "01010"), _rubric("11111"), "prose", None]


@st.composite
def tables(draw: st.DrawFn, answers: list[str | None]) -> pl.DataFrame:
    """A small table of windows of one or two pages, rows in any order."""
    keys = draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), unique=True, max_size=20))
    rows = []
    for query, call in keys:
        phase = draw(st.sampled_from(["random", "stratified"]))
        pages = draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=1, max_size=2))
        finish_reason = draw(st.sampled_from(["stop", "length", None]))
        rows.append((f"query-test-{query}", call, phase, pages, draw(st.sampled_from(answers)), finish_reason))
    return _table(*rows)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(_TOURNAMENT_ANSWERS), tables(_RUBRIC_ANSWERS), st.integers(1, 20))
def test_any_cut_into_blocks_gives_the_same_rows(tournament: pl.DataFrame, rubric: pl.DataFrame, count: int) -> None:
    """Blocks of whole queries, read apart and joined, are the table read at once; each window is counted once."""
    table = checked(tournament, "tournament", file="t")
    blocks = query_blocks(table, count)
    assert len(blocks) <= count
    assert table.height == sum(block.height for block in blocks)
    assert table["query-id"].n_unique() == sum(block["query-id"].n_unique() for block in blocks)
    if blocks:
        _assert_same(read_tournament(tournament, file="t"), join([parse_tournament(block) for block in blocks]))
    parts = [parse_rubric(block) for block in query_blocks(checked(rubric, "rubric", file="r"), count)]
    if parts:
        _assert_same(read_rubric(rubric, file="r"), join(parts))
    counted = account(read_tournament(tournament, file="t").windows)
    assert tournament.height == sum(number for phase in counted.values() for number in phase.values())


def _assert_same(expected: Tournament | Rubric, actual: Tournament | Rubric) -> None:
    """Both hold the same frames."""
    assert type(expected) is type(actual)
    for name in vars(expected):
        assert_frame_equal(getattr(expected, name), getattr(actual, name))


def test_blocks_are_of_about_the_same_size() -> None:
    """Ten queries of ten windows cut in four give blocks of 30, 20, 30 and 20 windows."""
    table = _table(*[(f"q{k // 10}", k % 10, "random", ["a"], None, None) for k in range(100)])
    assert [30, 20, 30, 20] == [block.height for block in query_blocks(checked(table, "rubric", file="r"), 4)]


def test_blocks_are_read_in_other_processes() -> None:
    """What a block needs and gives can be pickled."""
    blocks = query_blocks(checked(GOOD, "tournament", file="t"), 2)
    # polars must not be forked: its threads would hold their locks.
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        _assert_same(read_tournament(GOOD, file="t"), join(list(pool.map(parse_tournament, blocks))))


def test_the_account_counts_by_phase_and_outcome() -> None:
    """Each phase that occurs has every outcome, in plain numbers that sum to its windows."""
    none = dict.fromkeys(
        ["fitted", "truncated", "no_json", "invalid_json", "schema", "incomplete", "refused"],
        0,
    )
    counted = account(read_tournament(GOOD, file="t").windows)
    assert {
        "random": none | {"fitted": 1, "truncated": 1},
        "stratified": none | {"fitted": 1},
        "adaptive": none | {"refused": 1},
    } == counted
    assert counted == json.loads(json.dumps(counted))


def _windows(query: str, total: int, unusable: int, phase: str = "random") -> pl.DataFrame:
    """The windows of one query, the first of them unusable."""
    return pl.DataFrame(
        {
            "query-id": [query] * total,
            "call_index": list(range(total)),
            "phase": [phase] * total,
            "outcome": ["schema"] * unusable + ["fitted"] * (total - unusable),
        }
    )


def test_five_per_cent_exactly_is_not_flagged() -> None:
    """The share is strict (method spec section 17.7); any unusable adaptive window flags; both may hold."""
    windows = pl.concat(
        [
            _windows("q1", 100, 5),
            _windows("q2", 100, 6),
            _windows("q3", 100, 1, "adaptive"),
            _windows("q4", 4, 4, "adaptive"),
        ]
    )
    assert [
        {"query-id": "q2", "windows": 100, "unusable": 6, "share": 0.06, "reasons": ["share"]},
        {"query-id": "q3", "windows": 100, "unusable": 1, "share": 0.01, "reasons": ["adaptive"]},
        {"query-id": "q4", "windows": 4, "unusable": 4, "share": 1.0, "reasons": ["share", "adaptive"]},
    ] == flagged(windows)


@pytest.mark.parametrize("domain", ["sysadmin_en", "sysadmin_fr"])
def test_the_reference_counts_are_met_exactly(reference: Path, domain: str) -> None:
    """Windows and unusable windows of both stages are those of the independent reference."""
    expected = json.loads((reference / "expected" / "reference.json").read_text())["invalid"]
    judgements = reference / "pipeline" / "judgements" / "simulated"
    tournament = read_tournament(pl.read_parquet(judgements / "tournament" / f"{domain}.parquet"), file=domain)
    rubric = read_rubric(pl.read_parquet(judgements / "rubric" / f"{domain}.parquet"), file=domain)
    for stage, windows in (("tournament", tournament.windows), ("rubric", rubric.windows)):
        unusable = windows.filter(pl.col("outcome") != "fitted").height
        assert expected[stage][domain] == {"windows": windows.height, "invalid": unusable}


def test_the_reference_placements_are_met_exactly(reference: Path) -> None:
    """Rubric placements of fitted windows, over both domains, are as many as the independent fit used."""
    expected = json.loads((reference / "expected" / "reference.json").read_text())["placements"]
    folder = reference / "pipeline" / "judgements" / "simulated" / "rubric"
    files = sorted(folder.glob("*.parquet"))
    assert expected == sum(read_rubric(pl.read_parquet(file), file=file.name).placements.height for file in files)
