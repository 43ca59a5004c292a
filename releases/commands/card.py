"""`release card`: the card that a tree's tables give, printed or compared with the one that lies there."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from builder import card as cards
from builder import documents
from builder.card_facts import read_facts
from builder.layout import MANIFEST, README
from builder.manifest import configs_of
from provenance.errors import DataError, InputError, UsageError, Where
from releases.named import benchmark_of
from releases.terminal import print_json, say, show


def card(
    tree: Annotated[Path, typer.Argument(help="A release tree, e.g. dist/<tag>.")],
    draft: Annotated[bool, typer.Option("--draft", help="Print the card on stdout; nothing is written.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare it with the tree's README.md and show what differs.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout: the card, or the lines that differ.")
    ] = False,
    benchmark: Annotated[
        str | None, typer.Option(help="An embedded benchmark, or a .toml file; by default the one that TREE names.")
    ] = None,
) -> None:
    """Render the card of TREE from its tables: print it (--draft) or compare it with the tree's (--check)."""
    if draft == check:
        raise UsageError("name one of --draft and --check", remedy="--draft prints the card, --check compares it.")
    if not (tree / MANIFEST).is_file():
        raise InputError(
            "the tree has no manifest, so its configs are not known",
            where=Where(str(tree / MANIFEST)),
            remedy="name a tree that `release build` wrote, e.g. dist/<tag>.",
        )
    chosen = benchmark_of(tree, benchmark)
    facts = read_facts(tree, chosen, configs_of(documents.read_as(tree / MANIFEST, "manifest")))
    rendered = cards.render(facts, cards.figures_of(tree))
    if check:
        _check(tree / README, rendered.text, json=json)
    elif json:
        numbers = [
            {"line": number.line, "text": number.text, "kind": number.kind, "source": number.source}
            for number in rendered.numbers
        ]
        print_json({"card": rendered.text, "numbers": numbers})
    else:
        typer.echo(rendered.text, nl=False)


def _check(path: Path, rendered: str, *, json: bool) -> None:
    if not path.is_file():
        raise InputError("the tree has no card", where=Where(str(path)), remedy="build the tree again.")
    try:
        present = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the card is not UTF-8: {error}", where=Where(str(path))) from error
    # Not splitlines: a card's lines end at a line feed and nowhere else.
    before, after = (text.replace("\n", "\n\0").split("\0") for text in (present, rendered))
    lines = list(difflib.unified_diff(before, after, f"{README} (in the tree)", f"{README} (from the tables)"))
    if json:
        print_json({"same": not lines, "diff": "".join(lines)})
    elif lines:
        show("".join(lines).removesuffix("\n"))
    if lines:
        raise DataError(
            "the card is not the one that the tree's tables give",
            where=Where(str(path)),
            remedy="build the tree again; hand-written text belongs into the benchmark file's card.verbatim parts.",
        )
    say(f"{path} is the card that the tree's tables give")
