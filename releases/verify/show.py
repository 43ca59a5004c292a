"""How a verification is shown: a table of pins by checks, every failure by name, a document, a page for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from builder import documents
from builder.card_numbers import code_span
from builder.markdown import literal, longest_run
from builder.output import whole_file
from provenance.shown import visible
from releases.verify.findings import LEDGER, LEDGER_BROKEN, MAIN, exit_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from releases.verify.findings import PinReport

_COLOURS = {"passed": "green", "failed": "red", "not checked": "yellow", "not adopted": "yellow"}
_SHOWN = 10
SUFFIXES = (".json", ".md")


def document(reports: Sequence[PinReport], levels: Sequence[str], facts: dict[str, Any]) -> dict[str, Any]:
    """The whole verification; `facts` are put beside it (what was verified, with what)."""
    return {
        **facts,
        "level": levels[-1],
        "exit_code": exit_code(reports),
        "reports": [report.document() for report in reports],
    }


def table(reports: Sequence[PinReport], levels: Sequence[str]) -> Table:
    """Pins by checks."""
    shown = Table(box=None, pad_edge=False)
    for name in ("pin", "revision", *levels):
        shown.add_column(name, no_wrap=True)
    for report in reports:
        cells = [Text(status, style=_COLOURS.get(status, "")) for status in _row(report, levels)]
        shown.add_row(Text(visible(report.tag)), Text(visible(report.revision or "")[:12]), *cells)
    return shown


def _row(report: PinReport, levels: Sequence[str]) -> list[str]:
    return [report.status(level) if level in report.levels else "" for level in levels]


def lines(reports: Sequence[PinReport]) -> Iterator[str]:
    """Every failure by name, and what could not be checked."""
    for report in reports:
        if report.withdrawn is not None:
            yield f"{report.tag}: withdrawn: {report.withdrawn}"
        if not report.adopted:
            yield f"{report.tag}: not adopted: run `release adopt`; it neither passes nor fails"
        for name in dict.fromkeys(failure.name for failure in report.failures):
            found = [failure for failure in report.failures if failure.name == name]
            yield f"{report.tag}: {name} ({len(found)})"
            for failure in found[:_SHOWN]:
                yield f"    {failure.level}: {failure.file + ': ' if failure.file else ''}{failure.message}"
            if len(found) > _SHOWN:
                yield f"    ... and {len(found) - _SHOWN} more (--report FILE.json has all)"
        for gap in dict.fromkeys(report.gaps):
            yield f"{report.tag}: {gap.level} not checked ({gap.kind}): {gap.reason}"


def summary(reports: Sequence[PinReport], requests: int) -> str:
    """One line: how many pins, how many failures."""
    pins = [report for report in reports if report.tag not in {LEDGER, MAIN}]
    failures = sum(len(report.failures) for report in reports)
    good = sum(not report.failures and all(s == "passed" for s in _row(report, report.levels)) for report in pins)
    return f"{good} of {len(pins)} pins verified, {failures} failures, {requests:,} requests"


def next_step(reports: Sequence[PinReport]) -> str | None:
    """What a person does next; None where all is well."""
    if any(failure.name == LEDGER_BROKEN for report in reports for failure in report.failures):
        return (
            "first restore the ledger from git, or get its newest version, and verify again; what is still wrong "
            "then is wrong on the remote."
        )
    return {
        5: "the remote is not what was published: compare it with a clone, restore tags and history from one, and tell "
        "whoever has write access; the ledger says what was there.",
        3: "see above: mend what does not load, or restore the ledger from git.",
        4: "see above: what cannot be read, or is not adopted, cannot be verified.",
        6: "run the same command again: it goes on from what was verified.",
    }.get(exit_code(reports))


def markdown(reports: Sequence[PinReport], levels: Sequence[str], facts: dict[str, Any]) -> str:
    """A page for a job's summary, or an issue."""
    head = ["pin", "revision", *levels]
    rows = [[code_span(report.tag), code_span(report.revision), *_row(report, levels)] for report in reports]
    said = "\n".join(visible(line) for line in lines(reports))
    fence = "`" * max(3, longest_run(said, "`") + 1)
    return "\n".join(
        [
            f"# Verification of {literal(facts['place'])}",
            "",
            "| " + " | ".join(head) + " |",
            "|" + " --- |" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
            summary(reports, facts["requests"]),
            *(["", f"{fence}text", said, fence] if said else []),
            "",
        ]
    )


def write(reports: Sequence[PinReport], levels: Sequence[str], facts: dict[str, Any], path: Path) -> None:
    """The report as a file: `.json`, or `.md`.

    Raises:
        InputError: it cannot be written.
    """
    text = (
        documents.dump(document(reports, levels, facts)) if path.suffix == ".json" else markdown(reports, levels, facts)
    )
    with whole_file(path, "--report") as work:
        work.write_text(text, encoding="utf-8", newline="\n")
