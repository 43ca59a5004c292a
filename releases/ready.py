"""Whether a tree on disk is ready to be published as the next release: what it says of itself against the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builder import documents
from builder.layout import GITATTRIBUTES, MANIFEST, RELEASES
from provenance.errors import DataError, InputError, SafetyError, Where
from releases.git_objects import describe_file
from releases.ledger.status import statuses
from releases.plan import as_stored
from releases.remote import Release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from builder.benchmark import Benchmark
    from releases.git_objects import Content, File
    from releases.ledger.chain import Entry

_SHOWN = 10
_AGAIN = "build the release again with this ledger: `release build` takes the number and the earlier releases from it."


@dataclass(frozen=True)
class Ready:
    """A tree that may be published.

    Attributes:
        release: where it lies, and its tag.
        files: what a commit holds of it.
        entry: its own entry of releases.json; `revision` is null.
        manifest_sha256: of provenance/manifest.json.
        proved: whether all proofs were run on it and held.
    """

    release: Release
    files: Mapping[str, File]
    entry: Mapping[str, Any]
    manifest_sha256: str
    proved: bool


def read_tree(folder: Path) -> dict[str, Content]:
    """Every file of a tree, hashed once.

    Raises:
        InputError: no such tree.
        DataError: it holds something that is no plain file.
    """
    if not (folder / MANIFEST).is_file():
        raise InputError(
            "there is no release tree here", where=Where(str(folder)), remedy="build it first: `release build`."
        )
    contents = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise DataError("a release holds plain files only", where=Where(name), remedy="build the tree again.")
        if path.is_file():
            contents[name] = describe_file(path)
    return contents


def check_manifest(folder: Path, contents: Mapping[str, Content]) -> None:
    """Proof M1 over the bytes that would be sent: every file is the manifest's, and nothing else is there.

    Raises:
        SafetyError: it does not hold; up to ten faults are named.
    """
    declared = documents.read_as(folder / MANIFEST, "manifest")["files"]
    faults = [f"{name} is missing" for name in sorted(declared.keys() - contents.keys())]
    faults += [f"{name} is not in the manifest" for name in sorted(contents.keys() - declared.keys() - {MANIFEST})]
    faults += [
        f"{name} has sha256 {contents[name].sha256}, in the manifest {declared[name]['sha256']}"
        for name in sorted(declared.keys() & contents.keys())
        if contents[name].sha256 != declared[name]["sha256"]
    ]
    if faults:
        more = f"\n    and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise SafetyError(
            "the tree is not what its manifest says:\n    " + "\n    ".join(faults[:_SHOWN]) + more,
            where=Where(str(folder)),
            remedy="build it again; `release validate` names every fault.",
        )


def read_ready(folder: Path, tag: str, benchmark: Benchmark, entries: Sequence[Entry]) -> Ready:
    """Read a tree and check it against the ledger.

    Args:
        folder: the tree.
        tag: the tag that the person named.
        benchmark: whose release it must be.
        entries: the ledger; its last may be this release itself.

    Raises:
        SafetyError: the tag, the number or the earlier releases are not the ledger's, or the files not the
            manifest's.
        InputError, DataError: as `read_tree` and `as_stored`.
    """
    contents = read_tree(folder)
    check_manifest(folder, contents)
    files = as_stored(contents, (folder / GITATTRIBUTES).read_text(encoding="utf-8"))
    document = documents.read_as(folder / RELEASES, "releases")
    own = document["releases"][-1]
    place = Where(str(folder / RELEASES))
    if document["benchmark"] != benchmark.name:
        raise SafetyError(
            f"this is a release of benchmark '{document['benchmark']}', not of '{benchmark.name}'",
            where=place,
            remedy="name the right one with --benchmark.",
        )
    if own["tag"] != tag:
        raise SafetyError(
            f"the tree says that it is {own['tag']}, not {tag}", where=place, remedy=f"name it: --tag {own['tag']}."
        )
    before = [entry for entry in entries if entry.tag != tag]
    if own["number"] != len(before) + 1 or len(before) < len(entries) - 1 or entries[: len(before)] != tuple(before):
        raise SafetyError(
            f"the tree is release {own['number']}, the next by the ledger is release {len(entries) + 1}",
            where=place,
            remedy=_AGAIN,
        )
    _check_earlier(document["releases"][:-1], before, place)
    kind = own["kind"]
    return Ready(
        release=Release(folder, tag, f"{kind[:1].upper()}{kind[1:]} release {own['number']} of {benchmark.title}."),
        files=files,
        entry=own,
        manifest_sha256=contents[MANIFEST].sha256,
        proved=False,
    )


def _check_earlier(said: Sequence[Mapping[str, Any]], before: Sequence[Entry], place: Where) -> None:
    known = [(entry.tag, entry.revision) for entry in before]
    if [(release["tag"], release["revision"]) for release in said] != known:
        raise SafetyError(
            "the earlier releases of the tree are not the ledger's, which has "
            + (", ".join(f"{tag} at {revision}" for tag, revision in known) or "none"),
            where=place,
            remedy=_AGAIN,
        )
    withdrawn = [entry.tag for entry, status in zip(before, statuses(before), strict=True) if status.why is not None]
    missing = [release["tag"] for release in said if release["tag"] in withdrawn and release["status"] != "withdrawn"]
    if missing:
        raise SafetyError(f"{', '.join(missing)} was withdrawn after this tree was built", where=place, remedy=_AGAIN)
