"""A publisher dies, at every step and around every call; the next run ends right, and no reader saw half a release."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support import small

from releases.ledger.chain import read_ledger
from releases.local_hub import Fault, Faults, LocalHub
from releases.plan import tree_of
from releases.targets.hub import HubRemote

if TYPE_CHECKING:
    from pathlib import Path

    from releases.remote import Refs

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


@dataclass(frozen=True)
class Scene:
    """A store before a publish, copied for each try: nothing published yet, or one release."""

    start: Path
    tree: Path

    def fresh(self, folder: Path) -> tuple[Path, Path]:
        """The store's folder and the ledger, as they were."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.start, folder)
        return folder / "hub", folder / "ledger.jsonl"


@pytest.fixture(params=["first release", "next release"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """The next release changes a table, adds one and deletes one."""
    start = tmp_path / "start"
    (start / "hub").mkdir(parents=True)
    trees = tmp_path / "trees"
    tag = small.write_release(trees)
    if request.param == "next release":
        ledger = start / "ledger.jsonl"
        with LocalHub(start / "hub") as hub:
            small.publish(HubRemote(small.REPO, endpoint=hub.endpoint, token=False), trees / tag, ledger)
        tag = small.write_release(
            trees,
            read_ledger(ledger),
            change={
                "paper__english/qrels.parquet": b"PAR1 \x00 other gains PAR1",
                "paper__english/queries.parquet": None,
                "paper__french/queries.parquet": b"PAR1 \x00 more questions PAR1",
            },
        )
    return Scene(start, trees / tag)


def look(endpoint: str) -> Refs | None:
    """What a reader finds."""
    return HubRemote(small.REPO, endpoint=endpoint, token=False).refs()


def check_no_half(hub: LocalHub, scene: Scene, before: Refs | None) -> None:
    """The head is what it was, or what a new repository has, or the whole release; a tag leads to the whole release."""
    now = look(hub.endpoint)
    if now is None:
        return
    remote = HubRemote(small.REPO, endpoint=hub.endpoint, token=False)
    new = {target for tag, target in now.tags.items() if tag == scene.tree.name}
    if now.head is not None and (before is None or now.head != before.head):
        new.add(now.head)
    planned = tree_of(small.ready(scene.tree, read_ledger(scene.start / "ledger.jsonl")).files)
    for sha in new:
        held = remote.files(sha)
        assert set(held) == {".gitattributes"} or planned == tree_of(held)
    assert now.tags.keys() <= {scene.tree.name} or before is not None


def check_end(hub: LocalHub, scene: Scene, ledger: Path) -> None:
    """One commit on top of what was, one tag on it, one line in the ledger, and the tree is the plan's."""
    before = read_ledger(scene.start / "ledger.jsonl")
    *earlier, last = read_ledger(ledger)
    assert before == tuple(earlier)
    repository = hub.store.repository(small.REPO)
    now = look(hub.endpoint)
    assert now is not None
    assert last.revision == now.head == now.tags[scene.tree.name]
    assert len(before) + 1 == len(now.tags)
    # The first commit is the Hub's own.
    assert len(before) + 2 == len(repository.log(last.revision, 0, 100))
    files = small.ready(scene.tree, before).files
    assert (
        tree_of(files)
        == last.tree
        == tree_of(HubRemote(small.REPO, endpoint=hub.endpoint, token=False).files(last.revision))
    )


def run_and_die(scene: Scene, folder: Path, fault: Fault | None, progress: small.Quiet | None = None) -> bool:
    """Publish in a process that is killed, look, publish again, look; False if the first run was not killed.

    Args:
        scene: what is published onto what.
        folder: where it happens.
        fault: at which request; its `call` is set here.
        progress: what kills it instead.
    """
    store, ledger = scene.fresh(folder)
    pid: list[int] = []
    faults = Faults()
    with LocalHub(store, faults=faults) as hub:
        before = look(hub.endpoint)
        faults.clear()
        if fault is not None:
            faults.add(
                Fault(
                    fault.method,
                    fault.path,
                    nth=fault.nth,
                    perform=fault.perform,
                    cut=True,
                    call=lambda: os.kill(pid[0], signal.SIGKILL),
                )
            )
        publisher = small.Publisher(hub.endpoint, scene.tree, ledger, progress or small.Quiet())
        process = publisher.start()
        assert process.pid is not None
        pid.append(process.pid)
        process.join(timeout=60)
        faults.clear()
        died = process.exitcode == -signal.SIGKILL
        assert died or process.exitcode == 0
        check_no_half(hub, scene, before)
        small.publish(HubRemote(small.REPO, endpoint=hub.endpoint, token=False), scene.tree, ledger)
        check_end(hub, scene, ledger)
        assert not list(ledger.parent.glob(".*.partial"))
    return died


@pytest.mark.parametrize("perform", [False, True], ids=["before it is done", "after it is done"])
def test_killed_at_every_call(scene: Scene, tmp_path: Path, perform: bool) -> None:
    """A publisher killed at its nth call, for every n until it makes no more, leaves nothing half done."""
    calls = 0
    while run_and_die(scene, tmp_path / "try", Fault("*", "", nth=calls + 1, perform=perform)):
        calls += 1
    assert calls >= 12


@pytest.mark.parametrize("step", ["commit", "compare", "tag", "ledger"])
def test_killed_between_steps(scene: Scene, tmp_path: Path, step: str) -> None:
    """A publisher killed where a step begins leaves the steps before it whole."""
    assert run_and_die(scene, tmp_path / "try", None, small.Killing(step))
