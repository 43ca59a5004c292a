"""`release results`: the leaderboards of a release tree, one's own run among them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from builder.leaderboard import VIEWS, View
from builder.ndcg import TIE_RULES, Metric, TieRule
from builder.own_run import read_run
from builder.results import Results, replay
from builder.results_text import as_csv, as_document, as_markdown, as_table, domain_labels, readings, remarks, title
from builder.tree import open_tree
from provenance.errors import UsageError
from provenance.shown import visible
from releases.named import benchmark_of
from releases.terminal import print_json, say

# A leaderboard is wider than a pipe's default of 80 columns; cut tables would be of no use.
_WIDTH_OF_A_PIPE = 160


def results(
    tree: Annotated[Path, typer.Argument(help="A release tree, e.g. dist/<tag>.")],
    metric: Annotated[
        Metric | None, typer.Option(help="Whose gains: rcp, qrel or count. Without: rcp and qrel.")
    ] = None,
    ties: Annotated[
        TieRule | None, typer.Option(help="Equal scores: a, by document id; b, the group's mean. Without: both.")
    ] = None,
    view: Annotated[View | None, typer.Option(help="Which queries: native or six-language. Without: both.")] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="A run of one's own: Parquet, CSV, JSONL, TREC, or a folder with a file a subset. Repeatable."
        ),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Also paired tests, bootstrap intervals, and what they say.")
    ] = False,
    format: Annotated[  # noqa: A002 - the option is called --format
        Literal["table", "json", "csv", "markdown"], typer.Option(help="What is written to stdout.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    benchmark: Annotated[
        str | None, typer.Option(help="An embedded benchmark, or a .toml file; by default the one that TREE names.")
    ] = None,
) -> None:
    """Show the leaderboards of TREE: every metric, tie rule and view, or those that the options name."""
    if statistics and not json and format in {"csv", "markdown"}:
        raise UsageError(
            f"--format {format} holds no statistics",
            remedy="use --json with --statistics, or the table without --format.",
        )
    chosen = benchmark_of(tree, benchmark)
    own = {}
    for path in run or []:
        file = path.name.split(".")[0] if not path.is_dir() else path.resolve().name
        # A file may be called what no text can hold.
        name = os.fsencode(file).decode("utf-8", "backslashreplace")
        if name in own:
            raise UsageError(f"two runs are called '{name}'", remedy="rename a file: its name is the system's name.")
        own[name] = read_run(path)
    found = replay(
        open_tree(tree),
        chosen,
        own,
        metrics=("rcp", "qrel") if metric is None else (metric,),
        ties=TIE_RULES if ties is None else (ties,),
        views=VIEWS if view is None else (view,),
        with_statistics=statistics,
    )
    labels = domain_labels(chosen)
    if json or format == "json":
        print_json(as_document(found))
    elif format == "csv":
        typer.echo(as_csv(found), nl=False)
    elif format == "markdown":
        typer.echo(as_markdown(found, labels), nl=False)
    else:
        _print_tables(found, labels, list(own))
    for remark in remarks(found):
        say(visible(f"note: {remark}"))


def _print_tables(found: Results, labels: dict[str, str], own: list[str]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_A_PIPE)
    for index, board in enumerate(found.tables):
        console.print(title(board), markup=False, emoji=False, soft_wrap=True)
        console.print(as_table(board, labels))
        for line in readings(board, own, found.statistics[index] if found.statistics else None):
            console.print(visible(line), markup=False, emoji=False, soft_wrap=True)
        console.print()
