"""Inputs by address: a folder, `hf://datasets/owner/name@revision`, or anything that fsspec reads (S3, GCS, memory).

Whatever the address, the build gets a folder on this disk, and a revision that says which bytes it holds.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import sleep
from typing import TYPE_CHECKING, Any

import fsspec

from builder import demo, hub_source
from builder.hub_errors import WITHOUT_NETWORK
from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HUB = "hf://"
_HUB_DATASET = re.compile(r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?/?")
_TRIES = 3
_BLOCK = 1024 * 1024
_FINAL = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class Source:
    """An input: its address for the record, the revision that it was resolved to, and where it lies on disk now."""

    uri: str
    revision: str | None
    path: Path

    def pin(self) -> dict[str, str | None]:
        """What a release records of it."""
        return {"uri": self.uri, "revision": self.revision}


def resolve(uri: str, *, cache: Path, patterns: Sequence[str] | None = None, pinned: bool = True) -> Source:
    """An address as a folder on this disk.

    A folder is taken as it is, with no revision; `demo://` is made on first use. A dataset on the Hub is downloaded at
    one commit: its full sha is the revision, and the address that is recorded names it. Other addresses are streamed
    into a cache by content; their revision is `sha256:` and the digest of all paths and contents.

    Args:
        uri: the address.
        cache: the folder of the cache; made if it is not there.
        patterns: which files are needed (`fnmatch` on the path below the address); all by default.
        pinned: on the Hub, refuse a branch, a short sha or no revision.

    Raises:
        DataError: the address is malformed, or not pinned.
        InputError: something is missing, out of reach, or not what it should be.
        SafetyError: another commit than the one asked for was given.
    """
    if uri.startswith(demo.SCHEME):
        return Source(uri=uri, revision=None, path=demo.resolve(uri, cache))
    if uri.startswith(_HUB):
        match = _HUB_DATASET.fullmatch(uri)
        if match is None:
            raise DataError(
                "not the address of a dataset on the Hub",
                where=Where(uri),
                remedy="write hf://datasets/owner/name@revision.",
            )
        path, sha = hub_source.fetch(match["repo"], match["revision"], cache=cache, patterns=patterns, pinned=pinned)
        return Source(uri=f"hf://datasets/{match['repo']}@{sha}", revision=sha, path=path)
    if "://" in uri:
        path, digest = _stream(uri, cache, patterns)
        return Source(uri=uri, revision=f"sha256:{digest}", path=path)
    if not Path(uri).is_dir():
        raise InputError("no such folder", where=Where(uri), remedy="check the benchmark file, or --inputs.")
    return Source(uri=uri, revision=None, path=Path(uri))


def _stream(uri: str, cache: Path, patterns: Sequence[str] | None) -> tuple[Path, str]:
    """Stream every file below `uri` into the cache; the folder and its digest.

    Nothing is skipped for being known by name: only the content says that a file is the same.
    """
    filesystem, root = _open(uri)
    with _explained(uri):
        found = {
            path: info
            for path, info in sorted(_tried(lambda: _listing(filesystem, root)).items())
            if patterns is None or any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
        }
        if not found:
            raise InputError("no file is here", where=Where(uri), remedy="check the address.")
        contents = {path: _tried(lambda i=info: _take(filesystem, i, cache)) for path, info in found.items()}
        digest = hashlib.sha256("".join(f"{sha} {path}\n" for path, sha in contents.items()).encode()).hexdigest()
        return _assemble(cache, digest, contents), digest


def _open(uri: str) -> tuple[Any, str]:
    try:
        filesystem, root = fsspec.url_to_fs(uri)
    except ImportError as error:
        raise InputError(str(error), where=Where(uri), remedy="install what it names, with pip.") from error
    except ValueError as error:
        raise DataError(f"no such kind of address: {error}", where=Where(uri), remedy="check the address.") from error
    return filesystem, str(root)


@contextmanager
def _explained(uri: str) -> Iterator[None]:
    """Turn what fsspec and its plug-ins raise into one message."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError("there is nothing at this address", where=Where(uri), remedy="check the address.") from error
    except PermissionError as error:
        raise InputError(f"it may not be read: {error}", where=Where(uri), remedy="check the credentials.") from error
    except OSError as error:
        raise InputError(
            f"could not be read after {_TRIES} tries: {type(error).__name__}: {error}",
            where=Where(uri),
            remedy=WITHOUT_NETWORK,
        ) from error


def _tried(call: Any) -> Any:
    """What `call` gives, tried a few times where another try can help."""
    for attempt in range(1, _TRIES):
        try:
            return call()
        except _FINAL:
            raise
        except OSError:
            sleep(2.0 ** (attempt - 1))
    return call()


def _listing(filesystem: Any, root: str) -> dict[str, dict[str, Any]]:
    """Every file below `root` by its path from there, or the one file that it is by its name."""
    if filesystem.isfile(root):
        return {PurePosixPath(root).name: filesystem.info(root)}
    found = filesystem.find(root, detail=True)
    return {_relative(name, root.rstrip("/")): info for name, info in found.items()}


def _relative(name: str, root: str) -> str:
    path = name.removeprefix(root).lstrip("/")
    if not path or ".." in path.split("/"):
        raise FileNotFoundError(f"{name} is not below {root}")
    return path


def _take(filesystem: Any, info: dict[str, Any], cache: Path) -> str:
    """Stream one file into the cache; its sha256. It gets its name only when it is whole."""
    objects = cache / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=objects, prefix="partial-")
    try:
        digest = hashlib.sha256()
        count = 0
        with os.fdopen(descriptor, "wb") as target, filesystem.open(info["name"], "rb") as source:
            while block := source.read(_BLOCK):
                digest.update(block)
                target.write(block)
                count += len(block)
        size = info.get("size")
        if size is not None and count != size:
            raise OSError(f"{info['name']} came truncated: {count} bytes, not {size}")
        sha = digest.hexdigest()
        place = objects / sha[:2] / sha
        place.parent.mkdir(exist_ok=True)
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)
    return sha


def _assemble(cache: Path, digest: str, contents: dict[str, str]) -> Path:
    """A folder of the files under their own names, made at once or not at all."""
    folder = cache / "folders" / digest
    if folder.is_dir() and _holds(folder, contents):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="partial-", ignore_cleanup_errors=True) as temporary:
        new = Path(temporary) / "tree"
        for path, sha in contents.items():
            target = new / path
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(cache / "objects" / sha[:2] / sha, target)
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        new.rename(folder)
    return folder


def _holds(folder: Path, contents: dict[str, str]) -> bool:
    """Whether a folder has exactly these files with these contents (nobody changed it by hand)."""
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return there.keys() == contents.keys() and all(_sha256(there[path]) == sha for path, sha in contents.items())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
