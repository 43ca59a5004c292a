"""`release build`: upstream data and judge inputs become a release tree (DESIGN sections 1 and 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from builder import card, documents, expected, figures, gitattributes, manifest, releases_document, tasks
from builder.calibrate import LINK, calibrate
from builder.card_facts import read_facts
from builder.dataset_folder import open_dataset
from builder.diff.compare import relation_to
from builder.diff.sides import described_side, open_side
from builder.digests import sha256_file
from builder.inputs import JudgeInputs, open_inputs, without_fused
from builder.judged import Judged
from builder.layout import (
    ASSETS,
    FUSED,
    GITATTRIBUTES,
    MANIFEST,
    README,
    RELEASES,
    TASK_FILE,
    Config,
    configs,
    item_params_path,
    provenance_path,
    subset_path,
    windows_path,
)
from builder.output import new_tree
from builder.ready import check_pool, check_ready
from builder.tables import write_table
from builder.upstream import UpstreamDomain, needed_configs, read_upstream, write_corpus
from provenance import checks, fusion, runs
from provenance.ids import canonical
from provenance.pool import inject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from builder.benchmark import Benchmark, Domain
    from builder.releases_document import Numbering
    from builder.sources import Source
    from builder.steps import Steps

_PAIR = ["query-id", "corpus-id"]


@dataclass(frozen=True)
class Request:
    """What to build, from what, and as which release; `against` is the predecessor, for the card to compare with."""

    benchmark: Benchmark
    judge: str
    inputs: Source
    upstream: Mapping[str, Source]
    numbering: Numbering
    figures: bool
    against: Source | None = None


@dataclass
class _Work:
    """A build under way: what later steps need of earlier ones, a domain each."""

    request: Request
    tree: Path
    inputs: JudgeInputs
    steps: Steps
    upstream: dict[str, UpstreamDomain] = field(default_factory=dict)
    pools: dict[str, pl.DataFrame] = field(default_factory=dict)
    corpus_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    read: dict[str, Path] = field(default_factory=dict)


def build(request: Request, out: Path, executor: Callable[[], Executor], steps: Steps) -> dict[str, Any]:
    """Build a release tree into `out/<tag>`, all or nothing; the same inputs give the same bytes.

    Args:
        request: what to build.
        out: the folder of trees.
        executor: makes the runner of shards; results do not depend on it.
        steps: times the steps and reports them.

    Returns:
        tag, tree, rows a config, windows by outcome, the fit's objective and iterations, seconds a step.

    Raises:
        InputError, DataError, FitError: bad input, or no matplotlib to draw with; nothing is left at `out`.
        SafetyError: something else lies at `out/<tag>`.
    """
    benchmark = request.benchmark
    judge = benchmark.judge(request.judge)
    tag = request.numbering.tag(judge)
    if request.figures:
        figures.require()
    with new_tree(out / tag) as tree:
        work = _Work(request, tree, open_inputs(request.inputs.path, judge.name), steps)
        for domain in benchmark.domains.values():
            _upstream(work, domain)
            _pool(work, domain.name)
            _runs(work, domain.name)
        without_text = {
            name: set(item.pages.frame.filter(pl.col("text") == "")["id"]) for name, item in work.upstream.items()
        }
        expected.check_pools(benchmark, work.pools, without_text)
        with executor() as runner:
            judged = _judged(work, runner)
        with steps.time("write"):
            _write_judged(work, judged)
        report = _seal(work, judged, tag)
    return {"tag": tag, "tree": str(out / tag), **report, "seconds": {k: round(v, 3) for k, v in steps.seconds.items()}}


def _upstream(work: _Work, domain: Domain) -> None:
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


def _pool(work: _Work, domain: str) -> None:
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
        ready = work.inputs.ready_gains(domain)
        if ready is not None and ready.pool is not None:
            check_pool(ready.pool, pool, file=str(work.inputs.path))
            pool = canonical(ready.pool, "pool_rank")
        work.pools[domain] = pool
        write_table(pool, "pool", work.tree / provenance_path("pool", domain))
        rows = pl.concat(
            [
                without_fused(first_stage),
                fused.select(pl.lit(FUSED).alias("retriever"), "query-id", "corpus-id", "rank", "score"),
            ]
        )
        order = pl.Enum([*retrievers, FUSED])
        ordered = canonical(rows.sort(pl.col("retriever").cast(order), "rank", maintain_order=True))
        write_table(ordered, "first_stage", work.tree / provenance_path("first_stage", domain))


def _runs(work: _Work, domain: str) -> None:
    with work.steps.time("runs", domain):
        stored, file = work.inputs.runs(domain)
        ranked = runs.rank(stored, work.pools[domain], models=list(work.request.benchmark.rerankers), file=file)
        write_table(ranked, "runs", work.tree / provenance_path("runs", domain))


def _judged(work: _Work, executor: Executor) -> Judged:
    """Gains made elsewhere, checked; or fitted here from the raw answers."""
    ready = {domain: work.inputs.ready_gains(domain) for domain in work.pools}
    made_elsewhere = {domain: item for domain, item in ready.items() if item is not None}
    if not made_elsewhere:
        return calibrate(work.inputs, work.request.judge, work.pools, executor, work.steps)
    params = work.inputs.item_params()
    with work.steps.time("gains made elsewhere"):
        for domain, item in made_elsewhere.items():
            check_ready(item, work.pools[domain], params, file=str(work.inputs.path))
    return Judged(
        gains={domain: item.gains for domain, item in made_elsewhere.items()},
        criteria={domain: item.criteria for domain, item in made_elsewhere.items() if item.criteria is not None},
        calibration={
            domain: item.calibration for domain, item in made_elsewhere.items() if item.calibration is not None
        },
        item_params=params,
        windows=work.inputs.windows(),
        made=work.inputs.made(),
    )


def _write_judged(work: _Work, judged: Judged) -> None:
    tree = work.tree
    for domain, pool in work.pools.items():
        data = work.upstream[domain]
        pairs = pool.select(_PAIR).join(judged.gains[domain], on=_PAIR, how="left", maintain_order="left")
        qrels = pairs.join(data.all_labels(), on=_PAIR, how="left", maintain_order="left").with_columns(
            # A pool page that nobody labelled has score 0 (method spec section 1.1).
            pl.col("score").fill_null(0)
        )
        for language, queries in data.queries.items():
            subset = f"{domain}__{language}"
            own = pl.col("query-id").is_in(queries["id"].implode())
            write_table(
                qrels.filter(own).select("query-id", "corpus-id", "score", "gain", "theta"),
                "qrels",
                tree / subset_path("qrels", subset),
            )
            ranked = pool.filter(own).group_by("query-id", maintain_order=True).agg(pl.col("corpus-id"))
            write_table(
                ranked.rename({"corpus-id": "corpus-ids"}), "top_ranked", tree / subset_path("top_ranked", subset)
            )
        if domain in judged.criteria:
            criteria = judged.criteria[domain]
            write_table(criteria, "judge_criteria", tree / provenance_path("judge_criteria", domain))
        if domain in judged.calibration:
            rows = pool.select(_PAIR).join(judged.calibration[domain], on=_PAIR, how="left", maintain_order="left")
            write_table(rows, "calibration", tree / provenance_path("calibration", domain))
    documents.write(judged.item_params, tree / item_params_path(work.request.judge))
    if judged.windows is not None:
        documents.write(judged.windows, tree / windows_path(work.request.judge))


def _seal(work: _Work, judged: Judged, tag: str) -> dict[str, Any]:
    """Write what describes the tables: releases.json, task file, card, manifest; return what a person wants to know."""
    request, tree = work.request, work.tree
    benchmark = request.benchmark
    judge = benchmark.judge(request.judge)
    with work.steps.time("card and manifest"):
        present = frozenset(path.name for path in (tree / "provenance").iterdir() if path.is_dir())
        listed = list(configs(benchmark, work.corpus_files, present=present))
        tables = manifest.describe(tree, listed)
        data = {name: fact["sha256"] for name, fact in tables.items()}
        releases = releases_document.document(
            benchmark,
            request.numbering,
            releases_document.entry(
                benchmark,
                judge,
                request.numbering,
                calibration={"made": judged.made, "link": judged.item_params.get("link", LINK)},
                upstream={name: source.pin() for name, source in request.upstream.items()},
                files=data,
            ),
        )
        documents.write(releases, tree / RELEASES)
        if request.against is not None:
            before = open_side(request.against.path, request.against.uri)
            own = releases["releases"][-1]
            own["relation"] = relation_to(before, described_side(tree, listed, tables), benchmark)
            documents.write(releases, tree / RELEASES)
        (tree / GITATTRIBUTES).write_text(gitattributes.TEXT, encoding="utf-8", newline="\n")
        rows = config_rows(listed, tables)
        sums = {name: digest for name, digest in data.items() if name.endswith(".parquet")}
        task_file = tasks.render(benchmark, tag=tag, files=sums)
        (tree / TASK_FILE).write_text(task_file, encoding="utf-8", newline="\n")
        facts = read_facts(tree, benchmark, listed)
        drawn = figures.draw(facts, tree / ASSETS) if request.figures else ()
        (tree / README).write_text(card.render(facts, card.figures_of(tree)).text, encoding="utf-8", newline="\n")
        assets = [f"{ASSETS}/{name}.{kind}" for name in drawn for kind in ("png", "svg")]
        for name in (GITATTRIBUTES, TASK_FILE, README, RELEASES, *assets):
            tables[name] = manifest.describe_file(tree / name, None, [])
        document = manifest.assemble(
            tables,
            listed,
            {name: dict(data.pages.frame.select("id", "sha256").iter_rows()) for name, data in work.upstream.items()},
            settings={"judge": judge.name, "figures": request.figures},
            inputs=_inputs(work),
        )
        documents.write(document, tree / MANIFEST)
    fit = judged.item_params.get("fit", {})
    return {
        "rows": rows,
        "windows": judged.windows["domains"] if judged.windows is not None else None,
        "objective": fit.get("objective"),
        "iterations": fit.get("iterations"),
    }


def _inputs(work: _Work) -> manifest.Inputs:
    uris = {f"upstream/{name}": source.pin() for name, source in work.request.upstream.items()}
    read = work.read | {f"inputs/{file.relative_to(work.inputs.path).as_posix()}": file for file in work.inputs.files()}
    against = work.request.against
    if against is not None:
        uris["predecessor"] = against.pin()
        read[f"predecessor/{MANIFEST}"] = against.path / MANIFEST
    return manifest.Inputs(
        uris | {"inputs": work.request.inputs.pin()}, {name: sha256_file(file) for name, file in read.items()}
    )


def config_rows(listed: list[Config], files: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Rows a config, over its splits."""
    return {
        config.name: sum(files[file]["rows"] for names in config.files.values() for file in names) for config in listed
    }
