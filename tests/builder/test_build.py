"""`release build` on the tiny world: what a tree holds, what it depends on, and what bad input gets."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from support import tiny
from support.command import Done, release, release_here, same_trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAG = "v1-toy"


def build(world: Path, *extra: str | Path) -> Done:
    """Build the tiny world into out/."""
    benchmark = world / "benchmark.toml"
    return release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", world / "out", "--workers", "1",
        "--no-figures", *extra,
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world with a good tree in out/v1-toy."""
    world = tmp_path_factory.mktemp("world")
    tiny.write_world(world)
    done = build(world)
    assert done.code == 0, done.stderr
    return world


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A fresh world, nothing built."""
    tiny.write_world(tmp_path)
    return tmp_path


def test_every_file_of_the_design_is_there_and_no_other(built: Path) -> None:
    """The tree holds exactly the files of DESIGN section 3."""
    tree = built / "out" / TAG
    expected = {
        ".gitattributes",
        "README.md",
        "rcp_ndcg_tasks.py",
        "paper/corpus-00000-of-00001.parquet",
        *(
            f"paper__{language}/{kind}.parquet"
            for language in tiny.LANGUAGES
            for kind in ("queries", "qrels", "top_ranked")
        ),
        *(
            f"provenance/{kind}/paper.parquet"
            for kind in ("pool", "first_stage", "runs", "judge_criteria", "calibration")
        ),
        "provenance/windows.toy.json",
        "provenance/item_params.toy.json",
        "provenance/releases.json",
        "provenance/manifest.json",
    }
    assert expected == {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def test_qrels_are_the_pool_with_labels(built: Path) -> None:
    """A subset's qrels hold its own questions' pool pairs in pool order, unlabelled pages with score 0."""
    rows = pq.read_table(built / "out" / TAG / "paper__french" / "qrels.parquet").to_pylist()
    expected = [
        (query, page, tiny.LABELS[query].get(page, 0))
        for query in ("query-test-1", "query-test-10")
        for page in tiny.pool_of(query)
    ]
    assert expected == [(row["query-id"], row["corpus-id"], row["score"]) for row in rows]
    assert all(0 < row["gain"] < 1 for row in rows)


def test_injected_pages_are_marked(built: Path) -> None:
    """A positive that the first stage misses takes the lowest non-positive's place, marked, with score 0."""
    rows = pq.read_table(built / "out" / TAG / "provenance" / "pool" / "paper.parquet").to_pylist()
    injected = [
        (row["query-id"], row["corpus-id"], row["pool_rank"], row["rrf_score"]) for row in rows if row["gt_injected"]
    ]
    assert [("query-test-0", "corpus-test-10", 6, 0.0), ("query-test-1", "corpus-test-10", 6, 0.0)] == injected


def test_the_corpus_file_is_copied(built: Path) -> None:
    """A corpus file that already has our schema is the upstream file, byte for byte."""
    source = built / "upstream" / "paper" / "corpus" / "test-00000-of-00001.parquet"
    copy = built / "out" / TAG / "paper" / "corpus-00000-of-00001.parquet"
    assert hashlib.sha256(source.read_bytes()).digest() == hashlib.sha256(copy.read_bytes()).digest()


def test_unusable_windows_are_counted_by_category(built: Path) -> None:
    """The account names each stage's windows: prose without an object is no_json, a cut answer is truncated."""
    account = json.loads((built / "out" / TAG / "provenance" / "windows.toy.json").read_text())["domains"]["paper"]
    total = {
        stage: {
            outcome: sum(phase[outcome] for phase in phases.values()) for outcome in ("fitted", "truncated", "no_json")
        }
        for stage, phases in account.items()
    }
    expected = {
        "tournament": {"fitted": 39, "truncated": 0, "no_json": 1},
        "rubric": {"fitted": 39, "truncated": 1, "no_json": 0},
    }
    assert expected == total


def test_the_simulated_judge_is_named_in_the_card(built: Path) -> None:
    """A reader of the card meets the simulated judge before anything else."""
    body = (built / "out" / TAG / "README.md").read_text().split("---\n", 2)[2]
    assert "simulated" in body.split("\n\n")[1]


def test_json_is_one_document_on_stdout(world: Path) -> None:
    """--json prints tag, tree, rows a config, windows, objective, iterations, shards and seconds, and nothing else."""
    done = build(world, "--json")
    report = json.loads(done.stdout)
    assert TAG == report["tag"]
    assert str(world / "out" / TAG) == report["tree"]
    assert 12 == report["rows"]["paper__english-qrels"]
    assert {"tag", "tree", "rows", "windows", "objective", "iterations", "shards", "seconds"} == set(report)


def test_a_tree_is_a_function_of_its_inputs(built: Path, tmp_path: Path) -> None:
    """Building elsewhere, from another folder, with another number of workers gives the same bytes."""
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(built, elsewhere, ignore=shutil.ignore_patterns("out"))
    done = release(
        "build", "--benchmark", "../benchmark.toml", "--judge", "toy", "--out", "trees", "--workers", "2",
        "--no-figures",
        cwd=(elsewhere / "upstream"),
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert same_trees(built / "out" / TAG, elsewhere / "upstream" / "trees" / TAG)


def test_a_build_replaces_an_older_tree(world: Path) -> None:
    """A second build of the same tag leaves one whole tree and nothing beside it."""
    assert [0, 0] == [build(world).code, build(world).code]
    assert [TAG] == [path.name for path in (world / "out").iterdir()]


def test_a_foreign_folder_is_not_replaced(world: Path) -> None:
    """A folder that is no release tree is refused and kept."""
    precious = world / "out" / TAG / "thesis.tex"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work")
    done = build(world)
    assert 5 == done.code
    assert "years of work" == precious.read_text()


def _rows(path: str) -> Callable[[Callable[[list[dict[str, Any]]], Any]], Callable[[Path], None]]:
    def with_edit(edit: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
        def apply(world: Path) -> None:
            def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
                edit(rows)
                return rows

            tiny.edit_rows(world / path, change)

        return apply

    return with_edit


def _bytes(path: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda world: (world / path).write_bytes(edit((world / path).read_bytes())) and None


CORPUS = "upstream/paper/corpus/test-00000-of-00001.parquet"
QRELS = "upstream/paper/english-qrels/test-00000-of-00001.parquet"
QUERIES = "upstream/paper/french-queries/test-00000-of-00001.parquet"
FIRST = "pipeline/first_stage/paper.parquet"
RUNS = "pipeline/runs/paper.parquet"
TOURNAMENT = "pipeline/judgements/toy/tournament/paper.parquet"
RUBRIC = "pipeline/judgements/toy/rubric/paper.parquet"

BAD = {
    "a missing file": (lambda w: (w / RUNS).unlink(), 4, ["runs/paper.parquet"]),
    "a truncated Parquet": (_bytes(RUNS, lambda b: b[: len(b) // 2]), 3, ["runs/paper.parquet", "cut off"]),
    "a git-lfs pointer": (
        _bytes(CORPUS, lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        3,
        ["git-lfs pointer"],
    ),
    "a NaN score": (
        _rows(RUNS)(lambda r: r[5].update(score=float("nan"))),
        3,
        ["runs/paper.parquet", "row 5", "score", "nan"],
    ),
    "a null id": (_rows(FIRST)(lambda r: r[2].update({"corpus-id": None})), 3, ["row 2", "corpus-id"]),
    "a duplicate pair in a run": (_rows(RUNS)(lambda r: r.append(dict(r[0]))), 3, ["runs/paper.parquet", "row 48"]),
    "a run without a pair": (_rows(RUNS)(lambda r: r.pop(7)), 3, ["runs/paper.parquet"]),
    "a page that does not join": (
        _rows(FIRST)(lambda r: r[0].update({"corpus-id": "corpus-test-99"})),
        3,
        ["first_stage/paper.parquet", "row 0", "corpus-test-99"],
    ),
    "a positive outside the corpus": (
        _rows(QRELS)(lambda r: r[0].update({"corpus-id": "corpus-test-99"})),
        3,
        ["english-qrels", "row 0", "corpus-test-99"],
    ),
    "a label of an unknown question": (
        _rows(QRELS)(lambda r: r[0].update({"query-id": "query-test-99"})),
        3,
        ["english-qrels", "row 0", "query-test-99"],
    ),
    "a pool short of pages": (
        _rows(FIRST)(lambda r: r.__setitem__(slice(None), [row for row in r if row["rank"] <= 5])),
        3,
        ["5", "6"],
    ),
    "a rank left out": (_rows(FIRST)(lambda r: r[3].update(rank=40)), 3, ["first_stage/paper.parquet", "rank"]),
    "a window of foreign pages": (
        _rows(TOURNAMENT)(lambda r: r[0]["corpus-ids"].__setitem__(0, "corpus-test-11")),
        3,
        ["tournament/paper.parquet", "corpus-test-11"],
    ),
    "a window twice": (_rows(RUBRIC)(lambda r: r.append(dict(r[0]))), 3, ["rubric/paper.parquet", "call_index"]),
    "no usable answer": (
        _rows(TOURNAMENT)(lambda r: [row.update(answer="prose") for row in r if row["query-id"] == "query-test-2"]),
        3,
        ["query-test-2"],
    ),
    "no usable verdict": (
        _rows(RUBRIC)(lambda r: [row.update(answer="prose") for row in r if row["query-id"] == "query-test-2"]),
        3,
        ["query-test-2"],
    ),
    "a page without an image": (
        _rows(CORPUS)(lambda r: r[4]["image"].update(bytes=None)),
        3,
        ["corpus", "row 4", "image"],
    ),
    "a null text": (_rows(CORPUS)(lambda r: r[4].update(text=None)), 3, ["corpus", "row 4", "text"]),
    "an id of another form": (_rows(CORPUS)(lambda r: r[4].update(id="page 4")), 3, ["corpus", "row 4", "'page 4'"]),
    "an empty question": (_rows(QUERIES)(lambda r: r[1].update(text="")), 3, ["french-queries", "row 1", "text"]),
    "an empty file of answers": (_rows(RUBRIC)(lambda r: r.clear()), 3, ["rubric/paper.parquet", "no row"]),
    "a page twice": (_rows(CORPUS)(lambda r: r[4].update(id="corpus-test-0")), 3, ["corpus-test-0", "twice"]),
    "a question in two languages": (
        _rows(QUERIES)(lambda r: r[0].update(id="query-test-0")),
        3,
        ["french-queries", "row 0", "query-test-0"],
    ),
    "a language that disagrees": (
        _rows(QUERIES)(lambda r: r[1].update(language="english")),
        3,
        ["french-queries", "row 1", "language"],
    ),
    "no upstream": (lambda w: shutil.rmtree(w / "upstream"), 4, ["upstream/paper"]),
    "no judgements": (lambda w: shutil.rmtree(w / "pipeline" / "judgements"), 4, ["judgements/toy"]),
    "a broken benchmark file": (
        lambda w: (w / "benchmark.toml").write_text(tiny.BENCHMARK.replace("pool_size", "pool_sise")),
        3,
        ["pool_sise", "did you mean 'pool_size'"],
    ),
}


def test_extra_columns_of_a_corpus_are_left_out(world: Path) -> None:
    """A corpus with a further column is rewritten with ours, image bytes untouched."""
    tiny.edit_table(world / CORPUS, lambda table: table.append_column("markdown", table["text"]))
    done = build(world)
    assert 0 == done.code, done.stderr
    rows = pq.read_table(world / "out" / TAG / "paper" / "corpus-00000-of-00001.parquet").to_pylist()
    assert [{"bytes": tiny.png(n), "path": f"page-{n}.png"} for n in range(10)] == [row["image"] for row in rows]
    assert ["image", "id", "text"] == list(rows[0])


def test_files_of_ones_own_in_an_older_tree_are_kept(world: Path) -> None:
    """A note put into a tree is no release's: the next build refuses instead of removing it."""
    assert 0 == build(world).code
    note = world / "out" / TAG / "notes.txt"
    note.write_text("mine")
    done = build(world)
    assert (5, "mine") == (done.code, note.read_text())
    assert "notes.txt" in done.stderr


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_and_leaves_nothing(name: str, world: Path) -> None:
    """Each fault gets its exit code, a message that names the place, no traceback, and no output."""
    spoil, code, needles = BAD[name]
    spoil(world)
    done = build(world)
    assert code == done.code, done.stderr
    assert [] == [needle for needle in needles if needle not in done.stderr]
    assert "Traceback" not in done.stderr
    assert not (world / "out").exists()


def test_an_unknown_judge_is_refused(world: Path) -> None:
    """A judge that the benchmark file does not name is an input that is missing; the nearest name is proposed."""
    done = release("build", "--benchmark", world / "benchmark.toml", "--judge", "toi", "--out", world / "out")
    assert 4 == done.code
    assert "did you mean 'toy'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(number: signal.Signals, world: Path) -> None:
    """Ctrl-C or a polite kill in the middle: exit code 130, no tree, no temporary folder."""
    command = [
        sys.executable,
        "-m",
        "releases",
        "build",
        "--benchmark",
        str(world / "benchmark.toml"),
        "--judge",
        "toy",
    ]
    with subprocess.Popen([*command, "--out", str(world / "out")], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list((world / "out").glob(".*")):
            assert process.poll() is None, "the build ended before it could be interrupted"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert 130 == process.returncode, errors
    assert [] == list((world / "out").glob("*"))


def test_a_full_disk_is_said(world: Path) -> None:
    """No room for another byte (a limit of 4 KiB a file stands for it): exit code 4, a sentence, nothing left."""
    command = [
        sys.executable,
        "-m",
        "releases",
        "build",
        "--benchmark",
        str(world / "benchmark.toml"),
        "--judge",
        "toy",
    ]
    done = subprocess.run(
        ["/bin/bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *command, "--out", str(world / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 4 == done.returncode, done.stderr
    assert "Traceback" not in done.stderr
    assert [] == list((world / "out").glob("*"))
