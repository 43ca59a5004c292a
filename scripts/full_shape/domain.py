"""One domain: upstream, first stage, both judge stages and the runs, from one latent relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from builder.layout import SCHEMAS
from full_shape.judges import Desk, Faults, write_rubric, write_tournament
from full_shape.pages import query_order, write_upstream
from full_shape.shares import POOL
from full_shape.tables import BLOCK, Tables, names, page_id, query_id
from provenance.fusion import fuse
from provenance.pool import inject

if TYPE_CHECKING:
    from pathlib import Path

    from full_shape.shares import Share, Written

CANDIDATES = 320


class Labels(NamedTuple):
    """Labels of some queries: their numbers, the pages', which of them no retriever finds; and pages without text."""

    query: np.ndarray
    page: np.ndarray
    missed: np.ndarray
    blank: np.ndarray


def write_domain(out: Path, share: Share) -> Written:
    """One domain: upstream and pipeline; returns its counts."""
    random = np.random.default_rng([share.seed, share.index])
    tables = Tables(out)
    labels, blank = write_upstream(out, tables, share, random)
    queries = len(query_order(share))
    missed = np.zeros(len(labels), dtype=bool)
    missed[random.permutation(len(labels))[: share.counts["injected"]]] = True
    desk = Desk(tables, share.name, random, Faults(share.counts, random, queries))
    runs = np.empty((len(share.models), queries, POOL))
    pools = np.empty((queries, POOL), dtype=np.int64)
    for first in range(0, queries, BLOCK):
        block = np.arange(first, min(first + BLOCK, queries))
        own = np.flatnonzero((labels[:, 0] >= block[0]) & (labels[:, 0] <= block[-1]))
        found = Labels(labels[own, 0], labels[own, 1], missed[own], blank)
        pools[block], truth = write_first_stage(tables, share, random, block, found)
        write_tournament(desk, block, pools[block], truth)
        write_rubric(desk, block, pools[block], truth)
        for model in range(len(share.models)):
            scores = truth + random.normal(0, 0.5 + 0.1 * model, truth.shape)
            # Every other reranker gives probabilities of few digits, so that scores tie.
            runs[model, block] = np.round(1 / (1 + np.exp(-scores)), 3) if model % 2 else scores
    write_runs(tables, share, pools, runs)
    tables.close()
    return {"name": share.name, **share.counts}


def write_first_stage(
    tables: Tables,
    share: Share,
    random: np.random.Generator,
    block: np.ndarray,
    labels: Labels,
) -> tuple[np.ndarray, np.ndarray]:
    """Three ranked lists a query; returns the page numbers of each pool and their latent relevance."""
    rows, pages = len(block), len(labels.blank)
    key = random.random((rows, pages))
    key[:, labels.blank] = 2.0
    of, page = labels.query - block[0], labels.page
    key[of, page] = np.where(labels.missed, 2.0, -1.0)
    free = int((key < 2.0).sum(axis=1).min())  # noqa: PLR2004 - pages that no retriever returns
    candidates = np.argpartition(key, min(CANDIDATES, free) - 1, axis=1)[:, : min(CANDIDATES, free)]
    latent = random.normal(-1.6, 1.3, (rows, pages))
    latent[of, page] = 3.0 + np.abs(random.normal(0, 0.7, len(of)))
    seen = np.take_along_axis(latent, candidates, axis=1)
    lists = []
    for name in share.retrievers:
        score = seen + random.normal(0, 0.6, seen.shape)
        best = np.argsort(-score, axis=1)[:, :POOL]
        lists.append(
            pa.table(
                {
                    "retriever": pa.DictionaryArray.from_arrays(np.zeros(best.size, dtype=np.int32), [name]),
                    "query-id": names("query", np.repeat(block, POOL)),
                    "corpus-id": names("corpus", np.take_along_axis(candidates, best, axis=1)),
                    "rank": np.tile(np.arange(1, POOL + 1), rows),
                    "score": np.take_along_axis(score, best, axis=1).ravel(),
                }
            ).cast(SCHEMAS["first_stage"])
        )
    table = pa.concat_tables(lists)
    tables.add(f"pipeline/first_stage/{share.name}.parquet", table)
    ids = [query_id(n) for n in block]
    fused = fuse(pl.DataFrame(pl.from_arrow(table)), retrievers=share.retrievers, k=60, depth=POOL, query_ids=ids)
    positive = pl.DataFrame({"query-id": [query_id(n) for n in labels.query], "corpus-id": [page_id(p) for p in page]})
    pool = inject(fused, positive, size=POOL)
    numbers = pool["corpus-id"].str.split("-").list.last().cast(pl.Int64).to_numpy().reshape(rows, POOL)
    return numbers, np.take_along_axis(latent, numbers, axis=1)


def write_runs(tables: Tables, share: Share, pools: np.ndarray, runs: np.ndarray) -> None:
    """Each model's scores, best first, a model after the other."""
    for model, scores in zip(share.models, runs, strict=True):
        for first in range(0, len(pools), 8 * BLOCK):
            block = slice(first, first + 8 * BLOCK)
            best = np.argsort(-scores[block], axis=1, kind="stable")
            numbers = np.arange(first, first + len(best))
            table = pa.table(
                {
                    "model": pa.DictionaryArray.from_arrays(np.zeros(best.size, dtype=np.int32), [model]),
                    "query-id": names("query", np.repeat(numbers, POOL)),
                    "corpus-id": names("corpus", np.take_along_axis(pools[block], best, axis=1)),
                    "score": np.take_along_axis(scores[block], best, axis=1).ravel(),
                }
            )
            plain = {
                field.name: pa.string() if pa.types.is_dictionary(field.type) else field.type for field in table.schema
            }
            tables.add(f"pipeline/runs/{share.name}.parquet", table.cast(pa.schema(list(plain.items()))))
