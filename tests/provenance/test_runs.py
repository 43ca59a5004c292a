"""Runs: tie rule (a), stored positions, null scores, the real benchmark, and every refusal."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.errors import DataError
from provenance.runs import rank, unranked

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

SCHEMA = {"model": pl.String, "query-id": pl.String, "corpus-id": pl.String, "score": pl.Float64}
Row = tuple[str | None, str, str, float | None]


def table(*rows: Row) -> pl.DataFrame:
    """A runs table."""
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


def pool(*pairs: tuple[str, str]) -> pl.DataFrame:
    """A pool, each query's pages in the order given."""
    ranks: dict[str, int] = {}
    rows = []
    for query, page in pairs:
        ranks[query] = ranks.get(query, 0) + 1
        rows.append((query, page, ranks[query]))
    schema = {"query-id": pl.String, "corpus-id": pl.String, "pool_rank": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


PAIRS = (("q1", "d1"), ("q1", "d2"), ("q1", "d10"))


def test_ranks_by_hand() -> None:
    """Score descending, then page id descending as a string: d2 before d10 and d1 among equals; rows in pool order."""
    runs = table(("m", "q1", "d10", 0.5), ("m", "q1", "d1", 0.9), ("m", "q1", "d2", 0.5))
    expected = [("m", "q1", "d1", 0.9, 1, 2), ("m", "q1", "d2", 0.5, 2, 3), ("m", "q1", "d10", 0.5, 3, 1)]
    assert expected == rank(runs, pool(*PAIRS), models=["m"], file="f").rows()


def test_null_score_is_kept_unranked_and_counted() -> None:
    """A null score keeps its row and position, has no rank, takes none from the others, and is counted."""
    runs = table(("m", "q1", "d10", None), ("m", "q1", "d1", -1.0), ("m", "q1", "d2", 0.5))
    ranked = rank(runs, pool(*PAIRS), models=["m"], file="f")
    expected = [("m", "q1", "d1", -1.0, 2, 2), ("m", "q1", "d2", 0.5, 1, 3), ("m", "q1", "d10", None, None, 1)]
    assert expected == ranked.rows()
    assert {"m": 1} == unranked(ranked)


def test_rows_are_canonical() -> None:
    """Models in the benchmark's order, then queries by number."""
    runs = table(("a", "q10", "d", 1.0), ("b", "q10", "d", 1.0), ("a", "q2", "d", 1.0), ("b", "q2", "d", 1.0))
    ranked = rank(runs, pool(("q2", "d"), ("q10", "d")), models=["b", "a"], file="f")
    assert [("b", "q2"), ("b", "q10"), ("a", "q2"), ("a", "q10")] == ranked.select("model", "query-id").rows()


SCORES = st.sampled_from([None, -1.0, -0.0, 0.0, 0.5, 5e-324, 1e308])


@given(scores=st.dictionaries(st.text("dé漢𝄞1", min_size=1, max_size=3), SCORES, min_size=1), shuffle=st.randoms())
def test_ranks_are_python_s_sort(scores: dict[str, float | None], shuffle: Random) -> None:
    """Ranks and positions equal sorting (score, id) pairs in Python, for tied, null, zero and extreme scores."""
    pages = list(scores)
    shuffle.shuffle(pages)
    runs = table(*(("m", "q1", page, scores[page]) for page in pages))
    best = sorted(((score, page) for page, score in scores.items() if score is not None), reverse=True)
    place = {page: position for position, (_, page) in enumerate(best, 1)}
    expected = [(page, scores[page], place.get(page), pages.index(page) + 1) for page in scores]
    ranked = rank(runs, pool(*(("q1", page) for page in scores)), models=["m"], file="f")
    assert expected == ranked.drop("model", "query-id").rows()


GOOD = table(
    *(("m", query, page, 0.1) for query, page in PAIRS), *(("other", query, page, 0.1) for query, page in PAIRS)
)


def replaced(row: int, column: str, value: object) -> pl.DataFrame:
    """The good table with one cell replaced."""
    cells = GOOD[column].to_list()
    cells[row] = value
    return GOOD.with_columns(pl.Series(column, cells, dtype=GOOD.schema[column]))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (replaced(0, "model", None), r"null .*f, row 0, column 'model'"),
        (replaced(1, "score", float("nan")), r"not finite .*corpus-id 'd2'.*row 1, column 'score', value nan"),
        (replaced(1, "score", float("-inf")), r"not finite .*row 1, column 'score', value -inf"),
        (replaced(3, "model", "othr"), r"not one of .*row 3, column 'model', value 'othr'(.|\n)*did you mean 'other'"),
        (replaced(1, "corpus-id", "d1"), r"twice .*row 1, column 'corpus-id', value 'd1'"),
        (replaced(2, "corpus-id", "d3"), r"not in the query's pool .*row 2, column 'corpus-id', value 'd3'"),
        (replaced(2, "query-id", "q9"), r"not in the query's pool .*query-id 'q9'.*row 2"),
        (GOOD.head(5), r"'other' has no score for a page of the pool of query 'q1' .*value 'd10'"),
        (GOOD.head(3), r"'other' has no row"),
        (GOOD.cast({"score": pl.Float32}), r"type is Float32, not Float64 .*column 'score'"),
    ],
)
def test_broken_run_is_refused(broken: pl.DataFrame, message: str) -> None:
    """Each broken rule is refused with file, row, column and value."""
    with pytest.raises(DataError, match=message):
        rank(broken, pool(*PAIRS), models=["m", "other"], file="f")


def test_reference_runs_rank_as_python_sorts(reference: Path) -> None:
    """Every list of the real benchmark, one of its runs full of ties, ranks as Python sorts (score, id)."""
    benchmark = tomllib.loads((reference / "benchmark.toml").read_text("utf-8"))
    domain = next(iter(benchmark["domains"]))
    runs = pl.read_parquet(reference / "pipeline" / "runs" / f"{domain}.parquet")
    pools = pl.read_parquet(reference / "expected" / "pool" / f"{domain}.parquet")
    expected: dict[tuple[str, str, str], tuple[int, int]] = {}
    lists: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for model, query, page, score in runs.iter_rows():
        lists.setdefault((model, query), []).append((score, page))
    for (model, query), stored in lists.items():
        place = {pair: position for position, pair in enumerate(sorted(stored, reverse=True), 1)}
        for position, pair in enumerate(stored, 1):
            expected[model, query, pair[1]] = (place[pair], position)
    ranked = rank(runs, pools, models=list(benchmark["rerankers"]), file="f").drop("score")
    assert expected == {row[:3]: row[3:] for row in ranked.iter_rows()}
    assert len(expected) == ranked.height
