"""A published release, built again from its own provenance and from upstream at the recorded pins, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import documents, manifest
from builder.assemble import Request
from builder.build import build
from builder.digests import sha256_file
from builder.fetch import fetch_upstream
from builder.layout import MANIFEST, RELEASES
from builder.releases_document import Numbering
from builder.sources import Source
from builder.withdrawal import reissue
from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from builder.benchmark import Benchmark
    from builder.runner import Runner
    from builder.steps import Steps
    from releases.ledger.chain import Entry


@dataclass(frozen=True)
class Difference:
    """A file that is not byte for byte the published one, and what is known of why."""

    file: str
    why: str


@dataclass(frozen=True)
class Recorded:
    """What a published release says of how it was made.

    `made_on` says whether the predecessor's tree is needed: its card compares itself with it, or it is the
    predecessor's tables with documents that withdraw a release.
    """

    manifest: Mapping[str, Any]
    earlier: tuple[Mapping[str, Any], ...]
    own: Mapping[str, Any]

    @property
    def made_on(self) -> bool:
        """See the class."""
        return "predecessor" in self.manifest["inputs"]["uris"] or bool(self.own.get("withdraws"))


def read_record(published: Path, tag: str) -> Recorded:
    """The record in a release's tree.

    Raises:
        InputError: it has none.
        DataError: it is of another form than this tool's.
    """
    if not (published / MANIFEST).is_file():
        raise InputError(
            f"{tag} has no {MANIFEST}: nothing says what it was made from",
            where=Where(tag),
            remedy="a release that was made elsewhere cannot be reproduced; `release validate` proves what it can.",
        )
    record = documents.read_as(published / MANIFEST, "manifest")
    releases = documents.read_as(published / RELEASES, "releases")
    *earlier, own = releases["releases"]
    return Recorded(record, tuple(earlier), own)


@dataclass(frozen=True)
class Again:
    """A release that is to be made again.

    Attributes:
        published: its tree.
        recorded: what it says of itself.
        entry: its ledger entry.
        before: the predecessor's entry, and its tree where that is needed.
        benchmark: its benchmark file.
    """

    published: Path
    recorded: Recorded
    entry: Entry
    before: tuple[Entry, Path | None] | None
    benchmark: Benchmark

    def make(
        self, out: Path, runners: Callable[[], AbstractContextManager[Runner]], steps: Steps
    ) -> tuple[Path, list[Difference]]:
        """Make it into `out`.

        Returns:
            The new tree; upstream files that are not those which it was made from.

        Raises:
            InputError: upstream cannot be reached.
            DataError: the benchmark file names another folder as upstream than the release was made from.
        """
        withdraws = self.recorded.own.get("withdraws")
        if withdraws:
            _, tree = self.before or (None, None)
            if tree is None:
                raise InputError("the ledger has no release before", where=Where(self.entry.tag))
            numbering = self._numbering()
            report = reissue(tree, out, self.benchmark, numbering, tag=withdraws["tag"], why=withdraws["why"])
            return Path(report["tree"]), []
        request = self._request()
        changed = list(upstream_changed(request))
        return Path(build(request, out, runners, steps)["tree"]), changed

    def _numbering(self) -> Numbering:
        files = self.before[0].files if self.before is not None else {}
        return Numbering(
            number=self.recorded.own["number"],
            earlier=self.recorded.earlier,
            predecessor_files={path: str(file["sha256"]) for path, file in files.items()},
        )

    def _request(self) -> Request:
        """The recorded judge, settings, numbering and upstream, with the release itself as judge inputs."""
        record = self.recorded.manifest
        uris = record["inputs"]["uris"]
        pinned = replace(
            self.benchmark,
            domains={
                name: _at_pin(self.benchmark, name, uris[f"upstream/{name}"]["uri"]) for name in self.benchmark.domains
            },
        )
        before, tree = self.before or (None, None)
        return Request(
            benchmark=pinned,
            judge=str(record["settings"]["judge"]),
            inputs=Source(self.entry.tag, self.entry.revision, self.published),
            upstream={name: fetch_upstream(pinned, name) for name in pinned.domains},
            numbering=self._numbering(),
            figures=bool(record["settings"]["figures"]),
            against=None if before is None or tree is None else Source(before.tag, before.revision, tree),
            record=manifest.Inputs(uris, record["inputs"]["files"]),
        )


def _at_pin(benchmark: Benchmark, name: str, recorded: str) -> Any:
    """A domain with the upstream that the release was made from."""
    domain = benchmark.domains[name]
    if recorded == domain.upstream_as_written:
        return domain
    if "://" not in recorded:
        raise DataError(
            f"the release was made from the folder '{recorded}', and the benchmark file names another",
            where=Where(benchmark.path, column=f"domains.{name}.upstream", value=domain.upstream_as_written),
            remedy="name the benchmark file of that release with --benchmark.",
        )
    return replace(domain, upstream=recorded, upstream_as_written=recorded)


def upstream_changed(request: Request) -> Iterator[Difference]:
    """Upstream files that are not those which the release was made from."""
    if request.record is None:
        return
    for name, digest in sorted(request.record.digests.items()):
        kind, _, rest = name.partition("/")
        if kind == "upstream":
            domain, _, inside = rest.partition("/")
            file = request.upstream[domain].path / inside
            found = sha256_file(file) if file.is_file() else None
            if found != digest:
                yield Difference(name, f"upstream is another now: sha256 {found}, it was {digest}")


def compare(published: Path, rebuilt: Path) -> Iterator[Difference]:
    """Each file that differs, and why as far as the two manifests say."""
    ours, theirs = (documents.read_as(tree / MANIFEST, "manifest") for tree in (rebuilt, published))
    for name in sorted(_names(published) | _names(rebuilt)):
        if not (rebuilt / name).is_file():
            yield Difference(name, "it was not made again")
        elif not (published / name).is_file():
            yield Difference(name, "it was not published")
        elif (published / name).read_bytes() != (rebuilt / name).read_bytes():
            yield Difference(name, _why(name, theirs, ours))


def _names(tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def _why(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    versions = theirs["tool"]["version"], ours["tool"]["version"]
    other = f" (made by version {versions[0]}, this is {versions[1]})" if versions[0] != versions[1] else ""
    if name == MANIFEST:
        return f"it describes the other files{other}"
    contents = [facts["files"].get(name, {}).get("content_sha256") for facts in (theirs, ours)]
    if contents[0] is not None and contents[0] == contents[1]:
        return f"the same rows in another encoding: another version of the Parquet writer{other}"
    return f"the {'rows differ' if contents[0] is not None else 'text differs'}{other}"
