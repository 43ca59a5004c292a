"""N1 and L1: counted facts, declared counts, unusable windows; and pools and runs that only look right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from builder.proofs.notes import differing
from builder.proofs.windows import totals

if TYPE_CHECKING:
    from support.proving import Tree

CORPUS = "paper/corpus-00000-of-00001.parquet"
WINDOWS = "provenance/windows.toy.json"
COUNTS = {
    "pages": 10,
    "queries": 4,
    "labels": 6,
    "pages_without_text": 1,
    "pages_without_text_in_a_pool": 0,
    "pages_without_text_relevant": 0,
    "distinct_texts": 10,
    "groups_of_identical_text": 0,
    "pages_of_identical_text": 0,
    "groups_with_differing_labels": 0,
    "language_blocks": 4,
    "language_blocks_repeat": 1,
    "injected_pairs": 2,
}


def test_the_notes_of_the_tiny_world_are_those_counted_by_hand(tree: Tree) -> None:
    """Ids 0, 1, 2, 10 are english, french, english, french: four blocks of two languages."""
    measures = tree.validate("N1").outcomes[0].measures
    assert COUNTS == {name.removeprefix("paper: "): v for name, v in measures.items() if name.startswith("paper: ")}


def test_identical_texts_are_grouped(tree: Tree) -> None:
    """Pages 1 and 2 share a text; page 1 is labelled and page 2 is not, so their labels differ."""
    tree.cell(CORPUS, 2, "text", "text of corpus-test-1")
    measures = tree.validate("N1").outcomes[0].measures
    names = ("distinct_texts", "groups_of_identical_text", "pages_of_identical_text", "groups_with_differing_labels")
    assert [9, 1, 2, 1] == [measures[f"paper: {name}"] for name in names]


def test_a_group_whose_pages_all_have_one_label_does_not_differ() -> None:
    """Two groups: one graded alike for its query, one with two grades."""
    groups = pl.DataFrame({"corpus-id": ["a", "b", "c", "d"], "text": ["x", "x", "y", "y"], "size": [2, 2, 2, 2]})
    labels = pl.DataFrame(
        {"query-id": ["q"] * 4, "corpus-id": ["a", "b", "c", "d"], "score": [1, 1, 1, 2]},
        schema_overrides={"score": pl.Int64},
    )
    assert [1, 1] == [differing(groups, labels), differing(groups, labels.filter(pl.col("corpus-id") != "d"))]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"domains": {"paper": {"pages": 11}}}, "paper: pages is 10, the benchmark file expects 11"),
        ({"domains": {"paper": {"distinct_texts": 9}}}, "paper: distinct_texts is 10, the benchmark file expects 9"),
        ({"domains": {"paper": {"labels": 4}}}, "paper__english-qrels: labels is 3, the benchmark file expects 4"),
        ({"domains": {"paper": {"queries": 3}}}, "paper__english-queries: queries is 2, the benchmark file expects 3"),
        ({"injected_pairs": 3}, "all domains: injected_pairs is 2, the benchmark file expects 3"),
        (
            {"pages_without_text_in_a_pool": 1},
            "all domains: pages_without_text_in_a_pool is 0, the benchmark file expects 1",
        ),
    ],
)
def test_a_declared_count_that_does_not_hold_fails_n1(tree: Tree, expected: dict[str, Any], message: str) -> None:
    """A count of `[expected]` that is off by one is named with what was found."""
    assert tree.benchmark is not None
    tree.benchmark = replace(tree.benchmark, expected=expected)
    assert message in tree.validate("N1").outcomes[0].failures["message"].to_list()


def test_declared_counts_that_hold_make_n1_pass(tree: Tree) -> None:
    """With `[expected]` given and right, N1 is proved."""
    assert tree.benchmark is not None
    declared = {"pages": 10, "queries": 2, "labels": 3, "labelled_pages": 3, "pages_without_text": 1}
    tree.benchmark = replace(tree.benchmark, expected={"domains": {"paper": declared}, "injected_pairs": 2})
    assert "passed" == tree.validate("N1").outcomes[0].status


def test_windows_are_added_up_by_reason(tree: Tree) -> None:
    """40 windows a stage, one of each left out: a tournament answer without JSON, a rubric answer cut off."""
    measures = tree.validate("L1").outcomes[0].measures
    assert [40, 39, 1, 40, 39, 1] == [
        measures[name]
        for name in (
            "tournament windows",
            "tournament fitted",
            "tournament left out (no_json)",
            "rubric windows",
            "rubric fitted",
            "rubric left out (truncated)",
        )
    ]


def test_totals_add_up_phases_and_domains() -> None:
    """Windows in = fitted + left out, over two domains and two phases."""
    stage = {"random": {"fitted": 3, "schema": 1}, "adaptive": {"fitted": 2}}
    account = {"domains": {"a": {"tournament": stage}, "b": {"tournament": {"random": {"fitted": 1, "schema": 2}}}}}
    assert {"windows": 9, "fitted": 6, "left out (schema)": 3} == totals(account, "tournament")


def test_queries_with_many_unusable_windows_are_warnings(tree: Tree) -> None:
    """A query over 5 % unusable windows, or with an unusable adaptive one, warns where the account names it."""
    flags = {
        "paper": {
            "tournament": [
                {"query-id": "query-test-0", "windows": 10, "unusable": 1, "share": 0.1, "reasons": ["share"]},
                {"query-id": "query-test-1", "windows": 100, "unusable": 1, "share": 0.01, "reasons": ["adaptive"]},
            ]
        }
    }
    tree.json(WINDOWS, lambda document: document.update(flagged=flags))
    result = tree.validate("L1")
    assert [
        "paper, tournament, query-test-0: 10.0% of its windows are unusable",
        "paper, tournament, query-test-1: an adaptive window is unusable",
    ] == [warning.message for warning in result.outcomes[0].warnings]
    assert (True, False) == (result.holds(strict=False), result.holds(strict=True))


def test_a_domain_that_the_account_lacks_fails_l1(tree: Tree) -> None:
    """The account's domains are the tree's."""
    tree.json(WINDOWS, lambda document: document["domains"].update(other=document["domains"].pop("paper")))
    found = [(place[0], place[4]) for place in tree.failing("L1")["L1"]]
    assert [("domain", "paper"), ("domain", "other")] == found


def test_a_null_score_is_kept_unranked_and_counted(tree: Tree) -> None:
    """A run's missing score is no failure where its rank is null too; it is counted."""
    runs = "provenance/runs/paper.parquet"

    def take(rows: list[dict[str, Any]]) -> None:
        rows[0].update(score=None, rank_by_score=None)  # the last of six that tie: the others keep their ranks

    tree.rows(runs, take)
    tree.seal()
    outcome = tree.validate("R1").outcomes[0]
    assert ("passed", 1.0) == (outcome.status, outcome.measures["pairs without a score"])


def test_ties_go_by_page_id_as_text(tree: Tree) -> None:
    """Six equal scores: corpus-test-4 is first and corpus-test-10 before corpus-test-1, as strings sort."""
    frame = pl.read_parquet(tree.path / "provenance/runs/paper.parquet").head(6).sort("rank_by_score")
    assert [4, 3, 2, 10, 1, 0] == [int(page.rsplit("-", 1)[1]) for page in frame["corpus-id"]]
    assert {} == tree.failing("R1")


def test_minus_zero_and_zero_are_one_score(tree: Tree) -> None:
    """Scores of -0.0 and 0.0 tie, so their pages go by id."""

    def zeros(rows: list[dict[str, Any]]) -> None:
        for place, row in enumerate(rows[:6]):
            row["score"] = -0.0 if place % 2 else 0.0

    tree.rows("provenance/runs/paper.parquet", zeros)
    assert {} == tree.failing("R1")
