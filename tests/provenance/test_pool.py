"""Ground-truth injection: by hand, its invariants, and the real benchmark's pools."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.errors import DataError
from provenance.fusion import fuse
from provenance.pool import inject

if TYPE_CHECKING:
    from pathlib import Path


def fused(query: str, pages: list[str]) -> pl.DataFrame:
    """A fused list with scores 1/61, 1/62, ..."""
    ranks = range(1, len(pages) + 1)
    return pl.DataFrame(
        {
            "query-id": [query] * len(pages),
            "corpus-id": pages,
            "rank": list(ranks),
            "score": [1 / (60 + rank) for rank in ranks],
        },
        schema={"query-id": pl.String, "corpus-id": pl.String, "rank": pl.Int64, "score": pl.Float64},
    )


def labels(*pairs: tuple[str, str]) -> pl.DataFrame:
    """Positive pairs."""
    return pl.DataFrame(list(pairs), schema={"query-id": pl.String, "corpus-id": pl.String}, orient="row")


def test_injection_by_hand() -> None:
    """Two missing positives take the two lowest non-positive places, the smaller id the lower place; d5 stays."""
    pool = inject(
        fused("q1", ["d1", "d2", "d3", "d4", "d5"]), labels(("q1", "d5"), ("q1", "d9"), ("q1", "d10")), size=5
    )
    # "d10" < "d9" as strings; d5 is positive and keeps place 5, so the places are 4 (first) and 3.
    expected = [
        ("q1", "d1", 1, 1 / 61, False),
        ("q1", "d2", 2, 1 / 62, False),
        ("q1", "d9", 3, 0.0, True),
        ("q1", "d10", 4, 0.0, True),
        ("q1", "d5", 5, 1 / 65, False),
    ]
    assert expected == pool.rows()
    assert {
        "query-id": pl.String,
        "corpus-id": pl.String,
        "pool_rank": pl.Int64,
        "rrf_score": pl.Float64,
        "gt_injected": pl.Boolean,
    } == dict(pool.schema)


def test_positive_below_the_cut_is_missing() -> None:
    """A positive that is fused beyond the pool's size is injected like one that no retriever found."""
    pool = inject(fused("q1", ["d1", "d2", "d3"]), labels(("q1", "d3")), size=2)
    assert [("q1", "d1", 1, 1 / 61, False), ("q1", "d3", 2, 0.0, True)] == pool.rows()


def test_rows_are_canonical() -> None:
    """Queries go by the number in their id, and nothing is injected where nothing is missing."""
    pool = inject(pl.concat([fused("q10", ["d1"]), fused("q2", ["d7"])]), labels(("q2", "d7")), size=1)
    assert [("q2", "d7", 1, 1 / 61, False), ("q10", "d1", 1, 1 / 61, False)] == pool.rows()


PAGES = [f"d{n}" for n in range(14)]


@given(pages=st.permutations(PAGES), size=st.integers(1, 10), positive=st.sets(st.sampled_from(PAGES), max_size=10))
def test_invariants_of_injection(pages: list[str], size: int, positive: set[str]) -> None:
    """Method spec section 3: size, set, order, scores and flags, for any list and labels that fit in the pool."""
    positive = set(sorted(positive)[:size])
    pool = inject(fused("q1", pages), labels(*(("q1", page) for page in positive)), size=size)
    listed = pages[:size]
    missing = positive - set(listed)
    out = [page for page in reversed(listed) if page not in positive][: len(missing)]
    injected = pool.filter(pl.col("gt_injected"))
    kept = pool.filter(~pl.col("gt_injected"))
    assert list(range(1, size + 1)) == pool["pool_rank"].to_list()
    assert (set(listed) - set(out)) | missing == set(pool["corpus-id"])
    assert missing == set(injected["corpus-id"])
    assert [page for page in listed if page not in out] == kept["corpus-id"].to_list()
    assert [1 / (60 + pages.index(page) + 1) for page in kept["corpus-id"]] == kept["rrf_score"].to_list()
    assert [0.0] * len(missing) == injected["rrf_score"].to_list()


def test_short_list_is_refused() -> None:
    """A query whose fused list is shorter than the pool is an error."""
    with pytest.raises(DataError, match=r"has 2 pages, a pool needs 3 .*'q1'"):
        inject(fused("q1", ["d1", "d2"]), labels(), size=3)


def test_labelled_query_without_list_is_refused() -> None:
    """A query with labels and no fused row is an error, not a query less."""
    with pytest.raises(DataError, match=r"has 0 pages, a pool needs 1 .*'q2'"):
        inject(fused("q1", ["d1"]), labels(("q2", "d1")), size=1)


def test_more_positives_than_places_is_refused() -> None:
    """A positive that no page can give way to is named."""
    with pytest.raises(DataError, match=r"cannot be injected.*query-id 'q1'.*'d3'"):
        inject(fused("q1", ["d1", "d4"]), labels(("q1", "d1"), ("q1", "d2"), ("q1", "d3")), size=2)


def test_repeated_label_is_refused() -> None:
    """A positive pair that is there twice is refused, not made one."""
    with pytest.raises(DataError, match="twice"):
        inject(fused("q1", ["d1"]), labels(("q1", "d1"), ("q1", "d1")), size=1)


def test_reference_pools_are_reproduced(reference: Path) -> None:
    """The pools of both real domains equal the independently computed ones, values bit for bit."""
    benchmark = tomllib.loads((reference / "benchmark.toml").read_text("utf-8"))
    for domain in benchmark["domains"]:
        expected = pl.read_parquet(reference / "expected" / "pool" / f"{domain}.parquet")
        first_stage = pl.read_parquet(reference / "pipeline" / "first_stage" / f"{domain}.parquet")
        qrels = pl.read_parquet(reference / "upstream" / domain / "english-qrels" / "*.parquet")
        lists = fuse(
            first_stage,
            retrievers=benchmark["fusion"]["retrievers"],
            k=60,
            depth=150,
            query_ids=expected["query-id"].unique().to_list(),
        )
        # english-qrels holds the rows of all six languages (the data's README).
        pool = inject(lists, qrels.filter(pl.col("score") > 0), size=150)
        assert expected.sort("query-id", "pool_rank").rows() == pool.sort("query-id", "pool_rank").rows()
