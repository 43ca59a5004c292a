"""What a verification reads of a Hub: tags, history, listings, contents. It writes nothing."""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import TYPE_CHECKING, TypeVar

from huggingface_hub import HfApi, get_session, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, by a lazy table

from builder import hub_replies
from builder.output import UNWRITABLE
from provenance.errors import InputError, RemoteError, Where
from releases.git_objects import blob_sha
from releases.hub_listing import listed
from releases.verify.findings import MAIN
from releases.verify.paced import RemoteFailedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from releases.git_objects import File
    from releases.verify.target import Target

T = TypeVar("T")

_KIND = "dataset"
_BLOCK = 1024 * 1024
_FOUND, _MISSING = 200, 404


class Digest:
    """The size, sha256 and git blob sha of bytes that come block by block; the first of them are kept."""

    def __init__(self, size: int) -> None:
        self.size = 0
        self.head = b""
        self._sha256 = hashlib.sha256()
        self._blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)

    def update(self, block: bytes) -> None:
        """More bytes."""
        self.size += len(block)
        if not self.head:
            self.head = block[:200]
        self._sha256.update(block)
        self._blob.update(block)

    @property
    def sha256(self) -> str:
        """Of all bytes so far."""
        return self._sha256.hexdigest()

    @property
    def blob(self) -> str:
        """The git blob sha, right if as many bytes came as were announced."""
        return self._blob.hexdigest()


class HubReader:
    """A dataset repository, read only. Every method raises `RemoteError` or `InputError` where it cannot be read."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._api = HfApi(endpoint=target.endpoint, token=target.token or False, library_name="rcp-release")

    def refs(self) -> tuple[str | None, dict[str, str]]:
        """The commit of main (None: there is none), and each tag with the commit that it leads to."""
        branches, tags = self._ask(
            "read the tags", lambda: hub_replies.refs(self._api.list_repo_refs(self.target.repo, repo_type=_KIND))
        )
        return branches.get(MAIN), tags

    def history(self) -> list[str]:
        """The commits of main, newest first."""

        def shas() -> list[str]:
            found = self._api.list_repo_commits(self.target.repo, repo_type=_KIND, revision=MAIN)
            return [hub_replies.commit(commit.commit_id) for commit in found]

        return self._ask("read the history", shas)

    def files(self, sha: str) -> dict[str, File] | None:
        """Every file of a commit as it is listed; None where there is no such commit."""

        def files() -> dict[str, File] | None:
            try:
                return listed(self._api.list_repo_tree(self.target.repo, recursive=True, revision=sha, repo_type=_KIND))
            except RevisionNotFoundError:
                return None

        return self._ask(f"list the files of {sha}", files)

    def fetch(self, path: str, sha: str, size: int, sink: BinaryIO | None = None) -> Digest | None:
        """The digest of a file's bytes, which go to `sink` too; None where the remote has them no longer.

        Args:
            path: the file.
            sha: the commit.
            size: how many bytes are due.
            sink: where to write them.
        """
        url = hf_hub_url(self.target.repo, path, repo_type=_KIND, revision=sha, endpoint=self.target.endpoint)
        headers = build_hf_headers(token=self.target.token or False, library_name="rcp-release")

        def fetched() -> Digest | None:
            digest = Digest(size)
            with get_session().stream("GET", url, headers=headers) as answer:
                if answer.status_code == _MISSING:
                    return None
                if answer.status_code != _FOUND:
                    raise RemoteFailedError(f"HTTP {answer.status_code}")
                for block in answer.iter_bytes(_BLOCK):
                    digest.update(block)
                    if sink is not None:
                        sink.write(block)
            return digest

        return self._ask(f"read {path}", fetched)

    def document(self, path: str, sha: str, oid: str) -> bytes:
        """A small file of a commit, whose bytes are those of its git blob or LFS object.

        Args:
            path: the file.
            sha: the commit.
            oid: the git blob sha of a plain file, or the sha256 of an LFS object.

        Raises:
            RemoteError: it cannot be had, or is another.
        """
        held = BytesIO()
        digest = self.fetch(path, sha, 0, held)
        content = held.getvalue()
        if digest is None or oid not in {digest.sha256, blob_sha(content)}:
            raise _failed(f"read {path}", "it is missing, or not what was published", Where(self.target.name))
        return content

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        place = Where(self.target.name)
        try:
            return call()
        except RemoteFailedError as error:
            if error.refused:
                raise _refused(what, str(error), place) from None
            raise _failed(what, str(error), place) from None
        except RepositoryNotFoundError:
            raise InputError(
                f"cannot {what}: there is no such repository, or no right to see it",
                where=place,
                remedy="check its name and your token (`hf auth login`, or HF_TOKEN).",
            ) from None
        except HfHubHTTPError as error:
            raise _failed(what, f"HTTP {error.response.status_code}", place) from None
        except (hub_replies.HTTP_ERROR, OSError) as error:
            if isinstance(error, OSError) and error.errno in UNWRITABLE:
                # Not the remote: this machine does not take what came.
                raise
            raise _failed(what, f"{type(error).__name__}: {error}", place) from None
        except hub_replies.NONSENSE as error:
            raise _failed(what, f"the answer makes no sense ({type(error).__name__}: {error})", place) from None


def _refused(what: str, why: str, place: Where) -> InputError:
    return InputError(
        f"cannot {what}: the Hub refuses ({why})",
        where=place,
        remedy="use an account that may read it (`hf auth login`, or HF_TOKEN).",
    )


def _failed(what: str, why: str, place: Where) -> RemoteError:
    return RemoteError(
        f"cannot {what}: {' '.join(why.split())[:300]}",
        where=place,
        remedy="run the same command again: it goes on from what was verified.",
    )
