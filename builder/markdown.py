"""Text from data as literal text in Markdown: what it holds starts no heading, list, table, link, tag or formula."""

from __future__ import annotations

import re

from provenance.shown import visible

_SIGNS = re.compile(r"[\\`*_{}\[\]<>|#~&$@!]")
# What begins a list, a rule or an underlined heading at the start of a line; what makes a link of a bare address.
_START = re.compile(r"^(?:(?=[-+=])|(\d{1,9})(?=[.)]))")
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def literal(text: str) -> str:
    """The text on one line with a backslash before each sign; it may begin a line or be a cell of a table."""
    escaped = _SIGNS.sub(r"\\\g<0>", visible(text).strip(" "))
    escaped = _START.sub(lambda match: f"{match[1] or ''}\\", escaped)
    return _ADDRESS.sub(r"\\\g<0>", escaped)


def longest_run(text: str, char: str) -> int:
    """The length of the longest unbroken run of a character."""
    return max((len(run) for run in re.findall(f"{re.escape(char)}+", text)), default=0)
