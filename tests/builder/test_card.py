"""The card: the same text from the same tree, optional parts, hand-written parts, what readers do with it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import types
from importlib import resources
from typing import TYPE_CHECKING, Any

import datasets
import huggingface_hub
import jinja2
import pytest
from jinja2 import nodes
from markdown_it import MarkdownIt
from support import tiny
from support.command import Done, release_here

from builder import card, documents
from builder.benchmark import load_benchmark
from builder.card_facts import Change, Relation, read_facts
from builder.card_numbers import Kind
from builder.manifest import configs_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAG = "v1-toy"


def build(world: Path) -> Path:
    """Build a tiny world without figures; returns the tree."""
    done = release_here(
        "build", "--benchmark", world / "benchmark.toml", "--judge", "toy", "--out", world / "out",
        "--workers", "1", "--no-figures",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    return world / "out" / TAG


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny world with its tree in out/v1-toy; read only."""
    world = tmp_path_factory.mktemp("card")
    tiny.write_world(world)
    build(world)
    return world


def rendered(tree: Path, benchmark: Path, keep: Callable[[str], bool] = lambda _: True) -> str:
    """The card of a tree's tables, of the configs whose kind is kept."""
    configs = [config for config in configs_of(documents.read(tree / "provenance/manifest.json")) if keep(config.kind)]
    return card.render(read_facts(tree, load_benchmark(str(benchmark)), configs), frozenset()).text


def command(tree: Path, benchmark: Path, *options: str) -> Done:
    """`release card`."""
    return release_here("card", tree, "--benchmark", benchmark, *options)


def edited(world: Path, edit: Callable[[str], str]) -> Path:
    """Change the benchmark file of a world; returns it."""
    path = world / "benchmark.toml"
    path.write_text(edit(path.read_text("utf-8")), encoding="utf-8")
    return path


def test_the_card_of_a_build_is_the_card_of_its_tables(reference: Path, reference_tree: Path) -> None:
    """--draft prints the tree's own README byte for byte, twice, and --check agrees."""
    benchmark = reference / "benchmark.toml"
    present = (reference_tree / "README.md").read_text("utf-8")
    assert [present, present] == [command(reference_tree, benchmark, "--draft").stdout for _ in range(2)]
    checked = command(reference_tree, benchmark, "--check")
    assert (0, "") == (checked.code, checked.stdout)


def test_check_shows_what_differs(built: Path, tmp_path: Path) -> None:
    """A changed line is shown as a unified diff and ends with exit code 3."""
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)
    path = tree / "README.md"
    path.write_text(path.read_text("utf-8").replace("## Known data notes", "## Notes"), encoding="utf-8")
    checked = command(tree, built / "benchmark.toml", "--check")
    assert 3 == checked.code
    assert "-## Notes\n" in checked.stdout
    assert "+## Known data notes\n" in checked.stdout
    as_json = json.loads(command(tree, built / "benchmark.toml", "--check", "--json").stdout)
    assert (False, checked.stdout) == (as_json["same"], as_json["diff"])


@pytest.mark.parametrize(("options", "expected"), [((), 2), (("--draft", "--check"), 2)])
def test_one_of_draft_and_check_is_asked_for(built: Path, options: tuple[str, ...], expected: int) -> None:
    """Neither or both is a usage error."""
    assert expected == command(built / "out" / TAG, built / "benchmark.toml", *options).code


def test_a_tree_of_another_benchmark_is_refused(built: Path, reference: Path) -> None:
    """The benchmark file has to be the tree's own; both names are said."""
    done = command(built / "out" / TAG, reference / "benchmark.toml", "--draft")
    assert 3 == done.code
    assert "'tiny'" in done.stderr
    assert "'debian_reference'" in done.stderr


def test_a_folder_without_a_manifest_is_an_input_error(built: Path, tmp_path: Path) -> None:
    """What no build wrote has no configs to describe."""
    assert 4 == command(tmp_path, built / "benchmark.toml", "--draft").code


def test_the_hub_reads_the_front_matter(built: Path, reference_tree: Path) -> None:
    """huggingface_hub and datasets see the licence, the languages and every config of the card."""
    found = huggingface_hub.DatasetCard.load(reference_tree / "README.md").data.to_dict()
    assert "gpl-2.0" == found["license"]
    assert ["en", "fr", "de", "it", "pt", "es"] == found["language"]
    assert "dataset_info" not in found
    names = [config["config_name"] for config in found["configs"]]
    assert names == datasets.get_dataset_config_names(str(reference_tree))
    assert 12 * 4 + 5 == len(names)
    assert ["retrieval"] == huggingface_hub.DatasetCard.load(built / "out" / TAG / "README.md").data.to_dict()["tags"]


def test_front_matter_keeps_any_text(tmp_path: Path) -> None:
    """Line separators, a byte order mark, quotes and YAML's own signs come back from the front matter as they were."""
    title = "a: \u2028b \x7f\x85 'no' \"{{ x }}\" - # \ufeff \U0001f600"
    tiny.write_world(tmp_path)
    quoted = json.dumps(title, ensure_ascii=True).replace("\\ud83d\\ude00", "\U0001f600")
    edited(tmp_path, lambda text: text.replace('"RCP-nDCG on a tiny world"', quoted))
    found = huggingface_hub.DatasetCard.load(build(tmp_path) / "README.md").data.to_dict()
    assert title == found["pretty_name"]


def test_a_simulated_judge_is_named_in_the_first_line(built: Path) -> None:
    """The heading says it, and the first paragraph gives the judge's name."""
    body = (built / "out" / TAG / "README.md").read_text("utf-8").split("\n---\n", 1)[1].strip()
    assert "simulated" in body.splitlines()[0]
    assert "toy/judge" in body.split("\n\n")[1]


def test_a_judge_that_is_not_simulated_is_not_called_so(tmp_path: Path) -> None:
    """No sentence of the card says simulated."""
    tiny.write_world(tmp_path)
    edited(tmp_path, lambda text: text.replace("simulated = true", "simulated = false"))
    assert "simulated" not in (build(tmp_path) / "README.md").read_text("utf-8")


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """Names from the benchmark file open no tag, no link, no cell; a citation does not leave its fence."""
    tiny.write_world(tmp_path)
    nasty = "<img src=x onerror=y> | [a](b) `c` ![d](e) $f$ {{ 7 * 7 }}"
    citation = "````\\n<script>alert(1)</script>\\n```"

    def edit(text: str) -> str:
        text = text.replace('"Paper & glue"', f'"{nasty}"').replace('"Flat"', f'"{nasty} 2"')
        return text.replace("[card]\n", f'[card]\ncitation = "{citation}"\n')

    edited(tmp_path, edit)
    body = (build(tmp_path) / "README.md").read_text("utf-8").split("\n---\n", 1)[1]
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(body)
    assert "&lt;img src=x onerror=y&gt; | [a](b) `c` ![d](e) $f$ {{ 7 * 7 }}" in shown
    assert "<img" not in shown
    assert "<script" not in shown
    assert 1 == shown.count("&lt;script&gt;")
    widths = [[row.count("<td") for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)[1:]]
              for table in re.findall(r"<table>.*?</table>", shown, re.DOTALL)]  # fmt: skip
    assert all(len(set(rows)) == 1 for rows in widths)


def test_optional_parts_are_left_out(built: Path) -> None:
    """Without runs, criteria, calibration, first stage and windows no sentence speaks of them, and none fails."""
    tree = built / "out" / TAG
    whole = rendered(tree, built / "benchmark.toml")
    assert whole == (tree / "README.md").read_text("utf-8")
    for kind, words in {
        "runs": ["## Results", "qrel-nDCG@"],
        "judge_criteria": ["expected calibration error", "Brier"],
        "calibration": ["tau runs from"],
        "first_stage": ["Fusing the published lists"],
    }.items():
        without = rendered(tree, built / "benchmark.toml", lambda found, kind=kind: found != kind)
        assert [True] * len(words) == [word in whole for word in words]
        assert [False] * len(words) == [word in without for word in words]


def test_windows_and_citation_may_be_missing(built: Path, tmp_path: Path) -> None:
    """A tree without an account of windows has no table of them; a file without citation no such section."""
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)
    assert "| tournament | 40 | 39 | 1 | `no_json` 1 |" in rendered(tree, built / "benchmark.toml")
    (tree / "provenance" / "windows.toy.json").unlink()
    without = rendered(tree, built / "benchmark.toml")
    assert "left out" not in without
    assert "windows.toy.json" not in without
    assert "## Citation" not in without


def test_hand_written_parts_pass_byte_for_byte(tmp_path: Path) -> None:
    """A part stands behind its section with its own line ends and marks; its numbers are of the kind verbatim."""
    tiny.write_world(tmp_path)
    part = b"By hand: **5,000** of 7 {{ x }} <b>&\r\n\r\n\r\n\tlast line, no end"
    (tmp_path / "use.md").write_bytes(part)
    benchmark = edited(tmp_path, lambda text: text.replace("[card]\n", '[card]\nverbatim = ["use.md"]\n'))
    tree = build(tmp_path)
    content = (tree / "README.md").read_bytes()
    assert content.index(b"## Recommended use") < content.index(part) < content.index(b"## Layout")
    listed = json.loads(command(tree, benchmark, "--draft", "--json").stdout)["numbers"]
    assert ["5,000", "7"] == [number["text"] for number in listed if number["kind"] == Kind.VERBATIM]


@pytest.mark.parametrize(("name", "expected"), [("preface.md", 3), ("use", 3), ("use.md", 4)])
def test_a_wrong_part_is_refused(built: Path, tmp_path: Path, name: str, expected: int) -> None:
    """A part of no section breaks the benchmark file (3); a missing file is a missing input (4)."""
    tree = tmp_path / "out" / TAG
    shutil.copytree(built / "out" / TAG, tree)
    shutil.copy(built / "benchmark.toml", tmp_path)
    benchmark = edited(tmp_path, lambda text: text.replace("[card]\n", f'[card]\nverbatim = ["{name}"]\n'))
    done = command(tree, benchmark, "--draft")
    assert expected == done.code
    assert name in done.stderr


def test_embedded_benchmarks_have_their_parts() -> None:
    """Every hand-written part that an embedded benchmark names is there and belongs to a section."""
    assert {"evaluate", "pool", "relation", "licence"} == set(card.verbatim_parts(load_benchmark("vidore_v3")))
    assert {} == card.verbatim_parts(load_benchmark("demo"))


def test_templates_do_no_arithmetic() -> None:
    """No template adds, subtracts, multiplies or divides: each number is a fact."""
    found = {}
    for file in resources.files("card_templates").iterdir():
        if file.name.endswith(".j2"):
            tree = jinja2.Environment(autoescape=True).parse(file.read_text("utf-8"))
            kinds = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Neg)
            found[file.name] = [type(node).__name__ for node in tree.find_all(kinds)]
    assert len(card.SECTIONS) < len(found)
    assert {} == {name: kinds for name, kinds in found.items() if kinds}


def test_declared_numbers_stand_beside_their_source(built: Path, tmp_path: Path) -> None:
    """Each is a row of name, value and source."""
    shutil.copytree(built, tmp_path / "world")
    declared = '\n[card.declared]\nold_windows = { value = 3122771, source = "card of release 2" }\n'
    benchmark = edited(tmp_path / "world", lambda text: text.replace("\n[languages]", f"{declared}\n[languages]"))
    text = rendered(tmp_path / "world" / "out" / TAG, benchmark)
    assert "| old windows | 3,122,771 | card of release 2 |" in text


def test_a_diff_fills_the_relation_section(built: Path) -> None:
    """With what a diff found the card says it; without, the section is not there."""
    tree, benchmark = built / "out" / TAG, load_benchmark(str(built / "benchmark.toml"))
    configs = configs_of(documents.read(tree / "provenance/manifest.json"))
    relation = Relation("v0-toy", (Change("gains", 12, 24),))
    text = card.render(read_facts(tree, benchmark, configs, relation), frozenset()).text
    assert "Compared with `v0-toy`:" in text
    assert "| gains | 12 | 24 |" in text
    assert "v0-toy" not in (tree / "README.md").read_text("utf-8")


def test_the_snippet_runs_as_printed(reference_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Python block downloads the task file at the tag, loads it and hands its tasks to mteb.evaluate."""
    asked: list[Any] = []
    file = tmp_path / "rcp_ndcg_tasks.py"
    file.write_text("def get_tasks():\n    return ['a task']\n", encoding="utf-8")
    mteb = types.ModuleType("mteb")
    mteb.evaluate = lambda model, tasks: (model, tasks)  # type: ignore[attr-defined]

    def download(*args: str, **options: str) -> str:
        asked.append((args, options))
        return str(file)

    monkeypatch.setitem(sys.modules, "mteb", mteb)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    text = (reference_tree / "README.md").read_text("utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"model": "a model", "importlib": importlib}
    exec(block[1], names)  # noqa: S102 - this is the claim
    assert ("a model", ["a task"]) == names["results"]
    expected = (("example/rcp-ndcg-debian-reference", "rcp_ndcg_tasks.py"),
                {"repo_type": "dataset", "revision": "v1-simulated"})  # fmt: skip
    assert [expected] == asked
