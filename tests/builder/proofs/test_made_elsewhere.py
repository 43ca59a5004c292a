"""A release made elsewhere, as the published ones are: other paths, no manifest, no calibration, no account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.proving import Tree

ITEMS = "provenance/item_params.toy.json"
POOL = "provenance/pool/paper.parquet"


@pytest.fixture
def foreign(tree: Tree) -> Tree:
    """The good tree without what this tool alone writes, its French qrels elsewhere, an injected page placed higher."""
    for name in ("manifest", "windows.toy"):
        (tree.path / "provenance" / f"{name}.json").unlink()
    (tree.path / "provenance/calibration/paper.parquet").unlink()
    card = (tree.path / "README.md").read_text("utf-8")
    start = card.index('- config_name: "provenance-calibration"')
    card = card[:start] + card[card.index("---", start) :]
    card = card.replace('    path:\n    - "paper__french/qrels.parquet"', "    path: data/french/qrels-*")
    tree.write("README.md", card.encode())
    tree.write("data/french/qrels-0.parquet", (tree.path / "paper__french/qrels.parquet").read_bytes())
    (tree.path / "paper__french/qrels.parquet").unlink()
    params = json.loads((tree.path / ITEMS).read_bytes())
    tree.write(ITEMS, json.dumps({key: params[key] for key in ("gamma", "beta", "num_criteria")}).encode())
    tree.write("provenance/releases.json", b'[{"release": 1, "tag": "v1-toy", "status": "current"}]')

    def higher(rows: list[dict[str, Any]]) -> None:
        for query in ("query-test-0", "query-test-1"):
            fifth, sixth = (n for n, row in enumerate(rows) if row["query-id"] == query and row["pool_rank"] > 4)
            rows[fifth]["pool_rank"], rows[sixth]["pool_rank"] = 6, 5

    tree.rows(POOL, higher)
    for language in ("english", "french"):
        tree.rows(f"paper__{language}/top_ranked.parquet", _swap_last)
    return tree


def _swap_last(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["query-id"] in {"query-test-0", "query-test-1"}:
            row["corpus-ids"][4:] = reversed(row["corpus-ids"][4:])


def test_what_it_lacks_is_not_provable_and_what_it_has_is_proved(foreign: Tree) -> None:
    """No manifest, account, calibration or known releases.json: not provable, neither passed nor failed."""
    result = foreign.validate()
    assert ["M1", "G1", "G2", "L1", "C1", "C2", "N1"] == result.named("not provable")
    assert ["S1", "S2", "J1", "J2", "U1", "P1", "P2", "P3", "R1"] == result.named("passed")


def test_tables_are_found_by_config_name(foreign: Tree) -> None:
    """A gain that is wrong in the French qrels is named where the card says that they lie."""
    foreign.cell("data/french/qrels-0.parquet", 3, "gain", 0.5)
    assert {"G1": [("gain", "data/french/qrels-0.parquet", 3, "gain", "0.5")]} == foreign.failing()


def test_the_rule_that_leaves_an_injected_pages_place_open_is_still_proved(foreign: Tree) -> None:
    """Where an injected page stands is open; that kept pages keep their order is not."""

    def swap(rows: list[dict[str, Any]]) -> None:
        rows[0]["pool_rank"], rows[1]["pool_rank"] = 2, 1

    foreign.rows(POOL, swap)
    assert [("kept-order", POOL, 0, "pool_rank", "2")] == foreign.failing("P2")["P2"]


def test_a_page_that_gave_way_out_of_turn_is_seen(foreign: Tree) -> None:
    """The lowest non-positive page gives way: a pool that lost its fourth and kept its fifth is named."""

    def keep_other(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["query-id"] == "query-test-0" and row["corpus-id"] == "corpus-test-3")
        row.update({"corpus-id": "corpus-test-5", "rrf_score": 1 / 66 + 1 / 66})

    foreign.rows(POOL, keep_other)
    found = {(place[0], place[4]) for place in foreign.failing("P2")["P2"]}
    assert ("gave-way", "corpus-test-3") in found


def test_hub_metadata_on_its_tables_is_a_warning(foreign: Tree) -> None:
    """Tables that `datasets` wrote carry its metadata: said, and no failure of a tree made elsewhere."""
    metadata = {b"huggingface": b'{"info": {"features": {}}}'}
    foreign.table("paper__english/top_ranked.parquet", lambda table: table.replace_schema_metadata(metadata))
    outcome = foreign.validate("S1").outcomes[0]
    assert ("passed", ["metadata"]) == (outcome.status, [warning.rule for warning in outcome.warnings])
