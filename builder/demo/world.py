"""The demo's inputs as files, in the layout of a real benchmark's: upstream repositories and pipeline outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from builder.benchmark import load_benchmark
from builder.demo import judge, pages, questions, rerankers, retrieval
from builder.demo.relevance import relevance
from builder.demo.texts import DOMAINS, LANGUAGES, load_domain
from provenance import fusion, pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from builder.benchmark import Benchmark
    from builder.demo.questions import Query
    from builder.demo.texts import Domain

_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_SHARD = "test-00000-of-00001.parquet"
_TEXT, _INT, _FLOAT = pa.string(), pa.int64(), pa.float64()


def write(folder: Path, *, seed: int) -> None:
    """Write `upstream/`, `pipeline/` and `pipeline-reread/` into an existing folder."""
    benchmark = load_benchmark("demo")
    for name in DOMAINS:
        domain = load_domain(name, seed=seed)
        _write_upstream(folder / "upstream" / name, domain, seed)
        _write_pipeline(folder, domain, benchmark, seed)


def _write_upstream(folder: Path, domain: Domain, seed: int) -> None:
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(_readme(domain), "utf-8", newline="\n")
    corpus = {
        "image": [
            {"bytes": pages.draw(domain, page, seed=seed), "path": f"{domain.name}-{page.number:03d}.png"}
            for page in domain.pages
        ],
        "id": [page.id for page in domain.pages],
        "text": [page.text for page in domain.pages],
    }
    _write(folder / "corpus" / _SHARD, corpus, {"image": _IMAGE, "id": _TEXT, "text": _TEXT}, features=True)
    rows = questions.labels(domain)
    qrels = {
        "query-id": [query.id for query, _, _ in rows],
        "corpus-id": [page_id for _, page_id, _ in rows],
        "score": [grade for _, _, grade in rows],
    }
    for language in LANGUAGES:
        asked = [query for query in questions.queries(domain) if query.language == language]
        _write(
            folder / f"{language}-queries" / _SHARD,
            {
                "id": [query.id for query in asked],
                "text": [query.text for query in asked],
                "language": [query.language for query in asked],
            },
            {"id": _TEXT, "text": _TEXT, "language": _TEXT},
            features=True,
        )
        # As upstream's: each language's qrels hold the rows of all six.
        _write(
            folder / f"{language}-qrels" / _SHARD,
            qrels,
            {"query-id": _TEXT, "corpus-id": _TEXT, "score": _INT},
            features=True,
        )


def _write_pipeline(folder: Path, domain: Domain, benchmark: Benchmark, seed: int) -> None:
    asked = questions.queries(domain)
    first_stage, pools = _pools(domain, asked, benchmark)
    truth = relevance(domain, seed=seed)
    runs = rerankers.runs(domain, pools, truth, seed=seed)
    for pipeline, reread in (("pipeline", False), ("pipeline-reread", True)):
        base = folder / pipeline
        file = f"{domain.name}.parquet"
        _write(
            base / "first_stage" / file,
            first_stage.to_dict(as_series=False),
            {"retriever": _TEXT, "query-id": _TEXT, "corpus-id": _TEXT, "rank": _INT, "score": _FLOAT},
        )
        _write(
            base / "runs" / file,
            _columns(("model", "query-id", "corpus-id", "score"), runs),
            {"model": _TEXT, "query-id": _TEXT, "corpus-id": _TEXT, "score": _FLOAT},
        )
        for model in judge.JUDGES:
            for stage, calls in _judge(model, domain, pools, truth, seed=seed, reread=reread).items():
                _write_calls(base / "judgements" / model.name / stage / file, calls)


def _pools(domain: Domain, asked: Sequence[Query], benchmark: Benchmark) -> tuple[pl.DataFrame, dict[Query, list[str]]]:
    """The first-stage table with its `rrf_fused` rows, and each query's judged pool in pool order."""
    columns = ("retriever", "query-id", "corpus-id", "rank", "score")
    size, rule = benchmark.pool_size, benchmark.fusion
    lists = pl.DataFrame(retrieval.first_stage(domain, depth=size), schema=list(columns), orient="row")
    fused = fusion.fuse(
        lists, retrievers=rule.retrievers, k=rule.k, depth=size, query_ids=[query.id for query in asked]
    )
    stored = fused.select(pl.lit(fusion.FUSED).alias("retriever"), "query-id", "corpus-id", "rank", "score")
    positives = pl.DataFrame(
        [(query.id, page_id) for query, page_id, _ in questions.labels(domain)],
        schema=["query-id", "corpus-id"],
        orient="row",
    )
    judged = pool.inject(fused, positives, size=size)
    by_query = dict(judged.group_by("query-id", maintain_order=True).agg("corpus-id").iter_rows())
    return pl.concat([lists, stored]), {query: by_query[query.id] for query in asked}


def _judge(
    model: judge.JudgeModel,
    domain: Domain,
    pools: Mapping[Query, Sequence[str]],
    truth: Mapping[tuple[str, str], float],
    *,
    seed: int,
    reread: bool,
) -> dict[str, list[judge.Call]]:
    # Only the first judge's tournament is read again, as in release 2 of the real benchmark.
    again = reread and model is judge.FIRST
    turn = DOMAINS.index(domain.name)
    clerks = {
        "tournament": judge.Clerk("tournament", model.unusable_every, model.odd_every, turn, again),
        "rubric": judge.Clerk("rubric", model.rubric_unusable_every, model.odd_every, turn, reread=False),
    }
    calls: dict[str, list[judge.Call]] = {"tournament": [], "rubric": []}
    for query, page_ids in pools.items():
        seat = judge.take_seat(
            model,
            seed=seed,
            dataset=domain.name,
            query_id=query.id,
            page_ids=page_ids,
            truth=[truth[query.id, page_id] for page_id in page_ids],
        )
        calls["tournament"] += judge.tournament(seat, clerks["tournament"])
        calls["rubric"] += judge.rubric(seat, clerks["rubric"])
    return calls


def _write_calls(path: Path, calls: Sequence[judge.Call]) -> None:
    columns = {
        "query-id": [call.query_id for call in calls],
        "call_index": [call.call_index for call in calls],
        "phase": [call.phase for call in calls],
        "corpus-ids": [list(call.page_ids) for call in calls],
        "answer": [call.answer.text for call in calls],
        "finish_reason": [call.answer.finish_reason for call in calls],
    }
    types = {
        "query-id": _TEXT,
        "call_index": _INT,
        "phase": _TEXT,
        "corpus-ids": pa.list_(_TEXT),
        "answer": _TEXT,
        "finish_reason": _TEXT,
    }
    _write(path, columns, types)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def _write(path: Path, columns: Mapping[str, Any], types: Mapping[str, pa.DataType], *, features: bool = False) -> None:
    """Write columns (name -> values) as Parquet; `features` also names their features as the Hub's datasets do."""
    schema = pa.schema(list(types.items()))
    if features:
        schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": _features(types)}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns), schema=schema), path, compression="zstd")


def _features(types: Mapping[str, pa.DataType]) -> dict[str, dict[str, str]]:
    return {
        name: {"_type": "Image"} if kind == _IMAGE else {"dtype": str(kind), "_type": "Value"}
        for name, kind in types.items()
    }


def _readme(domain: Domain) -> str:
    lines = ["---", "license: apache-2.0", "configs:"]
    for language in LANGUAGES:
        for kind in ("corpus", "queries", "qrels"):
            where = "corpus" if kind == "corpus" else f"{language}-{kind}"
            lines += [
                f"- config_name: {language}-{kind}",
                "  data_files:",
                "  - split: test",
                f"    path: {where}/test-*",
            ]
    return "\n".join([*lines, "---", "", f"{domain.title}: pages drawn for the demo of rcp-release.", ""])
