"""`release demo` goes on from what is there, and never on top of what it does not know. CI runs it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.command import release_here

if TYPE_CHECKING:
    from pathlib import Path


def test_a_store_without_its_ledger_is_refused(tmp_path: Path) -> None:
    """Nothing is built or published on top of it."""
    (tmp_path / "hub").mkdir()
    done = release_here("demo", "--out", tmp_path)
    assert (5, "") == (done.code, done.stdout)
    assert "without its ledger" in done.stderr
    assert ["hub"] == [path.name for path in tmp_path.iterdir()]
