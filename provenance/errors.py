"""Every error that a person can meet, as one tree; the exit code hangs on the branch.

    ReleaseError                     never raised itself
    |- UsageError             2      the command line does not make sense
    |- DataError              3      the data breaks a rule (a file, a row, a column, a value)
    |  |- BenchmarkError      3      the benchmark file breaks its schema
    |  |- FitError            3      a fit did not converge or is not identified
    |  `- ProofError          3      a release tree fails its proofs
    |- InputError             4      an input is missing or unreachable, or an output cannot be written
    |- SafetyError            5      refused for safety: a tag moved, history rewritten, someone else published
    `- RemoteError            6      the remote failed; run the same command again

A message says what is wrong, where, and what to do next. Anything else that reaches the
terminal is a bug (exit code 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from provenance.shown import excerpt, quoted, visible

_LONGEST_LINE = 2000
_LONGEST_PATH = 4096
_OWN_LINE = "\n    "
"""How a list inside a message begins a line; no other line end is ours."""


@dataclass(frozen=True)
class Where:
    """The place of a fault, as precisely as it is known.

    `row` is 0-based, counted over the whole file as `pyarrow.parquet.read_table` gives it.
    """

    file: str | None = None
    row: int | None = None
    column: str | None = None
    value: object = None

    def __str__(self) -> str:
        """`file, row 3, column 'gain', value nan`: only the parts that are known."""
        parts = [] if self.file is None else [excerpt(visible(self.file), _LONGEST_PATH)]
        if self.row is not None:
            parts.append(f"row {self.row}")
        if self.column is not None:
            parts.append(f"column '{visible(excerpt(self.column))}'")
        if self.value is not None:
            parts.append(f"value {quoted(self.value, self.column or '')}")
        return ", ".join(parts)


class ReleaseError(Exception):
    """Base of the tree: `what` is wrong, `where`, and the `remedy` (what to do next).

    Texts may quote data: whatever that holds, it forges no line, obeys no terminal, and stays short.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: Where | None = None, remedy: str | None = None) -> None:
        self.what = _OWN_LINE.join(_plain(line) for line in what.split(_OWN_LINE))
        self.where = where
        self.remedy = None if remedy is None else _plain(remedy)
        place = f" [{where}]" if where is not None and str(where) else ""
        super().__init__(f"{self.what}{place}" + (f"\n  next: {self.remedy}" if remedy else ""))


def _plain(line: str) -> str:
    return excerpt(visible(line), _LONGEST_LINE)


class UsageError(ReleaseError):
    """The command line does not make sense."""

    exit_code = 2


class DataError(ReleaseError):
    """The data breaks a rule."""

    exit_code = 3


class BenchmarkError(DataError):
    """The benchmark file breaks its schema."""


class FitError(DataError):
    """A fit did not converge, or its data do not identify it."""


class ProofError(DataError):
    """A release tree fails its proofs."""


class InputError(ReleaseError):
    """An input is missing or unreachable, or an output cannot be written."""

    exit_code = 4


class SafetyError(ReleaseError):
    """Refused for safety."""

    exit_code = 5


class RemoteError(ReleaseError):
    """The remote failed; running the same command again is safe."""

    exit_code = 6
