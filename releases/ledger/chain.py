"""The ledger: one JSON line a release, hash-chained; the only source of the next number and the predecessor.

`verify` trusts the ledger, not the remote (DESIGN section 6). A line is never changed: what a later release says about
an earlier one (superseded, withdrawn) stands in the later line's own `releases`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import documents
from provenance.errors import DataError, InputError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from builder.benchmark import Benchmark

FIRST = "0" * 64
"""What the first line names as its predecessor."""

_FIELDS = frozenset(
    {"number", "tag", "revision", "parent", "tree", "manifest_sha256", "files", "release", "proved", "previous"}
)

_HEX = frozenset("0123456789abcdef")

_FILE = frozenset({"oid", "size", "sha256", "lfs"})


@dataclass(frozen=True)
class Entry:
    """One published release.

    Attributes:
        number: N of the tag `v<N>-<judge>`.
        tag: the tag.
        revision: the tagged commit's full sha; None where it is not known (published by hand, not adopted yet).
        parent: the commit's parent, None where it is not known or there is none.
        tree: the git sha of the commit's root tree.
        manifest_sha256: of provenance/manifest.json; None where the release has none.
        files: path -> {oid: git blob sha (of the pointer for LFS), size: bytes and sha256 of the content, lfs: whether
            it is an LFS object}.
        release: the release's entry of releases.json, as it was published.
        proved: whether `release validate` passed when it was published.
        previous: sha256 of the line before, `FIRST` in the first.
    """

    number: int
    tag: str
    revision: str | None
    parent: str | None
    tree: str | None
    manifest_sha256: str | None
    release: Mapping[str, Any]
    proved: bool
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    previous: str = FIRST

    def line(self) -> str:
        """The entry as its line, without the newline: sorted keys, no spaces."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def ledger_path(benchmark: Benchmark, override: Path | None = None) -> Path:
    """Where a benchmark's ledger lies: `--ledger`, or beside this module, or beside the benchmark file of one's own."""
    if override is not None:
        return override
    if benchmark.embedded:
        return Path(__file__).parent / f"{benchmark.name}.jsonl"
    return Path(benchmark.path).parent / f"{benchmark.name}.ledger.jsonl"


def read_ledger(path: Path) -> tuple[Entry, ...]:
    """Every entry, oldest first; no file is an empty ledger.

    Raises:
        DataError: a line is not an entry, numbers are not contiguous from 1, a tag stands twice, or the hash chain is
            broken (a line was changed, removed or put in).
    """
    if path.is_dir():
        raise InputError("the ledger is a folder", where=Where(str(path)), remedy="name the ledger's file.")
    if not path.is_file():
        return ()
    entries: list[Entry] = []
    previous = FIRST
    # Not splitlines: a string of JSON may hold what Unicode calls a line's end.
    *lines, rest = _text(path).split("\n")
    if rest:
        raise _broken(path, len(lines), "the last line has no newline: it was cut off")
    for row, line in enumerate(lines):
        entry = _parse(path, row, line)
        if entry.previous != previous:
            raise _broken(path, row, "the line does not follow from the one before it (ledger-broken)")
        if entry.number != row + 1:
            raise _broken(path, row, f"release {entry.number} stands in line {row + 1}")
        if entry.tag in {earlier.tag for earlier in entries}:
            raise _broken(path, row, f"tag '{entry.tag}' stands twice")
        entries.append(entry)
        previous = hashlib.sha256(line.encode()).hexdigest()
    return tuple(entries)


def head_digest(entries: Sequence[Entry]) -> str:
    """What the next entry names as `previous`."""
    return hashlib.sha256(entries[-1].line().encode()).hexdigest() if entries else FIRST


def append(path: Path, entry: Entry) -> None:
    """Add an entry durably, all or nothing: the whole ledger is written beside itself and renamed.

    Several processes may append at once: one after the other looks at what is there by then. An entry that is there
    already (of a run that died just after, or of another that did the same) is not added twice.

    Raises:
        SafetyError: the entry does not follow the ledger's last line: someone else published in between.
        InputError: the ledger cannot be written.
    """
    try:
        # The ledger itself, not a link to it: it is replaced.
        real = path.resolve()
        with _locked(real.parent):
            _append(real, entry)
    except OSError as error:
        raise _unwritable(path, error) from error


def rewrite(path: Path, entries: Sequence[Entry], *, noted: Sequence[Entry]) -> None:
    """Put entries in the place of those that are only noted, durably, all or nothing; nothing, if they are there.

    Raises:
        SafetyError: the ledger holds something else by now: someone else wrote it in between.
        InputError: the ledger cannot be written.
    """
    try:
        real = path.resolve()
        with _locked(real.parent):
            found = read_ledger(real)
            if found == tuple(entries):
                return
            if found != tuple(noted):
                raise SafetyError(
                    f"the ledger has changed while this ran: it ends with release {len(found)}",
                    where=Where(str(path)),
                    remedy="run the same command again.",
                )
            _write(real, "".join(f"{entry.line()}\n" for entry in entries))
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Find out that a ledger cannot be written before anything is published.

    Raises:
        InputError: it cannot.
    """
    try:
        real = path.resolve()
        with _locked(real.parent), _beside(real) as partial:
            partial.touch()
    except OSError as error:
        raise _unwritable(path, error) from error


def _append(path: Path, entry: Entry) -> None:
    entries = read_ledger(path)
    if entry in entries:
        return
    if entry.previous != head_digest(entries) or entry.number != len(entries) + 1:
        raise SafetyError(
            f"the ledger has grown since this release was planned: it ends with release {len(entries)}",
            where=Where(str(path)),
            remedy="build the release again on top of it.",
        )
    before = _text(path) if path.is_file() else ""
    _write(path, before + entry.line() + "\n")


def _write(path: Path, text: str) -> None:
    with _beside(path) as partial:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time; the folder itself is locked, so that no lock file is left in it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    # One name for all: its writer holds the lock, so what lies there was left by a run that was killed.
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"the ledger cannot be written: {error.strerror}",
        where=Where(str(path)),
        remedy="make its folder writable, or name another ledger with --ledger.",
    )


def find(entries: Sequence[Entry], tag: str, path: Path) -> Entry:
    """The entry of a tag.

    Raises:
        InputError: the ledger has no such tag.
    """
    for entry in entries:
        if entry.tag == tag:
            return entry
    known = ", ".join(entry.tag for entry in entries) or "none yet"
    raise InputError(
        f"the ledger has no release '{tag}' (it has {known})", where=Where(str(path)), remedy="check the tag."
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _broken(path, 0, f"not UTF-8: {error}") from error


def _parse(path: Path, row: int, line: str) -> Entry:
    try:
        document = documents.parse(line)
    except ValueError as error:
        raise _broken(path, row, f"no JSON: {error}") from error
    if not isinstance(document, dict) or set(document) != _FIELDS:
        raise _broken(path, row, f"an entry has exactly the keys {', '.join(sorted(_FIELDS))}")
    files = document["files"]
    if not isinstance(files, dict) or any(not isinstance(file, dict) or set(file) != _FILE for file in files.values()):
        raise _broken(path, row, f"each of its files has exactly the keys {', '.join(sorted(_FILE))}")
    wrong = next(_wrong_values(document), None)
    if wrong is not None:
        raise _broken(path, row, f"the value of '{wrong}' is not of its kind")
    entry = Entry(**document)
    if entry.line() != line:
        raise _broken(path, row, "the line is not in canonical form (sorted keys, no spaces, each key once)")
    return entry


def _wrong_values(document: Mapping[str, Any]) -> Iterator[str]:
    """The names of values that are of another kind than an entry's."""
    release = document["release"]
    checks = {
        "number": _is_count(document["number"]),
        "tag": isinstance(document["tag"], str) and document["tag"] != "",
        "proved": isinstance(document["proved"], bool),
        "previous": _is_hex(document["previous"], 64),
        "manifest_sha256": document["manifest_sha256"] is None or _is_hex(document["manifest_sha256"], 64),
        "release": isinstance(release, dict) and _is_release(release),
    }
    for name in ("revision", "parent", "tree"):
        checks[name] = document[name] is None or _is_hex(document[name], 40)
    for name, file in document["files"].items():
        checks[f"files.{name}"] = (
            _is_hex(file["oid"], 40)
            and _is_hex(file["sha256"], 64)
            and _is_count(file["size"])
            and isinstance(file["lfs"], bool)
        )
    yield from (name for name, right in checks.items() if not right)


def _is_release(release: Mapping[str, Any]) -> bool:
    """Whether a release's own entry says what the next release takes from it."""
    judge, withdraws = release.get("judge"), release.get("withdraws")
    texts = [release.get("tag"), release.get("status"), judge.get("name") if isinstance(judge, dict) else None]
    if withdraws is not None:
        texts += [withdraws.get("tag"), withdraws.get("why")] if isinstance(withdraws, dict) else [None]
    revision = release.get("data_revision")
    return all(isinstance(text, str) for text in texts) and (revision is None or isinstance(revision, str))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_hex(value: object, digits: int) -> bool:
    return isinstance(value, str) and len(value) == digits and set(value) <= _HEX


def _broken(path: Path, row: int, what: str) -> DataError:
    return DataError(
        what,
        where=Where(str(path), row),
        remedy="restore the ledger from git: it is only ever appended to.",
    )
