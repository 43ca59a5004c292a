"""JSON documents and rows against their schemas (draft 2020-12), read so that nothing is guessed.

Three differences from plain `jsonschema`, all on purpose: `1.0` is no integer (Arrow and JSON writers keep the two
apart, and so do we), a row's binary value counts as a string (JSON has none), and `pattern` is ECMA-262's search, as
the standard says (`builder.patterns`).
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from builder.patterns import ecma_search
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_DOCUMENT = 64 * 2**20
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


def parse(content: bytes, *, where: str) -> Any:
    """Parse a JSON document strictly.

    Raises:
        DataError: not UTF-8, not JSON, a key that is there twice, NaN or an infinity, nested too deep, too large.
    """

    def refuse(what: str) -> DataError:
        return DataError(f"not a JSON document: {what}", where=Where(where), remedy="write the file again.")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise refuse(f"the key {twice[:80]!r} is there twice")
        return result

    def constant(text: str) -> Any:
        raise refuse(f"{text} is no JSON number")

    def real(text: str) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise refuse(f"{text[:40]} is too large for a double")
        return value

    if len(content) > LONGEST_DOCUMENT:
        raise refuse(f"{len(content):,} bytes are more than the {LONGEST_DOCUMENT:,} that a document may have")
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant, parse_float=real)
    except RecursionError:
        raise refuse("it is nested too deep") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise refuse(shorten(str(error))) from None


def faults(document: object, name: str) -> Iterator[tuple[str, str, object, str]]:
    """Each fault of a document under the schema `name`: path (`windows.0.count`), keyword, value, message."""
    for error in sorted(Validator(schema(name)).iter_errors(document), key=lambda error: list(map(str, error.path))):
        path = ".".join(str(part) for part in error.absolute_path)
        yield path, str(error.validator), error.instance, shorten(error.message)


def shorten(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """The text on one line, cut in its middle where it is long."""
    text = text.replace("\n", " ")
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
