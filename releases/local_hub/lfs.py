"""The LFS objects of one repository, where git-lfs itself looks for them: `<bare>/lfs/objects/aa/bb/<oid>`.

An object appears under its name only when it is whole and its sha256 is its name, so a reader (a `git clone` among
them) never meets half an object.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from releases.local_hub.names import SHORT_SHA, bad_request, check_lfs_oid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLOCK = 1024 * 1024


class Reader(Protocol):
    """Anything that bytes are read from, at most `size` at a time."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; empty at the end."""
        ...


class LfsStore:
    """Objects by sha256 under `<bare>/lfs`."""

    def __init__(self, bare: Path) -> None:
        self._objects = bare / "lfs" / "objects"
        self._incoming = bare / "lfs" / "incoming"

    def path(self, oid: str) -> Path:
        """Where an object lies, or would."""
        check_lfs_oid(oid)
        return self._objects / oid[:2] / oid[2:4] / oid

    def size(self, oid: str) -> int | None:
        """An object's size in bytes, or None if it is not here."""
        try:
            return self.path(oid).stat().st_size
        except FileNotFoundError:
            return None

    def receive(self, oid: str, size: int, source: Reader) -> None:
        """Stream an object in; it is kept only if its size and sha256 are the announced ones.

        Raises:
            HubError: 400, it was not what was announced.
        """
        self._join(oid, size, [source])

    def receive_part(self, oid: str, upload: str, number: int, source: Reader, limit: int) -> str:
        """Stream one part of a multipart upload in.

        Returns:
            Its etag.
        """
        folder = self._parts(oid, upload)
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.md5(usedforsecurity=False)
        with self._temporary() as (target, name):
            count = 0
            while block := source.read(_BLOCK):
                count += len(block)
                if count > limit:
                    raise bad_request(f"part {number} is longer than {limit} bytes")
                digest.update(block)
                target.write(block)
            target.flush()
            name.replace(folder / str(number))
        return f'"{digest.hexdigest()}"'

    def complete(self, oid: str, size: int, upload: str, numbers: Sequence[int]) -> None:
        """Join the parts of a multipart upload, in the order of `numbers`.

        Raises:
            HubError: 400, a part is missing or the whole is not what was announced.
        """
        folder = self._parts(oid, upload)
        if self.size(oid) != size:
            try:
                with ExitStack() as stack:
                    self._join(oid, size, [stack.enter_context((folder / str(n)).open("rb")) for n in numbers])
            except FileNotFoundError:
                raise bad_request("a part of the multipart upload is missing") from None
        shutil.rmtree(folder, ignore_errors=True)

    def _join(self, oid: str, size: int, sources: Sequence[Reader]) -> None:
        digest = hashlib.sha256()
        count = 0
        with self._temporary() as (target, name):
            for source in sources:
                while block := source.read(_BLOCK):
                    count += len(block)
                    if count > size:
                        raise bad_request(f"the object is longer than the announced {size} bytes")
                    digest.update(block)
                    target.write(block)
            if count != size:
                raise bad_request(f"the object has {count} bytes, not the announced {size}")
            if digest.hexdigest() != oid:
                raise bad_request(f"the object's sha256 is {digest.hexdigest()}, not {oid}")
            target.flush()
            os.fsync(target.fileno())
            path = self.path(oid)
            path.parent.mkdir(parents=True, exist_ok=True)
            name.chmod(0o644)
            name.replace(path)

    def _parts(self, oid: str, upload: str) -> Path:
        if SHORT_SHA.fullmatch(upload) is None:
            raise bad_request("no such upload")
        return self._incoming / f"{check_lfs_oid(oid)}.{upload}"

    @contextmanager
    def _temporary(self) -> Iterator[tuple[BinaryIO, Path]]:
        """A file of its own, gone at the end unless it was renamed."""
        self._incoming.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._incoming)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file, Path(name)
        finally:
            Path(name).unlink(missing_ok=True)
