"""Compile the row keywords of a JSON Schema to Polars expressions that say, row by row, whether a rule holds.

What is compiled means what `builder.json_schemas.Validator` means by it (hypothesis compares the two). A column whose
schema uses a keyword outside the list is not compiled: its values are checked one by one with `jsonschema`. A keyword
that JSON Schema itself does not know is refused, because `jsonschema` would skip it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from jsonschema import Draft202012Validator

from builder.patterns import portable
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    }
)
_EXACT = 2**53
_INT64 = (-(2**63), 2**63 - 1)
_KINDS: dict[type[pl.DataType], frozenset[str]] = {
    pl.Int64: frozenset({"integer", "number"}),
    pl.Float64: frozenset({"number"}),
    pl.String: frozenset({"string"}),
    pl.Binary: frozenset({"string"}),
    pl.Boolean: frozenset({"boolean"}),
    pl.List: frozenset({"array"}),
    pl.Struct: frozenset({"object"}),
    pl.Null: frozenset(),
}


@dataclass(frozen=True)
class Check:
    """One rule on one column: `holds` is true in every row that keeps it (never null)."""

    column: str
    keyword: str
    limit: object
    holds: pl.Expr


@dataclass(frozen=True)
class Residual:
    """What is left to `jsonschema`: a column's schema, or (column None) the schema of the whole row."""

    column: str | None
    schema: Mapping[str, Any] | bool


@dataclass(frozen=True)
class FileFault:
    """A rule that every row of the file breaks, because a column is missing or not allowed."""

    column: str
    keyword: str
    message: str


@dataclass(frozen=True)
class RowRules:
    """A schema compiled for the columns of one file."""

    checks: tuple[Check, ...]
    residuals: tuple[Residual, ...]
    faults: tuple[FileFault, ...]


class _NotCompiledError(Exception):
    """This node is left to `jsonschema`."""


def refuse_unknown_keywords(schema: object) -> None:
    """Raise where a schema uses a keyword that JSON Schema does not know (and that does not start with `x-`).

    Raises:
        DataError: `jsonschema` would skip the keyword in silence.
    """
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        known = keyword in Draft202012Validator.VALIDATORS or keyword in _ANNOTATIONS or keyword.startswith("x-")
        if not known and keyword not in {"then", "else", "minContains", "maxContains", "$anchor", "$dynamicAnchor"}:
            raise DataError(f"the schema uses '{keyword}', which is no keyword of JSON Schema", remedy="mend its name.")
        if keyword in {"properties", "patternProperties", "$defs", "dependentSchemas"}:
            for part in value.values():
                refuse_unknown_keywords(part)
        elif keyword in {"allOf", "anyOf", "oneOf", "prefixItems"}:
            for part in value:
                refuse_unknown_keywords(part)
        elif isinstance(value, dict) and keyword not in {"const", "dependentRequired"} and not keyword.startswith("x-"):
            refuse_unknown_keywords(value)


def compile_rows(schema: Mapping[str, Any], columns: Mapping[str, pl.DataType]) -> RowRules:
    """Compile a row's schema for a file with these columns (integers widened to Int64, reals to Float64).

    Every Float64 value, at any depth, also gets the rule `finite`: JSON Schema lets NaN pass `maximum`.

    Raises:
        DataError: the schema uses a keyword that JSON Schema does not know.
    """
    refuse_unknown_keywords(schema)
    finite = tuple(check for name, dtype in columns.items() for check in _finite(name, pl.col(name), dtype))
    known = {"type", "required", "properties", "additionalProperties"}
    if any(key not in known | _ANNOTATIONS and not key.startswith("x-") for key in schema):
        return RowRules(finite, (Residual(None, schema),), ())
    if "type" in schema and "object" not in _names(schema["type"]):
        return RowRules(finite, (Residual(None, schema),), ())
    properties: Mapping[str, Any] = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    checks: list[Check] = list(finite)
    residuals: list[Residual] = []
    faults = [
        FileFault(name, "required", f"'{name}' is a required column")
        for name in schema.get("required", ())
        if name not in columns
    ]
    for name, dtype in columns.items():
        rule = properties.get(name, extra)
        if name not in properties and extra is False:
            faults.append(FileFault(name, "additionalProperties", f"the column '{name}' is not in the schema"))
            continue
        try:
            checks += _node(rule, pl.col(name), dtype, name)
        except _NotCompiledError:
            residuals.append(Residual(name, rule))
    return RowRules(tuple(checks), tuple(residuals), tuple(faults))


def _finite(path: str, expr: pl.Expr, dtype: pl.DataType) -> Iterator[Check]:
    if isinstance(dtype, pl.Float64):
        yield Check(path, "finite", None, expr.is_finite().fill_null(value=True))
    elif isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from _finite(f"{path}.{field.name}", expr.struct.field(field.name), _data_type(field.dtype))
    elif isinstance(dtype, pl.List):
        for inner in _finite(path, pl.element(), _data_type(dtype.inner)):
            yield Check(path, "finite", None, expr.list.eval(inner.holds).list.all().fill_null(value=True))


def _node(schema: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    """The checks of one schema node on one expression."""
    if schema is True:
        return []
    if schema is False:
        return [Check(path, "false", None, _never(expr))]
    if not isinstance(schema, dict) or type(dtype) not in _KINDS:
        raise _NotCompiledError
    checks: list[Check] = []
    for keyword, limit in schema.items():
        if keyword in _ANNOTATIONS or keyword.startswith("x-"):
            continue
        compiler = _COMPILERS.get(keyword)
        if compiler is None:
            raise _NotCompiledError
        checks += compiler(schema, limit, expr, dtype, path)
    return checks


def _never(expr: pl.Expr) -> pl.Expr:
    return expr.is_null() & pl.lit(value=False)


def _names(types: object) -> list[str]:
    return [types] if isinstance(types, str) else list(types) if isinstance(types, list) else []


def _data_type(dtype: object) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype  # type: ignore[return-value]  # polars allows classes


def _or_null(expr: pl.Expr, holds: pl.Expr) -> pl.Expr:
    return expr.is_null() | holds.fill_null(value=False)


def _type(_schema: object, limit: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    names = set(_names(limit))
    matches = bool(_KINDS[type(dtype)] & names)
    if matches and "null" in names:
        return []
    holds = expr.is_not_null() if matches else expr.is_null() if "null" in names else _never(expr)
    return [Check(path, "type", limit, holds)]


def _number(keyword: str) -> Callable[..., list[Check]]:
    """`minimum`, `maximum` and their exclusive forms, exact for 64-bit integers too."""

    def compile_(_schema: object, limit: float, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
        lower, exclusive = "inimum" in keyword, keyword.startswith("exclusive")
        if isinstance(dtype, pl.Int64):
            # x > 2.5 is x >= 3 and x >= 2.5 is x >= 3: a whole bound keeps the comparison in integers.
            if lower:
                bound = math.floor(limit) + 1 if exclusive else math.ceil(limit)
                holds = _never(expr) if bound > _INT64[1] else expr >= max(bound, _INT64[0])
            else:
                bound = math.ceil(limit) - 1 if exclusive else math.floor(limit)
                holds = _never(expr) if bound < _INT64[0] else expr <= min(bound, _INT64[1])
        elif isinstance(dtype, pl.Float64):
            if isinstance(limit, int) and abs(limit) > _EXACT:
                raise _NotCompiledError
            bound_ = float(limit)
            compare = (
                (expr > bound_ if exclusive else expr >= bound_)
                if lower
                else (expr < bound_ if exclusive else expr <= bound_)
            )
            holds = expr.is_nan() | compare  # what Python's comparison lets pass; `finite` refuses it
        else:
            return []
        return [Check(path, keyword, limit, _or_null(expr, holds))]

    return compile_


def _enum(_schema: object, limit: list[object], expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    return [Check(path, "enum", limit, _one_of(limit, expr, dtype))]


def _const(_schema: object, limit: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    return [Check(path, "const", limit, _one_of([limit], expr, dtype))]


def _one_of(values: list[object], expr: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    literals: list[pl.Expr]
    if isinstance(dtype, pl.Int64):
        whole = [int(value) for value in numbers if value == int(value)]
        literals = [expr == pl.lit(value, pl.Int64) for value in whole if _INT64[0] <= value <= _INT64[1]]
    elif isinstance(dtype, pl.Float64):
        if any(abs(value) > _EXACT for value in numbers):
            raise _NotCompiledError
        literals = [(expr == float(value)) & expr.is_not_nan() for value in numbers]
    elif isinstance(dtype, pl.String):
        texts = [value for value in values if isinstance(value, str)]
        literals = [expr.is_in(texts)] if texts else []
    elif isinstance(dtype, pl.Boolean):
        literals = [expr == value for value in values if isinstance(value, bool)]
    elif isinstance(dtype, pl.Null):
        literals = []
    else:
        raise _NotCompiledError
    holds = pl.any_horizontal(literals).fill_null(value=False) if literals else _never(expr)
    return expr.is_null() | holds if None in values else expr.is_not_null() & holds


def _pattern(_schema: object, limit: str, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not isinstance(dtype, pl.String):
        return []
    pattern = portable(limit)
    if pattern is None:
        raise _NotCompiledError
    return [Check(path, "pattern", limit, _or_null(expr, expr.str.contains(pattern)))]


def _length(keyword: str, types: tuple[type[pl.DataType], ...]) -> Callable[..., list[Check]]:
    def compile_(_schema: object, limit: float, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
        if not isinstance(dtype, types):
            return []
        if isinstance(dtype, pl.String):
            size = expr.str.len_chars()
        elif isinstance(dtype, pl.Binary):
            size = expr.bin.size()
        else:
            size = expr.list.len()
        bound = int(limit)
        return [Check(path, keyword, limit, _or_null(expr, size >= bound if keyword[:3] == "min" else size <= bound))]

    return compile_


def _unique_items(_schema: object, limit: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not limit or not isinstance(dtype, pl.List):
        return []
    if not isinstance(_data_type(dtype.inner), pl.String | pl.Int64):
        raise _NotCompiledError
    return [Check(path, "uniqueItems", limit, _or_null(expr, expr.list.n_unique() == expr.list.len()))]


def _items(_schema: object, limit: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not isinstance(dtype, pl.List):
        return []
    inner = _node(limit, pl.element(), _data_type(dtype.inner), path)
    return [
        Check(path, check.keyword, check.limit, _or_null(expr, expr.list.eval(check.holds).list.all()))
        for check in inner
    ]


def _properties(_schema: object, limit: dict[str, Any], expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not isinstance(dtype, pl.Struct):
        return []
    checks: list[Check] = []
    for field in dtype.fields:
        if field.name in limit:
            inner = expr.struct.field(field.name)
            checks += _node(limit[field.name], inner, _data_type(field.dtype), f"{path}.{field.name}")
    return [Check(check.column, check.keyword, check.limit, expr.is_null() | check.holds) for check in checks]


def _required(_schema: object, limit: list[str], expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not isinstance(dtype, pl.Struct):
        return []
    names = {field.name for field in dtype.fields}
    return [Check(path, "required", name, expr.is_null()) for name in limit if name not in names]


def _additional(schema: Mapping[str, Any], limit: object, expr: pl.Expr, dtype: pl.DataType, path: str) -> list[Check]:
    if not isinstance(dtype, pl.Struct) or limit is True:
        return []
    extra = [field for field in dtype.fields if field.name not in schema.get("properties", {})]
    if limit is False:
        return [Check(path, "additionalProperties", limit, expr.is_null())] if extra else []
    checks: list[Check] = []
    for field in extra:
        inner = expr.struct.field(field.name)
        checks += _node(limit, inner, _data_type(field.dtype), f"{path}.{field.name}")
    return [Check(check.column, check.keyword, check.limit, expr.is_null() | check.holds) for check in checks]


_COMPILERS: dict[str, Callable[..., list[Check]]] = {
    "type": _type,
    "minimum": _number("minimum"),
    "maximum": _number("maximum"),
    "exclusiveMinimum": _number("exclusiveMinimum"),
    "exclusiveMaximum": _number("exclusiveMaximum"),
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minLength": _length("minLength", (pl.String, pl.Binary)),
    "maxLength": _length("maxLength", (pl.String, pl.Binary)),
    "minItems": _length("minItems", (pl.List,)),
    "maxItems": _length("maxItems", (pl.List,)),
    "uniqueItems": _unique_items,
    "items": _items,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
}
