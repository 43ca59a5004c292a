r"""From a judge's raw answer to the JSON object it holds (method spec section 5.2, parse version 3).

One path serves well-formed and damaged answers alike. A well-formed one costs a search for `{` and one
run of the C scanner; each further step is taken only when the answer calls for it.

Two steps of the spec change no outcome, because decoding starts at the first `{` and ends where the object
ends: a code fence and an orphan `</think>` lie outside the object, and are never looked at.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Literal

Category = Literal["truncated", "no_json", "invalid_json", "schema", "incomplete", "refused"]

MOST_ESCAPE_REPAIRS = 1000
# A nesting limit of our own, so that no answer's outcome hangs on Python's version or on the caller's stack.
DEEPEST_NESTING = 200

_OPENING, _CLOSING = "<think>", "</think>"
_ESCAPE_TOKEN = re.compile(r'"|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_NESTING_TOKEN = re.compile(r'["\[\]{}]|\\.', re.DOTALL)
_STRAY_QUOTE = re.compile(r'([0-9]\.?)"(?=\s*\})')
_DOCUMENT = re.compile(r"(?:doc(?:ument)?[\s_-]*)?0*([1-9][0-9]*)", re.IGNORECASE)

# No integer with more digits fits a double (the greatest has 309).
_MOST_DIGITS = 310
_LONGEST_CACHED = 32
# Longer slot numbers are beyond any window; this one is too.
_MOST_SLOT_DIGITS = 9
_BEYOND_ANY_WINDOW = 10**_MOST_SLOT_DIGITS


class UnusableAnswerError(Exception):
    """An answer that cannot enter a fit; `category` is one of the closed set of method spec section 5.4.

    It never reaches a person: the window is counted under its category.
    """

    def __init__(self, category: Category) -> None:
        self.category: Category = category
        super().__init__(category)


class _RepeatedKeyError(Exception):
    """A JSON object repeats a key."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedKeyError
    return found


def _integer(digits: str) -> int | float:
    """An integer; an infinity when it cannot fit a double (and Python may refuse to read it)."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_int=_integer)


def decode(answer: str) -> dict[str, Any]:
    r"""The JSON object of an answer, with the two repairs of method spec section 5.2 and no other.

    Args:
        answer: the raw text. Numbers may be NaN or infinite in what is returned, as JSON of Python allows;
            an integer beyond a double is returned as an infinity.

    Raises:
        UnusableAnswerError: `no_json` when there is no `{` outside the reasoning; `schema` when a key is
            repeated before anything that does not decode; `invalid_json` when the object at the first `{`
            does not decode after the repairs, or nests deeper than `DEEPEST_NESTING`.
    """
    text = _from_object(answer)
    if text is None:
        raise UnusableAnswerError("no_json")
    try:
        return _decode_repairing(text)
    except _RepeatedKeyError:
        raise UnusableAnswerError("schema") from None
    except json.JSONDecodeError:
        raise UnusableAnswerError("invalid_json") from None


def document(value: object) -> int:
    """The 1-based slot that a document identifier names (method spec section 5.2).

    Args:
        value: a decoded JSON value: `3`, `"3"`, `"doc_3"`, `"Document 03"`. A slot beyond any window comes
            back as a number beyond any window.

    Raises:
        UnusableAnswerError: `schema` when it is no document identifier.
    """
    slot = 0
    if type(value) is str:
        slot = _cached_slot(value) if len(value) <= _LONGEST_CACHED else _slot(value)
    elif type(value) is int:
        slot = value
    if slot <= 0:
        raise UnusableAnswerError("schema")
    return slot


def _slot(identifier: str) -> int:
    match = _DOCUMENT.fullmatch(identifier.strip())
    if match is None:
        return 0
    digits = match[1]
    return int(digits) if len(digits) <= _MOST_SLOT_DIGITS else _BEYOND_ANY_WINDOW


_cached_slot = lru_cache(maxsize=4096)(_slot)


def _from_object(answer: str) -> str | None:
    """The answer from the `{` that opens its object; None when all of it is reasoning or prose."""
    brace = answer.find("{")
    if brace < 0:
        return None
    if answer.find("<think", 0, brace) < 0:
        return answer[brace:]
    kept: list[str] = []  # the characters before the brace, without the blocks
    cursor = apart = 0  # what is kept before `apart` is parted from what follows by a block that is deleted only later
    while True:
        # A block that is deleted may leave `<thi` and `nk>` side by side: that is an opening too.
        left = "".join(kept[max(apart, len(kept) - len(_OPENING) + 1) :])
        joined = (left + answer[cursor : min(brace, cursor + len(_OPENING) - 1)]).find(_OPENING)
        opening = answer.find(_OPENING, cursor, brace) if joined < 0 else cursor + joined - len(left)
        closing = answer.find(_CLOSING, opening + len(_OPENING)) if joined >= 0 or opening >= 0 else -1
        if closing < 0:
            break
        if joined >= 0:
            del kept[len(kept) - len(left) + joined :]
        else:
            kept.extend(answer[cursor:opening])
        cursor = closing + len(_CLOSING)
        if brace < closing:
            brace = answer.find("{", cursor)
            if brace < 0:
                return None
        else:
            apart = len(kept)
    kept.extend(answer[cursor:brace])
    return None if "<think" in "".join(kept) else answer[brace:]


def _decode_repairing(text: str) -> dict[str, Any]:
    try:
        return _first_object(text)
    except json.JSONDecodeError:
        pass
    try:
        return _first_object(_escapes_repaired(text))
    except json.JSONDecodeError:
        without_stray_quotes = _STRAY_QUOTE.sub(r"\1", text)
        if without_stray_quotes == text:
            raise
    # The stray quotes are the same with doubled backslashes and without, so repair A starts afresh here.
    return _first_object(_escapes_repaired(without_stray_quotes))


def _first_object(text: str) -> dict[str, Any]:
    """The object at the start of `text`; what follows it is not looked at."""
    if too_deep(text):
        raise json.JSONDecodeError("nested too deeply", text, 0)
    found: dict[str, Any]
    found, _ = _DECODER.raw_decode(text)
    return found


def too_deep(text: str) -> bool:
    """Whether the JSON value at the start of a text nests deeper than `DEEPEST_NESTING`."""
    if text.count("{") + text.count("[") <= DEEPEST_NESTING:
        return False
    depth, in_string = 0, False
    for token in _NESTING_TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif mark in "{[":
            depth += 1
            if depth > DEEPEST_NESTING:
                return True
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return False
    return False


def _escapes_repaired(text: str) -> str:
    """Repair A in one pass: what doubling each bad backslash at which the decoder stops comes to.

    The decoder meets the strings in order, so the first 1,000 bad escapes are doubled; the 1,001st stays bad,
    and fails the decoder if the object reaches that far.
    """
    pieces, done, repairs, in_string = [], 0, 0, False
    for token in _ESCAPE_TOKEN.finditer(text):
        if token[0] == '"':
            in_string = not in_string
        elif not in_string or repairs == MOST_ESCAPE_REPAIRS:
            # A backslash between strings: the decoder stops here, and no repair helps.
            break
        elif token[0] == "\\":
            pieces.append(text[done : token.start()])
            pieces.append("\\")
            done = token.start()
            repairs += 1
    pieces.append(text[done:])
    return "".join(pieces)
