"""Writing a tree all or nothing: into a folder beside its place, renamed at the end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from builder import documents
from builder.layout import MANIFEST
from provenance.errors import InputError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


UNWRITABLE = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    }
)
"""What the system says where the place is at fault, and not this tool."""


@contextlib.contextmanager
def sole_writer(destination: Path) -> Iterator[None]:
    """Be the only build of `destination` for as long as the block runs; what a killed build left is cleared away.

    Raises:
        SafetyError: another build of it is under way.
        InputError: the folder cannot be made or written.
    """
    lock = destination.with_name(f".{destination.name}.lock")
    made = not destination.parent.exists()
    with _writable(destination):
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:
            # Where no folder can be made at all, such as in /proc.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(destination.parent)) from error
        descriptor = _locked(lock)
    if descriptor is None:
        raise SafetyError(
            "another build of this release is under way",
            where=Where(str(destination)),
            remedy="wait for it to end, or name another --out.",
        )
    try:
        _clear(destination)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)
        if made:
            with contextlib.suppress(OSError):  # it holds the tree, or what another build put there
                destination.parent.rmdir()


def _clear(destination: Path) -> None:
    """Remove what a killed build left: whoever made it held the lock, so it is dead."""
    for old in destination.parent.glob(f".{destination.name}.*.old"):
        if destination.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(destination)  # it was killed between the two renames of `_replace`
    for partial in destination.parent.glob(f".{destination.name}.*.partial"):
        shutil.rmtree(partial, ignore_errors=True)


def _locked(lock: Path) -> int | None:
    """A descriptor that holds the lock file; None where another process holds it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                # Its last holder may have removed the file between our two calls: then this is no lock.
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.close(descriptor)


@contextlib.contextmanager
def _writable(destination: Path) -> Iterator[None]:
    """An `OSError` of the block that means that nothing can be written here becomes an `InputError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise InputError(
            f"the tree cannot be written: {error.strerror}",
            where=Where(str(destination)),
            remedy="free some space or name another folder with --out; nothing was left behind.",
        ) from error


@contextlib.contextmanager
def new_tree(destination: Path) -> Iterator[Path]:
    """A fresh folder that becomes `destination` when the block ends well, and vanishes when it does not.

    An older tree of the same name is replaced; anything else that lies there is not touched.

    Raises:
        SafetyError: `destination` is a link, or no release tree, or holds files that its manifest does not name.
        InputError: the folder cannot be made or written (read-only, disk full).
    """
    if destination.is_symlink():
        raise SafetyError(
            "a link lies where the tree is to be written",
            where=Where(str(destination)),
            remedy="name another --out, or remove it yourself.",
        )
    if destination.exists() and not (destination / MANIFEST).is_file():
        raise SafetyError(
            "the output folder exists and is no release tree",
            where=Where(str(destination)),
            remedy="name another --out, or remove it yourself.",
        )
    foreign = _foreign(destination)
    if foreign:
        raise SafetyError(
            f"the older tree holds {len(foreign)} file(s) that no release made, such as {foreign[0]}",
            where=Where(str(destination)),
            remedy="move them elsewhere, or name another --out: a build replaces the whole tree.",
        )
    # Named before it is made: a signal between the two must not leave a folder that nobody knows of.
    work = destination.parent / f".{destination.name}.{secrets.token_hex(8)}.partial"
    try:
        with _writable(destination):
            work.mkdir(parents=True)
            yield work
            _replace(work, destination)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def whole_file(path: Path, option: str) -> Iterator[Path]:
    """Where to write a file that becomes `path` when the block ends well; no half of it is ever there.

    Raises:
        InputError: it cannot be written; the message names the `option` that the path came from.
    """
    work = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield work
        work.replace(path)
    except OSError as error:
        raise InputError(
            f"the file cannot be written: {error.strerror or error}",
            where=Where(str(path)),
            remedy=f"free some space, or name another place with {option}.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            work.unlink(missing_ok=True)


def _foreign(destination: Path) -> list[str]:
    """Files of an older tree that its manifest does not name."""
    if not (destination / MANIFEST).is_file():
        return []
    manifest = documents.read(destination / MANIFEST)
    listed = manifest.get("files") if isinstance(manifest, dict) else None
    known = {MANIFEST, *(listed if isinstance(listed, dict) else {})}
    found = (path.relative_to(destination).as_posix() for path in destination.rglob("*") if not path.is_dir())
    return sorted(name for name in found if name not in known)


def _replace(work: Path, destination: Path) -> None:
    if destination.exists():
        old = work.with_suffix(".old")
        try:
            destination.rename(old)
            work.rename(destination)
        finally:
            if not destination.exists():
                old.rename(destination)
            shutil.rmtree(old, ignore_errors=True)
    else:
        work.rename(destination)
