"""`release adopt`: releases that were published without this tool become the ledger's entries."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from builder.benchmark import DEFAULT, load_benchmark
from provenance.shown import plain
from releases.adopt import Adopted, Adoption, kept_entries, releases_of
from releases.ledger.chain import append, ledger_path, read_ledger, rewrite
from releases.proved import upstream_here
from releases.terminal import as_typed, print_json, say, stderr
from releases.verify.hub import HubReader
from releases.verify.paced import Paced
from releases.verify.target import open_hub

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releases.ledger.chain import Entry

REQUESTS = 20_000


def adopt(
    repo: Annotated[str, typer.Argument(help="owner/name on the Hub, or local:DIR.")],
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    ledger: Annotated[Path | None, typer.Option(help="The ledger to write.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Read a repository's releases into the ledger, with the proofs that hold; nothing on the remote is changed.

    A ledger whose entries are only noted (no tree, no files) is written anew; releases that a ledger lacks are added.
    """
    chosen = load_benchmark(benchmark)
    path = ledger_path(chosen, ledger)
    entries = read_ledger(path)
    with (
        open_hub(repo, chosen.repo) as target,
        Paced(REQUESTS).client(),
        tempfile.TemporaryDirectory(prefix="release-adopt-", ignore_cleanup_errors=True) as folder,
    ):
        reader = HubReader(target)
        _, tags = reader.refs()
        releases = releases_of(tags, target.name)
        kept = kept_entries(entries, releases, path)
        ignored = sorted(tags.keys() - {tag for _, tag, _ in releases})
        if ignored:
            say(f"tags that are no release (v<N>-<judge>): {', '.join(map(plain, ignored))}")
        done = Adoption(reader, chosen, upstream_here(chosen), Path(folder), say).adopt(kept, releases)
    replaced = len(entries) - len(kept)
    if done:
        _write(path, entries, kept, done)
    if json:
        print_json(_document(path, kept, done, replaced))
    _summarise(path, kept, done, replaced, as_typed(chosen, ledger=ledger, to=repo))


def _write(path: Path, before: Sequence[Entry], kept: Sequence[Entry], done: Sequence[Adopted]) -> None:
    """Add to the ledger; where nothing is kept, write it anew as a whole."""
    if not kept:
        rewrite(path, [item.entry for item in done], noted=before)
        return
    for item in done:
        append(path, item.entry)


def _document(path: Path, kept: Sequence[Entry], done: Sequence[Adopted], replaced: int) -> dict[str, Any]:
    return {
        "ledger": str(path),
        "kept": [entry.tag for entry in kept],
        "replaced": replaced,
        "adopted": [
            {
                "tag": item.entry.tag,
                "revision": item.entry.revision,
                "data_revision": item.entry.release.get("data_revision"),
                "tree": item.entry.tree,
                "files": len(item.entry.files),
                "proved": item.entry.proved,
                "proofs": {outcome.proof: outcome.status for outcome in item.proofs.outcomes},
            }
            for item in done
        ],
    }


def _summarise(path: Path, kept: Sequence[Entry], done: Sequence[Adopted], replaced: int, options: str) -> None:
    if not done:
        say(f"nothing to adopt: {path} has every release of the repository")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("release", "commit", "files", "proofs hold", "fail", "not provable"):
        table.add_column(name)
    for item in done:
        names = [", ".join(item.proofs.named(status)) or "none" for status in ("passed", "failed", "not provable")]
        table.add_row(Text(item.entry.tag), str(item.entry.revision)[:12], str(len(item.entry.files)), *names)
    stderr.print(table)
    if replaced:
        say(f"{replaced} entries of {path} only noted releases, and nothing of them was proved: they are replaced")
    elif kept:
        say(f"added after the {len(kept)} entries of {path}")
    say("a release of which a proof failed, or could not be made, is in the ledger as it was found; it is not proved")
    say(f"next: keep {path} in git, and run release verify --level content{options}")
