"""The ledger: whoever changes, cuts or reorders it is found out; whoever appends at once loses nothing."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import small

from builder.benchmark import load_benchmark
from provenance.errors import DataError, InputError, SafetyError
from releases.ledger.chain import FIRST, Entry, append, check_writable, find, head_digest, ledger_path, read_ledger
from releases.ledger.status import Status, statuses
from releases.numbering import next_release

if TYPE_CHECKING:
    from pathlib import Path


def entry(number: int, entries: tuple[Entry, ...] = (), **release: Any) -> Entry:
    """A release's line after `entries`."""
    tag = f"v{number}-toy"
    own = {"tag": tag, "number": number, "status": "current", "judge": {"name": "toy"}, "why": "é\u2028", **release}
    return Entry(
        number=number,
        tag=tag,
        revision=f"{number:040x}",
        parent=f"{number - 1:040x}",
        tree="c" * 40,
        manifest_sha256="d" * 64,
        release=own,
        proved=True,
        files={"a.parquet": {"oid": "e" * 40, "size": 1, "sha256": "f" * 64, "lfs": True}},
        previous=head_digest(entries),
    )


def chain(path: Path, length: int) -> tuple[Entry, ...]:
    """A ledger of so many releases."""
    for number in range(1, length + 1):
        append(path, entry(number, read_ledger(path)))
    return read_ledger(path)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    """Entries come back equal, in order, chained by the sha256 of the line before; no file is no release."""
    path = tmp_path / "deep" / "ledger.jsonl"
    assert () == read_ledger(path)
    one = entry(1)
    append(path, one)
    two = entry(2, (one,))
    append(path, two)
    assert (one, two) == read_ledger(path)
    assert FIRST == one.previous
    assert [path] == list(path.parent.iterdir())


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a ledger of three releases."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    chain(path, 3)
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@given(data=st.data())
def test_any_changed_character_is_seen(
    three: list[str], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One character of any line but the last changed, put in or taken out breaks the chain or the form.

    Of the last line nothing in the file can tell that a value was changed: git and the remote do.
    """
    text = "\n".join(three) + "\n"
    place = data.draw(st.integers(0, len(text) - len(three[2]) - 2))
    new = data.draw(st.sampled_from(["", "x", "0", " ", "\n", text[place] * 2]))
    changed = text[:place] + new + text[place + 1 :]
    if changed != text:
        path = tmp_path_factory.mktemp("changed") / "ledger.jsonl"
        path.write_text(changed, encoding="utf-8", newline="\n")
        with pytest.raises(DataError):
            read_ledger(path)


@pytest.mark.parametrize(
    ("order", "row"), [([1, 0, 2], 0), ([0, 2, 1], 1), ([0, 2], 1), ([1, 2], 0), ([0, 0, 1, 2], 1), ([2], 0)]
)
def test_lines_that_are_moved_removed_or_doubled(three: list[str], tmp_path: Path, order: list[int], row: int) -> None:
    """The message names the first line that does not follow."""
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(three[number] + "\n" for number in order), encoding="utf-8")
    with pytest.raises(DataError, match=r"does not follow from the one before it \(ledger-broken\)") as caught:
        read_ledger(path)
    assert f"row {row}" in str(caught.value)


def test_a_line_that_was_cut(three: list[str], tmp_path: Path) -> None:
    """A file that ends within a line, or without a newline, is refused."""
    path = tmp_path / "ledger.jsonl"
    for text in (three[0] + "\n" + three[1][:50], "\n".join(three)):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="it was cut off"):
            read_ledger(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line.replace('":', '": ', 1), "canonical form"),
        (lambda line: json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":")), "canonical form"),
        (lambda line: line[:-1] + ',"number":1}', "'number' stands twice"),
        (lambda line: line[:-1] + ',"more":1}', "exactly the keys"),
        (lambda _line: "[1]", "exactly the keys"),
        (lambda _line: "{", "no JSON"),
        (lambda line: line.replace('"number":1,"parent"', '"number":2,"parent"'), "release 2 stands in line 1"),
    ],
)
def test_a_line_of_another_form(three: list[str], tmp_path: Path, change: Any, message: str) -> None:
    """One form, so that a digest says all: anything else is refused, and named."""
    path = tmp_path / "ledger.jsonl"
    path.write_text(change(three[0]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_ledger(path)


def test_an_entry_that_does_not_follow(tmp_path: Path) -> None:
    """An entry planned on an older ledger is refused; the very last entry again is no second line."""
    path = tmp_path / "ledger.jsonl"
    one, two = chain(path, 2)
    append(path, two)
    assert (one, two) == read_ledger(path)
    with pytest.raises(SafetyError, match="it ends with release 2"):
        append(path, entry(2, (one,), other="release"))


def _append_when_all_are_there(path: Path, barrier: Any, number: int) -> None:
    barrier.wait(timeout=60)
    try:
        append(path, entry(1, (), by=number))
    except SafetyError:
        os._exit(5)


def test_many_append_at_once(tmp_path: Path) -> None:
    """Of eight that append the first release at once, one does; the file is whole."""
    path = tmp_path / "ledger.jsonl"
    barrier = small.processes.Barrier(8)
    processes = [
        small.processes.Process(target=_append_when_all_are_there, args=(path, barrier, number)) for number in range(8)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [0, *[5] * 7] == sorted(process.exitcode or 0 for process in processes)
    assert 1 == len(read_ledger(path))


def _die_at_the_end_of_writing(path: Path) -> None:
    os.fsync = lambda _descriptor: os.kill(os.getpid(), signal.SIGKILL)
    append(path, entry(2, read_ledger(path)))


def test_killed_while_writing(tmp_path: Path) -> None:
    """A writer that is killed before the rename leaves the ledger as it was, and the next one can write."""
    path = tmp_path / "ledger.jsonl"
    (one,) = chain(path, 1)
    process = small.processes.Process(target=_die_at_the_end_of_writing, args=(path,))
    process.start()
    process.join(timeout=60)
    assert -signal.SIGKILL == process.exitcode
    assert (one,) == read_ledger(path)
    append(path, entry(2, (one,)))
    assert [path] == list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """It is an output that cannot be written, before a publish and at its end."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "ledger.jsonl"
    with pytest.raises(InputError, match="the ledger cannot be written"):
        check_writable(path)
    with pytest.raises(InputError, match="the ledger cannot be written"):
        append(path, entry(1))


def test_statuses() -> None:
    """The last release is current, the others are superseded, but for those that a later one withdraws."""
    one = entry(1)
    two = entry(2, (one,))
    three = entry(3, (one, two), withdraws={"tag": "v1-toy", "why": "wrong gains"})
    assert (Status("superseded"), Status("current")) == statuses((one, two))
    assert (Status("withdrawn", "wrong gains"), Status("superseded"), Status("current")) == statuses((one, two, three))
    assert () == statuses(())


def test_the_next_release_carries_on_what_the_ledger_says(tmp_path: Path) -> None:
    """A build takes number, predecessors, their commits, their withdrawal and the last one's files from the ledger."""
    path = tmp_path / "ledger.jsonl"
    (one,) = chain(path, 1)
    append(path, entry(2, (one,), withdraws={"tag": "v1-toy", "why": "wrong gains"}))
    numbering = next_release(load_benchmark("demo"), path)
    assert 3 == numbering.number
    assert [f"{1:040x}", f"{2:040x}"] == [release["revision"] for release in numbering.earlier]
    assert {"status": "withdrawn", "withdrawn_because": "wrong gains"}.items() <= numbering.earlier[0].items()
    assert "current" == numbering.earlier[1]["status"]
    assert {"a.parquet": "f" * 64} == numbering.predecessor_files


def test_find_and_path(tmp_path: Path) -> None:
    """A tag that the ledger lacks is a missing input; the ledger of one's own benchmark lies beside its file."""
    entries = chain(tmp_path / "ledger.jsonl", 2)
    assert entries[1] == find(entries, "v2-toy", tmp_path)
    with pytest.raises(InputError, match=r"has no release 'v3-toy' \(it has v1-toy, v2-toy\)"):
        find(entries, "v3-toy", tmp_path)
    assert "demo.jsonl" == ledger_path(load_benchmark("demo")).name
    assert tmp_path == ledger_path(load_benchmark("demo"), tmp_path)
    assert "tiny.ledger.jsonl" == ledger_path(small.benchmark()).name


def test_the_embedded_ledgers_are_whole() -> None:
    """Every ledger that is kept with the code reads."""
    entries = read_ledger(ledger_path(load_benchmark("vidore_v3")))
    assert list(range(1, len(entries) + 1)) == [entry.number for entry in entries]
