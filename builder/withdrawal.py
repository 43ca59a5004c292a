"""Withdrawing a release: the last tables under a new number, with documents that say which release is bad and why.

The tables are copied, byte for byte; only what describes a release is written anew, so the new release is `card only`.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from builder import card, documents, manifest, releases_document, tasks
from builder.card_facts import read_facts
from builder.layout import MANIFEST, README, RELEASES, TASK_FILE, is_inside
from builder.output import new_tree
from builder.releases_document import MAY_CHANGE
from builder.tree import open_tree
from provenance.errors import DataError, SafetyError, Where

if TYPE_CHECKING:
    from pathlib import Path

    from builder.benchmark import Benchmark
    from builder.releases_document import Numbering

_KIND = "card only"
_WRITTEN_ANEW = frozenset({README, TASK_FILE, RELEASES, MANIFEST})


def reissue(last: Path, out: Path, benchmark: Benchmark, numbering: Numbering, *, tag: str, why: str) -> dict[str, Any]:
    """Write the tree that withdraws release `tag` to `out/<its own tag>`, all or nothing.

    Args:
        last: the tree of the last release; only what its manifest names is read.
        out: the folder of trees.
        benchmark: the benchmark file of both.
        numbering: the new release's number and its predecessors.
        tag: the release that is withdrawn.
        why: one line for readers.

    Returns:
        tag, tree, and which release it withdraws.

    Raises:
        DataError: a file of the last tree is not the manifest's.
        SafetyError: something else lies where the tree is to be written.
    """
    before = numbering.earlier[-1]
    own = {
        **before,
        "number": numbering.number,
        "tag": numbering.tag(benchmark.judge(before["judge"]["name"])),
        "revision": None,
        "kind": _KIND,
        "data_revision": before["data_revision"] or before["revision"],
        "status": "current",
        "superseded_by": None,
        "tasks": list(benchmark.task_names()),
        "may_change": list(MAY_CHANGE[_KIND]),
        "withdraws": {"tag": tag, "why": why},
    }
    own.pop("withdrawn_because", None)
    # What the release before changed, this one does not.
    own.pop("relation", None)
    _refuse_another(out / own["tag"])
    described = documents.read_as(last / MANIFEST, "manifest")
    with new_tree(out / own["tag"]) as tree:
        for name, fact in described["files"].items():
            if not is_inside(name):
                raise DataError(
                    "the manifest names a file outside its tree", where=Where(str(last / MANIFEST), value=name)
                )
            if name not in _WRITTEN_ANEW:
                _copy(last / name, tree / name, fact["sha256"])
        document = releases_document.document(benchmark, numbering, own)
        documents.write(document, tree / RELEASES)
        sums = {name: fact["sha256"] for name, fact in described["files"].items() if name.endswith(".parquet")}
        text = tasks.render(benchmark, tag=own["tag"], files=sums, withdrawn=releases_document.withdrawn(document))
        (tree / TASK_FILE).write_text(text, encoding="utf-8", newline="\n")
        facts = read_facts(tree, benchmark, manifest.configs_of(described))
        (tree / README).write_text(card.render(facts, card.figures_of(tree)).text, encoding="utf-8", newline="\n")
        documents.write(described, tree / MANIFEST)
        manifest.seal(tree)
    return {"tag": own["tag"], "tree": str(out / own["tag"]), "withdraws": tag, "why": why}


def _refuse_another(tree: Path) -> None:
    """Refuse to put a withdrawal in the place of a release that was built under the same number."""
    if not (tree / RELEASES).is_file():
        return
    entries = open_tree(tree).entries
    if not entries or "withdraws" not in entries[-1]:
        raise SafetyError(
            "another release of this number was built here, and is not published yet",
            where=Where(str(tree)),
            remedy="publish it first, or move it away; then run the same command again.",
        )


def _copy(source: Path, target: Path, sha256: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, target)
    if not target.is_file() or manifest.describe_file(target, None, [])["sha256"] != sha256:
        raise DataError(
            "a file of the last release's tree is not its manifest's",
            where=Where(str(source)),
            remedy="fetch that release again, or build it again.",
        )
