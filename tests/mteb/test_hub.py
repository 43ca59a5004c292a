"""Releases on a Hub: the pinned one is read, or a sentence says why not, whatever the Hub and the caches do."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import huggingface_hub
import mteb
import polars as pl
import pytest
from huggingface_hub import constants, hf_hub_download
from support.in_mteb import Given, copy_release, digits, load_task_file, scores_of

from releases.local_hub import Fault

if TYPE_CHECKING:
    from types import ModuleType

    from releases.local_hub import Faults

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "example/rcp-ndcg-tiny"
V1, V2 = "v1-toy", "v2-toy"


@pytest.fixture
def newer(tiny_world: Path, tiny_tree: Path, tmp_path: Path) -> Path:
    """Release 2: the gains are turned round."""
    edits = {
        f"paper__{language}/qrels.parquet": lambda frame: frame.with_columns(gain=1 - pl.col("gain"))
        for language in ("english", "french")
    }
    return copy_release(tiny_tree, tmp_path / "v2", tiny_world, tag=V2, edits=edits)


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes the Hub away: nobody listens where clients look."""

    def take_away() -> None:
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        template = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    return take_away


def task_file(revision: str) -> ModuleType:
    """The task file of a revision, as a user gets it."""
    return load_task_file(Path(hf_hub_download(REPO, "rcp_ndcg_tasks.py", repo_type="dataset", revision=revision)))


def evaluate(tasks: ModuleType, **options: Any) -> dict[str, float]:
    """Main scores by subset."""
    (task,) = tasks.get_tasks(**options)
    result = mteb.evaluate(Given(digits), task, cache=None)
    return {subset: scores["main_score"] for subset, scores in scores_of(result).items()}


def of_folder(tree: Path) -> dict[str, float]:
    """Main scores of a release on disk: what the Hub must give too."""
    return evaluate(load_task_file(tree / "rcp_ndcg_tasks.py"))


def test_each_release_gives_its_own_scores(publisher: Any, tiny_tree: Path, newer: Path) -> None:
    """Two releases under the same task names, by tag, by commit, and one from the other's task file."""
    commits = [publisher.publish(tiny_tree, V1), publisher.publish(newer, V2)]
    first, second = of_folder(tiny_tree), of_folder(newer)
    assert first != second
    assert first == evaluate(task_file(V1))
    assert second == evaluate(task_file(V2))
    assert first == evaluate(task_file(V2), revision=V1)
    assert first == evaluate(task_file(V2), revision=commits[0])
    assert second == evaluate(task_file(V1), revision=commits[1])


def test_only_the_files_of_the_task_are_fetched(publisher: Any, tiny_tree: Path, tmp_path: Path) -> None:
    """A reranking task of a domain fetches its corpus and three tables a language, and nothing of the provenance."""
    publisher.publish(tiny_tree, V1)
    evaluate(task_file(V1))
    fetched = {path.name for path in (tmp_path / "hub-cache").rglob("*.parquet")}
    assert {"corpus-00000-of-00001.parquet", "queries.parquet", "qrels.parquet", "top_ranked.parquet"} == fetched
    assert 7 == len(list((tmp_path / "hub-cache").rglob("snapshots/*/**/*.parquet")))


@pytest.fixture(params=["down", "offline"])
def without_hub(request: pytest.FixtureRequest, down: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes the Hub away in one of two ways."""

    def go_offline() -> None:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    return down if request.param == "down" else go_offline


def test_no_hub_and_a_warm_cache(publisher: Any, tiny_tree: Path, newer: Path, without_hub: Any) -> None:
    """The cached release is scored as it was; another or a made-up one gets a sentence, never the cached numbers."""
    publisher.publish(tiny_tree, V1)
    publisher.publish(newer, V2)
    tasks = task_file(V1)
    online = evaluate(tasks)
    without_hub()
    assert online == of_folder(tiny_tree) == evaluate(tasks)
    for revision in (V2, "v9-none", "0" * 40):
        with pytest.raises(RuntimeError, match="is neither reachable nor wholly in this machine's cache"):
            evaluate(tasks, revision=revision)


def test_hub_that_refuses_does_not_turn_reranking_into_retrieval(
    publisher: Any, tiny_tree: Path, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    """A Hub that answers 403 to everything: the cached snapshot is scored, and a warning says so."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    online = evaluate(tasks)
    faults.add(Fault("*", ".*", status=403, times=10_000))
    with caplog.at_level(logging.WARNING, logger="rcp_ndcg_tasks"):
        assert online == evaluate(tasks, revision=V1)
    assert {"paper__english", "paper__french"} == online.keys()


def test_cold_cache_and_no_hub(publisher: Any, tiny_tree: Path, down: Any, tmp_path: Path) -> None:
    """Without a cached snapshot and without a Hub there is a sentence."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    down()
    with pytest.raises(RuntimeError, match="is missing: the download of release 'v1-toy' is incomplete"):
        evaluate(tasks)
    assert not list((tmp_path / "hub-cache").rglob("*.parquet"))


def test_partly_cached_snapshot_and_no_hub(publisher: Any, tiny_tree: Path, down: Any) -> None:
    """A snapshot that holds one language only does not pass for the whole."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    (task,) = tasks.get_tasks()
    task.hf_subsets = ["paper__english"]
    mteb.evaluate(Given(digits), task, cache=None)
    down()
    with pytest.raises(RuntimeError, match=r"is neither reachable nor wholly in|is missing: the download"):
        evaluate(tasks)


def test_moved_tag_is_seen(publisher: Any, tiny_tree: Path, newer: Path) -> None:
    """A tag that was made again elsewhere: the task file that was fetched before refuses the other release's data."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    publisher.move_tag(V1, publisher.publish(newer, V2))
    with pytest.raises(RuntimeError, match=r"is not the file of release 'v1-toy'.*or the tag was moved"):
        evaluate(tasks)


def test_moved_tag_is_seen_with_a_warm_cache(publisher: Any, tiny_tree: Path, newer: Path, tmp_path: Path) -> None:
    """The same after a run: files beside the task file are still the right ones, those of the moved tag are refused."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    first = evaluate(tasks)
    publisher.move_tag(V1, publisher.publish(newer, V2))
    assert first == evaluate(tasks)
    elsewhere = tmp_path / "rcp_ndcg_tasks.py"
    elsewhere.write_bytes((tiny_tree / "rcp_ndcg_tasks.py").read_bytes())
    with pytest.raises(RuntimeError, match=r"is not the file of release 'v1-toy'.*or the tag was moved"):
        evaluate(load_task_file(elsewhere))


def test_client_that_loads_another_commit_is_caught(
    publisher: Any, tiny_tree: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the client answer with another snapshot than the one asked for, the commits are compared."""
    commits = [publisher.publish(tiny_tree, V1), publisher.publish(newer, V2)]
    tasks = task_file(V2)
    evaluate(tasks)
    stock = huggingface_hub.snapshot_download
    monkeypatch.setattr(tasks, "snapshot_download", lambda repo, **rest: stock(repo, **{**rest, "revision": V2}))
    with pytest.raises(RuntimeError, match=rf"'v1-toy' of {REPO} is commit {commits[0]}, but {commits[1]} was loaded"):
        evaluate(tasks, revision=V1)


def test_unknown_release_and_release_without_a_manifest(publisher: Any, tiny_tree: Path, newer: Path) -> None:
    """A tag that is not there, and one whose files nothing vouches for, each get a sentence."""
    (newer / "provenance" / "manifest.json").unlink()
    publisher.publish(tiny_tree, V1)
    publisher.publish(newer, V2)
    tasks = task_file(V1)
    with pytest.raises(RuntimeError, match=f"there is no release 'v9-none' of {REPO} that you may read"):
        evaluate(tasks, revision="v9-none")
    with pytest.raises(RuntimeError, match=r"release 'v2-toy' .* has no provenance/manifest.json, so nothing says"):
        evaluate(tasks, revision=V2)
    assert evaluate(task_file(V2)) == of_folder(newer)


def test_download_cut_short_is_seen(publisher: Any, tiny_tree: Path, tmp_path: Path) -> None:
    """A cached file that was cut short is refused, online too."""
    publisher.publish(tiny_tree, V1)
    tasks = task_file(V1)
    evaluate(tasks)
    (corpus,) = (tmp_path / "hub-cache").rglob("snapshots/*/paper/*.parquet")
    blob = corpus.resolve()
    blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(RuntimeError, match=r"is not the file of release 'v1-toy'"):
        evaluate(tasks)


def test_cards_snippet_runs_as_printed(publisher: Any, tiny_tree: Path) -> None:
    """The card's Python, word for word, with a model: results of every domain at the release's tag."""
    publisher.publish(tiny_tree, V1)
    card = Path(hf_hub_download(REPO, "README.md", repo_type="dataset", revision=V1)).read_text("utf-8")
    snippet = re.search(r"^```python\n(import importlib.*?)^```$", card, flags=re.MULTILINE | re.DOTALL)
    assert snippet is not None
    names: dict[str, Any] = {"model": Given(digits)}
    exec(compile(snippet[1], "README.md", "exec"), names)  # noqa: S102 - what a reader of the card does
    (result,) = names["results"].task_results
    assert ["TinyPaperRCPReranking", V1] == [result.task_name, result.dataset_revision]
    assert of_folder(tiny_tree) == {entry["hf_subset"]: entry["main_score"] for entry in result.scores["test"]}
