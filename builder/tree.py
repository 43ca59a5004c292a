"""Reading a release tree by config name, never by path: trees made elsewhere lay their files out otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from builder import documents
from builder.dataset_folder import DatasetFolder, open_dataset
from builder.layout import (
    MANIFEST,
    PROVENANCE_KINDS,
    RELEASES,
    SCHEMAS,
    SUBSET_KINDS,
    config_name,
    item_params_path,
    windows_path,
)
from builder.releases_document import FORMAT
from builder.tables import read_frame
from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NULLABLE = {"runs": frozenset({"score", "rank_by_score"}), "qrels": frozenset({"gain", "theta"})}


@dataclass(frozen=True)
class ReleaseTree:
    """A release on disk: its folder and the configs of its card."""

    path: Path
    dataset: DatasetFolder

    def has(self, kind: str) -> bool:
        """Whether the tree has the provenance config of this kind."""
        return config_name(kind) in self.dataset.configs

    def provenance_kinds(self) -> frozenset[str]:
        """The provenance kinds that the tree has."""
        return frozenset(kind for kind in PROVENANCE_KINDS if self.has(kind))

    def subsets(self) -> tuple[str, ...]:
        """Subset names in the card's order (those with a qrels config)."""
        suffix = "-qrels"
        return tuple(name.removesuffix(suffix) for name in self.dataset.configs if name.endswith(suffix))

    def domains(self) -> tuple[str, ...]:
        """Domain names in the card's order."""
        return tuple(dict.fromkeys(subset.rsplit("__", 1)[0] for subset in self.subsets()))

    def files(self, kind: str, *, subset: str | None = None, split: str | None = None) -> tuple[Path, ...]:
        """The files of a config; a subset kind's only split needs no name.

        Raises:
            DataError: no such config or split.
        """
        name = config_name(kind, subset)
        if split is None:
            splits = self.dataset.configs.get(name, {})
            split = next(iter(splits)) if len(splits) == 1 else "test"
        return self.dataset.files(name, split)

    def table(
        self, kind: str, *, subset: str | None = None, split: str | None = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """A table of the tree in file order, with exactly its schema's columns (corpus: use `files`).

        Args:
            kind: a name in `layout.SUBSET_KINDS` (with `subset`) or `layout.PROVENANCE_KINDS` (with `split`, a domain).
            subset: the subset of a subset kind.
            split: the domain of a provenance kind.
            columns: only these are read, in this order.

        Raises:
            InputError, DataError: as `tables.read_frame`, and for an unknown config.
        """
        if kind == "corpus" or kind not in (*SUBSET_KINDS, *PROVENANCE_KINDS):
            raise ValueError(kind)
        paths = self.files(kind, subset=subset, split=split)
        schema = SCHEMAS[kind] if columns is None else pa.schema([SCHEMAS[kind].field(name) for name in columns])
        return pl.concat([read_frame(path, schema, nullable=_NULLABLE.get(kind, frozenset())) for path in paths])

    @cached_property
    def releases(self) -> dict[str, Any]:
        """provenance/releases.json."""
        document = documents.read(self.path / RELEASES)
        if not isinstance(document, dict):
            raise DataError("not an object", where=Where(str(self.path / RELEASES)))
        if document.get("format") == FORMAT:
            documents.read_as(self.path / RELEASES, "releases")
        return document

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """The entries of releases.json, the own one last; none where the tree has another form of it."""
        listed = self.releases.get("releases")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """provenance/manifest.json, which is always this tool's."""
        document: dict[str, Any] = documents.read_as(self.path / MANIFEST, "manifest")
        return document

    def item_params(self, judge: str) -> dict[str, Any]:
        """The item parameters of a judge."""
        document: dict[str, Any] = documents.read_as(self.path / item_params_path(judge), "item_params")
        return document

    def windows(self, judge: str) -> dict[str, Any] | None:
        """The account of a judge's windows, or None where the tree has none."""
        path = self.path / windows_path(judge)
        return documents.read_as(path, "windows") if path.is_file() else None


def open_tree(path: Path) -> ReleaseTree:
    """Open a release tree.

    Raises:
        InputError: nothing there.
        DataError: a dataset, but not a release (no qrels config).
    """
    if not path.is_dir():
        raise InputError("no such folder", where=Where(str(path)), remedy="name a release tree, e.g. dist/<tag>.")
    tree = ReleaseTree(path, open_dataset(path))
    if not tree.subsets():
        raise DataError(
            "this dataset is no release: its card has no <subset>-qrels config",
            where=Where(str(path)),
            remedy="name a tree that `release build` wrote, or a published release.",
        )
    return tree
