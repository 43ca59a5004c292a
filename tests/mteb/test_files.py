"""The files a task reads: whatever is wrong with them, no number comes out, but a sentence."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import mteb
import polars as pl
import pytest
from support.in_mteb import Given, copy_release, digits, gains_of, load_task_file, scores_of
from support.plain_ndcg import plain_ndcg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QRELS = "paper__french/qrels.parquet"
QUERIES = "paper__french/queries.parquet"
POOLS = "paper__french/top_ranked.parquet"
CORPUS = "paper/corpus-00000-of-00001.parquet"
OF_QUERY_1 = pl.col("query-id") == "query-test-1"


def evaluate(tree: Path, view: str = "reranking") -> dict[str, dict[str, Any]]:
    """Scores by subset of the release in a folder."""
    (task,) = load_task_file(tree / "rcp_ndcg_tasks.py").get_tasks(view=view)
    return scores_of(mteb.evaluate(Given(digits), task, cache=None))


def replay(tree: Path, subset: str) -> float:
    """The reranking score of `digits` on a subset, by the plain loop."""
    pools = dict(pl.read_parquet(tree / subset / "top_ranked.parquet").iter_rows())
    gains = gains_of(tree, subset)
    values = [
        plain_ndcg({page: digits(query, page) for page in pools[query]}, gains[query], k=10, rule="b")
        for query in gains
    ]
    return sum(values) / len(values)


def test_release_folder_is_read_where_it_lies(tiny_tree: Path) -> None:
    """A task file in a release tree reads the tree; its scores equal the plain loop's."""
    for subset, scores in evaluate(tiny_tree).items():
        assert replay(tiny_tree, subset) == pytest.approx(scores["ndcg_float_at_10"], abs=1e-12)


def test_changed_local_folder_is_seen(tiny_tree: Path, tmp_path: Path) -> None:
    """A file rewritten in place, with the same size and time, is refused after a run that filled the caches."""
    tree = tmp_path / "tree"
    shutil.copytree(tiny_tree, tree)
    evaluate(tree)
    file = tree / QRELS
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(RuntimeError, match=rf"{QRELS} is not the file of release 'v1-toy'"):
        evaluate(tree)


def test_new_release_in_the_same_folder_is_read_anew(tiny_world: Path, tiny_tree: Path, tmp_path: Path) -> None:
    """Another release under the same folder name, file times and tag gives its own scores, whatever is cached."""
    tree = tmp_path / "tree"
    copy_release(tiny_tree, tree, tiny_world, tag="v1-toy")
    before = {path: path.stat() for path in tree.rglob("*.parquet")}
    first = evaluate(tree)
    changed = copy_release(
        tiny_tree,
        tmp_path / "other",
        tiny_world,
        tag="v1-toy",
        edits={QRELS: lambda frame: frame.with_columns(gain=1 - pl.col("gain"))},
    )
    shutil.rmtree(tree)
    changed.rename(tree)
    for path, stat in before.items():
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = evaluate(tree)
    assert first["paper__english"]["main_score"] == second["paper__english"]["main_score"]
    assert replay(tree, "paper__french") == pytest.approx(second["paper__french"]["main_score"], abs=1e-12)
    assert first["paper__french"]["main_score"] != second["paper__french"]["main_score"]


def test_truncated_file_is_seen(tiny_tree: Path, tmp_path: Path) -> None:
    """A corpus file cut short is refused."""
    tree = tmp_path / "tree"
    shutil.copytree(tiny_tree, tree)
    (tree / CORPUS).write_bytes((tiny_tree / CORPUS).read_bytes()[:-100])
    with pytest.raises(RuntimeError, match=rf"{CORPUS} is not the file of release 'v1-toy'"):
        evaluate(tree)


BROKEN: list[tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    (POOLS, lambda frame: frame.filter(~OF_QUERY_1), "query 'query-test-1' has no pool"),
    (
        POOLS,
        lambda frame: frame.with_columns(pl.when(OF_QUERY_1).then([]).otherwise("corpus-ids").alias("corpus-ids")),
        "query 'query-test-1' has no pool: it is empty",
    ),
    (
        POOLS,
        lambda frame: frame.with_columns(pl.col("corpus-ids").list.concat(pl.lit(["corpus-test-99"]))),
        "page 'corpus-test-99' in the pool of query 'query-test-1' is not in the corpus",
    ),
    (
        POOLS,
        lambda frame: frame.with_columns(pl.col("corpus-ids").list.concat(pl.col("corpus-ids").list.head(1))),
        "in the pool of query 'query-test-1' page 'corpus-test-.*' is there twice",
    ),
    (
        POOLS,
        lambda frame: frame.with_columns(pl.col("corpus-ids").list.concat(pl.lit(["corpus-test-11"]))),
        "page 'corpus-test-11' in the pool of query 'query-test-1' has no gain",
    ),
    (QRELS, lambda frame: frame.filter(~OF_QUERY_1), "query 'query-test-1' has no qrels"),
    (
        QRELS,
        lambda frame: frame.with_columns(gain=pl.when(OF_QUERY_1).then(None).otherwise("gain")),
        "query 'query-test-1' has no gains",
    ),
    (QRELS, lambda frame: pl.concat([frame, frame.head(1)]), "of query 'query-test-1' is there twice"),
    (QRELS, lambda frame: frame.with_columns(gain=-pl.col("gain")), "the gain of page .* is -"),
    (
        QUERIES,
        lambda frame: frame.filter(pl.col("id") != "query-test-1"),
        "'query-test-1' is not among the queries",
    ),
    (
        CORPUS,
        lambda frame: frame.filter(pl.col("id") != "corpus-test-1"),
        "'corpus-test-1' .* is not in the corpus",
    ),
    (CORPUS, lambda frame: pl.concat([frame, frame.head(1)]), "page 'corpus-test-0' is there twice"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=[sentence for _, _, sentence in BROKEN])
def test_broken_release_gets_no_score(tiny_world: Path, tiny_tree: Path, tmp_path: Path, broken: Any) -> None:
    """Each way to be incomplete, in a release that is sealed and so otherwise believed, is named with file and id."""
    path, edit, sentence = broken
    tree = copy_release(tiny_tree, tmp_path / "tree", tiny_world, tag="v1-toy", edits={path: edit})
    with pytest.raises(RuntimeError, match=sentence) as caught:
        evaluate(tree)
    assert str(tree) in str(caught.value)


def test_score_0_rows_change_no_integer_score(tiny_world: Path, tiny_tree: Path, tmp_path: Path) -> None:
    """The metrics of mteb on the human grades are the same with and without the rows of score 0."""
    none: dict[str, Any] = {}
    for subset in ("paper__english", "paper__french"):
        none[f"{subset}/qrels.parquet"] = lambda frame: frame.filter(pl.col("score") > 0)
    tree = copy_release(tiny_tree, tmp_path / "tree", tiny_world, tag="v1-toy", edits=none)
    whole, positives = evaluate(tiny_tree, "retrieval"), evaluate(tree, "retrieval")
    for subset, scores in whole.items():
        ours = {"main_score", "release_files"}
        integer = {key: value for key, value in scores.items() if "float" not in key and key not in ours}
        other = {key: positives[subset][key] for key in integer}
        assert repr(integer) == repr(other)
        assert 0 < integer["ndcg_at_10"] < 1
