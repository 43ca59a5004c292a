"""The commands around a publish, on releases that were really built: list, pins, withdraw."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support import tiny
from support.command import Done, release_here

from releases.ledger.chain import read_ledger

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

WHY = 'A window of "paper" was lost: <2 of 40> | see the notes.'


class World:
    """The tiny world in a folder, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.benchmark = tiny.write_world(folder)

    def run(self, command: str, *arguments: str) -> Done:
        """Run a command, and expect it to end well."""
        done = self.try_(command, *arguments)
        assert done.code == 0, done.stderr
        return done

    def try_(self, command: str, *arguments: str) -> Done:
        """Run a command."""
        return release_here(command, *arguments, "--benchmark", self.benchmark)

    def build(self) -> None:
        """Build the next release."""
        self.run("build", "--judge", "toy", "--out", self.out, "--workers", "1", "--no-figures")

    def publish(self, tag: str) -> dict[str, Any]:
        """Publish a release to the store beside the world."""
        done = self.run("publish", "--tag", tag, "--out", self.out, "--to", f"local:{self.folder / 'hub'}", "--json")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def withdraw(self, tag: str, why: str) -> Done:
        """Prepare a withdrawal."""
        return self.try_("withdraw", tag, "--why", why, "--out", self.out)

    @property
    def out(self) -> str:
        """The folder of trees."""
        return str(self.folder / "dist")

    def tree(self, tag: str) -> Path:
        """A release's tree."""
        return self.folder / "dist" / tag

    def releases(self, tag: str) -> list[dict[str, Any]]:
        """The entries of a tree's releases.json."""
        entries: list[dict[str, Any]] = json.loads((self.tree(tag) / "provenance/releases.json").read_text())[
            "releases"
        ]
        return entries


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two releases published, the first withdrawn by a third, which is published too."""
    made = World(tmp_path_factory.mktemp("world"))
    made.build()
    made.publish("v1-toy")
    (made.folder / "benchmark.toml").write_text(tiny.BENCHMARK.replace("tiny world", "tiny, tiny world"))
    made.build()
    made.publish("v2-toy")
    made.build()
    refused = made.withdraw("v1-toy", WHY)  # it would take the place of the release that was just built
    assert (5, True) == (refused.code, "another release of this number was built here" in refused.stderr)
    (made.tree("v3-toy") / "provenance/releases.json").write_text("{}")  # whatever it is, it is no withdrawal
    assert 5 == made.withdraw("v1-toy", WHY).code
    shutil.rmtree(made.tree("v3-toy"))
    for why in ("Of two minds.", WHY):
        done = made.withdraw("v1-toy", why)
        assert done.code == 0, done.stderr
    made.publish("v3-toy")
    return made


def test_a_withdrawal_changes_no_table(world: World) -> None:
    """Every table of the withdrawing release is the last release's, byte for byte; the documents differ."""
    two, three = (world.tree(tag) for tag in ("v2-toy", "v3-toy"))
    names = sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(three) for path in three.rglob("*") if path.is_file())
    changed = {name.as_posix() for name in names if (two / name).read_bytes() != (three / name).read_bytes()}
    assert {"README.md", "rcp_ndcg_tasks.py", "provenance/releases.json", "provenance/manifest.json"} == changed


def test_a_withdrawal_says_so(world: World) -> None:
    """releases.json, card and task file of the new release name the withdrawn one and why; the new one is current."""
    one, two, three = world.releases("v3-toy")
    assert ("withdrawn", WHY, "v2-toy") == (one["status"], one["withdrawn_because"], one["superseded_by"])
    assert ("superseded", "v3-toy") == (two["status"], two["superseded_by"])
    assert ("current", "card only", {"tag": "v1-toy", "why": WHY}) == (
        three["status"],
        three["kind"],
        three["withdraws"],
    )
    # The tables stand since the first release: the second changed the card only.
    ledger = read_ledger(world.folder / "tiny.ledger.jsonl")
    assert ledger[0].revision == three["data_revision"]
    assert "is withdrawn:** A window of" in (world.tree("v3-toy") / "README.md").read_text()
    tasks = (world.tree("v3-toy") / "rcp_ndcg_tasks.py").read_text()
    block = tasks.split('_WITHDRAWN: dict[str, str] = json.loads(r"""', 1)[1].split('""")', 1)[0]
    assert {"v1-toy": WHY, ledger[0].revision: WHY} == json.loads(block)
    assert (
        '_WITHDRAWN: dict[str, str] = json.loads(r"""{\n\n}""")'
        in (world.tree("v2-toy") / "rcp_ndcg_tasks.py").read_text()
    )


def test_a_later_build_carries_it_on(world: World) -> None:
    """The next build says of the withdrawn release what the withdrawal said."""
    world.build()
    one, *_ = world.releases("v4-toy")
    assert ("withdrawn", WHY) == (one["status"], one["withdrawn_because"])


def test_list_and_pins(world: World) -> None:
    """Both read the ledger: statuses with the reason, and every tag with its commit."""
    listed = json.loads(world.run("list", "--json").stdout)
    assert ["withdrawn", "superseded", "current"] == [row["status"] for row in listed]
    assert [WHY, None, None] == [row["withdrawn_because"] for row in listed]
    assert [True, True, True] == [row["proved"] for row in listed]
    pins = json.loads(world.run("pins", "--json").stdout)
    ledger = read_ledger(world.folder / "tiny.ledger.jsonl")
    assert [(entry.tag, entry.revision) for entry in ledger] == [(pin["tag"], pin["revision"]) for pin in pins]
    text = world.run("list").stdout
    assert f"withdrawn: {WHY}" in text
    assert all(str(entry.revision) in text for entry in ledger)
    assert f"v1-toy {ledger[0].revision}\n" == world.run("pins").stdout.splitlines(keepends=True)[0]


def test_pins_of_a_ledger_that_does_not_know_its_commits() -> None:
    """A release whose commit is not known is no pin, and is named."""
    done = release_here("pins", "--json")
    assert done.code == 0
    unknown = [entry for entry in json.loads(release_here("list", "--json").stdout) if entry["revision"] is None]
    assert all(entry["tag"] in done.stderr for entry in unknown)
    assert not {entry["tag"] for entry in unknown} & {pin["tag"] for pin in json.loads(done.stdout)}


def test_withdrawing_the_current_release(tmp_path: Path) -> None:
    """The new release is current, has the same tables, and its card says that they are withdrawn."""
    world = World(tmp_path)
    world.build()
    world.publish("v1-toy")
    assert 0 == world.withdraw("v1-toy", "wrong").code
    one, two = world.releases("v2-toy")
    assert ["withdrawn", "current"] == [one["status"], two["status"]]
    assert "wrong This release has the same tables." in (world.tree("v2-toy") / "README.md").read_text()


@pytest.mark.parametrize(
    ("tag", "why", "code", "message"),
    [
        ("v9-toy", "wrong", 4, "the ledger has no release 'v9-toy'"),
        ("v1-toy", "wrong", 2, "is withdrawn already"),
        ("v2-toy", "  ", 2, "say why"),
        ("v2-toy", "x" * 301, 2, "--why has 301 characters"),
    ],
)
def test_what_cannot_be_withdrawn(world: World, tag: str, why: str, code: int, message: str) -> None:
    """An unknown or withdrawn release, or no reason, is refused."""
    done = world.withdraw(tag, why)
    assert code == done.code
    assert message in done.stderr


def test_a_tree_that_is_not_the_last_releases(tmp_path: Path) -> None:
    """Without the last release's tree as it was published nothing is copied; the message says how to fetch it."""
    world = World(tmp_path)
    world.build()
    revision = world.publish("v1-toy")["revision"]
    manifest = world.tree("v1-toy") / "provenance/manifest.json"
    text = manifest.read_text()
    manifest.write_text(text + " ")
    done = world.withdraw("v1-toy", "wrong")
    assert 4 == done.code
    assert f"hf download example/rcp-ndcg-tiny --repo-type dataset --revision {revision}" in done.stderr
    manifest.write_text(text)
    (world.tree("v1-toy") / "paper__english" / "qrels.parquet").write_bytes(b"changed")
    done = world.withdraw("v1-toy", "wrong")
    assert 3 == done.code
    assert "is not its manifest's" in done.stderr
    assert not world.tree("v2-toy").exists()


def test_a_ledger_that_is_named_is_there(world: World) -> None:
    """A mistyped --ledger is no empty ledger: exit code 4, and its path."""
    for command in ("pins", "list"):
        done = world.try_(command, "--json", "--ledger", str(world.folder / "typo.jsonl"))
        assert 4 == done.code
        assert "typo.jsonl" in json.loads(done.stdout)["error"]["where"]["file"]
