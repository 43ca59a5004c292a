"""Which files are LFS objects: the rules of a `.gitattributes` file, read as git reads them.

Pure, so that a plan can be made and checked without git, and for two rule files (the remote's and the tree's) alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)')
_UNSUPPORTED = "[attr]"


@dataclass(frozen=True)
class _Rule:
    path: re.Pattern[str]
    whole_path: bool
    lfs: bool | None


class LfsRules:
    """The `filter` attribute of a root `.gitattributes`.

    Args:
        text: the file's content; empty for none.

    Raises:
        DataError: a line is of a kind that is not read here (a macro, an escaped name).
    """

    def __init__(self, text: str) -> None:
        self._rules = tuple(_parse(text))

    def lfs(self, path: str) -> bool:
        """Whether the file at `path`, relative to the root, is an LFS object: the last rule that speaks decides."""
        name = path.rsplit("/", 1)[-1]
        for rule in reversed(self._rules):
            if rule.path.fullmatch(path if rule.whole_path else name) is not None:
                return rule.lfs is True
        return False


def _parse(text: str) -> Iterator[_Rule]:
    for row, raw in enumerate(text.split("\n")):
        line = raw.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        quoted = _QUOTED.match(line)
        pattern, _, attributes = (quoted[1], "", line[quoted.end() :]) if quoted else _split(line)
        if line.startswith(_UNSUPPORTED) or "\\" in pattern or pattern.startswith("!"):
            raise DataError(
                "this rule is of a kind that a release does not use (macro, escape, negation)",
                where=Where(".gitattributes", row, value=line),
                remedy="write it as a plain pattern with its attributes.",
            )
        # git takes no notice of a pattern that ends with a slash: attributes belong to files.
        spoken = _filter(attributes.split())
        if spoken is not None and not pattern.endswith("/"):
            yield _Rule(*_compile(pattern), spoken[0])


def _split(line: str) -> tuple[str, str, str]:
    pattern, *rest = re.split(r"[ \t\r]+", line, maxsplit=1)
    return pattern, "", rest[0] if rest else ""


def _filter(attributes: list[str]) -> tuple[bool | None] | None:
    """What a rule says of `filter`: (is it lfs, None for unspecified), or None if it does not speak of it."""
    said: tuple[bool | None] | None = None
    for attribute in attributes:
        if attribute == "!filter":
            said = (None,)
        elif attribute.lstrip("-").partition("=")[0] == "filter":
            said = (attribute == "filter=lfs",)
    return said


def _compile(pattern: str) -> tuple[re.Pattern[str], bool]:
    """A pattern as a regular expression, and whether it is matched with the whole path (it has a slash in it)."""
    whole = "/" in pattern
    text = pattern.removeprefix("/")
    return re.compile("".join(_translate(text, whole_path=whole)), re.DOTALL), whole


def _translate(text: str, *, whole_path: bool) -> Iterator[str]:
    # git strips the literal start of a pattern first, so stars that follow it stand at a beginning.
    literal = len(text) - len(re.sub(r"^[^*?\[]+", "", text))
    at = 0
    while at < len(text):
        rest = text[at:]
        stars = len(rest) - len(rest.lstrip("*"))
        if stars:
            before = at == literal or text[at - 1] == "/"
            after = at + stars
            if whole_path and stars > 1 and before and text[after : after + 1] == "/":
                yield "(?:.*/)?"
                at = after + 1
            else:
                any_depth = whole_path and stars > 1 and before and after == len(text)
                yield ".*" if any_depth else "[^/]*"
                at = after
        elif rest[0] == "?":
            yield "[^/]"
            at += 1
        elif rest[0] == "[" and (end := _class_end(rest)) is not None:
            yield _class(rest[1:end])
            at += end + 1
        else:
            yield re.escape(rest[0])
            at += 1


def _class_end(text: str) -> int | None:
    start = 2 if text[1:2] in {"!", "^"} else 1
    end = text.find("]", start + 1)
    return end if end > 0 else None


def _class(inside: str) -> str:
    negated = inside[:1] in {"!", "^"}
    body = re.sub(r"([\\\]\[&~|^])", r"\\\1", inside[1:] if negated else inside)
    return f"(?!/)[{'^' if negated else ''}{body}]"
