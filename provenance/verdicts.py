"""What a judge's answer says about its window: scores (tournament) or verdicts (rubric), or why it is unusable.

Method spec sections 5.3 (tournament), 7.3 (rubric) and 5.4 (the closed set of categories). No value is ever
filled in, and none is read from prose.

The rule of section 5.4 about an answer that equals the prompt's worked example is not applied: it needs the
prompt, which no input holds, and it can only meet windows of 4 (tournament) or 5 (rubric) documents.
"""

from __future__ import annotations

import math

from provenance.answers import UnusableAnswerError, decode, document
from provenance.numbers import decimal

CRITERIA = ("C1", "C2", "C3", "C4", "C5")

_CRITERIA_KEYS = frozenset(CRITERIA)
_VERDICTS = {"0": 0, "1": 1}
_LENGTH = "length"


def tournament_scores(answer: str | None, finish_reason: str | None, window_size: int) -> list[float]:
    """The scores of one tournament answer, in logits, in prompt order (doc_1 first).

    Args:
        answer: the raw text; None when the endpoint gave none.
        finish_reason: why the model stopped; only `length` matters, and only for an unusable answer.
        window_size: how many documents the window shows.

    Raises:
        UnusableAnswerError: with the category of method spec section 5.4.
    """
    try:
        return _scores(_text(answer), window_size)
    except UnusableAnswerError as error:
        raise _truncated_if_cut(error, answer, finish_reason) from None


def rubric_verdicts(answer: str | None, finish_reason: str | None, window_size: int) -> list[int]:
    """The verdicts (0 or 1) of one rubric answer: C1..C5 of doc_1, then of doc_2, and so on.

    Args:
        answer: the raw text; None when the endpoint gave none.
        finish_reason: why the model stopped; only `length` matters, and only for an unusable answer.
        window_size: how many documents the window shows.

    Raises:
        UnusableAnswerError: with the category of method spec section 5.4.
    """
    try:
        return _verdicts(_text(answer), window_size)
    except UnusableAnswerError as error:
        raise _truncated_if_cut(error, answer, finish_reason) from None


def _text(answer: str | None) -> str:
    if answer is None:
        raise UnusableAnswerError("refused")
    return answer


def _truncated_if_cut(error: UnusableAnswerError, answer: str | None, finish_reason: str | None) -> UnusableAnswerError:
    """`truncated` overrides every category of an answer that was cut; where there is no answer nothing was cut."""
    cut = finish_reason == _LENGTH and answer is not None
    return UnusableAnswerError("truncated") if cut else error


def _scores(answer: str, window_size: int) -> list[float]:
    found = decode(answer)
    ranking, scores = found.get("ranking"), found.get("scores")
    if not isinstance(ranking, list) or not isinstance(scores, dict):
        raise UnusableAnswerError("schema")
    ranked = [document(value) for value in ranking]
    scored = [document(key) for key in scores]
    values = [_score(value) for value in scores.values()]
    _check_coverage(ranked, window_size)
    _check_coverage(scored, window_size)
    in_order = dict(zip(scored, values, strict=True))
    return [in_order[slot] for slot in range(1, window_size + 1)]


def _score(value: object) -> float:
    """A number or a numeric string, finite. A boolean is no number."""
    if type(value) is float:
        score = value
    elif type(value) is int or type(value) is str:
        try:
            score = decimal(value) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError):
            raise UnusableAnswerError("schema") from None
    else:
        raise UnusableAnswerError("schema")
    if not math.isfinite(score):
        raise UnusableAnswerError("schema")
    return score


def _verdicts(answer: str, window_size: int) -> list[int]:
    by_slot: dict[int, list[int]] = {}
    slots = []
    for key, judged in decode(answer).items():
        slot = document(key)
        slots.append(slot)
        criteria = judged.get("criteria") if isinstance(judged, dict) else None
        if not isinstance(criteria, dict) or criteria.keys() != _CRITERIA_KEYS:
            raise UnusableAnswerError("schema")
        by_slot[slot] = [_verdict(criteria[criterion]) for criterion in CRITERIA]
    _check_coverage(slots, window_size)
    return [verdict for slot in range(1, window_size + 1) for verdict in by_slot[slot]]


def _verdict(value: object) -> int:
    """The integer 0 or 1, or the string "0" or "1"; neither true nor 1.0."""
    if type(value) is int and value in (0, 1):
        return value
    verdict = _VERDICTS.get(value) if isinstance(value, str) else None
    if verdict is None:
        raise UnusableAnswerError("schema")
    return verdict


def _check_coverage(slots: list[int], window_size: int) -> None:
    """Each slot of the window once: else `schema` (unknown or repeated), else `incomplete` (missing)."""
    distinct = set(slots)
    if len(distinct) != len(slots) or (slots and max(slots) > window_size):
        raise UnusableAnswerError("schema")
    if len(distinct) < window_size:
        raise UnusableAnswerError("incomplete")
