"""Faults go wrong as they were told to, and every request is on record."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError

from releases.local_hub import RATE_LIMITED, Fault, Faults, LocalHub

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "someone/bench"


def put(api: HfApi, path: str, content: bytes) -> str:
    """One commit of one file; its sha."""
    add = CommitOperationAdd(path, content)
    return str(api.create_commit(REPO, [add], commit_message="change", repo_type="dataset").oid)


def test_any_status_for_the_nth_request(api: HfApi, faults: Faults) -> None:
    """The second refs request is rate limited, with the Hub's headers; the first and third are not."""
    faults.add(Fault("GET", "/refs$", nth=2, status=429, headers=RATE_LIMITED))
    api.list_repo_refs(REPO, repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="Retry after 1 seconds") as caught:
        api.list_repo_refs(REPO, repo_type="dataset")
    assert 429 == caught.value.response.status_code
    api.list_repo_refs(REPO, repo_type="dataset")


def test_commit_that_was_made_although_the_client_saw_504(api: HfApi, faults: Faults) -> None:
    """The answer is lost, the commit is not."""
    head = api.dataset_info(REPO).sha
    faults.add(Fault("POST", "/commit/", perform=True, status=504))
    with pytest.raises(HfHubHTTPError):
        put(api, "x.txt", b"x")
    commits = api.list_repo_commits(REPO, repo_type="dataset")
    assert ["change", "initial commit"] == [commit.title for commit in commits]
    assert head == commits[1].commit_id


def test_commit_that_was_not_made(api: HfApi, faults: Faults) -> None:
    """Without `perform` a status or a cut connection leaves the store as it was."""
    for fault in (Fault("POST", "/commit/", status=504), Fault("POST", "/commit/", cut=True)):
        faults.add(fault)
        with pytest.raises((HfHubHTTPError, httpx2.TransportError)):
            put(api, "x.txt", b"x")
    assert 1 == len(api.list_repo_commits(REPO, repo_type="dataset"))


def test_connection_cut_after_the_commit(api: HfApi, faults: Faults) -> None:
    """The commit is made, the client hears nothing."""
    faults.add(Fault("POST", "/commit/", perform=True, cut=True))
    with pytest.raises(httpx2.TransportError):
        put(api, "x.txt", b"x")
    assert 2 == len(api.list_repo_commits(REPO, repo_type="dataset"))


def test_call_comes_before_the_answer(api: HfApi, faults: Faults) -> None:
    """A test can act when a request was performed and is not yet answered."""
    heads: list[str] = []
    with_commit = api.dataset_info(REPO).sha

    def look() -> None:
        heads.append(str(api.dataset_info(REPO).sha))

    faults.add(Fault("POST", "/commit/", perform=True, call=look))
    sha = put(api, "x.txt", b"x")
    assert [sha] == heads
    assert sha != with_commit


def test_wrong_body_and_truncated_body(hub: LocalHub, api: HfApi, faults: Faults) -> None:
    """A body of the right length with wrong bytes, then one that ends too early."""
    put(api, "x.parquet", b"0123456789")
    path = f"/datasets/{REPO}/resolve/main/x.parquet"
    faults.add(Fault("GET", "x.parquet$", body=b"9876543210"))
    faults.add(Fault("GET", "x.parquet$", nth=2, perform=True, cut=True, cut_after=4))
    connection = http.client.HTTPConnection(urlsplit(hub.endpoint).netloc, timeout=20)
    connection.request("GET", path)
    assert b"9876543210" == connection.getresponse().read()
    connection.request("GET", path)
    with pytest.raises(http.client.IncompleteRead) as caught:
        connection.getresponse().read()
    assert b"0123" == caught.value.partial
    connection.close()


def test_delay(api: HfApi, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delayed request is answered rightly, after the server slept that long."""
    slept: list[float] = []
    monkeypatch.setattr("releases.local_hub.server.sleep", slept.append)
    faults.add(Fault("GET", "/refs$", delay=0.2))
    assert ["main"] == [branch.name for branch in api.list_repo_refs(REPO, repo_type="dataset").branches]
    assert [0.2] == slept


def test_record_counts_calls_and_bytes(api: HfApi, faults: Faults) -> None:
    """An object is sent once: the second commit of the same bytes sends none of them."""
    data = b"x" * 100_000
    put(api, "a.parquet", data)
    (sent,) = faults.requests("PUT")
    assert (200, 100_000) == (sent.status, sent.bytes_in)
    before = faults.bytes_in()
    put(api, "b.parquet", data)
    assert 1 == len(faults.requests("PUT"))
    assert faults.bytes_in() - before < 2_000


def test_every_request_of_a_commit_is_on_record(api: HfApi, faults: Faults) -> None:
    """The calls of one LFS commit, in order (Hub spec section 1)."""
    faults.clear()
    put(api, "a.parquet", b"x")
    tails = [request.path.split("?")[0].removeprefix("/api").split("/")[4] for request in faults.requests()]
    methods = [request.method for request in faults.requests()]
    assert ["POST", "POST", "PUT", "POST", "POST"] == methods
    assert ["preupload", "info", "info", "info", "commit"] == [tail if tail != "lfs" else "info" for tail in tails]


@pytest.mark.parametrize(
    ("header", "status", "expected"),
    [
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-3", 206, b"789"),
        ("bytes=8-100", 206, b"89"),
        ("bytes=0-0", 206, b"0"),
        ("bytes=0-1,3-4", 200, b"0123456789"),
        ("rows=1-2", 200, b"0123456789"),
        ("bytes=10-", 416, None),
        ("bytes=-0", 416, None),
        (None, 200, b"0123456789"),
    ],
)
@pytest.mark.parametrize("name", ["x.parquet", "x.txt"])
def test_ranges(
    hub: LocalHub, api: HfApi, *, name: str, header: str | None, status: int, expected: bytes | None
) -> None:
    """A part of a file, for blobs and for LFS objects."""
    put(api, name, b"0123456789")
    connection = http.client.HTTPConnection(urlsplit(hub.endpoint).netloc, timeout=20)
    connection.request("GET", f"/datasets/{REPO}/resolve/main/{name}", headers={"Range": header} if header else {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert status == response.status
    assert expected is None or expected == body
    if status == 206:
        assert (response.headers["Content-Range"] or "").endswith("/10")


def test_end_of_the_hub_ends_its_connections(tmp_path: Path) -> None:
    """A kept connection does not outlive the Hub that it belongs to."""
    with LocalHub(tmp_path) as hub:
        api = HfApi(endpoint=hub.endpoint, token=False)
        api.create_repo(REPO, repo_type="dataset")
    with pytest.raises(httpx2.TransportError):
        api.list_repo_refs(REPO, repo_type="dataset")


def test_object_that_is_lost_or_cut_short_in_the_store(hub: LocalHub, api: HfApi) -> None:
    """What the store lost is 404 on GET; the tree and HEAD still say what should be there."""
    put(api, "x.parquet", b"0123456789")
    repository = hub.store.repository(REPO)
    entry = repository.tree(repository.resolve("main"))["x.parquet"]
    assert entry.lfs is not None
    repository.lfs.path(entry.lfs.oid).unlink()
    connection = http.client.HTTPConnection(urlsplit(hub.endpoint).netloc, timeout=20)
    path = f"/datasets/{REPO}/resolve/main/x.parquet"
    connection.request("HEAD", path)
    head = connection.getresponse()
    head.read()
    assert (200, "10") == (head.status, head.headers["Content-Length"])
    connection.request("GET", path)
    got = connection.getresponse()
    got.read()
    connection.close()
    assert 404 == got.status
