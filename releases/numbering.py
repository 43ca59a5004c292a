"""The next release's number and its predecessors, from the ledger: the only source of both (DESIGN section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builder.releases_document import Numbering
from releases.ledger.chain import ledger_path, read_ledger
from releases.ledger.status import statuses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from builder.benchmark import Benchmark
    from releases.ledger.chain import Entry


def next_release(benchmark: Benchmark, ledger: Path | None) -> Numbering:
    """The number after the ledger's last, and all former releases with the revisions that they were published at.

    Raises:
        DataError: the ledger is broken.
    """
    entries = read_ledger(ledger_path(benchmark, ledger))
    return Numbering(
        number=len(entries) + 1,
        earlier=tuple(
            {**entry.release, "revision": entry.revision}
            | ({} if status.why is None else {"status": status.name, "withdrawn_because": status.why})
            for entry, status in zip(entries, statuses(entries), strict=True)
        ),
        predecessor_files=dict(_content(entries)),
    )


def _content(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
    """The last release's files and their sha256 (of the content, not of an LFS pointer), where the ledger has them."""
    if entries:
        for path, file in entries[-1].files.items():
            yield path, file["sha256"]
