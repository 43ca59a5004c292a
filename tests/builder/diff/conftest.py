"""Releases of the tiny world: a first one, its recalibration, and one that only describes the first anew."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support import tiny
from support.command import release_here

from builder import documents, manifest
from builder.benchmark import Benchmark, load_benchmark
from builder.diff.compare import compare
from builder.diff.sides import open_side
from builder.layout import MANIFEST, RELEASES
from builder.steps import Steps
from releases.ledger.chain import Entry, append, head_digest, read_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QRELS = "paper__english/qrels.parquet"


@dataclass(frozen=True)
class World:
    """The benchmark file and its releases."""

    path: Path

    @property
    def file(self) -> Path:
        """The benchmark file."""
        return self.path / "benchmark.toml"

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return load_benchmark(str(self.file))

    @property
    def first(self) -> Path:
        """Release 1."""
        return self.path / "out" / "v1-toy"

    @property
    def recalibrated(self) -> Path:
        """Release 2: one more tournament answer can be read."""
        return self.path / "out" / "v2-toy"

    @property
    def described(self) -> Path:
        """Another release 2, from the inputs of release 1: only the card changes."""
        return self.path / "card" / "v2-toy"

    def diff(self, old: Path, new: Path) -> dict[str, Any]:
        """The document of two trees."""
        return compare(open_side(old, "old"), open_side(new, "new"), self.benchmark, Steps(lambda: 0.0))


def record(tree: Path, ledger: Path) -> None:
    """Add a tree to a ledger as if it had been published."""
    entries = read_ledger(ledger)
    release = documents.read(tree / RELEASES)["releases"][-1]
    files = documents.read(tree / MANIFEST)["files"]
    digest = hashlib.sha256((tree / MANIFEST).read_bytes()).hexdigest()
    append(
        ledger,
        Entry(
            number=len(entries) + 1,
            tag=release["tag"],
            revision=hashlib.sha1(release["tag"].encode()).hexdigest(),  # noqa: S324 - as git names commits
            parent=None,
            tree=None,
            manifest_sha256=digest,
            release=release,
            proved=True,
            files={
                name: {"oid": "0" * 40, "size": size, "sha256": sha256, "lfs": name.endswith(".parquet")}
                for name, size, sha256 in (
                    *((name, fact["bytes"], fact["sha256"]) for name, fact in files.items()),
                    (MANIFEST, (tree / MANIFEST).stat().st_size, digest),
                )
            },
            previous=head_digest(entries),
        ),
    )


def built(world: Path, out: str, *options: str | Path) -> None:
    """Build a release of the tiny world."""
    named = ("--benchmark", world / "benchmark.toml", "--judge", "toy", "--out", world / out)
    ledger = ("--ledger", world / "ledger.jsonl")
    done = release_here("build", *named, *ledger, "--workers", "1", "--no-figures", *options)
    assert done.code == 0, done.stderr


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world's three releases; read only."""
    path = tmp_path_factory.mktemp("diffed")
    tiny.write_world(path)
    built(path, "out")
    record(path / "out" / "v1-toy", path / "ledger.jsonl")
    built(path, "card")
    shutil.copytree(path / "pipeline", path / "reread")
    tiny.edit_rows(path / "reread" / "judgements" / "toy" / "tournament" / "paper.parquet", _reread)
    built(path, "out", "--inputs", path / "reread")
    return World(path)


def _reread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Row 3 becomes an answer that ranks its pages as they are shown."""
    shown = range(1, len(rows[3]["corpus-ids"]) + 1)
    answer = {
        "reasoning": "r",
        "ranking": [f"doc_{number}" for number in shown],
        "scores": {f"doc_{number}": 1.0 - 0.1 * number for number in shown},
    }
    return [*rows[:3], {**rows[3], "answer": json.dumps(answer)}, *rows[4:]]


@pytest.fixture
def changed(world: World, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a tree with edits: `changed(tree, {file: edit}, ...)`, where an edit changes rows or a document."""

    def copy(tree: Path, edits: dict[str, Callable[[Any], object]], name: str = "changed") -> Path:
        assert tree.is_relative_to(world.path)
        target = tmp_path / name
        shutil.copytree(tree, target)
        for file, edit in edits.items():
            if file.endswith(".json"):
                document = documents.read(target / file)
                edit(document)
                documents.write(document, target / file)
            else:
                tiny.edit_rows(target / file, lambda rows, edit=edit: _edited(rows, edit))
        manifest.seal(target)
        return target

    return copy


def _edited(rows: list[dict[str, Any]], edit: Callable[[Any], object]) -> list[dict[str, Any]]:
    edit(rows)
    return rows
