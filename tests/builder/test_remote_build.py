"""A whole build from a Hub: eight upstream repositories and a published release, through the real client."""

from __future__ import annotations

import os

# Read by huggingface_hub when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import json
from typing import TYPE_CHECKING

import huggingface_hub.constants
import pytest
from support import hub_world
from support.command import Done, release_here

from releases.local_hub import Fault, Faults, LocalHub
from releases.local_hub.faults import RATE_LIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.hub_world import HubWorld

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback, pytest.mark.usefixtures("world")]

BUILT = "v1-nvidia-qwen3.5-397b-a17b-nvfp4"


@pytest.fixture(scope="module")
def faults() -> Faults:
    """The faults of the Hub: none unless a test adds one."""
    return Faults()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, faults: Faults) -> Iterator[HubWorld]:
    """The Hub that `HF_ENDPOINT` names, with everything on it."""
    folder = tmp_path_factory.mktemp("remote")
    with pytest.MonkeyPatch.context() as patch, LocalHub(folder / "store", faults=faults) as hub:
        patch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        patch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub_world.make(folder, hub)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Faults) -> None:
    """Each test has a cache of its own and starts without faults."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    faults.clear()


def build(world: HubWorld, out: Path, text: str | None = None) -> Done:
    """Build the derived benchmark, or a changed text of it."""
    benchmark = world.benchmark
    if text is not None:
        benchmark = out.parent / "changed.toml"
        benchmark.write_text(text, encoding="utf-8")
    arguments = ("--benchmark", benchmark, "--judge", "qwen35", "--out", out, "--ledger", world.ledger)
    return release_here("build", *arguments, "--json", "--workers", "1")


def test_all_48_subsets_are_built_from_the_hub(world: HubWorld, tmp_path: Path) -> None:
    """The tables equal those of the published release, and releases.json records every full sha."""
    done = build(world, tmp_path / "out")
    assert done.code == 0, done.stderr
    tree = tmp_path / "out" / BUILT
    rows = json.loads(done.stdout)["rows"]
    assert 48 == sum(name.endswith("-qrels") for name in rows)
    published = sorted(path.relative_to(world.published) for path in world.published.rglob("*.parquet"))
    assert 8 + 48 * 3 + 8 * 5 == len(published)
    assert [] == [name for name in published if (world.published / name).read_bytes() != (tree / name).read_bytes()]
    recorded = json.loads((tree / "provenance" / "releases.json").read_text())["releases"][-1]["upstream"]
    assert world.upstream_shas == {name: pin["revision"] for name, pin in recorded.items()}
    inputs = json.loads((tree / "provenance" / "manifest.json").read_text())["inputs"]["uris"]["inputs"]
    assert world.published_sha == inputs["revision"]
    assert f"hf://datasets/{world.published_repo}@{world.published_sha}" == inputs["uri"]


def test_corpora_of_the_release_are_not_fetched(world: HubWorld, tmp_path: Path, faults: Faults) -> None:
    """Of the published release only provenance and qrels are read: a corpus is fetched from upstream, once."""
    assert 0 == build(world, tmp_path / "out").code
    asked = [request.path for request in faults.requests(path=world.published_repo)]
    assert any("qrels" in path for path in asked)
    assert [] == [path for path in asked if "/corpus-" in path]


def test_a_wrong_sha_is_named(world: HubWorld, tmp_path: Path) -> None:
    """A pin that no repository has: exit code 4, the address, and nothing written."""
    sha = world.upstream_shas["hr"]
    wrong = ("0" if sha[0] != "0" else "1") + sha[1:]
    done = build(world, tmp_path / "out", world.benchmark.read_text().replace(sha, wrong))
    assert 4 == done.code
    assert wrong in done.stderr
    assert "Vidore3HrOCRRetrieval" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_short_sha_and_a_branch_are_refused(world: HubWorld, tmp_path: Path) -> None:
    """What can move or be ambiguous is no pin: exit code 3."""
    sha = world.upstream_shas["hr"]
    for pin in (sha[:8], "main"):
        done = build(world, tmp_path / "out", world.benchmark.read_text().replace(sha, pin))
        assert 3 == done.code, done.stderr
        assert pin in done.stderr


def test_a_truncated_file_is_named(world: HubWorld, tmp_path: Path, faults: Faults) -> None:
    """A body that ends early is never taken for whole: exit code 4, with the file."""
    faults.add(Fault("GET", r"Vidore3Energy.*english-queries.*\.parquet", body=b"PAR1", times=1000))
    done = build(world, tmp_path / "out")
    assert 4 == done.code, done.stderr
    assert "a file came truncated" in done.stderr
    assert "-queries/test-00000-of-00001.parquet" in done.stderr
    assert not (tmp_path / "out").exists()


def test_too_many_requests_are_said(world: HubWorld, tmp_path: Path, faults: Faults) -> None:
    """A Hub that keeps answering 429: exit code 4, and the message says that it is the rate limit."""
    faults.add(Fault("*", "/api/datasets/", status=429, times=1000, headers=RATE_LIMITED))
    done = build(world, tmp_path / "out")
    assert 4 == done.code, done.stderr
    assert "429" in done.stderr


def test_a_repository_that_vanished_is_named(world: HubWorld, tmp_path: Path) -> None:
    """A repository that is no longer there: exit code 4, with its name."""
    text = world.benchmark.read_text().replace("Vidore3PhysicsOCRRetrieval", "Vidore3PhysicsVanished")
    done = build(world, tmp_path / "out", text)
    assert 4 == done.code, done.stderr
    assert "Vidore3PhysicsVanished" in done.stderr
