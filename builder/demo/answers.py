"""What the demo's judges write: raw text as an LLM returns it, some of it odd and some of it unusable.

Formats of method spec sections 5.1 and 7.3. Oddities that a decoder must see through (thinking, fences,
bad escapes) are kept apart from faults that make an answer unusable, so that the share of the
latter is known.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CRITERIA = ("C1", "C2", "C3", "C4", "C5")


class Answer(NamedTuple):
    """An answer's raw text (None where the endpoint refused) and its finish_reason."""

    text: str | None
    finish_reason: str


def tournament(scores: Sequence[float]) -> dict[str, object]:
    """The object of a tournament answer: `scores[i]` is the score of `doc_<i + 1>`; equal scores in prompt order."""
    best_first = sorted(range(len(scores)), key=lambda place: -scores[place])
    return {
        "reasoning": "Compared the pages by how directly they answer.",
        "ranking": [f"doc_{place + 1}" for place in best_first],
        "scores": {f"doc_{place + 1}": score for place, score in enumerate(scores)},
    }


def rubric(verdicts: Sequence[Mapping[str, int]]) -> dict[str, object]:
    """The object of a rubric answer: `verdicts[i]` holds the five criteria of `doc_<i + 1>`."""
    return {
        f"doc_{place + 1}": {"reasoning": "Read on its own.", "criteria": dict(criteria)}
        for place, criteria in enumerate(verdicts)
    }


def plain(content: dict[str, object]) -> Answer:
    """The answer as asked for."""
    return Answer(json.dumps(content), "stop")


def _thinking(content: dict[str, object]) -> Answer:
    return Answer(f"<think>First a look at {{all}} of them.</think>\n{json.dumps(content)}", "stop")


def _orphan(content: dict[str, object]) -> Answer:
    return Answer(f"Weighing the pages.</think>\n{json.dumps(content)}", "stop")


def _fence(content: dict[str, object]) -> Answer:
    return Answer(f"```json\n{json.dumps(content)}\n```", "stop")


def _bad_escape(content: dict[str, object]) -> Answer:
    # Both stages hold the word "reasoning" first; a backslash that JSON does not know goes into its text.
    return Answer(json.dumps(content).replace('"reasoning": "', '"reasoning": "About \\pi pages. ', 1), "stop")


def _epilogue(content: dict[str, object]) -> Answer:
    return Answer(f"{json.dumps(content)}\nThe last pages were close.", "stop")


def _cut(content: dict[str, object]) -> Answer:
    text = json.dumps(content)
    return Answer(text[: 2 * len(text) // 3], "length")


def _prose(content: dict[str, object]) -> Answer:
    return Answer(f"1. The first page is best. 2. The other {len(content)} matter less.", "stop")


def _unclosed(content: dict[str, object]) -> Answer:
    return Answer(f"<think>Perhaps {json.dumps(content)}", "stop")


def _refused(_content: dict[str, object]) -> Answer:
    return Answer(None, "content_filter")


def _missing_score(content: dict[str, object]) -> Answer:
    scores = dict(list(_object(content["scores"]).items())[:-1])
    return Answer(json.dumps({**content, "scores": scores}), "stop")


def _nan(content: dict[str, object]) -> Answer:
    return Answer(json.dumps({**content, "scores": {**_object(content["scores"]), "doc_1": float("nan")}}), "stop")


def _missing_document(content: dict[str, object]) -> Answer:
    return Answer(json.dumps(dict(list(content.items())[:-1])), "stop")


def _summary(content: dict[str, object]) -> Answer:
    return Answer(json.dumps({**content, "summary": "Few of the pages answer."}), "stop")


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)  # noqa: S101 - built a few lines above
    return value


# Each kind comes in turn, so that every kind is met.
ODD: tuple[Callable[[dict[str, object]], Answer], ...] = (_thinking, _fence, _bad_escape, _orphan, _epilogue)
UNUSABLE: dict[str, tuple[Callable[[dict[str, object]], Answer], ...]] = {
    "tournament": (_cut, _prose, _missing_score, _nan, _refused, _unclosed),
    "rubric": (_cut, _missing_document, _summary, _refused),
}
