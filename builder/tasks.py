"""Rendering the release's mteb task file from its template (method spec section 16.4)."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from builder.layout import SUBSET_KINDS, TASK_FILE
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from builder.benchmark import Benchmark, Domain

# mteb's closed list of licences (read in 2.10.5 and 2.26.24); it takes any other only as an address.
_LICENCES = frozenset(
    (
        *("mit", "apache-2.0", "bsd-3-clause", "mpl-2.0", "gpl-3.0", "lgpl", "lgpl-3.0", "afl-3.0", "openrail"),
        *("openrail++", "odc-by", "gemma", "multiple", "cc0-1.0", "cdla-sharing-1.0", "msr-la-nc"),
        *("cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-3.0", "cc-by-nc-4.0"),
        *("cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0", "cc-by-nd-2.1-jp"),
    )
)
_PROMPT = {"query": "Find a screenshot that is relevant to the user's question."}


def render(
    benchmark: Benchmark, *, tag: str, files: Mapping[str, str], withdrawn: Mapping[str, str] | None = None
) -> str:
    """The text of `rcp_ndcg_tasks.py` for one release.

    The lines `_REVISION = "..."`, `_TASK_METADATA... = json.loads(r\"\"\"...\"\"\")` and `_SUBSETS...` can be read
    as text, without running the file.

    Args:
        benchmark: names, languages, licence.
        tag: the release's tag; a commit cannot hold its own sha.
        files: path in the tree -> sha256; only those that a task reads are carried.
        withdrawn: tag or commit of a withdrawn release -> why; whoever asks the file for one is warned.

    Raises:
        DataError: the tree lacks a file that a task reads.
    """
    values = {
        "_REVISION": json.dumps(tag),
        "_REPO": json.dumps(benchmark.repo),
        "_SPLIT": json.dumps(benchmark.split),
        "_TASK_METADATA": _document({name: _lines(entry) for name, entry in metadata(benchmark, tag).items()}),
        "_SUBSETS": _document({name: json.dumps(entry) for name, entry in _subsets(benchmark).items()}),
        "_WITHDRAWN": _document({name: json.dumps(why) for name, why in (withdrawn or {}).items()}),
        "_FILES": _document({path: json.dumps(sha256) for path, sha256 in _read_by_tasks(benchmark, files).items()}),
    }
    text = (resources.files("builder") / "task_file" / TASK_FILE).read_text("utf-8")
    for name, value in values.items():
        before, assignment, after = re.split(rf"^({name}(?:: .+?)? = ).*$", text, flags=re.MULTILINE)
        text = before + assignment + value + after
    return text


def metadata(benchmark: Benchmark, revision: str) -> dict[str, dict[str, Any]]:
    """Task name -> the arguments of mteb's TaskMetadata (but the name), every view of every domain."""
    return {
        benchmark.task_name(domain, view, text_only=text_only): _entry(
            benchmark, benchmark.domains[domain], revision, view, text_only=text_only
        )
        for view in ("Reranking", "Retrieval")
        for text_only in (False, True)
        for domain in benchmark.domains
    }


def _entry(benchmark: Benchmark, domain: Domain, revision: str, view: str, *, text_only: bool) -> dict[str, Any]:
    label = benchmark.card.get("domain_labels", {}).get(domain.name, domain.name)
    ranked = "the judged pool of each query" if view == "Reranking" else "the whole corpus"
    pages = "page texts" if text_only else "pages"
    licence = benchmark.card.get("licence")
    return {
        "dataset": {"path": benchmark.repo, "revision": revision},
        "description": f"{benchmark.title}, {label}: rank {ranked} ({pages}) by calibrated relevance gains.",
        "reference": f"https://huggingface.co/datasets/{benchmark.repo}",
        "type": "DocumentUnderstanding",
        "category": "t2t" if text_only else "t2it",
        "modalities": ["text"] if text_only else ["text", "image"],
        "eval_splits": [benchmark.split],
        "eval_langs": {f"{domain.name}__{language}": [code] for language, code in benchmark.languages.items()},
        "main_score": "ndcg_float_at_10",
        "domains": list(domain.mteb_domains),
        "task_subtypes": [] if text_only else ["Image Text Retrieval"],
        "license": licence if licence in _LICENCES else "not specified",
        # The gains are an LLM's judgements, whoever wrote the questions.
        "annotations_creators": "LM-generated",
        "dialect": [],
        "prompt": _PROMPT,
        "bibtex_citation": benchmark.card.get("citation", ""),
        **_declared(benchmark, domain),
    }


def _declared(benchmark: Benchmark, domain: Domain) -> dict[str, Any]:
    """What only the benchmark file can know; mteb takes a task without it."""
    declared = dict(benchmark.mteb)
    if "adapted_from" in declared:
        declared["adapted_from"] = [name.replace("{task}", domain.task) for name in declared["adapted_from"]]
    return declared


def _subsets(benchmark: Benchmark) -> dict[str, dict[str, str]]:
    """Subset -> the task that evaluates it by default, its domain and its language."""
    return {
        subset.name: {
            "task": benchmark.task_name(subset.domain),
            "domain": subset.domain,
            "language": benchmark.languages[subset.language],
        }
        for subset in benchmark.subsets()
    }


def _read_by_tasks(benchmark: Benchmark, files: Mapping[str, str]) -> dict[str, str]:
    """The files that tasks read, in the order of the subsets.

    Raises:
        DataError: one of them is not there.
    """
    read: dict[str, str] = {}
    for domain in benchmark.domains:
        corpus = sorted(path for path in files if path.startswith(f"{domain}/"))
        tables = [
            f"{domain}__{language}/{kind}.parquet"
            for language in benchmark.languages
            for kind in SUBSET_KINDS
            if kind != "corpus"
        ]
        for path in [*(corpus or [f"{domain}/corpus-*.parquet"]), *tables]:
            if path not in files:
                raise DataError(
                    f"the tree has no {path}, which the tasks of domain '{domain}' read",
                    where=Where(TASK_FILE),
                    remedy="build the tree again: nothing of it may be removed before it is published.",
                )
            read[path] = files[path]
    return read


def _document(entries: Mapping[str, str]) -> str:
    """`json.loads(r\"\"\"{...}\"\"\")` with one entry a line; JSON has no three quotes in a row."""
    lines = ",\n".join(f"{json.dumps(name)}: {value}" for name, value in entries.items())
    return f'json.loads(r"""{{\n{lines}\n}}""")'


def _lines(entry: Mapping[str, Any]) -> str:
    """A JSON object with one key a line."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items()) + "\n}"
