"""The compiled row rules against `jsonschema`, on generated schemas and rows."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from builder.json_schemas import schema
from builder.layout import SCHEMAS
from builder.patterns import ecma_search, portable
from builder.row_compiler import compile_rows
from builder.row_rules import check_batches, widen
from provenance.errors import DataError

TYPES = {
    "i": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "l": pa.list_(pa.string()),
    "n": pa.list_(pa.int64()),
    "o": pa.struct([("x", pa.int64()), ("y", pa.string())]),
}
# No value of these is read differently on purpose: no whole float, no NaN, no final newline, no Unicode digit.
TEXTS = st.text(alphabet="ab1é😀-", max_size=4)
INTS = st.one_of(st.integers(-3, 3), st.sampled_from([2**53 + 1, -(2**63), 2**63 - 1]))
FLOATS = st.one_of(
    st.sampled_from([-2.5, -0.5, 0.5, 1.5, 2.5, math.inf, -math.inf]),
    st.floats(-4, 4).filter(lambda value: not value.is_integer()),
)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "i": INTS,
    "f": FLOATS,
    "s": TEXTS,
    "b": st.booleans(),
    "l": st.lists(st.one_of(TEXTS, st.none()), max_size=3),
    "n": st.lists(INTS, max_size=3),
    "o": st.fixed_dictionaries({"x": st.one_of(INTS, st.none()), "y": st.one_of(TEXTS, st.none())}),
}
NAMES = st.sampled_from(["integer", "number", "string", "boolean", "array", "object", "null"])
BOUNDS = st.one_of(st.integers(-3, 3), st.sampled_from([-2.5, 0.5, 1.0, 2**53 + 1, 2**64, 1e300]))
VALUES = st.one_of(st.integers(-2, 2), st.sampled_from([0.5, 1.0, True, False, None, "a", "", "é", 2**53 + 1]))
PATTERNS = st.sampled_from(
    [r"^a", r"a$", r"^[ab]{1,2}$", r"\d", r"^(a|b)+-?$", r"^[ab-]*1$", r"^a|b$", r"(?=a)b", r"."]
)


def _leaf() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(NAMES, st.lists(NAMES, min_size=1, max_size=3, unique=True)),
            "minimum": BOUNDS,
            "maximum": BOUNDS,
            "exclusiveMinimum": BOUNDS,
            "exclusiveMaximum": BOUNDS,
            "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=json.dumps),
            "const": VALUES,
            "pattern": PATTERNS,
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(0, 3),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "multipleOf": st.sampled_from([2, 3]),
            "not": st.fixed_dictionaries({"type": NAMES}),
            "title": st.just("an annotation"),
            "x-note": st.just(["ours"]),
        },
    )


LEAVES = st.one_of(st.booleans(), _leaf())
NODES: st.SearchStrategy[Any] = st.one_of(
    LEAVES,
    st.builds(lambda leaf, inner: {**leaf, "items": inner}, _leaf(), LEAVES),
    st.builds(
        lambda leaf, x, y, required, extra: {
            **leaf,
            "properties": {"x": x} if y is None else {"x": x, "y": y},
            "required": required,
            "additionalProperties": extra,
        },
        _leaf(),
        LEAVES,
        st.one_of(LEAVES, st.none()),
        st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
        LEAVES,
    ),
)
ROOTS = st.fixed_dictionaries(
    {"properties": st.fixed_dictionaries({}, optional=dict.fromkeys(TYPES, NODES))},
    optional={
        "additionalProperties": LEAVES,
        "required": st.lists(st.sampled_from([*TYPES, "gone"]), unique=True, max_size=3),
        "type": st.just("object"),
        "dependentRequired": st.just({"i": ["f", "gone"]}),
    },
)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), cells) for name, cells in CELLS.items()}), min_size=1, max_size=5
)


def _failing(rows: list[dict[str, Any]], rule: dict[str, Any]) -> tuple[set[int], pl.DataFrame]:
    arrow = pa.schema(list(TYPES.items()))
    table = pa.Table.from_pylist(rows, schema=arrow)
    _, failures = check_batches(iter(table.to_batches(max_chunksize=2)), arrow, rule)
    judged = failures.filter(pl.col("rule") != "finite")
    broken = set(judged["row"].to_list())
    return (set(range(len(rows))) if -1 in broken else broken), failures


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROOTS, ROWS)
def test_compiled_rules_fail_the_rows_that_jsonschema_fails(rule: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """A row fails a generated schema exactly where plain draft 2020-12 `jsonschema` fails it."""
    oracle = Draft202012Validator(rule)
    expected = {number for number, row in enumerate(rows) if not oracle.is_valid(row)}
    assert expected == _failing(rows, rule)[0]


@settings(max_examples=150, deadline=None)
@given(NODES.filter(lambda node: not isinstance(node, bool)), ROWS)
def test_compiled_rules_name_the_keyword_that_jsonschema_names(rule: Any, rows: list[dict[str, Any]]) -> None:
    """The keywords named for a scalar column are those of `jsonschema`, none more and none less."""
    root = {"properties": {"i": rule, "s": rule}}
    oracle = Draft202012Validator(root)
    expected = {
        (number, str(error.absolute_path[0]), str(error.validator))
        for number, row in enumerate(rows)
        for error in oracle.iter_errors(row)
    }
    failures = _failing(rows, root)[1]
    found = set(failures.filter(pl.col("rule") != "finite").select("row", "column", "rule").iter_rows())
    assert expected == found


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=8))
def test_every_value_that_is_not_finite_is_refused(values: list[float]) -> None:
    """NaN and infinities fail the rule `finite`, in whatever bounds JSON Schema lets them pass."""
    arrow = pa.schema([("gain", pa.float64())])
    table = pa.table({"gain": pa.array(values, pa.float64(), from_pandas=False)}, schema=arrow)
    _, failures = check_batches(iter(table.to_batches()), arrow, {"properties": {"gain": {"maximum": 1e308}}})
    expected = [row for row, value in enumerate(values) if not math.isfinite(value)]
    assert expected == failures.filter(pl.col("rule") == "finite")["row"].to_list()


def test_a_whole_float_is_no_integer() -> None:
    """`1.0` in a float64 column breaks `type: integer`, although JSON Schema takes it for one."""
    arrow = pa.schema([("score", pa.float64())])
    table = pa.table({"score": [1.0]}, schema=arrow)
    _, failures = check_batches(iter(table.to_batches()), arrow, {"properties": {"score": {"type": "integer"}}})
    assert [("type", 0, "score", "1.0", "1.0 is not of type 'integer'")] == list(
        failures.select("rule", "row", "column", "value", "message").iter_rows()
    )


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^a$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        (r"^query-\w+-(0|[1-9]\d*)$", "query-test-12", True),
        (r"^query-\w+-(0|[1-9]\d*)$", "query-test-012", False),
        (r"b", "abc", True),
    ],
)
def test_patterns_are_read_as_ecma_262_reads_them(pattern: str, text: str, *, expected: bool) -> None:
    """A final newline, Unicode digits and letters do not match, in `jsonschema` and in Polars alike."""
    arrow = pa.schema([("id", pa.string())])
    table = pa.table({"id": [text]}, schema=arrow)
    _, failures = check_batches(iter(table.to_batches()), arrow, {"properties": {"id": {"pattern": pattern}}})
    assert (expected, expected) == (ecma_search(pattern, text), failures.is_empty())


@pytest.mark.parametrize(
    "pattern", [r"a|^b", r"^a|b$", r"(?=a)", r"(?i)a", r".", r"a*?", r"\s", r"\bx", r"(a)\1", r"[[:alpha:]]"]
)
def test_patterns_that_engines_read_differently_are_not_compiled(pattern: str) -> None:
    """A pattern outside the portable subset goes to `jsonschema` row by row."""
    rules = compile_rows({"properties": {"id": {"pattern": pattern}}}, pl.Schema({"id": pl.String()}))
    assert (None, ["id"]) == (portable(pattern), [residual.column for residual in rules.residuals])


@pytest.mark.parametrize(
    "rule",
    [
        {"minimun": 1},
        {"properties": {"a": {"minimun": 1}}},
        {"properties": {"a": {"items": {"requierd": []}}}},
        {"anyOf": [{"typ": "string"}]},
    ],
)
def test_a_keyword_that_json_schema_does_not_know_is_refused(rule: dict[str, Any]) -> None:
    """A misspelt keyword is an error, because `jsonschema` would skip it in silence."""
    with pytest.raises(DataError, match="no keyword of JSON Schema"):
        compile_rows(rule, pl.Schema({"a": pl.Int64()}))


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_config_schema_is_wholly_compiled(kind: str) -> None:
    """No rule of a config's schema is left to the slow way, and its columns are the layout's."""
    columns = widen(pl.DataFrame(pl.from_arrow(SCHEMAS[kind].empty_table()))).schema
    rules = compile_rows(schema(kind), columns)
    assert ((), (), list(columns)) == (rules.residuals, rules.faults, list(schema(kind)["properties"]))


def test_failing_rows_are_counted_over_the_whole_file() -> None:
    """A failure's row is its 0-based place in the file, whatever the batches."""
    arrow = pa.schema([("query-id", pa.string()), ("n", pa.int64())])
    table = pa.table({"query-id": ["a", "b", "c", "d", "e"], "n": [0, 0, 0, -1, 0]}, schema=arrow)
    rows, failures = check_batches(iter(table.to_batches(2)), arrow, {"properties": {"n": {"minimum": 0}}})
    assert (5, [("minimum", 3, "n", "-1", "d", None, "-1 is less than the minimum of 0")]) == (
        rows,
        list(failures.iter_rows()),
    )
