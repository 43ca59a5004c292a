"""The next release's number and its predecessors, from the ledger: the only source of both (DESIGN section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builder.releases_document import Numbering

if TYPE_CHECKING:
    from pathlib import Path

    from builder.benchmark import Benchmark


def next_release(benchmark: Benchmark, ledger: Path | None) -> Numbering:
    return Numbering()
