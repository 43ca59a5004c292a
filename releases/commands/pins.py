"""`release pins`: the releases and their revisions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.documents import present
from releases.ledger.chain import ledger_path, read_ledger
from releases.ledger.status import statuses
from releases.terminal import print_json, say, show


def pins(
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout: a list, for a CI matrix.")] = False,
) -> None:
    """Name every release that is pinned: tag and full commit sha, oldest first; by the ledger, no remote is asked."""
    chosen = load_benchmark(benchmark)
    entries = read_ledger(present(ledger) if ledger is not None else ledger_path(chosen))
    unknown = [entry.tag for entry in entries if entry.revision is None]
    if unknown:
        say(f"left out, their commits are not known: {', '.join(unknown)} (`release adopt` reads them)")
    rows = [
        {
            "number": entry.number,
            "tag": entry.tag,
            "revision": entry.revision,
            "pin": f"{chosen.repo}@{entry.revision}",
            "status": status.name,
        }
        for entry, status in zip(entries, statuses(entries), strict=True)
        if entry.revision is not None
    ]
    if json:
        print_json(rows)
    else:
        for row in rows:
            show(f"{row['tag']} {row['revision']}")
