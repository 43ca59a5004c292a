"""Builds that are killed: the next one goes on from the finished shards and gives the same bytes (DESIGN section 7)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.command import release, release_here, same_trees

from builder.shards import load

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent.parent
TAG = "v1-simulated"
SHARDS = 128  # 8 domains: 14 rerankers, a block of tournament answers and one of rubric answers each


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up benchmark of 8 domains and 48 queries, with its tree as an undisturbed build writes it in whole/."""
    folder = tmp_path_factory.mktemp("world") / "world"
    script = [sys.executable, ROOT / "scripts" / "make_world", "--scale", "0.001", "--workers", "1", folder]
    subprocess.run(script, check=True, capture_output=True)
    done = release_here(*arguments(folder, "whole"), "--workers", "1")
    assert done.code == 0, done.stderr
    assert {"done": SHARDS, "reused": 0} == json.loads(done.stdout)["shards"]
    return folder


def arguments(world: Path, out: str) -> list[str]:
    """The command that builds the world into a folder."""
    where = ["--benchmark", str(world / "benchmark.toml"), "--judge", "simulated", "--out", str(world / out)]
    return ["build", *where, "--no-figures", "--json"]


def shard_files(out: Path) -> list[Path]:
    """The files of finished shards."""
    return [path for path in (out / f".{TAG}.shards").glob("*") if not path.name.startswith(".")]


def children(parent: int) -> list[int]:
    """The processes that a process has started, where /proc tells."""
    task = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(child) for child in task.read_text().split()] if task.exists() else []


def kill_when(world: Path, out: str, ready: Callable[[Path], bool]) -> None:
    """Build with two processes, and SIGKILL the main one once `ready`; return when its workers are gone too."""
    command = [sys.executable, "-m", "releases", *arguments(world, out), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not ready(world / out):
            assert process.poll() is None, "the build ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        workers = children(process.pid)
        process.kill()
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline, "a worker outlives the build that was killed"
        time.sleep(0.01)


def test_killed_builds_go_on_from_their_shards(world: Path) -> None:
    """After kills early, late and at the end, a build does only the missing shards; its tree has the same bytes."""
    out, draw = world / "killed", random.Random(7)
    early, late = draw.randint(1, SHARDS // 2), draw.randint(SHARDS // 2, SHARDS - 1)
    for ready in (
        lambda out: len(shard_files(out)) >= early,
        lambda out: len(shard_files(out)) >= late,
        lambda out: any(out.glob(f".{TAG}.*.partial/provenance/item_params.*.json")),
    ):
        kill_when(world, "killed", ready)
        assert not (out / TAG).exists()
    there = [path for path in shard_files(out) if load(path) is not None]
    damaged = there[draw.randrange(len(there))]
    content = bytearray(damaged.read_bytes())
    content[draw.randrange(len(content))] ^= 1
    damaged.write_bytes(content)

    done = release(*arguments(world, "killed"), "--workers", "2")
    assert done.code == 0, done.stderr
    assert {"done": SHARDS - len(there) + 1, "reused": len(there) - 1} == json.loads(done.stdout)["shards"]
    assert same_trees(world / "whole" / TAG, out / TAG)
    assert [TAG] == [path.name for path in out.iterdir()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_keeps_its_shards(world: Path, number: signal.Signals) -> None:
    """Ctrl-C or a polite kill leaves finished shards and nothing else; the next build uses them."""
    out = world / f"interrupted-{number}"
    command = [sys.executable, "-m", "releases", *arguments(world, out.name), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while len(shard_files(out)) < SHARDS // 4:
            assert process.poll() is None, "the build ended before it could be interrupted"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert 130 == process.returncode, errors
    assert "interrupted: nothing half-done was left behind; the same command can be run again" in errors
    assert [f".{TAG}.shards"] == [path.name for path in out.iterdir()]
    there = len(shard_files(out))
    assert there >= SHARDS // 4


def test_one_build_of_a_release_at_a_time(world: Path) -> None:
    """A second build of the same release into the same folder is refused while the first is under way."""
    out = world / "twice"
    command = [sys.executable, "-m", "releases", *arguments(world, "twice"), "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + 60
        while not shard_files(out):
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        second = release_here(*arguments(world, "twice"), "--workers", "1")
        first.kill()
    assert 5 == second.code
    assert "another build" in second.stderr


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_a_worker_of_a_cluster_may_die(world: Path) -> None:
    """SIGKILL takes one of a cluster's two workers in the middle; the build ends well, with the same bytes."""
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    out = world / "cluster"
    seen: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 120
        while len(shard_files(out)) < SHARDS // 4 and time.monotonic() < deadline:
            time.sleep(0.002)
        seen.append(len(shard_files(out)))
        os.kill(cluster.workers[0].process.process.pid, signal.SIGKILL)

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        thread = threading.Thread(target=kill)
        thread.start()
        done = release_here(*arguments(world, "cluster"), "--scheduler", cluster.scheduler_address)
        thread.join()
    assert SHARDS // 4 <= seen[0] < SHARDS
    assert 0 == done.code, done.stderr
    assert {"done": SHARDS, "reused": 0} == json.loads(done.stdout)["shards"]
    assert same_trees(world / "whole" / TAG, out / TAG)
