"""`release publish`: a built tree becomes one tagged commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from builder.benchmark import DEFAULT, load_benchmark
from provenance.errors import SafetyError
from releases.ledger.chain import ledger_path, read_ledger
from releases.plan import MOST_DELETES, Plan
from releases.progress import Progress
from releases.proved import prove
from releases.publish import WAS_DONE, Ledger, Situation, bring, report, survey
from releases.ready import Ready, read_ready
from releases.remote import Remote
from releases.retry import Retry
from releases.targets.address import open_target
from releases.terminal import as_typed, print_json, say, show


def publish(
    tag: Annotated[str, typer.Option(help="The release's tag; its tree is OUT/<tag>.")],
    to: Annotated[
        str | None, typer.Option(help="hf:owner/name, local:DIR or git:URL; the benchmark's repository by default.")
    ] = None,
    benchmark: Annotated[str, typer.Option(help="An embedded benchmark, or the path of a .toml file.")] = DEFAULT,
    out: Annotated[Path, typer.Option(help="The folder of release trees.")] = Path("dist"),
    ledger: Annotated[Path | None, typer.Option(help="The ledger of what was published.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and each call; make none.")] = False,
    allow_deletes: Annotated[int, typer.Option(min=0, help="How many files the release may delete.")] = MOST_DELETES,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Publish OUT/<tag> as one commit with one tag; run it again after any failure, it goes on from there."""
    chosen = load_benchmark(benchmark)
    path = ledger_path(chosen, ledger)
    entries = read_ledger(path)
    folder = out / tag
    ready = read_ready(folder, tag, chosen, entries)
    # A rehearsal elsewhere need not have releases that the Hub has, nor the Hub those of a rehearsal.
    on_hub = to is None or to == f"hf:{chosen.repo}"
    ready = replace(ready, proved=prove(folder, chosen, entries, say, fetched=on_hub))
    retry = Retry(say=say)
    with open_target(to or f"hf:{chosen.repo}", chosen.repo, out, retry) as remote:
        say(f"to {remote.name}")
        book = Ledger(path, entries)
        # What is published already is only confirmed, which writes nothing.
        if dry_run and (book.last is None or book.last.tag != tag):
            _dry_run(ready, survey(remote, ready, book, allowed_deletes=allow_deletes), remote, json=json)
            return
        done = bring(remote, ready, book, allowed_deletes=allow_deletes, progress=Progress(), retry=retry)
        document = report(ready, done, remote, book)
    if json:
        print_json(document)
    else:
        _summarise(document, as_typed(chosen, ledger=ledger, to=to))
    if done.overtaken_by is not None:
        raise SafetyError(
            f"the release is published, tagged and in the ledger, but someone has put commit {done.overtaken_by} on "
            "top of it by now",
            remedy="look at that commit: `release verify` and the next publish will refuse it.",
        )


def _dry_run(ready: Ready, situation: Situation, remote: Remote, *, json: bool) -> None:
    plan, tag = situation.plan, ready.release.tag
    calls = [] if situation.commit else remote.calls(plan, tag, exists=situation.exists)
    if situation.commit and not situation.tagged:
        calls = [f"tag {tag} on {situation.commit}, which an earlier run made"]
    calls.append("append one line to the ledger")
    document: dict[str, Any] = {
        "tag": tag,
        "target": remote.name,
        "parent": plan.parent,
        "tree": plan.tree,
        "kind": ready.entry["kind"],
        "adds": list(plan.adds),
        "unchanged": list(plan.unchanged),
        "deletes": list(plan.deletes),
        "bytes_to_send": plan.bytes_to_send,
        "bytes_of_tree": plan.bytes_of_tree,
        "calls": calls,
    }
    if json:
        print_json(document)
        return
    show(f"plan of {tag} ({ready.entry['kind']}) on {remote.name}, on top of {plan.parent or 'nothing'}")
    for sign, paths in (("+", plan.adds), ("-", plan.deletes)):
        for name in paths:
            show(f"  {sign} {name}{_size(plan, name)}")
    show(f"  {len(plan.adds)} files to send, {len(plan.unchanged)} unchanged, {len(plan.deletes)} to delete")
    show(f"  {plan.bytes_to_send:,} of {plan.bytes_of_tree:,} bytes to send; expected root tree {plan.tree}")
    show("calls that would be made, none of them now:")
    for number, call in enumerate(calls, start=1):
        show(f"  {number}. {call}")


def _size(plan: Plan, name: str) -> str:
    file = plan.files.get(name)
    return "" if file is None else f"  {file.size:,} bytes{', LFS' if file.lfs else ''}"


def _summarise(document: dict[str, Any], options: str) -> None:
    files = document["files"]
    if set(document["steps"].values()) == {WAS_DONE}:
        say(f"{document['tag']} was published before, to {document['target']}: nothing was to be done")
        say(f"  commit {document['revision']} on top of {document['parent'] or 'nothing'}")
        return
    say(f"\npublished {document['tag']} ({document['kind']}) to {document['target']}")
    say(f"  commit {document['revision']} on top of {document['parent'] or 'nothing'}")
    before = [step for step, state in document["steps"].items() if state == WAS_DONE]
    if before:
        say(f"  an earlier run had done: {', '.join(before)}")
    say(f"  {files['added']} files added or changed, {files['unchanged']} unchanged, {files['deleted']} deleted")
    share = document["bytes_sent"] / document["bytes_of_tree"]
    say(f"  {document['bytes_sent']:,} bytes sent of {document['bytes_of_tree']:,} in the tree ({share:.1%})")
    say(f"  ledger {document['ledger']}: keep it in git")
    if not document["target"].startswith("git:"):
        say(f"next: release verify --pin {document['tag']}{options}")
