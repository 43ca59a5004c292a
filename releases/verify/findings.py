"""What a verification finds, and what its exit code is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS = ("ledger", "content", "load")
"""From the cheapest to the dearest; each includes those before it."""

TAG_MOVED = "tag-moved"
TAG_DELETED = "tag-deleted"
HISTORY_REWRITTEN = "history-rewritten"
COMMIT_MISSING = "commit-missing"
FILE_MISSING = "file-missing"
BYTES_CHANGED = "bytes-changed"
POINTER_WITHOUT_OBJECT = "pointer-without-object"
CARD_DRIFT = "card-drift"
LOADS_ANOTHER_RELEASE = "loads-another-release"
UNLOADABLE = "unloadable-with-datasets-"
"""Followed by the version of `datasets`."""
LEDGER_BROKEN = "ledger-broken"

MAIN = "main"
"""Stands in the place of a tag for what is wrong with the branch that releases go to."""
LEDGER = "the ledger"
"""Stands in the place of a tag for what is wrong with the ledger itself."""

_OF_THE_DATA = (UNLOADABLE, LEDGER_BROKEN)

Status = Literal["passed", "failed", "not checked", "not adopted"]


@dataclass(frozen=True)
class Failure:
    """Something that is not as the ledger says.

    Attributes:
        name: one of the names above.
        level: the level that saw it.
        message: what is wrong, with both values.
        file: the file or the config that it is about, if it is about one.
    """

    name: str
    level: str
    message: str
    file: str | None = None


@dataclass(frozen=True)
class Gap:
    """Something that could not be checked, and why.

    `kind` says whether another run may (`remote`, `budget`), a person must do something first (`access`), or it is no
    fault at all (`optional`: a tool that is not installed, a release that never had a manifest).
    """

    level: str
    kind: Literal["remote", "budget", "access", "optional"]
    reason: str


@dataclass
class PinReport:
    """One release, or `MAIN` or `LEDGER`.

    Attributes:
        tag: the release's tag.
        revision: the full sha that the ledger has for it; None if it has none.
        adopted: whether the ledger knows enough of it to check anything.
        levels: the levels that were to be checked.
        withdrawn: why the release was withdrawn, None where it was not; it is verified all the same.
        covered: what was looked at, by level: files, objects, configs.
    """

    tag: str
    revision: str | None = None
    adopted: bool = True
    levels: tuple[str, ...] = ()
    withdrawn: str | None = None
    failures: list[Failure] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    covered: dict[str, dict[str, int]] = field(default_factory=dict)

    def status(self, level: str) -> Status:
        """Failed before not checked before passed: what is not known is never passed."""
        if not self.adopted:
            return "not adopted"
        if any(failure.level == level for failure in self.failures):
            return "failed"
        needed = [gap for gap in self.gaps if gap.level == level and gap.kind != "optional"]
        return "not checked" if needed or level not in self.levels else "passed"

    def document(self) -> dict[str, Any]:
        """As it stands in the report."""
        return {
            "tag": self.tag,
            "revision": self.revision,
            "withdrawn": self.withdrawn,
            "checks": {level: self.status(level) for level in self.levels},
            "covered": self.covered,
            "failures": [vars(failure) for failure in self.failures],
            "gaps": [vars(gap) for gap in self.gaps],
        }


def exit_code(reports: Sequence[PinReport]) -> int:
    """0 fine; 5 the remote is not what was published; 3 a release does not load, or the ledger is broken.

    6: something could not be checked because the remote failed or the budget of requests is spent (run it again). 4:
    something may not be read, or there is no adopted release to check at all.
    """
    failures = [failure.name for report in reports for failure in report.failures]
    kinds = {gap.kind for report in reports for gap in report.gaps}
    if any(not name.startswith(_OF_THE_DATA) for name in failures):
        return 5
    if failures:
        return 3
    if "access" in kinds:
        return 4
    if kinds & {"remote", "budget"}:
        return 6
    releases = [report for report in reports if report.tag not in {MAIN, LEDGER}]
    return 0 if any(report.adopted for report in releases) else 4
