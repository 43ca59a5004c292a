"""Releases made with plain git and git-lfs, by hand, become the ledger's first entries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.command import release_here
from support.published import V1, V2, World, found, statuses, write_published

from builder.benchmark import load_benchmark
from releases.adopt import Adoption, kept_entries, releases_of
from releases.ledger.chain import Entry, append, head_digest
from releases.local_hub import Faults, LocalHub
from releases.verify.hub import HubReader
from releases.verify.target import Target

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Done

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "example/rcp-ndcg-tiny"


class ByHand:
    """A work tree, as someone makes it without this tool, and the bare repository that it is pushed to."""

    def __init__(self, folder: Path, bare: Path) -> None:
        self.folder = folder
        folder.mkdir()
        bare.parent.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("lfs", "install", "--local")
        self.git("remote", "add", "origin", bare.as_uri())

    def git(self, *arguments: str) -> str:
        """Git with no configuration of this machine's."""
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": "hand", f"GIT_{role}_EMAIL": "hand@localhost"}
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, tree: Path | None, readme: str | None, message: str) -> str:
        """A commit of a tree, without the documents that only this tool makes, or of a card alone; its sha."""
        if tree is not None:
            shutil.copytree(tree, self.folder, dirs_exist_ok=True)
            (self.folder / "provenance" / "manifest.json").unlink()
            (self.folder / "provenance" / "releases.json").write_text('[{"version": 1, "note": "made by hand"}]\n')
        if readme is not None:
            (self.folder / "README.md").write_text(readme)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two trees to be published by hand."""
    return write_published(tmp_path_factory.mktemp("published") / "world")


@pytest.fixture
def world(trees: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The benchmark with an empty ledger and no store."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = trees.copy(tmp_path / "world")
    world.ledger.unlink()
    shutil.rmtree(world.store)
    return world


@pytest.fixture
def commits(world: World, tmp_path: Path) -> dict[str, str]:
    """Data, then a card alone (tagged v1, lightweight), then other gains (tagged v2, annotated), then a stray tag."""
    hand = ByHand(tmp_path / "hand", world.bare)
    out = world.folder / "out"
    card = (out / V1 / "README.md").read_text()
    made = {
        "data": hand.commit(out / V1, card.replace("tiny world", "tiny wrold"), "data"),
        "card": hand.commit(None, card, "mend the card"),
    }
    hand.git("tag", V1)
    made["gains"] = hand.commit(out / V2, None, "gains")
    hand.git("tag", "--annotate", "-m", "the second", V2)
    hand.git("tag", "draft", made["data"])
    hand.git("push", "--quiet", "--atomic", "origin", "main", V1, V2, "draft")
    return made


def adopt(world: World) -> Done:
    """`release adopt` of the store."""
    benchmark = world.folder / "benchmark.toml"
    return release_here("adopt", f"local:{world.store}", "--benchmark", benchmark, "--json")


def test_adopted_releases_verify_and_a_squash_is_seen(world: World, commits: dict[str, str]) -> None:
    """Both tags, peeled; the card-only commit's data are those of the commit before; then a squash fails."""
    done = adopt(world)
    assert done.code == 0, done.stderr
    first, second = json.loads(done.stdout)["adopted"]
    assert (V1, commits["card"], commits["data"]) == (first["tag"], first["revision"], first["data_revision"])
    assert (V2, commits["gains"], None) == (second["tag"], second["revision"], second["data_revision"])
    for number, entry in enumerate(world.entries()):
        assert world.git("rev-parse", f"{entry.tag}^{{tree}}") == entry.tree
        assert [commits["data"], commits["card"]][number] == entry.parent
        assert entry.manifest_sha256 is None
    assert "draft" in done.stderr
    verified = world.verify("load")
    assert (0, {}) == (verified.code, found(verified)), verified.stderr
    assert "passed" == statuses(verified)[V2]["load"]
    assert "no manifest" in verified.stderr
    world.squash()
    squashed = world.verify("ledger")
    rewritten = ["ledger history-rewritten"]
    assert (5, {V1: rewritten, V2: rewritten}) == (squashed.code, found(squashed))


@pytest.mark.usefixtures("commits")
def test_what_holds_is_said_and_what_cannot_be_proved_too(world: World) -> None:
    """The tables' proofs hold; without a manifest nothing proves the bytes; gains of the wrong link would fail."""
    document = json.loads(adopt(world).stdout)
    proofs = document["adopted"][0]["proofs"]
    assert {"passed"} == {proofs[name] for name in ("S1", "J1", "P1", "P3", "G1", "R1")}
    assert "not provable" == proofs["M1"]
    assert document["adopted"][0]["proved"] == ("failed" not in proofs.values())


@pytest.mark.usefixtures("commits")
def test_nothing_is_written_to_the_remote(world: World, tmp_path: Path) -> None:
    """Every request is a GET, and every ref stays where it was."""
    before = world.git("for-each-ref")
    faults = Faults()
    with LocalHub(world.store, faults=faults) as hub:
        reader = HubReader(Target(REPO, hub.endpoint, None, "here"))
        releases = releases_of(reader.refs()[1], "here")
        benchmark = load_benchmark(str(world.folder / "benchmark.toml"))
        done = Adoption(reader, benchmark, {}, tmp_path / "trees", lambda _: None).adopt((), releases)
    assert [V1, V2] == [item.entry.tag for item in done]
    assert {"GET"} == {request.method for request in faults.requests()}
    assert before == world.git("for-each-ref")


def noted(world: World, revision: str | None) -> None:
    """A ledger that only notes the first release."""
    release = {"number": 1, "tag": V1, "revision": revision, "judge": {"name": "toy"}, "status": "current"}
    entry = Entry(1, V1, revision, None, None, None, release, proved=False, previous=head_digest(()))
    append(world.ledger, entry)


@pytest.mark.parametrize("known", [True, False])
def test_a_ledger_that_only_notes_releases_is_written_anew(
    world: World, commits: dict[str, str], *, known: bool
) -> None:
    """Before, verify says what to do and passes nothing; after, the ledger is whole and says that it was replaced."""
    noted(world, commits["card"] if known else None)
    verified = world.verify("ledger")
    assert 4 == verified.code
    assert "run `release adopt`" in verified.stderr
    done = adopt(world)
    assert (0, 1) == (done.code, json.loads(done.stdout)["replaced"])
    assert [V1, V2] == [entry.tag for entry in world.entries()]
    assert 0 == world.verify("ledger").code
    again = adopt(world)
    assert ([V1, V2], []) == (json.loads(again.stdout)["kept"], json.loads(again.stdout)["adopted"])


@pytest.mark.usefixtures("commits")
def test_a_note_that_contradicts_the_remote_is_refused(world: World) -> None:
    """The ledger's revision is another commit: nothing is written."""
    noted(world, "1" * 40)
    before = world.ledger.read_bytes()
    done = adopt(world)
    assert (5, before) == (done.code, world.ledger.read_bytes())
    assert "1" * 40 in done.stderr


def test_a_release_made_by_hand_on_top_is_added(world: World, commits: dict[str, str]) -> None:
    """Of a ledger that has the first release, the line stays as it is and the second follows it."""
    world.git("update-ref", "-d", f"refs/tags/{V2}")
    assert 0 == adopt(world).code
    line = world.ledger.read_text()
    world.git("update-ref", f"refs/tags/{V2}", commits["gains"])
    assert 5 == world.verify("ledger").code  # a release that the ledger lacks, and main has its gains
    assert 0 == adopt(world).code
    assert world.ledger.read_text().startswith(line)
    assert 0 == world.verify("ledger").code


def test_a_tag_off_main_is_refused(world: World, commits: dict[str, str]) -> None:
    """A commit that is no ancestor of main could not be told from a rewritten one."""
    stray = world.git("commit-tree", "-m", "stray", f"{commits['data']}^{{tree}}")
    world.git("update-ref", f"refs/tags/{V1}", stray)
    done = adopt(world)
    assert (5, False) == (done.code, world.ledger.exists())
    assert "not on main" in done.stderr


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({}, "no tags"),
        ({"draft": "a"}, "draft"),
        ({"v1-a": "a", "v3-a": "b"}, "v3-a"),
        ({"v1-a": "a", "v1-b": "b"}, "v1-b"),
    ],
)
def test_numbers_must_be_whole(tags: dict[str, str], said: str) -> None:
    """No release, a gap, a number twice: refused, with the tags that there are."""
    with pytest.raises(Exception, match=said):
        releases_of(tags, "here")


def test_releases_are_ordered_by_number() -> None:
    """Ten comes after nine."""
    tags = {f"v{number}-a": str(number) for number in range(1, 12)}
    assert list(range(1, 12)) == [number for number, _, _ in releases_of(tags, "here")]


def test_a_ledger_of_both_kinds_is_refused(tmp_path: Path) -> None:
    """Notes after published releases: nobody could say what may be replaced."""
    real = Entry(1, "v1-a", "a", None, "t", None, {}, proved=True, files={"x": {}})
    note = Entry(2, "v2-a", None, None, None, None, {}, proved=False)
    releases = [(1, "v1-a", "a"), (2, "v2-a", "b")]
    with pytest.raises(Exception, match="only noted"):
        kept_entries((real, note), releases, tmp_path)
