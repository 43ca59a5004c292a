"""Names, views, versions: what `get_tasks` gives and what it says."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import mteb
import pytest
from support.in_mteb import Given, Overlap, digits, load_task_file

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture
def tasks(tiny_tree: Path) -> ModuleType:
    """The tiny release's task file."""
    return load_task_file(tiny_tree / "rcp_ndcg_tasks.py")


def registry() -> dict[str, Any]:
    """The tasks that mteb ships, by name."""
    return sys.modules["mteb.get_tasks"]._TASKS_REGISTRY  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("view", "text_only", "name", "category"),
    [
        ("reranking", False, "TinyPaperRCPReranking", "t2it"),
        ("reranking", True, "TinyPaperRCPRerankingOCR", "t2t"),
        ("retrieval", False, "TinyPaperRCPRetrieval", "t2it"),
        ("retrieval", True, "TinyPaperRCPRetrievalOCR", "t2t"),
    ],
)
def test_each_view_has_its_task(tasks: ModuleType, view: str, text_only: bool, name: str, category: str) -> None:
    """A view's task bears its published name, the release's tag, and the float metric as its main score."""
    (task,) = tasks.get_tasks(view=view, text_only=text_only)
    assert name == task.metadata.name
    assert {"path": "example/rcp-ndcg-tiny", "revision": "v1-toy"} == task.metadata.dataset
    assert [category, "ndcg_float_at_10"] == [task.metadata.category, task.metadata.main_score]
    assert ["paper__english", "paper__french"] == task.hf_subsets
    assert [name] == [task.metadata.name for task in tasks.get_tasks(name, view, text_only)]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["TinyGlueRCPReranking"], "no task is called 'TinyGlueRCPReranking'. The tasks of this view are TinyPaper"),
        (
            "TinyPaperRCPRetrieval",
            "may now be called 'TinyPaperRCPReranking'; results under the old name are reranking",
        ),
        ("TinyPaperRCPRerankingOCR", r"is a task of get_tasks\(view='reranking', text_only=True\)"),
    ],
)
def test_wrong_names_get_a_sentence(tasks: ModuleType, names: Any, sentence: str) -> None:
    """An unknown name, a name from before October 2026 and a name of another view each say what to ask for."""
    with pytest.raises(ValueError, match=sentence):
        tasks.get_tasks(names)


def test_unknown_view_gets_a_sentence(tasks: ModuleType) -> None:
    """A view is one of two words."""
    with pytest.raises(ValueError, match="no view is called 'open'"):
        tasks.get_tasks(view="open")


def test_cross_encoder_cannot_search_the_corpus(tasks: ModuleType) -> None:
    """The open-corpus view refuses a cross-encoder in a sentence."""
    (task,) = tasks.get_tasks(view="retrieval", text_only=True)
    with pytest.raises(ValueError, match="searches the whole corpus, which a cross-encoder cannot"):
        mteb.evaluate(Overlap(), task, cache=None)


@pytest.mark.parametrize("pinned", ["v1-toy", "0" * 40])
def test_mtebs_own_task_is_used_at_the_same_revision_only(
    tasks: ModuleType, monkeypatch: pytest.MonkeyPatch, pinned: str
) -> None:
    """A task of the same name in mteb replaces ours when its revision is the same, and not otherwise."""
    (ours,) = tasks.get_tasks()
    metadata = ours.metadata.model_copy(update={"dataset": {"path": "example/rcp-ndcg-tiny", "revision": pinned}})
    shipped = type("Shipped", (type(ours).__mro__[2],), {"metadata": metadata})
    monkeypatch.setitem(registry(), "TinyPaperRCPReranking", shipped)
    monkeypatch.setattr(tasks, "_commit_of", lambda tag: {"v1-toy": "1" * 40}[tag])
    (found,) = tasks.get_tasks()
    assert (pinned == "v1-toy") is isinstance(found, shipped)


def test_mtebs_own_task_is_used_at_the_tags_commit(tasks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of mteb pins a commit where the file has the tag: the same release."""
    (ours,) = tasks.get_tasks()
    metadata = ours.metadata.model_copy(update={"dataset": {"path": "example/rcp-ndcg-tiny", "revision": "1" * 40}})
    shipped = type("Shipped", (type(ours).__mro__[2],), {"metadata": metadata})
    monkeypatch.setitem(registry(), "TinyPaperRCPReranking", shipped)
    monkeypatch.setattr(tasks, "_commit_of", lambda tag: {"v1-toy": "1" * 40}[tag])
    assert isinstance(tasks.get_tasks()[0], shipped)


def test_corpus_is_one_object(tasks: ModuleType) -> None:
    """The subsets of a task, and the tasks of a domain, share one corpus with every page, and only needed columns."""
    (reranking,), (retrieval,) = tasks.get_tasks(), tasks.get_tasks(view="retrieval")
    (text,) = tasks.get_tasks(text_only=True)
    for task in (reranking, retrieval, text):
        task.load_data()
    corpora = [task.dataset[subset]["test"]["corpus"] for task in (reranking, retrieval) for subset in task.hf_subsets]
    assert 1 == len({id(corpus) for corpus in corpora})
    assert [10, ["image", "id", "text"]] == [len(corpora[0]), corpora[0].column_names]
    pools = [
        pool for subset in reranking.hf_subsets for pool in reranking.dataset[subset]["test"]["top_ranked"].values()
    ]
    assert "corpus-test-11" not in {page for pool in pools for page in pool}
    assert "corpus-test-11" in corpora[0]["id"]
    assert ["id", "text"] == text.dataset["paper__english"]["test"]["corpus"].column_names
    assert retrieval.dataset["paper__english"]["test"]["top_ranked"] is None


def test_results_bear_name_and_revision(tasks: ModuleType, tmp_path: Path) -> None:
    """A result file says which task and which release it is of, and holds the float metric with its nAUC values."""
    cache = mteb.ResultCache(tmp_path / "results")
    mteb.evaluate(Given(digits), tasks.get_tasks()[0], cache=cache)
    (path,) = (tmp_path / "results").rglob("TinyPaperRCPReranking.json")
    result = mteb.TaskResult.from_disk(path)
    assert ["TinyPaperRCPReranking", "v1-toy"] == [result.task_name, result.dataset_revision]
    (english,) = [entry for entry in result.scores["test"] if entry["hf_subset"] == "paper__english"]
    assert english["main_score"] == english["ndcg_float_at_10"]
    cuts = [key.removeprefix("ndcg_at_") for key in english if key.startswith("ndcg_at_")]
    assert {f"ndcg_float_at_{k}" for k in cuts} == {key for key in english if key.startswith("ndcg_float")}
    theirs = {key for key in english if key.startswith("nauc_ndcg_at")}
    assert {key.replace("ndcg", "ndcg_float") for key in theirs} == {k for k in english if k.startswith("nauc_ndcg_fl")}
    assert theirs
