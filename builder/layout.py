"""What a release tree is made of: names, paths and Arrow schemas of every config (DESIGN section 3).

The one place that knows them: writers, proofs, the card and the task file ask here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from builder.benchmark import Benchmark

CRITERIA = ("C1", "C2", "C3", "C4", "C5")
FUSED = "rrf_fused"

README = "README.md"
TASK_FILE = "rcp_ndcg_tasks.py"
GITATTRIBUTES = ".gitattributes"
MANIFEST = "provenance/manifest.json"
RELEASES = "provenance/releases.json"
ASSETS = "assets"

SUBSET_KINDS = ("corpus", "queries", "qrels", "top_ranked")
PROVENANCE_KINDS = ("pool", "first_stage", "runs", "judge_criteria", "calibration")

SCHEMAS: dict[str, pa.Schema] = {
    "corpus": pa.schema(
        [
            # Upstream's own column order, so that a corpus file is copied and never rewritten.
            ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            ("id", pa.string()),
            ("text", pa.string()),
        ]
    ),
    "queries": pa.schema([("id", pa.string()), ("text", pa.string())]),
    "qrels": pa.schema(
        [
            ("query-id", pa.string()),
            ("corpus-id", pa.string()),
            ("score", pa.int64()),
            ("gain", pa.float64()),
            ("theta", pa.float64()),
        ]
    ),
    "top_ranked": pa.schema([("query-id", pa.string()), ("corpus-ids", pa.list_(pa.string()))]),
    "pool": pa.schema(
        [
            ("query-id", pa.string()),
            ("corpus-id", pa.string()),
            ("pool_rank", pa.int64()),
            ("rrf_score", pa.float64()),
            ("gt_injected", pa.bool_()),
        ]
    ),
    "first_stage": pa.schema(
        [
            ("retriever", pa.string()),
            ("query-id", pa.string()),
            ("corpus-id", pa.string()),
            ("rank", pa.int64()),
            ("score", pa.float64()),
        ]
    ),
    "runs": pa.schema(
        [
            ("model", pa.string()),
            ("query-id", pa.string()),
            ("corpus-id", pa.string()),
            ("score", pa.float64()),
            ("rank_by_score", pa.int64()),
            ("stored_position", pa.int64()),
        ]
    ),
    "judge_criteria": pa.schema(
        [
            ("query-id", pa.string()),
            ("call_index", pa.int64()),
            ("corpus-id", pa.string()),
            *((criterion, pa.int64()) for criterion in CRITERIA),
            ("finish_reason", pa.string()),
        ]
    ),
    "calibration": pa.schema(
        [
            ("query-id", pa.string()),
            ("corpus-id", pa.string()),
            ("ability", pa.float64()),
            ("tau", pa.float64()),
            ("alpha", pa.float64()),
        ]
    ),
}


@dataclass(frozen=True)
class Config:
    """One config of the card: its name and its data files by split (paths relative to the tree)."""

    name: str
    kind: str
    files: dict[str, tuple[str, ...]]


def is_inside(path: str) -> bool:
    """Whether a name that somebody else gives is that of a file inside a folder, on any system: `a/b.parquet`.

    What comes from a remote, a card or a manifest is asked before it is put behind a folder of this machine.
    """
    parts = path.split("/")
    return not any(part in {"", ".", ".."} for part in parts) and path.isprintable() and not set(path) & set("\\:")


def config_name(kind: str, subset: str | None = None) -> str:
    """`<subset>-<kind>`, or `provenance-<kind>` with dashes for a provenance kind."""
    return f"{subset}-{kind}" if subset is not None else f"provenance-{kind.replace('_', '-')}"


def subset_path(kind: str, subset: str) -> str:
    """Where a subset's queries, qrels or top_ranked lie."""
    return f"{subset}/{kind}.parquet"


def provenance_path(kind: str, domain: str) -> str:
    """Where a domain's table of a provenance kind lies."""
    return f"provenance/{kind}/{domain}.parquet"


def windows_path(judge: str) -> str:
    """Where the account of a judge's windows lies."""
    return f"provenance/windows.{judge}.json"


def item_params_path(judge: str) -> str:
    """Where a judge's item parameters lie."""
    return f"provenance/item_params.{judge}.json"


def configs(
    benchmark: Benchmark, corpus_files: dict[str, tuple[str, ...]], *, present: frozenset[str]
) -> Iterator[Config]:
    """The card's configs in order: four a subset, then the provenance configs that the tree has.

    Args:
        benchmark: names, languages and the split.
        corpus_files: a domain's corpus files, relative to the tree.
        present: the provenance kinds that the tree holds.
    """
    for subset in benchmark.subsets():
        for kind in SUBSET_KINDS:
            files = corpus_files[subset.domain] if kind == "corpus" else (subset_path(kind, subset.name),)
            yield Config(config_name(kind, subset.name), kind, {benchmark.split: files})
    for kind in PROVENANCE_KINDS:
        if kind in present:
            files_by_domain: dict[str, tuple[str, ...]] = {
                domain: (provenance_path(kind, domain),) for domain in benchmark.domains
            }
            yield Config(config_name(kind), kind, files_by_domain)
