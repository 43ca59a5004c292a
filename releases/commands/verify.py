"""`release verify`: every pinned release still is what was published."""

from __future__ import annotations

import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.demo import default_cache
from provenance.errors import DataError, UsageError, Where
from provenance.shown import visible
from releases.ledger.chain import find, head_digest, ledger_path, read_ledger
from releases.terminal import print_json, say, stderr
from releases.verify import show
from releases.verify.findings import LEDGER, LEDGER_BROKEN, LEVELS, Failure, PinReport, exit_code
from releases.verify.run import Asked
from releases.verify.run import verify as run_verify
from releases.verify.state import State
from releases.verify.target import open_hub

if TYPE_CHECKING:
    from collections.abc import Sequence

REQUESTS = 20_000


def verify(
    pin: Annotated[
        str | None, typer.Option(help="Verify this tag only; every release of the ledger by default.")
    ] = None,
    level: Annotated[str, typer.Option(help=f"One of {', '.join(LEVELS)}; each includes those before it.")] = "ledger",
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    repo: Annotated[str | None, typer.Option(help="owner/name on the Hub; the benchmark's by default.")] = None,
    to: Annotated[str | None, typer.Option(help="Where it was published: hf:owner/name or local:DIR.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    requests: Annotated[int, typer.Option(min=1, help="How many requests may be made.")] = REQUESTS,
    python: Annotated[
        Path | None, typer.Option(help="Load with this interpreter, whose datasets may be of another version.")
    ] = None,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write a .json or .md report.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Prove that what was published is still there: by the ledger, by content, by loading it.

    Exit code 5: the remote is not what was published; 3: a release does not load, or the ledger is broken; 4:
    something may not be read, or nothing is adopted; 6: the remote failed or the requests are spent, run it again.
    """
    if level not in LEVELS:
        raise UsageError(f"there is no level '{level}'", remedy=f"name one of {', '.join(LEVELS)}.")
    if repo is not None and to is not None:
        raise UsageError("--repo and --to both say where", remedy="name one of them.")
    if report_file is not None and report_file.suffix not in show.SUFFIXES:
        raise UsageError("a report is .json or .md", where=Where(str(report_file)), remedy="name the file so.")
    chosen = load_benchmark(benchmark)
    path = ledger_path(chosen, ledger)
    asked = Asked(level, pin, str(python or sys.executable), requests)
    place = to or repo or chosen.repo
    facts: dict[str, Any] = {
        "benchmark": chosen.name,
        "place": place,
        "ledger": str(path),
        "datasets": metadata.version("datasets") if python is None else None,
        "requests": 0,
    }
    try:
        entries = read_ledger(path)
    except DataError as error:
        broken = PinReport(LEDGER, levels=("ledger",), failures=[Failure(LEDGER_BROKEN, "ledger", str(error))])
        _end([broken], asked, facts, report_file, json=json)
        return
    if pin is not None:
        find(entries, pin, path)
    if not entries:
        say(f"the ledger {path} is empty: nothing was published")
    state = State(default_cache(), head_digest(entries), f"{place} {facts['datasets']}", time.time)
    with open_hub(place, chosen.repo) as target:
        facts["place"] = target.name
        try:
            reports, facts["requests"] = run_verify(entries, target, asked, state, say)
        except BaseException:
            state.keep()
            raise
    if any(gap.kind != "optional" for report in reports for gap in report.gaps):
        state.keep()
    else:
        state.remove()
    _end(reports, asked, facts, report_file, json=json)


def _end(
    reports: Sequence[PinReport], asked: Asked, facts: dict[str, Any], report_file: Path | None, *, json: bool
) -> None:
    if report_file is not None:
        show.write(reports, asked.levels, facts, report_file)
    if json:
        print_json(show.document(reports, asked.levels, facts))
    for line in show.lines(reports):
        say(visible(line))
    stderr.print(show.table(reports, asked.levels))
    say(f"{facts['place']}: {show.summary(reports, facts['requests'])}")
    advice = show.next_step(reports)
    if advice is not None:
        say(f"next: {advice}")
        raise typer.Exit(exit_code(reports))
