"""How theta and gain moved, by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from builder.diff.gains import distribution, gain_changes, gains_document

COLUMNS = ["query-id", "corpus-id", "gain", "theta", "gain@old", "theta@old"]


def rows(*values: tuple[str, str, float | None, float | None, float | None, float | None]) -> pl.DataFrame:
    """Pairs: query, page, gain, theta, and both before."""
    return pl.DataFrame(
        list(values),
        schema=dict.fromkeys(COLUMNS[:2], pl.String) | dict.fromkeys(COLUMNS[2:], pl.Float64),
        orient="row",
    )


ENERGY = rows(
    ("q-10", "p-1", 0.5, 0.0, 0.25, -1.0),
    ("q-10", "p-2", 0.5, 0.0, 0.5, 0.0),
    ("q-2", "p-1", 0.25, -1.0, 0.5, 0.0),
    ("q-2", "p-10", 0.25, 2.0, 0.5, 2.0),
    ("q-2", "p-9", None, None, None, None),
)
HR = rows(("q-1", "p-1", 0.0, -4.0, 0.75, 1.0))


def test_distribution_by_hand() -> None:
    """Changes 0, 0.25, -0.25, -0.25 and -0.75: number, mean, sizes and quantiles; pairs without a gain are left out."""
    found = gains_document([gain_changes("energy", ENERGY), gain_changes("hr", HR)])
    gain = found["gain"]
    assert (5, 4) == (gain["pairs"], gain["changed"])
    assert (-0.2, 0.3, 0.25, 0.75) == pytest.approx(
        (gain["mean"], gain["mean_size"], gain["median_size"], gain["max_size"]), abs=1e-15
    )
    # Sorted: -0.75, -0.25, -0.25, 0, 0.25; the 5 % quantile lies 0.2 of the way from the first to the second.
    assert pytest.approx(-0.65, abs=1e-15) == gain["quantiles"]["0.05"]
    assert -0.25 == gain["quantiles"]["0.5"]
    assert (5, 3, 5.0) == tuple(found["theta"][name] for name in ("pairs", "changed", "max_size"))


def test_what_moved_most() -> None:
    """Queries by the mean size over their pages, pages by size; equal ones by domain and number; none that stayed."""
    found = gains_document([gain_changes("energy", ENERGY), gain_changes("hr", HR)])
    assert [("hr", "q-1", 1, 0.75, 0.75), ("energy", "q-2", 2, 0.25, 0.25), ("energy", "q-10", 2, 0.125, 0.25)] == [
        tuple(row[name] for name in ("domain", "query-id", "pairs", "moved", "most")) for row in found["queries"]
    ]
    assert [("q-1", "p-1"), ("q-2", "p-1"), ("q-2", "p-10"), ("q-10", "p-1")] == [
        (row["query-id"], row["corpus-id"]) for row in found["pages"]
    ]
    assert (0.75, 0.0, 1.0, -4.0) == tuple(
        found["pages"][0][name] for name in ("gain_old", "gain", "theta_old", "theta")
    )


def test_nothing_to_compare() -> None:
    """Without a pair no mean is made up."""
    assert {"pairs": 0, "changed": 0, "mean": None, "mean_size": None, "median_size": None, "max_size": None} == (
        distribution(np.zeros(0))
    )
