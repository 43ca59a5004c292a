"""provenance/releases.json: every release of a benchmark, the newest last (method spec section 16.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Benchmark, Judge

FORMAT = "rcp-release.releases.v1"


@dataclass(frozen=True)
class Numbering:
    """Which release a build makes.

    `earlier` are the entries of all former releases, oldest first, as the ledger and the last tree know them.
    """

    number: int = 1
    earlier: tuple[Mapping[str, Any], ...] = ()

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
    may_change: Sequence[str],
) -> dict[str, Any]:
    """The entry of the release that is being built.

    Its own `revision` and `data_revision` are null: a commit cannot hold its own sha.
    """
    return {
        "number": numbering.number,
        "tag": numbering.tag(judge),
        "revision": None,
        "data_revision": None,
        "judge": {"name": judge.name, "model": judge.model, "simulated": judge.simulated},
        "calibration": dict(calibration),
        "status": "current",
        "superseded_by": None,
        "upstream": {name: dict(pin) for name, pin in upstream.items()},
        "tasks": list(benchmark.task_names()),
        "may_change": list(may_change),
    }


def document(benchmark: Benchmark, numbering: Numbering, own: Mapping[str, Any]) -> dict[str, Any]:
    """releases.json: former releases are superseded by the next one, the own entry is current and stands last."""
    earlier = [dict(release) for release in numbering.earlier]
    tags = [release["tag"] for release in earlier] + [own["tag"]]
    for release, successor in zip(earlier, tags[1:], strict=True):
        if release["status"] == "current":
            release["status"] = "superseded"
        release["superseded_by"] = successor
    return {"format": FORMAT, "benchmark": benchmark.name, "repo": benchmark.repo, "releases": [*earlier, dict(own)]}
