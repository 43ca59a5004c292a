"""Progress of an upload: plain lines where nobody watches, a bar on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from releases import progress

if TYPE_CHECKING:
    import pytest


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    """What is written while five files of 1,000 bytes go in two groups."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    monkeypatch.setattr(progress, "stderr", console)
    monkeypatch.setattr(progress, "say", console.print)
    with progress.Progress().upload(5, 1000) as sent:
        sent(3, 400)
        sent(2, 600)
    return out.getvalue()


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at the start and one a group, each with the sums so far."""
    expected = [
        "upload 5 files, 1,000 bytes",
        "  3 of 5 files, 400 of 1,000 bytes",
        "  5 of 5 files, 1,000 of 1,000 bytes",
    ]
    assert expected == shown(monkeypatch, terminal=False).splitlines()


def test_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end the bar has all bytes and all files, and a time."""
    last = shown(monkeypatch, terminal=True)
    assert "1.0/1.0 kB" in last
    assert "5 of 5 files" in last
    assert "0:00:00" in last
