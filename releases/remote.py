"""What a publish asks of a place that releases go to, whichever kind of place it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from provenance.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releases.git_objects import File
    from releases.plan import Plan

BRANCH = "main"


@dataclass(frozen=True)
class Refs:
    """The head of `main` (None: no commit yet) and every tag with the commit that it leads to."""

    head: str | None
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Commit:
    """A commit, its parent (None for the first), and who made it when, as the remote says."""

    sha: str
    parent: str | None
    author: str
    date: str
    title: str

    def __str__(self) -> str:
        """The commit, its author and its date."""
        return f"commit {self.sha} ('{self.title}') by {self.author}, {self.date}"


@dataclass(frozen=True)
class Release:
    """What is published: the tree on disk, its tag, and the commit's description."""

    folder: Path
    tag: str
    description: str = ""

    @property
    def title(self) -> str:
        """The commit's title."""
        return f"Release {self.tag}"


class OvertakenError(RemoteError):
    """The remote refused a commit or a tag because there is one by now; the caller looks, and says what is there."""


class Remote(Protocol):
    """A repository elsewhere.

    Every method may be called again after it failed; each raises `RemoteError` where the remote fails or answers
    nonsense, `InputError` where it refuses the caller.
    """

    name: str

    def refs(self) -> Refs | None:
        """The head and the tags; None where there is no such repository."""
        ...

    def create(self) -> None:
        """Make the repository; no error if it is there."""
        ...

    def commit(self, sha: str) -> Commit:
        """What is known of a commit."""
        ...

    def files(self, sha: str) -> dict[str, File]:
        """Every file of a commit by its path."""
        ...

    def text(self, path: str, sha: str) -> str:
        """A small text file of a commit."""
        ...

    def upload(self, release: Release, plan: Plan, sent: Callable[[int, int], None]) -> None:
        """Bring the contents of the plan's adds to the remote; no reader sees them yet.

        Args:
            release: where they lie.
            plan: which.
            sent: called with the files and bytes that went since the last call.

        Raises:
            SafetyError: the remote would store a file otherwise than planned.
        """
        ...

    def push(self, release: Release, plan: Plan) -> str:
        """Put the one commit on `main`, on top of the plan's parent only, and never twice.

        Returns:
            Its sha.

        Raises:
            OvertakenError: the head is not the parent any more.
            RemoteError: it failed, and it is not known whether the commit was made.
        """
        ...

    def tag(self, name: str, sha: str) -> None:
        """Make a tag.

        Raises:
            OvertakenError: there is one of that name.
        """
        ...

    def calls(self, plan: Plan, tag: str, *, exists: bool) -> list[str]:
        """The writing calls that a publish of `plan` would make, in order, as a person reads them."""
        ...
