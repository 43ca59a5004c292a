"""The local Hub answers the real `huggingface_hub` client as the Hub does."""

from __future__ import annotations

import hashlib
import io
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi, snapshot_download
from huggingface_hub.errors import (
    BadRequestError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

if TYPE_CHECKING:
    from releases.local_hub import Faults, LocalHub

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "someone/bench"
MISSING = "0" * 40


def put(api: HfApi, files: dict[str, bytes], *, parent: str | None = None, delete: tuple[str, ...] = ()) -> str:
    """One commit on main; its sha."""
    operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
        CommitOperationAdd(path, content) for path, content in files.items()
    ]
    operations += [CommitOperationDelete(path) for path in delete]
    done = api.create_commit(REPO, operations, commit_message="change", repo_type="dataset", parent_commit=parent)
    return str(done.oid)


def read(api: HfApi, path: str, revision: str, folder: Path) -> bytes:
    """A file's bytes, as the client downloads them."""
    return Path(api.hf_hub_download(REPO, path, repo_type="dataset", revision=revision, cache_dir=folder)).read_bytes()


def paths(api: HfApi, revision: str = "main") -> list[str]:
    """All files of a revision."""
    return sorted(api.list_repo_files(REPO, repo_type="dataset", revision=revision))


def test_create_repo_twice_is_a_conflict_that_exist_ok_accepts(api: HfApi) -> None:
    """A repository is made once."""
    with pytest.raises(HfHubHTTPError) as caught:
        api.create_repo(REPO, repo_type="dataset")
    assert 409 == caught.value.response.status_code
    assert f"{api.endpoint}/datasets/{REPO}" == str(api.create_repo(REPO, repo_type="dataset", exist_ok=True))


def test_new_repository_holds_the_hubs_lfs_rules(api: HfApi) -> None:
    """The first commit is `.gitattributes`, as on the Hub."""
    assert [".gitattributes"] == paths(api)


@pytest.mark.parametrize(("size", "multipart"), [(20, False), (2_500_000, True)])
def test_commit_keeps_regular_and_lfs_bytes(
    api: HfApi, hub: LocalHub, faults: Faults, tmp_path: Path, *, size: int, multipart: bool
) -> None:
    """Text becomes a blob, Parquet an LFS object (in parts where it is long); both come back byte for byte."""
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    sha = put(api, {"notes.txt": b"hello\n", "a/b.parquet": data})
    rows = {row.path: row for row in api.get_paths_info(REPO, ["notes.txt", "a/b.parquet"], repo_type="dataset")}
    assert rows["notes.txt"].lfs is None
    assert hashlib.sha256(data).hexdigest() == rows["a/b.parquet"].lfs.sha256
    assert size == rows["a/b.parquet"].size
    assert data == read(api, "a/b.parquet", sha, tmp_path / "cache")
    assert b"hello\n" == read(api, "notes.txt", sha, tmp_path / "cache")
    assert multipart == (len(faults.requests("PUT", "/parts/")) == 3)
    assert data == hub.store.repository(REPO).lfs.path(hashlib.sha256(data).hexdigest()).read_bytes()


def test_delete_and_copy(api: HfApi, tmp_path: Path) -> None:
    """Files and folders go, copies appear, in one commit."""
    put(api, {"a/1.txt": b"1", "a/2.txt": b"2", "b.txt": b"b", "c.parquet": b"c"})
    operations = [
        CommitOperationDelete("a/"),
        CommitOperationDelete("b.txt"),
        CommitOperationCopy("c.parquet", "d/c.parquet"),
    ]
    done = api.create_commit(REPO, operations, commit_message="tidy", repo_type="dataset")
    assert [".gitattributes", "c.parquet", "d/c.parquet"] == paths(api)
    assert b"c" == read(api, "d/c.parquet", done.oid, tmp_path)


def test_delete_of_a_missing_file_is_refused(api: HfApi) -> None:
    """Nothing is committed when a file to delete is not there."""
    head = api.dataset_info(REPO).sha
    with pytest.raises(RemoteEntryNotFoundError):
        put(api, {"x.txt": b"x"}, delete=("nothing.txt",))
    assert head == api.dataset_info(REPO).sha


def test_stale_parent_is_412(api: HfApi) -> None:
    """A commit on a head that has moved is refused and changes nothing."""
    first = api.dataset_info(REPO).sha
    second = put(api, {"x.txt": b"1"}, parent=first)
    with pytest.raises(HfHubHTTPError) as caught:
        put(api, {"x.txt": b"2"}, parent=first)
    assert 412 == caught.value.response.status_code
    assert second == api.dataset_info(REPO).sha


def test_six_publishers_at_once(api: HfApi) -> None:
    """Of six commits on one parent one is made; the others get 412."""
    parent = api.dataset_info(REPO).sha

    def publish(number: int) -> int:
        try:
            put(api, {f"{number}.parquet": str(number).encode()}, parent=parent)
        except HfHubHTTPError as error:
            return int(error.response.status_code)
        return 200

    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(publish, range(6)))
    assert [200, 412, 412, 412, 412, 412] == codes
    assert 2 == len(api.list_repo_commits(REPO, repo_type="dataset"))


def test_commits_without_a_parent_all_land(api: HfApi) -> None:
    """Commits that name no parent go on whatever is the head; none is lost."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: put(api, {f"{n}.txt": b"x"}), range(4)))
    assert [".gitattributes", "0.txt", "1.txt", "2.txt", "3.txt"] == paths(api)


def test_unchanged_files_make_no_commit(api: HfApi) -> None:
    """The client sees that nothing changed, for blobs and for LFS objects."""
    files = {"x.txt": b"x", "y.parquet": b"y"}
    assert put(api, files) == put(api, files)


def test_tags(api: HfApi) -> None:
    """A tag is annotated, made once, listed at its commit, and can be deleted."""
    sha = put(api, {"x.txt": b"1"})
    api.create_tag(REPO, tag="v1-judge", tag_message="the first", repo_type="dataset")
    put(api, {"x.txt": b"2"})
    (tag,) = api.list_repo_refs(REPO, repo_type="dataset").tags
    assert ("v1-judge", "refs/tags/v1-judge", sha) == (tag.name, tag.ref, tag.target_commit)
    with pytest.raises(HfHubHTTPError) as caught:
        api.create_tag(REPO, tag="v1-judge", repo_type="dataset")
    assert 409 == caught.value.response.status_code
    api.delete_tag(REPO, tag="v1-judge", repo_type="dataset")
    assert [] == api.list_repo_refs(REPO, repo_type="dataset").tags
    with pytest.raises(RevisionNotFoundError):
        api.delete_tag(REPO, tag="v1-judge", repo_type="dataset")


def test_tag_is_an_annotated_object_with_its_message(api: HfApi, hub: LocalHub) -> None:
    """Git shows the tag's message."""
    api.create_tag(REPO, tag="v1", tag_message="the first", repo_type="dataset")
    shown = subprocess.run(  # a fixed command
        ["git", "--git-dir", str(hub.store.repository(REPO).path), "tag", "-n9", "-l", "v1"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert ["v1", "the", "first"] == shown.split()


@pytest.mark.parametrize("name", ["a b", "a..b", "a~1", "x.lock", "-x", "a@{b", "e" * 300, "v1/x", ".", "a//b"])
def test_bad_tag_name_is_400(api: HfApi, name: str) -> None:
    """A name that git or the disk refuses is the client's fault, not the server's."""
    api.create_tag(REPO, tag="v1", repo_type="dataset")
    with pytest.raises(BadRequestError):
        api.create_tag(REPO, tag=name, repo_type="dataset")


def test_tag_at_a_short_sha_and_at_a_revision(api: HfApi) -> None:
    """A prefix of a sha leads to the commit; an unknown revision is RevisionNotFound."""
    sha = put(api, {"x.txt": b"1"})
    put(api, {"x.txt": b"2"})
    api.create_tag(REPO, tag="old", revision=sha[:7], repo_type="dataset")
    assert sha == api.dataset_info(REPO, revision="old").sha
    with pytest.raises(RevisionNotFoundError):
        api.create_tag(REPO, tag="none", revision=MISSING, repo_type="dataset")


def test_branches(api: HfApi) -> None:
    """A branch starts where it is told to and takes commits of its own."""
    first = api.dataset_info(REPO).sha
    api.create_branch(REPO, branch="next", repo_type="dataset")
    done = api.create_commit(
        REPO, [CommitOperationAdd("n.txt", b"n")], commit_message="n", repo_type="dataset", revision="next"
    )
    heads = {branch.name: branch.target_commit for branch in api.list_repo_refs(REPO, repo_type="dataset").branches}
    assert {"main": first, "next": done.oid} == heads


def test_commit_list_is_paged_newest_first(api: HfApi) -> None:
    """All commits come, over several pages, with title and description apart."""
    for number in range(7):
        put(api, {"x.txt": str(number).encode()})
    api.create_commit(
        REPO,
        [CommitOperationAdd("x.txt", b"last")],
        commit_message="Release 3",
        commit_description="line one\nline two",
        repo_type="dataset",
    )
    commits = api.list_repo_commits(REPO, repo_type="dataset")
    assert 9 == len(commits)
    assert ("Release 3", "line one\nline two") == (commits[0].title, commits[0].message)
    assert "initial commit" == commits[-1].title
    assert commits[0].commit_id == api.dataset_info(REPO).sha


def test_tree_is_paged_and_equals_gits(api: HfApi, hub: LocalHub) -> None:
    """All rows come over several pages; their ids are git's."""
    sha = put(api, {f"d/{n:02d}.txt": str(n).encode() for n in range(20)})
    rows = {row.path: row for row in api.list_repo_tree(REPO, recursive=True, repo_type="dataset")}
    listed = subprocess.run(  # a fixed command
        ["git", "--git-dir", str(hub.store.repository(REPO).path), "ls-tree", "-r", "-t", sha],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = {line.split("\t")[1]: line.split()[2] for line in listed.splitlines()}
    assert 22 == len(expected)
    assert expected == {path: getattr(row, "blob_id", None) or row.tree_id for path, row in rows.items()}
    assert ["d/05.txt"] == [r.path for r in api.list_repo_tree(REPO, "d", repo_type="dataset") if "05" in r.path]
    with pytest.raises(RemoteEntryNotFoundError):
        list(api.list_repo_tree(REPO, "nowhere", repo_type="dataset"))


def test_missing_things_have_the_hubs_errors(api: HfApi, tmp_path: Path) -> None:
    """Repository, revision and file not found are three different exceptions."""
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("someone/else")
    with pytest.raises(RevisionNotFoundError):
        api.dataset_info(REPO, revision="v9")
    with pytest.raises(RevisionNotFoundError):
        api.dataset_info(REPO, revision="e" * 300)
    with pytest.raises(RemoteEntryNotFoundError):
        read(api, "none.txt", "main", tmp_path)


def test_gitignore_leaves_files_out(api: HfApi) -> None:
    """The repository's root `.gitignore` is heeded, as is one in the same commit."""
    put(api, {".gitignore": b"*.log\nbuild/\n!keep.log\n", "a.log": b"a", "keep.log": b"k"})
    put(api, {"b.log": b"b", "build/c.txt": b"c", "d.txt": b"d"})
    assert [".gitattributes", ".gitignore", "d.txt", "keep.log"] == paths(api)


def test_gitattributes_of_the_repository_decide(api: HfApi) -> None:
    """A rule added to `.gitattributes` makes later uploads LFS objects; without one a file is a blob."""
    put(api, {".gitattributes": b"*.dat filter=lfs diff=lfs merge=lfs -text\n"})
    put(api, {"x.dat": b"x", "y.parquet": b"y", "z/x.dat": b"z"})
    rows = api.get_paths_info(REPO, ["x.dat", "y.parquet", "z/x.dat"], repo_type="dataset")
    assert {"x.dat": True, "y.parquet": False, "z/x.dat": True} == {row.path: row.lfs is not None for row in rows}


def test_long_file_without_a_rule_becomes_lfs(api: HfApi) -> None:
    """Above 10 MiB a file is an LFS object whatever its name."""
    put(api, {"long.txt": b"x" * (10 * 1024 * 1024 + 1), "just.txt": b"x" * (10 * 1024 * 1024)})
    rows = api.get_paths_info(REPO, ["long.txt", "just.txt"], repo_type="dataset")
    assert {"just.txt": False, "long.txt": True} == {row.path: row.lfs is not None for row in rows}


def test_readme_over_the_limit_is_refused(api: HfApi) -> None:
    """A card of more than 10 MiB, or whose body validate-yaml does not take, is refused."""
    with pytest.raises(HfHubHTTPError) as caught:
        put(api, {"README.md": b"x" * 500_000})
    assert 413 == caught.value.response.status_code
    lfs = CommitOperationAdd("README.md", io.BytesIO(b"x" * (10 * 1024 * 1024 + 1)))
    with pytest.raises(HfHubHTTPError):
        api.create_commit(REPO, [lfs], commit_message="long", repo_type="dataset")
    assert [".gitattributes"] == paths(api)


@pytest.mark.parametrize(
    ("front_matter", "complaint"),
    [
        ("configs:\n- config_name: no\n", "config_name"),
        ("configs:\n- config_name: 2024-01-01\n", "config_name"),
        ("configs:\n- config_name: a\n- config_name: a\n", "2 times"),
        ("configs:\n- {config_name: a, default: true}\n- {config_name: b, default: true}\n", "default"),
        ("licence: x\nlicence: y\n", "duplicated"),
        ("a: [\n", "YAML"),
        ("- a\n", "mapping"),
    ],
)
def test_broken_card_is_refused(api: HfApi, front_matter: str, complaint: str) -> None:
    """validate-yaml names what is wrong with a card, and nothing is committed."""
    with pytest.raises(ValueError, match=complaint):
        put(api, {"README.md": f"---\n{front_matter}---\n# Card\n".encode()})
    assert [".gitattributes"] == paths(api)


def test_good_card_is_committed(api: HfApi, tmp_path: Path) -> None:
    """A card with front matter comes back byte for byte."""
    card = b'---\nconfigs:\n- config_name: "no"\n  data_files: x.parquet\n---\n# Card\n'
    sha = put(api, {"README.md": card})
    assert card == read(api, "README.md", sha, tmp_path)


def test_snapshot_at_a_tag_is_that_release(api: HfApi, tmp_path: Path) -> None:
    """After a newer release the old tag still gives the old files."""
    put(api, {"x.parquet": b"one", "only-old.txt": b"o"})
    api.create_tag(REPO, tag="v1", repo_type="dataset")
    put(api, {"x.parquet": b"two"}, delete=("only-old.txt",))
    folder = Path(
        snapshot_download(
            REPO, repo_type="dataset", revision="v1", cache_dir=tmp_path, endpoint=api.endpoint, token=False
        )
    )
    assert b"one" == (folder / "x.parquet").read_bytes()
    assert api.dataset_info(REPO, revision="v1").sha == folder.name
    assert {".gitattributes", "only-old.txt", "x.parquet"} == {path.name for path in folder.iterdir()}


def test_super_squash_leaves_one_commit(api: HfApi) -> None:
    """The route that tests of tampering need: one commit, the same files, the tagged commit still readable."""
    sha = put(api, {"x.txt": b"1"})
    api.create_tag(REPO, tag="v1", repo_type="dataset")
    api.super_squash_history(REPO, repo_type="dataset")  # the test is of the route
    assert 1 == len(api.list_repo_commits(REPO, repo_type="dataset"))
    assert sha != api.dataset_info(REPO).sha
    assert sha == api.dataset_info(REPO, revision="v1").sha
    assert [".gitattributes", "x.txt"] == paths(api)


def test_delete_repo(api: HfApi) -> None:
    """A deleted repository is not found, and can be made anew without its history."""
    put(api, {"x.txt": b"1"})
    api.delete_repo(REPO, repo_type="dataset")
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info(REPO)
    api.create_repo(REPO, repo_type="dataset")
    assert [".gitattributes"] == paths(api)
