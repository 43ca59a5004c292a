"""A release tree given back as judge inputs: gains are checked and carried, never refitted."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import Done, release_here

from builder.manifest import seal

if TYPE_CHECKING:
    from pathlib import Path

TAG = "v1-toy"
NAME_THEIR_INPUTS = {"provenance/manifest.json"}


def rebuild(world: Path, inputs: Path, out: str = "again") -> Done:
    """Build the tiny world with a tree as inputs."""
    arguments = ("--benchmark", world / "benchmark.toml", "--judge", "toy", "--workers", "1", "--no-figures")
    return release_here("build", *arguments, "--inputs", inputs, "--out", world / out)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world with a good tree in out/v1-toy."""
    world = tmp_path_factory.mktemp("world")
    benchmark = tiny.write_world(world)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--workers", "1", "--no-figures", "--out", world / "out"
    )
    assert done.code == 0, done.stderr
    return world


def different(one: Path, other: Path) -> set[str]:
    """Files that differ between two trees, or stand in one only."""
    names = {path.relative_to(tree).as_posix() for tree in (one, other) for path in tree.rglob("*") if path.is_file()}
    return {
        name
        for name in names
        if not (one / name).is_file()
        or not (other / name).is_file()
        or (one / name).read_bytes() != (other / name).read_bytes()
    }


def test_the_real_tree_builds_its_own_tables(reference: Path, reference_tree: Path, tmp_path: Path) -> None:
    """debian-reference's tree as inputs gives the same bytes but for the manifest, which names its inputs."""
    done = release_here(
        "build",
        "--benchmark",
        reference / "benchmark.toml",
        "--judge",
        "simulated",
        "--inputs",
        reference_tree,
        "--out",
        tmp_path,
        "--workers",
        "1",
    )
    assert done.code == 0, done.stderr
    assert NAME_THEIR_INPUTS == different(reference_tree, tmp_path / "v1-simulated")


def test_a_tree_laid_out_elsewhere_is_read_by_config_name(built: Path, tmp_path: Path) -> None:
    """Files moved to other paths, with a card that says so, build the same tables."""
    elsewhere = tmp_path / "published"
    shutil.copytree(built / "out" / TAG, elsewhere)
    card = (elsewhere / "README.md").read_text()
    for language in tiny.LANGUAGES:
        (elsewhere / f"paper__{language}").rename(elsewhere / f"moved-{language}")
        card = card.replace(f'"paper__{language}/', f'"moved-{language}/')
    (elsewhere / "README.md").write_text(card)
    (elsewhere / "provenance" / "manifest.json").unlink()
    done = rebuild(built, elsewhere)
    assert done.code == 0, done.stderr
    assert NAME_THEIR_INPUTS == different(built / "out" / TAG, built / "again" / TAG)


def test_a_tree_without_calibration_and_windows_builds_without_them(built: Path, tmp_path: Path) -> None:
    """Release 2 has neither: the new tree has neither, its card no account of windows, and nothing is made up."""
    published = tmp_path / "published"
    shutil.copytree(built / "out" / TAG, published)
    shutil.rmtree(published / "provenance" / "calibration")
    (published / "provenance" / "windows.toy.json").unlink()
    head, rest = (published / "README.md").read_text().split('- config_name: "provenance-calibration"')
    (published / "README.md").write_text(head + "---\n" + rest.split("\n---\n", 1)[1])
    (published / "provenance" / "manifest.json").unlink()
    done = rebuild(built, published, "without")
    assert done.code == 0, done.stderr
    expected = {
        "README.md",
        "provenance/calibration/paper.parquet",
        "provenance/windows.toy.json",
        "provenance/manifest.json",
    }
    assert expected == different(built / "out" / TAG, built / "without" / TAG)


def _shift_a_gain(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    rows[3]["gain"] = float(rows[3]["gain"]) + 1e-9  # type: ignore[arg-type]
    return rows


def test_a_file_that_is_not_its_manifests_is_refused(built: Path, tmp_path: Path) -> None:
    """A verdict changed after the release was sealed: refused, with the file named."""
    published = tmp_path / "published"
    shutil.copytree(built / "out" / TAG, published)

    def flip(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        rows[0]["C1"] = 1 - int(rows[0]["C1"])  # type: ignore[call-overload]
        return rows

    tiny.edit_rows(published / "provenance" / "judge_criteria" / "paper.parquet", flip)
    done = rebuild(built, published, "refused")
    assert 3 == done.code
    assert "provenance/judge_criteria/paper.parquet" in done.stderr
    assert "not the one that its manifest describes" in done.stderr


def test_a_gain_that_is_not_its_link_is_refused(built: Path, tmp_path: Path) -> None:
    """One gain moved by 1e-9: refused, with the pair named, since the fit was in float64."""
    published = tmp_path / "published"
    shutil.copytree(built / "out" / TAG, published)
    tiny.edit_rows(published / "paper__english" / "qrels.parquet", _shift_a_gain)
    seal(published)
    done = rebuild(built, published, "refused")
    assert 3 == done.code
    assert "a gain is not weighted_discrimination(theta)" in done.stderr
    assert "query-test-0" in done.stderr
    assert tiny.pool_of("query-test-0")[3] in done.stderr


def test_a_pair_without_a_gain_is_refused(built: Path, tmp_path: Path) -> None:
    """A qrels row lost on the way: refused, with the pair named; nothing is defaulted."""
    published = tmp_path / "published"
    shutil.copytree(built / "out" / TAG, published)
    tiny.edit_rows(published / "paper__english" / "qrels.parquet", lambda rows: rows[:-1])
    seal(published)
    done = rebuild(built, published, "refused")
    assert 3 == done.code
    assert "a pool pair has no gain" in done.stderr
    assert tiny.pool_of("query-test-2")[-1] in done.stderr


def test_calibration_made_elsewhere_is_taken_from_its_folder(built: Path, tmp_path: Path) -> None:
    """`calibration/<judge>/` beside the pipeline's outputs: its gains are used and nothing is fitted."""
    inputs = tmp_path / "pipeline"
    shutil.copytree(built / "pipeline", inputs)
    shutil.rmtree(inputs / "judgements")
    tree = built / "out" / TAG
    rows = []
    for language in tiny.LANGUAGES:
        qrels = tiny.read_rows(tree / f"paper__{language}" / "qrels.parquet")
        rows += [
            {"domain": "paper", **{name: row[name] for name in ("query-id", "corpus-id", "theta", "gain")}}
            for row in qrels
        ]
    tiny.write_rows(inputs / "calibration" / "toy" / "gains.parquet", rows)
    parameters = json.loads((tree / "provenance" / "item_params.toy.json").read_text())
    (inputs / "calibration" / "toy" / "item_params.json").write_text(json.dumps(parameters))
    done = rebuild(built, inputs, "elsewhere")
    assert done.code == 0, done.stderr
    releases = json.loads((built / "elsewhere" / TAG / "provenance" / "releases.json").read_text())
    assert "elsewhere" == releases["releases"][-1]["calibration"]["made"]
    for language in tiny.LANGUAGES:
        name = f"paper__{language}/qrels.parquet"
        assert (tree / name).read_bytes() == (built / "elsewhere" / TAG / name).read_bytes()
