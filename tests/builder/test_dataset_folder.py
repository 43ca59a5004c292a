"""Cards of dataset folders: configs, patterns, and everything that may be wrong with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import tiny

from builder import front_matter
from builder.benchmark import parse_benchmark
from builder.dataset_folder import front_matter as read_front_matter
from builder.dataset_folder import open_dataset
from builder.layout import Config
from provenance.errors import DataError, InputError

GOOD = """---
configs:
- config_name: english-queries
  data_files:
  - split: test
    path: q/test-*
- config_name: "no"
  data_files:
  - split: test
    path: ["q/test-1.parquet", "q/test-0.parquet"]
---
body
"""


def folder(tmp_path: Path, card: str = GOOD) -> Path:
    """A dataset folder of two files."""
    (tmp_path / "q").mkdir()
    for name in ("test-0.parquet", "test-1.parquet"):
        (tmp_path / "q" / name).write_bytes(b"x")
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    return tmp_path


def test_patterns_are_resolved_in_order(tmp_path: Path) -> None:
    """A glob gives its files by name, a list its entries in the order written."""
    dataset = open_dataset(folder(tmp_path))
    assert ["test-0.parquet", "test-1.parquet"] == [f.name for f in dataset.files("english-queries", "test")]
    assert ["test-1.parquet", "test-0.parquet"] == [f.name for f in dataset.files("no", "test")]


@pytest.mark.parametrize(
    ("old", "new", "error", "needle"),
    [
        ("q/test-*", "q/train-*", InputError, "'q/train-\\*' of the card matches no file"),
        ("q/test-*", "../q/test-*", DataError, "no path inside the dataset"),
        ("q/test-*", "/etc/*", DataError, "no path inside the dataset"),
        ('"no"', "no", DataError, "no name that is a string"),
        ('"no"', "english-queries", DataError, "'english-queries' stands twice"),
        ("configs:", "config:", DataError, "declares no configs"),
        ("---\nbody", "body", DataError, "no front matter"),
        ("split: test", "split: [", DataError, "not YAML"),
        ("data_files:", "files:", DataError, "no list of data_files"),
    ],
)
def test_a_broken_card_is_named(old: str, new: str, error: type[Exception], needle: str, tmp_path: Path) -> None:
    """Each fault of a card has its own sentence."""
    assert old in GOOD
    with pytest.raises(error, match=needle):
        open_dataset(folder(tmp_path, GOOD.replace(old, new, 1))).files("english-queries", "test")


def test_what_a_dataset_lacks_is_said_with_what_it_has(tmp_path: Path) -> None:
    """An unknown config and an unknown split name those that exist."""
    dataset = open_dataset(folder(tmp_path))
    with pytest.raises(DataError, match=r"no config 'french-queries' \(it has 2: english-queries, no\)"):
        dataset.files("french-queries", "test")
    with pytest.raises(DataError, match=r"no split 'train' \(it has test\)"):
        dataset.files("english-queries", "train")


def test_a_folder_without_a_card_is_a_missing_input(tmp_path: Path) -> None:
    """No README.md: exit code 4."""
    with pytest.raises(InputError, match=r"no README\.md"):
        open_dataset(tmp_path)


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(title=NAMES, tags=st.lists(NAMES, max_size=3), names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_front_matter_reads_back_as_it_was_meant(title: str, tags: list[str], names: list[str]) -> None:
    """Whatever the strings hold (`no`, `1.0`, quotes, colons, emoji), YAML reads them back as the same strings."""
    benchmark = replace(
        parse_benchmark(tiny.BENCHMARK.encode(), source=Path("benchmark.toml")),
        title=title,
        languages={"english": "eng-Latn", "norwegian": "nob-Latn"},
        card={"licence": "no", "tags": tags},
    )
    configs = [Config(name, "qrels", {"test": (f"{name}/qrels.parquet",)}) for name in names]
    parsed = yaml.safe_load(front_matter.render(benchmark, configs).removeprefix("---\n").removesuffix("---\n"))
    assert ("no", title, ["en", "nob"]) == (parsed["license"], parsed["pretty_name"], parsed["language"])
    assert tags == parsed.get("tags", [])
    assert [(name, f"{name}/qrels.parquet") for name in names] == [
        (entry["config_name"], entry["data_files"][0]["path"][0]) for entry in parsed["configs"]
    ]


def test_a_byte_order_mark_and_other_line_ends_do_not_hide_the_front_matter(tmp_path: Path) -> None:
    """A card saved on another system reads alike."""
    card = tmp_path / "README.md"
    card.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert "english-queries" == read_front_matter(card)["configs"][0]["config_name"]
