"""What git would call a file, a folder and a release, computed without git (Hub spec sections 0.9 and 3).

Pure but for `describe_file`, which reads the file that it hashes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BLOCK = 1024 * 1024
_SNIFFED = 8000
"""As many bytes as git looks at to tell text from binary."""


@dataclass(frozen=True)
class Content:
    """A file's bytes: their number, sha256, git blob sha, and whether git takes them for binary."""

    size: int
    sha256: str
    blob: str
    binary: bool


@dataclass(frozen=True)
class File:
    """A file of a commit.

    Attributes:
        oid: the git sha of its blob, which for an LFS file is that of the pointer.
        size: bytes of the content.
        sha256: of the content; None where it is not known (a regular file in a remote's listing).
        lfs: whether the content is an LFS object.
    """

    oid: str
    size: int
    sha256: str | None
    lfs: bool


def blob_sha(content: bytes) -> str:
    """The sha of a blob that holds `content`."""
    return _object_sha(b"blob", content)


def describe_file(path: Path) -> Content:
    """Read a file once, in blocks."""
    size = path.stat().st_size
    sha256 = hashlib.sha256()
    sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    binary = False
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            binary = binary or (file.tell() == len(block) and b"\0" in block[:_SNIFFED])
            sha256.update(block)
            sha1.update(block)
    return Content(size, sha256.hexdigest(), sha1.hexdigest(), binary)


def pointer(sha256: str, size: int) -> bytes:
    """The text that git holds in place of an LFS object, byte for byte as git-lfs writes it."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def stored(content: Content, *, lfs: bool) -> File:
    """What a commit holds for a file."""
    # git-lfs keeps an empty file as it is.
    lfs = lfs and content.size > 0
    oid = blob_sha(pointer(content.sha256, content.size)) if lfs else content.blob
    return File(oid, content.size, content.sha256, lfs)


def root_tree(files: Mapping[str, str]) -> str:
    """The sha of the tree that holds exactly these files, none of them executable.

    Args:
        files: path, with `/` between folders -> blob sha.
    """
    return _tree(files)


def _tree(files: Mapping[str, str]) -> str:
    folders: dict[str, dict[str, str]] = {}
    rows = []
    for path, oid in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = oid
        else:
            rows.append((name.encode(), b"100644", oid))
    rows += [(name.encode(), b"40000", _tree(inside)) for name, inside in folders.items()]
    return _object_sha(b"tree", b"".join(_sorted(rows)))


def _sorted(rows: list[tuple[bytes, bytes, str]]) -> Iterator[bytes]:
    """A tree's rows in git's order: by name as bytes, a folder's as if it ended with a slash."""
    for name, mode, oid in sorted(rows, key=lambda row: row[0] + (b"/" if row[1] == b"40000" else b"")):
        yield mode + b" " + name + b"\0" + bytes.fromhex(oid)


def _object_sha(kind: bytes, body: bytes) -> str:
    return hashlib.sha1(kind + b" %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
