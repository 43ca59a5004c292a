"""The card's derived facts, from the tables that release 2 published and from small tables done by hand."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from builder.leaderboard import Leaderboard
from builder.sentences import PrintedTable, compare, lead, print_table, published_tables, signed, view_gap
from provenance.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def published(reference: Path) -> dict[tuple[str, str, str], PrintedTable]:
    """The eight tables of the card of release 2."""
    path = reference.parent.parent / "spec" / "card-v2-results.json"
    if not path.is_file():
        pytest.skip(f"the published tables are missing: no {path}")
    return published_tables(json.loads(path.read_text("utf-8")))


def table(**rows: list[str | None]) -> PrintedTable:
    """A table of two domains and their mean."""
    cells = {name: tuple(None if cell is None else Decimal(cell) for cell in row) for name, row in rows.items()}
    return PrintedTable("native", "rcp", "a", ("north", "south", "mean"), cells)


@pytest.mark.parametrize(
    ("view", "metric", "differing", "largest"),
    [
        ("native", "rcp", 32, "0.6"),
        ("native", "qrel", 64, "1.9"),
        ("six-language", "rcp", 28, "1.2"),
        ("six-language", "qrel", 46, "1.6"),
    ],
)
def test_tie_rules_of_release_2(
    published: dict[tuple[str, str, str], PrintedTable], view: str, metric: str, differing: int, largest: str
) -> None:
    """How many of the 126 printed values differ between the tie rules, and by how much at most."""
    spread = compare(published[view, metric, "a"], published[view, metric, "b"])
    assert (126, differing, Decimal(largest)) == (spread.cells, spread.differing, spread.largest)


@pytest.mark.parametrize(
    ("metric", "mean", "lowest", "highest"), [("rcp", "-1.9", "-8.2", "2.6"), ("qrel", "-2.7", "-9.1", "0.2")]
)
def test_views_of_release_2(
    published: dict[tuple[str, str, str], PrintedTable], metric: str, mean: str, lowest: str, highest: str
) -> None:
    """The six-language score minus the native one under rule b: its mean, and its range over the cells."""
    gap = view_gap(published["native", metric, "b"], published["six-language", metric, "b"])
    assert (Decimal(mean), Decimal(lowest), Decimal(highest)) == (gap.means.mean, gap.cells.lowest, gap.cells.highest)
    assert (112, 14) == (gap.cells.cells, gap.means.cells)


def test_lead_of_release_2(published: dict[tuple[str, str, str], PrintedTable]) -> None:
    """The two best systems of the native qrel table by group mean are read off its Mean column."""
    found = lead(published["native", "qrel", "b"])
    assert ("Voyage2.5", "RR4-Pro", Decimal("0.4")) == (found.first, found.second, found.gap)


def test_decimal_differences() -> None:
    """Differences are those of the printed decimals: 88.2 - 87.9 is 0.3, which floats would miss."""
    spread = compare(table(one=["87.9", "50.0", "69.0"]), table(one=["88.2", "49.8", "69.0"]))
    assert (3, 2, Decimal("0.3"), Decimal("-0.2"), Decimal("0.3")) == (
        spread.cells,
        spread.differing,
        spread.largest,
        spread.lowest,
        spread.highest,
    )


@pytest.mark.parametrize(("cells", "mean"), [(["1.0", "0.3"], "0.6"), (["1.0", "0.5"], "0.8"), (["0.1", "0.2"], "0.2")])
def test_mean_rounds_half_to_even(cells: list[str], mean: str) -> None:
    """The mean difference is rounded to one decimal; a half goes to the even digit."""
    zero, moved = table(one=["0.0", "0.0", "0.0"]), table(one=[*cells, "0.0"])
    assert Decimal(mean) == compare(zero, moved, ["north", "south"]).mean


def test_dashes_are_left_out() -> None:
    """A cell that either table prints as a dash is not compared."""
    spread = compare(table(one=[None, "1.0", None]), table(one=["5.0", "1.5", None]))
    assert (1, 1, Decimal("0.5")) == (spread.cells, spread.differing, spread.largest)


def test_nothing_to_compare() -> None:
    """Tables without a common printed cell, or with other rows, are refused."""
    with pytest.raises(DataError, match="no cell is printed in both"):
        compare(table(one=[None, "1.0", None]), table(one=["5.0", None, None]))
    with pytest.raises(DataError, match="same rows and columns"):
        compare(table(one=["1.0"] * 3), table(other=["1.0"] * 3))


def test_lead_needs_two() -> None:
    """A lead is between two systems that have a Mean; of equal Means the earlier row is first."""
    found = lead(table(one=["1.0", "1.0", "1.0"], two=["2.0", "2.0", "2.0"], three=["2.0", "2.0", "2.0"]))
    assert ("two", "three", Decimal("0.0")) == (found.first, found.second, found.gap)
    with pytest.raises(DataError, match="fewer than two"):
        lead(table(one=["1.0", "1.0", "1.0"], two=["2.0", None, None]))


def test_print_table() -> None:
    """A leaderboard prints percent with one decimal by its exact binary value, and nothing where it has none."""
    board = Leaderboard(
        "native",
        "rcp",
        "b",
        10,
        ("run-one",),
        ("one",),
        ("north", "mean"),
        np.array([[0.12345, math.nan]], dtype=np.float64),
    )
    assert {"one": (Decimal("12.3"), None)} == print_table(board).rows


@pytest.mark.parametrize(("text", "value"), [("+2.6", "2.6"), ("-8.2", "-8.2"), ("0.0", "0.0"), ("0.0", "-0.0")])
def test_signed(text: str, value: str) -> None:
    """A difference is printed with its sign; zero has none."""
    assert text == signed(Decimal(value))
