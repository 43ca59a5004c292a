"""JSON: documents of a tree, the ledger, what a verification keeps."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import document, ledger, state, tree_document, validated, world
from support.fuzzing import mutated_bytes, mutated_json, read, short

from provenance.errors import ReleaseError
from releases.ledger.chain import Entry, head_digest

if TYPE_CHECKING:
    from pathlib import Path

KEPT = {"content lfs 0123": 90.0, "load python v1-toy all": 95.5}
DOCUMENTS = ("releases.json", "manifest.json", "item_params.toy.json", "windows.toy.json")


def _entry(number: int, entries: list[Entry], **release: Any) -> Entry:
    own = {"tag": f"v{number}-toy", "number": number, "status": "current", "judge": {"name": "toy"}, **release}
    return Entry(
        number,
        f"v{number}-toy",
        f"{number:040x}",
        f"{number - 1:040x}",
        "c" * 40,
        "d" * 64,
        own,
        proved=True,
        files={"a.parquet": {"oid": "e" * 40, "size": 1, "sha256": "f" * 64, "lfs": True}},
        previous=head_digest(entries),
    )


FIRST = _entry(1, [])
SECOND = _entry(2, [FIRST], withdraws={"tag": "v1-toy", "why": "wrong"}, data_revision=None)
LEDGER = f"{FIRST.line()}\n{SECOND.line()}\n".encode()


@lru_cache(maxsize=4)
def _of_tree(name: str) -> Any:
    return json.loads((world() / "out" / "v1-toy" / "provenance" / name).read_bytes())


@short(200)
@given(st.one_of(mutated_json({"a": [1, 2.5, "x", {"b": None}]}), mutated_bytes(b'{"a": [1, "\\ud83d\\ude00"]}')))
def test_any_document_is_read_or_refused(content: bytes) -> None:
    """What is read can be written again, as UTF-8 and without a NaN."""
    read(document, content, "some.json")


@short(20)
@given(data=st.data(), name=st.sampled_from(DOCUMENTS))
def test_any_document_of_a_tree_is_read_or_refused(data: st.DataObject, name: str) -> None:
    """Every reader of a tree's document takes it or raises an error that names it."""
    read(tree_document, data.draw(mutated_json(_of_tree(name))), name)


@short(5)
@given(data=st.data(), name=st.sampled_from(DOCUMENTS))
def test_proofs_of_a_tree_with_an_odd_document(data: st.DataObject, name: str) -> None:
    """`release validate` comes to its end on a tree with such a document, and names it."""
    read(validated, data.draw(mutated_json(_of_tree(name))), name)


def _again(line: bytes) -> bytes:
    """The line in canonical form, where it is JSON: what is wrong then is its values only."""
    try:
        return json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return line


@short(200)
@given(
    st.one_of(
        mutated_bytes(LEDGER),
        mutated_json(json.loads(SECOND.line())).map(lambda line: f"{FIRST.line()}\n".encode() + _again(line) + b"\n"),
    )
)
def test_any_ledger_is_read_or_refused(content: bytes) -> None:
    """A ledger whose last line was changed is refused, or is one that everything that reads ledgers takes."""
    read(ledger, content, "some.jsonl")


@short(100)
@given(st.one_of(mutated_json(KEPT), mutated_bytes(json.dumps(KEPT).encode())))
def test_what_was_kept_is_believed_or_forgotten(content: bytes) -> None:
    """A verification's state that is damaged is no error: what it does not say is checked again."""
    assert not isinstance(read(state, content, "kept.json"), ReleaseError)


def test_what_is_mutated_is_right(tmp_path: Path) -> None:
    """The documents that the others spoil are read as they are."""
    for name, content, reader in (
        ("some.jsonl", LEDGER, ledger),
        ("kept.json", json.dumps(KEPT).encode(), state),
        *((name, json.dumps(_of_tree(name)).encode(), tree_document) for name in DOCUMENTS),
    ):
        (tmp_path / name).write_bytes(content)
        found = read(reader, content, name)  # type: ignore[arg-type]
        assert found, name
        if isinstance(found, ReleaseError):
            pytest.fail(str(found))
