"""`release tasks`: the list of a tree's tasks, and their definitions for mteb."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

import pytest
from support.command import Done, release_here

from builder import for_mteb
from builder.benchmark import load_benchmark

if TYPE_CHECKING:
    from pathlib import Path

CARD = """---
configs:
- config_name: paper__english-qrels
  data_files:
  - split: test
    path: paper__english/qrels.parquet
---
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the command reads of a tree: its card's front matter and releases.json."""
    folder = tmp_path / "v1-demo"
    (folder / "provenance").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    releases = {"releases": [{"number": 1, "tag": "v1-demo"}]}
    (folder / "provenance" / "releases.json").write_text(json.dumps(releases))
    return folder


def run(tree: Path, *args: str) -> Done:
    """The command on the demo's tree, with a ledger of its own."""
    return release_here("tasks", tree, "--benchmark", "demo", "--ledger", str(tree / "none.jsonl"), *args)


def assigned(text: str) -> dict[str, str]:
    """Class -> the task name in its metadata, without importing mteb."""
    names = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and isinstance(node.body[0], ast.Assign):
            call = node.body[0].value
            assert isinstance(call, ast.Call)
            names[node.name] = next(ast.literal_eval(word.value) for word in call.keywords if word.arg == "name")
    return names


def test_tasks_are_listed(tree: Path) -> None:
    """Every task of every view, as a table and as JSON."""
    names = list(load_benchmark("demo").task_names())
    assert names == [line.split()[0] for line in run(tree).stdout.splitlines()]
    assert names == list(json.loads(run(tree, "--json").stdout)["tasks"])


def test_definitions_are_pinned_to_the_commit(tree: Path) -> None:
    """A Python module with a class a task, each pinned to the commit that was named."""
    done = run(tree, "--for-mteb", "--revision", COMMIT)
    assert 0 == done.code
    names = list(load_benchmark("demo").task_names())
    assert dict(zip(names, names, strict=True)) == assigned(done.stdout)
    assert len(names) == done.stdout.count(f"'revision': '{COMMIT}'")
    assert "superseded_by" not in done.stdout
    assert "contributed_by" not in done.stdout


def test_definitions_need_a_commit(tree: Path) -> None:
    """A release that is not published has none, and is told so."""
    done = run(tree, "--for-mteb")
    assert 2 == done.code
    assert "mteb pins commits" in done.stderr
    assert "--revision" in done.stderr


def test_later_release_supersedes_the_merged_one() -> None:
    """Release 3 after 1 and 2: names end in .v3, and those of release 2 (.v2) are superseded by them."""
    benchmark = load_benchmark("vidore_v3")
    text = for_mteb.render(benchmark, number=3, revision=COMMIT, merged=[2, 1])
    assert "Vidore3HrRCPReranking.v3" == assigned(text)["Vidore3HrRCPRerankingV3"]
    assert "# In the classes of release 2, set:" in text
    assert "#   Vidore3HrRCPReranking.v2: superseded_by='Vidore3HrRCPReranking.v3'" in text
    first = for_mteb.render(benchmark, number=2, revision=COMMIT, merged=[1])
    assert "#   Vidore3HrRCPReranking: superseded_by='Vidore3HrRCPReranking.v2'" in first
