"""`release diff` as a person runs it."""

from __future__ import annotations

import json
import os

# Read by huggingface_hub when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import shutil
from typing import TYPE_CHECKING

import huggingface_hub.constants
import pytest
from huggingface_hub import HfApi
from support import tiny
from support.command import release_here
from support.hub_world import put

from builder import documents, manifest
from builder.layout import MANIFEST
from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from pathlib import Path

QRELS = "paper__english/qrels.parquet"


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A benchmark file, its tree, and a copy whose first label and gain differ."""
    world = tmp_path_factory.mktemp("diff")
    file = tiny.write_world(world)
    done = release_here(
        "build", "--benchmark", file, "--judge", "toy", "--out", world / "out", "--workers", "1", "--no-figures"
    )
    assert done.code == 0, done.stderr
    shutil.copytree(world / "out" / "v1-toy", world / "other")
    tiny.edit_rows(world / "other" / QRELS, lambda rows: [{**rows[0], "gain": 0.125, "score": 1}, *rows[1:]])
    manifest.seal(world / "other")
    return file, world / "out" / "v1-toy", world / "other"


def test_formats(trees: tuple[Path, Path, Path]) -> None:
    """Text, Markdown, HTML and JSON go to stdout alone, and say the same title."""
    file, tree, _ = trees
    title = "v1-toy -> v1-toy: the same release"
    for options, start in (((), title), (("--markdown",), "## v1-toy -\\> v1-toy"), (("--html",), "<!doctype html>")):
        done = release_here("diff", tree, tree, "--benchmark", file, *options)
        assert (0, True) == (done.code, done.stdout.startswith(start)), done.stderr
    done = release_here("diff", tree, tree, "--benchmark", file, "--json")
    assert "rcp-release.diff.v1" == json.loads(done.stdout)["format"]
    assert "tables paper" in done.stderr


def test_a_broken_promise_ends_with_3(trees: tuple[Path, Path, Path]) -> None:
    """What must not change and did is said in the document and again as an error, with exit code 3."""
    file, tree, other = trees
    done = release_here("diff", tree, other, "--benchmark", file)
    assert 3 == done.code
    assert "PROMISE BROKEN: human labels, gains and qrel-nDCG changed" in done.stdout
    assert "proof C3" in done.stderr


def test_refusals(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Two formats, a tree that is not there, a benchmark that is not embedded: each with its exit code and a remedy."""
    file, tree, _ = trees
    for arguments, code, message in (
        ((tree, tree, "--json", "--html"), 2, "one format at a time"),
        ((tmp_path / "none", tree), 4, "no such folder, and no owner/name@revision either"),
        ((tree, tree), 4, "the tree does not name an embedded benchmark"),
        ((tree, tmp_path, "--benchmark", file), 4, "there is no README.md"),
    ):
        done = release_here("diff", *arguments)
        assert (code, True) == (done.code, message in done.stderr), done.stderr
        assert "next: " in done.stderr


def test_a_file_that_the_manifest_does_not_describe(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Digests are believed only where each file has the size that the manifest says."""
    file, tree, _ = trees
    shutil.copytree(tree, tmp_path / "broken")
    with (tmp_path / "broken" / QRELS).open("ab") as target:
        target.write(b"\0")
    done = release_here("diff", tree, tmp_path / "broken", "--benchmark", file)
    assert 3 == done.code
    assert "the manifest does not describe this file" in done.stderr
    assert QRELS in done.stderr


def test_two_benchmarks(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Releases of two benchmarks are not compared."""
    file, tree, _ = trees
    shutil.copytree(tree, tmp_path / "stranger")
    releases = documents.read(tmp_path / "stranger" / "provenance" / "releases.json")
    documents.write({**releases, "benchmark": "other"}, tmp_path / "stranger" / "provenance" / "releases.json")
    manifest.seal(tmp_path / "stranger")
    done = release_here("diff", tree, tmp_path / "stranger", "--benchmark", file)
    assert (2, True) == (done.code, "releases of two benchmarks, 'tiny' and 'other'" in done.stderr)


def test_a_tree_without_a_manifest(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A tree made elsewhere is hashed and compared row by row; the report says so."""
    file, tree, _ = trees
    shutil.copytree(tree, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / MANIFEST).unlink()
    tiny.edit_rows(tmp_path / "elsewhere" / QRELS, lambda rows: rows[::-1])
    done = release_here("diff", tmp_path / "elsewhere", tree, "--benchmark", file)
    assert 0 == done.code, done.stderr
    assert "No change in any table" in done.stdout
    assert "v1-toy has no manifest of this tool: its files were hashed now." in done.stdout


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_a_release_on_the_hub(trees: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`owner/name@revision` is fetched at its commit and compared as a tree is."""
    file, tree, other = trees
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with LocalHub(tmp_path / "store") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        put(HfApi(endpoint=hub.endpoint, token=False), "example/bench", tree, tag="v1-toy")
        same = release_here("diff", "example/bench@v1-toy", tree, "--benchmark", file)
        differing = release_here("diff", "example/bench@v1-toy", other, "--benchmark", file)
    assert 0 == same.code, same.stderr
    assert "No change: both releases hold the same files with the same bytes." in same.stdout
    assert 3 == differing.code
    assert "PROMISE BROKEN: human labels, gains and qrel-nDCG changed" in differing.stdout
