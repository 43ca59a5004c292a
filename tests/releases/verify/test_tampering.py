"""Each way to change what was published has its own named failure, at the level that can see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from support.published import REPO, V1, V2, found, statuses

from releases.git_objects import pointer
from releases.ledger.chain import FIRST, Entry, head_digest
from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.published import World

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

QRELS = "paper__english/qrels.parquet"
QUERIES = "paper__english/queries.parquet"
NOTHING: dict[str, list[str]] = {}


def test_what_was_published_passes_in_two_calls_and_one_a_release(world: World) -> None:
    """Tags, history and two trees: four requests, and every release is found as it was."""
    done = world.verify("ledger")
    assert (0, NOTHING) == (done.code, found(done))
    assert 4 == json.loads(done.stdout)["requests"]
    assert {V1: {"ledger": "passed"}, V2: {"ledger": "passed"}} == {t: statuses(done)[t] for t in (V1, V2)}


def test_each_distinct_object_is_fetched_once(world: World) -> None:
    """The releases share most files: as many are fetched as there are different ones, releases.json of each."""
    done = world.verify("content")
    distinct = {(f["lfs"], f["oid"]) for entry in world.entries() for f in entry.files.values()}
    assert (0, NOTHING) == (done.code, found(done))
    assert 4 + len(distinct) == json.loads(done.stdout)["requests"]


def test_tag_moved(world: World) -> None:
    """A tag that was made anew elsewhere is seen by its target; the release itself is still there."""
    world.git("update-ref", f"refs/tags/{V1}", world.git("rev-parse", f"{V2}^{{commit}}"))
    done = world.verify("ledger")
    assert (5, {V1: ["ledger tag-moved"]}) == (done.code, found(done))


def test_tag_deleted(world: World) -> None:
    """A tag that is gone is named; the other release passes."""
    world.git("update-ref", "-d", f"refs/tags/{V1}")
    done = world.verify("ledger")
    assert (5, {V1: ["ledger tag-deleted"]}) == (done.code, found(done))
    assert "passed" == statuses(done)[V2]["ledger"]


def test_main_squashed(world: World) -> None:
    """No pinned commit is an ancestor of main, although every one and every file can be read."""
    world.squash()
    done = world.verify("content")
    rewritten = ["ledger history-rewritten"]
    assert (5, {V1: rewritten, V2: rewritten}) == (done.code, found(done))
    assert "passed" == statuses(done)[V1]["content"]


@pytest.mark.parametrize("with_tags", [False, True])
def test_rewritten_with_equal_trees(world: World, *, with_tags: bool) -> None:
    """A history of the same trees is another history, whether or not the tags were moved along."""
    first = world.git("commit-tree", "-m", "again", f"{V1}^{{tree}}")
    second = world.git("commit-tree", "-p", first, "-m", "again", f"{V2}^{{tree}}")
    world.git("update-ref", "refs/heads/main", second)
    if with_tags:
        world.git("update-ref", f"refs/tags/{V1}", first)
        world.git("update-ref", f"refs/tags/{V2}", second)
    expected = ["ledger history-rewritten", *(["ledger tag-moved"] if with_tags else [])]
    done = world.verify("ledger")
    assert (5, {V1: expected, V2: expected}) == (done.code, found(done))


def test_commit_gone(world: World) -> None:
    """After a squash, a deleted tag and git's own cleaning nothing of a release is left, and that is said."""
    world.squash()
    world.git("update-ref", "-d", f"refs/tags/{V1}")
    world.git("update-ref", "-d", f"refs/tags/{V2}")
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "--quiet", "--prune=now")
    done = world.verify("content", "--pin", V1)
    assert 5 == done.code
    assert {V1: ["ledger commit-missing", "ledger history-rewritten", "ledger tag-deleted"]} == found(done)
    assert "not checked" == statuses(done)[V1]["content"]


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lambda _: None, "file-missing"),
        (lambda data: data[:9] + bytes([data[9] ^ 1]) + data[10:], "bytes-changed"),
        (lambda data: data[:-1], "bytes-changed"),
        (lambda data: pointer("0" * 64, len(data)), "pointer-without-object"),
    ],
    ids=["object lost", "one bit flipped", "cut short", "a pointer instead of a file"],
)
def test_object_spoilt(world: World, spoil: Callable[[bytes], bytes | None], name: str) -> None:
    """A listing stays green when an LFS object is spoilt: fetching it finds out, in each release that holds it."""
    file = world.lfs_object(V1, QUERIES)
    changed = spoil(file.read_bytes())
    file.chmod(0o644)
    file.unlink() if changed is None else file.write_bytes(changed)
    assert (0, NOTHING) == ((done := world.verify("ledger")).code, found(done))
    done = world.verify("content")
    expected = [f"content {name} {QUERIES}"]
    assert (5, {V1: expected, V2: expected}) == (done.code, found(done))


def test_object_of_one_release_spoilt(world: World) -> None:
    """Gains differ between the releases: only the one that holds the spoilt object fails."""
    world.lfs_object(V1, QRELS).unlink()
    done = world.verify("content")
    assert (5, {V1: [f"content file-missing {QRELS}"]}) == (done.code, found(done))
    assert "passed" == statuses(done)[V2]["content"]


def commit(world: World, files: dict[str, bytes]) -> None:
    """Someone commits to main through the API."""
    with LocalHub(world.store) as hub:
        HfApi(endpoint=hub.endpoint, token=False).create_commit(
            REPO,
            [CommitOperationAdd(name, data) for name, data in files.items()],
            commit_message="by hand",
            repo_type="dataset",
        )


def test_card_edited_by_hand(world: World) -> None:
    """A commit on top of the last release changes no pin; that main drifted from it is said."""
    commit(world, {"README.md": b"---\nlicense: mit\n---\n# edited\n"})
    done = world.verify("ledger")
    assert (5, {"main": ["ledger card-drift README.md"]}) == (done.code, found(done))


def test_data_edited_by_hand(world: World) -> None:
    """As above for a table and for a file that no release has."""
    commit(world, {QRELS: b"PAR1", "notes.txt": b"x"})
    done = world.verify("ledger")
    expected = ["ledger bytes-changed notes.txt", f"ledger bytes-changed {QRELS}"]
    assert (5, {"main": expected}) == (done.code, found(done))


def edit_ledger(world: World, row: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change an entry and write its line in the canonical form, as someone would who knows it."""
    lines = world.ledger.read_text().splitlines()
    entry = json.loads(lines[row])
    change(entry)
    lines[row] = Entry(**entry).line()
    world.ledger.write_text("\n".join(lines) + "\n")


def test_ledger_edited(world: World) -> None:
    """An earlier line does not fit the chain any more: nothing is verified against it."""
    edit_ledger(world, 0, lambda entry: entry.update(parent="0" * 40))
    done = world.verify("ledger")
    assert (3, {"the ledger": ["ledger ledger-broken"]}) == (done.code, found(done))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(tree="0" * 40),
        lambda entry: entry.update(manifest_sha256="0" * 64),
        lambda entry: entry["files"][QRELS].update(size=1),
        lambda entry: entry["files"][QRELS].update(sha256="0" * 64),
        lambda entry: entry["files"].pop("README.md"),
        lambda entry: entry["release"].update(number=7),
    ],
    ids=["tree", "manifest", "size", "sha256", "file removed", "number"],
)
def test_last_line_of_the_ledger_edited(world: World, change: Callable[[dict[str, Any]], None]) -> None:
    """No later line vouches for the last one: it is compared with itself."""
    edit_ledger(world, 1, change)
    done = world.verify("ledger")
    assert done.code in {3, 5}
    assert "ledger ledger-broken" in {item[:20] for item in found(done)["the ledger"]}


def test_last_line_of_the_ledger_lost(world: World) -> None:
    """The chain of what is left is whole; the remote has a release that it lacks."""
    world.ledger.write_text(world.ledger.read_text().splitlines()[0] + "\n")
    done = world.verify("ledger")
    assert 5 == done.code  # main has other gains than the last release of what is left
    assert ["ledger ledger-broken"] == found(done)["the ledger"]
    assert ["ledger bytes-changed"] == found(done)["main"]
    assert f"main is at release {V2}, which the ledger lacks" in done.stderr
    assert "next: first restore the ledger from git" in done.stderr


def test_revision_in_the_ledger_edited(world: World) -> None:
    """A last line that names another commit: neither the tag nor the history agrees, and the commit is not there."""
    edit_ledger(world, 1, lambda entry: entry.update(revision="0" * 40))
    done = world.verify("ledger")
    assert 5 == done.code
    assert {"ledger commit-missing", "ledger history-rewritten", "ledger tag-moved"} <= set(found(done)[V2])


def test_revision_of_an_earlier_release_edited_in_a_new_chain(world: World) -> None:
    """A whole new ledger with another pin for release 1 contradicts the published releases.json of release 2."""
    first, second = world.entries()
    forged = Entry(**{**vars(first), "revision": second.revision, "previous": FIRST})
    again = Entry(**{**vars(second), "previous": head_digest([forged])})
    world.ledger.write_text(forged.line() + "\n" + again.line() + "\n")
    done = world.verify("content", "--pin", V2)
    assert (3, {V2: ["content ledger-broken provenance/releases.json"]}) == (done.code, found(done))


@pytest.mark.parametrize("key", ["kind", "status", "may_change"])
def test_what_the_last_line_says_of_its_release_is_compared_with_what_was_published(world: World, key: str) -> None:
    """An edit that the chain cannot see, in the last line's own release, is seen where releases.json is read."""
    edit_ledger(world, 1, lambda entry: entry["release"].update({key: "edited"}))
    done = world.verify("content")
    assert "ledger-broken" in str(found(done)), found(done)
    assert 0 != done.code
