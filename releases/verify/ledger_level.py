"""The level of the ledger: tags, history, trees and files as the remote lists them, against the ledger. Pure.

It sees what can be seen without fetching a file: 2 + n API calls (tags, the history of main, a tree a release). That a
listed file can be had, and is what it should be, is the level of the content.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from builder.layout import MANIFEST, README, TASK_FILE
from releases.git_objects import blob_sha, pointer, root_tree
from releases.verify import findings
from releases.verify.findings import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releases.git_objects import File
    from releases.ledger.chain import Entry

LEVEL = "ledger"
RELEASE_TAG = re.compile(r"v[1-9][0-9]*-.+")


def is_adopted(entry: Entry) -> bool:
    """Whether the ledger holds what a check needs: the commit, its tree and its files."""
    return entry.revision is not None and entry.tree is not None and bool(entry.files)


def inside(entry: Entry) -> Iterator[Failure]:
    """An entry against itself: its tree is of its files, its manifest one of them, each pointer of its object.

    The chain of hashes says nothing about the last line; this does.
    """

    def broken(message: str, file: str | None = None) -> Failure:
        return Failure(findings.LEDGER_BROKEN, LEVEL, f"{entry.tag} in the ledger: {message}", file)

    computed = root_tree({path: str(file["oid"]) for path, file in entry.files.items()})
    if computed != entry.tree:
        yield broken(f"its files make the tree {computed}, and it names {entry.tree}")
    manifest = entry.files.get(MANIFEST, {}).get("sha256")
    if manifest != entry.manifest_sha256:
        yield broken(f"it names the manifest {entry.manifest_sha256}, and its file is {manifest}", MANIFEST)
    if entry.release.get("tag") != entry.tag or entry.release.get("number") != entry.number:
        yield broken(f"its release is {entry.release.get('number')}, {entry.release.get('tag')}")
    for path, file in entry.files.items():
        if file["lfs"]:
            computed = blob_sha(pointer(str(file["sha256"]), int(file["size"])))
            if computed != file["oid"]:
                yield broken(f"sha256 and size make the pointer {computed}, and it names {file['oid']}", path)


def pin(entry: Entry, tags: Mapping[str, str], history: Sequence[str]) -> Iterator[Failure]:
    """A release's tag and place in the history.

    Args:
        entry: the release.
        tags: each tag of the remote and the commit that it leads to.
        history: the commits of main, newest first.
    """
    target = tags.get(entry.tag)
    if target is None:
        yield Failure(findings.TAG_DELETED, LEVEL, f"the remote has no tag {entry.tag}; it was commit {entry.revision}")
    elif target != entry.revision:
        message = f"the tag {entry.tag} leads to {target}; it was published at {entry.revision}"
        yield Failure(findings.TAG_MOVED, LEVEL, message)
    if entry.revision not in history:
        message = f"commit {entry.revision} is no ancestor of main, which has {len(history)} commit(s)"
        yield Failure(findings.HISTORY_REWRITTEN, LEVEL, message)
    # Not "directly after": a merge puts other commits in between, and the sha itself fixes the parent.
    elif entry.parent is not None and entry.parent not in history[history.index(entry.revision) + 1 :]:
        message = f"the parent {entry.parent} of commit {entry.revision} does not stand before it on main"
        yield Failure(findings.HISTORY_REWRITTEN, LEVEL, message)


def tree(entry: Entry, listed: Mapping[str, File] | None) -> Iterator[Failure]:
    """A release's files as the remote lists them at its commit; None where it has no such commit."""
    if listed is None:
        yield Failure(findings.COMMIT_MISSING, LEVEL, f"the remote has no commit {entry.revision}")
        return
    yield from files(entry, listed)
    computed = root_tree({path: file.oid for path, file in listed.items()})
    if computed != entry.tree:
        message = f"the root tree of {entry.revision} is {computed}; it was published as {entry.tree}"
        yield Failure(findings.BYTES_CHANGED, LEVEL, message)


def files(entry: Entry, listed: Mapping[str, File]) -> Iterator[Failure]:
    """Each file of the ledger against the remote's row, and rows that the ledger does not have."""
    for path, file in sorted(entry.files.items()):
        row = listed.get(path)
        if row is None:
            yield Failure(findings.FILE_MISSING, LEVEL, "the remote does not list it", path)
            continue
        if row.lfs and not file["lfs"]:
            message = "the remote holds an LFS pointer; it was published as a plain file"
            yield Failure(findings.POINTER_WITHOUT_OBJECT, LEVEL, message, path)
        for name, value in (("oid", row.oid), ("size", row.size), ("sha256", row.sha256)):
            # A listing gives the sha256 of LFS objects only.
            if value is not None and value != file[name]:
                message = f"{name} {value}; it was published as {file[name]}"
                yield Failure(findings.BYTES_CHANGED, LEVEL, message, path)
                break
    for path in sorted(listed.keys() - entry.files.keys()):
        yield Failure(findings.BYTES_CHANGED, LEVEL, "the remote lists a file that was not published", path)


def main(
    last: Entry, head: str | None, listed: Mapping[str, File] | None, unknown: Mapping[str, str]
) -> Iterator[Failure]:
    """What someone put on top of the last release: readers who pin nothing get it.

    Args:
        last: the ledger's last release.
        head: the commit that main leads to.
        listed: its files; not needed where it is the last release itself.
        unknown: the releases that the remote has and the ledger lacks, tag and commit.
    """
    if head == last.revision:
        return
    if listed is None:
        yield Failure(findings.COMMIT_MISSING, LEVEL, f"the remote has no commit {head}, to which main leads")
        return
    differing = list(files(last, listed))
    for tag, commit in unknown.items():
        if commit == head:  # one line: a newer release differs in most files
            message = f"main is at release {tag}, which the ledger lacks: {len(differing)} files differ from {last.tag}"
            yield Failure(findings.BYTES_CHANGED, LEVEL, message)
            return
    for failure in differing:
        path = failure.file or ""
        described = path in {README, TASK_FILE} or path.startswith("assets/")
        name = findings.CARD_DRIFT if described and failure.name == findings.BYTES_CHANGED else failure.name
        message = f"main is at {head}, and no longer {last.tag}: {failure.message}"
        yield Failure(name, LEVEL, message, failure.file)


def unknown_releases(entries: Sequence[Entry], tags: Mapping[str, str]) -> dict[str, str]:
    """Releases that the remote has and the ledger lacks, tag and commit: lost lines, or a publish without it."""
    known = {entry.tag for entry in entries}
    return {
        tag: commit
        for tag, commit in sorted(tags.items())
        if RELEASE_TAG.fullmatch(tag) is not None and tag not in known
    }


def lacking(unknown: Mapping[str, str]) -> Iterator[Failure]:
    """What is said of them."""
    for tag, commit in unknown.items():
        message = (
            f"the remote has a release {tag} (commit {commit}) that the ledger lacks: get the ledger that has it, "
            "or take the release in with `release adopt`"
        )
        yield Failure(findings.LEDGER_BROKEN, LEVEL, message)
