"""The level of the content: each distinct object is fetched once and hashed, whichever releases hold it."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builder import documents, json_schemas
from builder.layout import RELEASES
from builder.releases_document import FORMAT
from provenance.errors import InputError, RemoteError
from releases.verify import findings
from releases.verify.findings import Failure, Gap
from releases.verify.paced import BudgetSpentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from releases.ledger.chain import Entry
    from releases.verify.findings import PinReport
    from releases.verify.hub import Digest, HubReader
    from releases.verify.state import State

LEVEL = "content"
_POINTER = b"version https://git-lfs.github.com/spec/"
_THREADS = 4
_SAID_EVERY = 100


@dataclass(frozen=True)
class _Object:
    """Bytes that a release, or several, hold: what they are, and where (an entry's place in `entries`, a path)."""

    key: str
    file: Mapping[str, Any]
    places: list[tuple[int, str]]


def check_content(
    reader: HubReader,
    pins: Sequence[tuple[Entry, PinReport]],
    ledger: Sequence[Entry],
    state: State,
    say: Callable[[str], None],
) -> None:
    """Fetch and hash every object of `pins` that was not hashed before; what is wrong goes to their reports."""
    entries = [entry for entry, _ in pins]
    reports = [report for _, report in pins]
    objects = _objects(entries)
    for number, report in enumerate(reports):
        own = [item for item in objects if any(place[0] == number for place in item.places)]
        report.covered[LEVEL] = {"objects": len(own), "bytes": sum(item.file["size"] for item in own)}
    due = [item for item in objects if not state.done(item.key)]
    size = sum(item.file["size"] for item in due)
    say(f"content: {len(due)} objects to fetch, {size:,} bytes ({len(objects) - len(due)} were verified before)")
    executor = ThreadPoolExecutor(_THREADS)
    try:
        checked = executor.map(lambda item: (item, list(_check(reader, entries, ledger, item))), due)
        for count, (item, failures) in enumerate(checked, start=1):
            if count % _SAID_EVERY == 0:
                say(f"  {count} of {len(due)} objects")
            if not failures:
                state.mark(item.key)
            for failure in failures:
                for number in {place[0] for place in item.places}:
                    paths = [path for place, path in item.places if place == number]
                    reports[number].failures += [
                        Failure(failure.name, LEVEL, failure.message, failure.file or path) for path in paths
                    ]
    except (RemoteError, InputError, BudgetSpentError) as error:
        # One is enough: the others would wait for the same remote.
        for report in reports:
            report.gaps.append(gap(LEVEL, error))
    finally:
        executor.shutdown(cancel_futures=True)


def gap(level: str, error: RemoteError | InputError | BudgetSpentError) -> Gap:
    """What could not be checked because of an error."""
    if isinstance(error, BudgetSpentError):
        return Gap(level, "budget", str(error))
    return Gap(level, "remote" if isinstance(error, RemoteError) else "access", error.what)


def _objects(entries: Sequence[Entry]) -> list[_Object]:
    found: dict[str, _Object] = {}
    for number, entry in enumerate(entries):
        for path, file in entry.files.items():
            # releases.json is compared with the ledger too, a release at a time.
            key = f"content {'lfs' if file['lfs'] else 'git'} {file['oid']}" + (
                f" {entry.tag}" if path == RELEASES else ""
            )
            found.setdefault(key, _Object(key, file, [])).places.append((number, path))
    return list(found.values())


def _check(reader: HubReader, entries: Sequence[Entry], ledger: Sequence[Entry], item: _Object) -> Iterator[Failure]:
    number, path = item.places[0]
    entry = entries[number]
    body = io.BytesIO() if path == RELEASES else None
    digest = reader.fetch(path, str(entry.revision), int(item.file["size"]), body)
    failure = judge(item.file, digest)
    if failure is not None:
        yield failure
    elif body is not None:
        yield from _releases(entry, ledger, body.getvalue())


def judge(file: Mapping[str, Any], digest: Digest | None) -> Failure | None:
    """What is wrong with the bytes that came for a file of the ledger; `digest` is None where none came."""
    if digest is None:
        what = "its LFS pointer is listed, and its object is lost" if file["lfs"] else "it is listed, and cannot be had"
        return Failure(findings.FILE_MISSING, LEVEL, what)
    if digest.sha256 == file["sha256"] and (file["lfs"] or digest.blob == file["oid"]):
        return None
    if digest.head.startswith(_POINTER):
        what = f"an LFS pointer comes instead of the {file['size']:,} bytes of the file"
        return Failure(findings.POINTER_WITHOUT_OBJECT, LEVEL, what)
    what = f"sha256 {digest.sha256} ({digest.size:,} bytes); it was published as {file['sha256']} ({file['size']:,})"
    return Failure(findings.BYTES_CHANGED, LEVEL, what)


def _releases(entry: Entry, ledger: Sequence[Entry], content: bytes) -> Iterator[Failure]:
    """The published releases.json, whose bytes are proved, against what the ledger says of the same releases."""
    try:
        document = documents.parse(content)
    except ValueError:
        return
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return
    if next(json_schemas.faults(document, "releases"), None) is not None:
        # Its bytes are those that were published; that they make no sense is what proof C2 says.
        return
    *earlier, own = document["releases"]
    known = {other.tag: other.revision for other in ledger if other.number < entry.number}
    wrong = [
        f"{release['tag']} is {release['revision']} there, and {known[release['tag']]} in the ledger"
        for release in earlier
        if release["revision"] is not None and known.get(release["tag"], release["revision"]) != release["revision"]
    ]
    # A commit does not hold its own sha; all else stands in both, so an edit of the ledger's last line is seen too.
    wrong += [
        f"the {key} of {entry.tag} is {own.get(key)!r} there, and {entry.release.get(key)!r} in the ledger"
        for key in sorted({*own, *entry.release} - {"revision", "data_revision"})
        if own.get(key) != entry.release.get(key)
    ]
    for message in wrong:
        yield Failure(findings.LEDGER_BROKEN, LEVEL, f"the published releases.json: {message}", RELEASES)
