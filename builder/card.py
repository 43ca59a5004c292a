"""The dataset card: front matter from the configs, body from `card_templates/` (facts in, text out).

The body is a row of sections, a template each. A hand-written part belongs to a section and stands behind it, byte for
byte as its author wrote it: `[card] verbatim = ["results.md"]` names the file `results.md`, which lies beside the
benchmark file, or for an embedded benchmark in `card_templates/<benchmark>/`.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from builder import front_matter
from builder.card_facts_results import LEVEL, METRICS
from builder.card_numbers import CardText, Declared, Kind, Numbers, check_marks
from builder.layout import ASSETS, PROVENANCE_KINDS, config_name
from builder.leaderboard import MEAN
from builder.markdown import longest_run
from builder.ndcg import K
from builder.significance import ALPHA, RESAMPLES, TIE_GAP
from provenance.errors import BenchmarkError, InputError, Where
from provenance.shown import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from builder.benchmark import Benchmark
    from builder.card_facts import CardFacts
    from builder.leaderboard import Leaderboard

SECTIONS = (
    "head",
    "evaluate",
    "judge",
    "releases",
    "use",
    "layout",
    "pool",
    "results",
    "relation",
    "declared",
    "notes",
    "licence",
    "citation",
)
VIEW_NAMES = {"native": "native view", "six-language": "all languages"}
_MEANING = {
    "corpus": "the pages; one copy a domain, shared by its languages",
    "queries": "the questions of the subset",
    "qrels": "a row a judged pair: human label, gain and theta",
    "top_ranked": "the pool of each question in pool order",
    "pool": "the pool with its fused scores and the injected pages",
    "first_stage": "the lists of the retrievers, and the fused list",
    "runs": "the scores of the rerankers",
    "judge_criteria": "the verdicts of the judge, a row a placement",
    "calibration": "ability, tau and alpha behind each theta",
}
_METHOD = {"k": K, "tie_gap": 100 * TIE_GAP, "alpha": ALPHA, "level": LEVEL, "resamples": RESAMPLES}


def render(facts: CardFacts, figures: frozenset[str]) -> CardText:
    """The whole README.md with the kinds of its numbers; the same facts give the same text.

    Args:
        facts: what it says.
        figures: the names of the figures that lie in `assets/`.

    Raises:
        InputError: a hand-written part is missing.
        BenchmarkError: a hand-written part is of no section, is not UTF-8 or holds a noncharacter.
    """
    numbers = Numbers()
    parts = verbatim_parts(facts.benchmark)
    environment = _environment(numbers)
    values = {**_values(facts, figures), "parts": frozenset(parts)}
    body = [front_matter.render(facts.benchmark, facts.configs)]
    for section in SECTIONS:
        text = environment.get_template(f"{section}.md.j2").render(values)
        # Blank lines that statements leave behind.
        text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
        if text:
            body.append(text + "\n")
        if section in parts:
            part = parts[section]
            body.append(numbers.mark(part, Kind.VERBATIM, f"{section}.md") + ("" if part.endswith("\n") else "\n"))
    return numbers.resolve("\n".join(body))


def figures_of(tree: Path) -> frozenset[str]:
    """The names of the figures that a tree holds."""
    return frozenset(path.stem for path in (tree / ASSETS).glob("*.png"))


def verbatim_parts(benchmark: Benchmark) -> dict[str, str]:
    """The hand-written parts by section.

    Raises:
        InputError, BenchmarkError: see `render`.
    """
    parts = {}
    for name in benchmark.card.get("verbatim", ()):
        section = name.removesuffix(".md")
        if section not in SECTIONS or section == name:
            raise BenchmarkError(
                f"'{name}' is no hand-written part of a card",
                where=Where(benchmark.path, column="card.verbatim"),
                remedy=f"name it after the section that it follows: {', '.join(f'{item}.md' for item in SECTIONS)}.",
            )
        parts[section] = _verbatim(benchmark, name)
    return parts


def _verbatim(benchmark: Benchmark, name: str) -> str:
    if benchmark.embedded:
        file = resources.files("card_templates") / benchmark.name / name
    else:
        file = Path(benchmark.path).parent / name
    if not file.is_file():
        raise InputError(
            "a hand-written part of the card is missing",
            where=Where(str(file), column="card.verbatim"),
            remedy="write the file, or take its name out of card.verbatim.",
        )
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"a hand-written part is not UTF-8: {error}", where=Where(str(file))) from error
    check_marks(text, str(file))
    return text


def _environment(numbers: Numbers) -> jinja2.Environment:
    templates = resources.files("card_templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (templates / name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown, not HTML: text from data passes `escape`
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(numbers.filters())
    environment.filters["plural"] = lambda word, number: word if number == 1 else f"{word}s"
    environment.filters["string_literal"] = json.dumps
    environment.filters["fenced"] = _fenced
    return environment


def _values(facts: CardFacts, figures: frozenset[str]) -> dict[str, Any]:
    benchmark = facts.benchmark
    source = "the benchmark file"
    return {
        "benchmark": benchmark,
        "judge": facts.judge,
        "tag": facts.tag,
        "releases": facts.releases,
        "kinds": facts.kinds,
        "domains": facts.domains,
        "totals": facts.totals,
        "fusion": facts.fusion,
        "stages": facts.stages,
        "calibration": facts.calibration,
        "results": facts.results,
        "relation": facts.relation,
        "declared": facts.declared,
        "figures": figures,
        "method": _METHOD,
        "meaning": _MEANING,
        "metric_names": METRICS,
        "view_names": VIEW_NAMES,
        "fusion_k": Declared(benchmark.fusion.k, source),
        "pool_size": Declared(benchmark.pool_size, source),
        "labels": {**{domain.name: domain.label for domain in facts.domains}, MEAN: "Mean"},
        "leaderboard_rows": list(_leaderboard_rows(facts)),
        "table_rows": _table_rows,
        "config_pattern": _config_pattern,
        "calibrated": _calibrated,
    }


def _leaderboard_rows(facts: CardFacts) -> Iterator[dict[str, Any]]:
    if facts.results is not None:
        rcp = facts.results.table("rcp", "native", "b")
        qrel = facts.results.table("qrel", "native", "b")
        for name, first, second in zip(rcp.rows, rcp.values[:, -1], qrel.values[:, -1], strict=True):
            yield {"name": name, "rcp": float(first), "qrel": float(second)}


def _table_rows(board: Leaderboard) -> list[tuple[str, list[float]]]:
    return list(zip(board.rows, board.values.tolist(), strict=True))


def _config_pattern(kind: str) -> str:
    return config_name(kind) if kind in PROVENANCE_KINDS else config_name(kind, "<subset>")


def _calibrated(calibration: Mapping[str, Any] | None) -> str:
    """How a release's gains were made, in words."""
    made = (calibration or {}).get("made")
    return {"here": "fitted for this release", "elsewhere": "made elsewhere, checked"}.get(str(made), "not known")


def _fenced(text: str, language: str) -> str:
    """Text in a code fence that nothing in it closes."""
    lines = "\n".join(visible(line.expandtabs(4)) for line in text.strip().splitlines())
    fence = "`" * max(3, longest_run(lines, "`") + 1)
    return f"{fence}{language}\n{lines}\n{fence}"
