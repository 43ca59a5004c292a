"""Work cut into shards: each a pure function from content-addressed inputs to one file (DESIGN section 7).

A shard's file is named by what its content depends on, written under a temporary name and renamed, and begins with the
SHA-256 of that name and the rest. So a build that was killed goes on where it stopped, and a file that was damaged or
changed places is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import shutil
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import builder
import provenance
from provenance.errors import InputError, ReleaseError, RemoteError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from builder.runner import Runner

_DIGEST = 32  # bytes
_TRIES, _PAUSE = 100, 0.05  # seconds
_LIBRARIES = ("numpy", "polars", "pyarrow", "scipy")


@dataclass(frozen=True)
class Shard:
    """One piece of work.

    Attributes:
        work: a function of a module; it gives the shard's table, and depends on nothing but its arguments.
        arguments: what it is called with; paths among them must lead to the same files from each worker.
        facts: all that the table depends on, as JSON: digests of inputs and parameters; never a path.
    """

    work: Callable[..., pa.Table]
    arguments: tuple[Any, ...]
    facts: Mapping[str, Any]

    def key(self, code: str) -> str:
        """Hex SHA-256 of the facts, of which function it is, and of the code version."""
        named = {"work": f"{self.work.__module__}.{self.work.__qualname__}", "code": code, "facts": self.facts}
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


@dataclass
class Tables:
    """The tables of shards in order; may be gone through more than once."""

    store: ShardStore
    paths: Sequence[Path]
    pending: dict[Path, Future[None]]

    def __iter__(self) -> Iterator[pa.Table]:
        """Each table as soon as it and those before it are there.

        Raises:
            RemoteError: a worker died.
            ReleaseError: whatever the shard's work raises.
        """
        for path in self.paths:
            if path in self.pending:
                self.store.runner.result(self.pending.pop(path))
                self.store.done += 1
            table = load(path)
            if table is None:
                raise RemoteError(
                    f"a shard's file is damaged or gone right after it was written: {path}",
                    remedy="check the disk; on a cluster, that all workers see this folder under this path. Run again.",
                )
            yield table


@dataclass
class ShardStore:
    """The shards of one build: those that are done lie in `folder`; `done` were made now, `reused` were there."""

    folder: Path
    runner: Runner
    done: int = 0
    reused: int = 0

    def __post_init__(self) -> None:
        self._code = code_version()

    def start(self, shards: Sequence[Shard]) -> Tables:
        """Hand every shard whose file is missing or damaged to the runner; nothing waits here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths, pending = [], {}
        for shard in shards:
            path = self.folder / shard.key(self._code)
            paths.append(path)
            if load(path) is not None:
                self.reused += 1
            else:
                pending[path] = self.runner.submit(make, shard, path, self._code)
        return Tables(self, paths, pending)


@contextlib.contextmanager
def shard_store(folder: Path, runner: Runner) -> Iterator[ShardStore]:
    """A store in `folder`, which vanishes when the block ends well or the data are refused.

    It stays when the build is killed, interrupted or loses its workers, so that the next build goes on from it.

    Raises:
        SafetyError: `folder` is a link: what is written and removed here would be elsewhere.
    """
    if folder.is_symlink():
        raise SafetyError(
            "a link lies where the finished shards are kept",
            where=Where(str(folder)),
            remedy="remove it, or name another --out.",
        )
    store = ShardStore(folder, runner)
    try:
        yield store
    except ReleaseError as error:
        if not isinstance(error, RemoteError):
            _remove(folder)
        raise
    except OSError:
        _remove(folder)
        raise
    _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the folder; a worker that was not told yet may put a last file into it meanwhile."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)


def make(shard: Shard, path: Path, code: str) -> None:
    """Do a shard's work and write its file.

    Raises:
        InputError: this worker has another version of the code.
        ReleaseError: whatever the work raises.
    """
    if code_version() != code:
        raise InputError(
            "a worker runs other code than the build",
            remedy="install the same rcp-release, numpy, polars, pyarrow and scipy on every worker.",
        )
    sink = pa.BufferOutputStream()
    table = shard.work(*shard.arguments)
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with partial.open("wb") as file:
            file.write(_digest(path, content))
            file.write(content)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def load(path: Path) -> pa.Table | None:
    """The table of a shard's file; None where there is none, or it is not what was written."""
    try:
        content = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    if _digest(path, content[_DIGEST:]) != content[:_DIGEST]:
        return None
    with pa.ipc.open_stream(pa.py_buffer(content[_DIGEST:])) as reader:
        return reader.read_all()


def _digest(path: Path, content: Any) -> bytes:
    """SHA-256 of the shard's key and its content: a file under another shard's name is not that shard."""
    digest = hashlib.sha256(path.name.encode())
    digest.update(content)
    return digest.digest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """Hex SHA-256 of what computes a shard: sources, versions of libraries and Python, kind of processor."""
    digest = hashlib.sha256()
    for room in (provenance, builder):
        root = Path(os.fspath(room.__path__[0]))
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{room.__name__}/{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    versions = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    digest.update("\0".join([*versions, sys.version, platform.machine()]).encode())
    return digest.hexdigest()
