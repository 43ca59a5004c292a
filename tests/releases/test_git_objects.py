"""Hashes computed without git are git's own, on any tree; LFS pointers are git-lfs's own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from releases.git_objects import blob_sha, describe_file, pointer, root_tree, stored

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.sampled_from(["a", "a.b", "a-b", "a0", "B", "ab", "é", "z.parquet", "_"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """The output of git in a folder, with no configuration but its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is found on the PATH
        input=stdin,
        capture_output=True,
        check=True,
        env=environment,
    )
    return done.stdout.decode().strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    return folder


def without_clashes(paths: dict[str, bytes]) -> dict[str, bytes]:
    """No path that is a folder of another."""
    return {path: data for path, data in paths.items() if not any(other.startswith(f"{path}/") for other in paths)}


@settings(max_examples=40, deadline=None)
@given(files=st.dictionaries(PATHS, st.binary(max_size=20), min_size=1, max_size=12).map(without_clashes))
def test_root_tree_is_gits(repository: Path, files: dict[str, bytes]) -> None:
    """The root tree of any files, folders that sort unlike their names among them, is what git writes."""
    rows = []
    for path, data in files.items():
        oid = git(repository, "hash-object", "-w", "--stdin", stdin=data)
        assert oid == blob_sha(data)
        rows.append(f"100644 {oid}\t{path}\0")
    git(repository, "read-tree", "--empty")
    git(repository, "update-index", "--add", "-z", "--index-info", stdin="".join(rows).encode())
    assert git(repository, "write-tree") == root_tree({path: blob_sha(data) for path, data in files.items()})


def test_the_empty_tree_is_gits() -> None:
    """The sha that every git knows."""
    assert "4b825dc642cb6eb9a060e54bf8d69288fbee4904" == root_tree({})


def test_an_lfs_file_is_its_pointer(tmp_path: Path) -> None:
    """The pointer has the three lines of git-lfs; its blob is what git-lfs would commit."""
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    content = describe_file(tmp_path / "x.parquet")
    text = pointer(content.sha256, 4)
    by_git_lfs = subprocess.run(
        ["git", "lfs", "pointer", "--file", str(tmp_path / "x.parquet")],  # noqa: S607 - as above
        capture_output=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert by_git_lfs == text
    assert blob_sha(text) == stored(content, lfs=True).oid
    assert content.blob == stored(content, lfs=False).oid


@pytest.mark.parametrize(
    ("data", "binary"),
    [(b"", False), (b"text\n", False), (b"a\0b", True), (b"x" * 7999 + b"\0", True), (b"x" * 8000 + b"\0", False)],
)
def test_binary_as_git_sees_it(tmp_path: Path, data: bytes, binary: bool) -> None:
    """A NUL among the first 8000 bytes makes a file binary."""
    (tmp_path / "file").write_bytes(data)
    assert binary == describe_file(tmp_path / "file").binary


def test_a_large_file_is_read_in_blocks(tmp_path: Path, repository: Path) -> None:
    """Three million bytes hash as git hashes them."""
    (tmp_path / "file").write_bytes(bytes(range(256)) * 12_000)
    assert git(repository, "hash-object", str(tmp_path / "file")) == describe_file(tmp_path / "file").blob


def test_an_empty_file_is_no_lfs_object(tmp_path: Path) -> None:
    """git-lfs leaves an empty file as it is."""
    (tmp_path / "empty.parquet").write_bytes(b"")
    assert not stored(describe_file(tmp_path / "empty.parquet"), lfs=True).lfs
