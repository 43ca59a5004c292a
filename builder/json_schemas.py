"""JSON Schemas of rows and documents (draft 2020-12), and the validator that reads them.

Three differences from plain `jsonschema`, all on purpose: `1.0` is no integer (Arrow and JSON writers keep the two
apart, and so do we), a row's binary value counts as a string (JSON has none), and `pattern` is ECMA-262's search, as
the standard says (`builder.patterns`).
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from builder.patterns import ecma_search

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST_MESSAGE = 300


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_string(_checker: object, value: object) -> bool:
    return isinstance(value, str | bytes)


def _pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not ecma_search(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


Validator = extend(
    Draft202012Validator,
    {"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "string": _is_string}),
)


@lru_cache(maxsize=32)
def schema(name: str) -> Mapping[str, Any]:
    """The schema `builder/schemas/<name>.schema.json`."""
    document: dict[str, Any] = json.loads((resources.files("builder") / "schemas" / f"{name}.schema.json").read_bytes())
    Draft202012Validator.check_schema(document)
    return document


def errors(document: object, name: str) -> list[ValidationError]:
    """What jsonschema says of a document under the schema `name`, by place."""
    return sorted(Validator(schema(name)).iter_errors(document), key=lambda error: list(map(str, error.path)))


def faults(document: object, name: str) -> Iterator[tuple[str, str, object, str]]:
    """Each fault of a document under the schema `name`: path (`windows.0.count`), keyword, value, message."""
    for path, value in not_finite(document):
        yield path, "finite", value, f"{value} is not a finite number"
    for error in errors(document, name):
        path = ".".join(str(part) for part in error.absolute_path)
        yield path, str(error.validator), error.instance, shorten(error.message)


def not_finite(node: object, path: str = "") -> Iterator[tuple[str, float]]:
    """The path and value of each number that is not finite: JSON text cannot hold one, but `1e999` reads as one."""
    if isinstance(node, float) and not math.isfinite(node):
        yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from not_finite(child, f"{path}.{key}" if path else str(key))


def shorten(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """The text on one line, cut in its middle where it is long."""
    text = text.replace("\n", " ")
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
