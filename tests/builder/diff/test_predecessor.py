"""C3 broken in each way: what a release does not declare, named with file, row, column and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import tiny
from support.command import release_here

from builder import documents
from builder.digests import sha256_file
from builder.layout import MANIFEST
from builder.proofs.facts import Facts
from builder.releases_document import MAY_CHANGE
from builder.validate import validate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import World

    from builder.benchmark import Benchmark
    from builder.proofs.outcome import Outcome

CORPUS = "paper/corpus-00000-of-00001.parquet"
QUERIES = "paper__french/queries.parquet"
QRELS = "paper__english/qrels.parquet"
TOP = "paper__english/top_ranked.parquet"
POOL = "provenance/pool/paper.parquet"
STAGE = "provenance/first_stage/paper.parquet"
RUNS = "provenance/runs/paper.parquet"
CRITERIA = "provenance/judge_criteria/paper.parquet"
CALIBRATION = "provenance/calibration/paper.parquet"
WINDOWS = "provenance/windows.toy.json"
ITEMS = "provenance/item_params.toy.json"
RELEASES = "provenance/releases.json"

Edit = "Callable[[Any], object]"


def prove(tree: Path, against: Path | None, benchmark: Benchmark | None = None) -> Outcome:
    """C3 of a tree."""
    facts = Facts(tree, benchmark=benchmark, against=None if against is None else Facts(against))
    (outcome,) = validate(facts, ["C3"], clock=lambda: 0.0, say=lambda _: None).outcomes
    return outcome


def found(outcome: Outcome) -> list[tuple[Any, ...]]:
    """Failures as (rule, file, row, column, value)."""
    return outcome.failures.select("rule", "file", "row", "column", "value").rows()


def cell(row: int, column: str, value: object) -> Callable[[list[dict[str, Any]]], None]:
    """Change one value."""
    return lambda rows: rows[row].update({column: value})


def image(row: int, **change: object) -> Callable[[list[dict[str, Any]]], None]:
    """Change an image's bytes or path."""
    return lambda rows: rows[row]["image"].update(change)


def own(**change: object) -> Callable[[dict[str, Any]], None]:
    """Change the release's own entry."""
    return lambda document: document["releases"][-1].update(change)


def test_good_releases_pass(world: World) -> None:
    """A first release, a recalibration and a release that only describes pass, and say how much they covered."""
    for tree, against in ((world.first, None), (world.recalibrated, world.first), (world.described, world.first)):
        assert "passed" == prove(tree, against).status
    # All tables but criteria and calibration: 10 pages, 4 queries, 24 pairs each in qrels and pool, 4 lists, ...
    rows = {name: len(tiny.read_rows(world.first / name)) for name in (STAGE, RUNS)}
    assert 2 + 10 + 4 + 24 + 4 + 24 + sum(rows.values()) == prove(world.recalibrated, world.first).coverage.rows


BREAKS: dict[str, tuple[str, Any, list[tuple[Any, ...]]]] = {
    "a human label": (QRELS, cell(0, "score", 7), [("changed", QRELS, 0, "score", "7")]),
    "a page's bytes": (CORPUS, image(3, bytes=tiny.png(99)), []),
    "a page's path": (CORPUS, image(3, path="x.png"), [("changed", CORPUS, 3, "image.path", "x.png")]),
    "a page's text": (CORPUS, cell(8, "text", "other"), [("changed", CORPUS, 8, "text", "other")]),
    "a query's text": (QUERIES, cell(1, "text", "quoi"), [("changed", QUERIES, 1, "text", "quoi")]),
    "a pool's order": (POOL, cell(2, "pool_rank", 9), [("changed", POOL, 2, "pool_rank", "9")]),
    "an injection": (POOL, cell(0, "gt_injected", value=True), [("changed", POOL, 0, "gt_injected", "True")]),
    "a list": (TOP, lambda rows: rows[0]["corpus-ids"].reverse(), []),
    "a run's score": (RUNS, cell(5, "score", 0.25), [("changed", RUNS, 5, "score", "0.25")]),
    "a run's null": (RUNS, cell(5, "score", None), [("changed", RUNS, 5, "score", "null")]),
    "a first-stage row that is gone": (
        STAGE,
        lambda rows: rows.pop(0),
        [("removed", STAGE, None, "corpus-id", "corpus-test-0")],
    ),
    "a page that is new": (
        CORPUS,
        lambda rows: rows.append({**rows[0], "id": "corpus-test-12"}),
        [("added", CORPUS, 10, "id", "corpus-test-12")],
    ),
    "a pair that is new": (
        QRELS,
        lambda rows: rows.append({**rows[0], "corpus-id": "corpus-test-11"}),
        [("added", QRELS, 12, "corpus-id", "corpus-test-11")],
    ),
    "everything declared": (
        RELEASES,
        own(may_change=["everything"]),
        [("may-change", RELEASES, None, "releases.1.may_change", "['everything']")],
    ),
    "a second first": (
        RELEASES,
        own(kind="first", may_change=["everything"]),
        [("kind", RELEASES, None, "releases.1.kind", "first")],
    ),
    "a judge that is new in secret": (
        RELEASES,
        own(judge={"name": "other", "model": "toy/other", "simulated": True}),
        [("kind", RELEASES, None, "releases.1.kind", "recalibration")],
    ),
    "a kind of its own": (RELEASES, own(kind="mended"), [("kind", RELEASES, None, "releases.1.kind", "mended")]),
}


@pytest.mark.parametrize("name", BREAKS)
def test_breaks(world: World, changed: Callable[..., Path], name: str) -> None:
    """Whatever a recalibration may not change is found where it stands, with its value."""
    file, edit, expected = BREAKS[name]
    outcome = prove(changed(world.recalibrated, {file: edit}), world.first)
    assert "failed" == outcome.status
    if expected and name not in {"a second first", "a kind of its own"}:
        assert expected == found(outcome)
    elif expected:
        # Nothing is declared by such a kind, so that each gain that changed is named too.
        assert set(expected) < set(found(outcome))


def test_a_pages_bytes(world: World, changed: Callable[..., Path]) -> None:
    """One page with another image fails by its digest, before and now."""
    outcome = prove(changed(world.recalibrated, {CORPUS: image(3, bytes=tiny.png(99))}), world.first)
    (failure,) = outcome.failures.iter_rows(named=True)
    assert ("changed", CORPUS, 3, "image.bytes", "corpus-test-3") == tuple(
        failure[name] for name in ("rule", "file", "row", "column", "corpus-id")
    )
    assert failure["message"].startswith("the predecessor has ")


def test_a_lists_order(world: World, changed: Callable[..., Path]) -> None:
    """A reversed top_ranked list fails at its query, and the message says what it was."""
    outcome = prove(changed(world.recalibrated, {TOP: lambda rows: rows[0]["corpus-ids"].reverse()}), world.first)
    (failure,) = outcome.failures.iter_rows(named=True)
    assert ("changed", TOP, 0, "corpus-ids", "query-test-0") == tuple(
        failure[name] for name in ("rule", "file", "row", "column", "query-id")
    )
    assert failure["message"].startswith(f"the predecessor has {', '.join(tiny.pool_of('query-test-0')[:3])}")


@pytest.mark.parametrize(
    ("file", "edit", "expected"),
    [
        (QRELS, cell(0, "gain", 0.125), ("changed", QRELS, 0, "gain", "0.125")),
        (QRELS, cell(0, "theta", 0.125), ("changed", QRELS, 0, "theta", "0.125")),
        (CRITERIA, cell(0, "finish_reason", "length"), ("changed", CRITERIA, 0, "finish_reason", "length")),
        (CALIBRATION, cell(4, "tau", 2.0), ("changed", CALIBRATION, 4, "tau", "2.0")),
        (
            WINDOWS,
            lambda document: document["domains"]["paper"]["rubric"]["random"].update(fitted=1),
            ("changed", WINDOWS, None, "domains.paper.rubric.random.fitted", "1"),
        ),
        (
            ITEMS,
            lambda document: document["beta"].__setitem__(1, 0.5),
            ("changed", ITEMS, None, "beta.1", "0.5"),
        ),
    ],
    ids=["gain", "theta", "criteria", "calibration", "windows", "item parameters"],
)
def test_a_card_only_release(
    world: World, changed: Callable[..., Path], file: str, edit: Any, expected: tuple[Any, ...]
) -> None:
    """What a recalibration may change, a release that only describes may not."""
    assert [expected] == found(prove(changed(world.described, {file: edit}), world.first))


def test_encodings_do_not_matter(world: World, changed: Callable[..., Path]) -> None:
    """The same rows in another order and encoding are unchanged."""
    outcome = prove(changed(world.recalibrated, {RUNS: lambda rows: rows.reverse()}), world.first)
    assert "passed" == outcome.status


def test_without_the_predecessor(world: World) -> None:
    """Without the predecessor, or with another tree in its place, nothing is proved and the reason is said."""
    assert ("not provable", ("no predecessor was given (--against TREE)",)) == _gaps(prove(world.recalibrated, None))
    assert ("not provable", ("--against is v2-toy, the predecessor is v1-toy",)) == _gaps(
        prove(world.recalibrated, world.recalibrated)
    )


def _gaps(outcome: Outcome) -> tuple[str, tuple[str, ...]]:
    return outcome.status, outcome.gaps


def test_a_table_that_is_gone(world: World, changed: Callable[..., Path]) -> None:
    """A config that the card no longer has is named; so is one that the predecessor has not."""
    tree = changed(world.recalibrated, {})
    card = tree / "README.md"
    card.write_text(card.read_text("utf-8").replace('"provenance-runs"', '"runs"'), "utf-8")
    assert [("gone", None, None, None, "paper")] == found(prove(tree, world.first))
    other = changed(world.first, {}, "before")
    card = other / "README.md"
    card.write_text(card.read_text("utf-8").replace('"provenance-runs"', '"runs"'), "utf-8")
    assert [("new-table", RUNS, None, None, None)] == found(prove(world.recalibrated, other))


def test_kinds_are_held_to_the_declared_list() -> None:
    """Each kind that may follow a release declares at least the card, and never a label, a run or a page."""
    for kind, names in MAY_CHANGE.items():
        if kind != "first":
            assert "card" in names
            assert not {"corpus", "queries", "qrels.score", "pool", "runs", "first_stage", "everything"} & set(names)


def test_the_relation_that_a_card_prints(world: World, changed: Callable[..., Path]) -> None:
    """A build against its predecessor says what changed, in releases.json and the card; the proof computes it again.

    The predecessor is recorded as an input, by tag and revision and the digest of its manifest.
    """
    options = ("--inputs", world.path / "reread", "--against", world.first)
    ledger = ("--ledger", world.path / "ledger.jsonl")
    arguments = (
        "--benchmark",
        world.file,
        "--judge",
        "toy",
        "--out",
        world.path / "related",
        "--workers",
        "1",
        "--no-figures",
    )
    done = release_here("build", *arguments, *ledger, *options)
    assert done.code == 0, done.stderr
    tree = world.path / "related" / "v2-toy"
    relation = documents.read(tree / RELEASES)["releases"][-1]["relation"]
    assert "v1-toy" == relation["tag"]
    assert {"what": "gains", "changed": 24, "of": 24} in relation["changes"]
    assert "Compared with `v1-toy`:" in (tree / "README.md").read_text("utf-8")
    inputs = documents.read(tree / MANIFEST)["inputs"]
    revision = documents.read(tree / RELEASES)["releases"][0]["revision"]
    assert {"uri": "v1-toy", "revision": revision} == inputs["uris"]["predecessor"]
    assert sha256_file(world.first / MANIFEST) == inputs["files"][f"predecessor/{MANIFEST}"]
    assert "passed" == prove(tree, world.first, world.benchmark).status

    def lie(document: dict[str, Any]) -> None:
        document["releases"][-1]["relation"]["changes"][0]["changed"] = 1

    outcome = prove(changed(tree, {RELEASES: lie}), world.first, world.benchmark)
    assert [("relation", RELEASES, None, "releases.1.relation.changes.0.changed", "1")] == found(outcome)


def test_another_predecessor_is_refused(world: World, changed: Callable[..., Path]) -> None:
    """A tree of another release, or not as it was published, is no predecessor; nor is any before a first."""
    other = changed(world.first, {QRELS: cell(0, "gain", 0.5)})
    arguments = ["build", "--benchmark", world.file, "--judge", "toy", "--out", world.path / "refused"]
    ledger = ("--ledger", world.path / "ledger.jsonl")
    for options, code, message in (
        ((*ledger, "--against", world.recalibrated), 3, "the predecessor is v1-toy, the tree says that it is v2-toy"),
        ((*ledger, "--against", other), 3, "this is not v1-toy as it was published"),
        (("--ledger", world.path / "none.jsonl", "--against", world.first), 2, "the ledger has no release before"),
    ):
        done = release_here(*arguments, *options)
        assert (code, True) == (done.code, message in done.stderr), done.stderr
