"""Releases published on a local Hub with the client itself, and the ledger of them: what `verify` is tested on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile
from support import tiny
from support.command import release_here

from releases.git_objects import root_tree
from releases.ledger.chain import Entry, append, head_digest, read_ledger
from releases.local_hub import LocalHub

REPO = "example/rcp-ndcg-tiny"
TAGS = ("v1-toy", "v2-toy")


@dataclass(frozen=True)
class World:
    """A benchmark, its ledger, its trees and the store that they were published to."""

    folder: Path

    @property
    def benchmark(self) -> Path:
        """The benchmark file."""
        return self.folder / "benchmark.toml"

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

    def entries(self) -> tuple[Entry, ...]:
        """The ledger's."""
        return read_ledger(self.ledger)

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

    def lfs_object(self, sha256: str) -> Path:
        """Where the store keeps an LFS object."""
        return self.bare / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256


def write_published(folder: Path) -> World:
    """A world with two releases: the second is a recalibration of the first (one tournament answer more is read)."""
    world = World(folder)
    tiny.write_world(folder)
    with LocalHub(world.store) as hub:
        api = HfApi(endpoint=hub.endpoint, token=False)
        api.create_repo(REPO, repo_type="dataset")
        for number, tag in enumerate(TAGS):
            if number:
                tiny.edit_rows(folder / "pipeline" / "judgements" / "toy" / "tournament" / "paper.parquet", _read_again)
            arguments = ("--benchmark", world.benchmark, "--judge", "toy", "--workers", "1", "--out", folder / "out")
            built = release_here("build", *arguments)
            assert built.code == 0, built.stderr
            publish(api, world, folder / "out" / tag, tag)
    return world


def _read_again(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    rows[3]["answer"] = rows[2]["answer"]
    return rows


def publish(api: HfApi, world: World, tree: Path, tag: str) -> str:
    """Publish a tree as one commit with a tag, and write the ledger; returns the sha."""
    files = {path.relative_to(tree).as_posix(): path for path in tree.rglob("*") if path.is_file()}
    held = api.list_repo_files(REPO, repo_type="dataset")
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(name, path) for name, path in files.items()
    ]
    operations += [CommitOperationDelete(name) for name in held if name not in files]  # type: ignore[arg-type]
    parent = api.list_repo_commits(REPO, repo_type="dataset")[0].commit_id
    done = api.create_commit(
        REPO, operations, commit_message=f"Release {tag}", repo_type="dataset", parent_commit=parent
    )
    api.create_tag(REPO, tag=tag, repo_type="dataset", revision=done.oid)
    rows = [row for row in api.list_repo_tree(REPO, recursive=True, revision=done.oid, repo_type="dataset")]
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    recorded = {
        row.path: {"oid": row.blob_id, "size": row.size, "sha256": digests[row.path], "lfs": row.lfs is not None}
        for row in rows
        if isinstance(row, RepoFile)
    }
    entries = world.entries()
    entry = Entry(
        number=len(entries) + 1,
        tag=tag,
        revision=done.oid,
        parent=parent,
        tree=root_tree({name: str(file["oid"]) for name, file in recorded.items()}),
        manifest_sha256=digests["provenance/manifest.json"],
        release=json.loads((tree / "provenance" / "releases.json").read_text())["releases"][-1],
        proved=True,
        files=recorded,
        previous=head_digest(entries),
    )
    append(world.ledger, entry)
    return str(done.oid)
