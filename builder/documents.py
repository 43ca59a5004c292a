"""JSON documents of a release tree: one form on the way out, strict on the way in."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from pathlib import Path

_SURROGATE = re.compile("[\ud800-\udfff]")


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


def read(path: Path) -> Any:
    """Read a JSON document; a repeated key, a NaN or anything after the document is refused.

    Raises:
        InputError: no such file.
        DataError: no JSON, not UTF-8, nested too deeply, or a repeated key.
    """
    if not path.is_file():
        raise InputError(
            "a file is missing", where=Where(str(path)), remedy="check the path, or fetch the inputs again."
        )
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"not a JSON document we accept: {error}",
            where=Where(str(path)),
            remedy="write the file again: UTF-8 JSON, each key once, no NaN.",
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(key for key in keys if keys.count(key) > 1)}' stands twice")
    return document


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")
