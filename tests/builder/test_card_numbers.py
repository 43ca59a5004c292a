"""How a card's numbers are printed, remembered and told apart from names; text from data as literal text."""

from __future__ import annotations

import html
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from builder.card_numbers import CardText, Declared, Kind, Numbers, check_marks, code_span, escape
from provenance.errors import BenchmarkError
from provenance.shown import visible

# Any text that a TOML file can hold.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})


def printed(text: str) -> list[tuple[str, Kind | None]]:
    """The numbers of a text without any marked span."""
    return [(number.text, number.kind) for number in CardText(text, ()).numbers]


def test_a_filter_prints_a_value_and_remembers_its_kind() -> None:
    """Each filter prints its form; the text has no mark left, and each number has its kind and source."""
    numbers = Numbers()
    show = numbers.filters()
    shown = numbers.resolve(
        f"{show['count'](2177100)} pairs, {show['percent'](0.8226)} %, {show['decimals'](-2.55884, 2)}, "
        f"{show['signed'](Decimal('2.6'))}, {show['tiny'](0.0)}, {show['tiny'](3.2e-13)}, "
        f"{show['declared'](Declared(3122771, 'card of release 2'))}, {show['escape']('Qwen3.5')}"
    )
    assert "2,177,100 pairs, 82.3 %, -2.56, +2.6, 0, 3e-13, 3,122,771, Qwen3.5" == shown.text
    expected = [
        ("2,177,100", Kind.RECOMPUTED, "the tree"),
        ("82.3", Kind.RECOMPUTED, "the tree"),
        ("-2.56", Kind.RECOMPUTED, "the tree"),
        ("+2.6", Kind.RECOMPUTED, "the tree"),
        ("0", Kind.RECOMPUTED, "the tree"),
        ("3", Kind.RECOMPUTED, "the tree"),
        ("-13", Kind.RECOMPUTED, "the tree"),
        ("3,122,771", Kind.DECLARED, "card of release 2"),
        ("3.5", Kind.NAME, ""),
    ]
    assert expected == [(number.text, number.kind, number.source) for number in shown.numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nDCG@10 of a 2PL model, v1", [Kind.NAME, Kind.NAME, Kind.NAME]),
        ("`top 150` and\n\n```python\nx = 7\n```\n", [Kind.NAME, Kind.NAME]),
        ("[the paper](https://arxiv.org/abs/2609.35739)", [Kind.NAME]),
        ("150 pages", [None]),
        ("a gap of 0.02, and (12)", [None, None]),
    ],
)
def test_names_are_told_from_loose_numbers(text: str, expected: list[Kind | None]) -> None:
    """Digits in code, in addresses and in words are names; any other number that no filter printed has no kind."""
    assert expected == [kind for _, kind in printed(text)]


def test_the_front_matter_is_no_part_of_the_body() -> None:
    """Numbers between the fences are left out, and lines are counted over the whole card."""
    card = CardText("---\nlicense: cc-by-4.0\n---\nwith 7\n", ())
    assert [(4, "7")] == [(number.line, number.text) for number in card.numbers]


@given(TEXTS)
@example("<b>|*_`[x](y)$1$~a~ &amp; #1\\")
@example("<!-- --> ![x](javascript:y)")
def test_escaped_text_is_literal(text: str) -> None:
    """Whatever the text, Markdown shows it as it stands, on one line."""
    shown = MARKDOWN.render(f"x{escape(text)}x")
    # A NUL and its like are shown by their escapes.
    expected = visible(" ".join(text.split()))
    assert expected == html.unescape(shown).removeprefix("<p>x").removesuffix("x</p>\n")


@given(TEXTS)
@example("a | `b` | <c>")
@example("``")
@example("\\|")
def test_a_code_span_in_a_table_is_one_cell(text: str) -> None:
    """Whatever the text, its code span is one cell of the table and the cell's only element."""
    shown = MARKDOWN.render(f"| a | b |\n|---|---|\n| x{code_span(text) if text.split() else ''} | y |\n")
    assert 2 == shown.count("<td")
    assert "<td>y</td>" in shown
    if text.split():
        assert 1 == shown.count("<code>")


def test_marks_in_hand_written_text_are_refused() -> None:
    """A noncharacter in a part would be taken for a mark: the file is named."""
    with pytest.raises(BenchmarkError, match=r"results\.md"):
        check_marks("a \ufdd1 b", "results.md")
