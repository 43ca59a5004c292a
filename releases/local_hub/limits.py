"""How much the Hub takes, and what its card validator says (Hub spec section 4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from builder import yaml_documents

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes and rows; the defaults are the real Hub's where it states them.

    `card` is a body of validate-yaml: cards of about 440 kB have been answered with 413.
    """

    readme: int = 10 * _MIB
    regular_file: int = 10 * _MIB
    card: int = 400_000
    json_body: int = 64 * _MIB
    multipart_above: int = 20 * _MIB
    multipart_chunk: int = 10 * _MIB
    tree_page: int = 1000
    commits_page: int = 50
    upload: int = 50 * _KIB * _MIB


def front_matter(content: str) -> str | None:
    """The YAML between the first two `---` lines of a card, or None if there is none."""
    lines = content.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number])
    return None


def validate_card(content: str) -> tuple[list[str], list[str]]:
    """Errors and warnings of a dataset card's front matter."""
    text = front_matter(content)
    if text is None:
        return [], ["empty or missing yaml metadata in repo card"]
    try:
        metadata = yaml_documents.parse(text)
    except ValueError as error:
        return [f"the front matter is no YAML: {error}"], []
    if metadata is None:
        return [], ["empty or missing yaml metadata in repo card"]
    if not isinstance(metadata, dict):
        return ["the front matter must be a mapping"], []
    return _config_errors(metadata.get("configs")), []


def _config_errors(configs: Any) -> list[str]:
    if configs is None:
        return []
    if not isinstance(configs, list):
        return ['"configs" must be an array']
    errors = []
    names: Counter[str] = Counter()
    for index, config in enumerate(configs):
        if not isinstance(config, dict):
            errors.append(f'"configs[{index}]" must be an object')
        elif not isinstance(config.get("config_name"), str):
            errors.append(f'"configs[{index}].config_name" must be a string')
        else:
            names[config["config_name"]] += 1
    errors += [f'"configs" contains the config name {name!r} {n} times' for name, n in names.items() if n > 1]
    defaults = [c for c in configs if isinstance(c, dict) and c.get("default") is True]
    if len(defaults) > 1:
        errors.append('"configs" has more than one default')
    return errors
