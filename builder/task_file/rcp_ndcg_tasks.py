"""mteb tasks of one dataset release: rankings scored with calibrated gains (`ndcg_float_at_10`).

    from huggingface_hub import hf_hub_download
    from importlib.util import module_from_spec, spec_from_file_location

    path = hf_hub_download(REPO, "rcp_ndcg_tasks.py", repo_type="dataset", revision=TAG)
    spec = spec_from_file_location("rcp_ndcg_tasks", path)
    tasks = module_from_spec(spec)
    spec.loader.exec_module(tasks)
    mteb.evaluate(model, tasks.get_tasks())

The tasks read exactly the release that they name, or say why they cannot. Every file is compared with the sha256 that
this file carries; a revision other than this file's own is compared with the sha256 of its own manifest. Files come from
the Hub (`HF_ENDPOINT` says which) through its snapshot cache, so that a release once loaded stays loadable offline; where
the files lie beside this one, as in a release tree on disk, they are read there.

Stock mteb hands out a complete cached result whatever release it was computed on. Loading this file mends that for the
tasks defined here, and for no other task: such a result is computed again, and a warning says so.
"""

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

# Not type-only: the annotations below are read at run time when mteb inspects the tasks.
from typing import Any, Literal

_REVISION = ""
_REPO = ""
_SPLIT = ""
# Every published task by name: the arguments of mteb's TaskMetadata.
_TASK_METADATA: dict[str, dict[str, Any]] = json.loads(r"""{}""")
# Every subset: its domain, its language and the task that evaluates it by default.
_SUBSETS: dict[str, dict[str, str]] = json.loads(r"""{}""")
# The sha256 of every file that a task reads.
_FILES: dict[str, str] = json.loads(r"""{}""")

_FLOOR = (2, 10, 5)
_FLOOR_IMAGE_CROSS_ENCODER = (2, 18, 8)
_MANIFEST = "provenance/manifest.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")

logger = logging.getLogger("rcp_ndcg_tasks")


def _mteb_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("mteb"))[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


if _mteb_version() < _FLOOR:
    _too_old = (
        f"these tasks need mteb {_dotted(_FLOOR)} or newer, and {_dotted(_mteb_version())} is installed: "
        "its encoders do not get the pages' text. Run: pip install -U mteb"
    )
    raise ImportError(_too_old)

# Below the check: an older mteb fails at these imports, and less clearly.
import datasets  # noqa: E402
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
    text_only: bool = False,  # noqa: FBT001, FBT002 - a published signature
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
        message = f"no view is called {view!r}: it is 'reranking' or 'retrieval'."
        raise ValueError(message)
    of_view = [name for name, entry in _TASK_METADATA.items() if _view_of(name, entry) == (view, text_only)]
    wanted = of_view if names is None else [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in of_view:
            raise ValueError(_why_not(name, of_view))
    return [_shipped_by_mteb(name, revision) or _define(name, revision) for name in wanted]


def ndcg_float(scores: dict[str, float], gains: dict[str, float], k_values: tuple[int, ...]) -> dict[int, float]:
    """nDCG of one query at each k, with linear gains: DCG@k = sum over ranks r <= k of gain / log2(r + 1).

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
            message = f"the score of document '{document}' is {score}: a ranking needs finite scores."
            raise ValueError(message)
    ranking = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    credited: list[float] = []
    while len(credited) < len(ranking):
        first = len(credited)
        last = first
        total = 0.0
        while last < len(ranking) and scores[ranking[last]] == scores[ranking[first]]:
            total += gains.get(ranking[last], 0.0)
            last += 1
        credited.extend([total / (last - first)] * (last - first))
    best = sorted(gains.values(), reverse=True)
    values = {}
    for k in k_values:
        ideal = _dcg(best, k)
        values[k] = _dcg(credited, k) / ideal if ideal > 0 else 0.0
    return values


def _dcg(gains: list[float], k: int) -> float:
    total = 0.0
    for rank, gain in enumerate(gains[:k], start=1):
        total += gain / math.log2(rank + 1)
    return total


class RcpTask(AbsTaskRetrieval):  # type: ignore[misc]  # mteb is untyped where it is not installed
    """A task of the release; `metadata` is set by the subclass that `_define` makes a task."""

    # Seen by the guard of mteb's result cache.
    pins_its_release = True
    domain: str
    view: str
    text_only: bool

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gains: dict[str, dict[str, dict[str, float]]] = {}

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:  # noqa: ARG002 - mteb's signature
        """Load the subsets from the pinned release.

        Raises:
            ReleaseDataError: the release cannot be had, its files are not the right ones, or they are incomplete.
        """
        if self.data_loaded:
            return
        subsets = {subset: _tables_of(subset, self.view) for subset in self.hf_subsets}
        files = _release_files(self.metadata.dataset["revision"], self.domain, subsets)
        corpus, pages = _corpus(files.corpus, text_only=self.text_only)
        dataset, gains = {}, {}
        for subset, tables in subsets.items():
            split, gains[subset] = _load_subset(subset, {kind: files.tables[path] for kind, path in tables.items()}, pages)
            dataset[subset] = {_SPLIT: {"corpus": corpus, **split}}
        # Only now: a task that failed to load has no data at all.
        self.dataset, self.gains, self.data_loaded = dataset, gains, True

    def evaluate(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """As mteb's, after a word on what the installed mteb and a cross-encoder cannot do."""
        if isinstance(model, CrossEncoderProtocol):
            name = self.metadata.name
            if self.view == "retrieval":
                message = f"{name} searches the whole corpus, which a cross-encoder cannot: use view='reranking'."
                raise ValueError(message)
            if not self.text_only and _mteb_version() < _FLOOR_IMAGE_CROSS_ENCODER:
                message = (
                    f"{name}: mteb {_dotted(_mteb_version())} cannot give page images to a cross-encoder; it takes "
                    f"{_dotted(_FLOOR_IMAGE_CROSS_ENCODER)} or newer (pip install -U mteb), or text_only=True."
                )
                raise ImportError(message)
        return super().evaluate(model, *args, **kwargs)

    def task_specific_scores(
        self,
        scores: Any,  # noqa: ARG002 - mteb's signature
        qrels: dict[str, dict[str, int]],
        results: dict[str, dict[str, float]],
        hf_split: str,  # noqa: ARG002 - mteb's signature
        hf_subset: str,
    ) -> dict[str, float]:
        """`ndcg_float_at_<k>` over all queries of the subset (0 where nothing was ranked), and its nAUC values."""
        gains = self.gains[hf_subset]
        cuts = tuple(self.k_values)
        by_query = {query: ndcg_float(results.get(query, {}), gains[query], cuts) for query in qrels}
        means = {f"ndcg_float_at_{k}": sum(row[k] for row in by_query.values()) / len(by_query) for k in cuts}
        return {**means, **_naucs({query: results[query] for query in qrels if results.get(query)}, by_query, cuts)}


def _naucs(
    results: dict[str, dict[str, float]], by_query: dict[str, dict[int, float]], cuts: tuple[int, ...]
) -> dict[str, float]:
    """mteb's abstention scores for the float metric, named as mteb names them for its own."""
    try:
        from mteb._evaluators.retrieval_metrics import evaluate_abstention  # noqa: PLC0415 - private: may go
    except ImportError:
        logger.warning("this mteb has no evaluate_abstention: results come without nauc_ndcg_float_at_<k> values.")
        return {}
    if not results:
        return {}
    values = evaluate_abstention(
        results, {f"ndcg_float@{k}": [by_query[query][k] for query in results] for k in cuts}
    )
    return {name.replace("@", "_at_").lower(): float(value) for name, value in values.items()}


# ---------------------------------------------------------------------------------------------------------------------
# The release: which files, from where, and that they are the right ones


class _Files:
    """A task's files: the corpus as (path, sha256) pairs, the tables by their path in the release."""

    def __init__(self, checked: dict[str, tuple[Path, str]], corpus: list[str]) -> None:
        self.corpus = [checked[path] for path in corpus]
        self.tables = {path: pair for path, pair in checked.items() if path not in corpus}


def _tables_of(subset: str, view: str) -> dict[str, str]:
    """Kind -> path of the tables that a view needs."""
    kinds = ("queries", "qrels", "top_ranked") if view == "reranking" else ("queries", "qrels")
    return {kind: f"{subset}/{kind}.parquet" for kind in kinds}


def _release_files(revision: str, domain: str, subsets: dict[str, dict[str, str]]) -> _Files:
    """Fetch the files of a task and compare each with the release's sha256."""
    expected = _FILES if revision == _REVISION else _manifest_of(revision)
    corpus = sorted(path for path in expected if path.startswith(f"{domain}/"))
    wanted = [*corpus, *(path for tables in subsets.values() for path in tables.values())]
    absent = [path for path in wanted if path not in expected]
    if absent or not corpus:
        message = f"release '{revision}' has no {(absent or [domain + '/*.parquet'])[0]}: it lacks what this task reads."
        raise ReleaseDataError(message)
    beside = Path(__file__).parent
    if revision != _REVISION or not all((beside / path).is_file() for path in wanted):
        beside = _snapshot(revision, wanted)
    return _Files({path: (beside / path, _checked(beside / path, expected[path], revision)) for path in wanted}, corpus)


def _checked(path: Path, expected: str, revision: str) -> str:
    """`expected`, when the file has that sha256."""
    if not path.is_file():
        message = f"{path} is missing: the download of release '{revision}' is incomplete. Load it again online."
        raise ReleaseDataError(message)
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != expected:
        message = (
            f"{path} is not the file of release '{revision}': its sha256 is {digest.hexdigest()} and not {expected}. "
            "Either the file was changed or cut short (remove it and load again), or the tag was moved: compare the "
            f"tag's commit with the dataset's provenance/releases.json before you trust any number of {_REPO}."
        )
        raise ReleaseDataError(message)
    return expected


def _manifest_of(revision: str) -> dict[str, str]:
    """Path -> sha256 of every file of another release, from that release's manifest."""
    path = _snapshot(revision, [_MANIFEST]) / _MANIFEST
    if not path.is_file():
        message = (
            f"release '{revision}' of {_REPO} has no {_MANIFEST}, so nothing can say whether its files are the right "
            f"ones. Use the task file of that release: hf_hub_download('{_REPO}', 'rcp_ndcg_tasks.py', "
            f"repo_type='dataset', revision='{revision}')."
        )
        raise ReleaseDataError(message)
    return {name: fact["sha256"] for name, fact in json.loads(path.read_text("utf-8"))["files"].items()}


def _snapshot(revision: str, paths: list[str]) -> Path:
    """The folder of the revision's commit in the Hub's cache, with these files; never another commit's."""
    commit = revision if _COMMIT.fullmatch(revision) else _commit_of(revision)
    try:
        folder = Path(
            snapshot_download(
                _REPO, repo_type="dataset", revision=revision, allow_patterns=paths, local_files_only=commit is None
            )
        )
    except _HUB_ERRORS as error:
        message = (
            f"release '{revision}' of {_REPO} is neither reachable nor wholly in this machine's cache (needed: {paths[0]}"
            f"{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}): {error}"
        )
        raise ReleaseDataError(message) from error
    if commit is not None and folder.name != commit:
        message = f"'{revision}' of {_REPO} is commit {commit}, but commit {folder.name} was loaded. Load it again."
        raise ReleaseDataError(message)
    return folder


def _commit_of(tag: str) -> str | None:
    """The commit of a tag as the Hub says it now; None (and a warning) when the Hub does not answer."""
    try:
        return str(HfApi().repo_info(_REPO, repo_type="dataset", revision=tag).sha)
    except RevisionNotFoundError as error:
        message = f"{_REPO} has no revision '{tag}'."
        raise ReleaseDataError(message) from error
    except RepositoryNotFoundError as error:
        message = f"there is no dataset {_REPO} here, or you may not read it: {error}"
        raise ReleaseDataError(message) from error
    except _HUB_ERRORS as error:
        logger.warning("the Hub does not say which commit '%s' is (%s): its cached snapshot is used.", tag, error)
        return None


# ---------------------------------------------------------------------------------------------------------------------
# The tables: only the columns a view needs, and complete

# One corpus object a domain, whichever tasks and subsets use it.
_CORPORA: "weakref.WeakValueDictionary[str, datasets.Dataset]" = weakref.WeakValueDictionary()


def _read(files: list[tuple[Path, str]], columns: list[str], features: Any = None) -> datasets.Dataset:
    """Parquet files as a Dataset; its Arrow copy is kept under the files' sha256, so that a changed file is seen."""
    key = _key(files, columns)
    return datasets.Dataset.from_parquet(
        [str(path) for path, _ in files],
        columns=columns,
        features=features,
        cache_dir=str(Path(datasets.config.HF_DATASETS_CACHE) / "rcp-ndcg" / key),
    )


def _key(files: list[tuple[Path, str]], columns: list[str]) -> str:
    return hashlib.sha256("\n".join([*(sha256 for _, sha256 in files), *columns]).encode()).hexdigest()[:32]


def _column(table: datasets.Dataset, name: str) -> list[Any]:
    """A column's values, without decoding any other column."""
    return table.data.column(name).to_pylist()  # type: ignore[no-any-return]


def _corpus(files: list[tuple[Path, str]], *, text_only: bool) -> tuple[datasets.Dataset, set[str]]:
    """The whole corpus, and the ids of its pages."""
    features = {"id": datasets.Value("string"), "text": datasets.Value("string")}
    if not text_only:
        features = {"image": datasets.Image(), **features}
    key = _key(files, list(features))
    corpus = _CORPORA.get(key)
    if corpus is None:
        corpus = _read(files, list(features), datasets.Features(features))
        _CORPORA[key] = corpus
    return corpus, _unique(_column(corpus, "id"), str(files[0][0]), "page")


def _load_subset(
    subset: str, files: dict[str, tuple[Path, str]], pages: set[str]
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """mteb's queries, relevant_docs and top_ranked of a subset, and the gains: query -> page -> gain.

    Raises:
        ReleaseDataError: a query lacks qrels, gains or a pool; a page is not in the corpus; something is there twice.
    """
    queries = _read([files["queries"]], ["id", "text"])
    ids = _unique(_column(queries, "id"), subset, "query")
    qrels = _read([files["qrels"]], ["query-id", "corpus-id", "score", "gain"])
    relevant: dict[str, dict[str, int]] = {query: {} for query in _column(queries, "id")}
    gains: dict[str, dict[str, float]] = {query: {} for query in relevant}
    columns = (_column(qrels, name) for name in ("query-id", "corpus-id", "score", "gain"))
    for query, page, score, gain in zip(*columns, strict=True):
        if query not in relevant:
            raise _incomplete(subset, f"qrels name query '{query}', which is not among the queries")
        if page not in pages:
            raise _incomplete(subset, f"qrels of query '{query}' name page '{page}', which is not in the corpus")
        if page in relevant[query]:
            raise _incomplete(subset, f"qrels list query '{query}' and page '{page}' twice")
        relevant[query][page] = score
        if gain is not None:
            if not (math.isfinite(gain) and gain >= 0):
                raise _incomplete(subset, f"the gain of query '{query}' and page '{page}' is {gain}")
            gains[query][page] = gain
    for query in relevant:
        if not relevant[query]:
            raise _incomplete(subset, f"query '{query}' has no qrels")
        if not gains[query]:
            raise _incomplete(subset, f"query '{query}' has no gains")
    pools = _pools(subset, files["top_ranked"], ids, gains) if "top_ranked" in files else None
    return {"queries": queries, "relevant_docs": relevant, "top_ranked": pools}, gains


def _pools(
    subset: str, file: tuple[Path, str], queries: set[str], gains: dict[str, dict[str, float]]
) -> dict[str, list[str]]:
    """Query -> its judged pool; a page with a gain is in the corpus, so each page of a pool is."""
    table = _read([file], ["query-id", "corpus-ids"])
    of_pools = _column(table, "query-id")
    if _unique(of_pools, subset, "pool of query") != queries:
        query = min(queries ^ set(of_pools))
        raise _incomplete(subset, f"query '{query}' has no pool" if query in queries else f"a pool is of query '{query}'")
    pools = dict(zip(of_pools, _column(table, "corpus-ids"), strict=True))
    for query, pool in pools.items():
        for page in pool:
            if page not in gains[query]:
                raise _incomplete(subset, f"page '{page}' is in the pool of query '{query}' and has no gain")
        if len(set(pool)) != len(pool) or not pool:
            raise _incomplete(subset, f"the pool of query '{query}' is empty or lists a page twice")
    return pools


def _unique(ids: list[str], where: str, what: str) -> set[str]:
    found: set[str] = set()
    for one in ids:
        if one in found:
            raise _incomplete(where, f"{what} '{one}' is there twice")
        found.add(one)
    return found


def _incomplete(where: str, what: str) -> ReleaseDataError:
    return ReleaseDataError(f"{where}: {what}. The release is broken there, so no score is given: tell its maintainers.")


# ---------------------------------------------------------------------------------------------------------------------
# Names, mteb's own tasks, and mteb's result cache


def _view_of(name: str, entry: dict[str, Any]) -> tuple[str, bool]:
    view = "reranking" if name.removesuffix("OCR").endswith("Reranking") else "retrieval"
    return view, "image" not in entry["modalities"]


def _why_not(name: str, of_view: list[str]) -> str:
    """Why a name is not one of the view's tasks."""
    entry = _TASK_METADATA.get(name)
    if entry is None:
        return f"no task is called '{name}'. The tasks of this view are {', '.join(of_view)}."
    view, text_only = _view_of(name, entry)
    message = f"'{name}' is a task of get_tasks(view='{view}', text_only={text_only})."
    if view == "retrieval":
        message += (
            " Until October 2026 the reranking tasks had such names: what you look for may now be called "
            f"'{name.replace('Retrieval', 'Reranking')}'; results under the old name are reranking results."
        )
    return message


def _define(name: str, revision: str) -> RcpTask:
    """A task of this file at a revision."""
    entry = _TASK_METADATA[name]
    view, text_only = _view_of(name, entry)
    fields = {**entry, "name": name, "dataset": {"path": _REPO, "revision": revision}}
    subset = next(iter(entry["eval_langs"]))
    attributes = {
        "metadata": TaskMetadata(**fields),
        "domain": _SUBSETS[subset]["domain"],
        "view": view,
        "text_only": text_only,
    }
    return type(name, (RcpTask,), attributes)()  # type: ignore[no-any-return]


def _shipped_by_mteb(name: str, revision: str) -> AbsTaskRetrieval | None:
    """mteb's own task of this name, when it is pinned to the same revision (as a tag, or as the tag's commit)."""
    try:
        task = mteb.get_task(name)
    except KeyError:
        return None
    pinned = task.metadata.dataset["revision"]
    same = pinned == revision or (not _COMMIT.fullmatch(revision) and pinned == _commit_of(revision))
    return task if same else None


def _guard_result_cache() -> None:
    """Make mteb compare a complete cached result's revision with the task's, as it does for an incomplete one.

    Two layers. `_requires_merge` is what mteb asks before it compares revisions: a stale result is then computed again.
    `get_missing_evaluations` is asked on every way to a cached result: whatever still gets there is refused.
    """
    stock = getattr(TaskResult, "get_missing_evaluations", None)
    if stock is None:
        message = (
            f"mteb {_dotted(_mteb_version())} keeps results in a way that these tasks do not know, so it could hand out "
            "another release's scores. Install an older mteb (2.26.24 is known to work)."
        )
        raise ImportError(message)
    if getattr(stock, "compares_revisions", False):
        return

    def is_stale(task: Any, result: Any) -> bool:
        return getattr(task, "pins_its_release", False) and result.dataset_revision != task.metadata.revision

    @functools.wraps(stock)
    def get_missing_evaluations(self: Any, task: Any) -> Any:
        if is_stale(task, self):
            message = (
                f"{task.metadata.name}: the cached result is of release '{self.dataset_revision}' and the task of "
                f"'{task.metadata.revision}'. Evaluate with overwrite_strategy='always', or with another cache."
            )
            raise ReleaseDataError(message)
        return stock(self, task)

    get_missing_evaluations.compares_revisions = True  # type: ignore[attr-defined]
    TaskResult.get_missing_evaluations = get_missing_evaluations
    module = sys.modules["mteb.evaluate"]
    requires_merge = getattr(module, "_requires_merge", None)
    if requires_merge is None:
        return

    @functools.wraps(requires_merge)
    def or_is_stale(task: Any, existing_results: Any) -> bool:
        if is_stale(task, existing_results):
            logger.warning(
                "%s: the cached result is of release '%s' and the task of '%s': it is computed again.",
                task.metadata.name,
                existing_results.dataset_revision,
                task.metadata.revision,
            )
            return True
        return bool(requires_merge(task, existing_results))

    module._requires_merge = or_is_stale  # type: ignore[attr-defined]  # noqa: SLF001 - see the docstring


_guard_result_cache()
