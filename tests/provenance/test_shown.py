"""Whatever a message quotes, it is on one line, bounded, forges nothing, and shows what tells two names apart."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile import SAMPLES, TEXTS

from provenance import checks
from provenance.errors import DataError, Where
from provenance.shown import excerpt, look_alike, plain, quoted, visible

LONGEST = 2 * 2000 + 4096 + 500
ANY = st.one_of(TEXTS, st.text(st.characters(), max_size=40))
"""Halves of surrogate pairs too: paths of this machine may hold what no text does."""


@given(ANY, ANY, ANY)
def test_a_message_is_what_its_author_wrote(what: str, file: str, value: str) -> None:
    """No text that a message quotes adds a line (but an item of a list) or says what to do next."""
    message = str(DataError(f"it holds '{what}'", where=Where(file, 3, file, value), remedy=f"mend '{what}'."))
    first, *items, last = message.split("\n")
    assert first.startswith("it holds '")
    assert all(line.startswith("    ") for line in items)
    assert last.startswith("  next: mend '")
    assert all(line.isprintable() for line in [first, *items, last])


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_a_message_is_short(size: int) -> None:
    """An id of 10 kB or 1 MB is shown by its beginning and its length, wherever a message quotes it."""
    long = "x" * size
    message = str(DataError(f"no such page '{long}'", where=Where(long, 3, "id", long), remedy=f"add '{long}'."))
    assert len(message) < LONGEST
    assert f"... ({size:,} characters)" in message
    with pytest.raises(DataError) as caught:
        checks.refuse_unknown(pl.DataFrame({"id": [long]}), "id", [long + "y", "a"], "the names", file=long)
    assert len(str(caught.value)) < LONGEST


def test_a_list_in_a_message_keeps_its_lines() -> None:
    """What a message lists stands on lines of its own."""
    assert "two faults:\n    one\n    two" == str(DataError("two faults:\n    one\n    two"))


@given(ANY)
def test_what_is_plain_stays(text: str) -> None:
    """Printable text is shown as it is; all else by escapes that read back."""
    shown = visible(text)
    assert shown.isprintable()
    if text.isprintable():
        assert text == shown
    elif "\\" not in text:
        assert text == "".join(_read_back(shown))


def _read_back(shown: str) -> str:
    return (
        shown.encode("latin-1", "backslashreplace")
        .decode("unicode_escape")
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "surrogatepass")
    )


def test_excerpts_and_quotes() -> None:
    """A name is quoted in ASCII, a text as it is; both say how long they are where they are cut."""
    assert "abc" == excerpt("abc", 3)
    assert "ab... (3 characters)" == excerpt("abc", 2)
    assert r"'caf\xe9'" == quoted("café", "corpus-id") == quoted("café")
    assert "'café'" == quoted("café", "text")
    assert (r"'e\u0301'", "'a b'") == (plain("e\u0301"), quoted("a b"))
    assert r"q-1, 'q-1 ', 'q\n'" == ", ".join(plain(name) for name in ("q-1", "q-1 ", "q\n"))


ALIKE = [
    ("corpus-t\xe9st-1", unicodedata.normalize("NFD", "corpus-t\xe9st-1")),
    ("corpus-test-1", "corpus-te\u200dst-1"),
    ("corpus-test-1", "\ufeffcorpus-test-1"),
    ("corpus-test-1", "corpus-test-1 "),
    ("corpus-test-1", "Corpus-test-1"),
    ("corpus-test-1", "corpus-test-\uff11"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_look_alikes_are_refused_and_told_apart(one: str, other: str) -> None:
    """Names are compared as they are: the other form joins nothing, and the message shows both in ASCII."""
    assert look_alike(one, other)
    assert not look_alike(one, one)
    with pytest.raises(DataError) as caught:
        checks.refuse_unknown(pl.DataFrame({"id": [other]}), "id", [one], "the pages", file="f")
    message = str(caught.value)
    assert f"value {other!a}" in message
    assert f"did you mean {one!a}? The two look alike" in message
    assert message.isascii()


def test_letters_of_another_script_are_shown() -> None:
    """A Cyrillic letter in a Latin name is seen by its code point."""
    with pytest.raises(DataError, match=r"value 'corpus-t\\u0435st-1'\]\n  next: did you mean 'corpus-test-1'\?"):
        checks.refuse_unknown(
            pl.DataFrame({"id": ["corpus-t\u0435st-1"]}), "id", ["corpus-test-1"], "the pages", file="f"
        )


def test_both_forms_of_a_name_are_two_names() -> None:
    """Two normalisation forms are never merged."""
    frame = pl.DataFrame({"id": list(ALIKE[0])})
    checks.refuse_repeats(frame, ["id"], column="id", file="f")
    checks.refuse_unknown(frame, "id", list(ALIKE[0]), "the pages", file="f")


def test_samples_are_hostile() -> None:
    """The samples hold what the tests are about."""
    together = "".join(SAMPLES)
    assert all(sign in together for sign in ("\x1b", "\u202e", "\0", "<script>", "{{", "---", "|", "```", "$$", "!!"))
