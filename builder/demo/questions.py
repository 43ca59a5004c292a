"""The demo's queries and human labels, with ids as upstream numbers them: over batches of language blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from builder.demo.texts import LANGUAGES

if TYPE_CHECKING:
    from builder.demo.texts import Domain


@dataclass(frozen=True)
class Query:
    """A question in one language."""

    number: int
    question: int
    language: str
    text: str

    @property
    def id(self) -> str:
        """The id in upstream's form."""
        return f"query-test-{self.number}"


def queries(domain: Domain) -> list[Query]:
    """Every query of a domain, by number.

    Numbers run over batches; a batch holds six language blocks. Blocks start with the domain's own language and
    each batch turns their order on by two, so that a row's position does not tell its language where there are
    two batches.
    """
    found: list[Query] = []
    first = 0
    start = LANGUAGES.index(domain.language)
    for batch, size in enumerate(domain.batches):
        for step in range(len(LANGUAGES)):
            language = LANGUAGES[(start + 2 * batch + step) % len(LANGUAGES)]
            for question in range(first, first + size):
                text = domain.questions[question].texts[language]
                found.append(Query(len(found), question, language, text))
        first += size
    return found


def labels(domain: Domain) -> list[tuple[Query, str, int]]:
    """(query, page id, grade) of every human label, by query and page number; grades are 1 and 2."""
    rows: list[tuple[Query, str, int]] = []
    for query in queries(domain):
        question = domain.questions[query.question]
        rows += [
            (query, page.id, question.labels[page.kind])
            for page in domain.pages
            if page.topic == question.topic and page.kind in question.labels
        ]
    return rows
