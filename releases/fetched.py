"""A published release on this disk: every file of a commit, each hashed against the remote's own listing."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from builder.digests import sha256_file
from builder.layout import is_inside
from builder.output import UNWRITABLE
from provenance.errors import InputError, RemoteError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releases.git_objects import File
    from releases.verify.hub import HubReader

_THREADS = 4


def fetch_tree(
    reader: HubReader, sha: str, listed: Mapping[str, File], folder: Path, objects: Path
) -> dict[str, dict[str, Any]]:
    """Fetch the files of a commit into `folder`.

    Args:
        reader: the repository.
        sha: the commit.
        listed: its files.
        folder: where they go; made here.
        objects: a folder beside it for contents that several commits share; each is fetched once.

    Returns:
        Path -> oid, size, sha256 and lfs, as a ledger has them.

    Raises:
        SafetyError: bytes that are not the listed ones; a path that leads out of `folder`.
        RemoteError: a file cannot be had.
        InputError: it may not be read, or cannot be written here.
    """
    odd = [path for path in listed if not is_inside(path)]
    if odd:
        raise SafetyError(
            f"the remote lists {len(odd)} file(s) outside the repository",
            where=Where(reader.target.name, value=odd[0]),
            remedy="nothing was fetched; look at the remote, and tell whoever runs it.",
        )
    # Each content once, and the links after: a link to a file that is just being replaced would fail.
    first: dict[str, str] = {}
    for path, file in listed.items():
        first.setdefault(file.oid, path)

    def fetch(oid: str, path: str) -> str:
        held = objects / oid
        return sha256_file(held) if held.is_file() else _fetch(reader, path, sha, listed[path], held)

    try:
        objects.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(_THREADS) as executor:
            known = dict(zip(first, executor.map(fetch, first.keys(), first.values()), strict=True))
        for path, file in listed.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(objects / file.oid, target)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise InputError(
            f"what is fetched cannot be written: {error.strerror}",
            where=Where(str(folder)),
            remedy="free some space there, or set TMPDIR to another place; then run the same command again.",
        ) from error

    return {
        path: {"oid": file.oid, "size": file.size, "sha256": known[file.oid], "lfs": file.lfs}
        for path, file in listed.items()
    }


def _fetch(reader: HubReader, path: str, sha: str, file: File, held: Path) -> str:
    """One content, under its name only when it is whole; its sha256."""
    partial = held.with_name(f"{held.name}.partial")
    place = Where(f"{reader.target.name}: {path}")
    with partial.open("wb") as sink:
        digest = reader.fetch(path, sha, file.size, sink)
    if digest is None:
        raise RemoteError(
            "a file is listed and cannot be had", where=place, remedy="`release verify` says what is lost."
        )
    found = digest.sha256 if file.lfs else digest.blob
    expected = file.sha256 if file.lfs else file.oid
    if found != expected:
        raise SafetyError(
            f"the bytes are not the listed ones: {found}, not {expected}",
            where=place,
            remedy="`release verify --level content` names every such file.",
        )
    partial.replace(held)
    return digest.sha256
