"""The report of a validation: one JSON document, and every failure as Parquet or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq

from builder import documents
from builder.output import whole_file
from builder.proofs.outcome import FAILURES
from provenance.errors import UsageError, Where

if TYPE_CHECKING:
    from pathlib import Path

    from builder.proofs.outcome import Outcome
    from builder.validate import Validation

FORMAT = "rcp-release.validation.v1"
SHOWN = 20
"""Failures a rule that are printed; the report holds all."""


def all_failures(validation: Validation) -> pl.DataFrame:
    """Every failure, with the proof that found it: proof, rule, config, file, row, column, value, ids, message."""
    frames = [
        outcome.failures.select(pl.lit(outcome.proof).alias("proof"), pl.all()) for outcome in validation.outcomes
    ]
    empty = pl.DataFrame(schema=FAILURES).select(pl.lit(None, pl.String).alias("proof"), pl.all())
    return pl.concat([empty, *frames])


def document(validation: Validation, *, strict: bool, shown: int | None = SHOWN) -> dict[str, Any]:
    """The validation as one JSON document; `shown` failures a rule (None: all)."""
    return {
        "format": FORMAT,
        "tree": validation.tree,
        "holds": validation.holds(strict=strict),
        "strict": strict,
        "failures": validation.failures,
        "warnings": validation.warnings,
        "passed": validation.named("passed"),
        "failed": validation.named("failed"),
        "not_provable": validation.named("not provable"),
        "proofs": {outcome.proof: _proof(outcome, shown) for outcome in validation.outcomes},
    }


def _proof(outcome: Outcome, shown: int | None) -> dict[str, Any]:
    first = outcome.failures if shown is None else first_a_rule(outcome.failures, shown)
    return {
        "title": outcome.title,
        "status": outcome.status,
        "covered": {
            "rows": outcome.coverage.rows,
            "files": outcome.coverage.files,
            "queries": outcome.coverage.queries,
        },
        "not_provable": list(outcome.gaps),
        "measures": {name: value if value == value else None for name, value in outcome.measures.items()},  # noqa: PLR0124 - NaN
        "warnings": [{"rule": warning.rule, "message": warning.message} for warning in outcome.warnings],
        "failures": outcome.failures.height,
        "by_rule": dict(outcome.failures.group_by("rule").len().sort("rule").iter_rows()),
        "first_failures": first.to_dicts(),
        "seconds": outcome.seconds,
    }


def first_a_rule(failures: pl.DataFrame, shown: int = SHOWN) -> pl.DataFrame:
    """The first failures of each rule."""
    return failures.filter(pl.int_range(pl.len()).over("rule") < shown)


def write(validation: Validation, path: Path, *, strict: bool) -> None:
    """Write every failure to `path`: `.parquet` (a row a failure), or `.json` (the whole document, nothing left out).

    Raises:
        UsageError: another suffix.
        InputError: the file cannot be written.
    """
    if path.suffix not in {".parquet", ".json"}:
        raise UsageError("a report is .parquet or .json", where=Where(str(path)), remedy="name the file so.")
    with whole_file(path, "--report") as work:
        if path.suffix == ".json":
            documents.write(document(validation, strict=strict, shown=None), work)
        else:
            pq.write_table(all_failures(validation).to_arrow(), work, compression="zstd")
