"""The dataset card: front matter from the configs, body from `card_templates/` (pure: facts in, text out)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2

from builder import front_matter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Benchmark, Judge
    from builder.layout import Config


@dataclass(frozen=True)
class CardFacts:
    """All that a card says: the template does no arithmetic."""

    benchmark: Benchmark
    judge: Judge
    tag: str
    configs: Sequence[Config]
    releases: Sequence[Mapping[str, Any]]
    rows: Mapping[str, int]
    windows: Mapping[str, Mapping[str, int]] | None


def render(facts: CardFacts) -> str:
    """The whole README.md; the same facts give the same text."""
    templates = resources.files("card_templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (templates / name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown, not HTML: text from data passes `escape`
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["escape"] = escape
    body = environment.get_template("README.md.j2").render(facts=facts, benchmark=facts.benchmark, judge=facts.judge)
    return front_matter.render(facts.benchmark, facts.configs) + "\n" + body


def escape(text: str) -> str:
    """Text from data or the benchmark file as literal text in Markdown and HTML, on one line."""
    flat = " ".join(str(text).split())
    return "".join(f"&#{ord(char)};" if char in "&<>`*_[]{}|\\#~!$" else char for char in flat)
