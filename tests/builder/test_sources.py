"""Inputs by address are whole and pinned, or one message says what is wrong with them."""

from __future__ import annotations

import os

# Read by huggingface_hub when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import hashlib
import socket
from typing import TYPE_CHECKING

import fsspec
import huggingface_hub.constants
import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

from builder import hub_source, sources
from builder.sources import resolve
from provenance.errors import DataError, InputError, SafetyError
from releases.local_hub import Fault, Faults, LocalHub, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

loopback = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "someone/bench"
URI = f"hf://datasets/{REPO}"
FIRST = {"README.md": b"---\nlicense: mit\n---\none\n", "energy/corpus.parquet": b"0123456789" * 500}
SECOND = {"README.md": b"---\nlicense: mit\n---\ntwo\n", "energy/corpus.parquet": b"9876543210" * 500}
NOWHERE = "0" * 40


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were asked to be waited; nothing waits."""
    slept: list[float] = []
    monkeypatch.setattr(hub_source, "sleep", slept.append)
    monkeypatch.setattr(sources, "sleep", slept.append)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", slept.append)
    return slept


@pytest.fixture
def faults() -> Faults:
    """No faults yet; the record of requests."""
    return Faults()


class Published:
    """A Hub with two commits of one dataset, the first tagged `v1`."""

    def __init__(self, hub: LocalHub, cache: Path) -> None:
        self.hub = hub
        self.cache = cache
        self.api = HfApi(endpoint=hub.endpoint, token=False)
        self.api.create_repo(REPO, repo_type="dataset")
        self.first = self.commit(FIRST)
        self.api.create_tag(REPO, tag="v1", tag_message="first", repo_type="dataset")
        self.second = self.commit(SECOND)

    def commit(self, files: dict[str, bytes], delete: tuple[str, ...] = ()) -> str:
        """One commit on main."""
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(path, content) for path, content in files.items()
        ]
        operations += [CommitOperationDelete(path) for path in delete]
        return str(self.api.create_commit(REPO, operations, commit_message="c", repo_type="dataset").oid)

    def object(self, content: bytes) -> Path:
        """Where the store keeps an LFS object."""
        return self.hub.store.repository(REPO).lfs.path(hashlib.sha256(content).hexdigest())


@pytest.fixture
def published(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    """The Hub that `HF_ENDPOINT` names, an empty cache, and an empty record of requests."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    with LocalHub(tmp_path / "store", faults=faults) as hub:
        made = Published(hub, tmp_path / "cache")
        # A slash at the end, as people write it.
        monkeypatch.setenv("HF_ENDPOINT", f"{hub.endpoint}/")
        faults.clear()
        yield made


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the Hub's own."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".gitattributes"
    }


class TestFolder:
    """A folder is taken as it is."""

    def test_folder(self, tmp_path: Path) -> None:
        """A folder is its own source, without a revision."""
        source = resolve(str(tmp_path), cache=tmp_path / "cache")
        assert (str(tmp_path), None, tmp_path) == (source.uri, source.revision, source.path)
        assert not (tmp_path / "cache").exists()

    def test_missing_folder(self, tmp_path: Path) -> None:
        """A folder that is not there is exit code 4."""
        with pytest.raises(InputError, match="no such folder"):
            resolve(str(tmp_path / "none"), cache=tmp_path)


class TestHub:
    """A dataset on the Hub is one commit."""

    pytestmark = loopback

    def test_tag_becomes_its_sha(self, published: Published) -> None:
        """A tag gives the tagged files after a newer commit, and the sha is recorded."""
        source = resolve(f"{URI}@v1", cache=published.cache)
        assert (f"{URI}@{published.first}", published.first) == (source.uri, source.revision)
        assert files(source.path) == FIRST

    def test_each_sha_gives_its_own_files(self, published: Published) -> None:
        """With another commit in the cache a sha still gives its own."""
        assert files(resolve(f"{URI}@{published.second}", cache=published.cache).path) == SECOND
        assert files(resolve(f"{URI}@{published.first}", cache=published.cache).path) == FIRST

    def test_patterns_choose_files(self, published: Published, faults: Faults) -> None:
        """Only files that match are fetched; a later wider request fetches the rest."""
        uri = f"{URI}@{published.first}"
        only = {"README.md": FIRST["README.md"]}
        assert files(resolve(uri, cache=published.cache, patterns=["*.md"]).path) == only
        assert [] == faults.requests("GET", "parquet")
        assert files(resolve(uri, cache=published.cache).path) == FIRST
        with pytest.raises(InputError, match="no file of this revision"):
            resolve(uri, cache=published.cache, patterns=["*.csv"])

    def test_cached_sha_asks_for_nothing(self, published: Published, faults: Faults) -> None:
        """A whole and verified commit needs no network, so it works without one."""
        uri = f"{URI}@{published.first}"
        resolve(uri, cache=published.cache)
        faults.clear()
        assert files(resolve(uri, cache=published.cache).path) == FIRST
        assert [] == faults.requests()
        published.hub.stop()
        assert files(resolve(uri, cache=published.cache).path) == FIRST

    @pytest.mark.parametrize("revision", ["main", None, "short"])
    def test_what_can_move_is_refused_when_pinned(self, published: Published, revision: str | None) -> None:
        """A branch, no revision and a short sha are exit code 3, with what to write instead."""
        name = published.first[:8] if revision == "short" else revision
        with pytest.raises(DataError) as caught:
            resolve(URI if name is None else f"{URI}@{name}", cache=published.cache)
        expected = {"main": published.second, None: "@TAG", "short": "all 40 digits"}[revision]
        assert expected in (caught.value.remedy or "")

    def test_branch_is_taken_when_not_pinned(self, published: Published) -> None:
        """Without a pin a branch gives its head, and the sha is recorded all the same."""
        assert published.second == resolve(f"{URI}@main", cache=published.cache, pinned=False).revision
        assert published.second == resolve(URI, cache=published.cache, pinned=False).revision

    def test_unknown_tag_names_the_known(self, published: Published) -> None:
        """A tag that is not there is exit code 4 and lists those that are."""
        with pytest.raises(InputError, match="there is no tag 'v2'") as caught:
            resolve(f"{URI}@v2", cache=published.cache)
        assert "v1" in (caught.value.remedy or "")

    @pytest.mark.parametrize(
        "uri", ["hf://datasets/bench", "hf://models/a/b@v1", "hf://datasets/a/b@v1/sub/x", "hf://"]
    )
    def test_malformed_address(self, tmp_path: Path, uri: str) -> None:
        """Another shape of address is exit code 3."""
        with pytest.raises(DataError, match="not the address of a dataset"):
            resolve(uri, cache=tmp_path)

    def test_name_that_no_repository_has(self, tmp_path: Path) -> None:
        """A name that the Hub refuses is exit code 3, without asking it."""
        with pytest.raises(DataError, match="no repository has such a name"):
            resolve("hf://datasets/a/b..c@v1", cache=tmp_path)


class TestHubFails:
    """Each way to fail has its own message."""

    pytestmark = loopback

    def test_wrong_sha(self, published: Published) -> None:
        """A commit that never was."""
        with pytest.raises(InputError, match="no such revision"):
            resolve(f"{URI}@{NOWHERE}", cache=published.cache)

    def test_repository_that_vanished(self, published: Published) -> None:
        """A repository that was deleted."""
        published.hub.store.delete(REPO)
        with pytest.raises(InputError, match="there is no such repository"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    def test_private(self, published: Published) -> None:
        """A repository that needs an account."""
        published.hub.store.repository(REPO).set_settings(Settings(private=True))
        with pytest.raises(InputError, match="private") as caught:
            resolve(f"{URI}@{published.first}", cache=published.cache)
        assert "HF_TOKEN" in (caught.value.remedy or "")

    def test_gated(self, published: Published) -> None:
        """A repository whose terms were not accepted."""
        published.hub.store.repository(REPO).set_settings(Settings(gated=True))
        with pytest.raises(InputError, match="gated") as caught:
            resolve(f"{URI}@{published.first}", cache=published.cache)
        assert f"{published.hub.endpoint}/datasets/{REPO}" in (caught.value.remedy or "")

    @pytest.mark.parametrize("headers", [{"RateLimit": '"api";r=0;t=2'}, {"Retry-After": "2"}])
    def test_rate_limit_is_waited_for(
        self, published: Published, faults: Faults, naps: list[float], headers: dict[str, str]
    ) -> None:
        """A short wait that the Hub asks for is waited."""
        faults.add(Fault("GET", "/revision/", status=429, headers=headers))
        assert files(resolve(f"{URI}@{published.first}", cache=published.cache).path) == FIRST
        assert [2.0] == naps

    def test_long_rate_limit_is_told(self, published: Published, faults: Faults, naps: list[float]) -> None:
        """A long one is not: the message says how long."""
        faults.add(Fault("GET", "/revision/", times=99, status=429, headers={"RateLimit": '"api";r=0;t=250'}))
        with pytest.raises(InputError, match="429") as caught:
            resolve(f"{URI}@{published.first}", cache=published.cache)
        assert "in 250 s" in (caught.value.remedy or "")
        assert [] == naps

    @pytest.mark.parametrize("status", [500, 503])
    def test_server_errors_are_tried_three_times(
        self, published: Published, faults: Faults, naps: list[float], status: int
    ) -> None:
        """Two failures are got over; the third is told with the status and with what to run instead."""
        uri = f"{URI}@{published.first}"
        faults.add(Fault("GET", "/revision/", times=2, status=status))
        resolve(uri, cache=published.cache, patterns=["*.md"])
        assert [1.0, 2.0] == naps
        faults.add(Fault("GET", "/revision/", times=3, status=status))
        with pytest.raises(InputError, match=f"status {status}") as caught:
            resolve(f"{URI}@{published.second}", cache=published.cache)
        assert "--benchmark demo" in (caught.value.remedy or "")

    def test_cut_connections_are_got_over(self, published: Published, faults: Faults, naps: list[float]) -> None:
        """The listing and a file that break off once arrive whole at the second try."""
        faults.add(Fault("GET", "/revision/", cut=True))
        faults.add(Fault("GET", "corpus.parquet", perform=True, cut=True, cut_after=1234))
        assert files(resolve(f"{URI}@{published.first}", cache=published.cache).path) == FIRST
        assert naps

    def test_unreachable(self, published: Published, naps: list[float]) -> None:
        """Nobody answers: one message with the address and what to run instead."""
        published.hub.stop()
        with pytest.raises(InputError, match=r"http://127.0.0.1:\d+ could not be reached") as caught:
            resolve(f"{URI}@v1", cache=published.cache)
        assert "--benchmark demo" in (caught.value.remedy or "")
        assert [1.0, 2.0] == naps

    def test_hub_that_never_answers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naps: list[float]) -> None:
        """A server that takes the connection and says nothing is given up."""
        monkeypatch.setattr(hub_source, "_ONE_CALL", 0.2)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(InputError, match="could not be reached"):
                resolve(f"{URI}@v1", cache=tmp_path)
        assert [1.0, 2.0] == naps

    def test_offline_mode(self, published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
        """HF_HUB_OFFLINE is named where it is the reason."""
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(InputError, match="HF_HUB_OFFLINE is set"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    def test_answer_of_something_else(self, published: Published, faults: Faults) -> None:
        """A page that is no Hub's answer, as a hotel's network gives it."""
        faults.add(Fault("GET", "/revision/", status=200, body=b"<html>log in</html>"))
        with pytest.raises(InputError, match="did not answer as a Hub does"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    def test_another_commit_in_the_answer(self, published: Published, faults: Faults) -> None:
        """A Hub that answers with another commit is not believed."""
        faults.add(Fault("GET", "/revision/", status=200, body=b'{"id": "x", "sha": "%s"}' % NOWHERE.encode()))
        with pytest.raises(SafetyError, match="not the commit that was asked for"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    def test_truncated_object(self, published: Published) -> None:
        """An object that the store cut short never becomes an input."""
        stored = published.object(FIRST["energy/corpus.parquet"])
        stored.write_bytes(stored.read_bytes()[:-7])
        with pytest.raises(InputError, match="truncated") as caught:
            resolve(f"{URI}@{published.first}", cache=published.cache)
        assert 4 == caught.value.exit_code

    def test_one_flipped_bit(self, published: Published) -> None:
        """Right length, wrong bytes: refused, and the next run fetches the file again."""
        right = FIRST["energy/corpus.parquet"]
        stored = published.object(right)
        stored.write_bytes(bytes([right[0] ^ 1]) + right[1:])
        uri = f"{URI}@{published.first}"
        with pytest.raises(InputError, match="the bytes are not those of the commit") as caught:
            resolve(uri, cache=published.cache)
        assert "energy/corpus.parquet" in str(caught.value)
        stored.write_bytes(right)
        assert files(resolve(uri, cache=published.cache).path) == FIRST

    def test_wrong_bytes_of_a_plain_file(self, published: Published, faults: Faults) -> None:
        """A file that is no LFS object is checked by git's hash."""
        faults.add(Fault("GET", "/resolve/.*README", times=9, body=FIRST["README.md"].replace(b"one", b"owe")))
        with pytest.raises(InputError, match=r"the bytes are not those of the commit.*README.md"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    def test_lost_object(self, published: Published) -> None:
        """A pointer whose object is gone."""
        published.object(FIRST["energy/corpus.parquet"]).unlink()
        with pytest.raises(InputError, match="lost"):
            resolve(f"{URI}@{published.first}", cache=published.cache)

    @pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
    def test_damaged_cache_is_mended(self, published: Published, naps: list[float], damage: str) -> None:
        """A file that was changed in the cache is fetched again; without the Hub it is soon refused."""
        uri = f"{URI}@{published.first}"
        folder = resolve(uri, cache=published.cache).path
        path = (folder / "energy" / "corpus.parquet").resolve()
        content = path.read_bytes()
        if damage == "remove":
            path.unlink()
        else:
            path.write_bytes(content[:-1] if damage == "truncate" else content[:-1] + b"x")
        assert files(resolve(uri, cache=published.cache).path) == FIRST
        path = (folder / "energy" / "corpus.parquet").resolve()
        path.write_bytes(content[:-1])
        published.hub.stop()
        with pytest.raises(InputError, match="could not be reached"):
            resolve(uri, cache=published.cache, patterns=["energy/*"])
        assert [1.0, 2.0] == naps

    def test_no_other_revision_from_the_cache(self, published: Published, naps: list[float]) -> None:
        """With one commit cached and the Hub away, another commit and its tag are errors, never the cached one."""
        resolve(f"{URI}@{published.second}", cache=published.cache)
        published.hub.stop()
        for revision in (published.first, "v1", "v9"):
            with pytest.raises(InputError, match="could not be reached"):
                resolve(f"{URI}@{revision}", cache=published.cache)
        assert naps


class TestOtherAddresses:
    """Whatever fsspec reads is streamed into a cache by content."""

    @pytest.fixture
    def memory(self) -> Iterator[fsspec.AbstractFileSystem]:
        """An in-memory store with one folder of two files."""
        filesystem = fsspec.filesystem("memory")
        filesystem.pipe({"/bucket/in/a.txt": b"a", "/bucket/in/sub/b.parquet": b"bb", "/bucket/other.txt": b"o"})
        yield filesystem
        filesystem.rm("/bucket", recursive=True)

    def test_folder(self, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
        """The files below the address; the revision is the digest of paths and contents."""
        del memory
        source = resolve("memory://bucket/in", cache=tmp_path)
        assert files(source.path) == {"a.txt": b"a", "sub/b.parquet": b"bb"}
        listing = f"{hashlib.sha256(b'a').hexdigest()} a.txt\n{hashlib.sha256(b'bb').hexdigest()} sub/b.parquet\n"
        assert f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}" == source.revision
        assert "memory://bucket/in" == source.uri

    def test_changed_content_is_seen(self, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
        """The same names with other bytes are another revision in another folder; the old one is as it was."""
        old = resolve("memory://bucket/in", cache=tmp_path)
        memory.pipe("/bucket/in/a.txt", b"A")
        new = resolve("memory://bucket/in", cache=tmp_path)
        assert old.revision != new.revision
        assert (b"a", b"A") == ((old.path / "a.txt").read_bytes(), (new.path / "a.txt").read_bytes())

    def test_patterns_and_one_file(self, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
        """Patterns are on the path below the address; an address of one file is a folder of it."""
        del memory
        assert ["sub/b.parquet"] == list(files(resolve("memory://bucket/in", cache=tmp_path, patterns=["sub/*"]).path))
        assert ["a.txt"] == list(files(resolve("memory://bucket/in/a.txt", cache=tmp_path).path))
        with pytest.raises(InputError, match="no file is here"):
            resolve("memory://bucket/in", cache=tmp_path, patterns=["*.csv"])

    def test_file_address(self, tmp_path: Path) -> None:
        """A `file://` address is copied, so that what was read cannot change under the build."""
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "x.txt").write_bytes(b"x")
        source = resolve(f"file://{tmp_path}/in", cache=tmp_path / "cache")
        (tmp_path / "in" / "x.txt").write_bytes(b"y")
        assert files(source.path) == {"x.txt": b"x"}

    def test_folder_changed_by_hand_is_made_anew(self, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
        """What lies in the cache under a digest is checked before it is handed out."""
        del memory
        folder = resolve("memory://bucket/in", cache=tmp_path).path
        (folder / "a.txt").write_bytes(b"changed")
        (folder / "more.txt").write_bytes(b"m")
        assert files(resolve("memory://bucket/in", cache=tmp_path).path) == {"a.txt": b"a", "sub/b.parquet": b"bb"}

    @pytest.mark.usefixtures("memory")
    def test_truncated_stream(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naps: list[float]) -> None:
        """A stream that ends too early is tried again, then refused; nothing of it stays."""
        told = {"/bucket/in/a.txt": {"name": "/bucket/in/a.txt", "size": 2, "type": "file"}}
        monkeypatch.setattr(fsspec.filesystem("memory"), "find", lambda *_, **__: told)
        with pytest.raises(InputError, match="truncated: 1 bytes, not 2"):
            resolve("memory://bucket/in", cache=tmp_path)
        assert [1.0, 2.0] == naps
        assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]

    @pytest.mark.usefixtures("memory")
    def test_failures_are_tried_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naps: list[float]) -> None:
        """Two broken connections are got over."""
        opened = fsspec.filesystem("memory").open
        failures = [ConnectionResetError("reset"), TimeoutError("slow")]

        def flaky(*arguments: object, **options: object) -> object:
            if failures:
                raise failures.pop()
            return opened(*arguments, **options)

        monkeypatch.setattr(fsspec.filesystem("memory"), "open", flaky)
        assert files(resolve("memory://bucket/in", cache=tmp_path).path) == {"a.txt": b"a", "sub/b.parquet": b"bb"}
        assert [1.0, 2.0] == naps

    @pytest.mark.parametrize(
        ("uri", "kind", "message"),
        [
            ("memory://bucket/none", InputError, "nothing at this address|no file is here"),
            ("nosuch://x/y", DataError, "no such kind of address"),
        ],
    )
    def test_wrong_address(self, tmp_path: Path, uri: str, kind: type[Exception], message: str) -> None:
        """Nothing there, and no such kind."""
        with pytest.raises(kind, match=message):
            resolve(uri, cache=tmp_path)

    def test_missing_plug_in_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An address whose fsspec plug-in is not installed says which one to install."""

        def missing(_: str) -> None:
            raise ImportError("Install s3fs to access S3")

        monkeypatch.setattr(fsspec, "url_to_fs", missing)
        with pytest.raises(InputError, match="Install s3fs"):
            resolve("s3://bucket/x", cache=tmp_path)
