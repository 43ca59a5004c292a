"""Two releases of the tiny world compared: by hand where one edit is made, and what each kind of release leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import tiny
from support.plain_ndcg import plain_ndcg

from builder.diff.changelog import changelog, relation
from builder.diff.render import as_text
from builder.diff.report import blocks
from builder.diff.sentences import broken, headline, title

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import World

QRELS = "paper__english/qrels.parquet"
POOL = tiny.pool_of("query-test-0")
BEFORE = {"query-test-0": [0.75, 0.5, 0.25, 0.25, 0.125, 0.0], "query-test-2": [0.5, 0.25, 0.125, 0.0, 0.0, 0.0]}
NOW = {"query-test-0": [0.5, 0.75, 0.25, 0.25, 0.125, 0.0], "query-test-2": [0.5, 0.25, 0.125, 0.0, 0.0, 0.0]}


def gains(wanted: dict[str, list[float]]) -> Callable[[list[dict[str, Any]]], None]:
    """Give the pages of the English queries these gains, in pool order."""

    def edit(rows: list[dict[str, Any]]) -> None:
        for query, values in wanted.items():
            own = [row for row in rows if row["query-id"] == query]
            for row, value in zip(own, values, strict=True):
                row["gain"] = value

    return edit


def table(document: dict[str, Any], metric: str = "rcp", view: str = "native", ties: str = "b") -> dict[str, Any]:
    """One of the document's leaderboards."""
    wanted = (view, metric, ties)
    (found,) = [item for item in document["leaderboards"] if (item["view"], item["metric"], item["ties"]) == wanted]
    return dict(found)


def unchanged(document: dict[str, Any]) -> dict[str, bool | None]:
    """What is unchanged, by name."""
    return {item["what"]: item["unchanged"] for item in document["held"]}


@pytest.fixture
def reordered(world: World, changed: Callable[..., Path]) -> dict[str, Any]:
    """Two trees that differ in two gains of one query: its first two pages swap."""
    old = changed(world.first, {QRELS: gains(BEFORE)}, "old")
    return world.diff(old, changed(world.first, {QRELS: gains(NOW)}, "new"))


def test_rows_and_gains_of_one_edit(reordered: dict[str, Any]) -> None:
    """Two of 24 gains change, by 0.25: two rows of one table, one file."""
    qrels = reordered["tables"]["qrels"]
    assert (2, 1, 24, 24, 0, 0, 2, {"gain": 2}) == tuple(
        qrels[name]
        for name in ("tables", "same_by_digest", "rows_old", "rows_new", "added", "removed", "changed", "columns")
    )
    assert ["paper__english"] == qrels["differing"]
    assert [QRELS] == reordered["files"]["changed"]
    gain = reordered["gains"]["gain"]
    assert (24, 2, 0.0, 0.5 / 24, 0.0, 0.25) == tuple(
        gain[name] for name in ("pairs", "changed", "mean", "mean_size", "median_size", "max_size")
    )
    assert [("paper", "query-test-0", 6, 0.5 / 6, 0.25)] == [
        tuple(row.values()) for row in reordered["gains"]["queries"]
    ]
    assert {(POOL[0], 0.75, 0.5), (POOL[1], 0.5, 0.75)} == {
        (row["corpus-id"], row["gain_old"], row["gain"]) for row in reordered["gains"]["pages"]
    }


def test_ideal_top_of_one_edit(reordered: dict[str, Any]) -> None:
    """Pools of six are in the top 10 whole: all pages stay; one query of four changes its order.

    Its 15 pairs of pages: one of equal gain before and now, one turns, 13 stay: tau-b is (13 - 1) / 14.
    """
    top = reordered["ideal_top"]
    assert (4, 1.0, 4, 3, 0) == tuple(
        top[name] for name in ("queries", "mean_overlap", "same_pages", "same_order", "tau_undefined")
    )
    assert pytest.approx((3 + 12 / 14) / 4, abs=1e-12) == top["kendall_tau"]


def test_leaderboard_of_one_edit(world: World, reordered: dict[str, Any]) -> None:
    """Each system's cell is the mean of its English queries' nDCG, before and now, by a plain loop."""
    found = table(reordered)
    runs = tiny.read_rows(world.first / "provenance" / "runs" / "paper.parquet")
    for row in found["systems"]:
        for side, wanted in (("old", BEFORE), ("new", NOW)):
            values = []
            for query, gained in wanted.items():
                pages = tiny.pool_of(query)
                scores = {
                    run["corpus-id"]: run["score"]
                    for run in runs
                    if run["query-id"] == query and run["model"] == row["system"].lower()
                }
                values.append(plain_ndcg(scores, dict(zip(pages, gained, strict=True)), k=10, rule="b"))
            assert pytest.approx(sum(values) / 2, abs=1e-12) == row[side]["paper"] == row[side]["mean"]
    # Six pages of equal score share the class's mean gain, so swapping two gains leaves them.
    flat = next(row for row in found["systems"] if row["system"] == "Flat")
    assert flat["old"] == flat["new"]
    assert 0 == table(reordered, "qrel")["cells"]["changed"]
    assert 8 == len(reordered["leaderboards"])


def test_a_broken_promise(reordered: dict[str, Any]) -> None:
    """Trees that call themselves the same release must be the same: what differs is named."""
    assert "same release" == reordered["relation"]["kind"]
    assert ["PROMISE BROKEN: gains changed, and the new release does not declare it (proof C3)."] == broken(reordered)


def test_identical_trees(world: World) -> None:
    """A tree and itself: no file, row, gain, order or cell changes, and one sentence says so."""
    found = world.diff(world.first, world.first)
    assert {True, None} >= set(unchanged(found).values())
    assert ["No change: both releases hold the same files with the same bytes."] == headline(found)
    assert all(
        table["tables"] == table["same_by_digest"] and not table["differing"] for table in found["tables"].values()
    )
    assert (24, 0) == (found["gains"]["gain"]["pairs"], found["gains"]["gain"]["changed"])
    assert (4, 4, 1.0) == tuple(found["ideal_top"][name] for name in ("same_pages", "same_order", "kendall_tau"))
    assert not any(item["cells"]["changed"] or item["swaps"] for item in found["leaderboards"])


def test_a_card_only_release(world: World) -> None:
    """A release from the same inputs changes only what describes it."""
    found = world.diff(world.first, world.described)
    assert "card only" == found["relation"]["kind"]
    assert ["No change in any table: only files that describe the release differ."] == headline(found)
    assert ["README.md", "provenance/releases.json", "rcp_ndcg_tasks.py"] == found["files"]["changed"]


def test_a_recalibration(world: World) -> None:
    """One more tournament answer: gains, theta, calibration, windows and item parameters change, nothing else does."""
    found = world.diff(world.first, world.recalibrated)
    assert "v1-toy -> v2-toy: recalibration (judge toy, a simulated judge: its gains are no judgements)" == title(found)
    changed = {name for name, same in unchanged(found).items() if not same}
    assert {"gain", "theta", "calibration", "windows", "item_params"} == changed
    assert [] == broken(found)
    outcomes = found["windows"]["tournament"]["outcomes"]
    assert ({"old": 40, "new": 40}, {"old": 39, "new": 40}) == (outcomes["windows"], outcomes["fitted"])
    assert {"old": 1, "new": 0} == outcomes["left out (no_json)"]
    assert all(item["cells"]["changed"] == 0 for item in found["leaderboards"] if item["metric"] == "qrel")
    assert 5 == len(found["item_params"])


def test_the_first_ten_lines(world: World) -> None:
    """A newcomer's questions are answered in ten lines: what changed, by how much, and whether the claims stand."""
    lines = as_text(blocks(world.diff(world.first, world.recalibrated))).splitlines()[:10]
    text = "\n".join(lines)
    assert "" not in lines
    for answer in (
        "recalibration",
        "gains, theta, calibration, windows and item parameters changed; nothing changed that must not",
        "RCP-nDCG@10, native view, ties b",
        "the order of all 2 systems is unchanged",
        "of 1 pair of systems",
        "Gains: all 24 pairs changed, by ",
        "Windows fitted: tournament 39 of 40 before, 40 of 40 now.",
        "Unchanged, by digest or row by row: pages, queries, human labels",
    ):
        assert answer in text


def test_a_changed_label(world: World, changed: Callable[..., Path]) -> None:
    """A human label that changed in a recalibration breaks its promise, and qrel-nDCG with it."""

    def relabel(rows: list[dict[str, Any]]) -> None:
        rows[0]["score"] = 1 if rows[0]["score"] == 0 else 0

    found = world.diff(world.first, changed(world.recalibrated, {QRELS: relabel}))
    assert {"score": 1} == {name: n for name, n in found["tables"]["qrels"]["columns"].items() if name == "score"}
    assert [
        "PROMISE BROKEN: human labels and qrel-nDCG changed, and the new release does not declare it (proof C3)."
    ] == broken(found)


def test_rows_that_come_and_go(world: World, changed: Callable[..., Path]) -> None:
    """Criteria rows that are gone, and a run that is new, are counted; the new system is named, not compared."""
    runs = "provenance/runs/paper.parquet"

    def without_flat(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row for row in rows if row["model"] != "flat"]

    old = changed(world.first, {runs: without_flat}, "old")
    criteria = "provenance/judge_criteria/paper.parquet"
    found = world.diff(old, changed(world.first, {criteria: lambda rows: rows.pop()}, "new"))
    assert (24, 48, 24) == tuple(found["tables"]["runs"][name] for name in ("rows_old", "rows_new", "added"))
    assert (1, 0, 0) == tuple(found["tables"]["judge_criteria"][name] for name in ("removed", "added", "changed"))
    assert (["Flat"], ["Steep"]) == (table(found)["added"], [row["system"] for row in table(found)["systems"]])


def test_what_a_card_says(world: World) -> None:
    """A card gets whole numbers with what they are of, a changelog the newcomer's sentences."""
    found = world.diff(world.first, world.recalibrated)
    said = relation(found)
    changes = {change["what"]: (change["changed"], change["of"]) for change in said["changes"]}
    assert "v1-toy" == said["tag"]
    assert (24, 24) == changes["gains"]
    assert (0, 24) == changes["human labels"]
    assert (0, 48) == changes["rows of the runs"]
    assert (0, 10) == changes["pages"]
    assert ((1, 40), (0, 40)) == tuple(changes[f"tournament windows left out {when}"] for when in ("before", "now"))
    assert (0, 16) == changes["cells of qrel-nDCG"]
    lost = "significant differences of Means that no longer stand (bootstrap interval, "
    for covers, boards in (
        ("RCP-nDCG@10, native view, ties b", [table(found)]),
        ("over all views, metrics and tie rules", found["leaderboards"]),
    ):
        old = sum(pair["apart_old"] for item in boards for pair in item["pairs"])
        assert (0, old) == changes[f"{lost}{covers})"]
    assert all(
        isinstance(number, int) and changed <= of for changed, of in changes.values() for number in (changed, of)
    )
    entry = changelog(found).splitlines()
    assert "## v2-toy" == entry[0]
    assert entry[4].startswith("* In short: ")
