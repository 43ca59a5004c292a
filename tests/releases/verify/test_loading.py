"""The level of the load: every config as readers load it, never from a cache that was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.command import Done
from support.published import REPO, V1, V2, found, statuses

from releases.local_hub import Fault, Faults, LocalHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.published import World

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


def in_process(world: World, endpoint: str, *arguments: str, home: Path | None = None) -> Done:
    """`release verify` of the Hub at `endpoint` in a process of its own, as its client reads the environment once."""
    command = [
        sys.executable,
        "-m",
        "releases",
        "verify",
        "--benchmark",
        str(world.folder / "benchmark.toml"),
        "--json",
    ]
    environment = {**os.environ, "HF_ENDPOINT": endpoint, **({"HF_HOME": str(home)} if home is not None else {})}
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(world: World, *faults: Fault) -> Iterator[LocalHub]:
    """The store, with these faults."""
    with LocalHub(world.store, faults=Faults(*faults)) as hub:
        yield hub


def test_squashed_releases_still_load(world: World) -> None:
    """Loads pass after a squash, by tag and by sha: a load is no proof of the history."""
    world.squash()
    done = world.verify("load", "--pin", V1)
    assert (5, {V1: ["ledger history-rewritten"]}) == (done.code, found(done))
    assert "passed" == statuses(done)[V1]["load"]
    report = next(item for item in json.loads(done.stdout)["reports"] if item["tag"] == V1)
    # 13 configs by sha; one of each of the nine kinds by tag.
    assert {"checks": 13 + 9} == report["covered"]["load"]


def test_a_moved_tag_loads_another_release(world: World) -> None:
    """By tag the other release comes, by sha the pinned one: named for what it is."""
    world.git("update-ref", f"refs/tags/{V1}", world.git("rev-parse", f"{V2}^{{commit}}"))
    done = world.verify("load", "--pin", V1)
    assert 5 == done.code
    names = {item.split()[1] for item in found(done)[V1]}
    assert {"tag-moved", "loads-another-release"} == names
    loaded = [item.split()[2] for item in found(done)[V1] if item.startswith("load ")]
    assert 9 == len(loaded)
    assert "paper__english-corpus" in loaded


def test_a_lost_object_does_not_load(world: World) -> None:
    """Every config that needs the object is named, with the version of datasets; the others are loaded all the same."""
    import datasets  # noqa: PLC0415 - slow to import

    world.lfs_object(V1, "paper__english/qrels.parquet").unlink()
    done = world.verify("load", "--pin", V1)
    assert 5 == done.code
    expected = [
        "content file-missing paper__english/qrels.parquet",
        f"load unloadable-with-datasets-{datasets.__version__} paper__english-qrels",
    ]
    assert expected == found(done)[V1]


@pytest.fixture
def stale(world: World, tmp_path: Path) -> Path:
    """A cache of the Hub's client that holds release 2, made by loading it."""
    home = tmp_path / "stale"
    program = f"import datasets; datasets.load_dataset('{REPO}', 'paper__english-qrels', revision='{V2}')"
    with serving(world) as hub:
        environment = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint}
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
    assert list(home.rglob("*.arrow"))
    return home


def test_stale_cache_and_a_hub_that_is_gone(world: World, stale: Path) -> None:
    """Release 2 is in the cache and the Hub cannot be reached: release 1 is not verified, exit code 6."""
    with serving(world) as hub:
        endpoint = hub.endpoint
    done = in_process(world, endpoint, "--pin", V1, "--level", "load", home=stale)
    assert (6, ["error"]) == (done.code, list(json.loads(done.stdout)))
    assert "cannot read the tags" in done.stderr


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault("*", "/resolve/.*README.md", times=9999, status=403), 4),
        (Fault("*", "/resolve/.*README.md", times=9999, cut=True), 6),
    ],
    ids=["403", "cut"],
)
def test_stale_cache_and_a_hub_that_does_not_give_the_release(
    world: World, stale: Path, fault: Fault, code: int
) -> None:
    """Its listings are fine, its files are refused or cut: nothing of the cache is taken for release 1."""
    with serving(world, fault) as hub:
        done = in_process(world, hub.endpoint, "--pin", V1, "--level", "load", home=stale)
    assert (code, {}) == (done.code, found(done))
    assert "not checked" == statuses(done)[V1]["load"]


def test_stale_cache_and_a_tag_that_never_existed(world: World, stale: Path) -> None:
    """A pin that the ledger lacks is refused; one that the remote never had is named, by tag nothing is loaded."""
    with serving(world) as hub:
        done = in_process(world, hub.endpoint, "--pin", "v3-never", "--level", "load", home=stale)
        assert (4, ["error"]) == (done.code, list(json.loads(done.stdout)))
        world.git("update-ref", "-d", f"refs/tags/{V1}")
        done = in_process(world, hub.endpoint, "--pin", V1, "--level", "load", home=stale)
    assert 5 == done.code
    assert "ledger tag-deleted" in found(done)[V1]
    assert "failed" == statuses(done)[V1]["load"]
    loads = [item for item in found(done)[V1] if item.startswith("load ")]
    assert 9 == len(loads)
    assert all(item.startswith("load unloadable-with-datasets-") for item in loads)


def test_offline_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HUB_OFFLINE would make a verification of the cache: it is refused."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = in_process(world, "http://127.0.0.1:9", "--level", "ledger")
    assert 4 == done.code
    assert "HF_HUB_OFFLINE" in done.stderr
