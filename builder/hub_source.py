"""A dataset repository on the Hub as an input: one commit's files, whole and as that commit has them, or an error.

Nothing is believed: the listing names each file's size and hash (sha256 of an LFS object, git's sha1 of another), and
every file that is handed out was hashed against it in this run, wherever it came from.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, by a lazy table

from builder import documents, hub_replies
from builder.hub_errors import AGAIN, reason, wait_before
from builder.layout import is_inside
from builder.output import whole_file
from provenance.errors import DataError, InputError, SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

SHA = re.compile(r"[0-9a-f]{40}")
_SHORT_SHA = re.compile(r"[0-9a-f]{4,39}")

_MAIN = "main"
_TRIES = 3
_PATIENCE = 12.0
_ONE_CALL = 8.0
_THREADS = 8
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Listed:
    """A file of a commit: bytes, git's blob id (sha1), and the sha256 where it is an LFS object."""

    path: str
    size: int
    blob: str
    sha256: str | None


def endpoint() -> str:
    """The Hub's address: `HF_ENDPOINT` as it is now, without a slash at its end."""
    address = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    try:
        parts = urlsplit(address)
        sound = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise InputError("HF_ENDPOINT is no address", where=Where(value=address), remedy="write http://host:port.")
    return address


def fetch(
    repo_id: str, revision: str | None, *, cache: Path, patterns: Sequence[str] | None, pinned: bool
) -> tuple[Path, str]:
    """The folder of a commit's files, and the commit's full sha.

    A full sha whose files are all in the cache and hash as listed asks the network for nothing.

    Args:
        repo_id: `owner/name`.
        revision: a tag or a full sha; where it need not be pinned also a branch, `main` if None.
        cache: the folder of the cache.
        patterns: which files (`fnmatch` on the path); all by default.
        pinned: refuse what can move or be ambiguous.

    Raises:
        DataError: the revision is a branch, a short sha or missing, although it must be pinned.
        InputError: the Hub, the repository, the revision or a file is out of reach, or a file is not what is listed.
        SafetyError: the client gave another commit than the one asked for, or the Hub lists what is no file of it.
    """
    uri = f"hf://datasets/{repo_id}" + ("" if revision is None else f"@{revision}")
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise DataError("no repository has such a name", where=Where(uri), remedy="write owner/name.") from error
    source = _HubSource(uri, repo_id, cache, HfApi(endpoint=endpoint()))
    sha = source.commit(revision, pinned=pinned)
    return source.files(sha, patterns), sha


@dataclass(frozen=True)
class _HubSource:
    uri: str
    repo_id: str
    cache: Path
    api: HfApi

    def commit(self, revision: str | None, *, pinned: bool) -> str:
        """The full sha that a revision leads to."""
        if revision is not None and SHA.fullmatch(revision) is not None:
            return revision
        sha = self._led_to(revision, pinned=pinned)
        if SHA.fullmatch(sha) is None:
            raise SafetyError(
                "the Hub names a commit that is none", where=Where(self.uri, value=sha), remedy="check HF_ENDPOINT."
            )
        return sha

    def _led_to(self, revision: str | None, *, pinned: bool) -> str:
        """What the Hub says that a tag or a branch leads to."""
        if revision is None and pinned:
            raise DataError(
                "no revision is named, so the input can change",
                where=Where(self.uri),
                remedy="add @TAG or @SHA (40 hexadecimal digits).",
            )
        branches, tags = self._ask(
            lambda: hub_replies.refs(
                self.api.list_repo_refs(self.repo_id, repo_type="dataset"), target=hub_replies.text
            )
        )
        name = revision or _MAIN
        if name in tags:
            return tags[name]
        if pinned and name in branches:
            raise DataError(
                f"'{name}' is a branch, which moves",
                where=Where(self.uri),
                remedy=f"name a tag, or the commit that it leads to now: @{branches[name]}",
            )
        if name in branches:
            return branches[name]
        if _SHORT_SHA.fullmatch(name) is not None:
            raise DataError(
                f"'{name}' is neither a tag nor a full sha", where=Where(self.uri), remedy="write all 40 digits."
            )
        raise InputError(
            f"there is no tag '{name}'",
            where=Where(self.uri),
            remedy=f"name one of: {', '.join(sorted(tags)) or '(the repository has no tags) a full sha'}.",
        )

    def files(self, sha: str, patterns: Sequence[str] | None) -> Path:
        """The folder that holds a commit's files, each hashed against the listing."""
        hub_cache = self.cache / "hub"
        folder = hub_cache / f"datasets--{self.repo_id.replace('/', '--')}" / "snapshots" / sha
        kept = self._kept_listing(sha)
        wanted = [
            file
            for file in kept or self._listing(sha)
            if patterns is None or any(fnmatch.fnmatchcase(file.path, pattern) for pattern in patterns)
        ]
        if not wanted:
            raise InputError(
                "no file of this revision is one that is needed",
                where=Where(self.uri, value=None if patterns is None else list(patterns)),
                remedy="check the repository and the revision.",
            )
        wrong = _wrong(folder, wanted)
        if wrong:
            if kept:
                # The client itself waits long for a Hub that is out of reach.
                self._listing(sha)
            self._download(hub_cache, folder, sha, patterns)
            wrong = _wrong(folder, wanted)
        if wrong:
            path, reason = next(iter(wrong.items()))
            others = f" ({len(wrong) - 1} more files are wrong)" if len(wrong) > 1 else ""
            raise InputError(f"{reason}{others}", where=Where(f"{self.uri}: {path}"), remedy=AGAIN)
        return folder

    def _download(self, hub_cache: Path, folder: Path, sha: str, patterns: Sequence[str] | None) -> None:
        try:
            got = snapshot_download(
                self.repo_id,
                repo_type="dataset",
                revision=sha,
                cache_dir=hub_cache,
                endpoint=self.api.endpoint,
                allow_patterns=None if patterns is None else list(patterns),
                max_workers=_THREADS,
            )
        except (hub_replies.HTTP_ERROR, OSError, RuntimeError) as error:
            raise self._explain(error) from error
        if Path(got) != folder.resolve() or Path(got).name != sha:
            raise SafetyError(
                f"the client gave {Path(got).name}, not the commit that was asked for",
                where=Where(self.uri),
                remedy=f"delete {hub_cache} and run the same command again.",
            )

    def _listing_path(self, sha: str) -> Path:
        return self.cache / "listings" / f"{self.repo_id.replace('/', '--')}--{sha}.json"

    def _kept_listing(self, sha: str) -> list[Listed]:
        """What an earlier run learnt of a commit, which never changes; empty if nothing."""
        path = self._listing_path(sha)
        try:
            rows = documents.parse(path.read_bytes()) if path.is_file() else []
            return [_checked(row["path"], row["size"], row["blob"], row["sha256"]) for row in rows]
        except (ValueError, TypeError, LookupError):
            # Damaged: it is asked for again.
            return []

    def _listing(self, sha: str) -> list[Listed]:
        """What a commit holds, as the Hub says; kept for later runs."""
        found, listing = self._ask(lambda: self._listed(sha))
        if found != sha:
            raise SafetyError(
                f"the Hub answers with {found}, not the commit that was asked for",
                where=Where(self.uri),
                remedy="check HF_ENDPOINT.",
            )
        path = self._listing_path(sha)
        with whole_file(path, "XDG_CACHE_HOME") as work:
            work.write_text(json.dumps([asdict(row) for row in listing]), encoding="utf-8")
        return listing

    def _listed(self, sha: str) -> tuple[str | None, list[Listed]]:
        """Which commit the Hub says that it lists, and its files."""
        info = self.api.dataset_info(self.repo_id, revision=sha, files_metadata=True, timeout=_ONE_CALL)
        rows = []
        for file in info.siblings or []:
            name = hub_replies.text(file.rfilename)
            if not is_inside(name):
                raise SafetyError(
                    "the Hub lists a file outside the repository",
                    where=Where(self.uri, value=name),
                    remedy="nothing was fetched: do not use this repository, and check HF_ENDPOINT.",
                )
            sha256 = None if file.lfs is None else file.lfs.sha256
            rows.append((name, _checked(name, file.size, file.blob_id, sha256)))
        found = None if info.sha is None else hub_replies.commit(info.sha)
        return found, list(hub_replies.unique(rows).values())

    def _ask(self, call: Callable[[], T]) -> T:
        """One call of the API, tried a few times, within `_PATIENCE` seconds in all."""
        end = monotonic() + _PATIENCE
        attempt = 1
        while True:
            try:
                return within(min(_ONE_CALL, max(end - monotonic(), 0.0)), call)
            except (hub_replies.HTTP_ERROR, OSError, *hub_replies.NONSENSE) as error:
                wait = wait_before(error, attempt)
                if wait is None or attempt == _TRIES or monotonic() + wait >= end:
                    raise self._explain(error) from error
                sleep(wait)
            attempt += 1

    def _explain(self, error: Exception) -> InputError:
        """What a person is told: what could not be had, and what to do."""
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        what, remedy = reason(error, self.repo_id, self.api.endpoint)
        return InputError(what, where=Where(self.uri), remedy=remedy)


def _checked(path: object, size: object, blob: object, sha256: object) -> Listed:
    """A row of a listing, or a ValueError."""
    return Listed(
        hub_replies.path(path),
        hub_replies.size(size),
        hub_replies.commit(blob),
        None if sha256 is None else hub_replies.sha256(sha256),
    )


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives, or TimeoutError after `seconds`: a name look-up heeds no timeout of its own.

    The thread is a daemon, so that a call that hangs does not keep the process.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return future.result(seconds)
    except FutureTimeoutError:
        raise TimeoutError(f"no answer in {seconds:.0f} s") from None


def _wrong(folder: Path, wanted: Sequence[Listed]) -> dict[str, str]:
    """Files that are missing or not as listed, with the reason; what is there and wrong is removed."""
    with ThreadPoolExecutor(_THREADS) as pool:
        reasons = pool.map(lambda file: _check(folder / file.path, file), wanted)
        return {file.path: reason for file, reason in zip(wanted, reasons, strict=True) if reason is not None}


def _check(path: Path, file: Listed) -> str | None:
    if not path.is_file():
        path.unlink(missing_ok=True)
        return "the file did not arrive"
    size = path.stat().st_size
    if size == file.size:
        digest = hashlib.sha256() if file.sha256 is not None else hashlib.sha1(usedforsecurity=False)
        if file.sha256 is None:
            digest.update(f"blob {size}\0".encode())
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        expected = file.sha256 or file.blob
        if digest.hexdigest() == expected:
            return None
        reason = f"the bytes are not those of the commit: {digest.hexdigest()}, not {expected}"
    else:
        reason = f"the file is truncated or too long: {size} bytes, not {file.size}"
    # The client's cache holds a link to a blob; both go, or the client would take the blob for good.
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    return reason
