"""The numbers of a card: every one is printed through `Numbers`, which remembers where it stands and what kind it is.

A template prints through filters (`{{ pairs | count }}`). A filter puts its text between two marks that no text may
hold; `Numbers.resolve` takes the marks out again and gives the spans. So the card that a reader sees has no marks, and
proof R2 knows the kind of each digit:

    recomputed   counted or computed from the files of the tree
    declared     written in the benchmark file, printed beside its source
    name         part of a name or an id: text from data or the benchmark file, a code span, a digit inside a word
    verbatim     in a hand-written part
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from builder.leaderboard import printed
from builder.markdown import longest_run
from builder.sentences import signed
from provenance.errors import BenchmarkError
from provenance.shown import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal

# Noncharacters: Unicode keeps them for a program's own use, no text holds them.
_OPEN, _BETWEEN, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKED = re.compile(f"{_OPEN}(\\d+){_BETWEEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_TARGET = re.compile(r"\]\([^)\s]*\)|<?https?://[^\s)>]+>?")
# A digit that a letter touches is part of a word: nDCG@10, 2PL, v1, C5, text2image.
_WORD = re.compile(r"[\w@.-]*[^\W\d_][\w@.-]*")
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_ACTIVE = re.compile(r"[&<>`*_\[\]{}|\\#~$@]")
"""What means something to Markdown, HTML, the Hub's formulas or its links."""
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
"""What makes a link of a bare address."""


class Kind(StrEnum):
    """What a printed number is."""

    RECOMPUTED = "recomputed"
    DECLARED = "declared"
    NAME = "name"
    VERBATIM = "verbatim"


@dataclass(frozen=True)
class Span:
    """Text of the card from `start` to `end` (character offsets), its kind, and where its value comes from."""

    start: int
    end: int
    kind: Kind
    source: str


@dataclass(frozen=True)
class Declared:
    """A value that no file of a tree can give, with its source."""

    value: float | str
    source: str


@dataclass(frozen=True)
class Printed:
    """One number of a card: its 1-based line, its text, its kind (None: of no known kind) and its source."""

    line: int
    text: str
    kind: Kind | None
    source: str


@dataclass(frozen=True)
class CardText:
    """A rendered card: the text a reader sees, and the spans whose kind is known, in order."""

    text: str
    spans: tuple[Span, ...]

    @cached_property
    def numbers(self) -> tuple[Printed, ...]:
        """Every number of the body in order. Digits of the front matter are names, which proof C1 looks after."""
        return tuple(self._numbers())

    def _numbers(self) -> Iterator[Printed]:
        owner: list[Span | None] = [None] * len(self.text)
        # What a filter printed is what it says, wherever it stands.
        for span in [*_names(self.text), *self.spans]:
            owner[span.start : span.end] = [span] * (span.end - span.start)
        line, counted = 1, 0
        for match in NUMBER.finditer(self.text, body_start(self.text)):
            line, counted = line + self.text.count("\n", counted, match.start()), match.start()
            signed_ = match[0].startswith(("+", "-"))
            owners = set(owner[match.start() + signed_ : match.end()])
            whole = owners.pop() if len(owners) == 1 else None
            kind, source = (None, "") if whole is None else (whole.kind, whole.source)
            yield Printed(line, match[0], kind, source)


@dataclass
class Numbers:
    """The recorder of one rendering: its methods are the templates' filters."""

    _marked: list[tuple[Kind, str]] = field(default_factory=list)

    def mark(self, text: str, kind: Kind, source: str) -> str:
        """Put `text` between marks that `resolve` finds again."""
        self._marked.append((kind, source))
        return f"{_OPEN}{len(self._marked) - 1}{_BETWEEN}{text}{_CLOSE}"

    def filters(self) -> dict[str, Callable[..., str]]:
        """The filters by name: how a value is printed, and as what kind of number."""
        return {
            "count": lambda value: self._recomputed(f"{value:,}"),
            "decimals": lambda value, places: self._recomputed(f"{value:.{places}f}"),
            "percent": lambda value: self._recomputed(printed(value)),
            "tenths": lambda value: self._recomputed(f"{value:.1f}"),
            "signed": lambda value: self._recomputed(_signed(value)),
            "tiny": lambda value: self._recomputed("0" if value == 0 else f"{value:.0e}"),
            "declared": self._declared,
            "escape": lambda text: self.mark(escape(text), Kind.NAME, ""),
            "code": lambda text: self.mark(code_span(text), Kind.NAME, ""),
            "verbatim": self._verbatim,
        }

    def resolve(self, text: str) -> CardText:
        """Take the marks out of a rendering."""
        spans: list[Span] = []
        parts: list[str] = []
        length = end = 0
        for match in _MARKED.finditer(text):
            before = text[end : match.start()]
            start = length + len(before)
            length = start + len(match[2])
            spans.append(Span(start, length, *self._marked[int(match[1])]))
            parts += [before, match[2]]
            end = match.end()
        return CardText("".join([*parts, text[end:]]), tuple(spans))

    def _recomputed(self, text: str) -> str:
        return self.mark(text, Kind.RECOMPUTED, "the tree")

    def _declared(self, declared: Declared) -> str:
        value = declared.value
        text = f"{value:,}" if isinstance(value, int) else escape(value)
        return self.mark(text, Kind.DECLARED, declared.source)

    def _verbatim(self, text: str) -> str:
        return self.mark(text, Kind.VERBATIM, "hand-written")


def check_marks(text: str, where: str) -> None:
    """Refuse hand-written text that holds one of the marks.

    Raises:
        BenchmarkError: it does.
    """
    if re.search(f"[{_OPEN}{_BETWEEN}{_CLOSE}]", text):
        raise BenchmarkError(
            f"{where} holds a Unicode noncharacter (U+FDD0 to U+FDD2)", remedy="remove it: it stands for nothing."
        )


def body_start(text: str) -> int:
    """Where the body of a card begins: behind the second fence of its front matter, or at 0 without one."""
    end = text.find("\n---\n", 3)
    return end + len("\n---\n") if text.startswith("---\n") and end >= 0 else 0


def escape(text: Any) -> str:
    """Text from data or the benchmark file as literal text in Markdown and HTML, on one line."""
    escaped = _ACTIVE.sub(lambda match: _entity(match[0]), _flat(text))
    return _ADDRESS.sub(lambda match: _entity(match[0]), escaped)


def code_span(text: Any) -> str:
    """Text as a Markdown code span, on one line; it may stand in a table cell."""
    flat = _flat(text)
    # No escape works in a code span, but that a table cell takes `\|` for a bar.
    flat = flat.replace("|", "\\|")
    fence = "`" * (longest_run(flat, "`") + 1)
    padding = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{padding}{flat}{padding}{fence}"


def _flat(text: Any) -> str:
    return visible(" ".join(str(text).split()))


def _entity(char: str) -> str:
    return f"&#{ord(char)};"


def _signed(value: Decimal) -> str:
    return signed(value)


def _names(text: str) -> Iterator[Span]:
    """What the text itself shows to be a name: code, link targets, addresses, words with a digit in them."""
    for pattern in (_FENCE, _CODE, _TARGET, _WORD):
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), Kind.NAME, "")
