"""What one domain's reranking run costs: copies of the pages, cache size, requests; beside mteb's own loader."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING, Any

import datasets
import mteb
import pytest
from huggingface_hub import HfApi, constants
from support.in_mteb import Given, digits, load_task_file, scores_of
from support.publisher import Publisher

from builder import for_mteb
from builder.benchmark import load_benchmark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from releases.local_hub import Faults, LocalHub

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

TAG = "v1-simulated"
TASK = "DebianReferenceSysadminEnRCPReranking"


def definitions(path: Path, text: str) -> ModuleType:
    """The definitions that `release tasks --for-mteb` prints, as a module."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("for_mteb", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tasks(hub: LocalHub, reference: Path, reference_tree: Path, tmp_path: Path) -> dict[str, Any]:
    """The same task by the task file and by mteb's own loader, of the real release on a Hub."""
    benchmark = load_benchmark(str(reference / "benchmark.toml"))
    commit = Publisher(HfApi(endpoint=hub.endpoint, token=False), benchmark.repo).publish(reference_tree, TAG)
    text = for_mteb.render(benchmark, number=1, revision=commit)
    # Away from the tree, so that the files come from the Hub.
    elsewhere = tmp_path / "rcp_ndcg_tasks.py"
    elsewhere.write_bytes((reference_tree / "rcp_ndcg_tasks.py").read_bytes())
    return {
        "task file": load_task_file(elsewhere).get_tasks(TASK)[0],
        "mteb's loader": getattr(definitions(tmp_path / "for_mteb.py", text), TASK)(),
    }


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Says something on the terminal, whatever pytest captures."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stderr.write(f"\n{text}")

    return write


def test_one_copy_of_the_pages(
    tasks: dict[str, Any], faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Callable[[str], None]
) -> None:
    """The task file keeps one copy of the pages where mteb's loader keeps one a language or two; the scores agree."""
    copies, requests, scores = {}, {}, {}
    for name, task in tasks.items():
        cache = tmp_path / re.sub(r"\W", "-", name)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache / "datasets")
        before = len(faults.requests())
        result = scores_of(mteb.evaluate(Given(digits), task, cache=None))
        scores[name] = {subset: entry["main_score"] for subset, entry in result.items()}
        requests[name] = len(faults.requests()) - before
        pages = next((cache / "hub").rglob("snapshots/*/sysadmin_en/*.parquet")).stat().st_size
        sizes = [path.stat().st_size for path in (cache / "datasets").rglob("*.arrow")]
        copies[name] = sum(size > pages / 2 for size in sizes)
        say(
            f"one domain, six languages, {pages / 1e6:.1f} MB of pages, {name}: {requests[name]} requests, "
            f"{copies[name]} Arrow copies of the pages, {sum(sizes) / 1e6:.1f} MB of cache"
        )
    assert scores["task file"] == pytest.approx(scores["mteb's loader"], abs=1e-12)
    assert [1, True] == [copies["task file"], copies["mteb's loader"] in {6, 12}]
    assert requests["task file"] < requests["mteb's loader"] / 4
