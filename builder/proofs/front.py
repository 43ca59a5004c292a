"""The card's front matter, read so that each fault is a failure and the rest is still used (Hub spec section 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builder.dataset_folder import front_matter, is_pattern
from builder.json_schemas import shorten
from builder.layout import README
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_FRONT_MATTER = 4 * 2**20
_SPLIT = re.compile(r"\w+(\.\w+)*")
_MAGIC = re.compile(r"[*?\[]")
_NOT_IN_A_NAME = re.compile(r'[<>:/\\|?*"]')


@dataclass
class Front:
    """Configs by name (split -> files) as far as they can be read, their patterns, and the faults found on the way.

    A fault is (rule, value, message). `size` is the front matter's length in bytes.
    """

    configs: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    patterns: list[tuple[str, str, str]] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    size: int = 0
    text: str = ""


def read_front(path: Path) -> Front:
    """Read the card of a tree. Never raises for what the card holds: faults are collected."""
    front = Front()
    card = path / README
    if not card.is_file() or not card.resolve().is_relative_to(path.resolve()):
        front.faults.append(("card", README, "the tree has no README.md, so no config has a meaning"))
        return front
    content = card.read_bytes()
    end = content.find(b"\n---", 3)
    front.size = end if end >= 0 else len(content)
    front.text = content.decode("utf-8", errors="replace")
    if front.size > LONGEST_FRONT_MATTER:
        front.faults.append(("card", f"{front.size:,} bytes", "the front matter is too long to be read"))
        return front
    if content.startswith(b"\xef\xbb\xbf"):
        front.faults.append(("card", "byte order mark", "the card starts with a byte order mark: the Hub loses it all"))
    try:
        parsed = front_matter(card)
    except DataError as error:
        front.faults.append(("front-matter", README, shorten(error.what)))
        return front
    _read_configs(front, parsed, path)
    return front


def _read_configs(front: Front, parsed: dict[str, Any], path: Path) -> None:
    entries = parsed.get("configs")
    if not isinstance(entries, list) or not entries:
        front.faults.append(("configs", shorten(repr(entries)), "the card declares no configs"))
        return
    if "dataset_info" in parsed:
        front.faults.append(
            ("dataset-info", "dataset_info", "the card holds dataset_info, which wins over the files' own types")
        )
    defaults = []
    for entry in entries:
        name = entry.get("config_name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str):
            front.faults.append(("config-name", shorten(repr(name)), "a config's name is no string: quote it"))
            continue
        if _NOT_IN_A_NAME.search(name) or not name:
            front.faults.append(("config-name", name, "a config's name holds a character that the Hub refuses"))
        if name in front.configs:
            front.faults.append(("config-twice", name, "two configs have this name: the last wins in silence"))
        if entry.get("default") not in (None, False):
            defaults.append(name)
        front.configs[name] = dict(_splits(front, name, entry.get("data_files"), path))
    if len(defaults) > 1:
        front.faults.append(("default-twice", ", ".join(defaults), "several configs are the default: no load works"))


def _splits(front: Front, name: str, data_files: object, path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not isinstance(data_files, list) or not data_files:
        front.faults.append(("data-files", name, f"config '{name}' has no list of data_files"))
        return
    seen = set()
    for item in data_files:
        split = item.get("split") if isinstance(item, dict) else None
        if not isinstance(split, str) or not _SPLIT.fullmatch(split) or split == "all":
            front.faults.append(("split", shorten(repr(split)), f"config '{name}' has a split the Hub refuses"))
            continue
        if split in seen:
            front.faults.append(("split", split, f"config '{name}' has the split '{split}' twice"))
        seen.add(split)
        given = item.get("path")
        patterns = given if isinstance(given, list) else [given]
        files: list[str] = []
        for pattern in patterns:
            files += _matches(front, name, split, pattern, path)
        yield split, tuple(files)


def _matches(front: Front, name: str, split: str, pattern: object, path: Path) -> list[str]:
    if not isinstance(pattern, str) or not pattern:
        front.faults.append(("pattern", shorten(repr(pattern)), f"config '{name}' has a path that is no string"))
        return []
    parts = pattern.split("/")
    foreign = pattern.startswith("./") or "\\" in pattern or "" in parts or "://" in pattern
    if foreign or not is_pattern(pattern):
        front.faults.append(("pattern", pattern, f"config '{name}' has a path that is not one inside the dataset"))
        return []
    front.patterns.append((name, split, pattern))
    if _MAGIC.search(pattern):
        found = sorted(file.relative_to(path).as_posix() for file in path.glob(pattern) if file.is_file())
    else:
        found = [pattern] if (path / pattern).is_file() else []
    root = path.resolve()
    outside = [file for file in found if not (path / file).resolve().is_relative_to(root)]
    for file in outside:
        front.faults.append(("link", file, "a symbolic link leads out of the tree"))
    if not found:
        front.faults.append(("no-file", pattern, f"config '{name}' names '{pattern}', which matches no file"))
    return [file for file in found if file not in outside]
