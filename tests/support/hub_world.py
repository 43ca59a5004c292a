"""ViDoRe v3 in small on a Hub of this machine: eight upstream repositories and a published release to build from."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import polars as pl
from huggingface_hub import CommitOperationAdd, HfApi

from builder import demo
from builder.benchmark import load_benchmark
from support.command import release_here

if TYPE_CHECKING:
    from pathlib import Path

    from builder.benchmark import Benchmark
    from releases.local_hub import LocalHub

RETRIEVERS = {"hashed": "embed_v4", "bm25": "bm25", "chargram": "octen", "rrf_fused": "rrf_fused"}
PUBLISHED_TAG = "v2-nvidia-qwen3.5-397b-a17b-nvfp4"
POOL_SIZE = 20


@dataclass(frozen=True)
class HubWorld:
    """Where everything is."""

    api: HfApi
    benchmark: Path
    ledger: Path
    upstream_shas: dict[str, str]
    published: Path
    published_sha: str
    published_repo: str


def put(api: HfApi, repo: str, folder: Path, *, tag: str | None = None) -> str:
    """A folder as one commit of a new dataset repository; returns the commit's sha."""
    api.create_repo(repo, repo_type="dataset")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), str(path)) for path in files]
    sha = str(api.create_commit(repo, operations, commit_message="data", repo_type="dataset").oid)
    if tag is not None:
        api.create_tag(repo, tag=tag, revision=sha, repo_type="dataset")
    return sha


def make(folder: Path, hub: LocalHub) -> HubWorld:
    """Derive a benchmark from the embedded vidore_v3: same domains, languages and names, all else replaced."""
    api = HfApi(endpoint=hub.endpoint, token=False)
    benchmark = load_benchmark("vidore_v3")
    inputs = demo.ensure()
    shas = {
        name: put(api, re.search(r"datasets/(.+)@", domain.upstream).group(1), inputs / "upstream" / name)  # type: ignore[union-attr]
        for name, domain in benchmark.domains.items()
    }
    pipeline = folder / "pipeline"
    _pipeline(benchmark, inputs / "pipeline", pipeline)
    ledger = folder / "ledger.jsonl"
    draft = folder / "draft.toml"
    draft.write_text(_derived(shas, str(pipeline)), encoding="utf-8")
    built = release_here(
        "build", "--benchmark", draft, "--judge", "qwen35", "--out", folder / "trees", "--ledger", ledger
    )
    assert built.code == 0, built.stderr
    published = folder / "trees" / "v1-nvidia-qwen3.5-397b-a17b-nvfp4"
    sha = put(api, benchmark.repo, published, tag=PUBLISHED_TAG)
    derived = folder / "benchmark.toml"
    derived.write_text(_derived(shas, f"hf://datasets/{benchmark.repo}@{PUBLISHED_TAG}"), encoding="utf-8")
    return HubWorld(api, derived, ledger, shas, published, sha, benchmark.repo)


def _derived(shas: dict[str, str], inputs: str) -> str:
    """The text of vidore_v3.toml with pins, pool size and inputs replaced, and no expected counts."""
    text = (resources.files("builder") / "benchmarks" / "vidore_v3.toml").read_text("utf-8")
    text = re.sub(r"^verbatim = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^pool_size = 150$", f"pool_size = {POOL_SIZE}", text, flags=re.MULTILINE)
    for name, sha in shas.items():
        text = re.sub(rf"(\[domains\.{name}\][^\[]*?upstream = \"[^@]*@)[0-9a-f]{{40}}", rf"\g<1>{sha}", text)
    text = re.sub(r'^inputs = "[^"]*"$', f'inputs = "{inputs}"', text, flags=re.MULTILINE)
    return re.sub(r"^\[expected.*?(?=^\[(?!expected)|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def _pipeline(benchmark: Benchmark, source: Path, target: Path) -> None:
    """The demo's pipeline under ViDoRe v3's names: retrievers, the judge, and fourteen rerankers made of four."""
    shutil.copytree(source / "judgements" / "simulated", target / "judgements" / "qwen35")
    for domain in benchmark.domains:
        first_stage = pl.read_parquet(source / "first_stage" / f"{domain}.parquet")
        _write(
            first_stage.with_columns(pl.col("retriever").replace_strict(RETRIEVERS)),
            target / "first_stage" / f"{domain}.parquet",
        )
        runs = pl.read_parquet(source / "runs" / f"{domain}.parquet")
        models = runs["model"].unique(maintain_order=True).to_list()
        renamed = [
            runs.filter(pl.col("model") == models[number % len(models)]).with_columns(pl.lit(name).alias("model"))
            for number, name in enumerate(benchmark.rerankers)
        ]
        _write(pl.concat(renamed), target / "runs" / f"{domain}.parquet")


def _write(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)
