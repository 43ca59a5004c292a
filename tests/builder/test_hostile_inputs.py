"""Inputs that mean harm, or are only odd: paths, links, huge numbers, ids that are long or look alike."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from support import tiny
from support.command import Done, release_here

from builder.benchmark import parse_benchmark
from builder.dataset_folder import is_pattern
from builder.layout import is_inside
from builder.runner import local
from provenance.errors import BenchmarkError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAG = "v1-toy"
RUNS, FIRST_STAGE = "pipeline/runs/paper.parquet", "pipeline/first_stage/paper.parquet"
PAGES = "upstream/paper/corpus/test-00000-of-00001.parquet"
JUDGED = {stage: f"pipeline/judgements/toy/{stage}/paper.parquet" for stage in ("tournament", "rubric")}
BIG = 2**63 - 1


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny world with its tree; read only."""
    world = tmp_path_factory.mktemp("built")
    tiny.write_world(world)
    assert 0 == build(world).code
    return world


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A tiny world to spoil."""
    tiny.write_world(tmp_path / "world")
    return tmp_path / "world"


def build(world: Path, *options: str | Path) -> Done:
    """Build a world into its out/."""
    chosen = ("--judge", "toy", "--out", world / "out", "--workers", "1", "--no-figures")
    return release_here("build", "--benchmark", world / "benchmark.toml", *chosen, *options)


def prove(world: Path) -> Done:
    """Validate its tree."""
    return release_here("validate", world / "out" / TAG, "--benchmark", world / "benchmark.toml")


def refused(done: Done, code: int, *needles: str) -> None:
    """It ended with this code and a message that holds these; no message is long."""
    assert code == done.code, done.stderr
    message = done.stderr.partition("error: ")[2]
    assert [] == [needle for needle in needles if needle not in message], message
    assert max(map(len, message.split("\n"))) < 5000


def changed(column: str, old: str | None, new: Any) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Put a value in the place of another (None: of all) in a column."""
    return lambda rows: [row | {column: new} if old is None or row[column] == old else row for row in rows]


def test_what_is_inside_a_folder() -> None:
    """A path is parts between slashes, none of which goes elsewhere on any system."""
    for path in ("a", "a/b.parquet", "a b/é..x", "...", "-"):
        assert is_inside(path)
    for path in ("", ".", "..", "/a", "a/", "a//b", "../a", "a/..", "a/./b", "a\\b", "C:a", "a\0b", "a\nb", "a\u202eb"):
        assert not is_inside(path), path


@pytest.mark.parametrize(
    "pattern", ["", ".", "./", "/etc/*", "//x/y", "../x", "a/../../x", "corpus/**x", "a\0b", "x" * 5000, "é" * 200]
)
def test_a_pattern_that_is_none(world: Path, built: Path, tmp_path: Path, pattern: str) -> None:
    """A card's pattern that leaves the folder, or that no file system can look for, is refused by its config."""
    assert not is_pattern(pattern)
    card = world / "upstream" / "paper" / "README.md"
    card.write_text(card.read_text().replace("path: corpus/test-*", f"path: {json.dumps(pattern)}"))
    refused(build(world), 3, "is no path inside the dataset", "english-corpus")
    if pattern not in {"", "//x/y", "corpus/**x", "x" * 5000}:
        return
    # The same in a release's own card and manifest.
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)
    own = json.dumps("paper__english/qrels.parquet")
    for name in ("README.md", "provenance/manifest.json"):
        text = (tree / name).read_text("utf-8")
        assert own in text
        (tree / name).write_text(text.replace(own, json.dumps(pattern)), encoding="utf-8")
        for command in (["validate"], ["results"], ["diff", tree], ["card", "--check"]):
            done = release_here(command[0], tree, *command[1:], "--benchmark", built / "benchmark.toml")
            assert done.code == 3 or (command[0], name) == ("results", "provenance/manifest.json"), command
        (tree / name).write_text(text, encoding="utf-8")


def move_and_link(path: Path, elsewhere: Path) -> None:
    """Put a link in the place of a file or folder."""
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "name", [PAGES, JUDGED["rubric"], "pipeline/judgements/toy/rubric", "pipeline/runs", "upstream"]
)
def test_links_in_inputs_are_followed(world: Path, built: Path, tmp_path: Path, name: str) -> None:
    """Inputs may lie elsewhere: a linked file or folder is read and recorded as if it lay there, byte for byte."""
    move_and_link(world / name, tmp_path / "elsewhere")
    (world / "pipeline" / "runs" / "loop").symlink_to(world / "pipeline" / "runs")
    (world / "pipeline" / "runs" / "nowhere").symlink_to("nothing")
    assert 0 == build(world).code
    names = {path.relative_to(built / "out").as_posix() for path in (built / "out").rglob("*") if path.is_file()}
    assert names == {
        path.relative_to(world / "out").as_posix() for path in (world / "out").rglob("*") if path.is_file()
    }
    assert [] == [item for item in names if (built / "out" / item).read_bytes() != (world / "out" / item).read_bytes()]


def test_a_link_is_never_written_through(world: Path, tmp_path: Path) -> None:
    """A link in the place of the tree, or of the finished shards, is refused and what it leads to is untouched."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    (world / "out").mkdir()
    for name, message in ((TAG, "a link lies where the tree is"), (f".{TAG}.shards", "a link lies where the finished")):
        link = world / "out" / name
        for target in (mine, tmp_path / "nowhere", link):
            link.symlink_to(target)
            refused(build(world), 5, message)
            assert link.is_symlink()
            link.unlink()
    assert (["file"], "mine") == ([path.name for path in mine.iterdir()], (mine / "file").read_text())
    (world / "out").rmdir()
    (world / "out").symlink_to(world / "out")
    refused(build(world), 4, "cannot be written")


def test_a_folder_of_trees_may_be_a_link(world: Path, tmp_path: Path) -> None:
    """--out is a place that a person names: a link to a folder is that folder."""
    (tmp_path / "trees").mkdir()
    (world / "out").symlink_to(tmp_path / "trees")
    assert 0 == build(world).code
    assert (tmp_path / "trees" / TAG / "README.md").is_file()


def test_a_tree_in_a_cache_is_read_whole(built: Path, tmp_path: Path) -> None:
    """Inputs below a folder called .cache, where a Hub's files lie by default, are all recorded and checked."""
    inputs = tmp_path / ".cache" / "tree"
    shutil.copytree(built / "out" / TAG, inputs)
    (inputs / ".cache").mkdir()
    (inputs / ".cache" / "note").write_text("of hf download")
    place = ("--inputs", inputs, "--out", tmp_path / "out")
    assert 0 == build(built, *place).code
    recorded = json.loads((tmp_path / "out" / TAG / "provenance/manifest.json").read_bytes())["inputs"]["files"]
    assert "inputs/paper__english/qrels.parquet" in recorded
    assert [] == [name for name in recorded if ".cache" in name]


@pytest.mark.parametrize(
    ("old", "new", "needle"),
    [
        ("[domains.paper]", '[domains."paper\\n"]', "domains"),
        ("[domains.paper]", '[domains.".."]', "domains"),
        ("[domains.paper]", '[domains."a/b"]', "domains"),
        ("[domains.paper]", '[domains.""]', "domains"),
        ("[domains.paper]", '[domains."é"]', "domains"),
        ("[domains.paper]", f"[domains.{'p' * 10_000}]", "domains"),
        ("[judges.toy]", '[judges."toy\\n"]', "judges"),
        ('slug = "toy"', 'slug = "toy\\n"', "judges.toy.slug"),
        ('slug = "toy"', 'slug = "a..b"', "git takes no tag"),
        ('slug = "toy"', 'slug = "a.lock"', "git takes no tag"),
        ('repo = "example/rcp-ndcg-tiny"', 'repo = "a/b\\n"', "repo"),
        ('name = "tiny"', 'name = "tiny\\n"', "name"),
        ('split = "test"', 'split = "té"', "split"),
        ('split = "test"', 'split = "test\\n"', "split"),
        ("pool_size = 6", "pool_size = 9223372036854775808", "pool_size"),
        ("pool_size = 6", f"pool_size = 1{'0' * 400}", "pool_size"),
        ("pool_size = 6", f"pool_size = 1{'0' * 5000}", "not a TOML file: Exceeds the limit"),
        ("pool_size = 6", "pool_size = 6.0", "pool_size"),
        ("pool_size = 6", "pool_size = inf", "pool_size"),
        ("k = 60", f"k = 1{'0' * 400}", "fusion.k"),
        ("[card]\n", '[card]\ndeclared = { x = { value = nan, source = "s" } }\n', "card.declared.x.value: nan"),
        ("[card]\n", f"[card]\nx = {'[' * 5000}{']' * 5000}\n", "not a TOML file"),
        ("[card]\n", f"[card]\n{'x' * 1_000_000} = 1\n", "(1,000,000 characters)"),
    ],
)  # fmt: skip
def test_names_and_numbers_of_a_benchmark_file(old: str, new: str, needle: str, tmp_path: Path) -> None:
    """A name that is a path or no one line, and a number that no machine holds, are refused by a short message."""
    assert old in tiny.BENCHMARK
    with pytest.raises(BenchmarkError) as caught:
        parse_benchmark(tiny.BENCHMARK.replace(old, new).encode(), source=tmp_path / "b.toml")
    assert needle in str(caught.value)
    assert len(str(caught.value)) < 4000


def test_the_largest_numbers_are_exact(world: Path) -> None:
    """K and pool_size up to 2**53, scores and call numbers of any size: built and proved, or refused."""
    benchmark = world / "benchmark.toml"
    benchmark.write_text(tiny.BENCHMARK.replace("k = 60", f"k = {2**53}"))
    tiny.edit_rows(world / RUNS, lambda rows: [row | {"score": 1.7e308 * (-1) ** at} for at, row in enumerate(rows)])
    tiny.edit_rows(world / FIRST_STAGE, changed("score", None, 1.7e308))
    for stage in JUDGED.values():
        tiny.edit_rows(world / stage, lambda rows: [row | {"call_index": BIG - row["call_index"]} for row in rows])
    for language in tiny.LANGUAGES:
        labels = world / f"upstream/paper/{language}-qrels/test-00000-of-00001.parquet"
        tiny.edit_rows(labels, lambda rows: [row | {"score": BIG - 1 + row["score"] % 2} for row in rows])
    assert 0 == build(world).code
    assert 0 == prove(world).code
    assert {BIG, BIG - 1, 0} == set(pl.read_parquet(world / "out" / TAG / "paper__english/qrels.parquet")["score"])
    benchmark.write_text(tiny.BENCHMARK.replace("pool_size = 6", f"pool_size = {2**53}"))
    refused(build(world), 3, f"a pool needs {2**53}")


@pytest.mark.parametrize("rank", [2**62, BIG, -BIG - 1, 0])
def test_a_rank_that_is_none(world: Path, rank: int) -> None:
    """The ranks of a list are 1, 2, 3, ...: any other is refused, whatever its size."""
    tiny.edit_rows(world / FIRST_STAGE, lambda rows: [rows[0] | {"rank": rank}, *rows[1:]])
    refused(build(world), 3, "the ranks of a list are not 1, 2, 3")


@pytest.mark.parametrize(("file", "column"), [(FIRST_STAGE, "rank"), (JUDGED["rubric"], "call_index")])
def test_an_integer_that_is_wider(world: Path, file: str, column: str) -> None:
    """uint64 holds what int64 does not: it is refused, never wrapped round."""

    def widened(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(column)
        return table.set_column(at, column, table[column].cast(pa.uint64()))

    tiny.edit_table(world / file, widened)
    refused(build(world), 3, f"'{column}' is uint64, expected int64")


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_of_many_digits_in_an_answer(world: Path, digits: int) -> None:
    """A judge that writes such a number has given an unusable answer, which is counted."""
    for stage, field in (("tournament", '"doc_1": '), ("rubric", '"C1": ')):
        tiny.edit_rows(
            world / JUDGED[stage],
            lambda rows, field=field: [
                row | {"answer": re.sub(rf"{field}-?[\d.]+", f"{field}1{'0' * digits}", row["answer"], count=1)}
                if row["call_index"] == 0
                else row
                for row in rows
            ],
        )
    assert 0 == build(world).code
    assert 0 == prove(world).code
    windows = json.loads((world / "out" / TAG / "provenance/windows.toy.json").read_bytes())
    assert '"fitted"' in json.dumps(windows)


@pytest.mark.parametrize("number", [f"1{'0' * 400}", f"1{'0' * 5000}", "1e999", "NaN", "true", '"1"', "null"])
def test_an_item_parameter_that_is_no_number(built: Path, world: Path, number: str) -> None:
    """Gains made elsewhere come with finite numbers, or are refused by the file and the name."""
    tree, own = built / "out" / TAG, world / "pipeline" / "calibration" / "toy"
    shutil.rmtree(world / "pipeline" / "judgements")
    own.mkdir(parents=True)
    qrels = pl.concat(pl.read_parquet(tree / f"paper__{language}" / "qrels.parquet") for language in tiny.LANGUAGES)
    qrels.select(pl.lit("paper").alias("domain"), "query-id", "corpus-id", "theta", "gain").write_parquet(
        own / "gains.parquet"
    )
    parameters = json.loads((tree / "provenance/item_params.toy.json").read_bytes())
    parameters["gamma"][1] = "@"
    (own / "item_params.json").write_text(json.dumps(parameters).replace('"@"', number))
    refused(build(world), 3, "item_params")


def test_too_many_workers(tmp_path: Path) -> None:
    """All workers are started at once, so that a number which would bring the machine down is refused first."""
    for workers in (100_000_000, 10**30):
        with pytest.raises(UsageError, match="a processor"), local(workers):
            raise AssertionError
    assert [] == list(tmp_path.iterdir())


def renamed(world: Path, names: dict[str, str]) -> None:
    """Other ids in every table of a world."""

    def other(value: Any) -> Any:
        return [names.get(item, item) for item in value] if isinstance(value, list) else names.get(value, value)

    ids = {"id", "query-id", "corpus-id", "corpus-ids"}
    for file in world.rglob("*.parquet"):
        tiny.edit_rows(
            file, lambda rows: [{key: other(row[key]) if key in ids else row[key] for key in row} for row in rows]
        )


def test_ids_of_ten_kilobytes(world: Path) -> None:
    """Ids with a number of 10,000 digits join, sort and are proved like any others."""
    names = {f"corpus-test-{at}": f"corpus-test-{at}{'7' * 10_000}" for at in (1, 4)}
    names["query-test-0"] = f"query-test-1{'0' * 10_000}"
    renamed(world, names)
    assert 0 == build(world).code
    done = prove(world)
    assert 0 == done.code
    assert max(map(len, done.stderr.split("\n"))) < 5000
    pool = pl.read_parquet(world / "out" / TAG / "provenance/pool/paper.parquet")
    assert set(names.values()) <= {*pool["query-id"], *pool["corpus-id"]}
    shown = release_here("results", world / "out" / TAG, "--benchmark", world / "benchmark.toml", "--json")
    assert 0 == shown.code


@pytest.mark.parametrize("size", [10_000, 1_000_000])
@pytest.mark.parametrize(
    ("file", "column", "old"),
    [
        (RUNS, "corpus-id", "corpus-test-1"),
        (RUNS, "model", "flat"),
        (FIRST_STAGE, "query-id", "query-test-0"),
        (FIRST_STAGE, "retriever", "one"),
        (PAGES, "id", "corpus-test-1"),
        (JUDGED["rubric"], "query-id", "query-test-0"),
    ],
)
def test_a_long_id_that_joins_nothing(world: Path, file: str, column: str, old: str, size: int) -> None:
    """It is refused by its beginning and its length."""
    tiny.edit_rows(world / file, changed(column, old, "x" * size))
    refused(build(world), 3, f"({size:,} characters)")


ALIKE = [
    "corpus-test-1 ",
    "\ufeffcorpus-test-1",
    "Corpus-test-1",
    "corpus-t\u0435st-1",
    "corpus-te\u200dst-1",
    "corpus-te\u0301st-1",
    "corpus-t\xe9st-1",
    "corpus-test-\u0661",
    "corpus-test-01",
    "corpus-test-1\n  next: x",
]


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("file", [RUNS, FIRST_STAGE, PAGES])
def test_an_id_that_looks_like_another(world: Path, file: str, name: str) -> None:
    """Ids are exact code points: the other one joins nothing, and the message shows it in ASCII."""
    column = "id" if file == PAGES else "corpus-id"
    tiny.edit_rows(world / file, changed(column, "corpus-test-1", name))
    done = build(world)
    refused(done, 3, f"value {name!a}")
    assert 1 == done.stderr.count("\n  next: ")


def test_ids_are_ascii_and_name_the_split(world: Path) -> None:
    """Both normalisation forms of an id, or another split: a build refuses what proof S2 would."""
    renamed(world, {"corpus-test-1": "corpus-t\xe9-1", "corpus-test-4": "corpus-te\u0301-4"})
    refused(build(world), 3, "not of the form corpus-test-<number>; 1 more such rows", r"'corpus-t\xe9-1'")
    renamed(world, {"corpus-t\xe9-1": "corpus-dev-1", "corpus-te\u0301-4": "corpus-test-4"})
    refused(build(world), 3, "not of the form corpus-test-<number>", "'corpus-dev-1'")


@pytest.mark.parametrize("value", ["\\ud800", "v1-\\u001b[31m", "../../x", "x" * 10_000, "\\u0000"])
def test_what_a_tree_says_of_itself(built: Path, tmp_path: Path, value: str) -> None:
    """Whatever releases.json names, a validation ends with failures, which its report can hold."""
    tree = tmp_path / TAG
    shutil.copytree(built / "out" / TAG, tree)
    releases = tree / "provenance" / "releases.json"
    releases.write_text(releases.read_text().replace(f'"{TAG}"', f'"{value}"').replace('"toy/judge"', f'"{value}"'))
    for report in ("r.parquet", "r.json"):
        options = ("--benchmark", built / "benchmark.toml", "--report", tmp_path / report)
        done = release_here("validate", tree, *options)
        assert 3 == done.code, done.stderr
        assert (tmp_path / report).stat().st_size
        assert all(line.isprintable() for line in done.stderr.split("\n"))
    assert pl.read_parquet(tmp_path / "r.parquet").height
