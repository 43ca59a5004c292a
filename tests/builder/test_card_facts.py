"""What a card says is counted right: by hand, and by the method spec's worked numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from builder.card_facts_judging import reliability, stages
from builder.card_facts_pool import language_batches, text_groups


def test_reliability_gives_the_worked_numbers() -> None:
    """Predicted .25 four times (one pass) and .8 twice (two passes): ECE 0.0666667, Brier 0.1383333 (spec 17.7)."""
    found = reliability([(np.array([[0.25], [0.8]]), np.array([4.0, 2.0]), np.array([[1.0], [2.0]]))])
    assert 6 == found.verdicts
    assert 0.0666667 == pytest.approx(found.ece, abs=1e-7)
    assert 0.1383333 == pytest.approx(found.brier, abs=1e-7)
    assert [2, 8] == np.flatnonzero(found.counts).tolist()
    assert [4.0, 2.0] == found.counts[[2, 8]].tolist()


def test_bins_are_closed_on_the_left() -> None:
    """An edge value goes to the upper bin, 1.0 to the last one, and 0.0 to the first."""
    edges = np.array([[0.0], [0.1], [0.3], [0.7], [1.0]])
    found = reliability([(edges, np.ones(5), np.ones((5, 1)))])
    assert [1, 1, 0, 1, 0, 0, 0, 1, 0, 1] == found.counts.astype(int).tolist()


def test_windows_are_summed_over_domains_and_phases() -> None:
    """Two domains, three phases: windows, fitted and reasons add up, stages in the order they were asked in."""
    account = {
        "judge": "toy",
        "domains": {
            "a": {
                "rubric": {"random": {"fitted": 5, "schema": 1}},
                "tournament": {"random": {"fitted": 3, "no_json": 2}, "adaptive": {"fitted": 4, "no_json": 0}},
            },
            "b": {"tournament": {"random": {"fitted": 10, "truncated": 1}}},
        },
    }
    tournament, rubric = stages(account)
    assert ("tournament", 20, 17, 3) == (tournament.stage, tournament.windows, tournament.fitted, tournament.left_out)
    assert {"truncated": 1, "no_json": 2} == dict(tournament.reasons)
    assert ("rubric", 6, 5, 1, {"schema": 1}) == (
        rubric.stage,
        rubric.windows,
        rubric.fitted,
        rubric.left_out,
        dict(rubric.reasons),
    )


def test_pages_of_identical_text_are_grouped_and_empty_ones_are_not() -> None:
    """Three pages share a text and two another; two empty pages and a single one are in no group."""
    pages = pl.DataFrame({"id": list("abcdefgh"), "text": ["x", "y", "x", "", "", "y", "x", "z"]})
    groups = text_groups(pages)
    assert [("a", "c", "g"), ("b", "f")] == sorted(
        tuple(sorted(part["corpus-id"])) for part in groups.partition_by("text")
    )
    assert {3, 2} == set(groups["size"])


@pytest.mark.parametrize(
    ("languages", "expected"),
    [(["en", "en", "fr", "fr"], 1), (["en", "fr", "en", "fr"], 2), (["en", "en", "fr", "en"], 2), (["en"], 1)],
)
def test_batches_of_language_blocks(languages: list[str], expected: int) -> None:
    """A language that comes back after another one starts a new batch; ids count by their number, not as text."""
    ids = [f"query-test-{number}" for number in range(8, 8 + len(languages))]
    questions = pl.DataFrame({"query-id": ids, "language": languages}).sample(fraction=1.0, shuffle=True, seed=0)
    assert expected == language_batches(questions)
