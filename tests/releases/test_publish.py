"""What a publish sends, what a dry run leaves alone, and what is refused."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from support import small, tiny
from support.command import release_here

from provenance.errors import DataError, InputError, SafetyError
from releases.ledger.chain import Entry, append, head_digest, read_ledger
from releases.local_hub import Faults, LocalHub
from releases.publish import DONE, WAS_DONE, Ledger, survey
from releases.targets.hub import HubRemote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


@pytest.fixture
def faults() -> Faults:
    """The record of requests."""
    return Faults()


@pytest.fixture
def hub(tmp_path: Path, faults: Faults) -> Iterator[LocalHub]:
    """A Hub with nothing in it."""
    with LocalHub(tmp_path / "store", faults=faults) as running:
        yield running


@pytest.fixture
def remote(hub: LocalHub) -> HubRemote:
    """The small releases' repository."""
    return HubRemote(small.REPO, endpoint=hub.endpoint, token=False)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where the ledger lies."""
    return tmp_path / "ledger.jsonl"


def asked(faults: Faults, remote: HubRemote) -> set[str]:
    """The methods of all requests so far."""
    # A request is recorded when its answer has gone; after one more answer all before it are.
    remote.refs()
    return {request.method for request in faults.requests()}


def next_release(folder: Path, ledger: Path, **change: bytes) -> Path:
    """A release after the ledger's last, whose gains differ."""
    entries = read_ledger(ledger)
    gains = f"PAR1 \x00 gains of {len(entries) + 1} PAR1".encode()
    return folder / small.write_release(folder, entries, change={"paper__english/qrels.parquet": gains, **change})


def test_two_releases(tmp_path: Path, hub: LocalHub, remote: HubRemote, ledger: Path) -> None:
    """Each release is one commit on the one before, with its tag; the ledger has what verify needs of both."""
    first = small.publish(remote, next_release(tmp_path, ledger), ledger)
    second = small.publish(remote, next_release(tmp_path, ledger), ledger)
    one, two = read_ledger(ledger)
    assert [first.revision, second.revision] == [one.revision, two.revision]
    assert one.revision == two.parent
    refs = remote.refs()
    assert refs is not None
    assert {"v1-toy": one.revision, "v2-toy": two.revision} == refs.tags
    assert two.revision == refs.head
    repository = hub.store.repository(small.REPO)
    assert two.revision is not None
    held = repository.tree(two.revision)
    assert {path: row.oid for path, row in held.items() if not row.is_directory} == {
        path: file["oid"] for path, file in two.files.items()
    }
    assert "Release v2-toy" == repository.log(two.revision, 0, 1)[0]["title"]
    assert two.revision == two.release["revision"]
    assert dict.fromkeys(("commit", "tag", "ledger"), DONE) == second.steps


def test_only_changed_files_are_sent(tmp_path: Path, faults: Faults, remote: HubRemote, ledger: Path) -> None:
    """A release that changes the gains sends the gains and the documents; a large corpus is not sent again."""
    corpus = {"paper/corpus-00000-of-00001.parquet": bytes(range(256)) * 8000}
    small.publish(remote, next_release(tmp_path, ledger, **corpus), ledger)
    asked(faults, remote)
    faults.clear()
    done = small.publish(remote, next_release(tmp_path, ledger, **corpus), ledger)
    changed = ("paper__english/qrels.parquet", "provenance/manifest.json", "provenance/releases.json")
    assert changed == done.plan.adds
    assert sum(done.plan.files[path].size for path in changed) == done.bytes_sent
    assert faults.bytes_in() < 20_000 < done.plan.bytes_of_tree
    assert 1 == len(faults.requests("PUT"))


def test_a_second_run_does_nothing(tmp_path: Path, faults: Faults, remote: HubRemote, ledger: Path) -> None:
    """What is published already is looked at, and nothing is written."""
    tree = next_release(tmp_path, ledger)
    small.publish(remote, tree, ledger)
    before = ledger.read_bytes()
    assert "POST" in asked(faults, remote)
    faults.clear()
    done = small.publish(remote, tree, ledger)
    assert dict.fromkeys(("commit", "tag", "ledger"), WAS_DONE) == done.steps
    assert {"GET"} == asked(faults, remote)
    assert before == ledger.read_bytes()


def test_survey_writes_nothing(tmp_path: Path, faults: Faults, remote: HubRemote, ledger: Path) -> None:
    """What a dry run asks are questions: no request writes, before the first release and before the next."""
    for number in (1, 2):
        tree = next_release(tmp_path, ledger)
        asked(faults, remote)
        faults.clear()
        entries = read_ledger(ledger)
        situation = survey(remote, small.ready(tree, entries), Ledger(ledger, entries), allowed_deletes=0)
        assert {"GET", "HEAD"} >= asked(faults, remote)
        assert (number > 1) == situation.exists
        small.publish(remote, tree, ledger)


def test_an_existing_empty_repository(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """The first release goes on top of the commit that the Hub made, which the ledger records."""
    remote.create()
    refs = remote.refs()
    assert refs is not None
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    assert refs.head == read_ledger(ledger)[0].parent


def test_a_repository_that_someone_uses(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """With an empty ledger, a repository with files or tags is not published to."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    with pytest.raises(SafetyError, match=r"the ledger is empty, but the repository holds 8 files and 1 tags"):
        small.publish(remote, tmp_path / small.write_release(tmp_path, slug="other"), tmp_path / "other.jsonl")


def test_nothing_changes(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A release whose files are all the last one's is refused (the client would make no commit, and say it had)."""
    tree = next_release(tmp_path, ledger)
    small.publish(remote, tree, ledger)
    files = small.ready(tree).files
    entries = read_ledger(ledger)
    following = small.ready(next_release(tmp_path, ledger), entries)
    object.__setattr__(following, "files", files)
    with pytest.raises(SafetyError, match="v2-toy changes nothing"):
        survey(remote, following, Ledger(ledger, entries), allowed_deletes=0)


def test_a_head_that_nobody_knows(tmp_path: Path, hub: LocalHub, remote: HubRemote, ledger: Path) -> None:
    """A commit by hand on top of the last release is named, with author and date; nothing is published."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    repository = hub.store.repository(small.REPO)
    head = repository.resolve("main")
    foreign = repository.commit_tree(f"{head}^{{tree}}", [head], "a card by hand\n")
    repository.swap("refs/heads/main", foreign, head)
    tree = next_release(tmp_path, ledger)
    with pytest.raises(SafetyError, match="someone else published") as caught:
        small.publish(remote, tree, ledger)
    assert f"commit {foreign} ('a card by hand') by local, 20" in str(caught.value)
    assert f"v1-toy, is commit {head}" in str(caught.value)
    assert 1 == len(read_ledger(ledger))


def test_a_tag_with_another_target(tmp_path: Path, hub: LocalHub, remote: HubRemote, ledger: Path) -> None:
    """A tag of the release's name that leads elsewhere stops the publish before anything is sent."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    first = read_ledger(ledger)[0]
    assert first.revision is not None
    assert first.parent is not None
    hub.store.repository(small.REPO).create_tag("v2-toy", first.parent, None)
    tree = next_release(tmp_path, ledger)
    with pytest.raises(SafetyError, match="the tag v2-toy exists and leads to another commit") as caught:
        small.publish(remote, tree, ledger)
    assert first.parent in str(caught.value)


def test_a_tag_on_the_last_release(tmp_path: Path, hub: LocalHub, remote: HubRemote, ledger: Path) -> None:
    """The same where it leads to the head that the release would go on top of."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    hub.store.repository(small.REPO).create_tag("v2-toy", str(read_ledger(ledger)[0].revision), None)
    tree = next_release(tmp_path, ledger)
    with pytest.raises(SafetyError, match="the tag v2-toy exists and leads to another commit"):
        small.publish(remote, tree, ledger)


def test_a_head_with_other_files_than_the_ledgers(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A head of the ledger's sha whose listing is another tree stops the publish."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    (entry,) = read_ledger(ledger)
    other = tmp_path / "other.jsonl"
    append(other, Entry(**{**vars(entry), "tree": "0" * 40}))
    with pytest.raises(SafetyError, match=f"has root tree {entry.tree}, in the ledger 0000"):
        small.publish(remote, next_release(tmp_path, other), other)


def test_a_release_published_by_hand(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A ledger that does not know the last release's commit stops the publish, and names `adopt`."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    other = tmp_path / "other.jsonl"
    entry = read_ledger(ledger)[0]
    append(other, Entry(**{**vars(entry), "revision": None, "release": {**entry.release, "revision": None}}))
    with pytest.raises(SafetyError, match=r"(?s)does not know at which commit v1-toy.*release adopt"):
        small.publish(remote, next_release(tmp_path, other), other)


def test_a_ledger_of_another_repository(tmp_path: Path, hub: LocalHub, remote: HubRemote, ledger: Path) -> None:
    """A ledger with releases and a remote without any do not belong together."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    elsewhere = HubRemote("example/elsewhere", endpoint=hub.endpoint, token=False)
    with pytest.raises(SafetyError, match=r"ends with v1-toy .* and the remote holds nothing"):
        small.publish(elsewhere, next_release(tmp_path, ledger), ledger)
    with pytest.raises(SafetyError, match="the remote says there is none"):
        small.publish(elsewhere, tmp_path / "v1-toy", ledger)


def test_another_tree_of_a_published_tag(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A published tag with another tree is refused, and the published commit is named."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    other = tmp_path / "other"
    small.write_release(other, change={"README.md": b"another\n"})
    with pytest.raises(SafetyError, match="release 1 is published already, and it is another tree") as caught:
        small.publish(remote, other / "v1-toy", ledger)
    assert str(read_ledger(ledger)[0].revision) in str(caught.value)


def test_no_right_to_write(tmp_path: Path) -> None:
    """A Hub that refuses the caller is an input that is missing (the token), and is not asked again and again."""
    faults = Faults()
    tag = small.write_release(tmp_path)
    with LocalHub(tmp_path / "store", token="secret-of-the-hub", faults=faults) as hub:  # noqa: S106 - a test's
        remote = HubRemote(small.REPO, endpoint=hub.endpoint, token=False)
        with pytest.raises(InputError, match=r"(?s)refuses to make the repository.*HF_TOKEN"):
            small.publish(remote, tmp_path / tag, tmp_path / "ledger.jsonl")
        assert 1 == len(faults.requests("POST"))


def test_a_wrong_token_is_never_shown(tmp_path: Path) -> None:
    """A refused token appears in no message."""
    tag = small.write_release(tmp_path)
    with LocalHub(tmp_path / "store", token="right") as hub:  # noqa: S106 - a test's
        remote = HubRemote(small.REPO, endpoint=hub.endpoint, token="hf_wrong_and_secret")  # noqa: S106 - a test's
        with pytest.raises(InputError) as caught:
            small.publish(remote, tmp_path / tag, tmp_path / "ledger.jsonl")
    assert "hf_wrong_and_secret" not in repr(caught.value) + str(caught.value.__context__)


def test_a_card_that_the_hub_refuses(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A card with a key twice is the data's fault; what the Hub says of it is shown."""
    card = b"---\nlicense: a\nlicense: b\n---\n"
    tag = small.write_release(tmp_path, change={"README.md": card})
    with pytest.raises(DataError, match=r"does not accept the card.*duplicated mapping key 'license'"):
        small.publish(remote, tmp_path / tag, ledger)


def test_a_ledger_that_cannot_be_written(tmp_path: Path, faults: Faults, remote: HubRemote) -> None:
    """It is found out before anything is sent."""
    tag = small.write_release(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the ledger cannot be written"):
        small.publish(remote, tmp_path / tag, tmp_path / "file" / "ledger.jsonl")
    assert {"GET", "HEAD"} >= asked(faults, remote)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda tree: (tree / "stray.txt").write_text("x"), "stray.txt is not in the manifest"),
        (lambda tree: (tree / "README.md").unlink(), "README.md is missing"),
        (lambda tree: (tree / "README.md").write_text("x"), r"README.md has sha256 2d711642\w*, in the manifest"),
    ],
)
def test_a_tree_that_is_not_its_manifests(tmp_path: Path, spoil: object, message: str) -> None:
    """M1 is checked on the very bytes that would be sent."""
    tag = small.write_release(tmp_path)
    assert callable(spoil)
    spoil(tmp_path / tag)
    with pytest.raises(SafetyError, match=message):
        small.ready(tmp_path / tag)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    """A release holds plain files."""
    tag = small.write_release(tmp_path)
    (tmp_path / tag / "link").symlink_to("README.md")
    with pytest.raises(DataError, match="plain files only"):
        small.ready(tmp_path / tag)


def test_tag_number_and_earlier_releases_are_the_ledgers(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A tree under another tag, with another number, or built on another ledger is refused, and no remote is asked."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    entries = read_ledger(ledger)
    tree = next_release(tmp_path, ledger)
    renamed = tmp_path / "v2-other"
    shutil.copytree(tree, renamed)
    with pytest.raises(SafetyError, match="the tree says that it is v2-toy, not v2-other"):
        small.ready(renamed, entries)
    with pytest.raises(SafetyError, match="the tree is release 2, the next by the ledger is release 1"):
        small.ready(tree, ())
    (one,) = entries
    other = Entry(**{**vars(one), "revision": "b" * 40})
    with pytest.raises(
        SafetyError, match=r"earlier releases of the tree are not the ledger's, which has v1-toy at bbbb"
    ):
        small.ready(tree, (other,))
    assert head_digest((other,)) != head_digest(entries)


def test_a_withdrawal_after_the_build(tmp_path: Path, remote: HubRemote, ledger: Path) -> None:
    """A tree built before one of its earlier releases was withdrawn is built again."""
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    small.publish(remote, next_release(tmp_path, ledger), ledger)
    one, two = read_ledger(ledger)
    withdrawing = Entry(**{**vars(two), "release": {**two.release, "withdraws": {"tag": "v1-toy", "why": "wrong"}}})
    tag = small.write_release(tmp_path, (one, withdrawing))
    with pytest.raises(SafetyError, match="v1-toy was withdrawn after this tree was built"):
        small.ready(tmp_path / tag, (one, withdrawing))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The tiny world, with its first release built."""
    folder = tmp_path / "world"
    benchmark = tiny.write_world(folder)
    built = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", folder / "dist", "--workers", "1", "--no-figures"
    )
    assert built.code == 0, built.stderr
    return folder


def command(world: Path, *more: str | Path) -> tuple[str | Path, ...]:
    """`release publish` of the world's first release to a store beside it."""
    return (
        "publish",
        "--benchmark",
        world / "benchmark.toml",
        "--out",
        world / "dist",
        "--tag",
        "v1-toy",
        "--to",
        f"local:{world / 'hub'}",
        *more,
    )


def test_the_command(world: Path) -> None:
    """A built release is published to a store; the dry run before says what will be done; a second run does nothing."""
    planned = release_here(*command(world, "--dry-run", "--json"))
    assert planned.code == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert not (world / "tiny.ledger.jsonl").exists()
    assert not (world / "hub").exists()
    done = release_here(*command(world, "--json"))
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    (entry,) = read_ledger(world / "tiny.ledger.jsonl")
    assert document["revision"] == entry.revision
    assert plan["tree"] == document["tree"] == entry.tree
    assert sorted(entry.files) == plan["adds"]
    # The repository that was made holds .gitattributes already.
    assert len(entry.files) - 1 == document["files"]["added"]
    again = release_here(*command(world))
    assert again.code == 0
    assert "nothing was to be done" in again.stderr


def test_the_command_refuses(world: Path) -> None:
    """A tag without a tree is a missing input; a place of no known kind is a usage error; a changed tree is refused."""
    missing = release_here(*(part if part != "v1-toy" else "v9-toy" for part in command(world)))
    assert missing.code == 4
    assert "there is no release tree here" in missing.stderr
    nowhere = release_here(*(f"ftp:{world}" if str(part).startswith("local:") else part for part in command(world)))
    assert nowhere.code == 2
    assert "hf:owner/name, local:DIR or git:URL" in nowhere.stderr
    (world / "file").touch()
    no_folder = release_here(
        *(f"local:{world / 'file' / 'hub'}" if str(part).startswith("local:") else part for part in command(world))
    )
    assert no_folder.code == 4
    assert "cannot be written" in no_folder.stderr
    (world / "dist" / "v1-toy" / "README.md").write_text("changed")
    changed = release_here(*command(world))
    assert changed.code == 5


def test_what_may_not_change_is_proved_first(world: Path) -> None:
    """Without the predecessor's tree nothing is published; with it, a release that breaks C3 is refused."""
    assert 0 == release_here(*command(world)).code
    tiny.edit_rows(world / "pipeline" / "runs" / "paper.parquet", lambda rows: [*map(turned, rows)])
    built = release_here(
        *("build", "--benchmark", world / "benchmark.toml", "--judge", "toy", "--out", world / "other"),
        *("--workers", "1", "--no-figures"),
    )
    assert 0 == built.code, built.stderr
    publish = [{"v1-toy": "v2-toy", world / "dist": world / "other"}.get(part, part) for part in command(world)]
    alone = release_here(*publish)
    assert 4 == alone.code
    assert "what may not change (C3) cannot be proved" in alone.stderr
    shutil.copytree(world / "dist" / "v1-toy", world / "other" / "v1-toy")
    broken = release_here(*publish)
    assert 5 == broken.code
    assert "fails its proofs (C3)" in broken.stderr
    assert ["v1-toy"] == [entry.tag for entry in read_ledger(world / "tiny.ledger.jsonl")]


def turned(row: dict[str, object]) -> dict[str, object]:
    """A run's row with its score turned round."""
    score = row["score"]
    return row | {"score": -score if isinstance(score, float) else score}
