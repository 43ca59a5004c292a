"""Rows of two versions of a table, by key."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.diff.rows import RowChanges, count, key, match
from provenance.errors import DataError


def table(rows: list[tuple[str, int | None, list[str]]]) -> pl.DataFrame:
    """Rows (id, value, list)."""
    schema = {"id": pl.String, "value": pl.Int64, "list": pl.List(pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_counts_by_hand() -> None:
    """Added, removed and changed rows are told by key; a null that becomes a number, and another list, are changes."""
    old = table([("a", 1, ["x"]), ("b", None, ["x"]), ("c", 3, ["x"]), ("gone", 4, ["x"]), ("d", None, [])])
    new = table([("d", None, []), ("a", 1, ["x"]), ("b", 2, ["x"]), ("c", 4, ["y"]), ("new", 5, ["x"])])
    matched = match(old, new, ["id"], what="t")
    assert RowChanges(5, 5, 1, 1, 2, {"value": 2, "list": 1}) == count(matched)
    assert (["new"], ["gone"]) == (matched.added["id"].to_list(), matched.removed["id"].to_list())


def test_other_order_is_no_change() -> None:
    """A table with the same rows in another order has no change."""
    rows = [("a", 1, ["x"]), ("b", 2, ["y"])]
    assert count(match(table(rows), table(rows[::-1]), ["id"], what="t")).none


def test_counts_add_up() -> None:
    """Counts of several tables add up, column by column."""
    one = RowChanges(2, 3, 1, 0, 1, {"gain": 1})
    assert RowChanges(4, 6, 2, 0, 2, {"gain": 2, "theta": 1}) == one + RowChanges(
        2, 3, 1, 0, 1, {"gain": 1, "theta": 1}
    )


@pytest.mark.parametrize("side", ["old", "new"])
def test_repeated_keys_are_refused(side: str) -> None:
    """A key that stands twice is refused, with the release and the key."""
    rows = {"old": [("a", 1, ["x"])], "new": [("a", 1, ["x"])]}
    rows[side] = [("a", 1, ["x"]), ("a", 2, ["x"])]
    with pytest.raises(DataError, match=rf"row of the {side} release stands twice \[t, column 'id', value 'a'\]"):
        match(table(rows["old"]), table(rows["new"]), ["id"], what="t")


@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 3) | st.none()),
    st.dictionaries(st.text(max_size=3), st.integers(0, 3) | st.none()),
)
def test_counts_are_those_of_dictionaries(old: dict[str, int | None], new: dict[str, int | None]) -> None:
    """For any two tables the counts are those that two dictionaries give."""
    frames = (table([(name, value, []) for name, value in side.items()]) for side in (old, new))
    found = count(match(*frames, ["id"], what="t"))
    changed = sum(old[name] != new[name] for name in old.keys() & new.keys())
    expected = (len(old), len(new), len(new.keys() - old.keys()), len(old.keys() - new.keys()), changed)
    assert expected == (found.rows_old, found.rows_new, found.added, found.removed, found.changed)


def test_keys_are_the_schemas() -> None:
    """A run's row is named by its model, query and page."""
    assert ["model", "query-id", "corpus-id"] == key("runs")
