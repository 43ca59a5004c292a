"""What the proofs ask of a tree: tables by kind and domain, documents, files, upstream; read when asked, not kept.

Nothing here judges. What cannot be read raises `UnprovableError`, which makes a proof *not provable* in that part; that
it cannot be read is itself the failure of S1, C1 or M1, which look at the files themselves.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from builder import documents
from builder.dataset_folder import open_dataset
from builder.json_schemas import faults, schema
from builder.layout import MANIFEST, PROVENANCE_KINDS, RELEASES, SCHEMAS, SUBSET_KINDS, config_name, windows_path
from builder.proofs.front import Front, read_front
from builder.row_rules import ROW_FAILURES, check_file
from builder.tables import UNREADABLE, read_arrow
from builder.upstream import read_upstream
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from builder.benchmark import Benchmark
    from builder.upstream import UpstreamDomain

ROW = "__row"
FILE = "__file"
_SUBSET_CONFIG = re.compile(rf"(?P<domain>.+)__(?P<language>[^_-]+)-(?P<kind>{'|'.join(SUBSET_KINDS)})")
_PROVENANCE = {config_name(kind): kind for kind in PROVENANCE_KINDS}
_UNKEPT = (".git", ".cache")
"""Folders beside a tree that no release holds: a clone's and a download's own records."""


class UnprovableError(Exception):
    """A tree lacks what a proof needs, or what it has cannot be read; the message says which."""


@dataclass(frozen=True)
class Table:
    """One config's table of one split: where it lies and what it is about (`language` is None for provenance)."""

    config: str
    kind: str
    domain: str
    language: str | None
    split: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class RowFinding:
    """What the pass over one file's rows found; `error` says why it could not be read."""

    table: Table
    file: str
    rows: int
    failures: pl.DataFrame
    error: str | None


class Facts:
    """A tree, and what it is compared with.

    `published` is what a ledger says: the tag of every release, oldest first, and its commit (None: not known).
    """

    def __init__(
        self,
        path: Path,
        *,
        benchmark: Benchmark | None = None,
        upstream: Mapping[str, Path] | None = None,
        against: Facts | None = None,
        published: Mapping[str, str | None] | None = None,
    ) -> None:
        self.path = path
        self._benchmark = benchmark
        self._upstream = upstream or {}
        self.against = against
        self.published = published

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark file.

        Raises:
            UnprovableError: none was given.
        """
        if self._benchmark is None:
            raise UnprovableError("no benchmark file was given (--benchmark)")
        return self._benchmark

    @property
    def has_benchmark(self) -> bool:
        """Whether a benchmark file was given."""
        return self._benchmark is not None

    @cached_property
    def front(self) -> Front:
        """The card's configs, as far as they can be read, and what is wrong with them."""
        return read_front(self.path)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every file and symbolic link of the tree, relative, sorted; `.git` and `.cache` at its top are left out."""
        found = []
        for at, folders, names in os.walk(self.path):
            folder = Path(at)
            if folder == self.path:
                folders[:] = [name for name in folders if name not in _UNKEPT]
            links = [name for name in folders if (folder / name).is_symlink()]
            found += [(folder / name).relative_to(self.path).as_posix() for name in [*names, *links]]
        return tuple(sorted(found))

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables of all configs whose names the layout knows, in the card's order."""
        return tuple(_tables(self.front))

    def domains(self) -> list[str]:
        """Domains in the card's order (those with any table)."""
        return list(dict.fromkeys(table.domain for table in self.tables))

    def subsets(self, kind: str, domain: str) -> list[Table]:
        """A domain's tables of a subset kind, a language each.

        Raises:
            UnprovableError: there is none.
        """
        found = [table for table in self.tables if table.kind == kind and table.domain == domain]
        if not found:
            raise UnprovableError(f"the card has no {kind.replace('_', '-')} of domain '{domain}'")
        return found

    def domain_frame(self, kind: str, domain: str, columns: Sequence[str]) -> list[tuple[Table, pl.DataFrame]]:
        """The tables of a subset kind of a domain, read; errors as `subsets` and `frame`."""
        return [(table, self.frame(table, columns)) for table in self.subsets(kind, domain)]

    def one(self, kind: str, domain: str) -> Table:
        """A domain's only table of a kind (its corpus, which subsets share, or a provenance table).

        Raises:
            UnprovableError: there is none.
        """
        return self.subsets(kind, domain)[0]

    def frame(self, table: Table, columns: Sequence[str]) -> pl.DataFrame:
        """Columns of a table, with `ROW` (0-based in the file) and `FILE` (a number in `table.files`).

        Raises:
            UnprovableError: a file cannot be read, or a column is missing or not of the layout's type.
        """
        parts = []
        for number, name in enumerate(table.files):
            arrow = self._read(name, table.kind, columns)
            frame = pl.DataFrame(pl.from_arrow(arrow)).with_row_index(ROW)
            parts.append(frame.with_columns(pl.lit(number, pl.Int16).alias(FILE), pl.col(ROW).cast(pl.Int64)))
        if not parts:
            raise UnprovableError(f"no file of '{table.config}' can be found")
        return pl.concat(parts)

    def _read(self, name: str, kind: str, columns: Sequence[str]) -> pa.Table:
        wanted = pa.schema([SCHEMAS[kind].field(column) for column in columns])
        path = self.inside(name)
        try:
            table = read_arrow(path, list(columns))
        except (ReleaseError, *UNREADABLE) as error:
            raise UnprovableError(f"{name} cannot be read") from error
        if sorted(table.column_names) != sorted(columns) or not table.select(list(columns)).schema.equals(wanted):
            raise UnprovableError(f"{name} has not the columns and types of {kind}")
        return table.select(list(columns))

    def inside(self, name: str) -> Path:
        """The path of a file that really lies in the tree.

        Raises:
            UnprovableError: it is none, or a link leads out of the tree.
        """
        path = self.path / name
        if not path.resolve().is_relative_to(self.path.resolve()) or not path.is_file():
            raise UnprovableError(f"{name} is no file of the tree")
        return path

    @cached_property
    def row_findings(self) -> tuple[RowFinding, ...]:
        """The streaming pass over every table's rows, each file once (six configs may share one)."""
        found = []
        seen: set[str] = set()
        for table in self.tables:
            for name in table.files:
                if name not in seen:
                    seen.add(name)
                    found.append(self._row_finding(table, name))
        return tuple(found)

    def _row_finding(self, table: Table, name: str) -> RowFinding:
        try:
            rows, failures = check_file(self.inside(name), schema(table.kind))
        except (UnprovableError, *UNREADABLE, pl.exceptions.PolarsError) as error:
            return RowFinding(table, name, 0, pl.DataFrame(schema=ROW_FAILURES), str(error) or type(error).__name__)
        return RowFinding(table, name, rows, failures, None)

    def document(self, name: str, kind: str) -> Any:
        """A JSON document of the tree that keeps its schema, `builder/schemas/<kind>.schema.json`.

        Raises:
            UnprovableError: it is missing, broken, or breaks its schema.
        """
        if not (self.path / name).is_file():
            raise UnprovableError(f"the tree has no {name}")
        try:
            document = documents.read(self.inside(name))
        except (ReleaseError, OSError) as error:
            raise UnprovableError(f"{name} cannot be read") from error
        if next(faults(document, kind), None) is not None:
            raise UnprovableError(f"{name} breaks its schema")
        return document

    @cached_property
    def manifest(self) -> Any:
        """provenance/manifest.json; errors as `document`."""
        return self.document(MANIFEST, "manifest")

    @cached_property
    def releases(self) -> Any:
        """provenance/releases.json; errors as `document`."""
        return self.document(RELEASES, "releases")

    @property
    def made_here(self) -> bool:
        """Whether the tree carries this tool's manifest: its own conventions (row order) hold for such trees only."""
        return (self.path / MANIFEST).is_file()

    def judge_files(self, stem: str) -> list[tuple[str, str]]:
        """`provenance/<stem>.<judge>.json` of each judge: (judge, file)."""
        pattern = re.compile(rf"provenance/{stem}\.(.+)\.json")
        return [(match[1], name) for name in self.files if (match := pattern.fullmatch(name))]

    def judge(self) -> str:
        """The judge whose gains the tree holds.

        Raises:
            UnprovableError: the tree does not say, or says several.
        """
        judges = [judge for judge, _ in self.judge_files("item_params")]
        if len(judges) != 1:
            raise UnprovableError(
                "the tree has no provenance/item_params.<judge>.json"
                if not judges
                else f"the tree has item parameters of several judges ({', '.join(judges)})"
            )
        return judges[0]

    def item_params(self) -> Any:
        """The judge's item parameters; errors as `document` and `judge`."""
        return self.document(f"provenance/item_params.{self.judge()}.json", "item_params")

    def windows(self) -> Any:
        """The account of the judge's windows; errors as `document` and `judge`."""
        return self.document(windows_path(self.judge()), "windows")

    def upstream(self, domain: str) -> UpstreamDomain:
        """Upstream's data of a domain at the benchmark file's pin.

        Raises:
            UnprovableError: no benchmark file, an unknown domain, upstream out of reach or broken.
        """
        if domain not in self.benchmark.domains:
            raise UnprovableError(f"the benchmark file has no domain '{domain}'")
        if domain not in self._upstream:
            raise UnprovableError(f"upstream {self.benchmark.domains[domain].upstream} cannot be reached")
        try:
            folder = open_dataset(self._upstream[domain])
            return read_upstream(self.benchmark, self.benchmark.domains[domain], folder)
        except ReleaseError as error:
            raise UnprovableError(f"upstream cannot be read: {error.what}") from error


def _tables(front: Front) -> Iterator[Table]:
    for name, splits in front.configs.items():
        match = _SUBSET_CONFIG.fullmatch(name)
        for split, files in splits.items():
            if match:
                yield Table(name, match["kind"], match["domain"], match["language"], split, files)
            elif name in _PROVENANCE:
                yield Table(name, _PROVENANCE[name], split, None, split, files)
