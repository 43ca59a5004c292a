"""`release list`: every release and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.documents import present
from provenance.shown import visible
from releases.ledger.chain import ledger_path, read_ledger
from releases.ledger.status import statuses
from releases.terminal import print_json, say, show


def list_releases(
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """List every release of the ledger with its commit, judge and status."""
    chosen = load_benchmark(benchmark)
    entries = read_ledger(present(ledger) if ledger is not None else ledger_path(chosen))
    rows = [
        {
            "number": entry.number,
            "tag": entry.tag,
            "revision": entry.revision,
            "kind": entry.release["kind"],
            "judge": entry.release["judge"]["model"],
            "status": status.name,
            "withdrawn_because": status.why,
            "proved": entry.proved,
        }
        for entry, status in zip(entries, statuses(entries), strict=True)
    ]
    if json:
        print_json(rows)
        return
    if not rows:
        say(f"{visible(chosen.title)}: nothing is published yet")
        return
    for row in rows:
        show(f"{row['number']:>3}  {row['tag']}  {row['status']}")
        show(f"     commit {row['revision'] or 'not known'}")
        show(f"     {row['kind'] or 'kind not known'}; judge {visible(str(row['judge']))}")
        if row["withdrawn_because"] is not None:
            show(f"     withdrawn: {visible(row['withdrawn_because'])}")
