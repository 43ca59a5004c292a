"""A dataset folder as the Hub lays it out: the configs of its card and the files each one names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from builder import yaml_documents
from builder.layout import README
from provenance.errors import DataError, InputError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_LONGEST_NAME = 255
"""Bytes of one part of a path, on every file system that we know."""


@dataclass(frozen=True)
class DatasetFolder:
    """A folder and its configs: config name -> split -> patterns of files, relative to the folder."""

    path: Path
    configs: Mapping[str, Mapping[str, tuple[str, ...]]]

    def files(self, config: str, split: str) -> tuple[Path, ...]:
        """The files of one split, by pattern, then by name (as the Hub orders them).

        Raises:
            DataError: there is no such config or split (what there is, is named), or a pattern leaves the folder.
            InputError: a pattern matches no file.
        """
        where = Where(str(self.path / README), column="configs", value=config)
        return tuple(file for pattern in self.patterns(config, split) for file in _matches(self.path, pattern, where))

    def patterns(self, config: str, split: str) -> tuple[str, ...]:
        """The patterns of one split, as the card has them; errors as `files`, but no file is looked for."""
        card = Where(str(self.path / README), column="configs")
        if config not in self.configs:
            raise DataError(
                f"the card has no config '{config}' (it has {len(self.configs)}: {_some(self.configs)})",
                where=card,
                remedy="check that this folder is the dataset that the benchmark file means.",
            )
        splits = self.configs[config]
        if split not in splits:
            raise DataError(
                f"config '{config}' has no split '{split}' (it has {_some(splits)})",
                where=card,
                remedy="check `split` in the benchmark file.",
            )
        return splits[split]


def open_dataset(path: Path) -> DatasetFolder:
    """Read the configs from the front matter of a folder's README.md.

    Raises:
        InputError: no folder or no README.md.
        DataError: broken front matter, a config twice, a pattern that leaves the folder.
    """
    card = path / README
    if not card.is_file():
        raise InputError(
            "no dataset lies here: there is no README.md with its configs",
            where=Where(str(card)),
            remedy="check the URI; a dataset folder has its card and its Parquet files.",
        )
    configs: dict[str, dict[str, tuple[str, ...]]] = {}
    entries = front_matter(card).get("configs") or []
    if not isinstance(entries, list):
        raise DataError("`configs` is no list", where=Where(str(card), column="configs", value=entries))
    for entry in entries:
        name, splits = _config(card, entry)
        if name in configs:
            raise DataError(f"config '{name}' stands twice", where=Where(str(card), column="configs"))
        configs[name] = splits
    if not configs:
        raise DataError(
            "the card declares no configs",
            where=Where(str(card)),
            remedy="the front matter needs a `configs:` list; without it no file has a meaning here.",
        )
    return DatasetFolder(path, configs)


def front_matter(card: Path) -> dict[str, Any]:
    """The YAML front matter of a card, parsed.

    Raises:
        DataError: none, not UTF-8, or broken YAML.
    """
    try:
        text = card.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"the card is not UTF-8: {error}", where=Where(str(card))) from error
    start, _, rest = text.replace("\r\n", "\n").partition("---\n")
    block, end, _ = rest.partition("\n---\n")
    if start or not (end or rest.endswith("\n---")):
        raise DataError("the card has no front matter between two lines of ---", where=Where(str(card)))
    try:
        parsed = yaml_documents.parse(block.removesuffix("\n---"))
    except ValueError as error:
        raise DataError(
            f"the front matter is not YAML that we take: {error}",
            where=Where(str(card)),
            remedy="mend what the message names: each key once, plain values, quoted strings.",
        ) from error
    if not isinstance(parsed, dict):
        raise DataError("the front matter is no mapping", where=Where(str(card)))
    return parsed


def _config(card: Path, entry: Any) -> tuple[str, dict[str, tuple[str, ...]]]:
    where = Where(str(card), column="configs", value=entry if not isinstance(entry, dict) else entry.get("config_name"))
    if not isinstance(entry, dict) or not isinstance(entry.get("config_name"), str):
        raise DataError("a config has no name that is a string (quote it)", where=where)
    data_files = entry.get("data_files")
    if isinstance(data_files, str):
        data_files = [{"split": "train", "path": data_files}]
    if not isinstance(data_files, list):
        raise DataError("a config has no list of data_files", where=where)
    splits: dict[str, tuple[str, ...]] = {}
    for item in data_files:
        if not isinstance(item, dict) or not isinstance(item.get("split"), str) or "path" not in item:
            raise DataError("an entry of data_files needs `split` and `path`", where=where)
        if item["split"] in splits:
            raise DataError(f"split '{item['split']}' stands twice", where=where)
        patterns = item["path"] if isinstance(item["path"], list) else [item["path"]]
        if not patterns:
            raise DataError(f"split '{item['split']}' names no file", where=where)
        for pattern in patterns:
            if not isinstance(pattern, str) or not is_pattern(pattern):
                raise DataError(f"the pattern {quoted(pattern)} is no path inside the dataset", where=where)
        splits[item["split"]] = tuple(patterns)
    return entry["config_name"], splits


def is_pattern(pattern: str) -> bool:
    """Whether a pattern names files of a folder, and only of it; what `Path.glob` cannot read is no pattern."""
    parts = PurePosixPath(pattern).parts
    too_long = any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts)
    odd = any(part in {"/", "//", ".."} or ("**" in part and part != "**") for part in parts)
    # Each further `**` multiplies the work.
    return bool(parts) and not odd and not too_long and "\0" not in pattern and parts.count("**") <= 1


def _matches(path: Path, pattern: str, where: Where) -> list[Path]:
    if not is_pattern(pattern):
        raise DataError(f"the pattern {quoted(pattern)} is no path inside the dataset", where=where)
    try:
        found = sorted(file for file in path.glob(pattern) if file.is_file())
    except OSError as error:
        raise DataError(f"the pattern {quoted(pattern)} cannot be looked for: {error.strerror}", where=where) from error
    if not found:
        raise InputError(
            f"the pattern '{pattern}' of the card matches no file",
            where=where,
            remedy="the folder is incomplete, or its card is broken: fetch it again.",
        )
    return found


def _some(names: Mapping[str, object]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (", ..." if len(listed) > 6 else "")  # noqa: PLR2004 - enough to recognise it by
