"""`release validate`: every proof over a release tree."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from builder import report
from builder.fetch import fetch_upstream
from builder.proofs.facts import Facts
from builder.validate import Validation
from builder.validate import validate as run_proofs
from provenance.errors import InputError, ReleaseError, UsageError, Where
from provenance.shown import quoted, visible
from releases.ledger.chain import ledger_path, read_ledger
from releases.named import benchmark_of
from releases.remote_validate import pins_of, plain_tree
from releases.terminal import print_json, say, stderr

if TYPE_CHECKING:
    from builder.benchmark import Benchmark
    from builder.proofs.outcome import Outcome

_COLOURS = {"passed": "green", "failed": "red", "not provable": "yellow"}
_NEEDS_UPSTREAM = ("J2", "U1")
_FEW = 5


def validate(
    tree: Annotated[str, typer.Argument(help="A release tree, or a published release: owner/name@revision.")],
    against: Annotated[str | None, typer.Option(help="The predecessor: a tree, or owner/name@revision.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="An embedded benchmark, or a .toml file; by default the one the tree names.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    proof: Annotated[list[str] | None, typer.Option(help="Run this proof only (may be repeated).")] = None,
    report_file: Annotated[
        Path | None, typer.Option("--report", help="Write every failure to this .parquet or .json file.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Prove a release tree: every file, row, id, gain and count, against upstream too where it can be reached."""
    if report_file is not None and report_file.suffix not in {".parquet", ".json"}:
        raise UsageError("a report is .parquet or .json", where=Where(str(report_file)), remedy="name the file so.")
    asked = [name.upper() for name in proof or ()]
    with ExitStack() as stack:
        folder = stack.enter_context(plain_tree(tree))
        before = Facts(stack.enter_context(plain_tree(against))) if against is not None else None
        chosen = _benchmark(folder, benchmark)
        entries = read_ledger(ledger_path(chosen, ledger)) if chosen is not None else ()
        facts = Facts(
            folder,
            benchmark=chosen,
            upstream=_upstream(chosen, asked),
            against=before,
            published=pins_of(entries),
        )
        found = run_proofs(facts, asked, clock=time.perf_counter, say=say)
    # As it was named, wherever it was fetched to.
    result = replace(found, tree=tree)
    if report_file is not None:
        report.write(result, report_file, strict=strict)
    if json:
        print_json(report.document(result, strict=strict))
    _summarise(result, report_file, strict=strict)
    if not result.holds(strict=strict):
        raise typer.Exit(3)


def _benchmark(tree: Path, name: str | None) -> Benchmark | None:
    try:
        return benchmark_of(tree, name)
    except ReleaseError as error:
        if name is not None:
            raise
        say(f"proofs that need the benchmark file are not provable: {error.what} (give --benchmark)")
        return None


def _upstream(benchmark: Benchmark | None, asked: list[str]) -> dict[str, Path]:
    """Upstream's folders that can be reached.

    Raises:
        InputError: a proof was asked for by name that needs one that cannot be reached.
    """
    if benchmark is None:
        return {}
    reached: dict[str, Path] = {}
    lost: InputError | None = None
    for name in benchmark.domains:
        try:
            reached[name] = fetch_upstream(benchmark, name).path
        except InputError as error:
            lost = error
            # What one address of a network cannot give, the next ones would only be slow to refuse.
            if "://" in benchmark.domains[name].upstream:
                break
    if lost is not None and set(asked) & set(_NEEDS_UPSTREAM):
        raise lost
    if lost is not None:
        say(f"upstream cannot be reached, so J2 and U1 are not provable: {lost.what} [{lost.where}]")
    return reached


def _summarise(result: Validation, report_file: Path | None, *, strict: bool) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("proof", "status", "rows", "files", "queries", "seconds"):
        table.add_column(name, justify="left" if name in {"proof", "status"} else "right", no_wrap=True)
    for outcome in result.outcomes:
        covered = outcome.coverage
        status = Text(outcome.status, style=_COLOURS[outcome.status])
        counts = (f"{covered.rows:,}", f"{covered.files:,}", f"{covered.queries:,}", f"{outcome.seconds:.1f}")
        table.add_row(outcome.proof, status, *counts)
    stderr.print(table)
    for outcome in result.outcomes:
        _details(outcome)
    passed, failed, open_ = (result.named(status) for status in ("passed", "failed", "not provable"))
    say(
        f"\n{result.tree}: {len(passed)} proved, {len(failed)} failed, {len(open_)} not provable; "
        f"{result.failures:,} failures, {result.warnings} warnings"
    )
    if result.failures and report_file is None:
        say("next: --report FILE.parquet keeps every failure with file, row, column and value")
    elif report_file is not None:
        say(f"report: {report_file}")
    if strict and result.warnings and not result.failures:
        say("warnings fail because of --strict")


def _details(outcome: Outcome) -> None:
    for gap in outcome.gaps[:_FEW]:
        say(visible(f"{outcome.proof} not provable: {gap}"))
    if len(outcome.gaps) > _FEW:
        say(f"{outcome.proof} not provable: ... and {len(outcome.gaps) - _FEW} more")
    shown = [(name, value) for name, value in outcome.measures.items() if value and _is_shown(name)]
    if shown:
        say(f"{outcome.proof} measured: " + ", ".join(f"{name} {value:,.6g}" for name, value in shown))
    for named in dict.fromkeys(warning.rule for warning in outcome.warnings):
        messages = [warning.message for warning in outcome.warnings if warning.rule == named]
        for message in messages[:_FEW]:
            say(visible(f"{outcome.proof} warning, {named}: {message}"))
        if len(messages) > _FEW:
            say(f"{outcome.proof} warning, {named}: ... and {len(messages) - _FEW} more (--json lists all)")
    counts = dict(outcome.failures.group_by("rule").len().iter_rows())
    for rule, rows in report.first_a_rule(outcome.failures).group_by("rule", maintain_order=True):
        say(f"{outcome.proof} {rule[0]}: {counts[rule[0]]:,} failure(s)")
        for failure in rows.iter_rows(named=True):
            say(f"    {_line(failure)}")
        if counts[rule[0]] > rows.height:
            say(f"    ... and {counts[rule[0]] - rows.height:,} more")


def _is_shown(name: str) -> bool:
    """Measures of single domains are in the report; the terminal shows those of the whole."""
    return ": " not in name or name.startswith("all domains: ")


def _line(failure: dict[str, object]) -> str:
    ids = [quoted(str(failure[name]), name) for name in ("query-id", "corpus-id") if failure[name] is not None]
    where = Where(
        None if failure["file"] is None else str(failure["file"]),
        failure["row"] if isinstance(failure["row"], int) else None,
        None if failure["column"] is None else str(failure["column"]),
        failure["value"],
    )
    place = str(where) or str(failure["config"])
    line = f"{place}{' (' + ', '.join(ids) + ')' if ids else ''}: {failure['message']}"
    return visible(line)
