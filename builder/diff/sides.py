"""A release as a diff sees it: its tree, what its manifest says of each file, and its own entry of releases.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from builder.dataset_folder import DatasetFolder
from builder.diff.rows import RowChanges, count, key, match
from builder.digests import content_digest, sha256_file
from builder.layout import MANIFEST, PROVENANCE_KINDS, SCHEMAS, SUBSET_KINDS, config_name
from builder.proofs.facts import Facts
from builder.tables import batches, check_columns, open_parquet, readable
from builder.tree import ReleaseTree, open_tree
from builder.upstream import read_pages
from provenance.errors import DataError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from builder.layout import Config

_SHARE_ROWS = 2_000_000
"""Rows of a table that are compared at once: what a small machine holds twice."""
_CONTENT_ROWS = 4096


@dataclass(frozen=True)
class Part:
    """One table: its kind, and the subset (or, for a corpus and provenance, the domain) that it is of."""

    kind: str
    name: str


@dataclass(frozen=True)
class Side:
    """One of the two releases.

    Attributes:
        label: how the person named it.
        tree: its tables.
        files: path -> what the manifest says of the file (`sha256`, `bytes`; for tables `rows`, `content_sha256`).
        sealed: whether `files` is from a manifest of this tool, which the files were found to keep.
    """

    label: str
    tree: ReleaseTree
    files: Mapping[str, Mapping[str, Any]]
    sealed: bool

    @property
    def releases(self) -> list[Mapping[str, Any]]:
        """The entries of releases.json, the own one last; none where the tree has another form of it."""
        return self.tree.entries

    @property
    def own(self) -> Mapping[str, Any]:
        """The tree's own entry of releases.json; empty where it has none."""
        return self.releases[-1] if self.releases else {}

    @cached_property
    def parts(self) -> dict[Part, tuple[Path, ...]]:
        """Every table that the layout knows and its files, by kind; a corpus once a domain."""
        found: dict[Part, tuple[Path, ...]] = {}
        for kind in SUBSET_KINDS:
            for subset in self.tree.subsets():
                name = subset.rsplit("__", 1)[0] if kind == "corpus" else subset
                if config_name(kind, subset) in self.tree.dataset.configs:
                    found.setdefault(Part(kind, name), self.tree.files(kind, subset=subset))
        for kind in PROVENANCE_KINDS:
            for domain in self.tree.dataset.configs.get(config_name(kind), {}):
                found[Part(kind, domain)] = self.tree.files(kind, split=domain)
        return found

    def judge(self) -> str | None:
        """The judge whose item parameters the tree holds; None where it holds none, or several."""
        stem = "provenance/item_params."
        names = [name for name in self.files if name.startswith(stem) and name.endswith(".json")]
        return names[0].removeprefix(stem).removesuffix(".json") if len(names) == 1 else None

    def digests(self, part: Part, of: str) -> list[object]:
        """What a table's files are known by: `sha256` of their bytes, or `content_sha256` of their rows."""
        return [self.files[self.relative(path)].get(of) for path in self.parts[part]]

    def relative(self, path: Path) -> str:
        """A file's name in the tree."""
        return path.relative_to(self.tree.path).as_posix()

    def rows(self, part: Part) -> int:
        """The rows of a table, from its files' footers."""
        total = 0
        for path in self.parts[part]:
            with open_parquet(path) as file:
                total += file.metadata.num_rows
        return total

    def share(self, part: Part, number: int, of: int) -> pl.DataFrame:
        """The rows of a table whose query falls into one of `of` shares; a corpus is one share.

        Raises:
            InputError, DataError: a file is missing or broken, or a column is missing or of another type.
        """
        if part.kind == "corpus":
            return read_pages(self.parts[part]).frame
        schema = SCHEMAS[part.kind]
        frames = [pl.DataFrame(pl.from_arrow(schema.empty_table()))]
        for path in self.parts[part]:
            check_columns(path, schema)
            for batch in batches(path, schema.names):
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch.select(schema.names).cast(schema)])))
                frames.append(frame.filter(pl.col("query-id").hash() % of == number) if of > 1 else frame)
        return pl.concat(frames)


def open_side(path: Path, label: str) -> Side:
    """Open a release tree for a diff.

    Every file is hashed now. Where the tree has a manifest, its list is held against them, file by file: a digest that
    nobody computed proves nothing.

    Raises:
        InputError: no tree there, or a file is missing.
        DataError: the tree is no release, or its manifest does not describe it.
    """
    tree = open_tree(path)
    # The address of a release that was fetched, else the folder.
    shown = label if "@" in label else str(path)
    hashed = _hashed(path, shown)
    if not (path / MANIFEST).is_file():
        return Side(label, tree, hashed, sealed=False)
    files = tree.manifest["files"]
    _check_manifest(tree, shown, files, hashed)
    return Side(label, tree, files, sealed=True)


def described_side(path: Path, configs: Iterable[Config], files: Mapping[str, Mapping[str, Any]]) -> Side:
    """A tree whose card and manifest are not written yet, or not to be believed.

    Args:
        path: the tree.
        configs: its configs.
        files: what `manifest.describe` found of its files.
    """
    folder = DatasetFolder(path, {config.name: config.files for config in configs})
    return Side(path.name, ReleaseTree(path, folder), files, sealed=True)


def _hashed(path: Path, shown: str) -> dict[str, dict[str, Any]]:
    """Size and sha256 of every file of a tree; a link counts as what it leads to, which must be a file."""
    found = {}
    for name in Facts(path).files:
        file = path / name
        if not file.is_file():
            raise _refusal(file, shown, "it is no regular file")
        found[name] = {"sha256": sha256_file(file), "bytes": file.stat().st_size}
    return found


def _check_manifest(
    tree: ReleaseTree, shown: str, files: Mapping[str, Mapping[str, Any]], hashed: Mapping[str, Mapping[str, Any]]
) -> None:
    tables = {
        path.relative_to(tree.path).as_posix()
        for config, splits in tree.dataset.configs.items()
        for split in splits
        for path in tree.dataset.files(config, split)
    }
    for name in sorted((tables | files.keys() | hashed.keys()) - {MANIFEST}):
        said, is_there = files.get(name), hashed.get(name)
        if is_there is None:
            raise _refusal(tree.path / name, shown, "it is missing", column="bytes", value="missing")
        if said is None:
            raise _refusal(tree.path / name, shown, "it is not listed")
        for column in ("bytes", "sha256"):
            if said[column] != is_there[column]:
                what = f"the manifest says {said[column]}"
                raise _refusal(tree.path / name, shown, what, column=column, value=is_there[column])
        if name in tables and "content_sha256" not in said:
            raise _refusal(tree.path / name, shown, "it is listed, but not as a table", column="content_sha256")


def _refusal(file: Path, shown: str, what: str, *, column: str | None = None, value: object = None) -> DataError:
    return DataError(
        f"the manifest does not describe this file: {what}",
        where=Where(str(file), column=column, value=value),
        remedy=f"`release validate {shown}` shows all (proof M1).",
    )


def qrels(side: Side, part: Part) -> pl.DataFrame:
    """The qrels of a subset: every gain in 0 to 1 where there is one, no label negative.

    Raises:
        InputError, DataError: as `ReleaseTree.table`, and for a value out of its range.
    """
    frame = side.tree.table("qrels", subset=part.name)
    for column, inside, allowed in (
        ("gain", pl.col("gain").is_between(0, 1), "in 0 to 1"),
        ("score", pl.col("score") >= 0, "at least 0"),
    ):
        beyond = frame.with_row_index("row").filter(~inside)
        if beyond.height:
            found = beyond.row(0, named=True)
            path, row = _place(side.parts[part], found["row"])
            raise DataError(
                f"a {column} must be {allowed}; this one is of query {quoted(found['query-id'], 'query-id')} and page "
                f"{quoted(found['corpus-id'], 'corpus-id')}",
                where=Where(str(path), row=row, column=column, value=found[column]),
                remedy="run `release validate` on the tree: it names every such row.",
            )
    return frame


def _place(paths: Iterable[Path], row: int) -> tuple[Path, int]:
    """The file and the row in it, of a row counted over several files."""
    for path in paths:
        with open_parquet(path) as file:
            rows = file.metadata.num_rows
        if row < rows:
            return path, row
        row -= rows
    raise IndexError(row)


def part_changes(old: Side, new: Side, part: Part) -> RowChanges:
    """How a table differs, row by row; both sides have it. Memory: a share of the table, twice."""
    rows = max(old.rows(part), new.rows(part))
    shares = max(1, -(-rows // _SHARE_ROWS)) if part.kind not in {"corpus", "queries"} else 1
    keys = ["id"] if part.kind == "corpus" else key(part.kind)
    total = RowChanges()
    for number in range(shares):
        before, after = (side.share(part, number, shares) for side in (old, new))
        total += count(match(before, after, keys, what=f"{part.kind} of {part.name}"))
    return total


def identical(old: Side, new: Side, part: Part) -> bool:
    """Whether digests say that a table is the same, of bytes or of rows in order; both sides have it.

    Where the bytes differ, what the manifests say of the rows is a hint: both digests of the rows are computed now.
    """
    if old.digests(part, "sha256") == new.digests(part, "sha256"):
        return True
    hinted = old.sealed and new.sealed and old.digests(part, "content_sha256") == new.digests(part, "content_sha256")
    return hinted and _contents(old, part) == _contents(new, part)


def _contents(side: Side, part: Part) -> list[str]:
    schema = SCHEMAS[part.kind]
    found = []
    for path in side.parts[part]:
        check_columns(path, schema)
        with readable(path):
            found.append(content_digest(schema, batches(path, schema.names, rows=_CONTENT_ROWS)))
    return found


def in_both(old: Side, new: Side) -> Iterator[Part]:
    """The tables that both have, in the new card's order."""
    return (part for part in new.parts if part in old.parts)
