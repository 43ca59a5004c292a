"""How relevant a page of the demo really is to a query: what its simulated judges and rerankers see through noise.

It follows from how pages and questions were made, and only partly from the human labels: pages of
the right topic that nobody labelled are relevant too, as in the real benchmark.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from builder.demo.questions import queries

if TYPE_CHECKING:
    from builder.demo.texts import Domain, Page, Question

_BY_GRADE = {2: 2.6, 1: 1.3}
_SAME_TOPIC, _NEXT_TOPIC, _OTHER_TOPIC = 0.4, -1.2, -2.0
_PAGE_SPREAD, _LANGUAGE_SPREAD = 0.6, 0.25


def noise(*key: object, spread: float) -> float:
    """A normal number with mean 0 and standard deviation `spread`, fixed by its key.

    The exactly rounded sum of twelve uniforms, so it is bit-exact on every machine and in every Python (whose `sum`
    of floats changed in 3.12).
    """
    stream = random.Random("/".join(map(str, key)))  # noqa: S311 - a simulation, no secret
    return spread * (math.fsum(stream.random() for _ in range(12)) - 6.0)


def relevance(domain: Domain, *, seed: int) -> dict[tuple[str, str], float]:
    """(query id, page id) -> relevance in logits, for every pair of a domain.

    A page's noise is shared by the six translations of a question, and each translation adds a little of its own.
    """
    values = {}
    for query in queries(domain):
        question = domain.questions[query.question]
        for page in domain.pages:
            key = (seed, "relevance", domain.name, query.question, page.number)
            own = noise(*key, spread=_PAGE_SPREAD) + noise(*key, query.language, spread=_LANGUAGE_SPREAD)
            values[query.id, page.id] = _level(page, question) + own
    return values


def _level(page: Page, question: Question) -> float:
    # A reissued page says what its original says, whether or not somebody labelled it.
    kind = "overview" if page.kind == "copy" else page.kind
    if page.topic == question.topic:
        return _BY_GRADE.get(question.labels.get(kind, 0), _SAME_TOPIC)
    return _NEXT_TOPIC if abs(page.topic - question.topic) == 1 else _OTHER_TOPIC
