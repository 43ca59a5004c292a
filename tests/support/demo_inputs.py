"""The demo's inputs as tests read them."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import polars as pl

from builder.benchmark import load_benchmark
from provenance import pool

if TYPE_CHECKING:
    from pathlib import Path

BENCHMARK = load_benchmark("demo")
LANGUAGES = ("english", "french", "german", "italian", "portuguese", "spanish")
DOMAINS = (
    "computer_science",
    "energy",
    "finance_en",
    "finance_fr",
    "hr",
    "industrial",
    "pharmaceuticals",
    "physics",
)
SHARD = "test-00000-of-00001.parquet"


def read(*parts: str | Path) -> pl.DataFrame:
    """One Parquet file."""
    return pl.read_parquet(os.path.join(*parts))  # noqa: PTH118 - joins strings and paths alike


def corpus(inputs: Path, domain: str) -> pl.DataFrame:
    """A domain's pages."""
    return read(inputs, "upstream", domain, "corpus", SHARD)


def queries(inputs: Path, domain: str) -> pl.DataFrame:
    """A domain's questions in all languages, with the config that each row stands in."""
    frames = [
        read(inputs, "upstream", domain, f"{language}-queries", SHARD).with_columns(config=pl.lit(language))
        for language in LANGUAGES
    ]
    return pl.concat(frames)


def qrels(inputs: Path, domain: str, language: str = "english") -> pl.DataFrame:
    """A domain's labels as one language's config holds them."""
    return read(inputs, "upstream", domain, f"{language}-qrels", SHARD)


def judgements(inputs: Path, judge: str, stage: str, *, pipeline: str = "pipeline") -> pl.DataFrame:
    """All domains' answers of a stage."""
    frames = [
        read(inputs, pipeline, "judgements", judge, stage, f"{domain}.parquet").with_columns(domain=pl.lit(domain))
        for domain in DOMAINS
    ]
    return pl.concat(frames)


def digests(folder: Path) -> dict[str, str]:
    """Every file's path and SHA-256."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def judged_pools(inputs: Path, domain: str) -> dict[str, list[str]]:
    """Each query's pool, made from the stored fusion and the labels."""
    stored = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
    fused = stored.filter(pl.col("retriever") == "rrf_fused").drop("retriever")
    made = pool.inject(fused, qrels(inputs, domain).select("query-id", "corpus-id"), size=20)
    return dict(made.group_by("query-id", maintain_order=True).agg("corpus-id").iter_rows())
