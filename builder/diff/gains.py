"""How theta and gain moved between two releases: distribution, and the queries and pages that moved most (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.diff.rows import OLD
from provenance.ids import id_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MEASURES = ("gain", "theta")
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
SHOWN = 10
"""Queries and pages that a diff names."""


@dataclass(frozen=True)
class GainChanges:
    """One domain's changes.

    Attributes:
        domain: its name.
        changes: by measure, new minus old of every pair that has a value in both, in the new order.
        pages: the `SHOWN` pairs whose gain moved most: query-id, corpus-id, gain, theta, gain@old, theta@old, moved.
        queries: the `SHOWN` queries whose gains moved most: query-id, pairs, moved (mean absolute change), most (the
            largest of its pages).
    """

    domain: str
    changes: dict[str, NDArray[np.float64]]
    pages: pl.DataFrame
    queries: pl.DataFrame


def gain_changes(domain: str, both: pl.DataFrame) -> GainChanges:
    """The changes of one domain.

    Args:
        domain: its name.
        both: query-id, corpus-id, gain, theta, gain@old, theta@old: the pairs that both releases have; a pair without
            a value in one of them is left out.
    """
    defined = both.drop_nulls([*MEASURES, *(name + OLD for name in MEASURES)])
    changes = {name: (defined[name] - defined[name + OLD]).to_numpy() for name in MEASURES}
    moved = defined.with_columns((pl.col("gain") - pl.col("gain" + OLD)).abs().alias("moved"))
    by_query = moved.group_by("query-id").agg(
        pl.len().alias("pairs"), pl.col("moved").mean(), pl.col("moved").max().alias("most")
    )
    return GainChanges(domain, changes, _first(moved, "query-id", "corpus-id"), _first(by_query, "query-id"))


def gains_document(domains: Sequence[GainChanges]) -> dict[str, Any]:
    """All domains' changes: a distribution a measure, and the queries and pages that moved most, ties by domain."""
    found: dict[str, Any] = {
        name: distribution(np.concatenate([np.zeros(0), *(item.changes[name] for item in domains)]))
        for name in MEASURES
    }
    for name in ("queries", "pages"):
        rows = [
            {"domain": item.domain, **{key.replace(OLD, "_old"): value for key, value in row.items()}}
            for item in domains
            for row in getattr(item, name).iter_rows(named=True)
        ]
        found[name] = sorted(rows, key=lambda row: -row["moved"])[:SHOWN]
    return found


def distribution(changes: NDArray[np.float64]) -> dict[str, Any]:
    """Pairs, how many changed, and mean, mean size, largest size and quantiles of the changes; None without a pair.

    Quantiles interpolate linearly, of the signed changes (`quantiles`) and of their sizes (`median_size`).
    """
    if not len(changes):
        return {"pairs": 0, "changed": 0, "mean": None, "mean_size": None, "median_size": None, "max_size": None}
    sizes = np.abs(changes)
    return {
        "pairs": len(changes),
        "changed": int(np.count_nonzero(changes)),
        "mean": math.fsum(changes) / len(changes),
        "mean_size": math.fsum(sizes) / len(changes),
        "median_size": float(np.median(sizes)),
        "max_size": float(sizes.max()),
        "quantiles": {
            str(level): float(value) for level, value in zip(QUANTILES, np.quantile(changes, QUANTILES), strict=True)
        },
    }


def _first(frame: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """The rows that moved most, equal ones in canonical order."""
    order = [expr for name in keys for expr in (id_number(name), pl.col(name))]
    moved = frame.filter(pl.col("moved") > 0).sort(order)
    return moved.sort("moved", descending=True, maintain_order=True).head(SHOWN)
