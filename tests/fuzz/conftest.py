"""A long run prints how many examples it tried, for `scripts/fuzz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import fuzzing

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print it."""
    if fuzzing.LONG:
        terminalreporter.write_line(f"examples: {fuzzing.examples}")
