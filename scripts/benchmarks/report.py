"""Lines of what was measured, as text for a terminal and as a Markdown table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Line:
    """One thing that was measured.

    Attributes:
        what: the step or command.
        share: of ViDoRe v3's queries.
        rows: how many rows (of what, `of` says); None where rows mean nothing.
        of: what the rows are.
        seconds: how long it took.
        memory: the most bytes of all its processes together; None where it was not watched.
        beside: the baseline of the same run, in words; empty where there is none.
    """

    what: str
    share: float
    seconds: float
    rows: int | None = None
    of: str = ""
    memory: int | None = None
    beside: str = ""

    def cells(self) -> list[str]:
        """The line as a table shows it."""
        rate = "" if self.rows is None or not self.seconds else f"{round(self.rows / self.seconds):,}"
        return [
            f"{100 * self.share:g} %",
            self.what,
            "" if self.rows is None else f"{self.rows:,} {self.of}",
            f"{self.seconds:,.2f}" if self.seconds < 10 else f"{self.seconds:,.0f}",  # noqa: PLR2004 - three digits
            rate,
            "" if self.memory is None else f"{self.memory / 1e9:.2f}",
            self.beside,
        ]


HEAD = ["share", "what", "rows", "seconds", "rows a second", "GB", "beside it, in the same run"]
_RIGHT = (3, 4, 5)


def markdown(lines: Sequence[Line]) -> str:
    """A Markdown table."""
    rule = ["---:" if place in _RIGHT else "---" for place in range(len(HEAD))]
    rows = [HEAD, rule, *(line.cells() for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
