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
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from support import tiny
from support.command import release_here
from support.hub_world import put

from builder import documents, manifest
from builder.layout import MANIFEST, RELEASES, TASK_FILE
from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QRELS = "paper__english/qrels.parquet"
RUNS = "provenance/runs/paper.parquet"


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
    """Text, Markdown, HTML, a changelog's entry and JSON go to stdout alone, and say the same title."""
    file, tree, _ = trees
    title = "v1-toy -> v1-toy: the same release"
    for options, start in (
        ((), title),
        (("--markdown",), "## v1-toy -\\> v1-toy"),
        (("--html",), "<!doctype html>"),
        (("--changelog",), "## v1-toy\n\nv1-toy -\\> v1-toy: the same release (judge toy"),
    ):
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


def _appended(tree: Path) -> None:
    with (tree / QRELS).open("ab") as target:
        target.write(b"\0")


def _same_size(tree: Path) -> None:
    """One byte in the middle of the runs turns: the size stays."""
    content = bytearray((tree / RUNS).read_bytes())
    content[len(content) // 3] ^= 1
    (tree / RUNS).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "file", "message"),
    [
        (_appended, QRELS, "the manifest says"),
        (_same_size, RUNS, "column 'sha256'"),
        (lambda tree: (tree / "more.txt").write_text("x"), "more.txt", "it is not listed"),
        (lambda tree: (tree / TASK_FILE).unlink(), TASK_FILE, "it is missing"),
    ],
)
def test_a_file_that_the_manifest_does_not_describe(
    trees: tuple[Path, Path, Path], tmp_path: Path, damage: Callable[[Path], object], file: str, message: str
) -> None:
    """A digest is believed only where the file has it: another size, other bytes of the same size, a file too many."""
    benchmark, tree, _ = trees
    shutil.copytree(tree, tmp_path / "broken")
    damage(tmp_path / "broken")
    for sides in ((tree, tmp_path / "broken"), (tmp_path / "broken", tree)):
        done = release_here("diff", *sides, "--benchmark", benchmark)
        assert (3, "") == (done.code, done.stdout)
        for part in ("the manifest does not describe this file", file, message, "next: `release validate "):
            assert part in done.stderr


def test_a_label_changed_at_equal_size(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A whole Parquet file with other labels, of the size that the manifest says, is not called unchanged."""
    file, tree, _ = trees
    for name in ("before", "now"):
        shutil.copytree(tree, tmp_path / name)
        rows = pq.read_table(tree / QRELS)
        pq.write_table(rows, tmp_path / name / QRELS, compression="none", use_dictionary=False)
        manifest.seal(tmp_path / name)
    changed = tmp_path / "now" / QRELS
    size, place = changed.stat().st_size, rows.schema.get_field_index("score")
    labels = pa.array([label + 1 for label in rows["score"].to_pylist()])
    rows = rows.set_column(place, rows.schema.field(place), labels)
    pq.write_table(rows, changed, compression="none", use_dictionary=False)
    assert size == changed.stat().st_size
    done = release_here("diff", tmp_path / "before", tmp_path / "now", "--benchmark", file)
    assert (3, "") == (done.code, done.stdout)
    assert f"{QRELS}, column 'sha256'" in done.stderr


def test_a_stale_content_digest(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Bytes that differ are not called unchanged because the manifest repeats the old rows' digest."""
    file, tree, _ = trees
    stale = tmp_path / "stale"
    shutil.copytree(tree, stale)
    before = documents.read(stale / MANIFEST)["files"][RUNS]["content_sha256"]
    tiny.edit_rows(stale / RUNS, lambda rows: [{**row, "score": -row["score"]} for row in rows])
    manifest.seal(stale)
    document = documents.read(stale / MANIFEST)
    document["files"][RUNS]["content_sha256"] = before
    documents.write(document, stale / MANIFEST)
    done = release_here("diff", tree, stale, "--benchmark", file)
    assert (3, True) == (done.code, "PROMISE BROKEN: runs and qrel-nDCG changed" in done.stdout), done.stdout


def test_another_encoding(trees: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The same rows in other bytes, pages too, are found to be the same by a digest of the rows."""
    file, tree, _ = trees
    shutil.copytree(tree, tmp_path / "encoded")
    tables = [RUNS, *(path.relative_to(tree).as_posix() for path in (tree / "paper").glob("*.parquet"))]
    for name in tables:
        pq.write_table(pq.read_table(tree / name), tmp_path / "encoded" / name, compression="gzip")
    manifest.seal(tmp_path / "encoded")
    done = release_here("diff", tree, tmp_path / "encoded", "--benchmark", file, "--json")
    assert 0 == done.code, done.stderr
    found = json.loads(done.stdout)
    assert sorted(tables) == found["files"]["changed"]
    assert all(found["tables"][kind]["same_by_digest"] == 1 for kind in ("runs", "corpus"))


@pytest.mark.parametrize(
    ("column", "value", "said"), [("gain", 5.0, "5.0"), ("gain", -0.5, "-0.5"), ("score", -1, "-1")]
)
def test_a_value_out_of_range(
    trees: tuple[Path, Path, Path], tmp_path: Path, column: str, value: float, said: str
) -> None:
    """A gain outside 0 to 1, or a negative label, on either side: file, row, ids, column and value are named."""
    file, tree, _ = trees
    beyond = tmp_path / "beyond"
    shutil.copytree(tree, beyond)
    tiny.edit_rows(beyond / QRELS, lambda rows: [*rows[:7], {**rows[7], column: value}, *rows[8:]])
    manifest.seal(beyond)
    row = tiny.read_rows(tree / QRELS)[7]
    for sides in ((tree, beyond), (beyond, tree), (beyond, beyond)):
        done = release_here("diff", *sides, "--benchmark", file)
        assert (3, "") == (done.code, done.stdout)
        assert f"{beyond / QRELS}, row 7, column '{column}', value {said}]" in done.stderr
        assert row["query-id"] in done.stderr
        assert row["corpus-id"] in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a JSON document we accept: Expecting value"),
        ('{"benchmark": "tiny"', "not a JSON document we accept: Expecting ',' delimiter"),
        ("[]", "not a JSON object"),
    ],
)
def test_a_broken_releases_document(trees: tuple[Path, Path, Path], tmp_path: Path, content: str, message: str) -> None:
    """A releases.json that is none is named with its fault; --benchmark would not mend it."""
    _, tree, _ = trees
    broken = tmp_path / "broken"
    shutil.copytree(tree, broken)
    (broken / RELEASES).write_text(content, encoding="utf-8")
    manifest.seal(broken)
    done = release_here("diff", tree, broken)
    assert 3 == done.code
    assert message in done.stderr
    assert f"[{broken / RELEASES}]" in done.stderr
    assert "--benchmark" not in done.stderr


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
