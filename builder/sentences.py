"""The card's derived facts about its result tables, from the printed values (issue 5, method spec section 10).

What a card says about its tables is computed from what the tables *print*, in decimal arithmetic: a reader who does
the sum gets the same number. (0.1 has no exact float; 88.2 - 87.9 is not 0.3 in floats.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

from builder.leaderboard import MEAN, printed
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from builder.leaderboard import Leaderboard

_TENTH = Decimal("0.1")


@dataclass(frozen=True)
class PrintedTable:
    """A table as it is printed: percent with one decimal, None for a dash.

    `columns` ends in `mean`; `rows` maps a system to its cells.
    """

    view: str
    metric: str
    ties: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[Decimal | None, ...]]


@dataclass(frozen=True)
class Spread:
    """How two printed tables differ, cell by cell (second minus first, in points).

    Attributes:
        cells: how many cells both tables print.
        differing: how many of them differ.
        largest: the largest absolute difference.
        lowest: the lowest difference.
        highest: the highest difference.
        mean: the mean difference, rounded to one decimal, a half to the even digit.
    """

    cells: int
    differing: int
    largest: Decimal
    lowest: Decimal
    highest: Decimal
    mean: Decimal


@dataclass(frozen=True)
class ViewGap:
    """What another view changes: over the domains' cells, and over the systems' Mean."""

    cells: Spread
    means: Spread


@dataclass(frozen=True)
class Lead:
    """The first two systems of a table by its Mean, and the gap between them in points."""

    first: str
    second: str
    gap: Decimal


def print_table(board: Leaderboard) -> PrintedTable:
    """What a leaderboard prints."""
    rows = {
        name: tuple(None if math.isnan(value) else Decimal(printed(value)) for value in values)
        for name, values in zip(board.rows, board.values.tolist(), strict=True)
    }
    return PrintedTable(board.view, board.metric, board.ties, board.columns, rows)


def published_tables(document: dict[str, Any]) -> dict[tuple[str, str, str], PrintedTable]:
    """The tables of a published card by (view, metric, ties).

    `document` is `{columns, tables: [{view, metric, tie_rule, rows}]}`. Its names become ours: `doc_id` is tie rule a,
    `group_mean` b; `rcp_ndcg` is rcp, `qrel_ndcg` qrel; `six_language` is six-language.
    """
    rules, metrics = {"doc_id": "a", "group_mean": "b"}, {"rcp_ndcg": "rcp", "qrel_ndcg": "qrel"}
    tables: dict[tuple[str, str, str], PrintedTable] = {}
    for table in document["tables"]:
        key = (table["view"].replace("_", "-"), metrics[table["metric"]], rules[table["tie_rule"]])
        rows: dict[str, tuple[Decimal | None, ...]] = {
            name: tuple(Decimal(str(cell)) for cell in cells) for name, cells in table["rows"].items()
        }
        tables[key] = PrintedTable(*key, columns=tuple(document["columns"]), rows=rows)
    return tables


def compare(first: PrintedTable, second: PrintedTable, columns: Sequence[str] | None = None) -> Spread:
    """How the second table differs from the first, over all printed cells or those of some columns.

    Raises:
        DataError: the tables do not have the same rows and columns, or no cell is printed in both.
    """
    if first.columns != second.columns or list(first.rows) != list(second.rows):
        raise DataError(
            f"the {first.view} {first.metric} table ({first.ties}) and the {second.view} {second.metric} table "
            f"({second.ties}) do not have the same rows and columns",
            remedy="compare tables of the same systems and domains.",
        )
    wanted = [index for index, column in enumerate(first.columns) if columns is None or column in columns]
    differences = [
        after - before
        for name, cells in first.rows.items()
        for index in wanted
        if (before := cells[index]) is not None and (after := second.rows[name][index]) is not None
    ]
    return _spread(differences)


def view_gap(native: PrintedTable, other: PrintedTable) -> ViewGap:
    """How far another view lies from the native one: the cells of the domains, and the Mean column."""
    domains = [column for column in native.columns if column != MEAN]
    return ViewGap(cells=compare(native, other, domains), means=compare(native, other, [MEAN]))


def lead(table: PrintedTable) -> Lead:
    """The first two systems by the printed Mean; of equal ones the earlier row is first.

    Raises:
        DataError: fewer than two systems have a Mean.
    """
    place = table.columns.index(MEAN)
    ranked = sorted(((cells[place], name) for name, cells in table.rows.items()), key=_descending)
    with_mean = [(value, name) for value, name in ranked if value is not None]
    if len(with_mean) < 2:  # noqa: PLR2004 - a lead takes two
        raise DataError(
            "fewer than two systems have a Mean", remedy="a lead takes two systems that ran in every domain."
        )
    (best, first), (next_best, second) = with_mean[:2]
    return Lead(first, second, best - next_best)


def signed(value: Decimal) -> str:
    """`+2.6`, `-8.2`, `0.0`: a difference as prose prints it."""
    return format(value, "+.1f") if value else "0.0"


def _descending(entry: tuple[Decimal | None, str]) -> Decimal:
    value = entry[0]
    return Decimal("Infinity") if value is None else -value


def _spread(differences: Iterable[Decimal]) -> Spread:
    found = list(differences)
    if not found:
        raise DataError("no cell is printed in both tables", remedy="compare tables that have values.")
    mean = (sum(found, Decimal(0)) / len(found)).quantize(_TENTH, rounding=ROUND_HALF_EVEN)
    return Spread(
        cells=len(found),
        differing=sum(difference != 0 for difference in found),
        largest=max(abs(difference) for difference in found),
        lowest=min(found),
        highest=max(found),
        mean=mean,
    )
