"""Upstream: pages, questions and labels of one domain; and the order of its queries."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from PIL import Image

from builder.layout import SCHEMAS
from builder.tables import CORPUS_METADATA
from full_shape.tables import Tables, page_id, prose, query_id

if TYPE_CHECKING:
    from pathlib import Path

    from full_shape.shares import Share


def write_upstream(
    out: Path, tables: Tables, share: Share, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pages, questions, labels; returns (query number, page number) of each label and which pages have no text."""
    counts, root = share.counts, f"upstream/{share.name}"
    pages = counts["pages"]
    blank = np.zeros(pages, dtype=bool)
    shuffled = random.permutation(pages)
    blank[shuffled[: counts["pages_without_text"]]] = True
    texts = [f"# Page {page}\n\n{prose(random, 180)}" for page in range(pages)]
    with_text = shuffled[counts["pages_without_text"] :]
    distinct = counts["distinct_texts"] - (1 if blank.any() else 0)
    for page in with_text[distinct:]:
        texts[page] = texts[with_text[0]]
    for page in np.flatnonzero(blank):
        texts[page] = ""
    schema = SCHEMAS["corpus"].with_metadata(CORPUS_METADATA)
    for first in range(0, pages, 500):
        rows = range(first, min(first + 500, pages))
        images = [{"bytes": picture(random, page), "path": f"page_{page}.jpg"} for page in rows]
        data = {"image": images, "id": [page_id(p) for p in rows], "text": [texts[p] for p in rows]}
        tables.add(f"{root}/corpus/test-00000-of-00001.parquet", pa.table(data, schema=schema))
    order = query_order(share)
    labelled = with_text[: counts["labelled_pages"]]
    place = np.arange(counts["labels"])
    asked = (place % len(labelled) + place // len(labelled)) % counts["queries"]
    pairs = np.stack([asked, labelled[place % len(labelled)]], axis=1)
    grades = random.integers(1, 3, len(pairs))
    every = {"query-id": [], "corpus-id": [], "score": []}
    labels = []
    for language in range(len(share.languages)):
        numbers = np.array([n for n, (of, _) in enumerate(order) if of == language])
        labels.append(np.stack([numbers[pairs[:, 0]], pairs[:, 1]], axis=1))
        every["query-id"] += [query_id(n) for n in labels[-1][:, 0]]
        every["corpus-id"] += [page_id(p) for p in labels[-1][:, 1]]
        every["score"] += grades.tolist()
    for language, name in enumerate(share.languages):
        numbers = [n for n, (of, _) in enumerate(order) if of == language]
        text = [f"{name}: where does the {prose(random, 8).strip('.')} stand?" for _ in numbers]
        asked_in = {"id": [query_id(n) for n in numbers], "text": text, "language": [name] * len(numbers)}
        tables.add(f"{root}/{name}-queries/test-00000-of-00001.parquet", pa.table(asked_in))
        tables.add(f"{root}/{name}-qrels/test-00000-of-00001.parquet", pa.table(every))
    entries = "".join(
        f"- config_name: {name}-{kind}\n  data_files:\n  - split: test\n    path: {folder}/test-*\n"
        for name in share.languages
        for kind, folder in (("corpus", "corpus"), ("queries", f"{name}-queries"), ("qrels", f"{name}-qrels"))
    )
    (out / root / "README.md").write_text(f"---\nlicense: cc0-1.0\nconfigs:\n{entries}---\n\nMade up.\n", "utf-8")
    return np.concatenate(labels), blank


def query_order(share: Share) -> list[tuple[int, int]]:
    """(language, question) of each query number: two batches of language blocks, as most domains upstream have."""
    asked, languages = share.counts["queries"], range(len(share.languages))
    half = asked // 2
    return [(of, q) for batch in (range(half), range(half, asked)) for of in languages for q in batch]


def picture(random: np.random.Generator, page: int) -> bytes:
    """A small JPEG; no two pages have the same."""
    pixels = random.integers(0, 256, (12, 9, 3), dtype=np.uint8)
    pixels[0, 0] = [page % 256, page // 256 % 256, 7]
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((72, 96)).save(buffer, "JPEG", quality=70, comment=str(page).encode())
    return buffer.getvalue()
