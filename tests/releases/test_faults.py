"""The remote fails in every way at every call, or someone else is faster: a release is published once or not at all."""

from __future__ import annotations

import errno
import json
import shutil
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support import small

from provenance.errors import RemoteError, SafetyError
from releases.ledger.chain import read_ledger
from releases.local_hub import RATE_LIMITED, Fault, Faults, LocalHub
from releases.plan import tree_of
from releases.retry import LONGEST_WAIT, Retry, TransientError
from releases.targets.hub import HubRemote

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

FAULTS = {
    "429": Fault("*", "", status=429, headers=RATE_LIMITED),
    "500": Fault("*", "", status=500),
    "503": Fault("*", "", status=503, headers={"Retry-After": "1"}),
    "504 after it was done": Fault("*", "", status=504, perform=True),
    "cut connection": Fault("*", "", cut=True),
    "cut after it was done": Fault("*", "", cut=True, perform=True),
    "cut answer": Fault("*", "", cut=True, cut_after=3, perform=True),
    "no JSON": Fault("*", "", body=b"<html>", perform=True),
    "other JSON": Fault("*", "", body=b'["?"]', perform=True),
    "empty JSON": Fault("*", "", body=b"{}", perform=True),
}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits a second before each further try of its own."""
    clock = SimpleNamespace(sleep=lambda _seconds: None, time=time.time)
    monkeypatch.setattr("huggingface_hub.utils._http.time", clock)


def nth(fault: Fault, number: int, met: list[int]) -> Fault:
    """The fault, at the request of that number; `met` gets the number when it happens."""
    return Fault(
        fault.method,
        fault.path,
        nth=number,
        call=lambda: met.append(number),
        perform=fault.perform,
        cut=fault.cut,
        cut_after=fault.cut_after,
        status=fault.status,
        headers=fault.headers,
        body=fault.body,
    )


def remote(hub: LocalHub) -> HubRemote:
    """The small releases' repository; nothing waits."""
    return HubRemote(small.REPO, endpoint=hub.endpoint, token=False, retry=Retry(sleep=lambda _seconds: None))


def check_end(hub: LocalHub, tree: Path, ledger: Path, releases: int = 1) -> None:
    """One commit and one tag a release, the remote is the plan, the ledger says so."""
    entries = read_ledger(ledger)
    assert releases == len(entries)
    refs = remote(hub).refs()
    assert refs is not None
    assert {entry.tag: entry.revision for entry in entries} == refs.tags
    assert entries[-1].revision == refs.head
    assert releases + 1 == len(hub.store.repository(small.REPO).log(refs.head or "", 0, 100))
    expected = tree_of(small.ready(tree, entries[:-1]).files)
    assert expected == entries[-1].tree == tree_of(remote(hub).files(refs.head or ""))


@pytest.mark.parametrize("name", FAULTS)
def test_each_call_fails_once(tmp_path: Path, name: str) -> None:
    """Each call of a publish fails once: the publish ends right, or stops with exit code 6 and the next ends right."""
    trees = tmp_path / "trees"
    tag = small.write_release(trees)
    number = 0
    met = [0]
    while met[-1] == number:
        number += 1
        store, ledger = tmp_path / f"store-{number}", tmp_path / f"{number}.jsonl"
        with LocalHub(store, faults=Faults(nth(FAULTS[name], number, met))) as hub:
            try:
                small.publish(remote(hub), trees / tag, ledger)
            except RemoteError:
                small.publish(remote(hub), trees / tag, ledger)
            check_end(hub, trees / tag, ledger)
        shutil.rmtree(store)
    assert number > 15


@pytest.mark.parametrize("path", ["/commit/", "/tag/", "/refs", "/batch", "validate-yaml", "/tree/", "/preupload/"])
def test_a_call_that_always_fails(tmp_path: Path, path: str) -> None:
    """A call that fails every time ends the publish with exit code 6, after a bounded number of tries."""
    trees = tmp_path / "trees"
    tag = small.write_release(trees)
    faults = Faults(Fault("*", path, times=10_000, status=503))
    with LocalHub(tmp_path / "store", faults=faults) as hub:
        with pytest.raises(RemoteError):
            small.publish(remote(hub), trees / tag, tmp_path / "ledger.jsonl")
        assert 2 <= len([request for request in faults.requests(path=path) if request.status == 503]) <= 30
        faults.clear()
        small.publish(remote(hub), trees / tag, tmp_path / "ledger.jsonl")
        check_end(hub, trees / tag, tmp_path / "ledger.jsonl")


def test_a_full_disk_is_not_the_remotes_fault() -> None:
    """What this machine has no room for is not asked for again."""

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    hub = HubRemote(small.REPO, endpoint="http://127.0.0.1:9", token=False, retry=Retry(sleep=pytest.fail))
    with pytest.raises(OSError, match="No space left"):
        hub._ask("read the card", full)


def test_a_commit_that_seems_to_fail_is_not_made_again(tmp_path: Path) -> None:
    """After a 504 that hides a made commit, the head is read, and no second commit is asked for."""
    tag = small.write_release(tmp_path)
    faults = Faults(Fault("POST", "/commit/", status=504, perform=True))
    with LocalHub(tmp_path / "store", faults=faults) as hub:
        done = small.publish(remote(hub), tmp_path / tag, tmp_path / "ledger.jsonl")
        assert 1 == len(faults.requests("POST", "/commit/"))
        check_end(hub, tmp_path / tag, tmp_path / "ledger.jsonl")
        assert "done" == done.steps["commit"]


def test_the_remotes_wish_to_wait_is_honoured(tmp_path: Path) -> None:
    """RateLimit and Retry-After say how long to wait, up to the window; without them the pauses double."""
    tag = small.write_release(tmp_path)
    waits: list[float] = []
    retry = Retry(sleep=waits.append)
    faults = Faults(
        Fault("POST", "/tag/", nth=1, status=429, headers={"RateLimit": '"api";r=0;t=55'}),
        Fault("POST", "/tag/", nth=2, status=503, headers={"Retry-After": "7"}),
        Fault("POST", "/tag/", nth=3, status=500),
        Fault("POST", "/tag/", nth=4, status=429, headers={"RateLimit": '"api";r=0;t=9000'}),
    )
    with LocalHub(tmp_path / "store", faults=faults) as hub:
        small.publish(remote(hub), tmp_path / tag, tmp_path / "ledger.jsonl", retry=retry)
    assert [56.0, 8.0, 4.0, LONGEST_WAIT] == waits


def test_pauses_double_and_tries_are_bounded() -> None:
    """Five tries with 1, 2, 4 and 8 seconds between them, then the last error."""
    waits: list[float] = []

    def fail() -> None:
        raise TransientError("no")

    with pytest.raises(TransientError):
        Retry(sleep=waits.append)(fail)
    assert [1.0, 2.0, 4.0, 8.0] == waits


def outcomes(publishers: list[small.Publisher]) -> list[tuple[int, str]]:
    """Run them at once, each to its end; how each ended."""
    processes = [publisher.start() for publisher in publishers]
    for process in processes:
        process.join(timeout=120)
    return [tuple(json.loads(publisher.outcome.read_text())) for publisher in publishers]


@pytest.mark.parametrize("same", [False, True], ids=["six releases", "one release six times"])
def test_six_publishers_at_once(tmp_path: Path, same: bool) -> None:
    """Of six that have planned on the same head one wins; five stop with exit code 5 and name its commit."""
    barrier = small.processes.Barrier(6)
    with LocalHub(tmp_path / "store") as hub:
        # The repository is there: whoever comes late meets a commit, not an empty place.
        remote(hub).create()
        publishers = []
        for number in range(6):
            change = {} if same else {"paper__english/qrels.parquet": f"PAR1 \x00 gains {number}".encode()}
            tag = small.write_release(tmp_path / f"trees-{number}", change=change)
            tree = tmp_path / f"trees-{number}" / tag
            publishers.append(small.Publisher(hub.endpoint, tree, tmp_path / f"{number}.jsonl", small.Waiting(barrier)))
        ended = outcomes(publishers)
        assert [0, 5, 5, 5, 5, 5] == sorted(code for code, _ in ended)
        winner = next(number for number, (code, _) in enumerate(ended) if code == 0)
        revision = ended[winner][1]
        assert all(revision in message and "by local" in message for code, message in ended if code == 5)
        check_end(hub, publishers[winner].tree, publishers[winner].ledger)
        assert all(not publisher.ledger.exists() for publisher in publishers if publisher is not publishers[winner])


def test_six_publishers_with_one_ledger(tmp_path: Path) -> None:
    """Six with one ledger and no appointment: nothing is lost, one release is published, whoever lost is told."""
    with LocalHub(tmp_path / "store") as hub:
        publishers = []
        for number in range(6):
            tag = small.write_release(
                tmp_path / f"trees-{number}", change={"rcp_ndcg_tasks.py": f"TASKS = ({number},)\n".encode()}
            )
            publishers.append(
                small.Publisher(hub.endpoint, tmp_path / f"trees-{number}" / tag, tmp_path / "ledger.jsonl")
            )
        ended = outcomes(publishers)
        assert [0, 5, 5, 5, 5, 5] == sorted(code for code, _ in ended)
        winner = next(number for number, (code, _) in enumerate(ended) if code == 0)
        assert all(ended[winner][1] in message for code, message in ended if code == 5)
        check_end(hub, publishers[winner].tree, tmp_path / "ledger.jsonl")


def test_a_commit_between_plan_and_push(tmp_path: Path) -> None:
    """Someone who commits after the plan was made is named, with commit, author and date; nothing is overwritten."""
    tag = small.write_release(tmp_path)
    with LocalHub(tmp_path / "store") as hub:
        remote(hub).create()
        repository = hub.store.repository(small.REPO)

        def intrude() -> None:
            head = repository.resolve("main")
            new = repository.commit_tree(f"{head}^{{tree}}", [head], "by hand\n")
            assert repository.swap("refs/heads/main", new, head)

        faults = Faults(Fault("POST", "validate-yaml", perform=True, call=intrude))
        with (
            LocalHub(tmp_path / "store", faults=faults) as other,
            pytest.raises(SafetyError, match="someone else published") as caught,
        ):
            small.publish(remote(other), tmp_path / tag, tmp_path / "ledger.jsonl")
        assert repository.resolve("main") in str(caught.value)
        assert "'by hand') by local, " in str(caught.value)
        assert not (tmp_path / "ledger.jsonl").exists()


def test_a_wrong_commit_is_never_tagged(tmp_path: Path) -> None:
    """A remote that stores other bytes than were sent is found out before the tag; the differing files are named."""
    tag = small.write_release(tmp_path)
    with LocalHub(tmp_path / "store") as hub:
        here = remote(hub)
        true_files = here.files
        here.files = lambda sha: {  # type: ignore[method-assign]
            path: file for path, file in true_files(sha).items() if path != "paper__english/qrels.parquet"
        }
        with pytest.raises(SafetyError, match=r"paper__english/qrels.parquet: missing"):
            small.publish(here, tmp_path / tag, tmp_path / "ledger.jsonl")
        refs = remote(hub).refs()
        assert refs is not None
        assert {} == refs.tags
        assert not (tmp_path / "ledger.jsonl").exists()
