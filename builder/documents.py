"""JSON documents of a release tree: one form on the way out, strict on the way in."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from builder import json_schemas
from provenance.answers import DEEPEST_NESTING, too_deep
from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from pathlib import Path

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_LONGEST_KEY = 60
_MOST_DIGITS = 20
_INT64 = 2**63


def dump(document: Any) -> str:
    """JSON with indent 2, sorted keys, UTF-8, no NaN, a newline at the end (method spec section 9.3).

    Half a surrogate pair, which UTF-8 does not have, stays the escape that it was read from.

    Raises:
        ValueError: the document holds a NaN or an infinity.
    """
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write(document: Any, path: Path) -> None:
    """Write `dump(document)`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(document), encoding="utf-8", newline="\n")


def present(path: Path) -> Path:
    """The path, if a file is there.

    Raises:
        InputError: there is none, or it is a folder or a device.
    """
    if not path.is_file():
        raise InputError(
            "a file is missing", where=Where(str(path)), remedy="check the path, or fetch the inputs again."
        )
    return path


def read(path: Path) -> Any:
    """Read a JSON document; a repeated key, a NaN or anything after the document is refused.

    Raises:
        InputError: no such file.
        DataError: no JSON, not UTF-8, nested too deeply, or a repeated key.
    """
    present(path)
    try:
        return parse(path.read_bytes())
    except ValueError as error:
        raise DataError(
            f"not a JSON document we accept: {error}",
            where=Where(str(path)),
            remedy="write the file again: UTF-8 JSON, each key once, no NaN.",
        ) from error


def read_as(path: Path, schema: str) -> Any:
    """Read a JSON document that keeps a schema of ours, `builder/schemas/<schema>.schema.json`.

    Raises:
        InputError: no such file.
        DataError: as `read`; or it breaks the schema, and the first fault is named.
    """
    document = read(path)
    for column, _, value, message in json_schemas.faults(document, schema):
        raise DataError(
            f"the document is not of this tool's form: {message}",
            where=Where(str(path), column=column or None, value=value),
            remedy=f"builder/schemas/{schema}.schema.json says what it holds; `release validate` names every fault.",
        )
    return document


def parse(content: bytes | str) -> Any:
    """The value of a JSON text (UTF-8 where it comes as bytes).

    Raises:
        ValueError: it is none, or one that we do not take: a repeated key, a number that is not finite or an integer
            of more than 64 bits, half a surrogate pair, nested too deeply.
    """
    text = content if isinstance(content, str) else content.decode("utf-8")
    if too_deep(text.lstrip()):
        raise ValueError(f"nested deeper than {DEEPEST_NESTING}")
    value = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    if _ESCAPED_SURROGATE.search(text):
        # Two escapes may be the halves of one character: only the whole value tells.
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("an escape is half of a character") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:_LONGEST_KEY]!r} stands twice")
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:_LONGEST_KEY]} is no finite number")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS or not -_INT64 <= (number := int(digits)) < _INT64:
        raise ValueError(f"an integer of {len(digits)} characters does not fit 64 bits")
    return number
