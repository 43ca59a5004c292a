"""A published release is made again from its own provenance, byte for byte, or it is said which files differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.published import V1, V2, World, publish, write_published

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Done

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two releases; read only."""
    return write_published(tmp_path_factory.mktemp("published") / "world")


def reproduce(world: World, tag: str, *arguments: str | Path) -> Done:
    """`release reproduce`."""
    return world.run("reproduce", tag, "--to", f"local:{world.store}", "--workers", "1", "--json", *arguments)


@pytest.mark.parametrize("tag", [V1, V2])
def test_the_same_bytes(published: World, tag: str, tmp_path: Path) -> None:
    """Every file, the manifest with its record of the pipeline's inputs and releases.json among them."""
    done = reproduce(published, tag, "--out", tmp_path / "again")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (True, []) == (document["identical"], document["differences"])
    for path in (published.folder / "out" / tag).rglob("*"):
        if path.is_file():
            again = tmp_path / "again" / tag / path.relative_to(published.folder / "out" / tag)
            assert path.read_bytes() == again.read_bytes()


def test_another_upstream_is_named(published: World, tmp_path: Path) -> None:
    """A question that upstream words otherwise by now: the upstream file and each file that follows from it."""
    world = published.copy(tmp_path / "world")

    def reword(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        rows[0]["text"] = "how is glass made"
        return rows

    tiny.edit_rows(next((world.folder / "upstream" / "paper" / "english-queries").glob("*.parquet")), reword)
    done = reproduce(world, V1)
    assert 3 == done.code
    differing = {item["file"]: item["why"] for item in json.loads(done.stdout)["differences"]}
    expected = {
        "upstream/paper/english-queries/test-00000-of-00001.parquet",
        "paper__english/queries.parquet",
        "rcp_ndcg_tasks.py",
        "provenance/manifest.json",
    }
    assert expected <= differing.keys()
    assert differing["paper__english/queries.parquet"].startswith("the rows differ")


def test_a_benchmark_file_that_names_another_folder_is_refused(published: World, tmp_path: Path) -> None:
    """The recorded upstream is a folder that the file does not name any more: refused, with both."""
    world = published.copy(tmp_path / "world")
    file = world.folder / "benchmark.toml"
    (world.folder / "upstream").rename(world.folder / "elsewhere")
    file.write_text(file.read_text().replace("upstream/paper", "elsewhere/paper"))
    done = reproduce(world, V1)
    assert 3 == done.code
    assert "'upstream/paper'" in done.stderr
    assert "elsewhere/paper" in done.stderr


def test_an_unknown_tag_is_refused(published: World) -> None:
    """The ledger names what there is."""
    done = reproduce(published, "v9-toy")
    assert (4, ["error"]) == (done.code, list(json.loads(done.stdout)))
    assert V2 in done.stderr


def test_a_release_that_withdraws_another_is_made_again(
    published: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are its predecessor's: the same bytes; and a verification of the withdrawn one says why."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = published.copy(tmp_path / "world")
    withdrawn = world.run("withdraw", V1, "--why", "the wrong pages", "--out", world.folder / "out")
    assert withdrawn.code == 0, withdrawn.stderr
    publish(world, "v3-toy")
    done = reproduce(world, "v3-toy")
    assert (0, []) == (done.code, json.loads(done.stdout)["differences"])
    verified = world.verify("content")
    assert 0 == verified.code
    reasons = {report["tag"]: report["withdrawn"] for report in json.loads(verified.stdout)["reports"]}
    assert {V1: "the wrong pages", V2: None, "v3-toy": None} == {tag: reasons[tag] for tag in (V1, V2, "v3-toy")}
    assert f"{V1}: withdrawn: the wrong pages" in verified.stderr
