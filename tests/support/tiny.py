"""A benchmark small enough to read: one domain, two languages, four questions, ten pages, pools of six."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LANGUAGES = {"english": "eng-Latn", "french": "fra-Latn"}
QUERIES = {
    "english": {"query-test-0": "how is paper made", "query-test-2": "what is glue"},
    "french": {"query-test-1": "comment fait-on le papier", "query-test-10": "qu'est-ce que la colle"},
}
PAGES = [f"corpus-test-{number}" for number in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11)]
LABELS = {
    "query-test-0": {"corpus-test-1": 2, "corpus-test-10": 1},
    "query-test-1": {"corpus-test-1": 2, "corpus-test-10": 1},
    "query-test-2": {"corpus-test-4": 1},
    "query-test-10": {"corpus-test-4": 1},
}
POOL_SIZE = 6
IMAGE_FEATURES = {
    "info": {
        "features": {
            "image": {"_type": "Image"},
            "id": {"dtype": "string", "_type": "Value"},
            "text": {"dtype": "string", "_type": "Value"},
        }
    }
}
BENCHMARK = """
name = "tiny"
title = "RCP-nDCG on a tiny world"
repo = "example/rcp-ndcg-tiny"
task_prefix = "Tiny"
split = "test"
pool_size = 6

[card]
licence = "cc-by-4.0"
tags = ["retrieval"]
domain_labels = { paper = "Paper & glue" }
retriever_names = { one = "One", two = "Two" }

[languages]
english = "eng-Latn"
french = "fra-Latn"

[fusion]
k = 60
retrievers = ["one", "two"]

[domains.paper]
native_language = "english"
task = "Paper"
upstream = "upstream/paper"

[judges.toy]
model = "toy/judge"
slug = "toy"
simulated = true
inputs = "pipeline"

[rerankers]
flat = "Flat"
steep = "Steep"
"""


def write_world(folder: Path) -> Path:
    """Write the whole world into `folder`; returns the benchmark file."""
    folder.mkdir(parents=True, exist_ok=True)
    benchmark = folder / "benchmark.toml"
    benchmark.write_text(BENCHMARK, encoding="utf-8")
    _write_upstream(folder / "upstream" / "paper")
    _write_first_stage(folder / "pipeline" / "first_stage" / "paper.parquet")
    _write_answers(folder / "pipeline" / "judgements" / "toy")
    _write_runs(folder / "pipeline" / "runs" / "paper.parquet")
    return benchmark


def write_rows(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> None:
    """A list of rows as a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """A Parquet file as a list of rows."""
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def edit_rows(path: Path, edit: Any) -> None:
    """Read a Parquet file as rows, pass them through `edit` (which returns the new rows), write them back."""
    table = pq.read_table(path)
    write_rows(path, edit(table.to_pylist()), table.schema)


def edit_table(path: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Read a Parquet file as a table, pass it through `edit`, write it back."""
    pq.write_table(edit(pq.read_table(path)), path)


def png(number: int) -> bytes:
    """A valid 1x1 PNG that differs from page to page by a comment: bytes to carry, never to decode."""
    import struct  # noqa: PLC0415 - only needed here
    import zlib  # noqa: PLC0415

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    comment = chunk(b"tEXt", b"Comment\0page " + str(number).encode())
    pixels = chunk(b"IDAT", zlib.compress(bytes([0, number % 256])))
    return b"\x89PNG\r\n\x1a\n" + header + comment + pixels + chunk(b"IEND", b"")


def pool_of(query: str) -> list[str]:
    """The pool that fusion and injection give a question (see tests of the pool for the rule)."""
    first = _ranked(query)
    pool = first[:POOL_SIZE]
    missing = sorted(page for page in LABELS[query] if page not in pool)
    for page in missing:
        slot = next(i for i in reversed(range(POOL_SIZE)) if pool[i] not in LABELS[query] and pool[i] in first)
        pool[slot] = page
    return pool


def _ranked(query: str) -> list[str]:
    # Both retrievers agree, so the fused order is theirs; page 10 is last for the first two questions: it is injected.
    return [page for page in PAGES if page != "corpus-test-11"] if query in {"query-test-0", "query-test-1"} else PAGES


def _write_upstream(folder: Path) -> None:
    rows = [
        {
            "image": {"bytes": png(number), "path": f"page-{number}.png"},
            "id": page,
            "text": "" if number == 9 else f"text of {page}",
        }
        for number, page in enumerate(PAGES)
    ]
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema(
        [("image", image), ("id", pa.string()), ("text", pa.string())],
        metadata={b"huggingface": json.dumps(IMAGE_FEATURES).encode()},
    )
    write_rows(folder / "corpus" / "test-00000-of-00001.parquet", rows, schema)
    every_label = [
        {"query-id": query, "corpus-id": page, "score": score}
        for query, labels in LABELS.items()
        for page, score in labels.items()
    ]
    lines = ["---", "configs:"]
    for language, queries in QUERIES.items():
        write_rows(
            folder / f"{language}-queries" / "test-00000-of-00001.parquet",
            [{"id": query, "text": text, "language": language} for query, text in queries.items()],
        )
        write_rows(folder / f"{language}-qrels" / "test-00000-of-00001.parquet", every_label)
        for kind, path in (
            ("corpus", "corpus/test-*"),
            ("queries", f"{language}-queries/test-*"),
            ("qrels", f"{language}-qrels/test-*"),
        ):
            lines += [f"- config_name: {language}-{kind}", "  data_files:", "  - split: test", f"    path: {path}"]
    (folder / "README.md").write_text("\n".join([*lines, "---", "", "A tiny upstream.", ""]), encoding="utf-8")


def _write_first_stage(path: Path) -> None:
    rows = [
        {"retriever": retriever, "query-id": query, "corpus-id": page, "rank": rank, "score": 1.0 / rank}
        for retriever in ("one", "two")
        for queries in QUERIES.values()
        for query in queries
        for rank, page in enumerate(_ranked(query), start=1)
    ]
    write_rows(path, rows)


def _relevance(query: str, page: str) -> float:
    return {2: 3.0, 1: 1.0}.get(LABELS[query].get(page, 0), -1.5 + 0.1 * (PAGES.index(page) % 4))


def _write_answers(folder: Path) -> None:
    random_ = random.Random("tiny")
    tournament, rubric = [], []
    for queries in QUERIES.values():
        for query in queries:
            pool = pool_of(query)
            windows = [random_.sample(pool, 4) for _ in range(8)] + [list(reversed(pool)), pool]
            for call, shown in enumerate(windows):
                scores = {
                    f"doc_{n}": round(_relevance(query, page) + random_.uniform(-0.8, 0.8), 1)
                    for n, page in enumerate(shown, start=1)
                }
                ranking = sorted(scores, key=lambda doc: -scores[doc])
                tournament.append(
                    _window(query, call, "random", shown, {"reasoning": "r", "ranking": ranking, "scores": scores})
                )
                verdicts = {
                    f"doc_{n}": {
                        "reasoning": "r",
                        "criteria": {
                            f"C{c}": int(_relevance(query, page) + random_.gauss(0, 1.0) > 0.8 * c - 2.4)
                            for c in range(1, 6)
                        },
                    }
                    for n, page in enumerate(shown, start=1)
                }
                rubric.append(_window(query, call, "random" if call < 5 else "stratified", shown, verdicts))
    tournament[3]["answer"] = "no answer, only prose"
    rubric[3] |= {"answer": rubric[3]["answer"][:40], "finish_reason": "length"}
    write_rows(folder / "tournament" / "paper.parquet", tournament)
    write_rows(folder / "rubric" / "paper.parquet", rubric)


def _window(query: str, call: int, phase: str, shown: list[str], answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "query-id": query,
        "call_index": call,
        "phase": phase,
        "corpus-ids": shown,
        "answer": json.dumps(answer),
        "finish_reason": "stop",
    }


def _write_runs(path: Path) -> None:
    rows = [
        {
            "model": model,
            "query-id": query,
            "corpus-id": page,
            "score": 0.5 if model == "flat" else round(_relevance(query, page), 1),
        }
        for model in ("steep", "flat")
        for queries in QUERIES.values()
        for query in queries
        for page in pool_of(query)
    ]
    write_rows(path, rows)
