"""Hostile inputs that are kept, every fault that was found among them: what comes of each is written down."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.fuzz_readers import READERS
from support.fuzzing import read

from builder import own_run
from provenance.errors import DataError, ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = Path(__file__).parent / "corpus"
EXPECTED = tomllib.loads((CORPUS / "expected.toml").read_text(encoding="utf-8"))
LARGEST = 10_000

LARGE: dict[str, tuple[str, str, Callable[[], bytes], str]] = {
    "a JSON object of 200,000 keys and one of them twice": (
        "document",
        "some.json",
        lambda: b"{" + b",".join(b'"%d": 1' % n for n in range(200_000)) + b', "199999": 2}',
        "'199999' stands twice",
    ),
    "JSON of ten million brackets": ("document", "some.json", lambda: b"[" * 10_000_000, "nested deeper"),
    "a ledger of ten million brackets": ("ledger", "some.jsonl", lambda: b"[" * 10_000_000 + b"\n", "nested deeper"),
    "a card of a million brackets": ("card", "README.md", lambda: b"---\na: " + b"[" * 1_000_000 + b"\n---\n", "deep"),
    "TOML of a million brackets": ("benchmark", "some.toml", lambda: b"a = " + b"[" * 1_000_000, "not a TOML file"),
}


@pytest.mark.parametrize(("reader", "name"), [(reader, name) for reader, files in EXPECTED.items() for name in files])
def test_what_comes_of_each(reader: str, name: str) -> None:
    """The value, or an error of our tree that says what is wrong and names the file."""
    kind, word = EXPECTED[reader][name]
    path = CORPUS / reader / name
    found = read(READERS[reader], path.read_bytes(), "README.md" if reader == "card" else path.name)
    assert kind == (type(found).__name__ if isinstance(found, ReleaseError) else "read")
    assert word in (str(found) if isinstance(found, ReleaseError) else repr(found))


@pytest.mark.parametrize("name", LARGE)
def test_large_inputs_come_to_an_end(name: str) -> None:
    """What is too large to be kept, and would once have taken all time or memory, is refused."""
    reader, file, content, word = LARGE[name]
    found = read(READERS[reader], content(), file)
    assert isinstance(found, DataError)
    assert word in str(found)


def test_a_zipped_run_unpacks_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive of much text is refused at the bound, not unpacked; at the bound it is read."""
    line = b"q Q0 c 1 0.5 run\n"
    monkeypatch.setattr(own_run, "_LONGEST_TEXT", len(line))
    assert 1 == len(read(READERS["own_run"], gzip.compress(line), "some.trec.gz"))
    found = read(READERS["own_run"], gzip.compress(line + b"\n" * 10_000_000), "some.trec.gz")
    assert isinstance(found, DataError)
    assert "unpacks to more than 17 bytes" in str(found)


def test_every_file_is_small_and_has_its_line() -> None:
    """The folder and the table name the same files, none above 10 kB."""
    found = {path.relative_to(CORPUS).as_posix(): path for path in CORPUS.rglob("*") if path.is_file()}
    del found["expected.toml"]
    assert {f"{reader}/{name}" for reader, files in EXPECTED.items() for name in files} == set(found)
    assert [] == [name for name, path in found.items() if path.stat().st_size > LARGEST]
