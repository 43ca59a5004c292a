"""A dataset repository on a Hub, through `huggingface_hub`: one `create_commit` a release (Hub spec sections 0 and 1).

Tokens come from where the client looks for them (HF_TOKEN, `hf auth login`, trusted publishing in Actions); this
module never holds one. The calls that the client does not repeat by itself are repeated here, a commit never.
"""

from __future__ import annotations

import re
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils import logging
from huggingface_hub.utils.tqdm import disable_progress_bars

from builder import hub_replies
from builder.output import UNWRITABLE
from provenance.errors import DataError, InputError, SafetyError, Where
from releases.hub_listing import listed
from releases.remote import BRANCH, Commit, OvertakenError, Refs
from releases.retry import Retry, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from releases.git_objects import File
    from releases.plan import Plan
    from releases.remote import Release

T = TypeVar("T")

_KIND = "dataset"
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_OVERTAKEN = frozenset({409, 412})
_GROUP_BYTES = 64 * 1024 * 1024
_GROUP_FILES = 100
_RETRIED_BY_CLIENT = 2
"""Tries of a call that the client itself makes up to six times."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_URL = re.compile(r"https?://\S+")
_SECONDS = re.compile(r"[0-9]{1,9}")
_EXHAUSTED = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*([0-9]{1,9})\b")
"""The RateLimit header where nothing is left of the quota, and the seconds until there is."""


class HubRemote:
    """`owner/name` on the Hub at `endpoint` (None: where HF_ENDPOINT points).

    Args:
        repo_id: owner and name.
        endpoint: the Hub's address.
        token: False for none, None for the client's own.
        retry: how calls are repeated.
    """

    def __init__(
        self, repo_id: str, *, endpoint: str | None = None, token: str | bool | None = None, retry: Retry | None = None
    ) -> None:
        disable_progress_bars()
        # Its warnings name addresses with signatures in them.
        logging.set_verbosity_error()
        self._api = HfApi(endpoint=endpoint, token=token, library_name="rcp-release")
        self._repo = repo_id
        self._retry = retry or Retry()
        self._operations: dict[tuple[Path, str], CommitOperationAdd] = {}
        self.name = f"{self._api.endpoint.rstrip('/')}/datasets/{repo_id}"
        if urlsplit(self._api.endpoint).hostname in _LOOPBACK:
            # A Hub on this machine speaks LFS only, and the client does not ask before it uploads through Xet.
            huggingface_hub.constants.HF_HUB_DISABLE_XET = True

    def refs(self) -> Refs | None:
        """See `Remote`."""
        try:
            found = self._ask("read the branches and tags", self._refs)
        except _MissingError:
            return None
        return found

    def _refs(self) -> Refs:
        branches, tags = hub_replies.refs(self._api.list_repo_refs(self._repo, repo_type=_KIND))
        return Refs(branches.get(BRANCH), tags)

    def create(self) -> None:
        """See `Remote`."""
        self._ask("make the repository", lambda: self._api.create_repo(self._repo, repo_type=_KIND, exist_ok=True))

    def commit(self, sha: str) -> Commit:
        """See `Remote`."""
        return self._ask("read the commits", lambda: self._commit(sha), tries=_RETRIED_BY_CLIENT)

    def _commit(self, sha: str) -> Commit:
        found = self._api.list_repo_commits(self._repo, repo_type=_KIND, revision=sha)
        if found[0].commit_id != sha:
            raise ValueError("another commit than the one asked for")
        own = found[0]
        return Commit(
            sha,
            hub_replies.commit(found[1].commit_id) if len(found) > 1 else None,
            ", ".join(map(hub_replies.text, own.authors)) or "somebody",
            own.created_at.strftime("%Y-%m-%d %H:%M UTC"),
            hub_replies.text(own.title),
        )

    def files(self, sha: str) -> dict[str, File]:
        """See `Remote`."""
        return self._ask("list the files", lambda: self._files(sha), tries=_RETRIED_BY_CLIENT)

    def _files(self, sha: str) -> dict[str, File]:
        rows = self._api.list_repo_tree(self._repo, recursive=True, revision=sha, repo_type=_KIND)
        files = listed(rows)
        if not files:
            raise ValueError("a commit without files")
        return files

    def text(self, path: str, sha: str) -> str:
        """See `Remote`."""
        return self._ask(f"read {path}", lambda: self._text(path, sha), tries=_RETRIED_BY_CLIENT)

    def _text(self, path: str, sha: str) -> str:
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            file = self._api.hf_hub_download(self._repo, path, revision=sha, repo_type=_KIND, cache_dir=folder)
            return Path(file).read_text(encoding="utf-8")

    def upload(self, release: Release, plan: Plan, sent: Callable[[int, int], None]) -> None:
        """See `Remote`; small files go together, so that progress is seen and requests stay few."""
        for paths in _groups(plan.files, plan.adds):
            group = [self._operation(release, plan, path) for path in paths]
            self._ask(
                "upload the files",
                lambda group=group: self._api.preupload_lfs_files(  # type: ignore[misc]  # a default pins the loop's value
                    self._repo, additions=group, repo_type=_KIND, revision=BRANCH, free_memory=False
                ),
                tries=_RETRIED_BY_CLIENT,
            )
            for operation in group:
                self._check_mode(operation, plan.files[operation.path_in_repo])
            sent(len(paths), sum(plan.files[path].size for path in paths))

    def _operation(self, release: Release, plan: Plan, path: str) -> CommitOperationAdd:
        """The client's word for a file, the same one in upload and commit: it remembers what was uploaded."""
        key = (release.folder / path, plan.files[path].oid)
        if key not in self._operations:
            operation = CommitOperationAdd(path, key[0])
            # Known already: the client need not hash the file again.
            operation.upload_info.sha256 = bytes.fromhex(plan.files[path].sha256 or "")
            self._operations[key] = operation
        return self._operations[key]

    @staticmethod
    def _check_mode(operation: CommitOperationAdd, planned: File) -> None:
        """Stop before the commit where the server would not do what is planned: the client keeps its word silently."""
        said = vars(operation)
        if said.get("_should_ignore"):
            raise SafetyError(
                "a .gitignore in the repository leaves this file out",
                where=Where(operation.path_in_repo),
                remedy="remove .gitignore from the repository, in a commit of its own.",
            )
        mode = said.get("_upload_mode")
        if mode is not None and planned.size > 0 and (mode == "lfs") != planned.lfs:
            raise SafetyError(
                f"the remote stores this file as {mode}, the release's .gitattributes says otherwise",
                where=Where(operation.path_in_repo),
                remedy="give .gitattributes of the tree a rule that fits the remote's.",
            )

    def push(self, release: Release, plan: Plan) -> str:
        """See `Remote`."""
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            *(self._operation(release, plan, path) for path in plan.adds),
            *(CommitOperationDelete(path, is_folder=False) for path in plan.deletes),
        ]
        done = self._call(
            "make the commit",
            lambda: self._api.create_commit(
                self._repo,
                operations,
                commit_message=release.title,
                commit_description=release.description,
                repo_type=_KIND,
                revision=BRANCH,
                parent_commit=plan.parent,
            ),
        )
        return str(done.oid)

    def tag(self, name: str, sha: str) -> None:
        """See `Remote`; the caller repeats it, after a look at the tags."""
        self._call("make the tag", lambda: self._api.create_tag(self._repo, tag=name, revision=sha, repo_type=_KIND))

    def calls(self, plan: Plan, tag: str, *, exists: bool) -> list[str]:
        """See `Remote`."""
        lfs = sum(plan.files[path].lfs for path in plan.adds)
        lines = [] if exists else [f"create_repo {self._repo}"]
        if lfs:
            lines.append(f"preupload_lfs_files {lfs} LFS files of {plan.bytes_to_send:,} bytes at most")
        parent = plan.parent or "the first commit of the new repository"
        lines.append(f"create_commit {len(plan.adds)} adds, {len(plan.deletes)} deletes on top of {parent}")
        lines.append(f"create_tag {tag} on that commit")
        return lines

    def _ask(self, what: str, call: Callable[[], T], *, tries: int | None = None) -> T:
        """The result of a call that may be repeated."""
        return self._retry(lambda: self._call(what, call), tries=tries)

    def _call(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except RuntimeError as error:
            # An upload's failure comes wrapped.
            cause = error.__cause__
            if isinstance(cause, HfHubHTTPError):
                raise self._http_error(what, cause) from None
            raise self._failed(what, type(cause or error).__name__) from None
        except HfHubHTTPError as error:
            raise self._http_error(what, error) from None
        except (hub_replies.HTTP_ERROR, OSError) as error:
            if isinstance(error, OSError) and error.errno in UNWRITABLE:
                # Not the remote: this machine does not take what came.
                raise
            raise self._failed(what, f"{type(error).__name__}: {error}") from None
        except hub_replies.NONSENSE as error:
            if isinstance(error.__cause__, HfHubHTTPError):
                raise DataError(
                    f"the Hub does not accept the card: {_plain(str(error))}",
                    where=Where("README.md"),
                    remedy="mend what it names, and build the release again.",
                ) from None
            raise self._failed(what, f"the answer makes no sense ({type(error).__name__}: {error})") from None

    def _http_error(self, what: str, error: HfHubHTTPError) -> Exception:
        """What an answer means; the client's own message is not passed on, as it holds signed addresses."""
        status = error.response.status_code
        said = f"HTTP {status}" + (f", {_plain(error.server_message)}" if error.server_message else "")
        if isinstance(error, RevisionNotFoundError):
            # A replica that lags behind.
            return self._failed(what, said)
        if isinstance(error, RepositoryNotFoundError):
            return _MissingError(
                f"cannot {what}: there is no such repository, or no right to see it ({said})",
                where=Where(self.name),
                remedy="check its name and your token (`hf auth login`, or HF_TOKEN).",
            )
        if status in _OVERTAKEN:
            return OvertakenError(f"cannot {what}: {said}", where=Where(self.name))
        if status == HTTPStatus.INSUFFICIENT_STORAGE:
            return InputError(
                f"cannot {what}: {said}",
                where=Where(self.name),
                remedy="free some space there, or name another place; then run the same command again.",
            )
        if status in _PASSING:
            failed = self._failed(what, said)
            failed.wait = _asked_wait(error.response.headers)
            return failed
        return InputError(
            f"the Hub refuses to {what}: {said}",
            where=Where(self.name),
            remedy="check that your token may write to it (`hf auth login`, or HF_TOKEN), and what the message says.",
        )

    def _failed(self, what: str, why: str) -> TransientError:
        return TransientError(
            f"cannot {what}: {_plain(why)}",
            where=Where(self.name),
            remedy="run the same command again: what was done already is not done twice.",
        )


class _MissingError(InputError):
    """No such repository, or it is not ours to see."""


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the Hub asks us to wait, by `Retry-After` or an exhausted `RateLimit`."""
    exhausted = _EXHAUSTED.search(headers.get("RateLimit", ""))
    if exhausted is not None:
        return float(exhausted[1])
    after = headers.get("Retry-After", "").strip()
    return float(after) if _SECONDS.fullmatch(after) else None


def _plain(text: str) -> str:
    """A server's words on one line, without addresses (they may be signed)."""
    return " ".join(_URL.sub("(address)", text).split())[:500]


def _groups(files: Mapping[str, File], paths: tuple[str, ...]) -> Iterator[list[str]]:
    """The paths in order, in groups of at most `_GROUP_FILES` files and, but for a large one alone, `_GROUP_BYTES`."""
    group: list[str] = []
    size = 0
    for path in paths:
        if group and (len(group) == _GROUP_FILES or size + files[path].size > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(path)
        size += files[path].size
    if group:
        yield group
