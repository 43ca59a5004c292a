"""The rules of `.gitattributes` are read as git reads them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import gitattributes
from provenance.errors import DataError
from releases.lfs_rules import LfsRules

if TYPE_CHECKING:
    from pathlib import Path

ATOMS = st.sampled_from(
    ["a", "b", "*", "**", "?", "/", ".", "[ab]", "[!a]", "[a-c]", "c.x", "*.x", "**/", "/**", "+", "é"]
)
PATTERNS = st.lists(ATOMS, min_size=1, max_size=4).map("".join)
SPOKEN = st.sampled_from(
    ["filter=lfs diff=lfs -text", "filter=lfs", "-filter", "!filter", "filter", "text", "filter=x"]
)
LINES = st.one_of(st.tuples(PATTERNS, SPOKEN).map(" ".join), st.sampled_from(["# a comment", "", '"a b.x" filter=lfs']))
PATHS = st.text(alphabet="ab.cxé+/", min_size=1, max_size=9).filter(
    lambda path: all(part not in {"", ".", ".."} for part in path.split("/"))
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository."""
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # noqa: S607 - git is found on the PATH
    return folder


def by_git(repository: Path, text: str, paths: list[str]) -> list[bool]:
    """What git says of each path."""
    (repository / ".gitattributes").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["git", "-C", str(repository), "check-attr", "-z", "--stdin", "filter"],  # noqa: S607 - as above
        input="".join(f"{path}\0" for path in paths).encode(),
        capture_output=True,
        check=True,
    )
    return [value == "lfs" for value in done.stdout.decode().split("\0")[2::3]]


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=4), paths=st.lists(PATHS, min_size=1, max_size=30))
def test_rules_are_read_as_git_reads_them(repository: Path, lines: list[str], paths: list[str]) -> None:
    """For any rules and paths, the answer is git's."""
    text = "\n".join(lines) + "\n"
    rules = LfsRules(text)
    assert by_git(repository, text, paths) == [rules.lfs(path) for path in paths]


def test_the_hubs_rules(repository: Path) -> None:
    """The rules of a new dataset on the Hub, which are ours, put every kind of a release's file where git puts it."""
    paths = [
        "README.md",
        ".gitattributes",
        "energy/corpus-00000-of-00002.parquet",
        "assets/figure.svg",
        "assets/figure.png",
        "provenance/manifest.json",
        "saved_model/a/b",
        "x.tar.gz",
        "a.lfs.b",
        "run.tfevents.1",
        "rcp_ndcg_tasks.py",
    ]
    text = gitattributes.TEXT
    rules = LfsRules(text)
    expected = [False, False, True, False, True, False, True, True, True, True, False]
    assert expected == by_git(repository, text, paths) == [rules.lfs(path) for path in paths]


@pytest.mark.parametrize("line", ["[attr]big filter=lfs", "a\\ b filter=lfs", "!x filter=lfs"])
def test_rules_that_are_not_read_are_refused(line: str) -> None:
    """A macro, an escape or a negation is refused, never misread."""
    with pytest.raises(DataError, match="a kind that a release does not use"):
        LfsRules(line)
