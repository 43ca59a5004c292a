"""The Hub's repositories: bare git repositories at `<root>/datasets/<namespace>/<name>.git`.

git's own locks make several processes safe: a ref moves only by compare-and-swap, a repository appears by a rename.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import gitattributes
from releases.local_hub.gitcmd import ZERO, GitError, git
from releases.local_hub.lfs import LfsStore
from releases.local_hub.names import (
    SHA,
    SHORT_SHA,
    HubError,
    bad_request,
    check_ref,
    check_repo_id,
    is_readable_revision,
)
from releases.local_hub.tree import TreeCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releases.local_hub.tree import Tree

MAIN = "main"
_SETTINGS = "hub.json"
_CONFLICT = "A commit has happened since. Please refresh and try again."
_TRIES = 20


@dataclass(frozen=True)
class Settings:
    """Who may read a repository: `private` needs the token for everything, `gated` for the files' contents."""

    private: bool = False
    gated: bool = False


@dataclass(frozen=True)
class Put:
    """A file of a commit: its path and the blob that it becomes."""

    path: str
    oid: str


@dataclass(frozen=True)
class Delete:
    """A file, or a folder with all that is in it, that a commit removes."""

    path: str
    is_folder: bool = False


@dataclass(frozen=True)
class Ref:
    """A branch or a tag and the commit that it leads to."""

    name: str
    full_name: str
    commit: str


class Repository:
    """One dataset repository."""

    def __init__(self, path: Path, repo_id: str, trees: TreeCache) -> None:
        self.path = path
        self.repo_id = repo_id
        self.lfs = LfsStore(path)
        self._trees = trees

    def settings(self) -> Settings:
        """Private and gated, as they are on disk now."""
        try:
            return Settings(**json.loads((self.path / _SETTINGS).read_text()))
        except FileNotFoundError:
            return Settings()

    def set_settings(self, settings: Settings) -> None:
        """Make it private or gated, or not."""
        with tempfile.NamedTemporaryFile("w", dir=self.path, delete=False) as file:
            json.dump({"private": settings.private, "gated": settings.gated}, file)
        Path(file.name).replace(self.path / _SETTINGS)

    def resolve(self, revision: str) -> str:
        """The full sha of a commit that a sha, a short sha, a branch, a tag or a `refs/...` name leads to.

        Raises:
            HubError: 404 RevisionNotFound.
        """
        names = [f"refs/heads/{revision}", f"refs/tags/{revision}"]
        if revision.startswith("refs/"):
            names.insert(0, revision)
        if SHORT_SHA.fullmatch(revision) is not None:
            names.insert(0 if SHA.fullmatch(revision) is not None else len(names), revision)
        if is_readable_revision(revision):
            questions = "".join(f"{name}^{{commit}}\n" for name in names).encode()
            for answer in git(self.path, "cat-file", "--batch-check", stdin=questions).decode().splitlines():
                fields = answer.split()
                if len(fields) == 3 and fields[1] == "commit":  # noqa: PLR2004  # sha, type, size
                    return fields[0]
        raise HubError(HTTPStatus.NOT_FOUND, f"Invalid rev id: {revision[:100]}", code="RevisionNotFound")

    def tree(self, commit: str) -> Tree:
        """A commit's files and directories by path."""
        return self._trees.get(self.path, commit)

    def blob(self, oid: str) -> bytes:
        """A blob's content."""
        return git(self.path, "cat-file", "blob", oid)

    def refs(self, kind: str) -> list[Ref]:
        """All refs under `refs/<kind>/`, annotated tags peeled to their commits."""
        output = git(self.path, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(*objectname)", f"refs/{kind}/")
        refs = []
        for line in output.decode().splitlines():
            full, oid, peeled = line.split("\0")
            refs.append(Ref(full.removeprefix(f"refs/{kind}/"), full, peeled or oid))
        return refs

    def log(self, commit: str, skip: int, limit: int) -> list[dict[str, Any]]:
        """Commits from `commit` backwards, as the Hub lists them."""
        shape = "--format=%H%x00%ct%x00%an%x00%s%x00%b%x01"
        output = git(self.path, "log", "--no-show-signature", shape, f"--skip={skip}", f"--max-count={limit}", commit)
        rows = []
        for record in output.decode(errors="replace").split("\x01")[:-1]:
            sha, seconds, author, title, message = record.lstrip("\n").split("\0")
            rows.append(
                {
                    "id": sha,
                    "date": datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                    "authors": [{"user": author}],
                    "title": title,
                    "message": message.strip(),
                }
            )
        return rows

    def write_blobs(self, files: Sequence[Path]) -> list[str]:
        """Store files as git blobs, byte for byte; their ids."""
        names = "".join(f"{file}\n" for file in files).encode()
        return git(self.path, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names).decode().split()

    def commit(self, branch: str, changes: Sequence[Put | Delete], *, message: str, parent: str | None = None) -> str:
        """Put one commit on a branch, by compare-and-swap.

        Args:
            branch: must exist.
            changes: deletes are done before puts.
            message: title, blank line, description.
            parent: the head that the caller saw; without it the commit goes on whatever is the head.

        Returns:
            The new commit's sha.

        Raises:
            HubError: 412, the head is not `parent`; 404, no such branch or no such file to delete; 400, a path is in
                the way of another.
        """
        ref = f"refs/heads/{check_ref(branch)}"
        for _ in range(_TRIES):
            head = self.resolve(ref)
            if parent is not None and self._full(parent) != head:
                raise HubError(HTTPStatus.PRECONDITION_FAILED, _CONFLICT)
            new = self.commit_tree(self._changed_tree(head, changes), [head], message)
            if self.swap(ref, new, head):
                return new
        raise HubError(HTTPStatus.PRECONDITION_FAILED, _CONFLICT)

    def _full(self, sha: str) -> str:
        try:
            return self.resolve(sha) if SHORT_SHA.fullmatch(sha) is not None else sha
        except HubError:
            return sha

    def _changed_tree(self, head: str, changes: Sequence[Put | Delete]) -> str:
        old = self.tree(head)
        lines = []
        for change in changes:
            if isinstance(change, Delete):
                gone = self._deleted(old, change)
                if not gone:
                    raise HubError(
                        HTTPStatus.NOT_FOUND, f"A file to delete is not there: {change.path}", code="EntryNotFound"
                    )
                lines += [f"0 {ZERO}\t{path}\0" for path in gone]
        lines += [f"100644 {change.oid}\t{change.path}\0" for change in changes if isinstance(change, Put)]
        with tempfile.TemporaryDirectory(prefix="hub-index-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            git(self.path, "read-tree", head, env=env)
            try:
                stdin = "".join(lines).encode(errors="surrogateescape")
                git(self.path, "update-index", "--add", "-z", "--index-info", stdin=stdin, env=env)
                return git(self.path, "write-tree", env=env).decode().strip()
            except GitError as error:
                raise bad_request(f"The files cannot be committed: {error.stderr.strip()}") from error

    @staticmethod
    def _deleted(tree: Tree, change: Delete) -> list[str]:
        if change.is_folder:
            inside = f"{change.path}/"
            return [path for path, entry in tree.items() if path.startswith(inside) and not entry.is_directory]
        return [change.path] if change.path in tree and not tree[change.path].is_directory else []

    def commit_tree(self, tree: str, parents: Sequence[str], message: str) -> str:
        """A commit object of a tree; no ref moves."""
        arguments = [argument for parent in parents for argument in ("-p", parent)]
        return git(self.path, "commit-tree", tree, *arguments, stdin=message.encode()).decode().strip()

    def swap(self, ref: str, new: str, old: str) -> bool:
        """Move `ref` from `old` to `new`; False if it is no longer at `old`.

        Raises:
            GitError: it is at `old` and git still cannot move it.
        """
        try:
            git(self.path, "update-ref", ref, new, old)
        except GitError:
            answer = git(self.path, "for-each-ref", "--format=%(objectname)", ref).decode().strip()
            if (answer or ZERO) == old:
                raise
            return False
        return True

    def create_tag(self, name: str, commit: str, message: str | None) -> None:
        """Make a tag, annotated where there is a message.

        Raises:
            HubError: 409, it exists; 400, no legal name.
        """
        target = commit
        if message:
            stamp = f"{int(time.time())} +0000"
            text = f"object {commit}\ntype commit\ntag {check_ref(name)}\ntagger local <local@localhost> {stamp}\n\n"
            target = git(self.path, "mktag", "--no-strict", stdin=f"{text}{message}\n".encode()).decode().strip()
        self._create(f"refs/tags/{check_ref(name)}", target, f"Tag {name} already exists")

    def create_branch(self, name: str, commit: str) -> None:
        """Make a branch.

        Raises:
            HubError: 409, it exists; 400, no legal name.
        """
        self._create(f"refs/heads/{check_ref(name)}", commit, f"Branch {name} already exists")

    def _create(self, ref: str, target: str, taken: str) -> None:
        try:
            created = self.swap(ref, target, ZERO)
        except GitError as error:
            # `v1` and `v1/x` exclude each other.
            raise bad_request(f"Cannot create {ref}: {error.stderr.strip()}") from error
        if not created:
            raise HubError(HTTPStatus.CONFLICT, taken)

    def delete_ref(self, ref: str) -> None:
        """Delete a branch or a tag.

        Raises:
            HubError: 404, no such ref.
        """
        self.resolve(ref)
        git(self.path, "update-ref", "-d", ref)

    def squash(self, branch: str, message: str) -> str:
        """Replace a branch's history by one commit of its last tree, as the Hub's super-squash does."""
        ref = f"refs/heads/{check_ref(branch)}"
        head = self.resolve(ref)
        new = self.commit_tree(f"{head}^{{tree}}", [], message)
        if not self.swap(ref, new, head):
            raise HubError(HTTPStatus.PRECONDITION_FAILED, _CONFLICT)
        return new


class Store:
    """The repositories under one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._trees = TreeCache()

    def _path(self, repo_id: str) -> Path:
        namespace, name = check_repo_id(repo_id)
        return self.root / "datasets" / namespace / f"{name}.git"

    def repository(self, repo_id: str) -> Repository:
        """The repository `namespace/name`.

        Raises:
            HubError: 404 RepoNotFound, 400 for no legal id.
        """
        path = self._path(repo_id)
        if not (path / "HEAD").is_file():
            raise HubError(HTTPStatus.NOT_FOUND, "Repository not found", code="RepoNotFound")
        return Repository(path, repo_id, self._trees)

    def create(self, repo_id: str, settings: Settings | None = None) -> Repository:
        """A new repository whose first commit holds the Hub's `.gitattributes`.

        Raises:
            HubError: 409, it exists; 400, no legal id.
        """
        path = self._path(repo_id)
        taken = HubError(HTTPStatus.CONFLICT, "You already created this dataset repo")
        if path.exists():
            raise taken
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent, ignore_cleanup_errors=True) as folder:
            bare = Path(folder) / "repo.git"
            git(bare, "init", "--quiet", "--bare", f"--initial-branch={MAIN}", "--template=")
            new = Repository(bare, repo_id, self._trees)
            attributes = Path(folder) / "gitattributes"
            attributes.write_text(gitattributes.TEXT, encoding="utf-8", newline="\n")
            (oid,) = new.write_blobs([attributes])
            tree = git(bare, "mktree", stdin=f"100644 blob {oid}\t.gitattributes\n".encode()).decode().strip()
            new.swap(f"refs/heads/{MAIN}", new.commit_tree(tree, [], "initial commit"), ZERO)
            new.set_settings(settings or Settings())
            try:
                bare.rename(path)
            except OSError as error:
                if path.exists():
                    raise taken from error
                raise
        return self.repository(repo_id)

    def delete(self, repo_id: str) -> None:
        """Remove a repository and all that is in it.

        Raises:
            HubError: 404.
        """
        path = self.repository(repo_id).path
        with tempfile.TemporaryDirectory(prefix=".gone-", dir=path.parent, ignore_cleanup_errors=True) as folder:
            path.rename(Path(folder) / "repo.git")
            shutil.rmtree(Path(folder) / "repo.git", ignore_errors=True)
