"""What a remote lists is fetched into one folder and nowhere else."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from huggingface_hub import RepoFile

from provenance.errors import SafetyError
from releases.adopt import releases_of
from releases.fetched import fetch_tree
from releases.git_objects import File, blob_sha
from releases.hub_listing import listed
from releases.verify.hub import Digest

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

CONTENT = b"content"
SHA = "0" * 40


class Remote:
    """A remote every file of which holds `CONTENT`."""

    target = SimpleNamespace(name="a remote")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, path: str, _sha: str, size: int, sink: BinaryIO) -> Digest:
        """The bytes of a file."""
        self.asked.append(path)
        digest = Digest(size)
        digest.update(CONTENT)
        sink.write(CONTENT)
        return digest


def fetch(folder: Path, *paths: str) -> dict[str, dict[str, Any]]:
    """Fetch a commit that lists these paths."""
    rows = {path: File(blob_sha(CONTENT), len(CONTENT), None, lfs=False) for path in paths}
    reader: Any = Remote()
    return fetch_tree(reader, SHA, rows, folder / "inner" / "tree", folder / "inner" / "objects")


def test_listed_files_are_fetched(tmp_path: Path) -> None:
    """Each file lies under its name, two names of one content are one object."""
    found = fetch(tmp_path, "README.md", "a b/é..x.parquet")
    tree = tmp_path / "inner" / "tree"
    assert {"README.md", "a b/é..x.parquet"} == set(found)
    assert {CONTENT} == {(tree / path).read_bytes() for path in found}
    assert hashlib.sha256(CONTENT).hexdigest() == found["README.md"]["sha256"]


def test_a_content_is_fetched_once(tmp_path: Path) -> None:
    """However many files and commits hold it: it is asked for by its first name, and linked under all."""
    rows = {f"{number}.parquet": File(blob_sha(CONTENT), len(CONTENT), None, lfs=False) for number in range(50)}
    reader: Any = Remote()
    for tree in ("one", "two"):
        found = fetch_tree(reader, SHA, rows, tmp_path / tree, tmp_path / "objects")
        assert {CONTENT} == {(tmp_path / tree / path).read_bytes() for path in rows}
        assert {hashlib.sha256(CONTENT).hexdigest()} == {file["sha256"] for file in found.values()}
    assert ["0.parquet"] == reader.asked


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/x", "", ".", "a/./b", "a//b", "a/", "a\\..\\x", "C:x", "a\0b", "a\nb"]
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    """Nothing at all is written where one listed path leads out of the folder, or is no file's name."""
    with pytest.raises(SafetyError, match="outside the repository"):
        fetch(tmp_path, "README.md", path)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("oid", "sha256"), [("../../x", None), ("A" * 40, None), (SHA, "../x"), (SHA[1:], None)])
def test_an_id_that_is_none_is_refused(oid: str, sha256: str | None) -> None:
    """Objects are kept under their ids, so that an id is hexadecimal digits or refused."""
    lfs = None if sha256 is None else {"size": 1, "oid": sha256, "pointerSize": 1}
    with pytest.raises(ValueError, match="is no"):
        listed([RepoFile(path="x", size=1, oid=oid, lfs=lfs)])


def test_a_tag_that_is_a_path_is_no_release() -> None:
    """A release's tag becomes a folder's name."""
    assert [(1, "v1-toy", SHA)] == releases_of({"v1-toy": SHA, "v2-../../x": SHA, "v2-a/b": SHA, "v2-..": SHA}, "here")
