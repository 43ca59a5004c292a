"""Release trees for the task tests: real pages and queries, and the expected gains and pools, without a fit."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl

from builder import tasks
from builder.benchmark import Benchmark, load_benchmark
from builder.layout import MANIFEST, README, SCHEMAS, TASK_FILE, configs, subset_path

TAG = "v1-simulated"
_PAIR = ["query-id", "corpus-id"]


def write_tree(reference: Path, tree: Path, *, tag: str = TAG) -> Benchmark:
    """The configs that tasks read, the task file, the card's front matter and the manifest of a release."""
    benchmark = load_benchmark(str(reference / "benchmark.toml"))
    gains = pl.read_parquet(reference / "expected" / "gains.parquet")
    corpus_files = {}
    for domain in benchmark.domains:
        upstream = reference / "upstream" / domain
        corpus = tree / domain / "corpus-00000-of-00001.parquet"
        corpus.parent.mkdir(parents=True)
        shutil.copy(next((upstream / "corpus").glob("*.parquet")), corpus)
        corpus_files[domain] = (corpus.relative_to(tree).as_posix(),)
        pool = pl.read_parquet(reference / "expected" / "pool" / f"{domain}.parquet").sort("query-id", "pool_rank")
        of_domain = gains.filter(pl.col("domain") == domain)
        for language in benchmark.languages:
            queries = pl.read_parquet(upstream / f"{language}-queries" / "*.parquet").select("id", "text")
            of_language = of_domain.filter(pl.col("language") == language).select("query-id", "corpus-id", "theta", "gain")
            labels = pl.read_parquet(upstream / f"{language}-qrels" / "*.parquet")
            qrels = of_language.join(labels, on=_PAIR, how="left", maintain_order="left").with_columns(
                pl.col("score").fill_null(0)
            )
            ranked = (
                pool.filter(pl.col("query-id").is_in(queries["id"].implode()))
                .group_by("query-id", maintain_order=True)
                .agg(pl.col("corpus-id").alias("corpus-ids"))
            )
            for kind, frame in (("queries", queries), ("qrels", qrels), ("top_ranked", ranked)):
                write(frame.select(SCHEMAS[kind].names), tree / subset_path(kind, f"{domain}__{language}"))
    (tree / README).write_text(_front_matter(benchmark, corpus_files))
    seal(tree, benchmark, tag=tag)
    return benchmark


def write(frame: pl.DataFrame, path: Path) -> None:
    """A table as the builder writes it: without metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path, use_pyarrow=True)


def seal(tree: Path, benchmark: Benchmark, *, tag: str = TAG) -> None:
    """Write the task file and the manifest that describe the files as they are."""
    sums = {path.relative_to(tree).as_posix(): sha256(path) for path in sorted(tree.rglob("*.parquet"))}
    (tree / TASK_FILE).write_text(tasks.render(benchmark, tag=tag, files=sums))
    manifest = tree / MANIFEST
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text(json.dumps({"files": {name: {"sha256": digest} for name, digest in sums.items()}}))


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _front_matter(benchmark: Benchmark, corpus_files: dict[str, tuple[str, ...]]) -> str:
    lines = ["---", "configs:"]
    for config in configs(benchmark, corpus_files, present=frozenset()):
        lines += [f"- config_name: {config.name}", "  data_files:"]
        for split, files in config.files.items():
            lines += [f"  - split: {split}", f"    path: {files[0]}"]
    return "\n".join([*lines, "---", ""])
