"""Two releases published on a local Hub, and whoever has access to its disk: what `verify` is tested on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releases.ledger.chain import Entry, read_ledger
from support import tiny
from support.command import Done, release_here

if TYPE_CHECKING:
    from pathlib import Path

REPO = "example/rcp-ndcg-tiny"
V1, V2 = "v1-toy", "v2-toy"


@dataclass(frozen=True)
class World:
    """A benchmark, its ledger, its trees (in `out`) and the store that they were published to."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """The ledger."""
        return self.folder / "tiny.ledger.jsonl"

    @property
    def store(self) -> Path:
        """The local Hub's store."""
        return self.folder / "store"

    @property
    def bare(self) -> Path:
        """The dataset repository in the store."""
        return self.store / "datasets" / f"{REPO}.git"

    def copy(self, folder: Path) -> World:
        """The same world elsewhere, to be spoilt."""
        shutil.copytree(self.folder, folder)
        return World(folder)

    def entries(self) -> tuple[Entry, ...]:
        """The ledger's."""
        return read_ledger(self.ledger)

    def run(self, command: str, *arguments: str | Path) -> Done:
        """A `release` command on this benchmark, in this process."""
        return release_here(command, "--benchmark", self.folder / "benchmark.toml", *arguments)

    def verify(self, level: str, *arguments: str | Path) -> Done:
        """`release verify` of the store."""
        return self.run("verify", "--to", f"local:{self.store}", "--level", level, "--json", *arguments)

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git on the repository, as someone with access to the Hub's disk."""
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": "someone", f"GIT_{role}_EMAIL": "someone@localhost"}
        done = subprocess.run(
            ["git", "--git-dir", str(self.bare), *arguments],  # noqa: S607 - the machine's git
            input=stdin,
            capture_output=True,
            check=True,
            env=environment,
        )
        return done.stdout.decode().strip()

    def lfs_object(self, tag: str, path: str) -> Path:
        """Where the store keeps the LFS object of a release's file."""
        (entry,) = (entry for entry in self.entries() if entry.tag == tag)
        sha256 = str(entry.files[path]["sha256"])
        return self.bare / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256

    def squash(self) -> None:
        """Make one commit of main's history."""
        self.git("update-ref", "refs/heads/main", self.git("commit-tree", "-m", "squashed", "main^{tree}"))


def found(done: Done) -> dict[str, list[str]]:
    """Failures of a `release verify --json` by pin, as `level name` or `level name file`, each once."""
    reports = json.loads(done.stdout)["reports"]
    return {
        report["tag"]: sorted(
            {" ".join(filter(None, (item["level"], item["name"], item["file"]))) for item in report["failures"]}
        )
        for report in reports
        if report["failures"]
    }


def statuses(done: Done) -> dict[str, dict[str, str]]:
    """The checks of each release of a `release verify --json`."""
    return {report["tag"]: report["checks"] for report in json.loads(done.stdout)["reports"]}


def write_published(folder: Path) -> World:
    """A world with two releases: the second is a recalibration of the first, with one tournament answer more."""
    world = World(folder)
    tiny.write_world(folder)
    publish_next(world, V1)
    tiny.edit_rows(folder / "pipeline" / "judgements" / "toy" / "tournament" / "paper.parquet", _read_again)
    publish_next(world, V2, "--against", folder / "out" / V1)
    return world


def publish_next(world: World, tag: str, *arguments: str | Path) -> None:
    """Build the next release and publish it."""
    built = world.run("build", "--judge", "toy", "--workers", "1", "--out", world.folder / "out", *arguments)
    assert built.code == 0, built.stderr
    publish(world, tag)


def publish(world: World, tag: str) -> None:
    """Publish a tree of `out`."""
    out = world.folder / "out"
    published = world.run("publish", "--tag", tag, "--out", out, "--to", f"local:{world.store}")
    assert published.code == 0, published.stderr


def _read_again(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    rows[3]["answer"] = rows[2]["answer"]
    return rows
