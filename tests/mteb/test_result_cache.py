"""mteb's result cache over two releases that share their task names."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import mteb
import polars as pl
import pytest
from support.in_mteb import Given, copy_release, digits, load_task_file, scores_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def releases(tiny_world: Path, tiny_tree: Path, tmp_path: Path) -> tuple[Any, Any]:
    """The reranking task of v1, and of a v2 whose gains are turned round."""
    edits = {
        f"paper__{language}/qrels.parquet": lambda frame: frame.with_columns(gain=1 - pl.col("gain"))
        for language in ("english", "french")
    }
    newer = copy_release(tiny_tree, tmp_path / "v2", tiny_world, tag="v2-toy", edits=edits)
    return tuple(load_task_file(tree / "rcp_ndcg_tasks.py").get_tasks()[0] for tree in (tiny_tree, newer))  # type: ignore[return-value]


def test_warm_cache_over_a_newer_release_is_computed_again(
    releases: tuple[Any, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """v2's scores are v2's own, with a warning, and then cached; a v1 task after that is computed again too."""
    cache = mteb.ResultCache(tmp_path / "results")
    alone = [scores_of(mteb.evaluate(Given(digits), task, cache=None)) for task in releases]
    assert alone[0]["paper__english"]["main_score"] != alone[1]["paper__english"]["main_score"]
    model = Given(digits)
    expected_searches = [2, 4, 4, 6]
    searches = []
    for number, task in zip((0, 1, 1, 0), (releases[0], releases[1], releases[1], releases[0]), strict=True):
        with caplog.at_level(logging.WARNING, logger="rcp_ndcg_tasks"):
            result = mteb.evaluate(model, task, cache=cache)
        assert f"v{number + 1}-toy" == result.task_results[0].dataset_revision
        for subset, scores in scores_of(result).items():
            assert alone[number][subset]["main_score"] == pytest.approx(scores["main_score"], abs=1e-6)
        searches.append(model.searched)
    assert expected_searches == searches
    assert "the cached result is of release 'v1-toy' and the task of 'v2-toy'. It is computed again." in caplog.text


@pytest.mark.parametrize("strategy", ["never", "only-cache"])
def test_stale_result_is_refused_where_nothing_may_be_computed(
    releases: tuple[Any, Any], tmp_path: Path, strategy: str
) -> None:
    """A strategy that only reads the cache gets no other release's result."""
    cache = mteb.ResultCache(tmp_path / "results")
    mteb.evaluate(Given(digits), releases[0], cache=cache)
    with pytest.raises(
        (RuntimeError, ValueError), match=r"the cached result is of release|overwrite_strategy is set to"
    ):
        mteb.evaluate(Given(digits), releases[1], cache=cache, overwrite_strategy=strategy)


def test_stale_result_is_refused_where_mteb_no_longer_asks(
    releases: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should mteb stop asking whether results need a merge, the second layer refuses."""
    cache = mteb.ResultCache(tmp_path / "results")
    mteb.evaluate(Given(digits), releases[0], cache=cache)
    monkeypatch.setattr(sys.modules["mteb.evaluate"], "_requires_merge", lambda *_: False)
    with pytest.raises(RuntimeError, match="the cached result is of release 'v1-toy' and the task of 'v2-toy'"):
        mteb.evaluate(Given(digits), releases[1], cache=cache)


def test_other_tasks_keep_mtebs_own_rule(releases: tuple[Any, Any]) -> None:
    """The guard looks at tasks of release files only: a result of another task is handed out as ever."""
    (theirs,) = mteb.get_tasks(tasks=["NanoArguAnaRetrieval"])
    scores = {"test": [], "train": [{"hf_subset": "default", "main_score": 0.5, "languages": ["eng-Latn"]}]}
    result = mteb.TaskResult(
        dataset_revision="another", task_name=theirs.metadata.name, mteb_version="2", scores=scores, evaluation_time=1
    )
    assert releases
    assert {} == result.get_missing_evaluations(theirs)
