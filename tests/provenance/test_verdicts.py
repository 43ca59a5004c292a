"""Validity of tournament and rubric answers: the table of method spec section 17.6, and section 7.3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance.answers import UnusableAnswerError
from provenance.verdicts import rubric_verdicts, tournament_scores

RANKING = ["doc_2", "doc_1", "doc_3"]
SCORES = {"doc_1": 1.5, "doc_2": 3.0, "doc_3": -2.0}
VALID = [1.5, 3.0, -2.0]
O = json.dumps({"reasoning": "r", "ranking": RANKING, "scores": SCORES})  # noqa: E741 - the spec's own name for it


def _object(**changes: Any) -> str:
    """The object O with other members."""
    return json.dumps({"reasoning": "r", "ranking": RANKING, "scores": SCORES} | changes)


def _reasoning(raw: str, tail: str = "") -> str:
    """The object O with this raw text as its reasoning, and `tail` after the last score."""
    return O.replace('"r"', f'"{raw}"', 1).replace("-2.0", f"-2.0{tail}")


def scores(answer: str | None, finish_reason: str | None = "stop", window_size: int = 3) -> list[float] | str:
    """The scores of an answer, or its category."""
    try:
        return tournament_scores(answer, finish_reason, window_size)
    except UnusableAnswerError as error:
        return error.category


@pytest.mark.parametrize(
    "answer",
    [
        O + "}",
        O + "\n}}",
        O + " That is my ranking, {really}.",
        O + "\n" + _object(scores={}),
        O + "</think>",
        O.replace("-2.0", '-2.0"'),
        "<think>first {doc_1}, {}</think>\n" + O,
        "Weighing them.</think>\n" + O,
        f"```json\n{O}\n```",
        f"```\n{O}\n```",
        f"Here it is:\n```json\n{O}\n```\nDone.",
        _reasoning("a <think> in a string"),
        _reasoning(r"\pi, \{x\}, \underline{y}"),
        _reasoning(r"\pi, \{x\}, \underline{y}", tail='"'),
        '{"ranking": [2, "1", "Document 3"], "scores": {"1": 1.5, "doc_2": "3.0", "doc_3": -2}}',
    ],
)
def test_answers_that_are_valid(answer: str) -> None:
    """Each valid row of the table in method spec section 17.6 gives O's scores."""
    assert VALID == scores(answer)


def test_a_complete_object_before_the_cut_is_valid() -> None:
    """The finish reason `length` alone makes no answer unusable (method spec section 17.6)."""
    assert VALID == scores(O + "\nTo expl", "length")


@pytest.mark.parametrize(
    "answer",
    ["1. doc_2\n2. doc_1\n3. doc_3", "<think>hm {a}</think>doc_2 is best.", "", "<think>I see " + O],
)
def test_answers_without_an_object(answer: str) -> None:
    """Each no_json row of the table in method spec section 17.6."""
    assert "no_json" == scores(answer)


@pytest.mark.parametrize("answer", [O[:-20], _object(ranking=["doc_2", "doc_1"])])
def test_answers_that_were_cut(answer: str) -> None:
    """Each truncated row of the table in method spec section 17.6: `length` overrides the category."""
    assert "truncated" == scores(answer, "length")


@pytest.mark.parametrize(
    "answer",
    [
        O[:-20],
        O.replace('"doc_1"', "doc_1"),
        "I {think} so: " + O,
        O.replace('"ranking"', '<think>now the ranking</think> "ranking"'),
    ],
)
def test_answers_that_do_not_decode(answer: str) -> None:
    """Each invalid_json row of the table in method spec section 17.6."""
    assert "invalid_json" == scores(answer, "stop")


@pytest.mark.parametrize(
    "answer",
    [
        O.replace('"doc_2": 3.0', '"doc_1": 3.0'),
        json.dumps({"ranking": RANKING}),
        _object(ranking="doc_2, doc_1, doc_3"),
        _object(scores=SCORES | {"doc_1": "low"}),
        _object(scores=SCORES | {"doc_1": float("nan")}),
        _object(scores=SCORES | {"doc_1": float("inf")}),
        _object(scores=SCORES | {"doc_1": True}),
        _object(scores=SCORES | {"doc_1": 10**400}),
        _object(ranking=[*RANKING, "doc_4"]),
        _object(scores=SCORES | {"doc_4": 0.0}),
        _object(ranking=[*RANKING, "doc_2"]),
        _object(scores=SCORES | {"2": 3.0}),
    ],
)
def test_answers_that_break_the_schema(answer: str) -> None:
    """Each schema row of the table in method spec section 17.6."""
    assert "schema" == scores(answer)


@pytest.mark.parametrize(
    "answer",
    [_object(ranking=["doc_2", "doc_1"]), _object(scores={"doc_1": 1.5, "doc_2": 3.0}), _object(ranking=[], scores={})],
)
def test_answers_that_leave_a_document_out(answer: str) -> None:
    """The incomplete row of the table in method spec section 17.6."""
    assert "incomplete" == scores(answer)


@pytest.mark.parametrize(("count", "expected"), [(1000, VALID), (1001, "invalid_json")])
def test_a_thousand_bad_escapes(count: int, expected: object) -> None:
    """The last row of the table in method spec section 17.6."""
    assert expected == scores(_reasoning("\\q" * count))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (_object(extra=1), VALID),
        (_object(ranking=["doc_3", "doc_1", "doc_2"]), VALID),
        (_object(scores={"doc_1": 99, "doc_2": 99, "doc_3": "-1e3"}), [99.0, 99.0, -1000.0]),
        (_object(scores=SCORES | {"doc_1": None}), "schema"),
        (_object(scores=SCORES | {"doc_1": [1.0]}), "schema"),
        (_object(scores=SCORES | {"doc_1": "NaN"}), "schema"),
        (_object(scores=SCORES | {"doc_1": "\ud800"}), "schema"),
        (O.replace("1.5", "1e999"), "schema"),
        (O.replace("1.5", "9" * 5000), "schema"),
        (O.replace('"r"', "9" * 5000), VALID),
        (O.replace("1.5", "9" * 308), [10.0**308, 3.0, -2.0]),
        (O.replace("1.5", "9" * 309), "schema"),
        (_object(scores=[1.5, 3.0, -2.0]), "schema"),
        (_object(ranking=["doc_2", True, "doc_3"]), "schema"),
        (_object(ranking=["doc_2", 1.0, "doc_3"]), "schema"),
        (_object(ranking=["doc_2", 0, "doc_1", "doc_3"]), "schema"),
        (_object(ranking=["doc_2"], scores=SCORES | {"doc_4": 0.0}), "incomplete"),
        (_object(ranking=["doc_2"], scores=SCORES | {"doc_1": None}), "schema"),
        ("[1, 2]", "no_json"),
        (None, "refused"),
    ],
)
def test_the_order_of_the_checks(answer: str | None, expected: object) -> None:
    """Method spec section 5.3: types and values first, then the ranking's documents, then the scores'."""
    assert expected == scores(answer)


@pytest.mark.parametrize("finish_reason", [None, "stop", "content_filter", "Length", "max_tokens"])
def test_only_length_is_a_finish_reason(finish_reason: str | None) -> None:
    """Another finish reason changes nothing, and a missing answer is refused whatever it says."""
    assert VALID == scores(O, finish_reason)
    assert "invalid_json" == scores(O[:-20], finish_reason)
    assert "refused" == scores(None, finish_reason)
    assert "refused" == scores(None, "length")


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12), st.randoms())
def test_finite_scores_come_back_as_they_were_written(values: list[float], random: Any) -> None:
    """Whatever the order of keys and ranking, the scores come back bit for bit in prompt order."""
    ranking = [f"doc_{slot}" for slot in range(1, len(values) + 1)]
    members = list(zip(ranking, values, strict=True))
    random.shuffle(ranking)
    random.shuffle(members)
    answer = json.dumps({"scores": dict(members), "ranking": ranking})
    assert values == scores(answer, window_size=len(values))


def _judged(*verdicts: Any) -> dict[str, Any]:
    """One document's part of a rubric answer."""
    return {"reasoning": "r", "criteria": {f"C{k}": verdict for k, verdict in enumerate(verdicts, start=1)}}


def verdicts(answer: object, finish_reason: str | None = "stop") -> list[int] | str:
    """The verdicts of a rubric answer on a window of two, or its category."""
    try:
        return rubric_verdicts(answer if isinstance(answer, str) else json.dumps(answer), finish_reason, 2)
    except UnusableAnswerError as error:
        return error.category


A, B = _judged(1, 1, 0, 1, 0), _judged(0, 0, 0, 0, 1)
BOTH = [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"doc_1": A, "doc_2": B}, BOTH),
        ({"Document 2": B, "1": A}, BOTH),
        ({"doc_1": {"criteria": A["criteria"], "note": [1]}, "doc_2": B}, BOTH),
        ({"doc_1": _judged("1", "1", "0", "1", "0"), "doc_2": B}, BOTH),
        ({"doc_1": A, "doc_2": B, "summary": "fine"}, "schema"),
        ({"doc_1": A, "doc_2": B, "doc_3": A}, "schema"),
        ({"doc_1": A, "doc_2": B, "2": B}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0)}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, 0, 0)}, "schema"),
        ({"doc_1": A, "doc_2": _judged(*"0000", True)}, "schema"),  # noqa: FBT003 - the verdict under test
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, 1.0)}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, None)}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, 2)}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, " 1")}, "schema"),
        ({"doc_1": A, "doc_2": _judged(0, 0, 0, 0, [1])}, "schema"),
        ({"doc_1": A, "doc_2": {"criteria": [0, 0, 0, 0, 1]}}, "schema"),
        ({"doc_1": A, "doc_2": {"reasoning": "r"}}, "schema"),
        ({"doc_1": A, "doc_2": [0, 0, 0, 0, 1]}, "schema"),
        ({"doc_1": _judged(0, 0, 0, 0)}, "schema"),
        ({"doc_1": A}, "incomplete"),
        ({}, "incomplete"),
        ('{"doc_1": ' + json.dumps(A) + ', "doc_1": ' + json.dumps(A) + "}", "schema"),
        ("Both pass.", "no_json"),
        ('{"doc_1": oops}', "invalid_json"),
    ],
)
def test_rubric_answers(answer: object, expected: object) -> None:
    """Method spec section 7.3: every key a document, C1..C5 exactly, verdicts 0 or 1, none filled in."""
    assert expected == verdicts(answer)


def test_a_cut_rubric_answer_is_truncated() -> None:
    """`length` overrides the category of an unusable rubric answer, and of no usable one."""
    assert "truncated" == verdicts({"doc_1": A}, "length")
    assert BOTH == verdicts({"doc_1": A, "doc_2": B}, "length")
