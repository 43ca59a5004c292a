"""The decoder, against a slow reading of the method spec, step by step."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from provenance.answers import DEEPEST_NESTING, UnusableAnswerError, decode, document

TEN_MEGABYTES = 10_000_000
# A busy machine is no reason to fail.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class _RepeatedKeyError(Exception):
    """The oracle met a repeated key."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; a repeated key is refused at once."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedKeyError
    return dict(pairs)


def _without_reasoning(text: str) -> str | None:
    """Method spec section 5.2 step 1, as it is written: blocks are cut out of the text one after the other."""
    while True:
        brace = text.find("{")
        blocks = [m for m in re.finditer(r"<think>.*?</think>", text, re.DOTALL) if m.start() < brace < m.end()]
        if not blocks:
            break
        text = text[: blocks[0].start()] + text[blocks[0].end() :]
    if brace < 0:
        return None
    before = re.sub(r"<think>.*?</think>", "", text[:brace], flags=re.DOTALL)
    if "<think" in before:
        return None
    return re.sub(r"^.*?</think>", "", before, count=1, flags=re.DOTALL) + text[brace:]


def _bad_escape(error: json.JSONDecodeError) -> int | None:
    """Where the backslash is that the decoder complains of; None when it complains of something else."""
    if error.msg.startswith("Invalid \\escape"):
        return error.pos
    return error.pos - 1 if error.msg.startswith("Invalid \\uXXXX") else None


def oracle(answer: str) -> object:
    """Steps 1 to 6 of method spec section 5.2, one decode a repair: an object, or the name of a category."""
    body = _without_reasoning(answer)
    if body is None:
        return "no_json"
    fence = re.fullmatch(r"```\w*\s*(.*?)\s*```", body.strip(), re.DOTALL)
    text = fence[1] if fence else body
    text = text[text.index("{") :]
    repairs, quotes_removed = 0, False
    while True:
        try:
            return json.JSONDecoder(object_pairs_hook=_distinct).raw_decode(text)[0]
        except _RepeatedKeyError:
            return "schema"
        except json.JSONDecodeError as error:
            backslash = _bad_escape(error)
            if backslash is not None:
                repairs += 1
                if repairs > 1000:
                    return "invalid_json"
                text = text[:backslash] + "\\" + text[backslash:]
                continue
            without = re.sub(r'(\d\.?)"(\s*\})', r"\1\2", text)
            if quotes_removed or without == text:
                return "invalid_json"
            text, quotes_removed = without, True


def outcome(answer: str) -> object:
    """What `decode` makes of an answer: an object, or the name of a category."""
    try:
        return decode(answer)
    except UnusableAnswerError as error:
        return error.category


_JSON = st.recursive(
    st.one_of(
        st.integers(-9, 9),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.none(),
        st.text(max_size=6),
        st.sampled_from(["1.5", "doc_1", "costs 5", "a } b", "{", "<think>", "</think>"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["ranking", "scores", "doc_1"]), st.text(max_size=3)), inner, max_size=3
        ),
    ),
    max_leaves=8,
)
_SNIPPETS = st.sampled_from(
    [
        *('"', "{", "}", "[", "]", ",", ":", "\\", " ", "\n", "\t", "5", '5"', '-2.0"}', '5." }', "NaN", "Infinity"),
        *("\\pi", "\\{", "\\u12G4", "\\u00e9", "\\ud800", "\\ud800\\u12", '\\"', "\\\\", "\\frac"),
        *(
            "<think>",
            "</think>",
            "<think",
            "<think>{x}</think>",
            "```",
            "```json\n",
            "\n```",
            "prose",
            "\x00",
            "\ud800",
        ),
        *('{"a": 1, "a": 2}', '"a": 1, "a": 1', '{"a": 1}'),
    ]
)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """An object's JSON text, well formed or with pieces put in, taken out and put round it."""
    body = draw(st.dictionaries(st.sampled_from(["ranking", "scores", "reasoning"]), _JSON, max_size=3))
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    for snippet in draw(st.lists(_SNIPPETS, max_size=4)):
        at = draw(st.integers(0, len(text)))
        removed = draw(st.sampled_from([0, 0, 0, 1, 3, 20]))
        text = text[:at] + snippet + text[at + removed :]
    return "".join([*draw(st.lists(_SNIPPETS, max_size=2)), text, *draw(st.lists(_SNIPPETS, max_size=2))])


def _comparable(value: object) -> str:
    """A text that tells values apart, NaN and types included; integers beyond a double count as infinite."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_comparable(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_comparable, value)) + "]"
    return repr(value)


@unhurried
@example('<<think>{x}</think>think>{x}</think>"{}')
@example("<thi<think>{</think>nk>a</think>b{}")
@example("<t<think>{</think>h<think>{</think>ink>{</think>{}")
@example("<thi<think>a</think>nk>{</think>{}")
@given(answers())
def test_the_decoder_agrees_with_the_spec_read_step_by_step(answer: str) -> None:
    """Well-formed or mangled, an answer decodes to what one decode a repair gives."""
    assert _comparable(oracle(answer)) == _comparable(outcome(answer))


@unhurried
@given(st.text(alphabet=st.sampled_from(list('{}[]":,\\u0a1<>/thinkNe.- \n`')), max_size=40))
def test_the_decoder_agrees_on_arbitrary_text(answer: str) -> None:
    """Text made of the decoder's own marks decodes to what the slow reading gives."""
    assert _comparable(oracle(answer)) == _comparable(outcome(answer))


@unhurried
@given(st.lists(st.sampled_from(["<think>", "</think>", "{", "x", '{"a": 1}', "<thinking>", "\n"]), max_size=12))
def test_reasoning_is_removed_as_the_spec_says(pieces: list[str]) -> None:
    """Any arrangement of think tags and braces decodes to what cutting block after block gives."""
    answer = "".join(pieces)
    assert _comparable(oracle(answer)) == _comparable(outcome(answer))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('<think>a {b} c</think>{"a": 1}', {"a": 1}),
        ('<think>{"a": 2}</think><think>{}</think> so {"a": 1}', {"a": 1}),
        ('<think>one</think> two <think>{"a": 2}</think>{"a": 1}', {"a": 1}),
        ('hm</think>{"a": 1}', {"a": 1}),
        ('{"a": "<think>"}', {"a": "<think>"}),
        ('{"a": 1}<think>{"a": 2}</think>', {"a": 1}),
        ('<think>{"a": 1}</think>', "no_json"),
        ('<think>{"a": 1}', "no_json"),
        ('<thinking>{"a": 1}', "no_json"),
        ('</think><think>{"a": 1}', "no_json"),
    ],
)
def test_reasoning_is_removed_outside_the_object_only(answer: str, expected: object) -> None:
    """Closed blocks and orphan ends before the object go; an unclosed block takes all; tags in the object stay."""
    assert expected == outcome(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (r'{"a": "\pi"}', {"a": r"\pi"}),
        (r'{"a": "\frac \u00e9 \\pi"}', {"a": "\frac é \\pi"}),
        (r'{"a": "\underline \u12"}', {"a": r"\underline \u12"}),
        (r'{"a": "\ud800\u12"}', {"a": "\ud800\\u12"}),
        (r'{"\q": 1}', {r"\q": 1}),
        (r'{"a": 1} and "\pi"', {"a": 1}),
        (r'{"a": \pi}', "invalid_json"),
        ('{"a": "\\', "invalid_json"),
    ],
)
def test_an_invalid_escape_is_kept_literally(answer: str, expected: object) -> None:
    """Repair A doubles a bad backslash inside a string; valid escapes keep their meaning; elsewhere it is a fault."""
    assert expected == outcome(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a": {"b": -2.0"}}', {"a": {"b": -2.0}}),
        ('{"a": {"b": 1"}, "c": {"d": 2" \n}}', {"a": {"b": 1}, "c": {"d": 2}}),
        (r'{"r": "\pi", "a": {"b": 1"}, "c": "\q"}', {"r": r"\pi", "a": {"b": 1}, "c": r"\q"}),
        ('{"a": {"b": "1"}, "c": 2"}', "invalid_json"),
        ('{"a": 1", "b": 2}', "invalid_json"),
    ],
)
def test_a_stray_quote_after_a_number_is_deleted(answer: str, expected: object) -> None:
    """Repair B deletes each quote between a number and a closing brace; repair A still applies."""
    assert expected == outcome(answer)


@pytest.mark.parametrize(("count", "expected"), [(1000, {"a": "\\q" * 1000}), (1001, "invalid_json")])
def test_a_thousand_escapes_are_repaired(count: int, expected: object) -> None:
    """The 1,001st bad escape of an object is one too many."""
    assert expected == outcome('{"a": "' + "\\q" * count + '"}')


def test_bad_escapes_after_the_object_do_not_count() -> None:
    """Only the object's own escapes use up the thousand."""
    assert {"a": "\\q"} == outcome(r'{"a": "\q"} "' + "\\q" * 2000 + '"')


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a": 1, "a": 1}', "schema"),
        ('{"a": [{"b": {"c": 1, "c": 2}}]}', "schema"),
        (r'{"a": 1, "\u0061": 2}', "schema"),
        ('{"a": {"b": 1}, "b": 2}', {"a": {"b": 1}, "b": 2}),
        ('{"a": {"b": 1, "b": 2}, oops', "schema"),
        ('{"a": 1, "a": 1, oops', "invalid_json"),
    ],
)
def test_a_repeated_key_is_refused_at_any_depth(answer: str, expected: object) -> None:
    """Keys are compared as decoded, and within one object; the fault that ends first decides."""
    assert expected == outcome(answer)


def test_numbers_that_python_reads_and_json_does_not() -> None:
    """NaN and the infinities decode; integers beyond a double come back infinite, however many digits they have."""
    digits = "9" * 5000
    found = decode(f'{{"a": NaN, "b": -Infinity, "c": {digits}, "d": -{digits}, "e": 1e999, "f": {"9" * 300}}}')
    assert math.isnan(found["a"])
    assert [-math.inf, math.inf, -math.inf, math.inf] == [found[key] for key in "bcde"]
    assert 10**300 - 1 == found["f"]


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(DEEPEST_NESTING - 1, "decodes"), (DEEPEST_NESTING, "invalid_json"), (5_000_000, "invalid_json")],
)
def test_nesting_has_one_limit(depth: int, expected: str) -> None:
    """The limit is a number, not the interpreter's stack."""
    found = outcome('{"a": ' + "[" * depth + "]" * depth + "}")
    assert expected == ("decodes" if isinstance(found, dict) else found)


def test_brackets_in_strings_and_siblings_are_no_nesting() -> None:
    """Only brackets inside brackets nest: a long list of lists and a string of brackets decode."""
    assert {"a": "[" * 1000 + '"'} == outcome('{"a": "' + "[" * 1000 + '\\""}')
    assert {"a": [[]] * 1000} == outcome('{"a": [' + ", ".join(["[]"] * 1000) + "]}" + "[" * 1000)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("{" * TEN_MEGABYTES, "invalid_json"),
        ('{"a":' * (TEN_MEGABYTES // 5), "invalid_json"),
        ('{"' + "\\q" * (TEN_MEGABYTES // 2), "invalid_json"),
        ('{"' + "\\u" * (TEN_MEGABYTES // 2), "invalid_json"),
        ("<think>{</think>" * (TEN_MEGABYTES // 16), "no_json"),
        ("<think>" * (TEN_MEGABYTES // 7) + "{}", "no_json"),
        ("<think></think>" * (TEN_MEGABYTES // 15) + "{}", {}),
        ('{"a": 1' + '1"  ' * (TEN_MEGABYTES // 4), "invalid_json"),
        ('{"a": 1"' + " " * TEN_MEGABYTES, "invalid_json"),
        ('{"a": ' + "1" * TEN_MEGABYTES + "}", {"a": math.inf}),
        ("\x00" * TEN_MEGABYTES, "no_json"),
        ('{"a": "\x00"}', "invalid_json"),
        ('{"\ud800": "\udfff"}', {"\ud800": "\udfff"}),
    ],
    ids=range(13),
)
def test_hostile_text_ends_in_an_outcome(answer: str, expected: object) -> None:
    """Ten megabytes of anything take linear time and no stack."""
    assert expected == outcome(answer)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        ("1", 1),
        (" 7 ", 7),
        ("doc_3", 3),
        ("Document 3", 3),
        ("DOC-003", 3),
        ("document_ - 10", 10),
        ("doc3", 3),
        ("document" + "_" * 100 + "2", 2),
        (0, None),
        (-1, None),
        (True, None),
        (1.0, None),
        (None, None),
        ([1], None),
        ("", None),
        ("0", None),
        ("-3", None),
        ("+3", None),
        ("_3", None),
        ("1.0", None),
        ("doc", None),
        ("docs_3", None),
        ("doc_3a", None),
        ("page_3", None),
        ("\ud800", None),
    ],
)
def test_document_identifiers(value: object, expected: int | None) -> None:
    """A positive integer, or a text that ends in one after an optional doc or document; nothing else names a slot."""
    if expected is not None:
        assert expected == document(value)
        return
    with pytest.raises(UnusableAnswerError) as caught:
        document(value)
    assert "schema" == caught.value.category


def test_a_slot_of_a_million_digits_is_beyond_any_window() -> None:
    """A number too long to read is still a slot, and an unknown one."""
    assert 10**9 <= document("doc_" + "9" * 1_000_000)
