"""Rendering the task file: readable lines, what it carries, the metric's bits; no mteb needed."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import math
import random
import re
import sys
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plain_ndcg import plain_ndcg

from builder import ndcg, tasks
from builder.benchmark import Benchmark, load_benchmark
from builder.layout import TASK_FILE
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAG = "v3-judge"
K_VALUES = (1, 3, 5, 10, 20, 100, 1000)


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    """The default benchmark, as published."""
    return load_benchmark("vidore_v3")


def files_of(benchmark: Benchmark) -> dict[str, str]:
    """A sha256 for each Parquet file of a tree, those that no task reads too."""
    names = [f"{domain}/corpus-{part:05d}-of-00002.parquet" for domain in benchmark.domains for part in (1, 0)]
    for subset in benchmark.subsets():
        names += [f"{subset.name}/{kind}.parquet" for kind in ("queries", "qrels", "top_ranked")]
    names += [f"provenance/pool/{domain}.parquet" for domain in benchmark.domains]
    return {name: f"{number:064x}" for number, name in enumerate(names)}


@pytest.fixture(scope="module")
def text(benchmark: Benchmark) -> str:
    """The rendered file."""
    return tasks.render(benchmark, tag=TAG, files=files_of(benchmark))


def read_json(text: str, name: str) -> Any:
    """A JSON constant of the file, read as text: what a reader that runs nothing does."""
    match = re.search(rf'^{name}(?:: [^\n]+?)? = json\.loads\(r"""(.*?)"""\)$', text, flags=re.MULTILINE | re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def functions(text: str, *names: str) -> dict[str, Any]:
    """Functions of the file, without running the rest of it."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    found: dict[str, Any] = {"math": math}
    exec(compile(tree, TASK_FILE, "exec"), found)  # noqa: S102 - the file under test
    return found


def test_revision_is_a_readable_line(text: str) -> None:
    """The tag stands in a line of its own."""
    assert [f'_REVISION = "{TAG}"'] == re.findall(r"^_REVISION = .*$", text, flags=re.MULTILINE)


def test_metadata_is_keyed_by_published_names(text: str, benchmark: Benchmark) -> None:
    """Each task of each view stands under its name, with the values of method spec section 16.4."""
    metadata = read_json(text, "_TASK_METADATA")
    assert list(benchmark.task_names()) == list(metadata)
    assert 32 == len(metadata)
    energy = metadata["Vidore3EnergyRCPReranking"]
    expected = {
        "dataset": {"path": "fabianschmidt-cohere/rcp-ndcg-vidore-v3", "revision": TAG},
        "type": "DocumentUnderstanding",
        "category": "t2it",
        "modalities": ["text", "image"],
        "eval_splits": ["test"],
        "main_score": "ndcg_float_at_10",
        "date": ["2025-10-01", "2025-11-01"],
        "domains": ["Engineering", "Chemistry", "Academic"],
        "task_subtypes": ["Image Text Retrieval"],
        "license": "cc-by-4.0",
        "annotations_creators": "LM-generated",
        "sample_creation": "created and machine-translated",
        "dialect": [],
        "adapted_from": ["Vidore3EnergyRetrieval.v2"],
        "prompt": {"query": "Find a screenshot that is relevant to the user's question."},
    }
    assert expected == {key: energy[key] for key in expected}
    assert ["fra-Latn"] == energy["eval_langs"]["energy__french"]
    text_only = metadata["Vidore3EnergyRCPRetrievalOCR"]
    assert ["t2t", ["text"], "ndcg_float_at_10"] == [text_only[key] for key in ("category", "modalities", "main_score")]
    assert not [name for name, entry in metadata.items() if "contributed_by" in entry]


def test_subsets_name_their_task(text: str) -> None:
    """A subset leads to the task that evaluates it."""
    subsets = read_json(text, "_SUBSETS")
    assert 48 == len(subsets)
    expected = {"task": "Vidore3FinanceFrRCPReranking", "domain": "finance_fr", "language": "deu-Latn"}
    assert expected == subsets["finance_fr__german"]


def test_carries_the_checksums_of_what_tasks_read(text: str, benchmark: Benchmark) -> None:
    """Corpus, queries, qrels and top_ranked, and nothing of the provenance."""
    carried = read_json(text, "_FILES")
    everything = files_of(benchmark)
    assert {name: sha for name, sha in everything.items() if not name.startswith("provenance/")} == carried


def test_template_changes_in_its_constants_only(text: str) -> None:
    """What stands before the first and after the last constant is the template, word for word."""
    template = (resources.files("builder") / "task_file" / TASK_FILE).read_text("utf-8")
    head, tail = (
        template.split('_REVISION = ""\n')[0],
        template.split('_FILES: dict[str, str] = json.loads(r"""{}""")\n')[1],
    )
    assert text.startswith(head)
    assert text.endswith(tail)


def test_unknown_licence_is_not_specified(benchmark: Benchmark) -> None:
    """The list of licences that mteb takes is closed: one that it lacks is not made up."""
    other = replace(benchmark, card={**benchmark.card, "licence": "gpl-2.0"})
    entry = tasks.metadata(other, TAG)["Vidore3HrRCPReranking"]
    assert "not specified" == entry["license"]


@pytest.mark.parametrize("path", ["hr__german/qrels.parquet", "hr/corpus-00000-of-00002.parquet"])
def test_missing_file_is_refused(benchmark: Benchmark, path: str) -> None:
    """A tree without a file that a task reads gets no task file."""
    files = {
        name: sha
        for name, sha in files_of(benchmark).items()
        if not name.startswith(path.split("corpus", maxsplit=1)[0])
    }
    with pytest.raises(DataError, match=r"the tree has no hr(__german)?/.*, which the tasks of domain 'hr' read"):
        tasks.render(benchmark, tag=TAG, files=files)


def test_quotes_and_backslashes_survive(benchmark: Benchmark) -> None:
    """A citation with quotes, backslashes and three quotes in a row is read back as it is."""
    citation = 'a "quoted" \\"{o} """ \\n end"'
    other = replace(benchmark, card={**benchmark.card, "citation": citation})
    text = tasks.render(other, tag=TAG, files=files_of(benchmark))
    assert citation == read_json(text, "_TASK_METADATA")["Vidore3HrRCPReranking"]["bibtex_citation"]
    ast.parse(text)


def test_imports_only_what_a_user_of_mteb_has(text: str) -> None:
    """The standard library, datasets, huggingface_hub and mteb; no dataclass, no future import."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names <= set(sys.stdlib_module_names) | {"numpy", "datasets", "huggingface_hub", "mteb"}
    assert not {"dataclasses", "__future__"} & names


@pytest.mark.parametrize("version", ["2.10.4", "2.9.12", "1.38.0"])
def test_old_mteb_gets_a_sentence(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Below the floor the file says so when it is loaded from its path, before it touches mteb."""
    path = tmp_path / TASK_FILE
    path.write_text(text)
    stock: Callable[[str], str] = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "mteb" else stock(name))
    spec = importlib.util.spec_from_file_location("rcp_ndcg_tasks", path)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=rf"need mteb 2\.10\.5 or newer, and {re.escape(version)} is installed"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


pages = st.integers(0, 30).map(lambda number: f"corpus-test-{number}")
ties = st.sampled_from([0.0, -0.0, 0.1, 0.3, 1.0, 7.0])
gain_values = st.floats(0, 1, allow_nan=False)


@given(st.dictionaries(pages, ties, max_size=25), st.dictionaries(pages, gain_values, min_size=1, max_size=25))
def test_metric_has_the_bits_of_the_plain_loop(scores: dict[str, float], gains: dict[str, float]) -> None:
    """At every cut, with ties, unjudged pages and unranked ones, the file's metric is the loop's, bit for bit."""
    metric = _METRIC["ndcg_float"]
    expected = {k: plain_ndcg(scores, gains, k=k, rule="b") for k in K_VALUES}
    assert expected == metric(scores, gains, K_VALUES)


def test_metric_has_the_bits_of_the_array_code() -> None:
    """On pools of 150 pages with ties, the file's metric is that of our tables, bit for bit."""
    draw = random.Random(20261101)
    pool = sorted((f"corpus-test-{number}" for number in range(150)), reverse=True)
    for _ in range(20):
        scores = {page: round(draw.random(), draw.choice([1, 2, 17])) for page in pool}
        gains = {page: draw.random() ** 4 for page in pool}
        table = np.array([[scores[page] for page in pool]])[None], np.ones((1, 1, 150), dtype=bool)
        ours = ndcg.ndcg(*table, {"rcp": np.array([[gains[page] for page in pool]])}, ties=("b",))
        assert ours["rcp", "b"][0, 0] == _METRIC["ndcg_float"](scores, gains, (10,))[10]


def test_metric_by_hand() -> None:
    """Two tied pages share (1 + 0) / 2 on ranks 1 and 2: (0.5 + 0.5 / log2 3) / 1 of the ideal 1."""
    expected = 0.5 + 0.5 / math.log2(3)
    assert expected == _METRIC["ndcg_float"]({"a": 1.0, "b": 1.0}, {"a": 1.0}, (10,))[10]
    assert {10: 0.0} == _METRIC["ndcg_float"]({"a": 1.0}, {"a": 0.0}, (10,))


def test_metric_refuses_scores_that_do_not_order() -> None:
    """NaN is named with its page."""
    with pytest.raises(ValueError, match="the score of document 'b' is nan"):
        _METRIC["ndcg_float"]({"a": 1.0, "b": math.nan}, {"a": 1.0}, (10,))


def _template() -> str:
    return (resources.files("builder") / "task_file" / TASK_FILE).read_text("utf-8")


_METRIC = functions(_template(), "ndcg_float", "_dcg")
