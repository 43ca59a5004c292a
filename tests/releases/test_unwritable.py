"""Where nothing more can be written: exit code 4, the place and what to do, and no half of a file.

A full disk is made with a limit on the size of files (RLIMIT_FSIZE), which any process may set for itself: a write
beyond it fails as one on a full disk does. /dev/full stands for a full disk behind stdout, and /sys for a folder in
which nobody, not even root, makes a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import Done, release_here, same_trees
from support.published import V1, World, publish_next

from builder.output import whole_file
from provenance.errors import InputError, SafetyError
from releases.ledger.chain import append, read_ledger, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

FULL, NOWHERE = Path("/dev/full"), Path("/sys")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
needs_sys = pytest.mark.skipif(not NOWHERE.is_dir(), reason="this system has no /sys")


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file gets longer than `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with one published release; read only."""
    world = World(tmp_path_factory.mktemp("unwritable") / "world")
    tiny.write_world(world.folder)
    publish_next(world, V1, "--no-figures")
    return world


@pytest.fixture
def world(published: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy to write to, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return published.copy(tmp_path / "world")


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(done: Done, *needles: str | Path) -> None:
    """Exit code 4, and a message that names these and what to do."""
    assert 4 == done.code, done.stderr
    message = done.stderr.partition("error: ")[2]
    assert [] == [needle for needle in needles if str(needle) not in message], done.stderr
    assert "\n  next: " in message
    assert "Traceback" not in done.stderr


BUILD = ("--judge", "toy", "--workers", "1", "--no-figures")


@pytest.mark.parametrize("size", [0, 500, 2000, 3000, 6000, 12_000])
def test_build(world: World, size: int) -> None:
    """Wherever in a build the disk is full, there is no tree, no shard and no lock; an older tree stays whole."""
    before = everything(world.folder / "out")
    for out in (world.folder / "out", world.folder / "new"):
        with full_disk(size):
            done = world.run("build", *BUILD, "--out", out, "--ledger", world.folder / "none.jsonl")
        refused(done, out / V1, "--out")
    assert before == everything(world.folder / "out")
    assert not (world.folder / "new").exists()


@pytest.mark.parametrize("size", [0, 2500])
def test_withdraw(world: World, size: int) -> None:
    """No tree of the next release is begun."""
    before = everything(world.folder)
    with full_disk(size):
        done = world.run("withdraw", V1, "--why", "bad", "--out", world.folder / "out")
    refused(done, "v2-toy")
    assert before == everything(world.folder)


@pytest.mark.parametrize("suffix", ["json", "parquet", "md"])
def test_reports(world: World, suffix: str) -> None:
    """A report is whole or not there, and an older one stays."""
    path = world.folder / f"report.{suffix}"
    path.write_text("older")
    place = ("verify", "--to", f"local:{world.store}") if suffix == "md" else ("validate", world.folder / "out" / V1)
    with full_disk(100):
        done = world.run(*place, "--report", path)
    refused(done, path, "--report")
    assert "older" == path.read_text()
    assert [] == list(world.folder.glob(".report*"))


def test_whole_file(tmp_path: Path) -> None:
    """What goes wrong in the middle leaves nothing; what goes well leaves the file and nothing else."""
    with whole_file(tmp_path / "a" / "file", "--report") as work:
        work.write_text("whole")
    with pytest.raises(RuntimeError):
        _half(tmp_path / "a" / "other")
    with pytest.raises(InputError, match="--report"), whole_file(tmp_path / "a" / "file" / "x", "--report") as work:
        work.write_text("nowhere")
    assert {"a/file": b"whole"} == everything(tmp_path)


def _half(path: Path) -> None:
    with whole_file(path, "--report") as work:
        work.write_text("half")
        raise RuntimeError


@pytest.mark.parametrize("size", [0, 100, 4000])
def test_adopt_and_reproduce(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What is fetched fills the disk: that is said of this machine, never of the remote; no ledger is begun."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = world.ledger.read_bytes()
    with full_disk(size):
        done = world.run("reproduce", V1, "--to", f"local:{world.store}", "--workers", "1")
        adopted = world.run("adopt", f"local:{world.store}", "--ledger", tmp_path / "new.jsonl")
    refused(done, "written")
    refused(adopted, "written")
    assert whole == world.ledger.read_bytes()
    assert ["cache", "world"] == sorted({path.name for path in tmp_path.iterdir()} | {"cache"})


@pytest.mark.parametrize("size", [0, 100, 4000])
def test_ledger(world: World, tmp_path: Path, size: int) -> None:
    """A ledger whose next line does not fit keeps the lines it has, each whole."""
    (entry,) = world.entries()
    path = tmp_path / "ledger.jsonl"
    with full_disk(size), pytest.raises(InputError, match=r"ledger\.jsonl"):
        append(path, entry)
    with full_disk(size), pytest.raises(InputError, match=r"ledger\.jsonl"):
        rewrite(path, [entry], noted=())
    assert [] == list(tmp_path.glob("*ledger*"))
    append(path, entry)
    with full_disk(size):
        append(path, entry)
    assert (entry,) == read_ledger(path)


@pytest.mark.parametrize("size", [500, 20_000])
def test_publish(world: World, tmp_path: Path, size: int) -> None:
    """A store that takes no more is no remote that fails; the ledger has no line, and the next run does it all."""
    ledger, store = tmp_path / "ledger.jsonl", tmp_path / "store"
    arguments = ("publish", "--tag", V1, "--to", f"local:{store}", "--out", world.folder / "out", "--ledger", ledger)
    with full_disk(size):
        done = world.run(*arguments)
    refused(done, "cannot be written", "free some space there")
    assert not ledger.exists()
    assert 0 == world.run(*arguments).code
    assert 1 == len(read_ledger(ledger))


def test_verify_goes_on(world: World) -> None:
    """What a run that is cut short cannot keep is only verified again: its findings are said all the same."""
    with full_disk(0):
        done = world.run("verify", "--to", f"local:{world.store}", "--level", "content", "--requests", "9", "--json")
    assert 6 == done.code, done.stderr
    assert V1 in {report["tag"] for report in json.loads(done.stdout)["reports"]}


def test_loading_on_a_full_disk_says_nothing_of_the_release(world: World) -> None:
    """A load that cannot write its cache is a check that was not made, not a release that does not load."""
    with full_disk(1000):
        done = world.run("verify", "--to", f"local:{world.store}", "--level", "load", "--json")
    assert 4 == done.code, done.stderr
    (report,) = [report for report in json.loads(done.stdout)["reports"] if report["tag"] == V1]
    assert ("not checked", []) == (report["checks"]["load"], report["failures"])


COMMANDS = [
    ["results", "TREE", "--format", "csv"],
    ["diff", "TREE", "TREE", "--json"],
]


@needs_full
@pytest.mark.parametrize("arguments", COMMANDS)
def test_stdout(published: World, arguments: list[str]) -> None:
    """A result that does not fit where stdout leads ends with 4 and a message."""
    named = [str(published.folder / "out" / V1) if argument == "TREE" else argument for argument in arguments]
    command = [sys.executable, "-m", "releases", *named, "--benchmark", str(published.folder / "benchmark.toml")]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    refused(Done(done.returncode, "", done.stderr), os.strerror(28))


@needs_full
@pytest.mark.parametrize("bare", [False, True])
def test_stderr(published: World, *, bare: bool) -> None:
    """Progress that cannot be written stops no work, in a full environment and in an all but empty one."""
    environment = {name: value for name, value in os.environ.items() if not bare or name in {"PATH", "PYTHONPATH"}}
    command = [sys.executable, "-m", "releases", "results", str(published.folder / "out" / V1), "--format", "csv"]
    command += ["--benchmark", str(published.folder / "benchmark.toml")]
    with FULL.open("wb") as full:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert (0, True) == (done.returncode, done.stdout.startswith("view,metric,"))


@needs_sys
def test_a_folder_that_is_only_read(world: World, tmp_path: Path) -> None:
    """Trees, reports, ledgers and stores in a folder that takes none: nothing is published, and all is said."""
    tree, ledger = world.folder / "out" / V1, tmp_path / "ledger.jsonl"
    publish = ("publish", "--tag", V1, "--out", world.folder / "out")
    refused(world.run("build", *BUILD, "--out", NOWHERE / "out"), NOWHERE / "out", "--out")
    refused(world.run("validate", tree, "--report", NOWHERE / "r.json"), NOWHERE / "r.json", "--report")
    refused(world.run("adopt", f"local:{world.store}", "--ledger", NOWHERE / "l.jsonl"), NOWHERE / "l.jsonl")
    refused(world.run(*publish, "--to", f"local:{tmp_path / 'store'}", "--ledger", NOWHERE / "l.jsonl"), NOWHERE)
    assert not list(tmp_path.glob("store/datasets/*/*"))
    refused(world.run(*publish, "--to", f"local:{NOWHERE / 'store'}", "--ledger", ledger), NOWHERE / "store")
    assert not ledger.exists()


def test_a_ledger_that_is_a_link(world: World, tmp_path: Path) -> None:
    """The file that the link leads to grows; the link stays."""
    (entry,) = world.entries()
    real, link = tmp_path / "kept" / "ledger.jsonl", tmp_path / "ledger.jsonl"
    real.parent.mkdir()
    real.touch()
    link.symlink_to(real)
    append(link, entry)
    assert (True, (entry,)) == (link.is_symlink(), read_ledger(real))
    assert [real] == list(real.parent.iterdir())


def test_two_adopt_at_once(world: World, tmp_path: Path) -> None:
    """Whoever is second finds what the first wrote: the same is not written twice, anything else is not lost."""
    (entry,) = world.entries()
    path = tmp_path / "ledger.jsonl"
    rewrite(path, [entry], noted=())
    rewrite(path, [entry], noted=())
    append(path, entry)
    assert (entry,) == read_ledger(path)
    with pytest.raises(SafetyError, match="has changed while this ran"):
        rewrite(path, [], noted=())
    assert (entry,) == read_ledger(path)


def test_builds_into_one_folder_at_once(world: World) -> None:
    """Of three builds that are started together each is refused or whole; the tree is one of them, byte for byte."""
    out = world.folder / "together"
    (world.folder / "none.jsonl").touch()
    where = ["--benchmark", str(world.folder / "benchmark.toml"), "--ledger", str(world.folder / "none.jsonl")]
    command = [sys.executable, "-m", "releases", "build", *BUILD, *where, "--out", str(out)]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    ends = [(process.communicate(timeout=300)[1], process.returncode) for process in running]
    assert {code for _, code in ends} <= {0, 5}, ends
    assert 0 in {code for _, code in ends}
    assert all("another build" in said for said, code in ends if code == 5)
    assert [V1] == [path.name for path in out.iterdir()]
    assert same_trees(world.folder / "out" / V1, out / V1)
    shutil.rmtree(out)
    assert 0 == release_here("list", *where).code
