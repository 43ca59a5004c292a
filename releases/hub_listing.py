"""The files of a commit as a Hub lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from huggingface_hub import RepoFile

from builder import hub_replies
from releases.git_objects import File

if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(rows: Iterable[object]) -> dict[str, File]:
    """Path -> file, of the client's rows; folders are left out.

    Raises:
        ValueError: a row is not of the form that it should have, or a path is listed twice.
    """
    return hub_replies.unique((hub_replies.path(row.path), _file(row)) for row in rows if isinstance(row, RepoFile))


def _file(row: RepoFile) -> File:
    sha256 = None if row.lfs is None else hub_replies.sha256(row.lfs.sha256)
    return File(hub_replies.commit(row.blob_id), hub_replies.size(row.size), sha256, sha256 is not None)
