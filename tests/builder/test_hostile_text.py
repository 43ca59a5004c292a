"""Hostile names in every place that a benchmark file and a run have for them, through every renderer and back."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from rich.console import Console
from support import tiny
from support.command import Done, release_here
from support.hostile import SAMPLES, TEXTS, Page, structure, texts, toml

from builder import documents, for_mteb, front_matter, tasks
from builder.benchmark import Benchmark, load_benchmark, parse_benchmark
from builder.card_facts import read_facts
from builder.diff.render import as_html, as_text
from builder.diff.render import as_markdown as diff_as_markdown
from builder.diff.report import Grid, Heading, Lines
from builder.layout import Config
from builder.leaderboard import Leaderboard
from builder.manifest import configs_of
from builder.results import Results
from builder.results_text import as_csv, as_document, as_markdown, as_table
from provenance.shown import visible

EVERYTHING = " ".join(SAMPLES)
TAG = "v1-toy"
_DOCUMENT = re.compile(r'json\.loads\(r"""(.*?)"""\)', re.DOTALL)


def source(text: str) -> str:
    """The tiny benchmark with a text in each place that takes any."""
    edits = {
        '"RCP-nDCG on a tiny world"': toml(text + "t"),
        '"Paper & glue"': toml(text + "l"),
        '"One"': toml(text + "r"),
        'retrievers = ["one"': f"retrievers = [{toml(text + 'one')}",
        "{ one =": f"{{ {toml(text + 'one')} =",
        '"toy/judge"': toml(text + "j"),
        '"cc-by-4.0"': toml(text + "c"),
        '["retrieval"]': f"[{toml(text + 'g')}]",
        'flat = "Flat"': f"{toml(text + 'flat')} = {toml(text + 'F')}",
        "[card]\n": f"[card]\ncitation = {toml(text)}\n"
        f"declared = {{ {toml(text + 'k')} = {{ value = {toml(text + 'v')}, source = {toml(text + 's')} }} }}\n",
        "[fusion]": f"[mteb]\nadapted_from = [{toml(text + '{task}')}]\nsample_creation = {toml(text)}\n\n[fusion]",
    }
    content = tiny.BENCHMARK
    for before, after in edits.items():
        content = content.replace(before, after)
    return content


def named(text: str) -> Benchmark:
    """That benchmark."""
    return parse_benchmark(source(text).encode(), source=Path("benchmark.toml"))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two built worlds, of benign and of hostile names."""
    found = {}
    for name, text in (("benign", "x"), ("hostile", EVERYTHING)):
        world = found[name] = tmp_path_factory.mktemp(name)
        tiny.write_world(world)
        (world / "benchmark.toml").write_text(source(text), encoding="utf-8")
        for kind, column, old in (("runs", "model", "flat"), ("first_stage", "retriever", "one")):
            new = {old: text + old}
            tiny.edit_rows(
                world / "pipeline" / kind / "paper.parquet",
                lambda rows, column=column, new=new: [
                    row | {column: new.get(row[column], row[column])} for row in rows
                ],
            )
        done = command(world, "build", "--judge", "toy", "--out", world / "out", "--no-figures", "--workers", "1")
        assert 0 == done.code, done.stderr
    return found


def command(world: Path, name: str, *arguments: str | Path) -> Done:
    """A `release` command on a world."""
    return release_here(name, *arguments, "--benchmark", world / "benchmark.toml")


@settings(deadline=None)
@given(TEXTS)
def test_front_matter(text: str) -> None:
    """YAML and the Hub's own reader give back each text as it was, and no other key."""
    config = Config("paper__english-qrels", "qrels", {"test": ("paper__english/qrels.parquet",)})
    block = front_matter.render(named(text), [config])
    files = [{"split": "test", "path": ["paper__english/qrels.parquet"]}]
    expected = {
        "license": text + "c",
        "language": ["en", "fr"],
        "pretty_name": text + "t",
        "tags": [text + "g"],
        "configs": [{"config_name": "paper__english-qrels", "data_files": files}],
    }
    assert expected == yaml.safe_load(block.removeprefix("---\n").removesuffix("---\n"))
    assert expected == huggingface_hub.DatasetCard(f"{block}\n# x\n").data.to_dict()


def files_of(benchmark: Benchmark) -> dict[str, str]:
    """The files that tasks read."""
    names = [f"{subset.name}/{kind}.parquet" for subset in benchmark.subsets() for kind in tasks.SUBSET_KINDS[1:]]
    return dict.fromkeys(["paper/corpus-00000-of-00001.parquet", *names], "0" * 64)


@settings(deadline=None, max_examples=20)
@given(TEXTS)
def test_task_file(text: str) -> None:
    """The program is the same as with benign names; its strings, read as text, give the names back."""
    hostile, benign = (
        tasks.render(benchmark, tag=TAG, files=files_of(benchmark), withdrawn={TAG: benchmark.title})
        for benchmark in (named(text), named("x"))
    )
    assert ast.dump(ast.parse(_DOCUMENT.sub("json.loads()", benign))) == ast.dump(
        ast.parse(_DOCUMENT.sub("json.loads()", hostile))
    )
    ast.parse(hostile)
    metadata, _, withdrawn, *_ = [json.loads(found) for found in _DOCUMENT.findall(hostile)]
    (entry, *_) = metadata.values()
    assert f"{text}t, {text}l: rank " in entry["description"]
    assert (text, text) == (entry["bibtex_citation"], entry["sample_creation"])
    assert [(text + "{task}").replace("{task}", "Paper")] == entry["adapted_from"]
    assert {TAG: text + "t"} == withdrawn


class _Blank(ast.NodeTransformer):
    """Blanks every string."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """A literal."""
        return ast.Constant("") if isinstance(node.value, str) else node


@settings(deadline=None, max_examples=20)
@given(TEXTS)
def test_definitions_for_mteb(text: str) -> None:
    """The classes for mteb are the same but for their strings."""
    hostile, benign = (
        _Blank().visit(ast.parse(for_mteb.render(named(name), number=1, revision="0" * 40))) for name in (text, "x")
    )
    assert ast.dump(benign) == ast.dump(hostile)


def board(text: str) -> Results:
    """Two systems and a domain of which one each has such a name."""
    values = np.array([[0.5, 0.5], [0.25, 0.25]])
    rows = (text + "F", "Steep")
    table = Leaderboard("native", "rcp", "a", 10, ("flat", "steep"), rows, (text + "c", "mean"), values)
    return Results((table,), (), (), {}, simulated=False, absent=(text,))


@given(TEXTS)
def test_results_for_programs(text: str) -> None:
    """CSV and JSON give back each name as it was."""
    found = board(text)
    rows = list(csv.reader(io.StringIO(as_csv(found), newline="")))
    assert [
        ["view", "metric", "ties", "model", text + "c", "mean"],
        ["native", "rcp", "a", text + "F", "0.5", "0.5"],
        ["native", "rcp", "a", "Steep", "0.25", "0.25"],
    ] == rows
    document = json.loads(documents.dump(as_document(found)))
    assert [text + "F", "Steep"] == [row["model"] for row in document["tables"][0]["rows"]]
    assert ([text], [text + "c", "mean"]) == (document["absent"], document["tables"][0]["columns"])


@given(TEXTS)
def test_results_for_people(text: str) -> None:
    """Markdown has the elements of a benign table and the names; a terminal gets printable lines, numbers included."""
    found = board(text)
    labels = {text + "c": text + "l"}
    page = as_markdown(found, labels)
    assert structure(as_markdown(board("x"), {"xc": "xl"})) == structure(page)
    shown = [" ".join(visible(name).split()) for name in (text + "l", text + "F")]
    cells = [" ".join(cell.split()) for cell in texts(page)]
    assert ["Model", shown[0], "mean", shown[1], "50.0", "50.0", "Steep", "25.0", "25.0"] == cells[1:]
    console = Console(file=io.StringIO(), width=160)
    console.print(as_table(found.tables[0], labels))
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(line.isprintable() for line in terminal.split("\n"))
    assert (2, 2) == (terminal.count("50.0"), terminal.count("25.0"))


def report(text: str) -> list[Heading | Lines | Grid]:
    """A report that holds a text in every place."""
    return [Heading(text + "h"), Lines((text + "i", "b")), Grid((text + "c", "n"), ((text + "d", "1"),))]


@given(TEXTS)
def test_diff(text: str) -> None:
    """HTML and Markdown have the elements of a benign report and the texts; plain text as many lines."""
    page, benign = Page(as_html(report(text))), Page(as_html(report("x")))
    assert benign.tags == page.tags
    expected = [*(visible(text + end) for end in "hicd"), "1"]
    assert set(expected) <= {found.strip("\n") for found in page.texts}
    assert structure(diff_as_markdown(report("x"))) == structure(diff_as_markdown(report(text)))
    said = [" ".join(found.split()) for found in texts(diff_as_markdown(report(text)))]
    words = [" ".join(visible(text + end).split()) for end in "hicd"]
    assert [words[0], words[1], "b", words[2], "n", words[3], "1"] == said
    assert as_text(report("x")).count("\n") == as_text(report(text)).count("\n")


def body(world: Path) -> str:
    """The card without its front matter."""
    return (world / "out" / TAG / "README.md").read_text("utf-8").split("\n---\n", 1)[1]


def test_the_card_is_made_of_the_same_elements(worlds: dict[str, Path]) -> None:
    """As many headings, tables, cells, links, images and code spans as with benign names, in the same order."""
    benign, hostile = (structure(body(worlds[name])) for name in ("benign", "hostile"))
    assert benign == hostile
    assert not {"html_inline", "html_block"} & set(hostile)


def test_the_card_says_what_the_names_are(worlds: dict[str, Path]) -> None:
    """Title, judge, labels and systems are there as visible text; no control character is."""
    text = body(worlds["hostile"])
    assert all(line.isprintable() for line in text.split("\n"))
    shown = [" ".join(found.split()) for found in texts(text)]
    for end in "tljFksv":
        name = (EVERYTHING + end).replace("_", " ") if end == "k" else EVERYTHING + end
        flat = " ".join(visible(" ".join(name.split())).split())
        assert any(flat in found for found in shown), end


def test_every_proof_of_the_benign_tree_holds(worlds: dict[str, Path]) -> None:
    """Hostile names break no proof, and the card is the one of the tables."""
    for name in ("benign", "hostile"):
        done = command(worlds[name], "validate", worlds[name] / "out" / TAG)
        assert (0, True) == (done.code, "17 proved, 0 failed" in done.stderr), name
        assert 0 == command(worlds[name], "card", worlds[name] / "out" / TAG, "--check").code


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("results", ["TREE", "--statistics"]),
        ("results", ["TREE", "--format", "markdown"]),
        ("diff", ["TREE", "TREE"]),
        ("diff", ["TREE", "TREE", "--markdown"]),
        ("diff", ["TREE", "TREE", "--html"]),
        ("diff", ["TREE", "TREE", "--changelog"]),
        ("validate", ["TREE"]),
        ("tasks", ["TREE"]),
        ("list", []),
        ("build", ["--judge", "toy", "--out", "OUT", "--no-figures", "--workers", "1"]),
        ("build", ["--judge", EVERYTHING]),
    ],
)
def test_a_terminal_is_told_no_controls(worlds: dict[str, Path], name: str, arguments: list[str]) -> None:
    """What people read on stdout and stderr is printable, line by line."""
    world = worlds["hostile"]
    places = {"TREE": world / "out" / TAG, "OUT": world / "again"}
    done = command(world, name, *(places.get(argument, argument) for argument in arguments))
    for line in (done.stdout + done.stderr).split("\n"):
        assert line.isprintable(), line


def test_a_file_that_no_text_can_name(worlds: dict[str, Path], tmp_path: Path) -> None:
    """A run whose name is not UTF-8 is shown with escapes in every format, and no format breaks."""
    tree = worlds["benign"] / "out" / TAG
    rows = [f"{row['query-id']},{row['corpus-id']},1" for row in tiny.read_rows(tree / "provenance/pool/paper.parquet")]
    run = tmp_path / "r\udcff.csv"
    run.write_text("\n".join(["query-id,corpus-id,score", *rows, ""]), encoding="utf-8")
    for form in ("table", "csv", "json", "markdown"):
        done = command(worlds["benign"], "results", tree, "--run", run, "--format", form)
        assert 0 == done.code, done.stderr
        assert "r\\\\xff" in done.stdout.replace("r\\xff", "r\\\\xff"), form
        done.stdout.encode()


def test_half_a_surrogate_pair_in_a_document() -> None:
    """JSON that held one is written with the same escape, which UTF-8 takes, and reads back as it was."""
    document = json.loads('{"\\ud800": "\\udfffx \\ud83d\\ude00"}')
    assert '{\n  "\\ud800": "\\udfffx \U0001f600"\n}\n' == documents.dump(document)
    assert document == json.loads(documents.dump(document).encode())


def test_figures_draw_names_as_text(worlds: dict[str, Path], tmp_path: Path) -> None:
    """Labels are one line, printable, bounded, no formula; they are drawn without a missing glyph or a full page."""
    figures = pytest.importorskip("builder.figures.results", reason="figures need the extra `plots`")
    style = pytest.importorskip("builder.figures.style")
    world = worlds["hostile"]
    tree = world / "out" / TAG
    facts: Any = read_facts(
        tree,
        load_benchmark(str(world / "benchmark.toml")),
        configs_of(documents.read(tree / "provenance/manifest.json")),
    )
    with style.styled(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (figures.leaderboard, figures.domains):
            figure = make(facts)
            labels = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
            assert any(label.startswith("<script>alert(1)</script>") for label in labels)
            assert all(label.isprintable() and len(label.replace("\\$", "$")) <= 30 for label in labels)
            style.save(figure, tmp_path, make.__name__)
    assert "<script" not in (tmp_path / "domains.svg").read_text("utf-8")
    assert r"a\$b\$" == figures._literal("a$b$")
