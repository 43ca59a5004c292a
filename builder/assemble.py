"""The tables of a release tree: upstream, pools, first stages, runs, and what judging gives (DESIGN section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from builder import documents, expected, slices
from builder.calibrate import calibrate
from builder.dataset_folder import open_dataset
from builder.digests import sha256_file
from builder.inputs import RUNS, without_fused
from builder.judged import Judged
from builder.layout import FUSED, SCHEMAS, item_params_path, provenance_path, subset_path, windows_path
from builder.ready import check_pool, check_ready
from builder.shards import Shard
from builder.tables import conform, read_frame, write_table, write_tables
from builder.upstream import UpstreamDomain, needed_configs, read_upstream, write_corpus
from provenance import checks, fusion, runs
from provenance.ids import canonical
from provenance.pool import inject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from builder import manifest
    from builder.benchmark import Benchmark, Domain
    from builder.inputs import JudgeInputs, RunFiles
    from builder.releases_document import Numbering
    from builder.shards import ShardStore, Tables
    from builder.sources import Source
    from builder.steps import Steps

_PAIR = ["query-id", "corpus-id"]


@dataclass(frozen=True)
class Request:
    """What to build, from what, and as which release.

    `against` is the predecessor, for the card to compare with. `record` is what the manifest says of the inputs where
    a release is made again from its own provenance; the inputs that were read, without one.
    """

    benchmark: Benchmark
    judge: str
    inputs: Source
    upstream: Mapping[str, Source]
    numbering: Numbering
    figures: bool
    against: Source | None = None
    record: manifest.Inputs | None = None


@dataclass
class Work:
    """A build under way: what later steps need of earlier ones, a domain each.

    `digests` holds the SHA-256 of each file of the judge inputs and of each pool; `read` the upstream files by name.
    """

    request: Request
    tree: Path
    inputs: JudgeInputs
    store: ShardStore
    steps: Steps
    upstream: dict[str, UpstreamDomain] = field(default_factory=dict)
    pools: dict[str, pl.DataFrame] = field(default_factory=dict)
    corpus_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    read: dict[str, Path] = field(default_factory=dict)
    digests: dict[Path, str] = field(default_factory=dict)

    def pool_file(self, domain: str) -> Path:
        """Where a domain's pool lies."""
        return self.tree / provenance_path("pool", domain)


def write_upstream(work: Work, domain: Domain) -> None:
    """A domain's corpus and queries."""
    benchmark = work.request.benchmark
    with work.steps.time("upstream", domain.name):
        folder = open_dataset(work.request.upstream[domain.name].path)
        data = read_upstream(benchmark, domain, folder)
        expected.check_domain(benchmark, domain.name, data)
        names = write_corpus(data.pages, work.tree / domain.name)
        for language in benchmark.languages:
            subset = f"{domain.name}__{language}"
            write_table(data.queries[language], "queries", work.tree / subset_path("queries", subset))
    work.upstream[domain.name] = data
    work.corpus_files[domain.name] = tuple(f"{domain.name}/{name}" for name in names)
    for config in needed_configs(benchmark, domain):
        for file in folder.files(config, benchmark.split):
            work.read[f"upstream/{domain.name}/{file.relative_to(folder.path).as_posix()}"] = file


def write_pool(work: Work, domain: str) -> None:
    """A domain's first stage, fused, and its pool."""
    benchmark, data = work.request.benchmark, work.upstream[domain]
    with work.steps.time("pool", domain):
        first_stage, file = work.inputs.first_stage(domain)
        query_ids = data.all_queries()["id"].to_list()
        retrievers = benchmark.fusion.retrievers
        fusion.check_first_stage(first_stage, retrievers=retrievers, query_ids=query_ids, file=file)
        checks.refuse_unknown(
            first_stage, "corpus-id", data.pages.frame["id"].to_list(), "the domain's pages", file=file
        )
        fused = fusion.fuse(
            first_stage,
            retrievers=retrievers,
            k=benchmark.fusion.k,
            depth=benchmark.pool_size,
            query_ids=query_ids,
        )
        fusion.check_fused(first_stage, fused, file=file)
        pool = inject(fused, data.all_labels().select(_PAIR), size=benchmark.pool_size)
        published = work.inputs.pool(domain)
        if published is not None:
            check_pool(published, pool, file=str(work.inputs.path))
            pool = canonical(published, "pool_rank")
        work.pools[domain] = pool
        write_table(pool, "pool", work.pool_file(domain))
        work.digests[work.pool_file(domain)] = sha256_file(work.pool_file(domain))
        rows = pl.concat(
            [
                without_fused(first_stage),
                fused.select(pl.lit(FUSED).alias("retriever"), "query-id", "corpus-id", "rank", "score"),
            ]
        )
        order = pl.Enum([*retrievers, FUSED])
        ordered = canonical(rows.sort(pl.col("retriever").cast(order), "rank", maintain_order=True))
        write_table(ordered, "first_stage", work.tree / provenance_path("first_stage", domain))


def write_runs(work: Work) -> None:
    """Every domain's runs, a model a shard."""
    begun = {domain: _begin_runs(work, domain) for domain in work.pools}
    for domain, tables in begun.items():
        with work.steps.time("runs", domain):
            write_tables(tables, "runs", work.tree / provenance_path("runs", domain))


def _begin_runs(work: Work, domain: str) -> Tables:
    stored, models = work.inputs.runs(domain), list(work.request.benchmark.rerankers)
    found = slices.by_value(stored.paths, "model", RUNS)
    if not found.keys() <= set(models):
        every = read_frame(stored.paths[0], pa.schema([RUNS.field("model")]))
        checks.refuse_unknown(every, "model", models, "the benchmark's rerankers", file=str(stored.paths[0]))
    pool = work.pool_file(domain)
    facts = {"runs": [work.digests[path] for path in stored.paths], "pool": work.digests[pool]}
    nothing = tuple((path, ()) for path in stored.paths)
    return work.store.start(
        [
            Shard(
                _rank,
                (found.get(model, slices.Slice("model", (model,), nothing)), stored, pool),
                facts | {"model": model},
            )
            for model in models
        ]
    )


def _rank(own: slices.Slice, stored: RunFiles, pool: Path) -> pa.Table:
    """One model's scores of one domain, ranked."""
    file = str(stored.paths[0])
    schema = RUNS.append(SCHEMAS["runs"].field("stored_position")) if stored.positioned else RUNS
    frame, rows = slices.read(own, schema, nullable=frozenset({"score"}))
    if stored.positioned:
        frame = frame.with_columns(pl.Series("row", rows)).sort("query-id", "stored_position", maintain_order=True)
        rows, frame = frame["row"].to_numpy(), frame.select(RUNS.names)
    pages = read_frame(pool, SCHEMAS["pool"])
    with slices.numbered(rows, file):
        return conform(runs.rank(frame, pages, models=list(own.values), file=file), "runs")


def judge(work: Work) -> Judged:
    """Gains made elsewhere, checked; or fitted here from the raw answers."""
    ready = {domain: item for domain in work.pools if (item := work.inputs.ready_gains(domain)) is not None}
    if not ready:
        pools = {domain: work.pool_file(domain) for domain in work.pools}
        return calibrate(work.inputs, work.request.judge, pools, work.store, work.digests, work.steps)
    params = work.inputs.item_params()
    with work.steps.time("gains made elsewhere"):
        for domain, item in ready.items():
            check_ready(item, work.pools[domain], params, file=str(work.inputs.path))
    return Judged(
        gains={domain: item.gains for domain, item in ready.items()},
        criteria={domain: item.criteria for domain, item in ready.items() if item.criteria is not None},
        calibration={domain: item.calibration for domain, item in ready.items() if item.calibration is not None},
        item_params=params,
        windows=work.inputs.windows(),
        made=work.inputs.made(),
    )


def write_judged(work: Work, judged: Judged) -> None:
    """Qrels, top_ranked, criteria, calibration, and the documents of the judge."""
    for domain, pool in work.pools.items():
        _write_subsets(
            work, domain, pool.select(_PAIR).join(judged.gains[domain], on=_PAIR, how="left", maintain_order="left")
        )
        if domain in judged.criteria:
            path = work.tree / provenance_path("judge_criteria", domain)
            write_tables(judged.criteria[domain], "judge_criteria", path)
        if domain in judged.calibration:
            rows = pool.select(_PAIR).join(judged.calibration[domain], on=_PAIR, how="left", maintain_order="left")
            write_table(rows, "calibration", work.tree / provenance_path("calibration", domain))
    documents.write(judged.item_params, work.tree / item_params_path(work.request.judge))
    if judged.windows is not None:
        documents.write(judged.windows, work.tree / windows_path(work.request.judge))


def _write_subsets(work: Work, domain: str, pairs: pl.DataFrame) -> None:
    """Qrels and top_ranked of a domain's languages; `pairs` are its pool's, in pool order, with theta and gain."""
    data = work.upstream[domain]
    qrels = pairs.join(data.all_labels(), on=_PAIR, how="left", maintain_order="left").with_columns(
        # A pool page that nobody labelled has score 0 (method spec section 1.1).
        pl.col("score").fill_null(0)
    )
    for language, queries in data.queries.items():
        subset = f"{domain}__{language}"
        own = qrels.filter(pl.col("query-id").is_in(queries["id"].implode()))
        rows = own.select("query-id", "corpus-id", "score", "gain", "theta")
        write_table(rows, "qrels", work.tree / subset_path("qrels", subset))
        ranked = own.group_by("query-id", maintain_order=True).agg(pl.col("corpus-id").alias("corpus-ids"))
        write_table(ranked, "top_ranked", work.tree / subset_path("top_ranked", subset))
