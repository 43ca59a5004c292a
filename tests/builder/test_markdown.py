"""Whatever the text, Markdown shows it as it stands and makes nothing of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from support.hostile import SAMPLES, TEXTS, structure, texts

from builder.card_numbers import code_span, escape
from builder.markdown import literal
from provenance.shown import visible

PAGE = "## {0}\n\n* {0}\n* {0}\n\n{0}\n\n| {0} | a |\n| --- | ---: |\n| {0} | 1 |\n"
BENIGN = PAGE.format("x")


def seen(text: str) -> str:
    """What a reader is to see: blanks at the ends and in a row have no meaning in Markdown."""
    return " ".join(visible(text).split())


def check(text: str) -> None:
    """The text is there six times, and nothing but it and the page's own elements."""
    page = PAGE.format(literal(text))
    if not text.strip(" "):
        return
    assert structure(BENIGN) == structure(page)
    assert [seen(text)] * 5 + ["a", seen(text), "1"] == [" ".join(found.split()) for found in _ordered(page)]


def _ordered(page: str) -> list[str]:
    heading, first, second, paragraph, *cells = texts(page)
    return [heading, first, second, paragraph, cells[0], cells[1], cells[2], cells[3]]


@given(TEXTS)
@example("1. - # x")
@example("123456789) x")
@example("\\")
def test_text_is_literal(text: str) -> None:
    """In a heading, an item, a paragraph and a cell: the same elements as with one letter, and the text itself."""
    check(text)


@pytest.mark.parametrize("text", SAMPLES)
def test_samples_are_literal(text: str) -> None:
    """Each kind of hostile text, and twice in a row."""
    check(text)
    check(text + text)


@pytest.mark.parametrize("text", ["http://x.y", "HTTPS://x.y", "see www.x.y", "WWW.X.Y", "ftp://x", "mailto:a@b.c"])
def test_a_bare_address_is_no_link(text: str) -> None:
    """What GitHub and the Hub make a link of without being asked stands behind a backslash, or as an entity."""
    for shown in (literal(text), escape(text)):
        assert "://" not in shown.replace("\\:", "")
        assert "www." not in shown.lower()
        assert "@" not in shown.replace("\\@", "")


@given(TEXTS)
def test_the_card_shows_what_cannot_be_printed(text: str) -> None:
    """Neither an escaped text nor a code span holds, or is read as, a control or a sign that turns the direction."""
    for shown in (escape(text), code_span(text) if text.split() else ""):
        assert shown.isprintable()
    if text.split():
        assert [visible(" ".join(text.split()))] == texts(f"x{escape(text)}x")[0][1:-1].split("\0")
