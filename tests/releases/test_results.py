"""`release results` on the real benchmark's tree and on trees that lack something."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from support.command import Done, release_here
from support.replay import as_qrels, as_run, domain_cell

from builder.benchmark import load_benchmark

if TYPE_CHECKING:
    from pathlib import Path

PAIR = ["query-id", "corpus-id"]


@pytest.fixture
def results(reference: Path, reference_tree: Path) -> Any:
    """Run `release results` on the real benchmark's tree."""

    def run(*args: str | Path, tree: Path = reference_tree) -> Done:
        return release_here("results", tree, "--benchmark", reference / "benchmark.toml", *args)

    return run


def test_all_eight_tables(results: Any, reference: Path, reference_tree: Path) -> None:
    """`--json` gives the eight tables; each cell and Mean equals an independent replay within 1e-12."""
    benchmark = load_benchmark(str(reference / "benchmark.toml"))
    done = results("--json")
    assert (0, 8) == (done.code, len(json.loads(done.stdout)["tables"]))
    qrels = {
        domain: {
            language: as_qrels(
                pl.read_parquet(reference_tree / f"{domain}__{language}" / "qrels.parquet")
                .select(*PAIR, "score", "gain")
                .iter_rows()
            )
            for language in benchmark.languages
        }
        for domain in benchmark.domains
    }
    stored = {
        domain: pl.read_parquet(reference_tree / "provenance" / "runs" / f"{domain}.parquet")
        for domain in benchmark.domains
    }
    for table in json.loads(done.stdout)["tables"]:
        for row, model in zip(table["rows"], benchmark.rerankers, strict=True):
            expected = {
                name: domain_cell(
                    qrels[name],
                    domain.native_language,
                    as_run(stored[name].filter(model=model).select(*PAIR, "score").iter_rows()),
                    view=table["view"],
                    metric=table["metric"],
                    rule=table["ties"],
                )
                for name, domain in benchmark.domains.items()
            }
            expected["mean"] = statistics.fmean(expected.values())
            assert benchmark.rerankers[model] == row["model"]
            assert pytest.approx(expected, abs=1e-12) == row["values"]


def test_formats_say_the_same(results: Any) -> None:
    """CSV holds the JSON's values exactly; Markdown and the terminal's table print them in percent."""
    asked = ("--metric", "rcp", "--ties", "b", "--view", "native")
    (table,) = json.loads(results(*asked, "--json").stdout)["tables"]
    rows = list(csv.DictReader(io.StringIO(results(*asked, "--format", "csv").stdout)))
    assert [
        {"model": row["model"], "values": {name: float(row[name]) for name in table["columns"]}} for row in rows
    ] == table["rows"]
    markdown, text = results(*asked, "--format", "markdown").stdout, results(*asked).stdout
    for row in table["rows"]:
        cells = [row["model"], *(f"{100 * row['values'][name]:.1f}" for name in table["columns"])]
        assert "| " + " | ".join(cells) + " |" in markdown
        assert any(cells == [cell.strip() for cell in line.strip("│ ").split("│")] for line in text.splitlines())


def test_count_metric(results: Any) -> None:
    """`--metric count` replays the runs on the share of passed verdicts, in both views and under both rules."""
    tables = json.loads(results("--metric", "count", "--json").stdout)["tables"]
    assert [("native", "a"), ("native", "b"), ("six-language", "a"), ("six-language", "b")] == [
        (table["view"], table["ties"]) for table in tables
    ]
    assert {"count"} == {table["metric"] for table in tables}


def test_own_run(results: Any, reference_tree: Path, tmp_path: Path) -> None:
    """A copy of a stored run, given as one's own, gets the stored run's values to the last bit and no remark."""
    for domain in ("sysadmin_en", "sysadmin_fr"):
        stored = pl.read_parquet(reference_tree / "provenance" / "runs" / f"{domain}.parquet").filter(model="hybrid")
        (tmp_path / "mine").mkdir(exist_ok=True)
        stored.select(*PAIR, "score").write_csv(tmp_path / "mine" / f"{domain}.csv")
    done = results("--run", tmp_path / "mine", "--json")
    document = json.loads(done.stdout)
    for table in document["tables"]:
        values = {row["model"]: row["values"] for row in table["rows"]}
        assert values["Hybrid"] == values["mine"]
        assert "mine" == table["rows"][-1]["model"]
    assert [] == document["own_runs"]["mine"]["remarks"]
    shown = results("--run", tmp_path / "mine", "--metric", "rcp", "--ties", "b", "--view", "native")
    assert "mine and Hybrid tie: their gap of 0.0 points is below 2." in shown.stdout


def test_part_of_a_run(results: Any, reference_tree: Path, tmp_path: Path) -> None:
    """A run of one domain that lacks queries is scored there, has no Mean, and what it lacks is said."""
    stored = pl.read_parquet(reference_tree / "provenance" / "runs" / "sysadmin_en.parquet").filter(model="hybrid")
    kept = stored.filter(pl.col("query-id") != "query-test-0").select(*PAIR, "score", subset=pl.lit("sysadmin_en"))
    kept.write_parquet(tmp_path / "part.parquet")
    done = results("--run", tmp_path / "part.parquet", "--metric", "rcp", "--ties", "a", "--json")
    for table in json.loads(done.stdout)["tables"]:
        values = table["rows"][-1]["values"]
        assert values["sysadmin_en"] > 0
        assert (None, None) == (values["sysadmin_fr"], values["mean"])
    assert "1 of 24 queries have no ranked page and score 0 (query-test-0)." in done.stderr
    assert "nothing is ranked in sysadmin_fr__english" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "end"),
    [
        ("r.csv", "query-0,doc-0,1,sysadmin_en\n", (3, "matches nothing of this benchmark")),
        ("r.csv", "query-test-0,corpus-test-1,1,\n", (3, "'subset' is missing")),
        ("r.csv", "query-test-0,corpus-test-1,x,sysadmin_en\n", (3, "row 0, column 'score', value 'x'")),
        ("Hybrid.csv", "query-test-0,corpus-test-35,1,sysadmin_en\n", (2, "two systems would be called 'Hybrid'")),
        ("r.doc", "", (2, "does not say the format")),
    ],
)
def test_refused_runs(results: Any, tmp_path: Path, name: str, text: str, end: tuple[int, str]) -> None:
    """A run that cannot be used is refused with its exit code and the place of the fault; nothing goes to stdout."""
    (tmp_path / name).write_text("query-id,corpus-id,score,subset\n" + text)
    done = results("--run", tmp_path / name)
    assert (end[0], "") == (done.code, done.stdout)
    assert end[1] in done.stderr


def test_ambiguous_run(results: Any, tmp_path: Path) -> None:
    """A run whose ids are in both domains is refused where it does not say which it means."""
    (tmp_path / "r.csv").write_text("query-id,corpus-id,score\nquery-test-0,corpus-test-1,1\n")
    done = results("--run", tmp_path / "r.csv")
    assert (3, "") == (done.code, done.stdout)
    assert "'query-test-0' is in 2 domains" in done.stderr


def test_missing_things(results: Any, tmp_path: Path) -> None:
    """No tree, no such run and two runs of one name are said with their exit codes."""
    (tmp_path / "r.csv").write_text("query-id,corpus-id,score\nq,a,1\n")
    assert 4 == results(tree=tmp_path / "none").code
    assert 4 == results("--run", tmp_path / "none.csv").code
    assert 2 == results("--run", tmp_path / "r.csv", "--run", tmp_path / "r.csv").code
    assert 2 == results("--metric", "map").code


def test_simulated_judge_is_named(results: Any) -> None:
    """A simulated judge is called simulated beside the tables."""
    assert "judge of this tree is simulated" in results("--view", "native").stderr


def test_statistics(results: Any) -> None:
    """`--statistics` adds tests of all pairs, an interval around each Mean, and how far the metrics agree."""
    document = json.loads(results("--statistics", "--ties", "b", "--view", "native", "--json").stdout)
    for table in document["tables"]:
        found = table["statistics"]
        assert 10 == len(found["pairs"])
        for row in table["rows"]:
            low, high = found["intervals"][row["model"]]
            assert low < row["values"]["mean"] < high
        for domain, share in found["separated"].items():
            separated = [
                pair["p_values"][domain] is not None and pair["p_values"][domain] < 0.05 for pair in found["pairs"]
            ]
            assert statistics.fmean(separated) == share
    (agreement,) = document["agreements"]
    means = [[row["values"]["mean"] for row in table["rows"]] for table in document["tables"]]
    signs = [(means[0][i] - means[0][j]) * (means[1][i] - means[1][j]) > 0 for i in range(5) for j in range(i)]
    assert pytest.approx((2 * sum(signs) - 10) / 10) == agreement["kendall_tau"]
    assert 10 == len(agreement["sign_flips"])


@pytest.mark.parametrize("form", ["csv", "markdown"])
def test_statistics_have_no_place_in_a_bare_table(results: Any, form: str) -> None:
    """CSV and Markdown are tables alone: asked for statistics there, the command says which format has them."""
    done = results("--statistics", "--format", form)
    assert (2, "") == (done.code, done.stdout)
    assert "use --json with --statistics" in " ".join(done.stderr.split())


def test_absent_reranker(results: Any, reference_tree: Path, tmp_path: Path) -> None:
    """A reranker without a run is said and has no row; the others' values and statistics are theirs as before."""
    tree = tmp_path / "tree"
    shutil.copytree(reference_tree, tree, copy_function=os.link)
    for domain in ("sysadmin_en", "sysadmin_fr"):
        path = tree / "provenance" / "runs" / f"{domain}.parquet"
        kept = pl.read_parquet(path).filter(pl.col("model") != "bm25")
        path.unlink()
        kept.write_parquet(path)
    asked = ("--statistics", "--json", "--ties", "b", "--view", "six-language")
    done = results(*asked, tree=tree)
    assert "the tree has no run of bm25." in done.stderr
    for whole, part in zip(
        json.loads(results(*asked).stdout)["tables"], json.loads(done.stdout)["tables"], strict=True
    ):
        assert [row for row in whole["rows"] if row["model"] != "BM25"] == part["rows"]
        pairs = [pair for pair in whole["statistics"]["pairs"] if "BM25" not in {pair["first"], pair["second"]}]
        assert [pair["p_values"] for pair in pairs] == [pair["p_values"] for pair in part["statistics"]["pairs"]]
        assert [pair["low"] for pair in pairs] == pytest.approx([pair["low"] for pair in part["statistics"]["pairs"]])


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (
            ("sysadmin_fr__spanish-qrels", "sysadmin_fr__klingon-qrels"),
            (3, "sysadmin_fr__klingon is in one of them"),
        ),
        (("provenance-runs", "provenance-walks"), (4, "no config provenance-runs")),
        (("provenance-judge-criteria", "provenance-other"), (4, "Count-nDCG is not defined")),
    ],
)
def test_tree_that_lacks_something(
    results: Any, reference_tree: Path, tmp_path: Path, change: tuple[str, str], end: tuple[int, str]
) -> None:
    """A tree of another benchmark, without runs or without criteria is refused, and what it lacks is named."""
    tree = tmp_path / "tree"
    shutil.copytree(reference_tree, tree, copy_function=os.link)
    card = (tree / "README.md").read_text()
    (tree / "README.md").unlink()
    (tree / "README.md").write_text(card.replace(*change))
    done = results("--metric", "count", tree=tree)
    assert (end[0], "") == (done.code, done.stdout)
    assert end[1] in done.stderr
