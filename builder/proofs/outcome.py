"""What a proof finds: failures as a table, what it covered, what it could not prove, what it measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import polars as pl

from builder.json_schemas import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

FAILURES = pl.Schema(
    {
        "rule": pl.String,
        "config": pl.String,
        "file": pl.String,
        "row": pl.Int64,
        "column": pl.String,
        "value": pl.String,
        "query-id": pl.String,
        "corpus-id": pl.String,
        "message": pl.String,
    }
)
"""One row a failure. `row` is 0-based in its file, null where the fault is the file's as a whole."""

Status = Literal["passed", "failed", "not provable"]


@dataclass(frozen=True)
class Coverage:
    """What a proof has looked at; adds up over files, domains or queries."""

    rows: int = 0
    files: int = 0
    queries: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        """The sum of both."""
        return Coverage(self.rows + other.rows, self.files + other.files, self.queries + other.queries)


@dataclass(frozen=True)
class Gap:
    """A part that cannot be proved, and why."""

    reason: str


@dataclass(frozen=True)
class Measure:
    """A number that is shown and not judged (or shown beside its bound)."""

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class Warn:
    """Something that is no failure but that a maintainer should know."""

    rule: str
    message: str


Finding = pl.DataFrame | Coverage | Gap | Measure | Warn
"""What a proof yields: a table of failures (`FAILURES`), or one of the classes above."""


@dataclass(frozen=True)
class Outcome:
    """A proof's result. It passes only if it looked at something, found no failure and left no gap."""

    proof: str
    title: str
    failures: pl.DataFrame
    coverage: Coverage
    gaps: tuple[str, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[Warn, ...] = ()
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """`failed`, else `not provable`, else `passed`."""
        if self.failures.height:
            return "failed"
        if self.gaps or self.coverage == Coverage():
            return "not provable"
        return "passed"


def fault(
    rule: str,
    message: str,
    *,
    config: str | None = None,
    file: str | None = None,
    row: int | None = None,
    column: str | None = None,
    value: object = None,
    query_id: str | None = None,
    corpus_id: str | None = None,
) -> pl.DataFrame:
    """A table with one failure."""
    return pl.DataFrame(
        {
            "rule": [rule],
            "config": [None if config is None else _text(config)],
            "file": [None if file is None else _text(file)],
            "row": [row],
            "column": [None if column is None else _text(column)],
            "value": [None if value is None else _text(shorten(value if isinstance(value, str) else repr(value)))],
            "query-id": [query_id],
            "corpus-id": [corpus_id],
            "message": [_text(message)],
        },
        schema=FAILURES,
    )


def _text(said: str) -> str:
    """What a document says, as text that a table can hold: half a surrogate pair by its escape."""
    return said.encode("utf-8", "backslashreplace").decode("utf-8")
