"""What the ledger as a whole says of each release: current, superseded or withdrawn.

A line is never changed, so what became of a release is said by the lines after it: the next release supersedes it; a
release whose entry has `withdraws` withdraws another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releases.ledger.chain import Entry

CURRENT = "current"
SUPERSEDED = "superseded"
WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Status:
    """A release's status; `why` says why it was withdrawn, and is None where it was not."""

    name: str
    why: str | None = None


def statuses(entries: Sequence[Entry]) -> tuple[Status, ...]:
    """The status of each release, in the ledger's order."""
    reasons = {
        entry.release["withdraws"]["tag"]: str(entry.release["withdraws"]["why"])
        for entry in entries
        if entry.release.get("withdraws")
    }
    last = len(entries) - 1
    return tuple(
        Status(WITHDRAWN, reasons[entry.tag])
        if entry.tag in reasons
        else Status(CURRENT if number == last else SUPERSEDED)
        for number, entry in enumerate(entries)
    )
