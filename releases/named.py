"""A release by the name that a person gives it: a tree on disk, or `owner/name@revision` on the Hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from builder import documents, sources
from builder.benchmark import load_benchmark
from builder.demo import default_cache
from builder.digests import sha256_file
from builder.layout import MANIFEST, RELEASES
from builder.sources import Source
from builder.tree import open_tree
from provenance.errors import DataError, InputError, UsageError, Where
from releases.terminal import say

if TYPE_CHECKING:
    from builder.benchmark import Benchmark
    from builder.releases_document import Numbering

_REVISION = re.compile(r"[^/@\s:]+/[^/@\s:]+@[^/@\s]+")


def benchmark_of(tree: Path, name: str | None) -> Benchmark:
    """The benchmark that was asked for, or the embedded one that the tree's releases.json names.

    Raises:
        InputError: the tree names none that is embedded, and none was asked for.
        DataError: its releases.json is no JSON object.
        BenchmarkError: the benchmark file is broken.
    """
    if name is not None:
        return load_benchmark(name)
    said = None
    if (tree / RELEASES).is_file():
        document = documents.read(tree / RELEASES)
        if not isinstance(document, dict):
            raise DataError(
                "not a JSON object",
                where=Where(str(tree / RELEASES)),
                remedy="`release validate` names what is wrong with the tree.",
            )
        said = document.get("benchmark")
    try:
        # Only an embedded one: a tree does not name files of this machine.
        return load_benchmark(str(said).replace("/", " ").removesuffix(".toml"))
    except InputError as error:
        raise InputError(
            "the tree does not name an embedded benchmark",
            where=Where(str(tree / RELEASES), column="benchmark", value=said),
            remedy="name its benchmark file with --benchmark.",
        ) from error


def locate(named: str) -> Path:
    """The folder of a release; one on the Hub is fetched at its commit.

    Raises:
        InputError: nothing is there.
        DataError, SafetyError: as `sources.resolve`.
    """
    if Path(named).is_dir():
        return Path(named)
    if _REVISION.fullmatch(named) is None:
        raise InputError(
            "no such folder, and no owner/name@revision either",
            where=Where(named),
            remedy="name a release tree, e.g. dist/<tag>, or a published release, e.g. owner/name@<tag>.",
        )
    say(f"fetching {named}")
    return sources.resolve(f"hf://datasets/{named}", cache=default_cache(), pinned=False).path


def predecessor(named: str, numbering: Numbering) -> Source:
    """The tree of the release before the one that is being built, as the ledger knows it.

    It is recorded by its tag and revision, so that the new tree does not depend on where the old one lies.

    Raises:
        UsageError: the ledger has no release before.
        InputError: nothing is there, or it has no manifest.
        DataError: another release lies there, or not as it was published.
    """
    if not numbering.earlier:
        raise UsageError("the ledger has no release before this one", remedy="build a first release without --against.")
    path, last = locate(named), numbering.earlier[-1]
    entries = open_tree(path).entries
    said = entries[-1].get("tag") if entries else None
    if said != last["tag"]:
        raise DataError(
            f"the predecessor is {last['tag']}, the tree says that it is {said}",
            where=Where(named),
            remedy="name the tree of the ledger's last release with --against.",
        )
    if not (path / MANIFEST).is_file():
        raise InputError("the predecessor has no manifest", where=Where(named), remedy="build without --against.")
    published = numbering.predecessor_files.get(MANIFEST)
    if published is not None and published != sha256_file(path / MANIFEST):
        raise DataError(
            f"this is not {last['tag']} as it was published: its manifest is another",
            where=Where(str(path / MANIFEST)),
            remedy="name the published tree: owner/name@<tag>.",
        )
    return Source(uri=last["tag"], revision=last["revision"], path=path)
