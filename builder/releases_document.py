"""provenance/releases.json: every release of a benchmark, the newest last (method spec section 16.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from builder.benchmark import Benchmark, Judge

FORMAT = "rcp-release.releases.v1"


MAY_CHANGE: dict[str, tuple[str, ...]] = {
    "first": ("everything",),
    "new judge": (
        "judge",
        "qrels.gain",
        "qrels.theta",
        "judge_criteria",
        "calibration",
        "windows",
        "item_params",
        "card",
    ),
    "recalibration": ("qrels.gain", "qrels.theta", "judge_criteria", "calibration", "windows", "item_params", "card"),
    "card only": ("card",),
}
"""What each kind of release may change of its predecessor; proof C3 holds it to that. `card` means README.md, assets,
the task file and the two documents that describe a release, never a table."""


@dataclass(frozen=True)
class Numbering:
    """Which release a build makes.

    `earlier` are the entries of all former releases, oldest first; `predecessor_files` maps the last one's files to
    the sha256 of their content (empty where it is not known), as the ledger has them.
    """

    number: int = 1
    earlier: tuple[Mapping[str, Any], ...] = ()
    predecessor_files: Mapping[str, str] = field(default_factory=dict)

    def kind(self, judge: Judge, files: Mapping[str, str]) -> str:
        """A name in `MAY_CHANGE`, derived: from the judge, and from whether any table differs from the predecessor's.

        Args:
            judge: whose gains are released.
            files: the new tree's data files (tables, windows, item parameters) and their sha256.
        """
        if not self.earlier:
            return "first"
        if self.earlier[-1]["judge"]["name"] != judge.name:
            return "new judge"
        same = all(self.predecessor_files.get(name) == digest for name, digest in files.items())
        return "card only" if same else "recalibration"

    def tag(self, judge: Judge) -> str:
        """`v<N>-<judge slug>`."""
        return f"v{self.number}-{judge.slug}"


def entry(
    benchmark: Benchmark,
    judge: Judge,
    numbering: Numbering,
    *,
    calibration: Mapping[str, Any],
    upstream: Mapping[str, Mapping[str, str | None]],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """The entry of the release that is being built.

    Its own `revision` is null: a commit cannot hold its own sha. `data_revision` is the commit that last changed a
    table: null for the own one, the predecessor's where only the card changes.

    Args:
        benchmark: names the tasks.
        judge: whose gains are released.
        numbering: number and predecessors.
        calibration: how the gains were made.
        upstream: each domain's pin.
        files: the tree's data files and their sha256.
    """
    kind = numbering.kind(judge, files)
    last = numbering.earlier[-1] if kind == "card only" else None
    return {
        "number": numbering.number,
        "tag": numbering.tag(judge),
        "revision": None,
        "kind": kind,
        "data_revision": None if last is None else last["data_revision"] or last["revision"],
        "judge": {"name": judge.name, "model": judge.model, "simulated": judge.simulated},
        "calibration": dict(calibration),
        "status": "current",
        "superseded_by": None,
        "upstream": {name: dict(pin) for name, pin in upstream.items()},
        "tasks": list(benchmark.task_names()),
        "may_change": list(MAY_CHANGE[kind]),
    }


def document(benchmark: Benchmark, numbering: Numbering, own: Mapping[str, Any]) -> dict[str, Any]:
    """releases.json: former releases are superseded by the next one, the own entry is current and stands last.

    Where the own entry has `withdraws` (a tag, and why), that release is withdrawn.
    """
    earlier = [dict(release) for release in numbering.earlier]
    tags = [release["tag"] for release in earlier] + [own["tag"]]
    bad = own.get("withdraws") or {}
    for release, successor in zip(earlier, tags[1:], strict=True):
        if release["tag"] == bad.get("tag"):
            release |= {"status": "withdrawn", "withdrawn_because": bad["why"]}
        elif release["status"] == "current":
            release["status"] = "superseded"
        release["superseded_by"] = successor
    return {"format": FORMAT, "benchmark": benchmark.name, "repo": benchmark.repo, "releases": [*earlier, dict(own)]}


def withdrawn(document: Mapping[str, Any]) -> dict[str, str]:
    """Tags and commits of the withdrawn releases of a releases.json, and why each was withdrawn."""
    return {
        name: release["withdrawn_because"]
        for release in document["releases"]
        if release["status"] == "withdrawn"
        for name in (release["tag"], release["revision"])
        if name is not None
    }
