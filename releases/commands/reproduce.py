"""`release reproduce`: a published release, built again and compared byte for byte."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.runner import local
from builder.steps import Steps
from provenance.errors import InputError, Where
from releases.fetched import fetch_tree
from releases.ledger.chain import find, ledger_path, read_ledger
from releases.reproduce import Again, compare, read_record
from releases.terminal import print_json, say
from releases.verify.hub import HubReader
from releases.verify.paced import Paced
from releases.verify.target import open_hub

if TYPE_CHECKING:
    from releases.ledger.chain import Entry

REQUESTS = 20_000


def reproduce(
    tag: Annotated[str, typer.Argument(help="The release: a tag of the ledger.")],
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    to: Annotated[str | None, typer.Option(help="Where it was published: hf:owner/name or local:DIR.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the new tree in this folder; it is removed by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not depend on it.")] = os.cpu_count()
    or 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Build a published release again from its provenance and from upstream at its pins; say which files differ."""
    chosen = load_benchmark(benchmark)
    path = ledger_path(chosen, ledger)
    entries = read_ledger(path)
    entry = find(entries, tag, path)
    with tempfile.TemporaryDirectory(prefix="release-reproduce-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        with open_hub(to or chosen.repo, chosen.repo) as target, Paced(REQUESTS).client():
            reader = HubReader(target)
            published = _fetch(reader, entry, folder)
            recorded = read_record(published, tag)
            before = [
                (item, _fetch(reader, item, folder) if recorded.made_on else None)
                for item in entries
                if item.number == entry.number - 1
            ]
        again = Again(published, recorded, entry, before[0] if before else None, chosen)
        tree, differences = again.make(out or folder / "rebuilt", lambda: local(workers), Steps(time.perf_counter, say))
        differences += compare(published, tree)
        files = sum(path.is_file() for path in published.rglob("*"))
    document: dict[str, Any] = {
        "tag": tag,
        "revision": entry.revision,
        "files": files,
        "identical": not differences,
        "differences": [vars(item) for item in differences],
        "tree": str(tree) if out is not None else None,
    }
    if json:
        print_json(document)
    for item in differences:
        say(f"  {item.file}: {item.why}")
    if differences:
        say(f"{tag}: {len(differences)} of {files} files differ")
        raise typer.Exit(3)
    say(f"{tag}: reproduced, all {files} files are identical")


def _fetch(reader: HubReader, entry: Entry, folder: Path) -> Path:
    """The tree of a release as it was published."""
    if entry.revision is None:
        raise InputError(f"the ledger has no revision of {entry.tag}", remedy="run release adopt.")
    say(f"fetch {entry.tag} ({entry.revision}) from {reader.target.name}")
    listed = reader.files(entry.revision)
    if listed is None:
        raise InputError(
            f"the remote has no commit {entry.revision}",
            where=Where(reader.target.name),
            remedy="`release verify` says what happened to the release.",
        )
    tree = folder / "published" / entry.tag
    fetch_tree(reader, entry.revision, listed, tree, folder / "objects")
    return tree
