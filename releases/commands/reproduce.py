"""`release reproduce`: a published release, built again and compared byte for byte."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.build import build
from builder.runner import local
from builder.steps import Steps
from provenance.errors import InputError, Where
from releases.fetched import fetch_tree
from releases.ledger.chain import find, ledger_path, read_ledger
from releases.reproduce import compare, request_of, upstream_changed
from releases.terminal import print_json, say
from releases.verify.hub import HubReader
from releases.verify.paced import Paced
from releases.verify.target import open_hub

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
    if entry.revision is None:
        raise InputError(f"the ledger has no revision of {tag}", where=Where(str(path)), remedy="run release adopt.")
    with tempfile.TemporaryDirectory(prefix="release-reproduce-", ignore_cleanup_errors=True) as folder:
        published = Path(folder) / "published"
        with open_hub(to or chosen.repo, chosen.repo) as target, Paced(REQUESTS).client():
            reader = HubReader(target)
            say(f"fetch {tag} ({entry.revision}) from {target.name}")
            listed = reader.files(entry.revision)
            if listed is None:
                raise InputError(
                    f"the remote has no commit {entry.revision}",
                    where=Where(target.name),
                    remedy="`release verify` says what happened to the release.",
                )
            fetch_tree(reader, entry.revision, listed, published, Path(folder) / "objects")
        request = request_of(published, entry, entries, chosen)
        differences = list(upstream_changed(request))
        report = build(request, out or Path(folder) / "rebuilt", lambda: local(workers), Steps(time.perf_counter, say))
        differences += compare(published, Path(report["tree"]))
    document: dict[str, Any] = {
        "tag": tag,
        "revision": entry.revision,
        "files": len(listed),
        "identical": not differences,
        "differences": [vars(item) for item in differences],
        "tree": report["tree"] if out is not None else None,
    }
    if json:
        print_json(document)
    for item in differences:
        say(f"  {item.file}: {item.why}")
    if differences:
        say(f"{tag}: {len(differences)} of {len(listed)} files differ")
        raise typer.Exit(3)
    say(f"{tag}: reproduced, all {len(listed)} files are identical")
