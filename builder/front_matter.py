"""The card's front matter: generated from the configs of a release, never by hand, the same text for the same facts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from builder.benchmark import Benchmark
    from builder.layout import Config

_TWO_LETTERS = {"eng": "en", "fra": "fr", "deu": "de", "ita": "it", "por": "pt", "spa": "es"}
"""ISO 639-3 to ISO 639-1 where the Hub's language filter knows the short form; others keep three letters."""

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]")


def render(benchmark: Benchmark, configs: Iterable[Config]) -> str:
    """Front matter with its two fences: quoted strings, literal paths, one `configs` entry a config, no `dataset_info`.

    Every string is JSON-quoted, which YAML 1.1 and 1.2 read alike (`no` stays a string).
    """
    card = benchmark.card
    lines = ["---"]
    if "licence" in card:
        lines.append(f"license: {_quote(card['licence'])}")
    lines += _list("language", [_language(code) for code in benchmark.languages.values()])
    lines.append(f"pretty_name: {_quote(benchmark.title)}")
    lines += _list("tags", card.get("tags", ()))
    lines += _list("task_categories", card.get("task_categories", ()))
    lines.append("configs:")
    for config in configs:
        lines += [f"- config_name: {_quote(config.name)}", "  data_files:"]
        for split, files in config.files.items():
            lines.append(f"  - split: {_quote(split)}")
            lines += ["    path:", *(f"    - {_quote(file)}" for file in files)]
    return "\n".join([*lines, "---", ""])


def _list(key: str, values: Sequence[str]) -> list[str]:
    return [f"{key}:", *(f"- {_quote(value)}" for value in values)] if values else []


def _language(code: str) -> str:
    letters = code.split("-", 1)[0]
    return _TWO_LETTERS.get(letters, letters)


def _quote(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # What YAML takes for a line break, or does not allow as it stands.
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
