"""`release validate`: exit codes, what a person sees, the JSON document and the report."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import tiny
from support.command import Done, release, release_here

from builder.validate import ORDER

if TYPE_CHECKING:
    from pathlib import Path

PROOFS = ["M1", "S1", "S2", "J1", "J2", "U1", "P1", "P2", "P3", "G1", "G2", "R1", "L1", "C1", "C2"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny world with a good tree in out/v1-toy."""
    folder = tmp_path_factory.mktemp("validated")
    benchmark = tiny.write_world(folder)
    done = release_here("build", "--benchmark", benchmark, "--judge", "toy", "--out", folder / "out", "--workers", "1")
    assert done.code == 0, done.stderr
    return folder


@pytest.fixture
def broken(world: Path, tmp_path: Path) -> Path:
    """A copy of the good tree with every English gain wrong."""
    shutil.copytree(world / "out" / "v1-toy", tmp_path / "tree")
    path = tmp_path / "tree" / "paper__english" / "qrels.parquet"
    table = pq.read_table(path)
    wrong = table.set_column(3, "gain", pa.array([0.5] * table.num_rows))
    # 12 rows become 36, so that there are more failures than are printed.
    pq.write_table(pa.concat_tables([wrong] * 3), path)
    return tmp_path / "tree"


def _validate(world: Path, tree: Path, *extra: str | Path) -> Done:
    return release_here("validate", tree, "--benchmark", world / "benchmark.toml", *extra)


def test_a_good_tree_exits_0_and_lists_every_proof_with_its_coverage(world: Path) -> None:
    """One JSON document on stdout: each proof of DESIGN section 4 that a single tree allows, passed, with coverage."""
    done = _validate(world, world / "out" / "v1-toy", "--json")
    document = json.loads(done.stdout)
    assert (0, True, 0, [], ["N1"]) == (
        done.code,
        document["holds"],
        document["failures"],
        document["failed"],
        document["not_provable"],
    )
    assert set(PROOFS) <= set(document["passed"])
    assert {"rows": 24, "files": 1, "queries": 4} == document["proofs"]["P2"]["covered"]
    assert all(sum(document["proofs"][name]["covered"].values()) > 0 for name in PROOFS)


def test_every_proof_of_a_single_tree_has_its_place_in_the_report() -> None:
    """The order of DESIGN section 4, the notes last."""
    assert [*PROOFS, "N1"] == [name for name in ORDER if name in {*PROOFS, "N1"}]


def test_a_broken_tree_exits_3_and_prints_the_first_20_of_a_rule(world: Path, broken: Path) -> None:
    """The terminal shows twenty failures a rule and says how many more there are."""
    done = _validate(world, broken, "--proof", "G1")
    lines = done.stderr.splitlines()
    assert 3 == done.code
    assert 20 == sum("column 'gain'" in line for line in lines)
    assert "    ... and 16 more" in lines


@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_the_report_holds_every_failure(world: Path, broken: Path, tmp_path: Path, suffix: str) -> None:
    """All 36 wrong gains are in the report with proof, config, file, row, column, value, ids and message."""
    path = tmp_path / "reports" / f"all.{suffix}"
    done = _validate(world, broken, "--proof", "g1", "--report", path)
    if suffix == "parquet":
        rows = pl.read_parquet(path).to_dicts()
    else:
        rows = json.loads(path.read_bytes())["proofs"]["G1"]["first_failures"]
    gains = [row for row in rows if row["rule"] == "gain"]
    assert (3, list(range(36))) == (done.code, [row["row"] for row in gains])
    wanted = {
        "config": "paper__english-qrels",
        "file": "paper__english/qrels.parquet",
        "row": 0,
        "column": "gain",
        "value": "0.5",
        "query-id": "query-test-0",
        "corpus-id": "corpus-test-0",
    }
    assert wanted.items() <= gains[0].items()


def test_with_json_stdout_holds_one_document_and_nothing_else(world: Path, broken: Path) -> None:
    """A failing tree's document parses, and says that it does not hold."""
    done = _validate(world, broken, "--json")
    document = json.loads(done.stdout)
    assert (3, False) == (done.code, document["holds"])
    assert document["proofs"]["G1"]["by_rule"]["gain"] == 36
    assert 20 == len([f for f in document["proofs"]["G1"]["first_failures"] if f["rule"] == "gain"])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere"], 4, "no such folder"),
        (["TREE", "--against", "nowhere"], 4, "no such folder"),
        (["TREE", "--proof", "X9"], 2, "there is no proof 'X9'"),
        (["TREE", "--report", "all.csv"], 2, "a report is .parquet or .json"),
        (["TREE", "--benchmark", "nowhere.toml"], 4, "no such benchmark file"),
    ],
)
def test_what_cannot_be_asked_has_its_exit_code(world: Path, arguments: list[str], code: int, says: str) -> None:
    """A missing tree is 4, a wrong option is 2, each with a sentence."""
    tree = str(world / "out" / "v1-toy")
    done = release_here("validate", *(tree if argument == "TREE" else argument for argument in arguments))
    assert code == done.code
    assert says in done.stderr


def test_upstream_out_of_reach_is_not_provable_by_default_and_exit_4_where_asked_for(
    world: Path, tmp_path: Path
) -> None:
    """Without upstream U1 and J2 are said to be not provable; asked for by name, that is a missing input."""
    benchmark = tmp_path / "benchmark.toml"
    shutil.copy(world / "benchmark.toml", benchmark)
    tree = world / "out" / "v1-toy"
    done = release_here("validate", tree, "--benchmark", benchmark, "--json")
    assert (0, ["J2", "U1", "N1"]) == (done.code, json.loads(done.stdout)["not_provable"])
    assert "upstream cannot be reached" in done.stderr
    assert 4 == release_here("validate", tree, "--benchmark", benchmark, "--proof", "U1").code


def test_without_a_benchmark_file_what_needs_one_is_not_provable(world: Path) -> None:
    """A tree whose benchmark is not embedded, and none given: nothing fails, and what is open is named."""
    done = release_here("validate", world / "out" / "v1-toy", "--json")
    document = json.loads(done.stdout)
    assert 0 == done.code
    assert {"J2", "U1", "P1", "P2", "R1", "C1", "C2", "N1"} <= set(document["not_provable"])
    assert {"M1", "S1", "S2", "J1", "P3", "G1", "G2", "L1"} <= set(document["passed"])


def test_strict_makes_warnings_fail(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning exits 0, and 3 with --strict."""
    monkeypatch.setattr("builder.proofs.card.MOST_SPLITS", 0)
    tree = world / "out" / "v1-toy"
    assert [0, 3] == [_validate(world, tree).code, _validate(world, tree, "--strict").code]


def test_an_empty_folder_proves_nothing_and_fails_c1(world: Path, tmp_path: Path) -> None:
    """Nothing there: C1 fails, and not one proof passes."""
    (tmp_path / "empty").mkdir()
    done = _validate(world, tmp_path / "empty", "--json")
    document = json.loads(done.stdout)
    assert (3, [], ["C1"]) == (done.code, document["passed"], document["failed"])


def test_the_command_runs_in_a_process_of_its_own(world: Path) -> None:
    """In a process of its own too: exit code 0, and its last line counts the proofs."""
    done = release("validate", world / "out" / "v1-toy", "--benchmark", world / "benchmark.toml")
    assert 0 == done.code
    assert done.stderr.splitlines()[-1].endswith(" 0 failed, 1 not provable; 0 failures, 2 warnings")
