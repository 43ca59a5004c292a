"""The demo's texts: short pages written for this project, five a topic, in the domain's own language.

Facts, questions and translations are data (`data/<domain>.toml`); the numbers of tables and
charts move on by a seeded stream. Nothing here depends on a library's version.
"""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("english", "french", "german", "italian", "portuguese", "spanish")
DOMAINS = (
    "computer_science",
    "energy",
    "finance_en",
    "finance_fr",
    "hr",
    "industrial",
    "pharmaceuticals",
    "physics",
)
YEARS = (2023, 2024, 2025)

_KINDS = ("overview", "detail", "table", "chart", "figure")
# A reissued page (another page's text, word for word) and a picture without any text take the place of two figures.
_COPY_OF_TOPIC, _COPY_IN_TOPIC, _PICTURE_IN_TOPIC = 5, 6, 7

_PHRASES = {
    "english": {
        "outline": "The next pages give the details, a table and a chart. {measure}.",
        "detail": "{title} in detail",
        "table": "Table {number}. {measure}",
        "chart": "Chart {number}. {measure}",
        "reading": "Over {years} years {most} leads with {top}, and {least} comes last with {bottom}.",
        "figure": "Figure {number}. {caption}",
    },
    "french": {
        "outline": "Les pages suivantes donnent les détails, un tableau et un graphique. {measure}.",
        "detail": "{title} en détail",
        "table": "Tableau {number}. {measure}",
        "chart": "Graphique {number}. {measure}",
        "reading": "Sur {years} ans, {most} vient en tête avec {top}, et {least} en dernier avec {bottom}.",
        "figure": "Figure {number}. {caption}",
    },
}


@dataclass(frozen=True)
class Page:
    """A page of the corpus.

    `topic` is what its text is about; `rows` is what the drawing of a table or chart shows (name, a value a year).
    """

    number: int
    topic: int
    kind: str
    text: str
    rows: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def id(self) -> str:
        """The id in upstream's form."""
        return f"corpus-test-{self.number}"


@dataclass(frozen=True)
class Question:
    """A question in six languages; `labels` gives the human grade of each labelled page of its topic, by kind."""

    topic: int
    labels: Mapping[str, int]
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Domain:
    """A domain's pages and questions; `glossary` rows hold one word a language, in the order of `LANGUAGES`."""

    name: str
    language: str
    title: str
    batches: tuple[int, ...]
    glossary: tuple[tuple[str, ...], ...]
    pages: tuple[Page, ...]
    questions: tuple[Question, ...]


def load_domain(name: str, *, seed: int) -> Domain:
    """Read a domain's data and write its pages: 40, of which one is without text and one repeats another's text."""
    content = (resources.files("builder") / "demo" / "data" / f"{name}.toml").read_text("utf-8")
    document = tomllib.loads(content)
    return Domain(
        name=name,
        language=document["language"],
        title=document["title"],
        batches=tuple(document["batches"]),
        glossary=tuple(tuple(row.split()) for row in document["glossary"]),
        pages=_pages(name, document, seed),
        questions=tuple(
            Question(
                topic=question["topic"],
                labels=question["labels"],
                texts={language: question[language] for language in LANGUAGES},
            )
            for question in document["questions"]
        ),
    )


def _pages(name: str, document: dict[str, Any], seed: int) -> tuple[Page, ...]:
    phrases = _PHRASES[document["language"]]
    topics = document["topics"]
    pages: list[Page] = []
    for index, topic in enumerate(topics):
        rows = _rows(topic, random.Random(f"{seed}/rows/{name}/{index}"))  # noqa: S311 - no secret
        for kind in _KINDS:
            text = _text(kind, phrases, topic, index + 1, rows)
            drawn = rows if kind in ("table", "chart") else ()
            if (index, kind) == (_COPY_IN_TOPIC, "figure"):
                original = topics[_COPY_OF_TOPIC]
                page = Page(len(pages), _COPY_OF_TOPIC, "copy", _text("overview", phrases, original, 0, ()))
            elif (index, kind) == (_PICTURE_IN_TOPIC, "figure"):
                page = Page(len(pages), index, "picture", "")
            else:
                page = Page(len(pages), index, kind, text, drawn)
            pages.append(page)
    return tuple(pages)


def _rows(topic: Mapping[str, Any], stream: random.Random) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """An item's value in the first year is the data's; each next year it changes by at most 4 percent."""
    rows = []
    for item, value in zip(topic["items"], topic["values"], strict=True):
        values = [value]
        for _ in YEARS[1:]:
            values.append(values[-1] * stream.randint(96, 104) // 100)
        rows.append((item, tuple(values)))
    return tuple(rows)


def _text(
    kind: str,
    phrases: Mapping[str, str],
    topic: Mapping[str, Any],
    number: int,
    rows: tuple[tuple[str, tuple[int, ...]], ...],
) -> str:
    title, facts, measure = topic["title"], topic["facts"], topic["measure"]
    if kind == "overview":
        return "\n".join([title, facts[0], phrases["outline"].format(measure=measure)])
    if kind == "detail":
        return "\n".join([phrases["detail"].format(title=title), *facts[1:]])
    if kind == "figure":
        return phrases["figure"].format(number=number, caption=topic["figure"])
    heading = phrases[kind].format(number=number, measure=measure)
    if kind == "table":
        lines = [" | ".join(["", *map(str, YEARS)])] + [" | ".join([item, *map(str, values)]) for item, values in rows]
        return "\n".join([heading, *lines])
    (most, top), (least, bottom) = (
        choose(((item, values[-1]) for item, values in rows), key=lambda row: row[1]) for choose in (max, min)
    )
    reading = phrases["reading"].format(years=len(YEARS), most=most, top=top, least=least, bottom=bottom)
    return f"{heading}\n{reading}"
