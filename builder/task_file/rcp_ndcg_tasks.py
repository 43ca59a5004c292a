"""mteb tasks of one dataset release: rankings scored with calibrated gains (`ndcg_float_at_10`).

A task reads exactly the release that it names, or says why it cannot: every file is compared with the sha256 that this
file carries (with that of its own manifest, for another release than this file's own). Files come from the Hub (at
`HF_ENDPOINT`) through its snapshot cache; where they lie beside this file, as in a release tree, they are read there.

Stock mteb hands out a complete cached result whatever it was computed on; for these tasks it is not believed.
"""

import collections
import functools
import hashlib
import importlib.metadata
import json
import logging
import math
import re
import sys
import weakref
from pathlib import Path
from typing import Any, Literal

_REVISION = ""
_REPO = ""
_SPLIT = ""
# Every published task by name: the arguments of mteb's TaskMetadata.
_TASK_METADATA: dict[str, dict[str, Any]] = json.loads(r"""{}""")
# Every subset: its domain, its language and the task that evaluates it by default.
_SUBSETS: dict[str, dict[str, str]] = json.loads(r"""{}""")
# The sha256 of every file that a task reads; why a release was withdrawn, by its tag and by its commit.
_WITHDRAWN: dict[str, str] = json.loads(r"""{}""")
_FILES: dict[str, str] = json.loads(r"""{}""")

_FLOOR = (2, 10, 5)
_FLOOR_IMAGE_CROSS_ENCODER = (2, 18, 8)
_COMMIT = re.compile(r"[0-9a-f]{40}")
logger = logging.getLogger("rcp_ndcg_tasks")


def _mteb_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("mteb"))[:3])


if _mteb_version() < _FLOOR:
    raise ImportError(
        f"these tasks need mteb 2.10.5 or newer, and {importlib.metadata.version('mteb')} is installed: its "
        "encoders do not get the pages' text. Run: pip install -U mteb"
    )

import datasets  # noqa: E402 - below the check: an older mteb fails at these imports, and less clearly
import mteb  # noqa: E402
from huggingface_hub import HfApi, snapshot_download  # noqa: E402
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError  # noqa: E402
from mteb.abstasks import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.models import CrossEncoderProtocol  # noqa: E402
from mteb.results import TaskResult  # noqa: E402

# HfHubHTTPError and its bases: every failure of the HTTP client that huggingface_hub uses, whichever that is.
_HUB_ERRORS = tuple(base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception) and base is not Exception)


class ReleaseDataError(RuntimeError):
    """What lies on this machine is not the release that was asked for, or cannot be had."""


def get_tasks(
    names: str | list[str] | None = None,
    view: Literal["reranking", "retrieval"] = "reranking",
    text_only: bool = False,  # noqa: FBT002 - a published signature
    revision: str = _REVISION,
) -> list[AbsTaskRetrieval]:
    """The tasks of a view, ready for `mteb.evaluate`.

    Args:
        names: task names; all tasks of the view by default.
        view: "reranking" ranks each query's judged pool (recommended: every candidate has a gain); "retrieval"
            searches the whole corpus, and a page outside the pool has gain 0.
        text_only: the pages' text without their images.
        revision: a tag or a full commit sha; this file's own release by default.

    Returns:
        One task a domain. Where the installed mteb ships a task of the same name at the same revision, it is that one.

    Raises:
        ValueError: an unknown name or view, or a name of another view.
    """
    if view not in ("reranking", "retrieval"):
        raise ValueError(f"no view is called {view!r}: it is 'reranking' or 'retrieval'.")
    of_view = [name for name, entry in _TASK_METADATA.items() if _view_of(name, entry) == (view, text_only)]
    wanted = of_view if names is None else [names] if isinstance(names, str) else names
    for name in wanted:
        if name not in of_view:
            raise ValueError(_why_not(name, of_view))
    if revision in _WITHDRAWN:
        logger.warning("release '%s' was withdrawn: %s", revision, _WITHDRAWN[revision])
    return [_shipped_by_mteb(name, revision) or _define(name, revision) for name in wanted]


def ndcg_float(scores: dict[str, float], gains: dict[str, float], k_values: tuple[int, ...]) -> dict[int, float]:
    """The nDCG of one query at each k, with linear gains: DCG@k = sum over ranks r <= k of gain / log2(r + 1).

    Documents of exactly equal score share their mean gain, so that no order of theirs is preferred. The ideal is the
    DCG of all gains of the query, best first. Every sum runs from left to right in float64, so equal scores give
    equal bits everywhere.

    Args:
        scores: document id -> score of what was ranked.
        gains: document id -> gain of what was judged; any other document has gain 0.
        k_values: the cuts.

    Raises:
        ValueError: a score is not finite.
    """
    for document, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"the score of document '{document}' is {score}: a ranking needs finite scores.")
    ranking = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    credited: list[float] = []
    while len(credited) < len(ranking):
        first = last = len(credited)
        total = 0.0
        while last < len(ranking) and scores[ranking[last]] == scores[ranking[first]]:
            total += gains.get(ranking[last], 0.0)
            last += 1
        credited.extend([total / (last - first)] * (last - first))
    best = sorted(gains.values(), reverse=True)
    ideals = {k: _dcg(best, k) for k in k_values}
    return {k: _dcg(credited, k) / ideal if ideal > 0 else 0.0 for k, ideal in ideals.items()}


def _dcg(gains: list[float], k: int) -> float:
    total = 0.0
    for rank, gain in enumerate(gains[:k], start=1):
        total += gain / math.log2(rank + 1)
    return total


class RcpTask(AbsTaskRetrieval):  # type: ignore[misc]  # mteb has no types here
    """A task of the release; `metadata` is set by the subclass that `_define` makes a task."""

    data_loaded: bool
    domain: str
    view: str
    text_only: bool
    gains: dict[str, dict[str, dict[str, float]]]

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:  # noqa: ARG002 - mteb's signature
        """Load the subsets from the pinned release; a ReleaseDataError says why that cannot be."""
        if self.data_loaded:
            return
        kinds = ("queries", "qrels", "top_ranked") if self.view == "reranking" else ("queries", "qrels")
        paths = {subset: {kind: f"{subset}/{kind}.parquet" for kind in kinds} for subset in self.hf_subsets}
        tables = [path for of_subset in paths.values() for path in of_subset.values()]
        files = _release_files(self.metadata.dataset["revision"], self.domain, tables)
        corpus, pages = _corpus([file for path, file in files.items() if path not in tables], self.text_only)
        dataset, gains = {}, {}
        for subset, of_subset in paths.items():
            split, gains[subset] = _load_subset({kind: files[path] for kind, path in of_subset.items()}, pages)
            dataset[subset] = {_SPLIT: {"corpus": corpus, **split}}
        # Only now: a task that failed to load has no data at all.
        self.dataset, self.gains, self.data_loaded = dataset, gains, True

    def files_digest(self, subset: str) -> str:
        """What a result keeps of the files it was computed on; only the name of a release that is not this file's."""
        if self.metadata.dataset["revision"] != _REVISION:
            return str(self.metadata.dataset["revision"])
        names = (self.domain, subset)
        return _key([(Path(path), sha256) for path, sha256 in _FILES.items() if path.split("/")[0] in names], [])

    def why_stale(self, result: Any) -> str | None:
        """Why a cached result is not one of these files; None if it is."""
        revision, cached = self.metadata.dataset["revision"], result.dataset_revision
        rows = [row for split in result.scores.values() for row in split]
        if cached == revision and all(row.get("release_files") == self.files_digest(row["hf_subset"]) for row in rows):
            return None
        return f"{self.metadata.name}: a cached result of release '{cached}' is not used for '{revision}': other files."

    def evaluate(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """As mteb's, after a word on what the installed mteb and a cross-encoder cannot do."""
        name, is_cross_encoder = self.metadata.name, isinstance(model, CrossEncoderProtocol)
        if is_cross_encoder and self.view == "retrieval":
            raise ValueError(f"{name} searches the whole corpus, which a cross-encoder cannot: use view='reranking'.")
        if is_cross_encoder and not self.text_only and _mteb_version() < _FLOOR_IMAGE_CROSS_ENCODER:
            raise ImportError(
                f"{name}: mteb {importlib.metadata.version('mteb')} cannot give page images to a cross-encoder; it "
                "takes 2.18.8 or newer (pip install -U mteb), or text_only=True."
            )
        return super().evaluate(model, *args, **kwargs)

    def task_specific_scores(self, scores: Any, qrels: Any, results: Any, hf_split: str, hf_subset: str) -> Any:  # noqa: ARG002
        """`ndcg_float_at_<k>` over all queries of the subset (0 where nothing was ranked), and its nAUC values."""
        cuts = tuple(self.k_values)
        gains = self.gains[hf_subset]
        by_query = {query: ndcg_float(results.get(query, {}), gains[query], cuts) for query in qrels}
        means: dict[str, Any] = {
            f"ndcg_float_at_{k}": sum(row[k] for row in by_query.values()) / len(by_query) for k in cuts
        }
        means["release_files"] = self.files_digest(hf_subset)
        return {**means, **_naucs({query: results[query] for query in qrels if results.get(query)}, by_query, cuts)}


def _naucs(results: dict[str, dict[str, float]], by_query: dict[str, dict[int, float]], cuts: tuple[int, ...]) -> Any:
    """Abstention scores of the float metric, named as mteb names those of its own."""
    try:
        from mteb._evaluators.retrieval_metrics import evaluate_abstention  # noqa: PLC0415 - private: it may go
    except ImportError:
        logger.warning("this mteb has no evaluate_abstention: results come without nauc_ndcg_float_at_<k> values.")
        return {}
    values = {f"ndcg_float@{k}": [by_query[query][k] for query in results] for k in cuts}
    naucs = evaluate_abstention(results, values) if results else {}
    return {name.replace("@", "_at_").lower(): float(value) for name, value in naucs.items()}


def _release_files(revision: str, domain: str, tables: list[str]) -> dict[str, tuple[Path, str]]:
    """Path in the release -> (file, sha256) of a domain's corpus and these tables, fetched and compared."""
    expected = _FILES if revision == _REVISION else _manifest_of(revision)
    corpus = sorted(path for path in expected if path.startswith(f"{domain}/"))
    wanted = [*(corpus or [f"{domain}/*.parquet"]), *tables]
    for path in wanted:
        if path not in expected:
            raise ReleaseDataError(f"release '{revision}' has no {path}, which this task reads.")
    folder = Path(__file__).parent
    if revision != _REVISION or not all((folder / path).is_file() for path in wanted):
        folder = _snapshot(revision, wanted)
    return {path: (folder / path, _checked(folder / path, expected[path], revision)) for path in wanted}


def _checked(path: Path, expected: str, revision: str) -> str:
    """The sha256 of the file, which is the expected one."""
    if not path.is_file():
        raise ReleaseDataError(f"{path} is missing: the download of release '{revision}' is incomplete: load it again.")
    with path.open("rb") as file:
        digest = hashlib.sha256()
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise ReleaseDataError(
            f"{path} is not the file of release '{revision}': its sha256 is {digest.hexdigest()} and not {expected}. "
            "Either the file was changed or cut short (remove it and load again), or the tag was moved: compare the "
            f"tag's commit with provenance/releases.json before you trust any number of {_REPO}."
        )
    return expected


def _manifest_of(revision: str) -> dict[str, str]:
    """Path -> sha256 of every file of another release, from that release's manifest."""
    name = "provenance/manifest.json"
    path = _snapshot(revision, [name]) / name
    if not path.is_file():
        raise ReleaseDataError(
            f"release '{revision}' of {_REPO} has no {name}, so nothing says which files are the right ones: use that "
            "release's own rcp_ndcg_tasks.py."
        )
    return {name: fact["sha256"] for name, fact in json.loads(path.read_text("utf-8"))["files"].items()}


def _snapshot(revision: str, paths: list[str]) -> Path:
    """The folder of the revision's commit in the Hub's cache, with these files; never another commit's."""
    commit = revision if _COMMIT.fullmatch(revision) else _commit_of(revision)
    try:
        folder = snapshot_download(
            _REPO, repo_type="dataset", revision=revision, allow_patterns=paths, local_files_only=commit is None
        )
    except _HUB_ERRORS as error:
        raise ReleaseDataError(
            f"release '{revision}' of {_REPO} is neither reachable nor wholly in this machine's cache "
            f"({len(paths)} files needed, {paths[0]} among them): {error}"
        ) from error
    if commit is not None and Path(folder).name != commit:
        raise ReleaseDataError(f"'{revision}' of {_REPO} is commit {commit}, but {Path(folder).name} was loaded.")
    return Path(folder)


def _commit_of(tag: str) -> str | None:
    """The commit of a tag as the Hub says it now; None (and a warning) when the Hub does not answer."""
    try:
        return str(HfApi().repo_info(_REPO, repo_type="dataset", revision=tag).sha)
    except (RevisionNotFoundError, RepositoryNotFoundError) as error:
        raise ReleaseDataError(f"there is no release '{tag}' of {_REPO} that you may read: {error}") from error
    except _HUB_ERRORS as error:
        logger.warning("the Hub does not say which commit '%s' is (%s): its cached snapshot is used.", tag, error)
        return None


# One corpus object a domain, whichever tasks and subsets use it.
_CORPORA: "weakref.WeakValueDictionary[str, datasets.Dataset]" = weakref.WeakValueDictionary()


def _read(files: list[tuple[Path, str]], columns: list[str], features: Any = None) -> datasets.Dataset:
    """Parquet files as a Dataset, whose Arrow copy is kept under their sha256 so that no changed file goes unseen."""
    paths = [str(path) for path, _ in files]
    cache = Path(datasets.config.HF_DATASETS_CACHE) / "rcp-ndcg" / _key(files, columns)
    return datasets.Dataset.from_parquet(paths, columns=columns, features=features, cache_dir=str(cache))


def _key(files: list[tuple[Path, str]], columns: list[str]) -> str:
    return hashlib.sha256("\n".join([*(sha256 for _, sha256 in files), *columns]).encode()).hexdigest()[:32]


def _column(table: datasets.Dataset, name: str) -> list[Any]:
    """A column's values, without decoding any other column."""
    return table.data.column(name).to_pylist()  # type: ignore[no-any-return]


def _corpus(files: list[tuple[Path, str]], text_only: bool) -> tuple[datasets.Dataset, set[str]]:
    """The whole corpus, and the ids of its pages."""
    features = {} if text_only else {"image": datasets.Image()}
    features |= {"id": datasets.Value("string"), "text": datasets.Value("string")}
    key = _key(files, list(features))
    corpus = _CORPORA.get(key)
    if corpus is None:
        corpus = _CORPORA[key] = _read(files, list(features), datasets.Features(features))
    return corpus, _unique(_column(corpus, "id"), files[0][0], "page")


def _load_subset(files: dict[str, tuple[Path, str]], pages: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queries, relevant_docs and top_ranked of a subset, and the gains: query -> page -> gain; all complete."""
    queries = _read([files["queries"]], ["id", "text"])
    ids = _unique(_column(queries, "id"), files["queries"][0], "query")
    where, columns = files["qrels"][0], ["query-id", "corpus-id", "score", "gain"]
    qrels = _read([files["qrels"]], columns)
    relevant: dict[str, dict[str, int]] = {query: {} for query in _column(queries, "id")}
    gains: dict[str, dict[str, float]] = {query: {} for query in relevant}
    for query, page, score, gain in zip(*(_column(qrels, name) for name in columns), strict=True):
        if query not in ids:
            raise _broken(where, f"query '{query}' is not among the queries")
        if page not in pages:
            raise _broken(where, f"page '{page}' of query '{query}' is not in the corpus")
        if page in relevant[query]:
            raise _broken(where, f"page '{page}' of query '{query}' is there twice")
        relevant[query][page] = score
        if gain is not None:
            if not (math.isfinite(gain) and gain >= 0):
                raise _broken(where, f"the gain of page '{page}' of query '{query}' is {gain}")
            gains[query][page] = gain
    for query, judged in gains.items():
        if not judged:
            raise _broken(where, f"query '{query}' has no {'gains' if relevant[query] else 'qrels'}")
    pools = _pools(files["top_ranked"], gains, pages) if "top_ranked" in files else None
    return {"queries": queries, "relevant_docs": relevant, "top_ranked": pools}, gains


def _pools(file: tuple[Path, str], gains: dict[str, dict[str, float]], pages: set[str]) -> dict[str, list[str]]:
    """Query -> its judged pool."""
    table = _read([file], ["query-id", "corpus-ids"])
    ids = _column(table, "query-id")
    if odd := _unique(ids, file[0], "query") ^ gains.keys():
        raise _broken(file[0], f"query '{min(odd)}' {'has no pool' if min(odd) in gains else 'is not in the queries'}")
    pools = dict(zip(ids, _column(table, "corpus-ids"), strict=True))
    for query, pool in pools.items():
        for page in _unique(pool, file[0], f"in the pool of query '{query}' page"):
            if page not in pages:
                raise _broken(file[0], f"page '{page}' in the pool of query '{query}' is not in the corpus")
            if page not in gains[query]:
                raise _broken(file[0], f"page '{page}' in the pool of query '{query}' has no gain")
        if not pool:
            raise _broken(file[0], f"query '{query}' has no pool: it is empty")
    return pools


def _unique(ids: list[str], file: Path, what: str) -> set[str]:
    found = set(ids)
    if len(found) < len(ids):
        raise _broken(file, f"{what} '{collections.Counter(ids).most_common(1)[0][0]}' is there twice")
    return found


def _broken(file: Path, what: str) -> ReleaseDataError:
    return ReleaseDataError(f"{file}: {what}. The release is broken, so nothing is scored: tell its maintainers.")


def _view_of(name: str, entry: dict[str, Any]) -> tuple[str, bool]:
    view = "reranking" if name.removesuffix("OCR").endswith("Reranking") else "retrieval"
    return view, "image" not in entry["modalities"]


def _why_not(name: str, of_view: list[str]) -> str:
    """Why a name is not one of the view's tasks."""
    if name not in _TASK_METADATA:
        return f"no task is called '{name}'. The tasks of this view are {', '.join(of_view)}."
    view, text_only = _view_of(name, _TASK_METADATA[name])
    renamed = (
        " Until October 2026 the reranking tasks had such names: what you look for may now be called "
        f"'{name.replace('Retrieval', 'Reranking')}'; results under the old name are reranking results."
    )
    message = f"'{name}' is a task of get_tasks(view='{view}', text_only={text_only})."
    return message + renamed if view == "retrieval" else message


def _define(name: str, revision: str) -> RcpTask:
    """A task of this file at a revision."""
    entry = _TASK_METADATA[name]
    view, text_only = _view_of(name, entry)
    metadata = TaskMetadata(**{**entry, "name": name, "dataset": {"path": _REPO, "revision": revision}})
    domain = _SUBSETS[next(iter(entry["eval_langs"]))]["domain"]
    of_task = {"metadata": metadata, "domain": domain, "view": view, "text_only": text_only}
    return type(name, (RcpTask,), of_task)()  # type: ignore[no-any-return]


def _shipped_by_mteb(name: str, revision: str) -> AbsTaskRetrieval | None:
    """The task that mteb ships under this name, when it is pinned to the same revision (its tag, or its commit)."""
    try:
        task = mteb.get_task(name)
    except KeyError:
        return None
    pinned = task.metadata.dataset["revision"]
    same = pinned == revision or (not _COMMIT.fullmatch(revision) and pinned == _commit_of(revision))
    return task if same else None


def _guard_result_cache() -> None:
    """Make mteb compare a cached result's release with the task's.

    Two layers. mteb asks `_requires_merge` before it compares revisions: a result of another one is computed again. It
    asks `get_missing_evaluations` on every way to a cached result: whatever is stale and still gets there is refused.
    """
    missing = getattr(TaskResult, "get_missing_evaluations", None)
    module = sys.modules["mteb.evaluate"]
    merge = getattr(module, "_requires_merge", lambda *_: True)
    if missing is None:
        raise ImportError(
            f"mteb {importlib.metadata.version('mteb')} keeps results in a way these tasks do not know: it could "
            "hand out another release's scores. Install an older one (2.26.24 is known to work)."
        )
    if hasattr(missing, "compares_files"):
        return

    def why_stale(task: Any, result: Any) -> str | None:
        # By name: a task of another release's file is another class.
        return task.why_stale(result) if hasattr(task, "why_stale") else None

    @functools.wraps(missing)
    def refusing_stale(self: Any, task: Any) -> Any:
        if stale := why_stale(task, self):
            raise ReleaseDataError(f"{stale} Evaluate with overwrite_strategy='always', or with another cache.")
        return missing(self, task)

    @functools.wraps(merge)
    def or_stale(task: Any, existing_results: Any) -> bool:
        if stale := why_stale(task, existing_results):
            logger.warning(stale)
        return bool(stale or merge(task, existing_results))

    refusing_stale.compares_files = True  # type: ignore[attr-defined]
    TaskResult.get_missing_evaluations = refusing_stale
    module._requires_merge = or_stale  # type: ignore[attr-defined]  # noqa: SLF001 - see the docstring


_guard_result_cache()
