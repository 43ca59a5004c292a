"""Reciprocal rank fusion: worked numbers, a plain-Python oracle, the real benchmark, and every refusal."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.errors import DataError
from provenance.fusion import check_first_stage, check_fused, fuse

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

SCHEMA = {
    "retriever": pl.String,
    "query-id": pl.String,
    "corpus-id": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
}
Lists = dict[tuple[str, str], list[str]]


def table(lists: Lists) -> pl.DataFrame:
    """Ranked lists by (retriever, query) as a first-stage table; a page's score is minus its rank."""
    rows = [
        (retriever, query, page, rank, -float(rank))
        for (retriever, query), pages in lists.items()
        for rank, page in enumerate(pages, 1)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def oracle(
    lists: Lists, retrievers: list[str], queries: list[str], k: int, depth: int
) -> list[tuple[str, str, int, float]]:
    """Method spec section 2 read line by line, without a data frame; queries in the order given."""
    fused = []
    for query in queries:
        score: dict[str, float] = {}  # keeps first-seen order, and sorted() is stable
        for retriever in retrievers:
            for rank, page in enumerate(lists.get((retriever, query), [])[:depth], 1):
                score[page] = score.get(page, 0.0) + 1.0 / (k + rank)
        ranking = sorted(score, key=lambda page: -score[page])[:depth]
        fused += [(query, page, rank, score[page]) for rank, page in enumerate(ranking, 1)]
    return fused


def test_worked_lists_of_two_retrievers() -> None:
    """Method spec section 17.7: A d1,d2,d3 and B d2,d1,d4 give d1, d2, d3, d4, ties by first sight."""
    lists = {("A", "q1"): ["d1", "d2", "d3"], ("B", "q1"): ["d2", "d1", "d4"]}
    fused = fuse(table(lists), retrievers=["A", "B"], k=60, depth=150, query_ids=["q1"])
    assert ["d1", "d2", "d3", "d4"] == fused["corpus-id"].to_list()
    assert [1, 2, 3, 4] == fused["rank"].to_list()
    expected = [0.0325224749, 0.0325224749, 0.0158730159, 0.0158730159]
    assert expected == pytest.approx(fused["score"].to_list(), abs=1e-10)


def test_worked_tie_of_mirrored_lists() -> None:
    """Method spec section 17.7: A d3,d4 and B d4,d3 tie, and A saw d3 first."""
    lists = {("A", "q1"): ["d3", "d4"], ("B", "q1"): ["d4", "d3"]}
    fused = fuse(table(lists), retrievers=["A", "B"], k=60, depth=150, query_ids=["q1"])
    assert ["d3", "d4"] == fused["corpus-id"].to_list()


def test_order_of_retrievers_decides_ties() -> None:
    """The same table fused in the other retriever order breaks its ties the other way."""
    lists = {("A", "q1"): ["d3", "d4"], ("B", "q1"): ["d4", "d3"]}
    fused = fuse(table(lists), retrievers=["B", "A"], k=60, depth=150, query_ids=["q1"])
    assert ["d4", "d3"] == fused["corpus-id"].to_list()


@given(
    lists=st.dictionaries(
        st.tuples(st.sampled_from("ABC"), st.sampled_from(["q1", "q2", "q10"])),
        st.lists(st.sampled_from([f"d{n}" for n in range(9)]), unique=True, min_size=1),
        min_size=1,
    ),
    retrievers=st.permutations("ABC"),
    k=st.integers(1, 60),
    depth=st.integers(1, 9),
    shuffle=st.randoms(use_true_random=False),
)
def test_fusion_is_the_plain_reading(lists: Lists, retrievers: list[str], k: int, depth: int, shuffle: Random) -> None:
    """Fusion equals a plain-Python reading bit for bit: short and empty lists, ties, any row order of the table."""
    queries = [query for query in ("q1", "q2", "q10") if any(query == key[1] for key in lists)]
    expected = oracle(lists, list(retrievers), queries, k, depth)
    rows = table(lists).rows()
    shuffle.shuffle(rows)
    first_stage = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    assert expected == fuse(first_stage, retrievers=retrievers, k=k, depth=depth, query_ids=queries).rows()


def test_stored_fusion_is_no_retriever() -> None:
    """Rows of rrf_fused in the input do not enter the sums."""
    lists = {("A", "q1"): ["d1"], ("rrf_fused", "q1"): ["d1"]}
    fused = fuse(table(lists), retrievers=["A"], k=1, depth=2, query_ids=["q1"])
    assert [("q1", "d1", 1, 0.5)] == fused.rows()


def test_query_without_any_row_is_refused() -> None:
    """A query for which no retriever has a row is an error that names it."""
    with pytest.raises(DataError, match=r"no retriever has a row.*'q2'"):
        fuse(table({("A", "q1"): ["d1"]}), retrievers=["A"], k=60, depth=2, query_ids=["q1", "q2"])


def test_reference_fusion_is_reproduced(reference: Path) -> None:
    """The real first stage of both domains passes every check, and its rrf_fused rows are ours bit for bit."""
    benchmark = tomllib.loads((reference / "benchmark.toml").read_text("utf-8"))
    retrievers = benchmark["fusion"]["retrievers"]
    for domain in benchmark["domains"]:
        file = reference / "pipeline" / "first_stage" / f"{domain}.parquet"
        first_stage = pl.read_parquet(file)
        stored = first_stage.filter(pl.col("retriever") == "rrf_fused").drop("retriever").sort("query-id", "rank")
        queries = stored["query-id"].unique().to_list()
        check_first_stage(first_stage, retrievers=retrievers, query_ids=queries, file=str(file))
        fused = fuse(first_stage, retrievers=retrievers, k=60, depth=150, query_ids=queries)
        check_fused(first_stage, fused, file=str(file))
        assert stored.rows() == fused.sort("query-id", "rank").rows()


def good() -> pl.DataFrame:
    """A table that passes: two retrievers, one query."""
    return table({("A", "q1"): ["d1", "d2"], ("B", "q1"): ["d2"]})


def replaced(row: int, column: str, value: object) -> pl.DataFrame:
    """The good table with one cell replaced."""
    frame = good()
    cells = frame[column].to_list()
    cells[row] = value
    return frame.with_columns(pl.Series(column, cells, dtype=frame.schema[column]))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (replaced(1, "corpus-id", None), r"null .*f\.parquet, row 1, column 'corpus-id'"),
        (replaced(2, "retriever", "BB"), r"not one of .*row 2, column 'retriever', value 'BB'"),
        (replaced(0, "query-id", "q9"), r"not one of .*row 0, column 'query-id', value 'q9'"),
        (replaced(1, "score", float("nan")), r"not finite .*row 1, column 'score', value nan"),
        (replaced(1, "score", float("inf")), r"not finite .*row 1, column 'score', value inf"),
        (replaced(1, "corpus-id", "d1"), r"twice .*row 1, column 'corpus-id', value 'd1'"),
        (replaced(1, "rank", 3), r"expected 2\).*row 1, column 'rank', value 3"),
        (replaced(1, "rank", 1), r"expected 2\).*row 1, column 'rank', value 1"),
        (replaced(0, "rank", 0), r"expected 1\).*row 0, column 'rank', value 0"),
        (good().drop("rank"), r"missing .*column 'rank'"),
        (good().cast({"rank": pl.Int32}), r"type is Int32, not Int64 .*column 'rank'"),
        (good().filter(pl.col("retriever") == "A"), r"'B' has no row"),
    ],
)
def test_broken_first_stage_is_refused(broken: pl.DataFrame, message: str) -> None:
    """Each broken rule is refused with file, row, column and value."""
    with pytest.raises(DataError, match=message):
        check_first_stage(broken, retrievers=["A", "B"], query_ids=["q1"], file="f.parquet")


def test_good_first_stage_passes() -> None:
    """The table that the broken ones are made from is accepted."""
    check_first_stage(good(), retrievers=["A", "B"], query_ids=["q1"], file="f.parquet")


def stored_fusion(pages: list[str], scores: list[float]) -> pl.DataFrame:
    """The lists A d1,d2 and B d2 with stored fused rows; with k = 1 their fusion is d2 (1/3 + 1/2), d1 (1/2)."""
    rows = [("rrf_fused", "q1", page, rank, scores[rank - 1]) for rank, page in enumerate(pages, 1)]
    return pl.concat([good(), pl.DataFrame(rows, schema=SCHEMA, orient="row")])


RIGHT = 1 / 3 + 1 / 2


@pytest.mark.parametrize(
    ("pages", "scores", "message"),
    [
        (["d1", "d2"], [0.5, RIGHT], r"'d2' \(query-id 'q1', rank 1; 2 rows.*f, row 3, column 'corpus-id', value 'd1'"),
        (["d2", "d1"], [RIGHT, 0.5 + 1e-11], r"score is not the fusion's, 0\.5 .*row 4, column 'score'"),
        (["d2"], [RIGHT], r"a stored row is missing: the fusion has 'd1'"),
        (["d2", "d1", "d3"], [RIGHT, 0.5, 0.1], r"a stored row too many.*row 5, column 'corpus-id', value 'd3'"),
    ],
)
def test_wrong_stored_fusion_is_refused(pages: list[str], scores: list[float], message: str) -> None:
    """Stored fused rows with another order, another score, a row less or a row more are refused."""
    first_stage = stored_fusion(pages, scores)
    fused = fuse(first_stage, retrievers=["A", "B"], k=1, depth=3, query_ids=["q1"])
    with pytest.raises(DataError, match=message):
        check_fused(first_stage, fused, file="f")


def test_right_stored_fusion_passes_within_tolerance() -> None:
    """Stored scores within 1e-12 of the fusion's are accepted."""
    first_stage = stored_fusion(["d2", "d1"], [RIGHT + 5e-13, 0.5])
    check_fused(first_stage, fuse(first_stage, retrievers=["A", "B"], k=1, depth=3, query_ids=["q1"]), file="f")
