"""Writing a tree all or nothing: into a folder beside its place, renamed at the end."""

from __future__ import annotations

import contextlib
import errno
import secrets
import shutil
from typing import TYPE_CHECKING

from builder.layout import MANIFEST
from provenance.errors import InputError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_UNWRITABLE = frozenset(
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
    }
)


@contextlib.contextmanager
def new_tree(destination: Path) -> Iterator[Path]:
    """A fresh folder that becomes `destination` when the block ends well, and vanishes when it does not.

    An older tree of the same name is replaced; anything else that lies there is not touched.

    Raises:
        SafetyError: `destination` exists and is no release tree.
        InputError: the folder cannot be made or written (read-only, disk full).
    """
    if destination.exists() and not (destination / MANIFEST).is_file():
        raise SafetyError(
            "the output folder exists and is no release tree",
            where=Where(str(destination)),
            remedy="name another --out, or remove it yourself.",
        )
    # Named before it is made: a signal between the two must not leave a folder that nobody knows of.
    work = destination.parent / f".{destination.name}.{secrets.token_hex(8)}.partial"
    try:
        work.mkdir(parents=True)
        yield work
        _replace(work, destination)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise InputError(
            f"the tree cannot be written: {error.strerror}",
            where=Where(error.filename or str(destination)),
            remedy="free some space or name another folder with --out; nothing was left behind.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


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
