"""`release demo`: the whole life of a benchmark on this machine: three releases, published and verified."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.benchmark import load_benchmark
from provenance.errors import SafetyError, Where
from releases.commands.build import build
from releases.commands.publish import publish
from releases.commands.verify import verify
from releases.ledger.chain import read_ledger
from releases.terminal import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releases.ledger.chain import Entry

BENCHMARK = "demo"
_LIFE = (
    ("the first release", "simulated", None),
    ("a recalibration: answers that could not be read are read again", "simulated", "demo://pipeline-reread"),
    ("a second judge", "simulated-2", None),
)
"""What happens, the judge, and its inputs (its own without any)."""


def demo(
    out: Annotated[Path, typer.Option(help="The folder of trees, ledger and store.")] = Path("dist/demo"),
    level: Annotated[str, typer.Option(help="How the releases are verified, as of release verify.")] = "load",
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the cards' figures.")] = True,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not depend on it.")] = os.cpu_count()
    or 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Build, publish, recalibrate, publish, judge anew, publish, verify: all on this machine, with simulated judges.

    Run again, it goes on from what is there; when all three releases are there, it verifies them.
    """
    began = time.perf_counter()
    ledger, store = out / "ledger.jsonl", out / "hub"
    entries = read_ledger(ledger)
    if not entries and store.exists():
        raise SafetyError(
            "there is a store without its ledger",
            where=Where(str(out)),
            remedy="remove the folder, or name another with --out.",
        )
    chosen = load_benchmark(BENCHMARK)
    for number, (what, judge, inputs) in enumerate(_LIFE, start=1):
        tag = f"v{number}-{chosen.judge(judge).slug}"
        if number <= len(entries):
            say(f"release {number} is there: {entries[number - 1].tag}")
            continue
        say(f"\n== release {number}: {what}")
        build(
            judge=judge,
            benchmark=BENCHMARK,
            inputs=inputs,
            out=out,
            ledger=ledger,
            against=str(out / entries[-1].tag) if entries else None,
            figures=figures,
            workers=workers,
        )
        publish(
            tag=tag,
            to=f"local:{store}",
            benchmark=BENCHMARK,
            out=out,
            ledger=ledger,
        )
        entries = read_ledger(ledger)
    say(f"\n== every release is verified (level {level})")
    verify(
        level=level,
        benchmark=BENCHMARK,
        to=f"local:{store}",
        ledger=ledger,
    )
    if json:
        print_json(_document(out, entries))
    _say_what_next(out, entries, time.perf_counter() - began)


def _document(out: Path, entries: Sequence[Entry]) -> dict[str, Any]:
    return {
        "out": str(out),
        "ledger": str(out / "ledger.jsonl"),
        "store": str(out / "hub"),
        "releases": [
            {"tag": entry.tag, "revision": entry.revision, "kind": entry.release["kind"]} for entry in entries
        ],
    }


def _say_what_next(out: Path, entries: Sequence[Entry], seconds: float) -> None:
    last = entries[-1].tag
    common = f"--benchmark {BENCHMARK} --ledger {out}/ledger.jsonl"
    say(f"\nBuilt, published and verified in {seconds:.0f} s: 8 domains in 6 languages, small, with simulated judges")
    for entry in entries:
        say(f"  {entry.tag}: {entry.release['kind']}, commit {entry.revision}, tree {out / entry.tag}")
    say(f"Where: trees in {out}, the ledger {out}/ledger.jsonl, a Hub's store {out}/hub (git clone reads it)")
    say("Type next:")
    for command, why in (
        (f"results {out / last} --benchmark {BENCHMARK}", "its leaderboards"),
        (f"diff {out / entries[-2].tag if len(entries) > 1 else out / last} {out / last}", "what changed"),
        (f"validate {out / last} --benchmark {BENCHMARK}", "every proof"),
        (f"reproduce {last} {common} --to local:{out}/hub", "the same bytes again"),
        (f"hub serve {out}/hub", "load it with datasets and mteb"),
    ):
        say(f"  {_program()} {command}    # {why}")


def _program() -> str:
    """This command, as a person can type it from here."""
    called = Path(sys.argv[0])
    here = called.name == "release" and called.is_file() and called.resolve().is_relative_to(Path.cwd())
    return str(called.resolve().relative_to(Path.cwd())) if here else "release"
