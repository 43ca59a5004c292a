"""What a plan sends, keeps and deletes; what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import gitattributes
from provenance.errors import DataError, SafetyError
from releases.git_objects import Content, File, blob_sha
from releases.plan import LARGEST_REGULAR, as_stored, make_plan, tree_of

PARENT = "a" * 40
SHA = st.sampled_from([character * 40 for character in "0123"])
FILES = st.dictionaries(st.sampled_from([f"{name}.parquet" for name in "abcdef"]), SHA, max_size=6).map(
    lambda files: {path: File(oid, 1, None, lfs=True) for path, oid in files.items()}
)


def content(data: bytes, *, size: int | None = None, binary: bool = False) -> Content:
    """A file's facts."""
    return Content(len(data) if size is None else size, "f" * 64, blob_sha(data), binary)


@given(files=FILES, held=FILES)
def test_a_plan_turns_the_parent_into_the_release(files: dict[str, File], held: dict[str, File]) -> None:
    """Adds and deletes, applied to the parent's files, give exactly the release; nothing equal is sent."""
    plan = make_plan(files, PARENT, held)
    after = {path: file for path, file in held.items() if path not in plan.deletes}
    after |= {path: files[path] for path in plan.adds}
    assert files == after
    assert all(held[path].oid == files[path].oid for path in plan.unchanged)
    assert not any(path in held and held[path].oid == files[path].oid for path in plan.adds)
    assert sorted(files) == sorted((*plan.adds, *plan.unchanged))
    assert tree_of(files) == plan.tree


def test_bytes_are_those_of_the_adds() -> None:
    """Bytes to send are the changed files' contents, bytes of the tree are all contents."""
    files = {"a": File("1" * 40, 10, None, lfs=False), "b": File("2" * 40, 7, None, lfs=True)}
    plan = make_plan(files, PARENT, {"a": files["a"]})
    assert (7, 17) == (plan.bytes_to_send, plan.bytes_of_tree)


def test_many_deletes_need_a_word() -> None:
    """Up to the stated number goes; one more is refused, each file is named, and the remedy is the option."""
    held = {f"f{number}": File("1" * 40, 1, None, lfs=False) for number in range(4)}
    assert 4 == len(make_plan({}, PARENT, held, allowed_deletes=4).deletes)
    with pytest.raises(SafetyError, match=r"(?s)delete 4 files.*- f0\n.*- f3.*--allow-deletes 4"):
        make_plan({}, PARENT, held, allowed_deletes=3)


@pytest.mark.parametrize("path", [".gitattributes", "deep/.gitattributes"])
def test_gitattributes_are_never_deleted(path: str) -> None:
    """Neither the root's nor a folder's."""
    with pytest.raises(SafetyError, match=r"never deletes .gitattributes"):
        make_plan({}, PARENT, {path: File("1" * 40, 1, None, lfs=False)})


def test_rules_of_the_remote_that_say_otherwise() -> None:
    """A file that the remote would store as text and we as an LFS object is refused; an unchanged one is not."""
    file = File("1" * 40, 1, None, lfs=True)
    with pytest.raises(SafetyError, match="would store this file as text") as caught:
        make_plan({"x.parquet": file}, PARENT, {}, held_attributes="*.png filter=lfs\n")
    assert "x.parquet" in str(caught.value)
    plan = make_plan({"x.parquet": file}, PARENT, {"x.parquet": file}, held_attributes="")
    assert () == plan.adds


@pytest.mark.parametrize(
    ("path", "facts", "message"),
    [
        ("notes.txt", content(b"a\0b", binary=True), "is binary"),
        ("notes.txt", content(b"x", size=LARGEST_REGULAR + 1), "has 10,485,761 bytes"),
        ("README.md", content(b"x"), "must not be an LFS object"),
    ],
)
def test_what_the_hub_would_store_otherwise(path: str, facts: Content, message: str) -> None:
    """A binary or large file without a rule, or a card with one, is refused before anything is sent."""
    rules = "README.md filter=lfs\n" if path == "README.md" else gitattributes.TEXT
    with pytest.raises(DataError, match=message):
        as_stored({path: facts}, rules)


def test_tables_and_pictures_are_lfs_objects() -> None:
    """By the rules of a release, Parquet and PNG are LFS objects, text is not."""
    facts = content(b"x")
    stored = as_stored(dict.fromkeys(["a/x.parquet", "p.png", "p.svg", "README.md"], facts), gitattributes.TEXT)
    assert [True, True, False, False] == [stored[path].lfs for path in ("a/x.parquet", "p.png", "p.svg", "README.md")]
