"""`release tasks`: the mteb tasks of a release, or their definitions for a pull request to mteb."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder import for_mteb as definitions
from builder import tasks as task_file
from builder.layout import RELEASES
from builder.tree import open_tree
from provenance.errors import DataError, UsageError, Where
from releases.ledger.chain import ledger_path, read_ledger
from releases.named import benchmark_of
from releases.terminal import print_json, show

if TYPE_CHECKING:
    from builder.benchmark import Benchmark

_COMMIT = re.compile(r"[0-9a-f]{40}")


def tasks(
    tree: Annotated[Path, typer.Argument(help="A release tree, e.g. dist/<tag>.")],
    for_mteb: Annotated[
        bool, typer.Option("--for-mteb", help="Print the Python definitions for a pull request to mteb.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="The commit that mteb is to pin; by default the ledger's, for the tree's tag.")
    ] = None,
    merged: Annotated[
        list[int] | None, typer.Option(help="The number of a release whose tasks mteb has already. Repeatable.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="An embedded benchmark, or a .toml file; by default the one that TREE names.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """List the mteb tasks of TREE, or print their definitions for mteb."""
    chosen = benchmark_of(tree, benchmark)
    own = _own(tree)
    if not for_mteb:
        _list(chosen, own, as_json=json)
        return
    if revision is not None and _COMMIT.fullmatch(revision) is None:
        raise UsageError(
            "mteb pins commits: --revision takes a full sha",
            where=Where(value=revision),
            remedy="`release pins` names each release's.",
        )
    unknown = [number for number in merged or [] if not 0 < number < own["number"]]
    if unknown:
        raise UsageError(
            f"release {unknown[0]} is not before release {own['number']}",
            where=Where(value=unknown[0]),
            remedy="--merged names earlier releases whose tasks mteb has already.",
        )
    text = definitions.render(
        chosen,
        number=own["number"],
        revision=revision or _published(chosen, own["tag"], ledger),
        merged=merged or [],
    )
    if json:
        print_json({"tag": own["tag"], "python": text})
    else:
        typer.echo(text, nl=False)


def _own(tree: Path) -> dict[str, Any]:
    """The tree's own entry of releases.json."""
    entries = open_tree(tree).entries
    own = dict(entries[-1]) if entries else {}
    if type(own.get("number")) is not int or not isinstance(own.get("tag"), str):
        raise DataError(
            "the tree does not say which release it is",
            where=Where(str(tree / RELEASES), column="releases"),
            remedy="run `release validate` on the tree.",
        )
    return own


def _list(benchmark: Benchmark, own: dict[str, Any], *, as_json: bool) -> None:
    entries = task_file.metadata(benchmark, own["tag"])
    if as_json:
        print_json({"tag": own["tag"], "tasks": entries})
        return
    for name, entry in entries.items():
        show(f"{name}  {entry['category']:<4}  {len(entry['eval_langs'])} subsets  {own['tag']}")


def _published(benchmark: Benchmark, tag: str, ledger: Path | None) -> str:
    """The commit of a tag, from the ledger.

    Raises:
        UsageError: the ledger has no commit for it.
    """
    for entry in read_ledger(ledger_path(benchmark, ledger)):
        if entry.tag == tag and entry.revision is not None:
            return entry.revision
    raise UsageError(
        f"the ledger has no commit of '{tag}', and mteb pins commits",
        remedy="publish the release first, or name the commit with --revision.",
    )
