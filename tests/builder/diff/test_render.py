"""The three renderers: the same words, and nothing that data could smuggle in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from builder.diff.render import as_html, as_markdown, as_text, visible
from builder.diff.report import Grid, Heading, Lines

HOSTILE = "a\x1b[31m|*x*<script>alert(1)</script>\n# b `c` \u202e [l](http://x) & @user"


class Tags(HTMLParser):
    """Collects a page's tags and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens; only cells carry a class, and the meta tags their attributes."""
        self.tags.add(tag)
        assert tag in {"html", "meta"} or attrs in ([], [("class", "n")])

    def handle_data(self, data: str) -> None:
        """Text of the page."""
        self.text += data


def report(text: str) -> list[Heading | Lines | Grid]:
    """A report that holds a text in every place."""
    return [Heading(text), Lines((text,)), Grid((text, text), ((text, "1"),))]


def test_text() -> None:
    """Plain text: words to the left, numbers to the right, the title and first lines without blanks between them."""
    grid = Grid(("system", "rank"), (("A", "1"), ("Longer", "10")))
    assert "title\n  one\n\nnext\n  system  rank\n  A          1\n  Longer    10\n" == as_text(
        [Heading("title"), Lines(("one",)), Heading("next"), grid]
    )


def test_markdown() -> None:
    """Markdown: a heading, a list, and a table whose numbers stand right."""
    grid = Grid(("system", "rank"), (("A", "1"),))
    expected = "## title\n\n* one\n\n### next\n\n| system | rank |\n| --- | ---: |\n| A | 1 |\n"
    assert expected == as_markdown([Heading("title"), Lines(("one",)), Heading("next"), grid])


def test_hostile_markdown() -> None:
    """Ids with Markdown's own signs, tags, line ends and terminal escapes stay one line of plain words."""
    text = as_markdown(report(HOSTILE))
    assert "\x1b" not in text
    assert [] == re.findall(r"(?<!\\)[*`<>\[\]]", re.sub(r"(?m)^\* ", "", text))
    assert 7 == len(text.strip().split("\n"))


def test_hostile_html() -> None:
    """A page holds no tag but its own, no script, no link, and says what the data said."""
    page = Tags()
    page.feed(as_html(report(HOSTILE)))
    assert {"html", "head", "meta", "title", "style", "body", "h1", "ul", "li", "table", "tr", "th", "td"} == page.tags
    assert "<script>alert(1)</script>" in page.text


@given(st.text())
def test_every_text_stays_on_its_line(text: str) -> None:
    """Whatever an id holds, a terminal gets printable characters on one line."""
    assert visible(text).isprintable()
    assert 5 == len(as_text(report(text)).split("\n"))


def test_visible_keeps_what_can_be_read() -> None:
    """Letters of any script stay; a control character becomes its escape."""
    assert "Größe 手引き \\x1b[0m\\n\\u202e" == visible("Größe 手引き \x1b[0m\n\u202e")
