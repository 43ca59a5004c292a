"""Shards: named by what they depend on, done once, made again where a file is damaged (DESIGN section 7)."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from builder import shards
from builder.runner import Runner, local
from builder.shards import Shard, ShardStore, load, shard_store
from provenance.errors import DataError, InputError, RemoteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def square(numbers: list[int]) -> pa.Table:
    """The work of these tests."""
    return pa.table({"square": [number * number for number in numbers]})


def refuse(_: list[int]) -> pa.Table:
    """Work that finds a fault in the data."""
    raise DataError("a page is there twice")


def die(_: list[int]) -> pa.Table:
    """Work that takes its process with it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def shard(*numbers: int) -> Shard:
    """A shard that squares numbers."""
    return Shard(square, (list(numbers),), {"numbers": list(numbers)})


@pytest.fixture
def runner() -> Iterator[Runner]:
    """A thread."""
    with ThreadPoolExecutor(1) as executor:
        yield Runner(executor)


def test_tables_come_in_the_order_of_the_shards(tmp_path: Path, runner: Runner) -> None:
    """Each shard's table is what its work gives, in order, as often as it is asked for."""
    tables = ShardStore(tmp_path, runner).start([shard(3), shard(1, 2)])
    assert [[9], [1, 4]] == [table["square"].to_pylist() for table in tables]
    assert [[9], [1, 4]] == [table["square"].to_pylist() for table in tables]


def test_finished_shards_are_reused(tmp_path: Path, runner: Runner) -> None:
    """A second store in the same folder does only what is new."""
    list(ShardStore(tmp_path, runner).start([shard(1), shard(2)]))
    again = ShardStore(tmp_path, runner)
    list(again.start([shard(1), shard(2), shard(3)]))
    assert (1, 2) == (again.done, again.reused)


@pytest.mark.parametrize("place", [0, 31, 32, 60, -1])
def test_a_damaged_file_is_made_again(place: int, tmp_path: Path, runner: Runner) -> None:
    """A flipped bit anywhere in a shard's file is noticed, and the shard done again."""
    list(ShardStore(tmp_path, runner).start([shard(5)]))
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    bad = bytearray(good)
    bad[place] ^= 4
    file.write_bytes(bad)
    again = ShardStore(tmp_path, runner)
    assert [[25]] == [table["square"].to_pylist() for table in again.start([shard(5)])]
    assert (1, 0) == (again.done, again.reused)
    assert good == file.read_bytes()


def test_files_that_changed_places_are_made_again(tmp_path: Path, runner: Runner) -> None:
    """A whole file under another shard's name is not that shard's."""
    list(ShardStore(tmp_path, runner).start([shard(2), shard(5)]))
    one, other = tmp_path.iterdir()
    good = one.read_bytes(), other.read_bytes()
    one.write_bytes(good[1])
    other.write_bytes(good[0])
    again = ShardStore(tmp_path, runner)
    assert [[4], [25]] == [table["square"].to_pylist() for table in again.start([shard(2), shard(5)])]
    assert (2, 0) == (again.done, again.reused)
    assert good == (one.read_bytes(), other.read_bytes())


@pytest.mark.parametrize("length", [0, 10, 32, 100])
def test_a_cut_file_is_no_shard(length: int, tmp_path: Path, runner: Runner) -> None:
    """A file that ends early is as good as none."""
    list(ShardStore(tmp_path, runner).start([shard(5)]))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:length])
    assert load(file) is None


def test_a_last_file_of_a_worker_does_not_keep_the_folder(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that ends its shard while the folder is removed leaves nothing behind."""
    folder, calls = tmp_path / "shards", []

    def remove(path: Path, *, ignore_errors: bool) -> None:
        rmtree(path, ignore_errors=ignore_errors)
        calls.append(path)
        if len(calls) < 3:
            path.mkdir()
            (path / "late").touch()

    rmtree = shutil.rmtree
    monkeypatch.setattr(shards.shutil, "rmtree", remove)
    with pytest.raises(DataError), shards.shard_store(folder, runner) as store:
        list(store.start([Shard(refuse, ([1],), {})]))
    assert 3 == len(calls)
    assert not folder.exists()


def test_a_key_hangs_on_facts_work_and_code() -> None:
    """Other facts, other work or other code give another key; other arguments alone do not."""
    one = shard(1)
    keys = [one.key("a"), one.key("b"), shard(2).key("a"), Shard(refuse, ([1],), {"numbers": [1]}).key("a")]
    assert 4 == len(set(keys))
    assert one.key("a") == Shard(square, ([7],), {"numbers": [1]}).key("a")


def test_a_worker_of_other_code_is_refused(tmp_path: Path) -> None:
    """A worker whose code is not the build's does not do the work."""
    with pytest.raises(InputError, match="other code"):
        shards.make(shard(1), tmp_path / "file", "0" * 64)
    assert [] == list(tmp_path.iterdir())


def test_no_half_file_is_left(tmp_path: Path) -> None:
    """Work that fails leaves no file, temporary or other."""
    with pytest.raises(DataError):
        shards.make(Shard(refuse, ([1],), {}), tmp_path / "file", shards.code_version())
    assert [] == list(tmp_path.iterdir())


def test_shards_go_with_the_build(tmp_path: Path, runner: Runner) -> None:
    """They vanish when the build ends well or the data are refused, and stay when it is interrupted."""
    folder = tmp_path / "shards"
    with shard_store(folder, runner) as store:
        list(store.start([shard(1)]))
        assert folder.is_dir()
    assert not folder.exists()

    with pytest.raises(DataError), shard_store(folder, runner) as store:
        list(store.start([shard(1), Shard(refuse, ([1],), {})]))
    assert not folder.exists()

    def interrupted() -> None:
        with shard_store(folder, runner) as store:
            list(store.start([shard(1)]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert 1 == len(list(folder.iterdir()))


def test_a_dead_worker_is_said_and_finished_shards_stay(tmp_path: Path) -> None:
    """A process that dies in a shard ends the build with exit code 6; what was done is there for the next."""
    folder = tmp_path / "shards"

    def build() -> None:
        with local(2) as processes, shard_store(folder, processes) as store:
            list(store.start([shard(1)]))
            list(store.start([Shard(die, ([1],), {})]))

    with pytest.raises(RemoteError, match="a worker died") as caught:
        build()
    assert 6 == caught.value.exit_code
    assert 1 == len(list(folder.iterdir()))


def test_workers_have_one_thread_each() -> None:
    """BLAS and Polars start no threads of their own in a worker, and this process' settings come back."""
    before = dict(os.environ)
    with local(2) as processes:
        found = processes.map(os.getenv, ["OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"])
    assert [before.get("OPENBLAS_NUM_THREADS", "1"), before.get("POLARS_MAX_THREADS", "1")] == found
    assert before == dict(os.environ)
