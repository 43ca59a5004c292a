"""The benchmark file: what it may say, and how a wrong key is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import tiny

from builder.benchmark import load_benchmark, parse_benchmark
from provenance.errors import BenchmarkError, InputError

SOURCE = Path("/somewhere/benchmark.toml")


def parse(old: str = "", new: str = "") -> object:
    """The tiny benchmark file with one piece of its text replaced."""
    assert old in tiny.BENCHMARK
    return parse_benchmark(tiny.BENCHMARK.replace(old, new, 1).encode(), source=SOURCE)


def test_relative_addresses_are_relative_to_the_file() -> None:
    """A folder is resolved against the file's own, and kept as written for the record; a URI stays."""
    benchmark = parse_benchmark(tiny.BENCHMARK.replace('"pipeline"', '"hf://datasets/a/b@v1"').encode(), source=SOURCE)
    domain, judge = benchmark.domains["paper"], benchmark.judges["toy"]
    assert ("/somewhere/upstream/paper", "upstream/paper") == (domain.upstream, domain.upstream_as_written)
    assert ("hf://datasets/a/b@v1", "hf://datasets/a/b@v1") == (judge.inputs, judge.inputs_as_written)


def test_names_of_subsets_and_tasks() -> None:
    """Subsets are domain__language, tasks prefix + Domain + RCP + view, with OCR where only text is read."""
    benchmark = parse_benchmark(tiny.BENCHMARK.encode(), source=SOURCE)
    assert ["paper__english", "paper__french"] == [subset.name for subset in benchmark.subsets()]
    expected = (
        "TinyPaperRCPReranking",
        "TinyPaperRCPRerankingOCR",
        "TinyPaperRCPRetrieval",
        "TinyPaperRCPRetrievalOCR",
    )
    assert expected == benchmark.task_names()


@pytest.mark.parametrize(
    ("old", "new", "needles"),
    [
        ("pool_size", "pool_sise", ["(top level): unknown key 'pool_sise' (did you mean 'pool_size'?)"]),
        ("native_language", "native_lang", ["domains.paper: unknown key 'native_lang'", "'native_language'?"]),
        ("licence =", "license =", ["card: unknown key 'license' (did you mean 'licence'?)"]),
        ("pool_size = 6", 'pool_size = "6"', ["pool_size: '6' is not of type 'integer'"]),
        ("pool_size = 6", "pool_size = 0", ["pool_size: 0 is less than the minimum of 1"]),
        ('"eng-Latn"', '"en"', ["languages.english"]),
        ('native_language = "english"', 'native_language = "german"', ["domains.paper.native_language: 'german'"]),
        ('["one", "two"]', '["one", "one"]', ["fusion.retrievers"]),
        ('slug = "toy"', 'slug = "to/y"', ["judges.toy.slug"]),
        ('name = "tiny"', 'name = "tiny', ["not a TOML file"]),
        ('slug = "toy"', 'slug = "toy"\n[judges.other]\nmodel = "m"\nslug = "toy"', ["two judges have the slug 'toy'"]),
        ("[judges.toy]", "[expected.domains.glue]\npages = 1\n[judges.toy]", ["expected.domains.glue: no such domain"]),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named_with_its_path_and_the_nearest_right_one(old: str, new: str, needles: list[str]) -> None:
    """Each fault of the file is said with its path; an unknown key with the key that was meant."""
    with pytest.raises(BenchmarkError) as caught:
        parse(old, new)
    assert 3 == caught.value.exit_code
    assert [] == [needle for needle in needles if needle not in str(caught.value)]


def test_every_fault_is_said_at_once() -> None:
    """Two faults give two lines."""
    text = tiny.BENCHMARK.replace("pool_size", "pool_sise").replace('"eng-Latn"', '"en"')
    with pytest.raises(BenchmarkError, match=r"(?s)languages\.english.*pool_sise|pool_sise.*languages\.english"):
        parse_benchmark(text.encode(), source=SOURCE)


@pytest.mark.parametrize("name", ["no_such", "missing/benchmark.toml"])
def test_a_benchmark_that_is_not_there(name: str) -> None:
    """An unknown name and a missing file are missing inputs (exit code 4) that say what to do."""
    with pytest.raises(InputError, match="next:") as caught:
        load_benchmark(name)
    assert 4 == caught.value.exit_code
