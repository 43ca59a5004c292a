"""The made-up world of scripts/make_world: the published counts at full scale, and the same shape at a small one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from provenance import windows

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "scripts"))

from full_shape.shares import shares  # noqa: E402 - found through the path above


def test_the_full_scale_is_vidores() -> None:
    """At full scale: the pages, queries, labels, windows and unusable answers that were published."""
    found = shares(1.0, 0)
    total = {key: sum(share.counts[key] for share in found) for key in found[0].counts}
    assert 8 == len(found)
    assert (19_252, 2_419) == (total["pages"], total["queries"])
    assert 14_514 * 216 - 3_122_771 == total["missing"]
    assert 14_514 * 100 - 1_451_399 == total["rubric_missing"]
    published = {"injected": 11_843, "partial": 2_322, "unreadable": 27, "odd": 6_024, "rubric_unusable": 11}
    assert published == {key: total[key] for key in published}
    assert {"embed_v4", "bm25", "octen"} == set(found[0].retrievers)
    assert 14 == len(found[0].models)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousandth of it."""
    folder = tmp_path_factory.mktemp("world") / "world"
    script = [sys.executable, ROOT / "scripts" / "make_world", "--scale", "0.001", "--workers", "1", folder]
    subprocess.run(script, check=True, capture_output=True)
    return folder


def test_windows_have_the_schedules_shape(world: Path) -> None:
    """Windows show 10 pages of a pool of 150, each page in every phase's share; few answers are of no use."""
    unusable = 0
    for file in sorted((world / "pipeline" / "judgements" / "simulated" / "tournament").glob("*.parquet")):
        table = pl.read_parquet(file)
        assert {10} == set(table["corpus-ids"].list.len())
        shown = table.group_by("query-id").agg(pl.col("corpus-ids").explode().n_unique(), pl.len())
        assert {150} == set(shown["corpus-ids"])
        assert set(shown["len"]) <= set(range(208, 217))
        accounts = windows.account(windows.read_tournament(table, file=str(file)).windows)
        assert {"random", "stratified", "adaptive"} == set(accounts)
        unusable += sum(number for phase in accounts.values() for name, number in phase.items() if name != "fitted")
    assert 2 + 1 == unusable  # a thousandth of 2,322 partial answers, and one of the unreadable


def test_a_seed_is_a_world(world: Path, tmp_path: Path) -> None:
    """The same seed gives the same bytes, another one others."""
    script = [sys.executable, ROOT / "scripts" / "make_world", "--scale", "0.001", "--workers", "1"]
    subprocess.run([*script, "--seed", "1", tmp_path / "other"], check=True, capture_output=True)
    subprocess.run([*script, tmp_path / "same"], check=True, capture_output=True)
    file = Path("pipeline") / "runs" / "energy.parquet"
    assert (world / file).read_bytes() == (tmp_path / "same" / file).read_bytes()
    assert (world / file).read_bytes() != (tmp_path / "other" / file).read_bytes()
