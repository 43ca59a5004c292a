"""`release build --scheduler`: a Dask cluster does the shards, and changes nothing but where they are done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import Done, release, release_here, same_trees

from builder import runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

TAG = "v1-toy"
pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


def build(world: Path, out: str, *extra: str | Path) -> Done:
    """Build the tiny world."""
    benchmark = world / "benchmark.toml"
    arguments = ("--benchmark", benchmark, "--judge", "toy", "--no-figures", "--out", world / out)
    return release_here("build", *arguments, *extra)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny world, and its tree as one thread builds it, in alone/."""
    folder = tmp_path_factory.mktemp("world")
    tiny.write_world(folder)
    done = build(folder, "alone", "--workers", "1")
    assert done.code == 0, done.stderr
    return folder


@pytest.fixture
def cluster() -> Iterator[distributed.LocalCluster]:
    """Two worker processes on the loopback address."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as made:
        yield made


def test_a_cluster_gives_the_same_bytes(world: Path, cluster: distributed.LocalCluster) -> None:
    """The tree that two workers of a cluster build is the one that a single thread builds."""
    done = build(world, "cluster", "--scheduler", cluster.scheduler_address)
    assert 0 == done.code, done.stderr
    assert same_trees(world / "alone" / TAG, world / "cluster" / TAG)


def test_a_fault_in_the_data_is_told_as_without_a_cluster(world: Path, cluster: distributed.LocalCluster) -> None:
    """A refusal that a worker of the cluster raises has the exit code and the words of one on this machine."""
    spoilt = world / "spoilt"
    tiny.write_world(spoilt)
    tiny.edit_rows(spoilt / "pipeline" / "runs" / "paper.parquet", lambda rows: [*rows, dict(rows[0])])
    here = build(spoilt, "here", "--workers", "1")
    there = build(spoilt, "there", "--scheduler", cluster.scheduler_address)
    assert 3 == here.code == there.code
    assert "row 48" in here.stderr
    assert here.stderr == there.stderr
    assert not (spoilt / "there").exists()


def test_an_unreachable_scheduler_is_said(world: Path) -> None:
    """No scheduler at the address: exit code 4, what to do next, no traceback."""
    done = release(
        *("build", "--benchmark", world / "benchmark.toml", "--judge", "toy", "--no-figures"),
        *("--out", world / "none", "--scheduler", "tcp://127.0.0.1:9"),
    )
    assert 4 == done.code, done.stderr
    assert "dask scheduler" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["nonsense", "", "tcp://127.0.0.1", "carrier-pigeon://127.0.0.1:1"])
def test_an_address_that_is_none_is_said(world: Path, address: str) -> None:
    """What names no port or no way to get there is refused before anything is asked, with exit code 4."""
    done = build(world, "none", "--scheduler", address)
    assert (4, True) == (done.code, "no Dask cluster answers" in done.stderr)


def test_a_cluster_without_workers_is_given_up(
    world: Path, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the last worker goes the build ends with exit code 6; with workers the same command goes on."""
    monkeypatch.setattr(runner, "_LOOK", 0.1)
    monkeypatch.setattr(runner, "_ALONE", 1.0)

    def leave(executor: distributed.cfexecutor.ClientExecutor, *_arguments: object, **_options: object) -> Future[None]:
        """A call that waits for workers that are gone by then."""
        if there := list(executor._client.nthreads()):
            executor._client.retire_workers(there, close_workers=True)
        assert {} == executor._client.nthreads()
        return submit(executor, abs, 1)

    submit = distributed.cfexecutor.ClientExecutor.submit
    with monkeypatch.context() as patch:
        patch.setattr(distributed.cfexecutor.ClientExecutor, "submit", leave)
        done = build(world, "left", "--scheduler", cluster.scheduler_address)
    assert 6 == done.code, done.stderr
    assert "no worker was there for 1 s" in done.stderr
    cluster.scale(3)  # one more than the two that it still counts
    cluster.wait_for_workers(1, timeout=60)
    done = build(world, "left", "--scheduler", cluster.scheduler_address)
    assert 0 == done.code, done.stderr
    assert same_trees(world / "alone" / TAG, world / "left" / TAG)
