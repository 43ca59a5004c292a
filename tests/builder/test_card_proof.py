"""Proof R2: a card whose numbers are the tree's passes; any other digit, number or row fails."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import release_here

from builder import documents
from builder.benchmark import load_benchmark
from builder.card_numbers import NUMBER, CardText, Kind, Span
from builder.proofs.card_numbers import mismatches, rendered
from builder.proofs.facts import Facts
from builder.proofs.registry import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from builder.proofs.outcome import Outcome

TAG = "v1-toy"
DECLARED = '\n[card.declared]\nold_windows = { value = 3122771, source = "card of release 2" }\n'


@pytest.fixture(scope="module")
def reference_card(reference: Path, reference_tree: Path) -> CardText:
    """The card of the real benchmark, rendered once from its tree."""
    return rendered(Facts(reference_tree, benchmark=load_benchmark(str(reference / "benchmark.toml"))))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny world with a declared number and a hand-written part, and its tree in out/v1-toy; read only."""
    world = tmp_path_factory.mktemp("proof")
    benchmark = tiny.write_world(world)
    text = benchmark.read_text("utf-8").replace("[card]\n", '[card]\nverbatim = ["use.md"]\n')
    benchmark.write_text(text.replace("\n[languages]", f"{DECLARED}\n[languages]"), encoding="utf-8")
    (world / "use.md").write_text("By hand: 4,711.\n", encoding="utf-8")
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", world / "out", "--workers", "1", "--no-figures"
    )
    assert done.code == 0, done.stderr
    return world


def proved(world: Path, tree: Path) -> Outcome:
    """R2 on a tree of the tiny world."""
    facts = Facts(tree, benchmark=load_benchmark(str(world / "benchmark.toml")))
    return next(iter(run(facts, ["R2"], clock=time.perf_counter, say=lambda _: None)))


def changed(world: Path, folder: Path, edit: Callable[[str], str]) -> Path:
    """A copy of the tiny tree with its card edited."""
    tree = folder / TAG
    shutil.copytree(world / "out" / TAG, tree)
    path = tree / "README.md"
    before = path.read_text("utf-8")
    assert before != edit(before)
    path.write_text(edit(before), encoding="utf-8", newline="\n")
    return tree


def test_a_good_card_passes_and_all_its_numbers_are_of_a_kind(built: Path) -> None:
    """R2 passes on a fresh tree, and its card has recomputed, declared, verbatim and name numbers only."""
    outcome = proved(built, built / "out" / TAG)
    assert ("passed", 0) == (outcome.status, outcome.failures.height)
    assert (3.0, 1.0) == (outcome.measures["declared numbers"], outcome.measures["verbatim numbers"])
    assert float(outcome.coverage.rows) == sum(outcome.measures.values())


def test_every_number_of_the_real_card_is_of_a_kind(reference_card: CardText) -> None:
    """No number of the debian-reference card is loose, and its eight tables (120 values) are among the recomputed."""
    numbers = list(reference_card.numbers)
    assert [] == [number for number in numbers if number.kind is None]
    assert 8 * 5 * 3 < sum(number.kind is Kind.RECOMPUTED for number in numbers)


def test_any_other_digit_fails(reference_card: CardText, reference_tree: Path) -> None:
    """Each digit of each recomputed and declared number, raised by one, is found at its line with its printed text."""
    text = (reference_tree / "README.md").read_text("utf-8")
    assert reference_card.text == text
    spans = [span for span in reference_card.spans if span.kind in {Kind.RECOMPUTED, Kind.DECLARED}]
    places = [place for span in spans for place in range(span.start, span.end) if text[place].isdigit()]
    assert len(places) > 2 * 8 * 5 * 3
    for place in places:
        digit = str((int(text[place]) + 1) % 10)
        other = f"{text[:place]}{digit}{text[place + 1 :]}"
        found = list(mismatches(reference_card, other))
        assert 1 == len(found), (place, found)
        printed = next(match[0] for match in NUMBER.finditer(other) if match.start() <= place < match.end())
        assert (other.count("\n", 0, place) + 1, printed) == (found[0].line, found[0].printed)
        assert found[0].rule in {Kind.RECOMPUTED, Kind.DECLARED}


@pytest.mark.parametrize(
    ("change", "rule", "value"),
    [
        pytest.param(("3,122,771", "3,122,772"), "declared", "3,122,772", id="declared"),
        pytest.param(("By hand: 4,711", "By hand: 4,712"), "verbatim", "4,712", id="verbatim"),
        pytest.param(("RCP-nDCG is nDCG", "On 3 GPUs, RCP-nDCG is nDCG"), "unknown", "3", id="put in"),
        pytest.param(("| all | | | 10 | 2 |", "| all | | | 10 | 3 |"), "recomputed", "3", id="recomputed"),
        pytest.param(("| -", "| "), "recomputed", None, id="a sign"),
        pytest.param(("| `C1` |", "| `C2` |"), "name", "2", id="a name"),
    ],
)
def test_a_changed_card_fails(
    built: Path, tmp_path: Path, change: tuple[str, str], rule: str, value: str | None
) -> None:
    """The failure names the kind, the file, the row (its line, 0-based) and the printed text."""
    tree = changed(built, tmp_path, lambda text: text.replace(*change, 1))
    failures = proved(built, tree).failures
    assert [rule] == failures["rule"].to_list()
    row = failures.row(0, named=True)
    line = (tree / "README.md").read_text("utf-8").split("\n")[row["row"]]
    assert "README.md" == row["file"]
    assert row["value"] in line
    assert value in {None, row["value"]}


def test_a_right_number_beside_a_wrong_name_fails(built: Path, tmp_path: Path) -> None:
    """Two rows of a table that swap their names hold right numbers in wrong places."""
    swap = {"Flat": "Steep", "Steep": "Flat"}
    tree = changed(built, tmp_path, lambda text: "".join(swap.get(part, part) for part in _split(text)))
    assert {"line"} == set(proved(built, tree).failures["rule"])


def _split(text: str) -> list[str]:
    head, table, rest = text.partition("### RCP-nDCG@10, native view, rule a\n")
    rows, blank, after = rest.partition("\n\n###")
    words = rows.replace("Flat", "\0Flat\0").replace("Steep", "\0Steep\0").split("\0")
    return [head, table, *words, blank, after]


def test_a_missing_line_fails(built: Path, tmp_path: Path) -> None:
    """A row taken out of a table is missed."""
    tree = changed(built, tmp_path, lambda text: text.replace("| `provenance-pool` |", "|", 1))
    assert {"line"} == set(proved(built, tree).failures["rule"])


def test_prose_changed_by_hand_is_seen(built: Path, tmp_path: Path) -> None:
    """Where the numbers are right the rest has to be the rendered card too: another heading fails, with its line."""
    tree = changed(built, tmp_path, lambda text: text.replace("## Known data notes", "## Notes"))
    failures = proved(built, tree).failures
    assert [("prose", "## Notes")] == list(zip(failures["rule"], failures["value"], strict=True))


def test_a_changed_table_fails_the_card(built: Path, tmp_path: Path) -> None:
    """The numbers come from the tables: a pool with one more injected page makes the printed count wrong."""
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)

    def inject(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        next(row for row in rows if not row["gt_injected"])["gt_injected"] = True
        return rows

    tiny.edit_rows(tree / "provenance" / "pool" / "paper.parquet", inject)
    failures = proved(built, tree).failures
    assert {"recomputed"} == set(failures["rule"])
    assert any("is 3" in message for message in failures["message"])


@pytest.mark.parametrize(("old", "new"), [("3,122,771", "3,122,772"), ("\n## ", "\nBy hand.\n\n## ")])
def test_what_another_version_wrote_is_not_provable(built: Path, tmp_path: Path, old: str, new: str) -> None:
    """Another version's template may print other numbers and words: a difference is then a gap, never a pass."""
    tree = changed(built, tmp_path, lambda text: text.replace(old, new))
    manifest = documents.read(tree / "provenance" / "manifest.json")
    manifest["tool"]["version"] = "0.0.0"
    documents.write(manifest, tree / "provenance" / "manifest.json")
    outcome = proved(built, tree)
    assert "not provable" == outcome.status
    assert "0.0.0" in outcome.gaps[0]


@pytest.mark.parametrize(
    "name", ["provenance/manifest.json", "provenance/item_params.toy.json", "paper__english/qrels.parquet"]
)
def test_what_cannot_be_read_is_not_provable(built: Path, tmp_path: Path, name: str) -> None:
    """A tree that lacks what the card is made of leaves a gap and no failure."""
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)
    (tree / name).unlink()
    assert "not provable" == proved(built, tree).status


def test_a_loose_number_of_the_template_fails() -> None:
    """A template that prints a number without a filter is found, even though the card is what it renders."""
    text = "made of 7 parts and 8\n"
    expected = CardText(text, (Span(text.index("8"), text.index("8") + 1, Kind.RECOMPUTED, "the tree"),))
    assert [("unknown", "7")] == [(item.rule, item.printed) for item in mismatches(expected, text)]
