"""`release build`: inputs become a release tree."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.build import Request
from builder.build import build as build_tree
from builder.fetch import fetch_inputs, fetch_upstream
from builder.runner import local
from builder.steps import Steps
from provenance.shown import visible
from releases.named import predecessor
from releases.numbering import next_release
from releases.scheduler import cluster
from releases.terminal import as_typed, print_json, say

if TYPE_CHECKING:
    from builder.benchmark import Benchmark


def build(
    judge: Annotated[str, typer.Option(help="The judge whose gains are released: a name in the benchmark file.")],
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    inputs: Annotated[
        str | None, typer.Option(help="Judge inputs: a folder or URI; the judge's own by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of release trees.")] = Path("dist"),
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    against: Annotated[
        str | None,
        typer.Option(help="The predecessor: a tree or owner/name@revision; the card says what changed since."),
    ] = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the card's figures.")] = True,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not depend on it.")] = os.cpu_count()
    or 1,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask cluster's address, to work there and not in processes here.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Build a release tree into OUT/<tag> from upstream data and judge inputs, all or nothing."""
    chosen = load_benchmark(benchmark)
    numbering = next_release(chosen, ledger)
    request = Request(
        benchmark=chosen,
        judge=judge,
        inputs=fetch_inputs(chosen.judge(judge), inputs),
        upstream={name: fetch_upstream(chosen, name) for name in chosen.domains},
        numbering=numbering,
        figures=figures,
        against=None if against is None else predecessor(against, numbering),
    )
    report = build_tree(
        request,
        out,
        lambda: local(workers) if scheduler is None else cluster(scheduler),
        Steps(time.perf_counter, say),
    )
    if json:
        print_json(report)
    else:
        _summarise(report, chosen, ledger)


def _summarise(report: dict[str, Any], benchmark: Benchmark, ledger: Path | None) -> None:
    tree = report["tree"]
    say(f"\nbuilt {report['tag']} of {visible(benchmark.title)}")
    rows, seconds = sum(report["rows"].values()), sum(report["seconds"].values())
    say(f"  {len(report['rows'])} configs, {rows:,} rows, {seconds:.1f} s")
    say(f"  in {tree}")
    say(f"next: release validate {shlex.quote(tree)}{as_typed(benchmark, ledger=ledger)}")
