"""Text from data as a person may be shown it: on one line, of bounded length, nothing that a terminal obeys.

Ids and names are exact code points and are never normalised, so two of them may look the same. Where a message is
about a name, it is shown in ASCII, with escapes for all else: then the two can be told apart.
"""

from __future__ import annotations

import unicodedata

LONGEST = 120
"""Characters of a value that a message shows."""

_NAMES = frozenset({"id", "query-id", "corpus-id", "corpus-ids", "model", "retriever", "subset", "domain"})
"""Columns that hold names, which are compared as they are."""


def visible(text: str) -> str:
    """The text on one line; what cannot be printed, or would change the direction of what follows, as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def excerpt(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def quoted(value: object, column: str | None = None) -> str:
    """A value as Python would write it, cut where it is long; a name in ASCII (a str without a column is one)."""
    if isinstance(value, str):
        is_name = column is None or column in _NAMES
        shown = ascii(value[:LONGEST]) if is_name else repr(value[:LONGEST])
        return shown if len(value) <= LONGEST else f"{shown}... ({len(value):,} characters)"
    try:
        return excerpt(repr(value))
    except RecursionError:
        return "(nested too deeply to be shown)"


def plain(name: str) -> str:
    """A name in a sentence: as it is where that is plain to see, else as `quoted` has it."""
    is_plain = name.isascii() and name.isprintable() and name == name.strip() and len(name) <= LONGEST
    return name if is_plain else quoted(name)


def look_alike(one: str, other: str) -> bool:
    """Whether two different names differ only in what is hard to see: normalisation, case, blanks, invisible signs."""
    return one != other and _outline(one) == _outline(other)


def _outline(text: str) -> str:
    flat = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in flat if not char.isspace() and unicodedata.category(char) not in {"Cc", "Cf"})
