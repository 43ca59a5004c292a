"""One commit's files as rows: what `tree`, `paths-info`, `resolve` and a delete look at."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from releases.local_hub.gitcmd import git

if TYPE_CHECKING:
    from pathlib import Path

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d+)\n"
)
# The LFS specification: a pointer file is smaller than this.
_LONGEST_POINTER = 1024
_KEPT_TREES = 32


@dataclass(frozen=True)
class Pointer:
    """What an LFS pointer file says."""

    oid: str
    size: int

    def text(self) -> bytes:
        """The pointer file, byte for byte as git-lfs writes it."""
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.oid}\nsize {self.size}\n".encode()


@dataclass(frozen=True)
class Entry:
    """A file or a directory of a commit; `size` is the blob's, so a pointer's where there is one."""

    path: str
    is_directory: bool
    oid: str
    size: int
    lfs: Pointer | None = None

    def row(self) -> dict[str, Any]:
        """The Hub's row (Hub spec section 1, list_repo_tree)."""
        row: dict[str, Any] = {
            "type": "directory" if self.is_directory else "file",
            "oid": self.oid,
            "size": self.lfs.size if self.lfs is not None else self.size,
            "path": self.path,
        }
        if self.lfs is not None:
            row["lfs"] = {"oid": self.lfs.oid, "size": self.lfs.size, "pointerSize": self.size}
        return row


Tree = dict[str, Entry]


def parse_pointer(content: bytes) -> Pointer | None:
    """The pointer that a blob holds, or None."""
    match = _POINTER.fullmatch(content)
    return None if match is None else Pointer(match[1].decode(), int(match[2]))


def read_tree(git_dir: Path, commit: str) -> Tree:
    """All files and directories of a commit by path, in git's order."""
    rows: list[tuple[str, bool, str, bytes]] = []
    for line in git(git_dir, "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit).split(b"\0")[:-1]:
        fields, name = line.split(b"\t", 1)
        _, kind, blob, length = fields.split()
        if kind != b"commit":
            rows.append((name.decode(errors="surrogateescape"), kind == b"tree", blob.decode(), length))
    small = list(dict.fromkeys(oid for _, folder, oid, size in rows if not folder and int(size) < _LONGEST_POINTER))
    blobs = dict(zip(small, read_blobs(git_dir, small), strict=True))
    tree = {}
    for path, folder, oid, size in rows:
        pointer = parse_pointer(blobs[oid]) if oid in blobs else None
        tree[path] = Entry(path, folder, oid, 0 if folder else int(size), pointer)
    return tree


def read_blobs(git_dir: Path, oids: list[str]) -> list[bytes]:
    """The contents of blobs, in one call of git."""
    if not oids:
        return []
    output = git(git_dir, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode())
    contents = []
    start = 0
    for _ in oids:
        end = output.index(b"\n", start)
        size = int(output[start:end].split()[2])
        contents.append(output[end + 1 : end + 1 + size])
        start = end + 1 + size + 1
    return contents


class TreeCache:
    """The last few trees that were read, by commit: a commit never changes, so an entry never grows stale."""

    def __init__(self) -> None:
        self._trees: OrderedDict[tuple[str, str], Tree] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, git_dir: Path, commit: str) -> Tree:
        """A commit's tree, read at most once while it is kept."""
        key = (str(git_dir), commit)
        with self._lock:
            if key in self._trees:
                self._trees.move_to_end(key)
                return self._trees[key]
        tree = read_tree(git_dir, commit)
        with self._lock:
            self._trees[key] = tree
            while len(self._trees) > _KEPT_TREES:
                self._trees.popitem(last=False)
        return tree
