"""Who may write and read, and what no address can reach."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

from releases.local_hub import LocalHub, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "someone/bench"
TOKEN = "a-secret"  # noqa: S105  # of a Hub that lives for one test


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[LocalHub]:
    """A Hub with a token, with one repository and one Parquet file in it."""
    with LocalHub(tmp_path / "guarded", token=TOKEN) as hub:
        owner = HfApi(endpoint=hub.endpoint, token=TOKEN)
        owner.create_repo(REPO, repo_type="dataset")
        owner.create_commit(REPO, [CommitOperationAdd("x.parquet", b"x")], commit_message="x", repo_type="dataset")
        yield hub


def ask(
    hub: LocalHub, method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """A raw request, its path sent as it is written."""
    connection = http.client.HTTPConnection(urlsplit(hub.endpoint).netloc, timeout=20)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("token", [False, "another"])
def test_writing_needs_the_token(guarded: LocalHub, token: str | bool) -> None:
    """Without the token, or with a wrong one, nothing is written; reading a public repository needs none."""
    api = HfApi(endpoint=guarded.endpoint, token=token)
    head = guarded.store.repository(REPO).resolve("main")
    attempts = [
        lambda: api.create_repo("someone/new", repo_type="dataset"),
        lambda: api.create_commit(REPO, [CommitOperationAdd("y.txt", b"y")], commit_message="y", repo_type="dataset"),
        lambda: api.create_tag(REPO, tag="v1", repo_type="dataset"),
        lambda: api.delete_repo(REPO, repo_type="dataset"),
    ]
    for attempt in attempts:
        with pytest.raises(HfHubHTTPError) as caught:
            attempt()
        assert 401 == caught.value.response.status_code
    assert head == guarded.store.repository(REPO).resolve("main")
    assert head == HfApi(endpoint=guarded.endpoint, token=False).dataset_info(REPO).sha


def test_whoami_is_for_the_holder_of_the_token(guarded: LocalHub) -> None:
    """The client can check its token."""
    assert "local" == HfApi(endpoint=guarded.endpoint, token=TOKEN).whoami()["name"]
    with pytest.raises(HfHubHTTPError):
        HfApi(endpoint=guarded.endpoint, token="another").whoami()  # noqa: S106  # a wrong one


def test_private_is_not_found_without_the_token(guarded: LocalHub, tmp_path: Path) -> None:
    """A private repository does not show itself, its files or its history."""
    owner = HfApi(endpoint=guarded.endpoint, token=TOKEN)
    owner.update_repo_settings(REPO, private=True, repo_type="dataset")
    anonymous = HfApi(endpoint=guarded.endpoint, token=False)
    for attempt in (
        lambda: anonymous.dataset_info(REPO),
        lambda: anonymous.list_repo_commits(REPO, repo_type="dataset"),
        lambda: anonymous.list_repo_refs(REPO, repo_type="dataset"),
        lambda: list(anonymous.list_repo_tree(REPO, repo_type="dataset")),
    ):
        with pytest.raises(RepositoryNotFoundError) as caught:
            attempt()
        assert 401 == caught.value.response.status_code
    assert 401 == ask(guarded, "GET", f"/datasets/{REPO}/resolve/main/x.parquet")[0]
    path = owner.hf_hub_download(REPO, "x.parquet", repo_type="dataset", cache_dir=tmp_path)
    assert b"x" == Path(path).read_bytes()


def test_gated_shows_its_tree_and_not_its_files(guarded: LocalHub, tmp_path: Path) -> None:
    """Files of a gated repository answer 403 GatedRepo to all but the holder of the token."""
    guarded.store.repository(REPO).set_settings(Settings(gated=True))
    anonymous = HfApi(endpoint=guarded.endpoint, token=False)
    assert "manual" == anonymous.dataset_info(REPO).gated
    with pytest.raises(GatedRepoError) as caught:
        anonymous.hf_hub_download(REPO, "x.parquet", repo_type="dataset", cache_dir=tmp_path)
    assert 403 == caught.value.response.status_code
    batch = {"operation": "download", "objects": [{"oid": "0" * 64, "size": 1}]}
    path = f"/datasets/{REPO}.git/info/lfs/objects/batch"
    assert 403 == ask(guarded, "POST", path, body=json.dumps(batch).encode())[0]
    owner = HfApi(endpoint=guarded.endpoint, token=TOKEN)
    assert owner.hf_hub_download(REPO, "x.parquet", repo_type="dataset", cache_dir=tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "/datasets/someone/bench/resolve/main/../../../../../secret.txt",
        "/datasets/someone/bench/resolve/main/%2e%2e/%2e%2e/secret.txt",
        "/datasets/someone/bench/resolve/main/..%2f..%2f..%2fsecret.txt",
        "/datasets/../../secret.txt",
        "/datasets/..%2f../bench/resolve/main/x",
        "/datasets/%2e%2e/secret/resolve/main/x",
        "/datasets/someone/..%2f..%2f..%2fsecret/resolve/main/x",
        "/api/datasets/..%2f..%2fsecret/bench",
        "/api/datasets/someone/%2e%2e",
        "/api/datasets/someone/bench/tree/main/..%2f..",
        "/api/datasets/someone/bench/revision/..%2f..%2fsecret",
        "/api/datasets/someone/bench/revision/--output=x",
        "/api/datasets/someone/bench/revision/main%0arefs%2fheads%2fmain",
        "/api/datasets/someone/bench/revision/main:x.parquet",
        "/api/datasets/someone/bench/revision/%ff",
        "/datasets/someone/bench.git/info/lfs/objects/..%2f..%2fconfig",
        f"/datasets/someone/bench.git/info/lfs/objects/{'0' * 64}?size=1&signature=0",
        "/datasets/someone/bench.git/config",
        "//someone/bench.git/HEAD",
    ],
)
def test_no_address_leads_out_of_the_store(guarded: LocalHub, tmp_path: Path, path: str) -> None:
    """Whatever is asked for, files beside the repositories and git's own are refused as the client's fault."""
    (tmp_path / "secret.txt").write_text("out of bounds")
    (tmp_path / "secret.git").mkdir()
    (tmp_path / "secret.git" / "HEAD").write_text("ref: refs/heads/main")
    status, body = ask(guarded, "GET", path)
    assert 400 <= status < 500
    assert b"out of bounds" not in body
    assert b"[core]" not in body


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a//b", ".git/config", "a/.GIT/hooks", "a/./b", "a\\b", "a\nb", "", "n" * 300]
)
def test_no_commit_writes_a_path_that_git_or_a_clone_would_mistake(guarded: LocalHub, path: str) -> None:
    """A path that leads elsewhere is refused with 400, and nothing is committed."""
    head = guarded.store.repository(REPO).resolve("main")
    lines = [
        {"key": "header", "value": {"summary": "x"}},
        {"key": "file", "value": {"path": path, "content": "eA==", "encoding": "base64"}},
    ]
    body = "\n".join(json.dumps(line) for line in lines).encode()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert 400 == ask(guarded, "POST", f"/api/datasets/{REPO}/commit/main", body=body, headers=headers)[0]
    assert head == guarded.store.repository(REPO).resolve("main")


@pytest.mark.parametrize(
    "name", ["a/../b", "..", "someone/.hidden", "a/b/c", "a/b.git", "a/", "a/b--c", "a/" + "n" * 97]
)
def test_no_repository_has_a_name_that_leads_elsewhere(guarded: LocalHub, name: str) -> None:
    """A repository's id is a namespace and a name, each one plain folder."""
    namespace, _, rest = name.partition("/")
    body = json.dumps({"type": "dataset", "organization": namespace, "name": rest}).encode()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert 400 == ask(guarded, "POST", "/api/repos/create", body=body, headers=headers)[0]


def test_it_listens_on_loopback_only_and_to_local_names_only(guarded: LocalHub) -> None:
    """A page elsewhere whose name leads to this machine gets nothing."""
    assert "127.0.0.1" == urlsplit(guarded.endpoint).hostname
    path = f"/api/datasets/{REPO}"
    assert 200 == ask(guarded, "GET", path, headers={"Host": "localhost:1"})[0]
    assert 421 == ask(guarded, "GET", path, headers={"Host": "rebound.example"})[0]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"/api/datasets/{REPO}/commit/main", b"no json\n"),
        ("POST", f"/api/datasets/{REPO}/commit/main", b'{"key": "header"}\n'),
        ("POST", f"/api/datasets/{REPO}/commit/main", b'{"key": "file", "value": {}}\n'),
        ("POST", f"/api/datasets/{REPO}/commit/main", b""),
        ("POST", f"/api/datasets/{REPO}/preupload/main", b"[]"),
        ("POST", f"/api/datasets/{REPO}/preupload/main", b'{"files": [1]}'),
        ("POST", f"/api/datasets/{REPO}/tag/main", b"{}"),
        ("POST", "/api/repos/create", b'{"type": "model", "name": "x"}'),
        ("POST", f"/datasets/{REPO}.git/info/lfs/objects/batch", b'{"operation": "upload", "objects": [1]}'),
        ("GET", f"/api/datasets/{REPO}/commits/main?p=x", b""),
    ],
)
def test_nonsense_is_400(guarded: LocalHub, method: str, path: str, body: bytes) -> None:
    """A body that is not what the route takes is the client's fault."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert 400 == ask(guarded, method, path, body=body, headers=headers)[0]


def test_lfs_file_that_was_not_uploaded_is_refused(guarded: LocalHub) -> None:
    """No commit points at an object that is not in the store."""
    lines = [
        {"key": "header", "value": {"summary": "x"}},
        {"key": "lfsFile", "value": {"path": "y.parquet", "algo": "sha256", "oid": "0" * 64, "size": 3}},
    ]
    body = "\n".join(json.dumps(line) for line in lines).encode()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert 400 == ask(guarded, "POST", f"/api/datasets/{REPO}/commit/main", body=body, headers=headers)[0]
