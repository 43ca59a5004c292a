"""One leaderboard before and now, by hand."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from builder.diff.boards import board_document
from builder.diff.changelog import relation
from builder.diff.render import as_html, as_markdown, as_text
from builder.diff.report import blocks
from builder.diff.sentences import apart, changed_test, claims, fallen, moved, order, swap_name, swaps
from builder.leaderboard import Leaderboard
from builder.statistics import Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import World


def board(rows: dict[str, tuple[float, float]]) -> Leaderboard:
    """A table of two domains and their mean."""
    values = np.asarray([[*cells, sum(cells) / 2] for cells in rows.values()])
    return Leaderboard("native", "rcp", "b", 10, tuple(rows), tuple(rows), ("x", "y", "mean"), values)


def pair(first: str, second: str, gap: float, half: float, *p_values: float | None) -> Pair:
    """Second minus first, with an interval of `half` to both sides."""
    named = dict(zip(("x", "y"), p_values, strict=True))
    return Pair(first, second, gap, gap - half, gap + half, abs(gap) < 0.02, named)


OLD = board({"A": (0.90, 0.80), "B": (0.80, 0.70), "C": (0.60, 0.70), "D": (0.2, 0.2)})
NEW = board({"A": (0.90, 0.80), "C": (0.88, 0.86), "B": (0.80, 0.70), "E": (0.1, 0.1)})
BEFORE = [
    pair("A", "B", -0.10, 0.05, 0.01, 0.04),
    pair("A", "C", -0.20, 0.05, 0.01, 0.30),
    pair("B", "C", -0.10, 0.11, 0.01, None),
    pair("A", "D", -0.65, 0.05, 0.01, 0.01),
]
AFTER = [
    pair("A", "C", 0.02, 0.03, 0.20, 0.02),
    pair("A", "B", -0.10, 0.12, 0.01, 0.06),
    pair("C", "B", -0.12, 0.05, 0.01, 0.01),
    pair("A", "E", -0.75, 0.05, 0.01, 0.01),
]
FOUND = board_document(OLD, NEW, BEFORE, AFTER)


def test_ranks_and_cells() -> None:
    """Systems of both stand in the new order with both ranks; the others are named; cells are compared one by one."""
    assert [("A", 1, 2), ("C", 3, 1), ("B", 2, 3)] == [
        (row["system"], row["rank_old"], row["rank_new"]) for row in FOUND["systems"]
    ]
    assert (["E"], ["D"]) == (FOUND["added"], FOUND["removed"])
    assert (9, 3, 3) == tuple(FOUND["cells"][name] for name in ("compared", "changed", "changed_as_printed"))
    assert (0.28, (0.28 + 0.16 + 0.22) / 9) == pytest.approx(
        (FOUND["cells"]["max_size"], FOUND["cells"]["mean"]), abs=1e-12
    )
    # Means 0.85, 0.65, 0.75 (A, C, B) before and 0.85, 0.87, 0.75 now: A-B stays, A-C and C-B turn.
    assert pytest.approx(-1 / 3, abs=1e-12) == FOUND["kendall_tau"]


def test_pairs() -> None:
    """A-B ceased, A-C ceased and swapped, B-C became with the other one ahead."""
    assert [("A", "C", True, False), ("A", "B", True, False), ("B", "C", False, True)] == [
        (row["first"], row["second"], row["apart_old"], row["apart_new"]) for row in FOUND["pairs"]
    ]
    assert {("A", "C"), ("B", "C")} == {(row["first"], row["second"]) for row in FOUND["swaps"]}
    first = FOUND["pairs"][0]
    assert (0.20, [0.15, 0.25], -0.02, [-0.05, 0.01]) == (
        pytest.approx(first["gap_old"]),
        pytest.approx(first["interval_old"]),
        pytest.approx(first["gap_new"]),
        pytest.approx(first["interval_new"]),
    )
    assert {"of": 3, "old": 2, "new": 1, "kept": 0, "became": 1, "ceased": 2, "reversed": 0} == FOUND["apart"]


def test_tests_by_domain() -> None:
    """Paired t-tests, pair by pair and domain by domain; a test whose sign turns is reversed, an undefined one is none.

    x: A-C 0.01 -> 0.20 ceased; A-B kept; B-C 0.01 -> 0.01 with the other cell higher: reversed.
    y: A-C 0.30 -> 0.02 became; A-B 0.04 -> 0.06 ceased; B-C none -> 0.01 became.
    """
    assert {"of": 6, "old": 4, "new": 4, "kept": 1, "became": 2, "ceased": 2, "reversed": 1} == FOUND["tests"]


def test_changes_by_domain() -> None:
    """Each test that changed, the system first that is ahead where it is significant (cells of B and C: -0.16 in y)."""
    assert [
        ("ceased", "x", "A", "C", 0.01, 0.20),
        ("became", "y", "C", "A", 0.30, 0.02),
        ("ceased", "y", "A", "B", 0.04, 0.06),
        ("reversed", "x", "B", "C", 0.01, 0.01),
        ("became", "y", "C", "B", None, 0.01),
    ] == [
        tuple(change[name] for name in ("change", "domain", "first", "second", "p_old", "p_new"))
        for change in FOUND["test_changes"]
    ]
    last = FOUND["test_changes"][-1]
    assert (0.0, 0.16) == pytest.approx((last["gap_old"], last["gap_new"]))
    assert "y: C over B (p undefined, now 0.01)" == changed_test(last)


def test_swaps_in_one_domain() -> None:
    """A led C by 10 points in y and now trails by 6; B led C by 20 in x and trails by 8; a tie that ends is no swap."""
    assert ["x: B over C (gap 20.00, now -8.00 points)", "y: A over C (gap 10.00, now -6.00 points)"] == sorted(
        swap_name(swap) for swap in FOUND["domain_swaps"]
    )


def test_a_domain_turns_under_a_mean_that_stays() -> None:
    """Means keep their order (0.75, 0.70) while A falls behind B in y: the summary counts it."""
    before = board({"A": (0.9, 0.6), "B": (0.7, 0.5)})
    now = board({"A": (1.0, 0.5), "B": (0.7, 0.7)})
    found = board_document(
        before, now, [pair("A", "B", -0.15, 0.1, None, None)], [pair("A", "B", -0.05, 0.04, None, None)]
    )
    assert ([], [("y", "A", "B")]) == (
        found["swaps"],
        [(swap["domain"], swap["first"], swap["second"]) for swap in found["domain_swaps"]],
    )
    assert "0 rank swaps of the means, 1 within single domains" == swaps([found])
    assert [] == fallen([found])


def test_sentences() -> None:
    """A newcomer reads who is gone, the ranks that changed, the largest change, and the claims that are lost."""
    assert "D is gone; E is new; C is number 1, was 3, A is number 2, was 1, B is number 3, was 2" == order(FOUND)
    assert "3 of 9 cells print another value, the largest change is 28.00 points" == moved(FOUND)
    assert (
        "of 3 pairs of systems, 2 were apart (95 % bootstrap interval of their gap excludes 0); none still are; 1 more "
        "was, with a system that is gone; no longer apart: A over C (gap 20.00, now -2.00 points), A over B (gap "
        "10.00, now 10.00 points); now apart: B over C (gap 10.00, now -12.00 points)."
    ) == apart(FOUND)
    assert (
        "Over 1 table (view, metric, tie rule): 2 rank swaps of the means, 2 within single domains; of 3 claims 'A is "
        "ahead of B' that the old release supports, none still stand; no longer stand: A ahead of C (RCP-nDCG@10, "
        "native view, ties b), A ahead of B (RCP-nDCG@10, native view, ties b); 1 of 3 significant leaderboard claims "
        "cannot be checked, as D is gone."
    ) == claims({"leaderboards": [FOUND]})[-1]


@pytest.mark.parametrize("render", [as_text, as_markdown, as_html])
def test_claims_that_fall_are_named(world: World, render: Callable[..., str]) -> None:
    """Every format names, beside the fallen claims, the orders and t-tests that changed in a single domain."""
    document = {**world.diff(world.first, world.recalibrated), "leaderboards": [FOUND]}
    text = re.sub(r"\\(?=\W)", "", render(blocks(document)))
    for said in (
        "2 of 3 significant leaderboard claims no longer stand; 1 of 3 significant leaderboard claims cannot be",
        "cannot be checked, as D is gone.",
        "no longer stand: A ahead of C (RCP-nDCG@10, native view, ties b)",
        "Swapped in x: B over C (gap 20.00, now -8.00 points).",
        "No longer significant in x: A over C (p 0.01, now 0.2).",
        "Now significant in y: C over A (p 0.3, now 0.02).",
        "Significant, reversed in x: B over C (p 0.01, now 0.01).",
    ):
        assert said in text


def test_a_system_that_is_gone_takes_its_claims_along() -> None:
    """What stands between the others is not all that the old release claimed: the rest cannot be checked."""
    found = board_document(OLD, board({"A": (0.9, 0.8), "B": (0.8, 0.7), "C": (0.6, 0.7)}), BEFORE, BEFORE[:3])
    assert (2, 2, 1) == (found["apart"]["old"], found["apart"]["kept"], found["unchecked"])
    assert "D is gone; the order of all 3 systems of both is unchanged" == order(found)
    assert claims({"leaderboards": [found]})[-1].endswith(
        "of 3 claims 'A is ahead of B' that the old release supports, 2 still stand; 1 of 3 significant leaderboard "
        "claims cannot be checked, as D is gone."
    )


def test_a_card_counts_claims_that_cannot_be_checked(world: World) -> None:
    """The card's relation to the release before has a row for them, beside those that no longer stand."""
    document = {**world.diff(world.first, world.recalibrated), "leaderboards": [FOUND]}
    changes = {change["what"]: (change["changed"], change["of"]) for change in relation(document)["changes"]}
    assert (1, 3) == changes["significant differences of Means with a system that is gone"]


def test_an_unchanged_table() -> None:
    """The same table twice: no cell, rank or pair changes."""
    same = board_document(OLD, OLD, BEFORE, BEFORE)
    assert (0, [], 1.0, 0.0) == (
        same["cells"]["changed"],
        same["swaps"],
        pytest.approx(same["kendall_tau"]),
        same["cells"]["max_size"],
    )
    assert "the order of all 4 systems is unchanged" == order(same)
    assert "all 12 cells are unchanged" == moved(same)
    assert (3, 3) == (same["apart"]["old"], same["apart"]["kept"])


def test_a_top_that_stays() -> None:
    """Where only the lower ranks change, the top that stays is said first."""
    now = board({"A": (0.9, 0.8), "B": (0.8, 0.7), "D": (0.7, 0.7), "C": (0.6, 0.6)})
    found = board_document(OLD, now, [], [])
    assert "the order of the top 2 is unchanged; D is number 3, was 4, C is number 4, was 3" == order(found)


def test_an_undefined_cell() -> None:
    """A system without a Mean has no rank, and its cell is not compared."""
    gone = board({"A": (0.9, math.nan), "B": (0.8, 0.7)})
    found = board_document(gone, gone, [], [])
    assert [("A", None), ("B", 1)] == [(row["system"], row["rank_new"]) for row in found["systems"]]
    assert 4 == found["cells"]["compared"]
