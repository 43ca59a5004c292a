r"""Regular expressions of the schemas: the subset that ECMA-262, Python and Rust read alike.

JSON Schema means ECMA-262, `jsonschema` uses Python's `re`, Polars uses Rust's. They differ in `$` (Python also
matches before a final newline), in `\d` and `\w` (Unicode or ASCII), in `.` and in what they support. A pattern made of
the tokens below means the same in all three once `\d`, `\w` and `$` are spelled out.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<literal>[A-Za-z0-9_\-/ :,=@~<>&%#!;'"])
    | (?P<escaped>\\[.\-+*?()\[\]{}|^$\\/])
    | (?P<digit>\\d)
    | (?P<word>\\w)
    | (?P<class>\[\^?(?:[A-Za-z0-9_/ :,=@.+*]|\\[.\-+*?()\[\]{}|^$\\/dw]|(?<=[A-Za-z0-9])-(?=[A-Za-z0-9])|-(?=\]))+\])
    | (?P<group>\(\?:|\((?!\?)|\)|\|)
    | (?P<repeat>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})(?![*+?{]))
    """,
    re.VERBOSE,
)
_DIGIT = "0-9"
_WORD = "0-9A-Za-z_"


@lru_cache(maxsize=256)
def portable(pattern: str) -> str | None:
    r"""The pattern without anchors' and classes' differences, ending in `$` where it did; None if it is not portable.

    `\d` and `\w` become ASCII classes, as ECMA-262 has them. The result may be given to Rust as it is; for Python a
    final `$` has to become `\Z` (see `ecma_search`).
    """
    start = "^" if pattern.startswith("^") else ""
    stop = "$" if pattern.endswith("$") and not pattern.endswith("\\$") else ""
    body = pattern[len(start) : len(pattern) - len(stop)]
    if (start or stop) and _alternates_at_top(body):
        return None
    out = []
    position = 0
    while position < len(body):
        token = _TOKEN.match(body, position)
        if token is None:
            return None
        out.append(_spell(token))
        position = token.end()
    text = "".join(out)
    try:
        re.compile(text)
    except re.error:
        return None
    return start + text + stop


def ecma_search(pattern: str, text: str) -> bool:
    r"""Whether a search as ECMA-262 defines it finds `pattern`; what is not portable is left to Python's `re`."""
    return _python(pattern).search(text) is not None


@lru_cache(maxsize=256)
def _python(pattern: str) -> re.Pattern[str]:
    text = portable(pattern)
    if text is None:
        return re.compile(pattern)
    return re.compile(text[:-1] + r"\Z" if text.endswith("$") and not text.endswith("\\$") else text)


def _spell(token: re.Match[str]) -> str:
    if token["digit"]:
        return f"[{_DIGIT}]"
    if token["word"]:
        return f"[{_WORD}]"
    if token["class"]:
        return token["class"].replace(r"\d", _DIGIT).replace(r"\w", _WORD)
    return token[0]


def _alternates_at_top(body: str) -> bool:
    """Whether `|` stands outside every group, where it would cut an anchor off."""
    depth = 0
    for token in re.finditer(r"\\.|\[(?:\\.|[^\]])*\]|[()|]", body):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        elif token[0] == "|" and depth == 0:
            return True
    return False
