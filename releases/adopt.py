"""What was published without this tool, taken into the ledger: tags, commits, trees, and which proofs hold.

Nothing on the remote is changed. What cannot be proved is marked so, and is not proved by being in the ledger.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builder import documents
from builder.layout import MANIFEST, RELEASES
from builder.proofs.facts import Facts
from builder.releases_document import FORMAT
from builder.validate import validate
from provenance.errors import DataError, InputError, ReleaseError, SafetyError, Where
from releases.fetched import fetch_tree
from releases.git_objects import root_tree
from releases.ledger.chain import Entry, head_digest
from releases.verify.ledger_level import is_adopted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from builder.benchmark import Benchmark
    from builder.validate import Validation
    from releases.git_objects import File
    from releases.verify.hub import HubReader

_TAG = re.compile(r"v(?P<number>[1-9][0-9]*)-(?P<slug>[A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Adopted:
    """A release as the ledger will have it, and what was proved of it."""

    entry: Entry
    proofs: Validation


@dataclass
class Adoption:
    """An adoption under way.

    Args:
        reader: the repository.
        benchmark: whose releases they are.
        upstream: upstream's folders that lie on this machine.
        folder: for the trees that are fetched.
        say: progress.
    """

    reader: HubReader
    benchmark: Benchmark
    upstream: Mapping[str, Path]
    folder: Path
    say: Callable[[str], None]
    listings: dict[str, dict[str, File]] = field(default_factory=dict)

    def adopt(self, kept: Sequence[Entry], releases: Sequence[tuple[int, str, str]]) -> list[Adopted]:
        """Entries for the releases that `kept` lacks, in order.

        Args:
            kept: the entries that stay.
            releases: number, tag and commit of each release of the remote.

        Raises:
            SafetyError: a tag leads to a commit that is not on main, or bytes are not the listed ones.
            RemoteError, InputError: something cannot be read.
        """
        history = self.reader.history()
        entries = list(kept)
        done: list[Adopted] = []
        for number, tag, sha in releases[len(kept) :]:
            if sha not in history:
                raise SafetyError(
                    f"{tag} leads to commit {sha}, which is not on main",
                    where=Where(self.reader.target.name),
                    remedy="a release must be an ancestor of main, or its history cannot be watched: merge it first.",
                )
            following = releases[number][1] if number < len(releases) else None
            adopted = self._one(number, tag, history[history.index(sha) :], entries, following)
            done.append(adopted)
            entries.append(adopted.entry)
        return done

    def _one(
        self, number: int, tag: str, history: Sequence[str], before: Sequence[Entry], successor: str | None
    ) -> Adopted:
        sha = history[0]
        listed = self._listing(sha)
        self.say(f"fetch {tag} ({sha}): {len(listed)} files, {sum(file.size for file in listed.values()):,} bytes")
        tree = self.folder / tag
        files = fetch_tree(self.reader, sha, listed, tree, self.folder / "objects")
        predecessor = self.folder / before[-1].tag if before else None
        against = Facts(predecessor) if predecessor is not None and predecessor.is_dir() else None
        proofs = validate(
            Facts(tree, benchmark=self.benchmark, upstream=self.upstream, against=against),
            clock=time.perf_counter,
            say=lambda _message: None,
        )
        own = self._own(tree, number, tag)
        if own is None:
            own = self._described(number, tag, self._data_revision(history, before), successor)
        entry = Entry(
            number=number,
            tag=tag,
            revision=sha,
            parent=history[1] if len(history) > 1 else None,
            tree=root_tree({path: file.oid for path, file in listed.items()}),
            manifest_sha256=files[MANIFEST]["sha256"] if MANIFEST in files else None,
            release=own,
            proved=proofs.holds(strict=False),
            files=files,
            previous=head_digest(before),
        )
        return Adopted(entry, proofs)

    def _listing(self, sha: str) -> dict[str, File]:
        if sha not in self.listings:
            listed = self.reader.files(sha)
            if listed is None:
                raise InputError(f"the remote has no commit {sha}", where=Where(self.reader.target.name))
            self.listings[sha] = listed
        return self.listings[sha]

    @staticmethod
    def _own(tree: Path, number: int, tag: str) -> dict[str, Any] | None:
        """What the release says of itself in this tool's form; None where it has another form, or none."""
        try:
            document = documents.read(tree / RELEASES)
            own = document["releases"][-1] if document["format"] == FORMAT else None
        except (ReleaseError, LookupError, TypeError):
            return None
        return own if isinstance(own, dict) and (own.get("number"), own.get("tag")) == (number, tag) else None

    def _described(self, number: int, tag: str, data_revision: str | None, successor: str | None) -> dict[str, Any]:
        """What can be said of a release that does not say it: null is not known."""
        match = _TAG.fullmatch(tag)
        slug = match["slug"] if match is not None else ""
        judge = next((judge for judge in self.benchmark.judges.values() if judge.slug == slug), None)
        return {
            "number": number,
            "tag": tag,
            "revision": None,
            "kind": None,
            "data_revision": data_revision,
            "judge": {
                "name": judge.name if judge is not None else slug,
                "model": judge.model if judge is not None else None,
                "simulated": judge.simulated if judge is not None else None,
            },
            "calibration": None,
            "status": "current" if successor is None else "superseded",
            "superseded_by": successor,
            "upstream": None,
            "tasks": None,
            "may_change": None,
        }

    def _data_revision(self, history: Sequence[str], before: Sequence[Entry]) -> str | None:
        """The commit that last changed a table, going back from the release; None where that is the release itself."""
        known = {entry.revision: entry.release.get("data_revision") for entry in before}
        tables = _tables(self._listing(history[0]))
        for sha, parent in zip(history, [*history[1:], None], strict=True):
            if known.get(sha):
                return str(known[sha])
            if parent is None or _tables(self._listing(parent)) != tables:
                return None if sha == history[0] else sha
        return None


def _tables(listed: Mapping[str, File]) -> dict[str, str]:
    return {path: file.oid for path, file in listed.items() if path.endswith(".parquet")}


def releases_of(tags: Mapping[str, str], place: str) -> list[tuple[int, str, str]]:
    """Number, tag and commit of each release among the tags, by number.

    Raises:
        InputError: there is none.
        DataError: the numbers are not 1, 2, 3, ...
    """
    found = sorted((int(match["number"]), tag, tags[tag]) for tag in tags if (match := _TAG.fullmatch(tag)))
    if not found:
        raise InputError(
            f"no tag of {place} is a release (v<N>-<judge>); it has {', '.join(sorted(tags)) or 'no tags'}",
            remedy="name the repository that the releases are in.",
        )
    if [number for number, _, _ in found] != list(range(1, len(found) + 1)):
        raise DataError(
            f"the releases are not numbered 1, 2, 3, ...: {', '.join(tag for _, tag, _ in found)}",
            where=Where(place),
            remedy="every number needs one tag; the ledger cannot hold a gap.",
        )
    return found


def kept_entries(entries: Sequence[Entry], releases: Sequence[tuple[int, str, str]], path: Path) -> tuple[Entry, ...]:
    """The ledger's entries that stay: all of them, or none where each is only noted (no tree, no files).

    Raises:
        SafetyError: an entry contradicts the remote, or the ledger has both kinds.
    """
    targets = {tag: sha for _, tag, sha in releases}
    for entry in entries:
        if entry.tag not in targets or entry.revision not in {None, targets[entry.tag]}:
            raise SafetyError(
                f"the ledger says that {entry.tag} is commit {entry.revision}, the remote says "
                f"{targets.get(entry.tag, 'there is no such tag')}",
                where=Where(str(path)),
                remedy="find out which is right; nothing was written.",
            )
    adopted = [is_adopted(entry) for entry in entries]
    if any(adopted) and not all(adopted):
        raise SafetyError(
            "the ledger has releases that were published, and others that are only noted",
            where=Where(str(path)),
            remedy="restore the ledger from git, or name a new one with --ledger.",
        )
    return tuple(entries) if all(adopted) else ()
