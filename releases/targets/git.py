"""A git repository anywhere, with git-lfs: branch and tag in one atomic push (Hub spec section 3).

git does the work through GitPython; `repo.git.add`, never `index.add`, which would pass the LFS filter by.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from git import Git, GitCommandError, Repo

from provenance.errors import InputError, RemoteError, UsageError, Where
from releases.git_objects import File
from releases.remote import BRANCH, Commit, OvertakenError, Refs
from releases.retry import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from releases.plan import Plan
    from releases.remote import Release

_SETTINGS = {
    # The bytes of the tree, whatever this machine's own settings are.
    "core.autocrlf": "false",
    "core.fileMode": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
    "commit.gpgSign": "false",
}
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d+)\n"
)
_LONGEST_POINTER = 1024
_PREFIX = ".publish-"
_REJECTED = re.compile(r"\[(?:remote )?rejected\]|non-fast-forward|fetch first|stale info|cannot lock ref")
_TREE_ROW = re.compile(r"(\d+) (\w+) ([0-9a-f]{40}) +(\d+|-)\t")


class GitRemote:
    """The repository at `url`; a `file://` one is made where there is none.

    Args:
        url: anything that git takes, without a password in it.
        work: a folder in which a repository lies while this is open: the LFS objects are put together there.
    """

    def __init__(self, url: str, work: Path) -> None:
        parts = urlsplit(url)
        if parts.password is not None or (parts.scheme in {"http", "https"} and parts.username is not None):
            raise UsageError(
                "an address must not hold a password or a token: every process on this machine could read it",
                remedy="use git's credential helper, or ssh.",
            )
        # git runs in a folder of its own: a path is made whole here.
        is_path = not parts.scheme and ":" not in url.partition("/")[0]
        self._url = str(Path(url).absolute()) if is_path else url
        self._work = work
        self.name = f"git:{url}"
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._found: Repo | None = None
        self._fetched: set[str] = set()

    def __enter__(self) -> Self:
        if shutil.which("git") is None:
            raise InputError("git is not installed", remedy="install git 2.39 or newer.")
        if shutil.which("git-lfs") is None:
            raise InputError(
                "git-lfs is not installed: the tables would be committed as they are, or their contents never sent",
                remedy="install git-lfs (on Debian: apt install git-lfs).",
            )
        self._work.mkdir(parents=True, exist_ok=True)
        _sweep(self._work)
        prefix = f"{_PREFIX}{os.getpid()}-"
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=self._work, ignore_cleanup_errors=True)
        self._found = Repo.init(self._folder.name, mkdir=False, initial_branch=BRANCH)
        with self._found.config_writer() as config:
            for key, value in _SETTINGS.items():
                section, name = key.rsplit(".", 1)
                config.set_value(f'filter "{section[7:]}"' if section.startswith("filter.") else section, name, value)
        self._found.create_remote("origin", self._url)
        self._repo.git.update_environment(GIT_TERMINAL_PROMPT="0", GIT_LFS_SKIP_SMUDGE="1", LC_ALL="C")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._found is not None:
            self._found.close()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def _repo(self) -> Repo:
        if self._found is None:
            raise RuntimeError("the remote is not open")
        return self._found

    def refs(self) -> Refs | None:
        """See `Remote`."""
        if self._local_path() is not None and not self._exists():
            return None
        listing = self._git("read the branches and tags", "ls-remote", "origin")
        head: str | None = None
        tags: dict[str, str] = {}
        for line in listing.splitlines():
            sha, name = line.split("\t")
            if name == f"refs/heads/{BRANCH}":
                head = sha
            elif name.startswith("refs/tags/"):
                # An annotated tag's commit follows it as `<name>^{}`.
                tags[name.removeprefix("refs/tags/").removesuffix("^{}")] = sha
        return Refs(head, tags)

    def create(self) -> None:
        """See `Remote`; only a folder on this machine can be made."""
        path = self._local_path()
        if path is not None and not self._exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Under another name first: half a repository is never seen.
            with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as folder:
                bare = Path(folder) / "repo.git"
                try:
                    Repo.init(bare, bare=True, initial_branch=BRANCH).close()
                except GitCommandError as error:
                    raise self._failed("make the repository", error) from None
                if not path.exists():
                    bare.rename(path)

    def _local_path(self) -> Path | None:
        parts = urlsplit(self._url)
        if parts.scheme == "file":
            return Path(unquote(parts.path))
        return Path(self._url) if not parts.scheme and self._url.startswith(("/", ".")) else None

    def _exists(self) -> bool:
        path = self._local_path()
        return path is not None and ((path / "HEAD").is_file() or (path / ".git").exists())

    def commit(self, sha: str) -> Commit:
        """See `Remote`."""
        self._fetch(sha)
        found = self._repo.commit(sha)
        return Commit(
            sha,
            found.parents[0].hexsha if found.parents else None,
            str(found.author.name),
            found.committed_datetime.strftime("%Y-%m-%d %H:%M %z"),
            str(found.summary),
        )

    def files(self, sha: str) -> dict[str, File]:
        """See `Remote`; the pointers say what the LFS objects are."""
        self._fetch(sha)
        rows = self._git("list the files", "ls-tree", "-r", "-l", "-z", "--full-tree", sha).split("\0")
        files = {}
        for row in filter(None, rows):
            fields, path = row.split("\t", 1)
            _, _, oid, size = fields.split()
            pointer = _POINTER.fullmatch(self._blob(oid)) if int(size) < _LONGEST_POINTER else None
            files[path] = (
                File(oid, int(size), None, lfs=False)
                if pointer is None
                else File(oid, int(pointer[2]), pointer[1].decode(), lfs=True)
            )
        return files

    def text(self, path: str, sha: str) -> str:
        """See `Remote`."""
        self._fetch(sha)
        return self._git(f"read {path}", "cat-file", "blob", f"{sha}:{path}", strip_newline_in_stdout=False)

    def _blob(self, oid: str) -> bytes:
        return bytes(self._repo.odb.stream(bytes.fromhex(oid)).read())

    def _fetch(self, sha: str) -> None:
        """Have a commit and its history here, without LFS objects."""
        if sha not in self._fetched:
            self._git("fetch the history", "fetch", "--quiet", "--no-tags", "origin", BRANCH)
            if self._has(sha) is False:
                self._git("fetch a commit", "fetch", "--quiet", "--no-tags", "origin", sha)
            self._fetched.add(sha)

    def _has(self, sha: str) -> bool:
        try:
            self._repo.git.cat_file("-e", f"{sha}^{{commit}}")
        except GitCommandError:
            return False
        return True

    def upload(self, release: Release, plan: Plan, sent: Callable[[int, int], None]) -> None:
        """See `Remote`: the LFS objects are made here and sent, the commit is made here and not sent."""
        self._make_commit(release, plan)
        self._git("send the LFS objects", "lfs", "push", "origin", BRANCH)
        sent(len(plan.adds), plan.bytes_to_send)

    def _make_commit(self, release: Release, plan: Plan) -> str:
        """The release's commit in the repository here; its work tree is the release itself, which is only read."""
        if plan.parent is not None:
            self._fetch(plan.parent)
            self._repo.git.update_ref(f"refs/heads/{BRANCH}", plan.parent)
        else:
            self._repo.git.update_ref("-d", f"refs/heads/{BRANCH}")
        with self._repo.git.custom_environment(GIT_WORK_TREE=str(release.folder.resolve())):
            self._git("read the release's files", "read-tree", "--empty")
            self._git_add()
            tree = self._git("write the tree", "write-tree")
        if tree != plan.tree:
            raise RemoteError(
                f"git makes root tree {tree} of the release, planned was {plan.tree}",
                where=Where(str(release.folder)),
                remedy="was the tree changed meanwhile? Build it again, and run the same command again.",
            )
        parents = [] if plan.parent is None else ["-p", plan.parent]
        message = f"{release.title}\n\n{release.description}"
        sha = self._git("make the commit", "commit-tree", tree, *parents, "-m", message)
        self._repo.git.update_ref(f"refs/heads/{BRANCH}", sha)
        return sha

    def _git_add(self) -> None:
        try:
            self._repo.git.add(A=True, force=True)
        except GitCommandError as error:
            raise self._failed("add the release's files", error) from None

    def push(self, release: Release, plan: Plan) -> str:
        """See `Remote`; the tag goes with the branch, both or neither."""
        head = self._repo.head
        if not head.is_valid() or head.commit.tree.hexsha != plan.tree:
            self._make_commit(release, plan)
        sha = head.commit.hexsha
        refspecs = (f"{sha}:refs/heads/{BRANCH}", f"{sha}:refs/tags/{release.tag}")
        self._git("push branch and tag", "push", "--atomic", "--porcelain", "origin", *refspecs)
        self._fetched.add(sha)
        return sha

    def tag(self, name: str, sha: str) -> None:
        """See `Remote`."""
        self._fetch(sha)
        self._git("push the tag", "push", "--porcelain", "origin", f"{sha}:refs/tags/{name}")

    def calls(self, plan: Plan, tag: str, *, exists: bool) -> list[str]:
        """See `Remote`."""
        lines = [] if exists else [f"git init --bare {self._url}"]
        lines.append(f"git lfs push: LFS files of {plan.bytes_to_send:,} bytes at most")
        lines.append(
            f"git push --atomic {BRANCH} {tag}: {len(plan.adds)} adds, {len(plan.deletes)} deletes on top of "
            f"{plan.parent or 'nothing'}"
        )
        return lines

    def _git(self, what: str, *arguments: str, **options: Any) -> str:
        try:
            return str(self._repo.git.execute([Git.GIT_PYTHON_GIT_EXECUTABLE or "git", *arguments], **options))
        except GitCommandError as error:
            raise self._failed(what, error) from None

    def _failed(self, what: str, error: GitCommandError) -> Exception:
        said = " ".join(f"{error.stdout} {error.stderr}".replace("stderr:", "").replace("stdout:", "").split())[:500]
        where = Where(self.name)
        if "user.email" in said or "Author identity unknown" in said or "empty ident name" in said:
            return InputError(
                "git does not know who you are",
                remedy='tell it: git config --global user.name "..." and user.email "...".',
            )
        if any(os.strerror(number) in said for number in (errno.ENOSPC, errno.EROFS, errno.EDQUOT)):
            return InputError(
                f"cannot {what}: {said}",
                where=where,
                remedy="free some space where git writes, or name another place; then run the same command again.",
            )
        if _REJECTED.search(said):
            return OvertakenError(f"cannot {what}: {said}", where=where)
        return TransientError(
            f"cannot {what}: {said}",
            where=where,
            remedy="check the address and your right to write to it, and run the same command again: what was done "
            "already is not done twice.",
        )


def _sweep(work: Path) -> None:
    """Remove what runs that were killed have left: whole sets of LFS objects."""
    for folder in work.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (ValueError, PermissionError):
            continue
