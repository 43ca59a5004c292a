"""Ideal top k of each query before and now: by hand, and Kendall's tau against SciPy."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from builder.diff.top import kendall_taus, top_changes, top_document


def pairs(rows: list[tuple[str, str, float | None, float | None]]) -> pl.DataFrame:
    """Rows (query, page, gain before, gain now)."""
    schema = {"query-id": pl.String, "corpus-id": pl.String, "gain@old": pl.Float64, "gain": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


WORLD = pairs(
    [
        # The top 2 keep their pages and swap; page c below does not matter.
        ("q1", "a", 0.9, 0.7),
        ("q1", "b", 0.8, 0.75),
        ("q1", "c", 0.1, 0.2),
        # One of two stays: b leaves, c comes.
        ("q2", "a", 0.9, 0.9),
        ("q2", "b", 0.8, 0.1),
        ("q2", "c", 0.1, 0.8),
        # Equal gains stand by document id descending: c, b before and now.
        ("q3", "a", 0.5, 0.5),
        ("q3", "b", 0.5, 0.5),
        ("q3", "c", 0.5, 0.5),
        # Page b is new, page a has no gain now (it left the pool): nothing is shared.
        ("q4", "a", 0.5, None),
        ("q4", "b", None, 0.5),
        # The query is new: not compared.
        ("q5", "a", None, 0.5),
    ]
)


def test_top_two_by_hand() -> None:
    """Overlap, order and tau of four queries at k = 2."""
    found = top_changes("energy", WORLD, k=2)
    assert ["q1", "q2", "q3", "q4"] == found.query_ids
    assert [1.0, 0.5, 1.0, 0.0] == found.overlap.tolist()
    assert [False, False, True, False] == found.same_order.tolist()
    # q1: its only pair turns. q2: of a, b and c two pairs stay and b-c turns: (2 - 1) / 3.
    assert [-1.0, pytest.approx(1 / 3, abs=1e-15)] == found.tau[:2].tolist()
    assert np.isnan(found.tau[2:]).all()
    assert {
        "k": 2,
        "queries": 4,
        "mean_overlap": 0.625,
        "min_overlap": 0.0,
        "same_pages": 2,
        "same_order": 1,
        "kendall_tau": pytest.approx(-1 / 3, abs=1e-15),
        "tau_undefined": 2,
    } == top_document([found], k=2)


def test_small_pools() -> None:
    """A pool below k is its own ideal list: the share is of what is there."""
    found = top_changes("energy", WORLD.filter(pl.col("query-id") == "q2"), k=10)
    assert ([1.0], [False]) == (found.overlap.tolist(), found.same_order.tolist())


def test_no_query() -> None:
    """Without a query nothing is made up."""
    found = top_document([top_changes("energy", WORLD.clear())])
    assert (0, None, None, 0) == tuple(found[name] for name in ("queries", "mean_overlap", "kendall_tau", "same_order"))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_tau_is_scipys(values: list[tuple[int, int]]) -> None:
    """Kendall's tau-b with ties is SciPy's, whatever stands in places that hold no page."""
    old, new = (
        (np.asarray([*side, 9.0, -9.0], dtype=np.float64) for side in zip(*values, strict=True))
        if values
        else (
            np.asarray([9.0, -9.0]),
            np.asarray([9.0, 9.0]),
        )
    )
    filled = np.arange(len(old)) < len(values)
    expected = stats.kendalltau(old[:-2], new[:-2]).statistic if len(values) > 1 else math.nan
    assert pytest.approx(float(expected), abs=1e-12, nan_ok=True) == kendall_taus(old[None], new[None], filled[None])[0]
