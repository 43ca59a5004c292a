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
    from collections.abc import Iterator, Mapping, Sequence

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
        (each pair of systems of both), `domain_swaps` and `test_changes` (pairs whose order turned, or whose t-test
        became or ceased to be significant or turned, in one domain), and counts: `apart` of pairs, `tests` of pairs and
        domains, `unchecked` of claims that `old` supports about a system that has no row now.
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
        "domain_swaps": list(_domain_swaps(systems, new.columns)),
        "test_changes": [change for pair in pairs for change in _test_changes(pair)],
        "swaps": [pair for pair in pairs if pair["gap_old"] * pair["gap_new"] < 0],
        "pairs": pairs,
        "unchecked": sum(
            not {pair.first, pair.second} <= set(new.rows) and (pair.low > 0 or pair.high < 0) for pair in before
        ),
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


def _domain_swaps(systems: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Pairs that a single domain orders otherwise than before; `first` was ahead there, gaps are first minus second."""
    for domain in columns:
        if domain == MEAN:
            continue
        cells = [(row["system"], row["old"][domain], row["new"][domain]) for row in systems]
        for one, other in combinations([cell for cell in cells if None not in cell], 2):
            first, second = (one, other) if one[1] >= other[1] else (other, one)
            old, new = first[1] - second[1], first[2] - second[2]
            if old * new < 0:
                yield {"domain": domain, "first": first[0], "second": second[0], "gap_old": old, "gap_new": new}


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
    return [
        (_test_sign(before), _test_sign(pair["domains_new"][domain])) for domain, before in pair["domains_old"].items()
    ]


def _test_sign(item: Mapping[str, Any]) -> int:
    separated = item["p"] is not None and item["p"] < ALPHA and item["gap"] is not None
    return int(math.copysign(1, item["gap"])) if separated else 0


def _test_changes(pair: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Domains whose t-test became or ceased to separate the pair, or now says the opposite.

    `first` is ahead in that domain where the test is significant (before, if it is in both); gaps are first minus
    second.
    """
    for (domain, before), (was, now) in zip(pair["domains_old"].items(), _test_signs(pair), strict=True):
        if was != now:
            after = pair["domains_new"][domain]
            sign = was or now
            names = (pair["first"], pair["second"])[::sign]
            yield {
                "change": "became" if not was else "ceased" if not now else "reversed",
                "domain": domain,
                "first": names[0],
                "second": names[1],
                **{
                    f"gap_{side}": None if item["gap"] is None else sign * item["gap"]
                    for side, item in (("old", before), ("new", after))
                },
                "p_old": before["p"],
                "p_new": after["p"],
            }


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
