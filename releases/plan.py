"""What a publish would change: the release's files against those of the commit that it goes on top of. Pure.

A plan holds every file that the new commit will have and the sha of its root tree, so that what a remote made of it
can be compared with what was meant (Hub spec sections 0.9 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from builder.layout import GITATTRIBUTES, README
from provenance.errors import DataError, SafetyError, Where
from releases.git_objects import File, root_tree, stored
from releases.lfs_rules import LfsRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releases.git_objects import Content

LARGEST_REGULAR = 10 * 1024 * 1024
"""Bytes above which the Hub takes a file as an LFS object only."""
MOST_DELETES = 20
"""Deletes that need no word from a person; above, `--allow-deletes N`."""


@dataclass(frozen=True)
class Plan:
    """A release as one commit.

    Attributes:
        parent: the commit that it goes on top of; None in a repository without one.
        files: every file of the new commit.
        adds: the paths that are new or changed, sorted: only these are sent.
        unchanged: the paths that the parent holds already.
        deletes: the paths that the parent holds and the release does not.
    """

    parent: str | None
    files: Mapping[str, File]
    adds: tuple[str, ...]
    unchanged: tuple[str, ...]
    deletes: tuple[str, ...]

    @cached_property
    def tree(self) -> str:
        """The git sha of the new commit's root tree."""
        return tree_of(self.files)

    @property
    def bytes_to_send(self) -> int:
        """Bytes of the files that are sent."""
        return sum(self.files[path].size for path in self.adds)

    @property
    def bytes_of_tree(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


def tree_of(files: Mapping[str, File]) -> str:
    """The git sha of the root tree that holds `files`."""
    return root_tree({path: file.oid for path, file in files.items()})


def as_stored(contents: Mapping[str, Content], attributes: str) -> dict[str, File]:
    """What a commit holds for each file of a release.

    Args:
        contents: the files on disk.
        attributes: the release's own `.gitattributes`.

    Raises:
        DataError: the rules would store a file as text that the Hub takes as an LFS object only, or the other way
            round.
    """
    rules = LfsRules(attributes)
    files = {path: stored(content, lfs=rules.lfs(path)) for path, content in contents.items()}
    for path, file in files.items():
        if path in {README, GITATTRIBUTES} and file.lfs:
            raise _refuse_rule(path, "must not be an LFS object")
        if not file.lfs and contents[path].binary:
            raise _refuse_rule(path, "is binary, and no rule makes it an LFS object")
        if not file.lfs and file.size > LARGEST_REGULAR:
            raise _refuse_rule(path, f"has {file.size:,} bytes, and no rule makes it an LFS object")
    return files


def make_plan(
    files: Mapping[str, File],
    parent: str | None,
    held: Mapping[str, File],
    *,
    held_attributes: str | None = None,
    allowed_deletes: int = MOST_DELETES,
) -> Plan:
    """Compare a release with the commit that it goes on top of.

    Args:
        files: the release's files, as `as_stored` gives them.
        parent: that commit; None in an empty repository.
        held: the files of that commit.
        held_attributes: its `.gitattributes`, by whose rules a Hub stores what is sent; None where it has none.
        allowed_deletes: how many files may be deleted.

    Raises:
        SafetyError: more files than `allowed_deletes` would be deleted, `.gitattributes` would be, or the remote
            would store a file otherwise than the release's own rules say.
    """
    adds = tuple(sorted(path for path, file in files.items() if path not in held or held[path].oid != file.oid))
    deletes = tuple(sorted(held.keys() - files.keys()))
    _check_deletes(deletes, allowed_deletes)
    if held_attributes is not None:
        rules = LfsRules(held_attributes)
        for path in adds:
            if files[path].size > 0 and rules.lfs(path) != files[path].lfs:
                kind = "an LFS object" if rules.lfs(path) else "text"
                raise SafetyError(
                    f"by its .gitattributes the remote would store this file as {kind}, by the release's it is not",
                    where=Where(path),
                    remedy="give the remote the release's .gitattributes first, in a commit of its own.",
                )
    return Plan(parent, dict(files), adds, tuple(sorted(files.keys() - set(adds))), deletes)


def _check_deletes(deletes: tuple[str, ...], allowed: int) -> None:
    attributes = [path for path in deletes if path.rsplit("/", 1)[-1] == GITATTRIBUTES]
    if attributes:
        raise SafetyError(
            "a release never deletes .gitattributes",
            where=Where(attributes[0]),
            remedy="build the release again (it writes its own at the root), or remove a folder's by hand first.",
        )
    if len(deletes) > allowed:
        shown = "".join(f"\n    - {path}" for path in deletes)
        raise SafetyError(
            f"this release would delete {len(deletes)} files of the last one, more than {allowed}:{shown}",
            remedy=f"if all of these are to go, say so: --allow-deletes {len(deletes)}.",
        )


def _refuse_rule(path: str, what: str) -> DataError:
    return DataError(
        f"this file {what}",
        where=Where(path),
        remedy="give .gitattributes of the tree a rule that fits, and seal it again.",
    )
