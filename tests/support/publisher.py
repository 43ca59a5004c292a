"""Putting release trees on a Hub with the plain client, one commit and one tag each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from huggingface_hub import CommitOperationAdd, CommitOperationDelete

if TYPE_CHECKING:
    from pathlib import Path

    from huggingface_hub import HfApi


@dataclass(frozen=True)
class Publisher:
    """Puts release trees on the Hub: a commit and a tag each."""

    api: HfApi
    repo: str

    def publish(self, tree: Path, tag: str) -> str:
        """One commit with exactly the files of the tree; returns its sha."""
        self.api.create_repo(self.repo, repo_type="dataset", exist_ok=True)
        there = set(self.api.list_repo_files(self.repo, repo_type="dataset"))
        files = {path.relative_to(tree).as_posix(): path for path in tree.rglob("*") if path.is_file()}
        operations = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
        operations += [CommitOperationDelete(name) for name in there - files.keys()]
        commit = self.api.create_commit(self.repo, operations, commit_message=tag, repo_type="dataset")
        self.api.create_tag(self.repo, tag=tag, revision=commit.oid, repo_type="dataset")
        return str(commit.oid)

    def move_tag(self, tag: str, commit: str) -> None:
        """What nobody should do, and a Hub lets anybody do."""
        self.api.delete_tag(self.repo, tag=tag, repo_type="dataset")
        self.api.create_tag(self.repo, tag=tag, revision=commit, repo_type="dataset")
