"""R2: every number of the card is of a known kind, and is what the tree and the benchmark file give.

What a number is. A run of digits in the card's body, with its sign, commas and points. (The front matter holds names
only, which C1 proves.) Its kind is known from how it was printed, see `builder.card_numbers`:

* recomputed: the card is rendered again from the tables, nothing is taken from the card or the manifest;
* declared: the benchmark file has it, with its source;
* verbatim: it stands in a hand-written part;
* name: it belongs to a name. Names are text from data or the benchmark file, code spans and fences, link targets and
  addresses, and words in which a digit touches a letter (nDCG@10, 2PL).

Any other number fails. A line that holds a number has to be the rendered line, so that a right number beside a wrong
name fails too.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING

import polars as pl

from builder import card
from builder.card_facts import read_facts
from builder.card_numbers import NUMBER, CardText, Kind, Printed, body_start
from builder.layout import README
from builder.manifest import configs_of, version
from builder.proofs.facts import Facts, UnprovableError
from builder.proofs.outcome import Coverage, Finding, Gap, Measure, fault
from builder.proofs.registry import proof
from builder.tables import UNREADABLE
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ORIGINS = {
    Kind.RECOMPUTED: "recomputed from {source}",
    Kind.DECLARED: "in the benchmark file (source: {source})",
    Kind.VERBATIM: "in the hand-written part {source}",
    Kind.NAME: "in the name that stands there",
    "unknown": "in the template",
}


@dataclass(frozen=True)
class Mismatch:
    """A number (or its line) that is not what the tree gives.

    `rule` is the kind of the number that should stand there, `unknown` where none should, or `line`. `line` is 1-based
    in the card that was looked at; for a missing line, where it should stand.
    """

    rule: str
    line: int
    printed: str
    message: str


@proof("R2", "each number of the card is recomputed and equal, declared with its source, or hand-written")
def card_numbers(facts: Facts) -> Iterator[Finding]:
    """Proves that each number of the card's body is what the tree's tables and the benchmark file give.

    The card is rendered again from the tables; each line with a number has to be the one that is rendered, and each
    number there has to be of a known kind. Where the numbers are right, the rest of the body has to be the rendered one
    too. It does not prove the figures (M1 keeps their bytes).
    """
    if not facts.made_here:
        yield Gap("the card was not written by this tool: the tree has no manifest")
        return
    expected = rendered(facts)
    try:
        actual = facts.inside(README).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        yield fault("utf-8", "the card is not UTF-8", file=README)
        return
    numbers = expected.numbers
    yield Coverage(rows=len(numbers), files=1)
    for kind in Kind:
        yield Measure(f"{kind} numbers", float(sum(number.kind == kind for number in numbers)))
    written_by = facts.manifest["tool"]["version"]
    found = list(mismatches(expected, actual)) or list(prose(expected.text, actual))
    if found and written_by != version():
        yield Gap(f"the card was written by version {written_by} of the tool, this is {version()}: validate with that")
        return
    for item in found:
        yield fault(item.rule, item.message, file=README, row=item.line - 1, value=item.printed)


def rendered(facts: Facts) -> CardText:
    """The card that the tree's tables give.

    Raises:
        UnprovableError: no benchmark file, or a table or document of the tree is missing or broken.
    """
    benchmark, configs = facts.benchmark, configs_of(facts.manifest)
    # Documents first: these keep their schemas, or nothing can be said.
    _ = facts.releases, facts.item_params()
    for _judge, name in facts.judge_files("windows"):
        facts.document(name, "windows")
    try:
        return card.render(read_facts(facts.path, benchmark, configs), card.figures_of(facts.path))
    except (ReleaseError, *UNREADABLE, pl.exceptions.PolarsError) as error:
        raise UnprovableError(f"the card cannot be rendered again: {error}") from error


def mismatches(expected: CardText, actual: str) -> Iterator[Mismatch]:
    """Where a card's numbers differ from those of the rendered card, and numbers of no known kind.

    Args:
        expected: the card rendered from the tree.
        actual: the card that lies there.
    """
    kinds: dict[int, list[Printed]] = {}
    for number in expected.numbers:
        kinds.setdefault(number.line, []).append(number)
        if number.kind is None:
            yield Mismatch("unknown", number.line, number.text, f"the template prints {number.text} of no known kind")
    wanted, found = _lines(expected.text), _lines(actual)
    matcher = SequenceMatcher(None, [text for _, text in found], [text for _, text in wanted], autojunk=False)
    for operation, start, end, other_start, other_end in matcher.get_opcodes():
        if operation != "equal":
            yield from _block(found[start:end], wanted[other_start:other_end], kinds)


def prose(expected: str, actual: str) -> Iterator[Mismatch]:
    """Where the body of a card is not the rendered one although its numbers are: a sentence was changed by hand."""
    first = actual.count("\n", 0, body_start(actual)) + 1
    wanted, found = (text[body_start(text) :].split("\n") for text in (expected, actual))
    for operation, start, end, other_start, other_end in SequenceMatcher(
        None, found, wanted, autojunk=False
    ).get_opcodes():
        if operation != "equal":
            message = f"the card is rendered with {chr(10).join(wanted[other_start:other_end])!r} here"
            yield Mismatch("prose", first + start, "\n".join(found[start:end]), message)


def _lines(text: str) -> list[tuple[int, str]]:
    """The body's lines that hold a digit, each with its 1-based number."""
    first = text.count("\n", 0, body_start(text)) + 1
    body = text[body_start(text) :].split("\n")
    return [(first + index, line) for index, line in enumerate(body) if NUMBER.search(line)]


def _block(
    found: Sequence[tuple[int, str]], wanted: Sequence[tuple[int, str]], kinds: dict[int, list[Printed]]
) -> Iterator[Mismatch]:
    for actual, expected in zip_longest(found, wanted):
        if actual is None:
            line, text = expected
            yield Mismatch("line", line, text, "a line of numbers is missing from the card, or stands elsewhere")
        elif expected is None:
            line, text = actual
            numbers = NUMBER.findall(text) or [text]
            yield from (
                Mismatch("unknown", line, number, f"{number} is neither recomputed nor declared nor hand-written")
                for number in numbers
            )
        else:
            yield from _line(actual, expected[1], kinds[expected[0]])


def _line(actual: tuple[int, str], expected: str, numbers: Sequence[Printed]) -> Iterator[Mismatch]:
    line, text = actual
    printed = NUMBER.findall(text)
    if NUMBER.sub("#", text) != NUMBER.sub("#", expected) or len(printed) != len(numbers):
        message = f"a line with numbers is not the one that the tree gives, which is: {expected}"
        yield Mismatch("line", line, text, message)
        return
    for was, number in zip(printed, numbers, strict=True):
        if was != number.text:
            kind = number.kind or "unknown"
            message = f"the card prints {was}; {_ORIGINS[kind].format(source=number.source)} it is {number.text}"
            yield Mismatch(kind, line, was, message)
