"""What a client may name: repositories, revisions, refs and paths; git and the disk never see the rest."""

from __future__ import annotations

import re
from http import HTTPStatus

_LONGEST_ID = 96
_LONGEST_REF = 200
_LONGEST_PATH = 1000
_LONGEST_PART = 255

_ID_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
# What `git check-ref-format` refuses, and a leading dash, which would read as an option.
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[./-]|[./]$|\.lock(?:/|$)|^@$")
_BAD_PATH_CHARACTER = re.compile(r"[\x00-\x1f\x7f\\]")

SHA = re.compile(r"[0-9a-f]{40}")
SHORT_SHA = re.compile(r"[0-9a-f]{7,40}")
LFS_OID = re.compile(r"[0-9a-f]{64}")


class HubError(Exception):
    """A refusal, as the Hub words it.

    Args:
        status: the HTTP status.
        message: goes to the client in the body and in `X-Error-Message`.
        code: `X-Error-Code`, from which the client picks its exception.
        headers: further headers of the reply.
        body: further keys of the JSON body.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: dict[str, str] | None = None,
        body: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = headers or {}
        self.body = body or {}


def bad_request(message: str) -> HubError:
    """A 400."""
    return HubError(HTTPStatus.BAD_REQUEST, message)


def check_repo_id(repo_id: str) -> tuple[str, str]:
    """Namespace and name of `namespace/name`; 400 for anything that is not of that form.

    Raises:
        HubError: 400.
    """
    namespace, slash, name = repo_id.partition("/")
    parts = (namespace, name)
    if not slash or any(
        _ID_PART.fullmatch(part) is None or len(part) > _LONGEST_ID or ".." in part or "--" in part for part in parts
    ):
        raise bad_request(f"Invalid repository id {repo_id[:_LONGEST_ID]!r}: it has the form namespace/name")
    if name.endswith(".git"):
        raise bad_request("A repository name cannot end in .git")
    return namespace, name


def check_ref(name: str) -> str:
    """A branch's or a tag's name that git takes and that fits on disk.

    Raises:
        HubError: 400.
    """
    if not name or len(name.encode()) > _LONGEST_REF or _BAD_REF.search(name) is not None:
        raise bad_request(f"Invalid reference name {name[:_LONGEST_ID]!r}")
    return name


def is_readable_revision(revision: str) -> bool:
    """Whether git may be asked for it at all (a revision that is no legal name does not exist)."""
    return 0 < len(revision.encode()) <= _LONGEST_REF and _BAD_REF.search(revision) is None


def check_path(path: str) -> str:
    """A file's path in a repository: relative, normal, outside of `.git`.

    Raises:
        HubError: 400.
    """
    parts = path.split("/")
    if (
        len(path.encode()) > _LONGEST_PATH
        or _BAD_PATH_CHARACTER.search(path) is not None
        or any(
            part in {"", ".", ".."} or part.lower() == ".git" or len(part.encode()) > _LONGEST_PART for part in parts
        )
    ):
        raise bad_request(f"Invalid path {path[:_LONGEST_PART]!r}")
    return path


def check_lfs_oid(oid: object) -> str:
    """An LFS object's id: 64 hexadecimal digits.

    Raises:
        HubError: 400.
    """
    if not isinstance(oid, str) or LFS_OID.fullmatch(oid) is None:
        raise bad_request("An LFS oid is 64 lower-case hexadecimal digits")
    return oid
