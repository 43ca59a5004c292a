"""The figures: which are drawn, the same bytes each time, nothing of the clock or the machine in them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from support import tiny
from support.command import release_here

from builder import documents, figures
from builder.benchmark import load_benchmark
from builder.card_facts import CardFacts, read_facts
from builder.manifest import configs_of
from provenance.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("leaderboard", "domains", "gain_link", "reliability", "gain_by_grade", "scales")


@pytest.fixture(scope="module")
def facts(reference: Path, reference_tree: Path) -> CardFacts:
    """What the card of the real benchmark says."""
    configs = configs_of(documents.read(reference_tree / "provenance/manifest.json"))
    return read_facts(reference_tree, load_benchmark(str(reference / "benchmark.toml")), configs)


def test_a_build_draws_every_figure_and_the_card_shows_it(reference_tree: Path) -> None:
    """Six figures, SVG and PNG each; each has its image with a text in the card, and its entry in the manifest."""
    expected = sorted(f"{name}.{kind}" for name in NAMES for kind in ("png", "svg"))
    assert expected == sorted(path.name for path in (reference_tree / "assets").iterdir())
    shown = re.findall(
        r"^!\[(.+)\]\(assets/(\w+)\.png\)$", (reference_tree / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert set(NAMES) == {name for _, name in shown}
    assert all(len(text) > 40 for text, _ in shown)
    manifest = json.loads((reference_tree / "provenance/manifest.json").read_text("utf-8"))
    assert {f"assets/{name}" for name in expected} <= manifest["files"].keys()
    assert manifest["settings"]["figures"] is True


def test_drawing_again_gives_the_same_bytes(facts: CardFacts, reference_tree: Path, tmp_path: Path) -> None:
    """Another folder, another process: the bytes are those of the build."""
    assert NAMES == figures.draw(facts, tmp_path / "assets")
    for path in (reference_tree / "assets").iterdir():
        assert path.read_bytes() == (tmp_path / "assets" / path.name).read_bytes(), path.name


def test_figures_tell_nothing_of_clock_and_maker(reference_tree: Path) -> None:
    """No date and no version in an SVG, no text chunk in a PNG; and the ground is opaque and light."""
    for path in (reference_tree / "assets").glob("*.svg"):
        assert not re.search(r"<dc:date>|Matplotlib v|\d{4}-\d\d-\d\dT", path.read_text("utf-8"))
    for path in (reference_tree / "assets").glob("*.png"):
        with Image.open(path) as image:
            image.load()
            assert {"dpi"} == set(image.info)
            assert 1400 == image.width
            pixels = np.asarray(image.convert("RGBA"))
        assert (255, True) == (int(pixels[..., 3].min()), bool((pixels[0, 0, :3] > 240).all()))


def test_facts_that_are_not_there_draw_nothing(facts: CardFacts, tmp_path: Path) -> None:
    """Without runs, criteria and calibration table only the link and the gains by grade are left."""
    calibration = replace(facts.calibration, reliability=None, taus=None, alphas=None)
    poor = replace(facts, results=None, calibration=calibration)
    assert ("gain_link", "gain_by_grade") == figures.draw(poor, tmp_path)


def test_near_difficulties_and_odd_names_can_be_drawn(facts: CardFacts, tmp_path: Path) -> None:
    """Equal difficulties, a name with dollar signs and a system without a Mean are no trouble."""
    assert facts.results is not None
    items = dict.fromkeys(facts.calibration.items, (1.0, 0.5))
    results = facts.results
    boards = tuple(
        replace(board, rows=("$x^{", *board.rows[1:]), values=_one_hole(board.values)) for board in results.tables
    )
    readings = tuple(
        replace(reading, intervals={name: reading.intervals[name] for name in boards[0].rows[1:]})
        for reading in results.readings
    )
    odd = replace(
        facts,
        results=replace(results, tables=boards, readings=readings),
        calibration=replace(facts.calibration, items=items),
    )
    assert NAMES == figures.draw(odd, tmp_path)


def _one_hole(values: np.ndarray) -> np.ndarray:
    holed = values.copy()
    holed[0, 0] = holed[0, -1] = np.nan
    return holed


def test_no_figures_is_recorded(tmp_path: Path) -> None:
    """--no-figures leaves no assets and no images, and the manifest says so."""
    benchmark = tiny.write_world(tmp_path)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", tmp_path / "out", "--workers", "1",
        "--no-figures",
    )  # fmt: skip
    assert 0 == done.code, done.stderr
    tree = tmp_path / "out" / "v1-toy"
    assert not (tree / "assets").exists()
    assert "](assets/" not in (tree / "README.md").read_text("utf-8")
    assert json.loads((tree / "provenance/manifest.json").read_text("utf-8"))["settings"]["figures"] is False


def test_a_missing_matplotlib_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work, exit code 4 with both remedies; nothing is left behind."""
    benchmark = tiny.write_world(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", tmp_path / "out", "--workers", "1"
    )
    assert 4 == done.code
    assert "rcp-release[plots]" in done.stderr
    assert "--no-figures" in done.stderr
    assert not (tmp_path / "out" / "v1-toy").exists()
    with pytest.raises(InputError):
        figures.require()


def test_a_tiny_world_has_its_figures_too(tmp_path: Path) -> None:
    """Pools of six pages and two systems are enough for each figure."""
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    benchmark = tiny.write_world(tmp_path)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", tmp_path / "out", "--workers", "1"
    )
    assert 0 == done.code, done.stderr
    assert set(NAMES) == {path.stem for path in (tmp_path / "out/v1-toy/assets").iterdir()}
