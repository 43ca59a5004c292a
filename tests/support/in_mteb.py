"""What runs inside mteb: the task file loaded as a user loads it, stand-in models, releases changed on purpose."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from mteb.models import ModelMeta

from builder import manifest, tasks
from builder.benchmark import load_benchmark
from builder.layout import TASK_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType


def load_task_file(path: Path) -> ModuleType:
    """The task file as the card loads it: by its path, and not put into `sys.modules`."""
    spec = importlib.util.spec_from_file_location("rcp_ndcg_tasks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Given:
    """A search model whose score of a (query, page) pair is computed from the two ids; it may be asked for anything."""

    def __init__(self, score: Callable[[str, str], float]) -> None:
        self.score = score
        self.searched = 0
        self.mteb_model_meta = ModelMeta.create_empty()

    def index(self, corpus: Any, **_: Any) -> None:
        """Keep the ids of what is to be searched."""
        self.pages = list(corpus["id"])

    def search(
        self, queries: Any, *, top_k: int, top_ranked: Mapping[str, list[str]] | None = None, **_: Any
    ) -> dict[str, dict[str, float]]:
        """Score the pool of each query, or the whole corpus."""
        self.searched += 1
        found = {}
        for query in queries["id"]:
            pages = top_ranked[query] if top_ranked is not None else self.pages
            scored = sorted(((self.score(query, page), page) for page in pages), reverse=True)
            found[query] = {page: score for score, page in scored[:top_k]}
        return found


def digits(query: str, page: str) -> float:
    """A score from the ids' numbers, with ties in every pool."""
    return float((int(query.rsplit("-", 1)[1]) * 7 + int(page.rsplit("-", 1)[1]) * 5) % 4)


class Overlap:
    """A cross-encoder stand-in: the share of the question's words that the page holds, rounded so that pages tie."""

    def __init__(self) -> None:
        self.mteb_model_meta = ModelMeta.create_empty()

    def predict(self, inputs1: Any, inputs2: Any, **_: Any) -> np.ndarray:
        """Scores of the pairs, in order."""
        questions = [text for batch in inputs1 for text in batch["text"]]
        pages = [text for batch in inputs2 for text in batch["text"]]
        return np.array([self._score(*pair) for pair in zip(questions, pages, strict=True)])

    @staticmethod
    def _score(question: str, page: str) -> float:
        words, found = set(question.lower().split()), set(page.lower().split())
        return round(len(words & found) / math.sqrt(len(found) + 1), 1)


def copy_release(
    tree: Path, to: Path, benchmark_file: Path, *, tag: str, edits: Mapping[str, Any] | None = None
) -> Path:
    """A release under another tag, with edited tables (path -> frame to frame), sealed: what it holds is what it says.

    Args:
        tree: the release to start from.
        to: where the new one is made.
        benchmark_file: the benchmark file of both.
        tag: the new release's tag.
        edits: what to change, by path in the tree.
    """
    shutil.copytree(tree, to)
    for path, edit in (edits or {}).items():
        edit(pl.read_parquet(to / path)).write_parquet(to / path, use_pyarrow=True)
    sums = {path.relative_to(to).as_posix(): manifest.sha256_file(path) for path in to.rglob("*.parquet")}
    text = tasks.render(load_benchmark(str(benchmark_file)), tag=tag, files=sums)
    (to / TASK_FILE).write_text(text, encoding="utf-8", newline="\n")
    manifest.seal(to)
    return to


def scores_of(result: Any) -> dict[str, dict[str, Any]]:
    """Subset -> scores of a result with one task."""
    (task_result,) = result.task_results
    return {entry["hf_subset"]: entry for entry in task_result.scores["test"]}


def predictions(folder: Path, task: str) -> dict[str, dict[str, dict[str, float]]]:
    """Subset -> query -> page -> score, as mteb wrote them down for a task."""
    document = json.loads(next(folder.rglob(f"{task}_predictions.json")).read_text("utf-8"))
    return {
        subset: splits["test"] for subset, splits in document.items() if isinstance(splits, dict) and "test" in splits
    }


def gains_of(tree: Path, subset: str) -> dict[str, dict[str, float]]:
    """Query -> page -> gain, read from the tree."""
    gains: dict[str, dict[str, float]] = {}
    frame = pl.read_parquet(tree / subset / "qrels.parquet", columns=["query-id", "corpus-id", "gain"])
    for query, page, gain in frame.iter_rows():
        gains.setdefault(query, {})[page] = gain
    return gains
