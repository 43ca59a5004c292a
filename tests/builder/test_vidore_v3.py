"""The default benchmark's file against the facts that were read from upstream, and the releases made so far."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from builder.benchmark import load_benchmark

if TYPE_CHECKING:
    from pathlib import Path

BENCHMARK = load_benchmark()
SHA = re.compile(r"[0-9a-f]{40}")
EMPTY_PAGES = {
    "computer_science": 2,
    "energy": 15,
    "finance_en": 19,
    "finance_fr": 11,
    "hr": 12,
    "industrial": 205,
    "pharmaceuticals": 0,
    "physics": 0,
}


def fact_file(reference: Path, name: str) -> dict[str, Any]:
    """A JSON document of the specification, which lies beside the test data."""
    path = reference.parent.parent / "spec" / name
    if not path.is_file():
        pytest.skip(f"the specification's facts are missing: no {path}")
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


@pytest.fixture
def upstream(reference: Path) -> dict[str, Any]:
    """What mteb's own files say of the eight domains."""
    return fact_file(reference, "vidore-v3-upstream.json")


def total(name: str) -> int:
    """An expected count summed over the domains."""
    return sum(domain[name] for domain in BENCHMARK.expected["domains"].values())


def test_is_the_default() -> None:
    """Without a name, the benchmark is vidore_v3, with 48 subsets in pools of 150."""
    assert BENCHMARK.name == "vidore_v3"
    assert len(list(BENCHMARK.subsets())) == 48
    assert BENCHMARK.pool_size == 150
    assert BENCHMARK.split == "test"


def test_counts_sum_to_the_papers() -> None:
    """19,252 pages, 2,419 questions, 12,336 labels, 264 pages without text (method spec sections 1.1 and 2)."""
    assert total("pages") == 19_252
    assert total("queries") == 2_419
    assert total("labels") == 12_336
    assert total("pages_without_text") == 264
    assert 6 * total("queries") * BENCHMARK.pool_size == 2_177_100
    assert BENCHMARK.expected["injected_pairs"] == 11_843
    assert BENCHMARK.expected["pages_without_text_in_a_pool"] == 0


def test_pages_without_text_are_the_cards() -> None:
    """The pages without text of each domain, as the card of release 2 lists them."""
    assert {name: table["pages_without_text"] for name, table in BENCHMARK.expected["domains"].items()} == EMPTY_PAGES


def test_repeated_texts_agree_with_the_card() -> None:
    """Pages less distinct texts is 383: 181 - 56 pages of repeated text, and 264 - 6 empty ones in six domains."""
    assert total("pages") - total("distinct_texts") == (181 - 56) + (264 - 6)


def test_counts_are_upstreams(upstream: dict[str, Any]) -> None:
    """Every expected count is the one of mteb's descriptive statistics."""
    names = {
        "pages": "documents",
        "queries": "queries_per_language",
        "labels": "relevant_pairs_per_language",
        "labelled_pages": "distinct_labelled_documents",
    }
    assert set(upstream["domains"]) == set(BENCHMARK.expected["domains"])
    for domain, facts in upstream["domains"].items():
        counts = BENCHMARK.expected["domains"][domain]
        assert {ours: facts[theirs] for ours, theirs in names.items()} == {ours: counts[ours] for ours in names}
        assert facts["document_text"]["unique_texts"] == counts["distinct_texts"]
        difference = upstream["invariants"]["documents_minus_unique_texts"][domain]
        assert difference == counts["pages"] - counts["distinct_texts"]


def test_pins_and_names_are_upstreams(upstream: dict[str, Any]) -> None:
    """Each domain is pinned to a whole sha, and has upstream's dataset, task name, native language and topics."""
    assert list(upstream["domains"]) == list(BENCHMARK.domains)
    for name, facts in upstream["domains"].items():
        domain, task = BENCHMARK.domains[name], facts["ocr_task_v2"]
        assert domain.upstream == f"hf://datasets/{task['dataset_path']}@{task['dataset_revision']}"
        assert SHA.fullmatch(domain.upstream.rsplit("@", 1)[1])
        assert facts["camel"] == domain.task
        assert facts["native_language"] == domain.native_language
        assert tuple(task["domains"]) == domain.mteb_domains
        adapted = [pattern.format(task=domain.task) for pattern in BENCHMARK.mteb["adapted_from"]]
        assert [task["task_name"]] == adapted
        assert task["date"] == BENCHMARK.mteb["date"]
        assert task["sample_creation"] == BENCHMARK.mteb["sample_creation"]
        assert task["license"] == BENCHMARK.card["licence"]


def test_languages_are_upstreams(upstream: dict[str, Any]) -> None:
    """Six languages in alphabetical order, with mteb's codes."""
    assert {name: language["mteb_code"] for name, language in upstream["languages"].items()} == BENCHMARK.languages
    assert sorted(BENCHMARK.languages) == list(BENCHMARK.languages)


def test_native_questions_are_three_french_domains() -> None:
    """Energy, finance_fr and physics are French; the others are English."""
    french = {name for name, domain in BENCHMARK.domains.items() if domain.native_language == "french"}
    assert french == {"energy", "finance_fr", "physics"}
    assert {domain.native_language for domain in BENCHMARK.domains.values()} == {"english", "french"}


def test_tables_are_the_cards(reference: Path) -> None:
    """The rerankers' names stand in the order of the published tables' rows, the labels in that of their columns."""
    results = fact_file(reference, "card-v2-results.json")
    for table in results["tables"]:
        assert list(table["rows"]) == list(BENCHMARK.rerankers.values())
    assert results["columns"] == [*BENCHMARK.domains, "mean"]
    assert list(BENCHMARK.card["domain_labels"]) == list(BENCHMARK.domains)


def test_fourteen_rerankers_with_a_model_each() -> None:
    """Fourteen run names, each with a table name and the model that it stands for (method spec section 16.6)."""
    assert len(BENCHMARK.rerankers) == 14
    assert list(BENCHMARK.rerankers) == list(BENCHMARK.card["reranker_models"])
    assert BENCHMARK.rerankers["rerank-2.5-lite"] == "Voyage2.5-lt"
    assert BENCHMARK.rerankers["Qwen3-Reranker-4B"] == "Qwen3-RR-4B"
    assert BENCHMARK.rerankers["ctxl-rerank-v2-instruct-multilingual-6b"] == "CTXL-RR-6B"


def test_fusion_is_the_cards() -> None:
    """RRF with k = 60 over embed_v4, bm25 and octen, in that order (method spec section 2)."""
    assert BENCHMARK.fusion.k == 60
    assert BENCHMARK.fusion.retrievers == ("embed_v4", "bm25", "octen")
    assert set(BENCHMARK.card["retriever_names"]) == set(BENCHMARK.fusion.retrievers)


def test_judge_reads_the_published_release() -> None:
    """qwen35 takes its inputs from the tagged release 2, and is not simulated."""
    judge = BENCHMARK.judge("qwen35")
    tag = f"v2-{judge.slug}"
    assert judge.inputs == f"hf://datasets/{BENCHMARK.repo}@{tag}"
    assert judge.model == "nvidia/Qwen3.5-397B-A17B-NVFP4"
    assert judge.model.lower().replace("/", "-") == judge.slug
    assert not judge.simulated


def test_task_names_are_the_published_ones() -> None:
    """`Vidore3<Domain>RCPReranking` is the default view (method spec section 16.4)."""
    assert BENCHMARK.task_name("finance_en") == "Vidore3FinanceEnRCPReranking"
    assert BENCHMARK.task_name("hr", "Retrieval", text_only=True) == "Vidore3HrRCPRetrievalOCR"


def test_declared_numbers_are_the_specs() -> None:
    """Numbers that no tree gives, each with its source; the windows add up (method spec section 5.5)."""
    declared = BENCHMARK.card["declared"]
    values = {name: entry["value"] for name, entry in declared.items()}
    assert values["tournament_windows"] == 3_122_771
    assert values["rubric_windows"] == 6 * 2_419 * 100 - 1
    assert values["rubric_windows_left_out"] * 9 == values["judge_criteria_rows_fewer_than_v1"] == 99
    unreadable = values["tournament_windows_unreadable_in_v1"]
    assert unreadable == 6_051
    assert unreadable == values["tournament_windows_recovered_in_v2"] + values["tournament_windows_unreadable_in_v2"]
    assert values["tournament_windows_partial"] == 2_322
    assert all(entry["source"] for entry in declared.values())


def test_citation_names_both_papers(upstream: dict[str, Any]) -> None:
    """The citation is upstream's BibTeX entry, word for word, and then the method's paper."""
    citation = BENCHMARK.card["citation"]
    assert upstream["bibtex"].strip() in citation
    assert re.findall(r"eprint = \{(.*?)\}", citation) == ["2601.08620", "2609.35739"]


def ledger_lines() -> list[str]:
    """The lines of the ledger that ships with the project."""
    return (resources.files("releases") / "ledger" / "vidore_v3.jsonl").read_text("utf-8").splitlines()


def test_ledger_holds_the_two_releases() -> None:
    """Releases 1 and 2 of qwen35, contiguous, 1 superseded by 2, neither proved; 2's commit is not known."""
    entries = [json.loads(line) for line in ledger_lines()]
    assert [entry["number"] for entry in entries] == [1, 2]
    assert [entry["revision"] for entry in entries] == ["b22323345cb5639944600d490969bcce9fba7943", None]
    first, second = (entry["release"] for entry in entries)
    assert (first["data_revision"], second["data_revision"]) == (None, None)
    assert (first["status"], second["status"]) == ("superseded", "current")
    assert (first["superseded_by"], second["superseded_by"]) == (second["tag"], None)
    judge = BENCHMARK.judge("qwen35")
    for entry in entries:
        assert entry["tag"] == entry["release"]["tag"] == f"v{entry['number']}-{judge.slug}"
        assert entry["release"]["judge"] == {"name": "qwen35", "model": judge.model, "simulated": False}
        assert entry["proved"] is False


def test_ledger_is_a_chain_of_sorted_lines() -> None:
    """Each line names the sha256 of the one before it, and has the one spelling: sorted keys, no spaces."""
    previous = "0" * 64
    for line in ledger_lines():
        entry = json.loads(line)
        assert entry["previous"] == previous
        assert json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == line
        previous = hashlib.sha256(line.encode()).hexdigest()


def test_derived_benchmark_loads(tmp_path: Path) -> None:
    """Pins, counts, pool size and inputs can be replaced; names, languages and wording stay."""
    text = (resources.files("builder") / "benchmarks" / "vidore_v3.toml").read_text("utf-8")
    assert len(tomllib.loads(text)["domains"]) == 8
    derived = re.sub(r"@[0-9a-f]{40}", "@" + "0" * 40, text.split("\n[expected]", maxsplit=1)[0])
    (tmp_path / "derived.toml").write_text(derived.replace("pool_size = 150", "pool_size = 20"), "utf-8")
    benchmark = load_benchmark(str(tmp_path / "derived.toml"))
    assert [subset.name for subset in BENCHMARK.subsets()] == [subset.name for subset in benchmark.subsets()]
    assert benchmark.pool_size == 20
    assert benchmark.expected == {}
