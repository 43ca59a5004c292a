"""`release diff`: what changed between two releases."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from builder.diff.changelog import changelog
from builder.diff.compare import compare
from builder.diff.render import as_html, as_markdown, as_text
from builder.diff.report import blocks
from builder.diff.sentences import broken
from builder.diff.sides import open_side
from builder.steps import Steps
from provenance.errors import DataError, UsageError, Where
from releases.named import benchmark_of, locate
from releases.terminal import print_json, say


def diff(
    old: Annotated[str, typer.Argument(help="The earlier release: a tree, or owner/name@revision.")],
    new: Annotated[str, typer.Argument(help="The later release, likewise.")],
    benchmark: Annotated[
        str | None, typer.Option(help="An embedded benchmark, or a .toml file; by default the one that NEW names.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout: every number, unrounded.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown on stdout, e.g. for a step summary.")] = False,
    html: Annotated[bool, typer.Option("--html", help="One self-contained HTML page on stdout.")] = False,
    entry: Annotated[
        bool,
        typer.Option("--changelog", help="An entry for the dataset's CHANGELOG.md on stdout: the first sentences."),
    ] = False,
) -> None:
    """Show what changed from OLD to NEW: rows, gains, ideal lists, and which leaderboard claims still stand.

    Ends with exit code 3 where something changed that NEW must not change.
    """
    if json + markdown + html + entry > 1:
        raise UsageError("one format at a time", remedy="name one of --json, --markdown, --html and --changelog.")
    sides = (open_side(locate(old), old), open_side(locate(new), new))
    document = compare(*sides, benchmark_of(sides[1].tree.path, benchmark), Steps(time.perf_counter, say))
    if json:
        print_json(document)
    elif entry:
        typer.echo(changelog(document), nl=False)
    else:
        render = as_markdown if markdown else as_html if html else as_text
        typer.echo(render(blocks(document)), nl=False)
    for sentence in broken(document):
        raise DataError(
            sentence,
            where=Where(sides[1].label),
            remedy="run `release validate NEW --against OLD --proof C3`: it names every file, row, column and value.",
        )
