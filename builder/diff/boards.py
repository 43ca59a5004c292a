"""One leaderboard in two releases: cells, ranks, and which differences between systems are still significant (pure).

Two systems are *apart* in a release where the 95 % bootstrap interval of their gap of Means excludes 0, and *separated*
in a domain where the paired t-test has p < 0.05 (method spec section 13). A claim "A is ahead of B" that a release
supports still stands where the other release has them apart too, in the same order.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from builder.leaderboard import MEAN, printed
from builder.significance import ALPHA, kendall_tau

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.leaderboard import Leaderboard
    from builder.statistics import Pair


def board_document(old: Leaderboard, new: Leaderboard, before: Sequence[Pair], after: Sequence[Pair]) -> dict[str, Any]:
    """Compare a table of two releases; both have the same columns.

    Args:
        old: the table before.
        new: the table now.
        before: the pairs of `old`, as `statistics.statistics` has them.
        after: the pairs of `new`.

    Returns:
        `systems` (old and new cells and ranks by Mean), `added` and `removed` systems, `cells`, `swaps`, `pairs`
        (each pair of systems of both), and counts: `apart` of pairs, `tests` of pairs and domains.
    """
    systems = _systems(old, new)
    pairs = _pairs(old, new, before, after)
    means = [(row["old"][MEAN], row["new"][MEAN]) for row in systems]
    defined = np.asarray([pair for pair in means if None not in pair], dtype=np.float64).reshape(-1, 2)
    return {
        "view": new.view,
        "metric": new.metric,
        "ties": new.ties,
        "k": new.k,
        "columns": list(new.columns),
        "systems": systems,
        "added": [name for name in new.rows if name not in old.rows],
        "removed": [name for name in old.rows if name not in new.rows],
        "cells": _cells(systems, new.columns),
        "kendall_tau": kendall_tau(defined[:, 0], defined[:, 1]) if len(defined) > 1 else None,
        "swaps": [pair for pair in pairs if pair["gap_old"] * pair["gap_new"] < 0],
        "pairs": pairs,
        "apart": _tally([(_sign(pair, "old"), _sign(pair, "new")) for pair in pairs]),
        "tests": _tally([signs for pair in pairs for signs in _test_signs(pair)]),
    }


def _systems(old: Leaderboard, new: Leaderboard) -> list[dict[str, Any]]:
    """Systems of both tables in the new order, with cells (None where undefined) and ranks by Mean among them."""
    names = [name for name in new.rows if name in old.rows]
    cells = {
        side: {
            name: dict(zip(board.columns, board.values[board.rows.index(name)].tolist(), strict=True)) for name in names
        }
        for side, board in (("old", old), ("new", new))
    }
    found = []
    for name in names:
        row: dict[str, Any] = {"system": name}
        for side, values in cells.items():
            row[side] = {column: None if math.isnan(value) else value for column, value in values[name].items()}
            mean = values[name][MEAN]
            ahead = sum(other[MEAN] > mean for other in values.values())
            row[f"rank_{side}"] = None if math.isnan(mean) else ahead + 1
        found.append(row)
    return found


def _cells(systems: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
    """How the cells that both tables define differ: fractions, and as they are printed (percent, one decimal)."""
    both = [
        (row["old"][column], row["new"][column])
        for row in systems
        for column in columns
        if row["old"][column] is not None and row["new"][column] is not None
    ]
    changes = [now - before for before, now in both]
    return {
        "compared": len(both),
        "changed": sum(change != 0 for change in changes),
        "changed_as_printed": sum(printed(before) != printed(now) for before, now in both),
        "mean": math.fsum(changes) / len(changes) if changes else None,
        "max_size": max((abs(change) for change in changes), default=None),
    }


def _pairs(old: Leaderboard, new: Leaderboard, before: Sequence[Pair], after: Sequence[Pair]) -> list[dict[str, Any]]:
    """Every pair of systems with a Mean in both; `first` is ahead in the old table, gaps are first minus second."""
    was, now = ({frozenset((pair.first, pair.second)): pair for pair in side} for side in (before, after))
    found = []
    for one, other in combinations([name for name in new.rows if name in old.rows], 2):
        names = frozenset((one, other))
        if names in was and names in now:
            first, second = (one, other) if _gap(was[names], one)[0] >= 0 else (other, one)
            row: dict[str, Any] = {"first": first, "second": second}
            for side, board, pair in (("old", old, was[names]), ("new", new, now[names])):
                gap, low, high = _gap(pair, first)
                row |= {
                    f"gap_{side}": gap,
                    f"interval_{side}": [low, high],
                    f"apart_{side}": low > 0 or high < 0,
                    f"tie_{side}": pair.tie,
                    f"domains_{side}": _domains(board, pair, first, second),
                }
            found.append(row)
    return found


def _gap(pair: Pair, first: str) -> tuple[float, float, float]:
    """The gap of Means of a pair as `first` minus the other, and its interval."""
    return (pair.gap, pair.low, pair.high) if pair.second == first else (-pair.gap, -pair.high, -pair.low)


def _domains(board: Leaderboard, pair: Pair, first: str, second: str) -> dict[str, dict[str, Any]]:
    """By domain, the gap of the cells (None where one is undefined) and the paired t-test's p."""
    cells = [
        dict(zip(board.columns, board.values[board.rows.index(name)].tolist(), strict=True)) for name in (first, second)
    ]
    gaps = {domain: cells[0][domain] - cells[1][domain] for domain in pair.p_values}
    return {
        domain: {"gap": None if math.isnan(gaps[domain]) else gaps[domain], "p": p}
        for domain, p in pair.p_values.items()
    }


def _sign(pair: Mapping[str, Any], side: str) -> int:
    """1 or -1 where the pair is apart, by which system is ahead; else 0."""
    return int(math.copysign(1, pair[f"gap_{side}"])) if pair[f"apart_{side}"] else 0


def _test_signs(pair: Mapping[str, Any]) -> list[tuple[int, int]]:
    """By domain, (old, new): 1 or -1 where the t-test separates the pair, by which cell is higher; else 0."""
    signs = []
    for domain, before in pair["domains_old"].items():
        sides = (before, pair["domains_new"][domain])
        signs.append(
            tuple(
                int(math.copysign(1, item["gap"]))
                if item["p"] is not None and item["p"] < ALPHA and item["gap"] is not None
                else 0
                for item in sides
            )
        )
    return [(before, now) for before, now in signs]


def _tally(signs: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Of all: significant before and now, kept with the same sign, became, ceased, and reversed."""
    return {
        "of": len(signs),
        "old": sum(before != 0 for before, _ in signs),
        "new": sum(now != 0 for _, now in signs),
        "kept": sum(before != 0 and before == now for before, now in signs),
        "became": sum(before == 0 and now != 0 for before, now in signs),
        "ceased": sum(before != 0 and now == 0 for before, now in signs),
        "reversed": sum(before * now < 0 for before, now in signs),
    }
