"""Requests are bounded and paced, and a run that was cut short goes on where it stopped."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import huggingface_hub
import pytest
from huggingface_hub.errors import OfflineModeIsEnabled
from support.published import V1, found, statuses

from releases.local_hub import RATE_LIMITED, Fault, Faults, LocalHub
from releases.verify.paced import BudgetSpentError, Paced, RemoteFailedError
from releases.verify.run import Asked, verify
from releases.verify.state import KEPT_SECONDS, State
from releases.verify.target import Target

if TYPE_CHECKING:
    from pathlib import Path

    from support.published import World

REQUEST = SimpleNamespace(method="GET", url="http://hub/api?signature=secret")


class Answers:
    """Answers to come, in order; what cannot be sent is raised."""

    def __init__(self, *answers: tuple[int, dict[str, str]] | Exception) -> None:
        self._answers = list(answers)
        self.waits: list[float] = []

    def send(self, _request: Any) -> Any:
        """The next."""
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(status_code=answer[0], headers=answer[1], close=lambda: None)


def test_offline_stays_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HUB_OFFLINE is kept to while requests are paced, and afterwards."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with Paced(100, lambda _: None).client(), pytest.raises(RemoteFailedError, match="HF_HUB_OFFLINE"):
        huggingface_hub.get_session().get("http://127.0.0.1:9/")
    with pytest.raises(OfflineModeIsEnabled):
        huggingface_hub.get_session().get("http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("answers", "waits"),
    [
        ([(429, {"RateLimit": '"api";r=0;t=55'}), (200, {})], [56.0]),
        ([(429, {"Retry-After": "7"}), (503, {}), (200, {})], [8.0, 1.0]),
        ([(500, {}), (500, {}), (500, {}), (200, {})], [0.5, 1.0, 2.0]),
        ([ConnectionResetError("gone"), (404, {})], [0.5]),
        ([(429, {"Retry-After": "86400"}), (200, {})], [330]),
    ],
)
def test_waits_as_the_answer_asks(answers: list[Any], waits: list[float]) -> None:
    """The headers of a 429 say how long; other failures that may pass get growing pauses; 404 is an answer."""
    given, waited = Answers(*answers), []
    paced = Paced(100, waited.append)
    assert answers[-1][0] == paced.send(given.send, REQUEST).status_code
    assert (waits, len(answers), None) == (waited, paced.used, paced.fault)


@pytest.mark.parametrize(("answer", "refused", "tries"), [((502, {}), False, 4), ((403, {}), True, 1)])
def test_a_failure_is_final_and_kept(answer: tuple[int, dict[str, str]], tries: int, *, refused: bool) -> None:
    """A library that swallows the exception cannot hide it; no signature of an address is shown."""
    paced = Paced(100, lambda _: None)
    with pytest.raises(RemoteFailedError) as caught:
        paced.send(Answers(*[answer] * 4).send, REQUEST)
    assert (refused, tries, caught.value) == (caught.value.refused, paced.used, paced.fault)
    assert "secret" not in str(caught.value)


def test_a_bug_is_not_a_failure_of_the_remote() -> None:
    """What is neither an OSError nor the HTTP library's is passed on."""
    with pytest.raises(KeyError):
        Paced(100, lambda _: None).send(Answers(KeyError("x")).send, REQUEST)


def test_no_request_beyond_the_budget() -> None:
    """The request after the last one is not made."""
    paced = Paced(1)
    paced.send(Answers((200, {})).send, REQUEST)
    with pytest.raises(BudgetSpentError):
        paced.send(Answers().send, REQUEST)
    assert isinstance(paced.fault, BudgetSpentError)


def test_what_was_verified_is_kept_for_a_day(tmp_path: Path) -> None:
    """Another ledger, another place, another day: nothing is taken over."""
    now = [1_000_000.0]
    state = State(tmp_path, "head", "place", lambda: now[0])
    state.mark("content a")
    state.keep()
    assert State(tmp_path, "head", "place", lambda: now[0]).done("content a")
    assert ["a"] == State(tmp_path, "head", "place", lambda: now[0]).keys("content ")
    assert not State(tmp_path, "other", "place", lambda: now[0]).done("content a")
    assert not State(tmp_path, "head", "other", lambda: now[0]).done("content a")
    now[0] += KEPT_SECONDS
    assert not State(tmp_path, "head", "place", lambda: now[0]).done("content a")


def test_a_state_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    """A file that was cut off is no state."""
    state = State(tmp_path, "head", "place", lambda: 1.0)
    state.mark("a")
    state.keep()
    (file,) = tmp_path.iterdir()
    file.write_text("{")
    assert not State(tmp_path, "head", "place", lambda: 1.0).done("a")


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_a_run_that_is_cut_short_goes_on(world: World) -> None:
    """With the budget spent the exit code is 6; the next run fetches the rest only, the one after it everything."""
    distinct = len({(f["lfs"], f["oid"]) for entry in world.entries() for f in entry.files.values()})
    first = world.verify("content", "--requests", "14")
    assert (6, {}, 14) == (first.code, found(first), json.loads(first.stdout)["requests"])
    assert "not checked" == statuses(first)[V1]["content"]
    second = world.verify("content")
    assert (0, 4 + distinct - 10) == (second.code, json.loads(second.stdout)["requests"])
    third = world.verify("content")
    assert (0, 4 + distinct) == (third.code, json.loads(third.stdout)["requests"])


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_a_budget_that_is_spent_at_once(world: World) -> None:
    """Not even the tags are known: nothing passes."""
    done = world.verify("ledger", "--requests", "1")
    assert 6 == done.code
    assert {"not checked"} == {status for checks in statuses(done).values() for status in checks.values()}


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_a_rate_limit_is_waited_out(world: World, tmp_path: Path) -> None:
    """429 on a listing and on a file: asked again after as long as the headers say, and all passes."""
    limited = [Fault("GET", path, status=429, headers=RATE_LIMITED) for path in ("/tree/", "/resolve/")]
    state = State(tmp_path, "head", "place", lambda: 1.0)
    with LocalHub(world.store, faults=Faults(*limited)) as hub:
        target = Target("example/rcp-ndcg-tiny", hub.endpoint, None, "here")
        reports, _ = verify(world.entries(), target, Asked("content", None, "python", 1000), state, lambda _: None)
    assert ["passed"] * 2 == [report.status("content") for report in reports if report.tag.startswith("v")]
