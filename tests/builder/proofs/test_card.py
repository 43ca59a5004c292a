"""C1 and C2: front matter, files, manifest, releases.json; the ways in which cards went wrong for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builder.proofs.front import read_front
from builder.proofs.outcome import Gap
from builder.proofs.releases import sequence, successors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.proving import Tree

CARD = "README.md"
QRELS = "paper__english/qrels.parquet"
RELEASES = "provenance/releases.json"
SHA = "b22323345cb5639944600d490969bcce9fba7943"


def _entry(config: str, path: str) -> str:
    return f'- config_name: "{config}"\n  data_files:\n  - split: "test"\n    path:\n    - "{path}"\n'


ENTRY = _entry("paper__english-qrels", QRELS)


@pytest.mark.parametrize(
    ("old", "new", "rule", "value"),
    [
        (f'- "{QRELS}"', '- "paper__english/test-*.parquet"', "no-file", "paper__english/test-*.parquet"),
        (f'- "{QRELS}"', f'- "./{QRELS}"', "pattern", f"./{QRELS}"),
        (f'- "{QRELS}"', f'- "/etc/{QRELS}"', "pattern", f"/etc/{QRELS}"),
        (f'- "{QRELS}"', f'- "paper/../{QRELS}"', "pattern", f"paper/../{QRELS}"),
        (f'- "{QRELS}"', '- "paper__english/qrels[1].parquet"', "no-file", "paper__english/qrels[1].parquet"),
        (f'- "{QRELS}"', "- 7", "pattern", "7"),
        (ENTRY, ENTRY + ENTRY, "config-twice", "paper__english-qrels"),
        ('- config_name: "paper__english-qrels"', "- config_name: no", "config-name", "False"),
        ('- config_name: "paper__english-qrels"', "- config_name: 123", "config-name", "123"),
        ('- config_name: "paper__english-qrels"', "- config_name: 2024-01-01", "config-name", "datetime"),
        ('- config_name: "paper__english-qrels"', '- config_name: "a/b"', "config-name", "a/b"),
        ("configs:\n", "dataset_info: []\nconfigs:\n", "dataset-info", "dataset_info"),
        ("configs:\n", "configurations:\n", "configs", "None"),
        ("---\nlicense", "--\nlicense", "front-matter", "README.md"),
        ('"test"\n    path:\n    - "' + QRELS, '"te-st"\n    path:\n    - "' + QRELS, "split", "te-st"),
        ('"test"\n    path:\n    - "' + QRELS, '"all"\n    path:\n    - "' + QRELS, "split", "all"),
    ],
)
def test_front_matter_that_datasets_cannot_use_fails_c1(tree: Tree, old: str, new: str, rule: str, value: str) -> None:
    """Each way to break a config is a failure of C1 that quotes what is wrong."""
    tree.text(CARD, old, new)
    if rule != "config-twice":
        tree.seal()
    found = [(place[0], place[4]) for place in tree.failing("C1")["C1"]]
    assert any(rule == name and value in str(shown) for name, shown in found)


def test_a_broken_pattern_in_the_first_config_is_named(tree: Tree) -> None:
    """One pattern without a file in the first config breaks every config for `datasets`; it is named here."""
    first = '    - "paper/corpus-00000-of-00001.parquet"\n- config_name: "paper__english-queries"'
    tree.text(CARD, first, first.replace("00001.parquet", "00002.parquet", 1))
    tree.seal()
    assert ("no-file", CARD, None, "configs", "paper/corpus-00000-of-00002.parquet") in tree.failing()["C1"]


def test_two_default_configs_fail_c1(tree: Tree) -> None:
    """Two configs marked default make every load fail."""
    for kind in ("queries", "qrels"):
        name = f'- config_name: "paper__english-{kind}"\n'
        tree.text(CARD, name, f"{name}  default: true\n")
    tree.seal()
    assert ["default-twice"] == [place[0] for place in tree.failing()["C1"]]


@pytest.mark.parametrize("value", ["no", "1e3", "2024-01-01", "~"])
def test_a_language_that_yaml_does_not_read_as_text_fails_c1(tree: Tree, value: str) -> None:
    """`language: [no]` is False to YAML 1.1: values of the card's lists must be strings."""
    tree.text(CARD, '- "fr"\n', f"- {value}\n")
    tree.seal()
    found = tree.failing()
    places = [place[:4] for place in found.get("C1", [])]
    expected = [] if value == "1e3" else [("not-a-string", CARD, None, "language")]
    assert expected == places


def test_a_stale_shard_beside_the_corpus_is_seen(tree: Tree) -> None:
    """A shard of an older release that a glob would take in has no config, and no entry in the manifest."""
    stale = "paper/corpus-00001-of-00002.parquet"
    tree.write(stale, (tree.path / "paper/corpus-00000-of-00001.parquet").read_bytes())
    found = tree.failing()
    assert [("no-config", stale, None, None, None)] == found["C1"]
    assert [("unlisted", stale, None, None, None)] == found["M1"]


def test_a_glob_that_takes_in_more_than_its_files_fails_c1(tree: Tree) -> None:
    """A pattern must match exactly the manifest's files of its config."""
    tree.text(CARD, f'- "{QRELS}"', '- "paper__english/q*.parquet"')
    tree.seal()
    found = tree.failing("C1")["C1"]
    assert [("manifest-config", CARD)] == [place[:2] for place in found]


def test_a_config_that_the_benchmark_asks_for_must_be_there(tree: Tree) -> None:
    """A config dropped from the card fails C1 three times: its file, the manifest and the benchmark want it."""
    tree.text(CARD, ENTRY, "")
    rules = sorted(place[0] for place in tree.failing("C1")["C1"])
    assert ["benchmark-config", "manifest-config", "no-config"] == rules


def test_limits_of_the_hub_are_warnings(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 30 splits, front matter above 200 kB and a card above 10 MiB warn, and fail only when strict."""
    monkeypatch.setattr("builder.proofs.card.MOST_SPLITS", 0)
    monkeypatch.setattr("builder.proofs.card.LONGEST_FRONT_MATTER", 10)
    monkeypatch.setattr("builder.proofs.card.LONGEST_CARD", 10)
    result = tree.validate("C1")
    assert {"splits", "front-matter", "card"} == {warning.rule for warning in result.outcomes[0].warnings}
    assert (True, False) == (result.holds(strict=False), result.holds(strict=True))


def test_a_byte_order_mark_before_the_front_matter_is_a_fault(tree: Tree) -> None:
    """A mark before the first dashes loses all metadata in the Hub's own card class."""
    tree.write(CARD, b"\xef\xbb\xbf" + (tree.path / CARD).read_bytes())
    assert ["card"] == [rule for rule, _, _ in read_front(tree.path).faults]


def test_a_tree_without_a_card_is_a_failure_and_not_a_traceback(tree: Tree) -> None:
    """Without README.md no config has a meaning: C1 fails, nothing that needs tables is called passed."""
    (tree.path / CARD).unlink()
    result = tree.validate()
    assert ["M1", "C1"] == result.named("failed")
    assert [] == [name for name in result.named("passed") if name != "S1"]


def _release(number: int, **change: Any) -> dict[str, Any]:
    entry = {
        "number": number,
        "tag": f"v{number}-toy",
        "revision": f"{number:040x}",
        "status": "superseded",
        "superseded_by": f"v{number + 1}-toy",
    }
    return entry | change


GOOD = [_release(1), _release(2), _release(3, revision=None, status="current", superseded_by=None)]


@pytest.mark.parametrize(
    ("place", "change", "rule"),
    [
        (0, {"number": 2}, "number"),
        (1, {"tag": "v3-toy"}, "tag"),
        (1, {"tag": "v1-toy"}, "tag"),
        (1, {"revision": f"{1:040x}"}, "revision"),
        (2, {"revision": SHA}, "revision"),
        (0, {"status": "current"}, "status"),
        (2, {"status": "withdrawn"}, "status"),
        (0, {"superseded_by": "v3-toy"}, "superseded_by"),
        (0, {"superseded_by": None}, "superseded_by"),
        (2, {"superseded_by": "v4-toy"}, "superseded_by"),
    ],
)
def test_a_chain_of_releases_with_one_fault_is_refused(place: int, change: dict[str, Any], rule: str) -> None:
    """Numbers, tags, shas, status and successors of three releases, one of them wrong."""
    entries = [entry | (change if n == place else {}) for n, entry in enumerate(GOOD)]
    found = [*sequence(entries), *successors(entries)]
    rules = {frame["rule"][0] for frame in found if not isinstance(frame, Gap)}  # type: ignore[union-attr]
    assert rule in rules


def test_a_good_chain_of_releases_has_no_fault_and_an_unknown_sha_is_a_gap() -> None:
    """Three good releases pass; an earlier one whose sha nobody knows is not provable, and not failed."""
    assert [] == [*sequence(GOOD), *successors(GOOD)]
    unknown = [GOOD[0] | {"revision": None}, *GOOD[1:]]
    assert [Gap("the revision of v1-toy is not known: its pin cannot be proved")] == list(successors(unknown))


def _second(tree: Tree) -> None:
    """Make the tree the second release of its benchmark."""

    def edit(document: dict[str, Any]) -> None:
        own = document["releases"][0]
        first = own | {"revision": SHA, "status": "superseded", "superseded_by": "v2-toy"}
        document["releases"] = [first, own | {"number": 2, "tag": "v2-toy"}]

    tree.json(RELEASES, edit)
    text = (tree.path / "rcp_ndcg_tasks.py").read_text("utf-8")
    tree.text("rcp_ndcg_tasks.py", "v1-toy", "v2-toy", times=text.count("v1-toy"))
    row = "| 1 | `v1-toy` | this revision |"
    tree.text(CARD, row, f"| 1 | `v1-toy` | {SHA} | | | superseded |\n| 2 | `v2-toy` | this revision |")
    tree.seal()


def test_a_second_release_agrees_with_its_predecessor(tree: Tree, good_world: Path) -> None:
    """A good second release passes C2 against the first."""
    _second(tree)
    outcome = tree.validate("C2", against=good_world / "out" / "v1-toy").outcomes[0]
    assert ("passed", 2) == (outcome.status, outcome.coverage.rows)


@pytest.mark.parametrize(
    ("edit", "rule", "column"),
    [
        (lambda d: d["releases"].pop(0), "number", "releases.0.number"),
        (lambda d: d["releases"][0].update(revision=SHA[:7]), "pattern", "releases.0.revision"),
        (lambda d: d["releases"][0].update(revision=SHA.replace("b", "c")), "card-revision", "revision"),
        (lambda d: d["releases"][0].update(tasks=["Other"]), "predecessor", "releases.0.tasks"),
    ],
)
def test_a_second_release_that_rewrites_the_first_fails_c2(
    tree: Tree, good_world: Path, edit: Callable[[Any], object], rule: str, column: str
) -> None:
    """A pin that was cut, changed by a digit or dropped, and an entry that was rewritten, are named."""
    _second(tree)
    tree.json(RELEASES, edit)
    tree.seal()
    frame = tree.validate("C2", against=good_world / "out" / "v1-toy").outcomes[0].failures
    assert (rule, column) in list(frame.select("rule", "column").iter_rows())


def test_a_tag_in_the_card_counts_as_a_whole_word_only(tree: Tree) -> None:
    """`v1-toy-two` in the card does not name `v1-toy`."""
    tree.text(CARD, "v1-toy", "v1-toy-two", times=2)
    tree.seal()
    assert {"C2": [("card-tag", CARD, None, "tag", "v1-toy")]} == tree.failing()
