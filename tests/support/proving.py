"""Breaking a good tree in one place, sealing it again, and asking which proofs see it."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from builder import documents, manifest
from builder.benchmark import load_benchmark
from builder.layout import MANIFEST
from builder.proofs.facts import Facts
from builder.upstream import read_pages
from builder.validate import validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from builder.benchmark import Benchmark
    from builder.validate import Validation

    Place = tuple[str, str | None, int | None, str | None, str | None]


FAMILIES = ("M1", "S1", "S2", "J1", "J2", "U1", "P1", "P2", "P3", "G1", "G2", "R1", "L1", "C1", "C2", "N1")
"""The proofs of one tree that these tests are about (R2 and C3 have tests of their own)."""


def copy_tree(source: Path, target: Path) -> None:
    """A copy whose files are links to the source's: `Tree` writes a file anew and never into one."""
    shutil.copytree(source, target, copy_function=os.link)


@dataclass
class Tree:
    """A copy of a good tree that a test may break."""

    path: Path
    benchmark: Benchmark | None
    upstream: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, benchmark_file: Path) -> Tree:
        """A tree with its benchmark file and upstream folders."""
        benchmark = load_benchmark(str(benchmark_file))
        return cls(path, benchmark, {name: Path(domain.upstream) for name, domain in benchmark.domains.items()})

    def write(self, name: str, content: bytes) -> None:
        """Put other bytes in a file's place."""
        path = self.path / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def text(self, name: str, old: str, new: str, *, times: int = 1) -> None:
        """Replace a text that stands so many times in a file."""
        content = (self.path / name).read_text("utf-8")
        assert content.count(old) == times, (name, old, content.count(old))
        self.write(name, content.replace(old, new).encode())

    def json(self, name: str, edit: Callable[[Any], object]) -> None:
        """Edit a JSON document in place."""
        document = json.loads((self.path / name).read_bytes())
        edit(document)
        self.write(name, json.dumps(document, indent=2, sort_keys=True).encode() + b"\n")

    def table(self, name: str, edit: Callable[[pa.Table], pa.Table]) -> None:
        """Edit an Arrow table; it is written plainly."""
        path = self.path / name
        table = edit(pq.read_table(path))
        path.unlink()
        pq.write_table(table, path)

    def rows(self, name: str, edit: Callable[[list[dict[str, Any]]], object]) -> None:
        """Edit a table as a list of rows, in place; its schema stays."""

        def apply(table: pa.Table) -> pa.Table:
            rows = table.to_pylist()
            edit(rows)
            return pa.Table.from_pylist(rows, schema=table.schema)

        self.table(name, apply)

    def cell(self, name: str, row: int, column: str, value: object) -> None:
        """Change one cell."""
        self.rows(name, lambda rows: rows[row].__setitem__(column, value))

    def seal(self) -> None:
        """Describe the tree as it is now in its manifest, images included, so that M1 has nothing to say."""
        self.write(MANIFEST, (self.path / MANIFEST).read_bytes())  # no longer the source's file
        manifest.seal(self.path)
        document = documents.read(self.path / MANIFEST)
        files = {c.name: c.files for c in manifest.configs_of(document)}
        for domain in document["pages"]:
            names = next(f for name, splits in files.items() if name.startswith(f"{domain}__") for f in splits.values())
            frame = read_pages([self.path / name for name in names]).frame
            document["pages"][domain] = dict(frame.select("id", "sha256").iter_rows())
        documents.write(document, self.path / MANIFEST)

    def validate(self, *names: str, against: Path | None = None) -> Validation:
        """Run proofs, `FAMILIES` by default."""
        before = None if against is None else Facts(against)
        facts = Facts(self.path, benchmark=self.benchmark, upstream=self.upstream, against=before)
        return validate(facts, names or FAMILIES, clock=time.perf_counter, say=lambda _message: None)

    def failing(self, *names: str) -> dict[str, list[Place]]:
        """What each failing proof says: rule, file, row, column, value."""
        found = {}
        for outcome in self.validate(*names).outcomes:
            places = outcome.failures.select("rule", "file", "row", "column", "value")
            if places.height:
                found[outcome.proof] = list(places.iter_rows())
        return found
