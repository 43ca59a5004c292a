"""A run and a benchmark: what is matched, what is missing, what is foreign, and what is refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from builder.benchmark import Subset
from builder.coverage import Coverage, SubsetCoverage, match_run
from provenance.errors import DataError

NORTH_EN, NORTH_FR, SOUTH_EN = Subset("north", "english"), Subset("north", "french"), Subset("south", "english")


def pool(**queries: str) -> pl.DataFrame:
    """The qrels of a subset: each query with its pages, a letter a page; a capital letter lies outside the pool."""
    rows = [(query, page, None if page.isupper() else 0.5) for query, pages in queries.items() for page in pages]
    return pl.DataFrame(rows, schema={"query-id": pl.String, "corpus-id": pl.String, "gain": pl.Float64}, orient="row")


QRELS = {
    NORTH_EN: pool(q0="abL", q1="ab"),
    NORTH_FR: pool(q2="bc"),
    SOUTH_EN: pool(q0="xy"),
}


def run(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """A run, with a subset where the rows have four cells."""
    names = ["query-id", "corpus-id", "score", "subset"][: len(rows[0])]
    return pl.DataFrame(list(rows), schema=names, orient="row").with_columns(pl.col("score").cast(pl.Float64))


def test_complete_run() -> None:
    """A run of every pair, named by subset or by domain, covers everything and leaves nothing to remark."""
    rows = [
        (query, page, 1.0, name)
        for subset, frame in QRELS.items()
        for query, page, gain in frame.rows()
        if gain is not None
        for name in [subset.domain if subset is NORTH_FR else subset.name]
    ]
    matched = match_run(run(*rows), QRELS, where="r")
    assert {"north": 6, "south": 2} == {name: len(frame) for name, frame in matched.domains.items()}
    assert [] == matched.coverage.remarks()


def test_coverage() -> None:
    """Missing queries, foreign queries and pages, pages outside the pool and null scores are counted one by one."""
    found = match_run(
        run(
            ("q0", "a", 1.0, "north__english"),
            ("q0", "b", None, "north__english"),
            ("q0", "L", 3.0, "north__english"),
            ("q0", "z", 3.0, "north__english"),
            ("q2", "b", 1.0, "north__english"),
            ("q9", "a", 1.0, "north"),
        ),
        QRELS,
        where="r",
    )
    expected = Coverage(
        subsets=(
            SubsetCoverage("north__english", 2, ("q1",), 4, 1),
            SubsetCoverage("north__french", 1, ("q2",), 2, 0),
            SubsetCoverage("south__english", 1, ("q0",), 2, 0),
        ),
        foreign_queries=("q9",),
        # L and z are in no pool, q2 is no query of north__english, q9 of nothing.
        foreign_pairs=4,
        foreign_pair="query 'q0' with page 'L'",
        unscored=1,
    )
    assert expected == found.coverage
    assert [("q0", "a", 1.0), ("q0", "b", None)] == found.domains["north"].sort("corpus-id").rows()
    assert [
        "nothing is ranked in north__french, south__english: no score there, and no mean over it.",
        "north__english: 1 of 2 queries have no ranked page and score 0 (q1).",
        "3 of 4 pool pairs of these subsets are not ranked.",
        "queries that the benchmark lacks: 1 (q9).",
        "rows outside the pools, left out: 4, e.g. query 'q0' with page 'L'.",
    ] == found.coverage.remarks()


def test_ids_of_one_domain_need_no_subset() -> None:
    """Ids that are in one domain only are found without a subset column."""
    found = match_run(run(("q1", "a", 1.0), ("q2", "c", 1.0)), QRELS, where="r")
    assert [("q1", "a", 1.0), ("q2", "c", 1.0)] == found.domains["north"].sort("query-id").rows()


def test_ambiguous_ids() -> None:
    """An id of two domains is refused where the run does not say which is meant."""
    with pytest.raises(
        DataError, match=r"(?s)query .q0. is in 2 domains \(north, south\).*next: add a column .subset."
    ):
        match_run(run(("q0", "a", 1.0)), QRELS, where="r")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("q0", "a", 1.0, "west"), r"'west' is no subset.*row 0, column 'subset'.*next: name one of north, north__eng"),
        (
            ("q1", "zz", 1.0, "north"),
            r"matches nothing of this benchmark.*next: use the benchmark's ids, e.g. query 'q0'",
        ),
        (("q1", "a", None, "north"), "the run has no score.*column 'score'"),
        (("query-1", "a", 1.0), "matches nothing of this benchmark"),
        (("q1", "\u0430", 1.0, "north"), r"its first: query 'q1' with page '.u0430'"),
    ],
)
def test_nothing_matches(row: tuple[Any, ...], message: str) -> None:
    """A run of which no pair is ranked in a pool is refused, and the benchmark's own ids are shown."""
    with pytest.raises(DataError, match=f"(?s){message}"):
        match_run(run(row), QRELS, where="r")


def test_named_twice() -> None:
    """A pair that a run holds once by its subset and once by its domain is a duplicate."""
    with pytest.raises(DataError, match="page 'a' is scored twice for query 'q1'"):
        match_run(run(("q1", "a", 1.0, "north"), ("q1", "a", 2.0, "north__english")), QRELS, where="r")


def test_empty_run() -> None:
    """A run without rows is refused."""
    with pytest.raises(DataError, match="matches nothing"):
        match_run(run(("q1", "a", 1.0)).clear(), QRELS, where="r")
