"""`release withdraw`: the tree of a release that says that another one is bad."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from builder.benchmark import DEFAULT, load_benchmark
from builder.digests import sha256_file
from builder.layout import MANIFEST
from builder.withdrawal import reissue
from provenance.errors import InputError, UsageError, Where
from releases.ledger.chain import find, ledger_path, read_ledger
from releases.ledger.status import statuses
from releases.numbering import next_release
from releases.terminal import as_typed, print_json, say

_LONGEST = 300


def withdraw(
    tag: Annotated[str, typer.Argument(help="The release that is bad.")],
    why: Annotated[str, typer.Option(help="Why, in one line: the card shows it.")],
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    out: Annotated[Path, typer.Option(help="The folder of release trees; the last release's lies there.")] = Path(
        "dist"
    ),
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Prepare a card-only release that marks TAG as withdrawn, for `release publish`; TAG itself stays loadable."""
    chosen = load_benchmark(benchmark)
    path = ledger_path(chosen, ledger)
    entries = read_ledger(path)
    bad = find(entries, tag, path)
    reason = " ".join(why.split())
    if not reason or len(reason) > _LONGEST:
        raise UsageError(f"--why has {len(reason)} characters", remedy=f"say why in 1 to {_LONGEST} characters.")
    known = dict(zip((entry.tag for entry in entries), statuses(entries), strict=True))[bad.tag]
    if known.why is not None:
        raise UsageError(f"{tag} is withdrawn already: {known.why}", remedy="there is nothing to do.")
    last = entries[-1]
    tree = out / last.tag
    manifest = tree / MANIFEST
    if not manifest.is_file() or sha256_file(manifest) != last.manifest_sha256:
        raise InputError(
            f"the tree of the last release, {last.tag}, is not here as it was published",
            where=Where(str(tree)),
            remedy=f"fetch it: hf download {chosen.repo} --repo-type dataset --revision {last.revision or last.tag} "
            f"--local-dir {tree}",
        )
    report = reissue(tree, out, chosen, next_release(chosen, ledger), tag=tag, why=reason)
    if json:
        print_json(report)
    else:
        say(f"wrote {report['tree']}: the tables of {last.tag}, and documents that withdraw {tag}")
        say(f"next: release publish --tag {report['tag']}{as_typed(chosen, ledger=ledger, out=out)}")
