"""Baselines of a build's steps: the plain way to touch the same rows, with no check and no proof, in this process.

They bound from below what any tool has to spend, with polars' and pyarrow's own speed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANSWERS = 20_000  # answers of each stage on which json.loads is timed


def seconds_of(work: Callable[[], None]) -> float:
    """The clock's seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def files(folder: Path, place: str) -> list[Path]:
    """The files at a place, of which there must be some: a baseline of nothing is none."""
    found = sorted(folder.glob(place))
    if not found:
        raise SystemExit(f"there is no {place} in {folder}")
    return found


def of_build(world: Path, folder: Path) -> dict[str, str]:
    """By step: the plain way and its seconds. What it writes lies in `folder`, which is removed."""
    pipeline = world / "pipeline"
    folder.mkdir()

    def corpora() -> None:
        for file in files(world, "upstream/*/corpus/*.parquet"):
            copy = shutil.copy(file, folder / file.parent.parent.name)
            with open(copy, "rb") as bytes_:  # noqa: PTH123 - as file_digest takes it
                hashlib.file_digest(bytes_, "sha256")

    def fused() -> None:
        for file in files(pipeline, "first_stage/*.parquet"):
            fused = (1 / (60 + pl.col("rank"))).sum().alias("fused")
            rows = pl.read_parquet(file).group_by("query-id", "corpus-id").agg(fused)
            rows.sort("query-id", "fused", descending=[False, True])

    def copied() -> None:
        for file in files(pipeline, "runs/*.parquet"):
            pq.write_table(pq.read_table(file), folder / file.name)

    found = {
        "upstream": f"copying and hashing the corpora: {seconds_of(corpora):,.2f} s",
        "pool": f"one polars group_by that fuses, no order within ties: {seconds_of(fused):,.2f} s",
        "runs": f"pyarrow reads and writes the same rows, unchecked: {seconds_of(copied):,.2f} s",
        **{f"{stage} answers": _loads(pipeline, stage) for stage in ("tournament", "rubric")},
        "2pl": "see '2PL fit'",
    }
    shutil.rmtree(folder)
    return found


def _loads(pipeline: Path, stage: str) -> str:
    found = files(pipeline, f"judgements/*/{stage}/*.parquet")
    every = sum(pq.read_metadata(file).num_rows for file in found)
    sample = pl.scan_parquet(found[0]).select("answer").head(ANSWERS).collect()["answer"].to_list()

    def load() -> None:
        for answer in sample:
            try:
                json.loads(answer)
            except ValueError:
                continue  # a malformed answer

    seconds = seconds_of(load)
    whole = seconds / len(sample) * every
    return f"json.loads alone, one process: {whole:,.2f} s, extrapolated from {len(sample):,} answers"


def of_validate(tree: Path) -> str:
    """Hash every file and let pyarrow read every table."""

    def read() -> None:
        for file in sorted(path for path in tree.rglob("*") if path.is_file()):
            with open(file, "rb") as bytes_:  # noqa: PTH123 - as file_digest takes it
                hashlib.file_digest(bytes_, "sha256")
            if file.suffix == ".parquet":
                pq.read_table(file)

    return f"hashing every file and reading every table: {seconds_of(read):,.2f} s"


def of_results(tree: Path) -> str:
    """Sort each query's pages by score and cut at ten, with polars alone."""

    def top() -> None:
        for file in files(tree, "provenance/runs/*.parquet"):
            rows = pl.read_parquet(file, columns=["model", "query-id", "score"])
            rows.sort("model", "query-id", "score", descending=[False, False, True]).group_by("model", "query-id").head(
                10
            )

    return f"polars sorts the scores and cuts at 10, no metric: {seconds_of(top):,.2f} s"


def of_diff(old: Path, new: Path) -> str:
    """Join both releases' qrels and runs with polars and count the rows that differ."""

    def join() -> None:
        for place, keys, value in (
            ("*__*/qrels.parquet", ["query-id", "corpus-id"], "gain"),
            ("provenance/runs/*.parquet", ["model", "query-id", "corpus-id"], "score"),
        ):
            for file in files(old, place):
                columns = [*keys, value]
                one = pl.read_parquet(file, columns=columns)
                two = pl.read_parquet(new / file.relative_to(old), columns=columns)
                one.join(two, on=keys, how="full").filter(pl.col(value) != pl.col(f"{value}_right")).height  # noqa: B018

    return f"polars joins both releases' qrels and runs: {seconds_of(join):,.2f} s"
