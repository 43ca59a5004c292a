"""The whole way on the real benchmark, against results of independent code: agreement to 1e-6 is the bar."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pathlib import Path

DOMAINS = ("sysadmin_en", "sysadmin_fr")
LANGUAGES = ("english", "french", "german", "italian", "portuguese", "spanish")
PAIR = ["query-id", "corpus-id"]
BAR = 1e-6


def _close(expected: pl.Series, actual: pl.Series) -> bool:
    return float((expected - actual).abs().max()) <= BAR  # type: ignore[arg-type]


@pytest.mark.parametrize("domain", DOMAINS)
def test_gains_are_those_of_independent_code(domain: str, reference: Path, reference_tree: Path) -> None:
    """theta, gain and score of every pool pair equal the expected ones within 1e-6."""
    expected = pl.read_parquet(reference / "expected" / "gains.parquet").filter(pl.col("domain") == domain)
    frames = [pl.read_parquet(reference_tree / f"{domain}__{language}" / "qrels.parquet") for language in LANGUAGES]
    both = expected.join(pl.concat(frames), on=PAIR, how="full", suffix="_built")
    assert [21_600, 0] == [both.height, both["theta_built"].null_count()]
    assert _close(both["theta"], both["theta_built"])
    assert _close(both["gain"], both["gain_built"])
    assert both["score"].to_list() == both["score_built"].to_list()


@pytest.mark.parametrize("domain", DOMAINS)
def test_abilities_tau_and_alpha_are_those_of_independent_code(
    domain: str, reference: Path, reference_tree: Path
) -> None:
    """The calibration table equals the expected abilities, tau and alpha within 1e-6."""
    built = pl.read_parquet(reference_tree / "provenance" / "calibration" / f"{domain}.parquet")
    gains = pl.read_parquet(reference / "expected" / "gains.parquet").filter(pl.col("domain") == domain)
    queries = pl.read_parquet(reference / "expected" / "queries.parquet").filter(pl.col("domain") == domain)
    both = gains.join(built, on=PAIR, how="full").join(queries, on="query-id", suffix="_expected")
    assert 21_600 == both.height
    assert _close(both["bt"], both["ability"])
    assert _close(both["tau_expected"], both["tau"])
    assert _close(both["alpha_expected"], both["alpha"])


def test_item_parameters_are_those_of_independent_code(reference: Path, reference_tree: Path) -> None:
    """gamma, beta and the objective equal the expected ones within 1e-6; as many placements were fitted."""
    expected = json.loads((reference / "expected" / "reference.json").read_text())
    built = json.loads((reference_tree / "provenance" / "item_params.simulated.json").read_text())
    assert pytest.approx(expected["gamma"], abs=BAR) == built["gamma"]
    assert pytest.approx(expected["beta"], abs=BAR) == built["beta"]
    assert pytest.approx(expected["objective"], abs=BAR) == built["fit"]["objective"]
    assert expected["placements"] == built["fit"]["placements"]


@pytest.mark.parametrize("domain", DOMAINS)
def test_pools_are_those_of_independent_code(domain: str, reference: Path, reference_tree: Path) -> None:
    """The pool equals the expected one exactly: pages, places, scores, flags."""
    order = ["query-id", "pool_rank"]
    expected = pl.read_parquet(reference / "expected" / "pool" / f"{domain}.parquet").sort(order)
    assert expected.equals(pl.read_parquet(reference_tree / "provenance" / "pool" / f"{domain}.parquet").sort(order))


def test_unusable_windows_are_those_of_independent_code(reference: Path, reference_tree: Path) -> None:
    """Windows and unusable windows of each stage and domain equal the expected counts exactly."""
    expected = json.loads((reference / "expected" / "reference.json").read_text())["invalid"]
    account = json.loads((reference_tree / "provenance" / "windows.simulated.json").read_text())["domains"]
    counted = {
        stage: {
            domain: {
                "windows": sum(sum(phase.values()) for phase in account[domain][stage].values()),
                "invalid": sum(
                    number
                    for phase in account[domain][stage].values()
                    for outcome, number in phase.items()
                    if outcome != "fitted"
                ),
            }
            for domain in DOMAINS
        }
        for stage in ("tournament", "rubric")
    }
    assert expected == counted


def test_every_config_loads_with_datasets(reference_tree: Path, tmp_path: Path) -> None:
    """`datasets.load_dataset(TREE, CONFIG)` gives each config of the manifest with the manifest's rows."""
    # In a process of its own: its cache is fresh, and the library reads its settings at import.
    script = (
        "import json, sys, datasets\n"
        "tree = sys.argv[1]\n"
        "names = datasets.get_dataset_config_names(tree)\n"
        "rows = {}\n"
        "for name in names:\n"
        "    splits = datasets.load_dataset(tree, name)\n"
        "    rows[name] = sum(split.num_rows for split in splits.values())\n"
        "print(json.dumps(rows))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(reference_tree)],
        capture_output=True,
        text=True,
        check=True,
        env={"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    manifest = json.loads((reference_tree / "provenance" / "manifest.json").read_text())
    expected = {
        config["config_name"]: sum(
            manifest["files"][file]["rows"] for item in config["data_files"] for file in item["path"]
        )
        for config in manifest["configs"]
    }
    assert 2 * 6 * 4 + 5 == len(expected)
    assert expected == json.loads(done.stdout)


def test_all_qrels_have_one_schema(reference_tree: Path) -> None:
    """The twelve qrels files have one identical Arrow schema, without metadata."""
    schemas = [pq.read_schema(path) for path in sorted(reference_tree.glob("*__*/qrels.parquet"))]
    columns = ["query-id: string", "corpus-id: string", "score: int64", "gain: double", "theta: double"]
    assert 12 == len(schemas)
    assert all("\n".join(columns) == schema.to_string() for schema in schemas)


@pytest.mark.parametrize("domain", DOMAINS)
def test_page_bytes_are_upstreams(domain: str, reference: Path, reference_tree: Path) -> None:
    """Each page's stored bytes, path and text are upstream's, and the manifest holds their sha256."""

    def pages(folder: Path) -> dict[str, tuple[str, str, str]]:
        rows = [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
        return {
            row["id"]: (hashlib.sha256(row["image"]["bytes"]).hexdigest(), row["image"]["path"], row["text"])
            for row in rows
        }

    expected = pages(reference / "upstream" / domain / "corpus")
    assert expected == pages(reference_tree / domain)
    manifest = json.loads((reference_tree / "provenance" / "manifest.json").read_text())
    assert {page: digest for page, (digest, _, _) in expected.items()} == manifest["pages"][domain]


def test_a_subset_holds_its_own_languages_rows_only(reference: Path, reference_tree: Path) -> None:
    """Queries and labels of a subset are those of the upstream rows in its language, wherever they stand."""
    for domain in DOMAINS:
        upstream = reference / "upstream" / domain
        for language in LANGUAGES:
            queries = pl.read_parquet(upstream / f"{language}-queries" / "*.parquet")
            labels = pl.read_parquet(upstream / f"{language}-qrels" / "*.parquet")
            own = labels.filter(pl.col("query-id").is_in(queries["id"].implode()))
            built = pl.read_parquet(reference_tree / f"{domain}__{language}" / "qrels.parquet").filter(
                pl.col("score") > 0
            )
            assert set(own.rows()) == set(built.select("query-id", "corpus-id", "score").rows())
            assert labels.height == 6 * own.height
