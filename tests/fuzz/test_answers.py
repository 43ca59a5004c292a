"""A judge's raw answer: whatever it holds, it is scores or verdicts, or left out for one of six reasons."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import answers
from support.fuzzing import mutated_bytes, mutated_json, read, short

TOURNAMENT = {"reasoning": "r", "ranking": ["doc_2", 1, "3"], "scores": {"doc_1": 1.5, "2": "-2", "Document 3": 0}}
RUBRIC = {
    f"doc_{slot}": {"reasoning": "r", "criteria": {f"C{c}": (slot + c) % 2 for c in range(1, 6)}} for slot in (1, 2, 3)
}
_TOKENS = (b"<think>", b"</think>", b"```json\n", b"{", b"}", b"]", b"[", b"\\frac", b'1"}', b'"doc_1": 2,', b"\\ud800")
_VALID = st.sampled_from([json.dumps(TOURNAMENT).encode(), json.dumps(RUBRIC).encode()])
_MANGLED = st.one_of(
    _VALID.flatmap(lambda answer: mutated_bytes(answer, _TOKENS)),
    mutated_json(TOURNAMENT),
    mutated_json(RUBRIC),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


def _text(content: bytes) -> bytes:
    """The bytes as some text: a table of answers holds nothing else (that it does not is the table's own fault)."""
    return content.decode("utf-8", "replace").encode()


def test_valid_answers_are_read() -> None:
    """What the others mangle is good: scores in prompt order, verdicts by document."""
    tournament = read(answers, json.dumps(TOURNAMENT).encode(), "answer.txt")
    assert {"tournament": [1.5, -2.0, 0.0], "rubric": "schema"} == tournament
    rubric = read(answers, json.dumps(RUBRIC).encode(), "answer.txt")
    assert {"tournament": "schema", "rubric": [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]} == rubric


@short(300)
@given(_MANGLED.map(_text))
def test_any_answer_has_an_outcome(content: bytes) -> None:
    """Cut, mangled or random, an answer is values of the right kind or a category, and never an error."""
    assert isinstance(read(answers, content, "answer.txt"), dict)
