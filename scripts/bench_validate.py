"""Row rules at full scale: rows a second and peak memory of the compiled check, beside jsonschema row by row.

    python scripts/bench_validate.py [--share 0.01]

Two generated tables of ViDoRe v3's real size: 2,177,100 qrels rows and 14,513,880 judge-criteria rows. Each is
checked three times in a process of its own (the median counts), whose peak memory is shown. `jsonschema` is run on a
sample of the same rows in the same run, since all of them would take half an hour; its rows are Python dictionaries
already, which flatters it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from builder.json_schemas import Validator, schema
from builder.layout import CRITERIA, SCHEMAS
from builder.row_rules import check_file

if TYPE_CHECKING:
    from collections.abc import Iterator

QRELS_ROWS = 14_514 * 150
CRITERIA_ROWS = 14_513_880
SAMPLE = 20_000
BLOCK = 262_144
SEED = 20_261


def main() -> None:
    """Generate, check, compare, print."""
    parser = argparse.ArgumentParser(description="Row rules at full scale.")
    parser.add_argument("--share", type=float, default=1.0, help="of the full number of rows")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, rows in (("qrels", QRELS_ROWS), ("judge_criteria", CRITERIA_ROWS)):
            path = Path(folder) / f"{kind}.parquet"
            write(path, kind, max(1, int(rows * args.share)))
            results[kind] = measure(path, kind)
    print(json.dumps(results, indent=2) if args.json else table(results))


def write(path: Path, kind: str, rows: int) -> None:
    """A table of good rows, written a block at a time."""
    with pq.ParquetWriter(path, SCHEMAS[kind], compression="zstd", write_page_index=True) as writer:
        for start in range(0, rows, BLOCK):
            numbers = np.arange(start, min(start + BLOCK, rows))
            rng = np.random.default_rng([SEED, start])
            columns = qrels(numbers, rng) if kind == "qrels" else criteria(numbers, rng)
            writer.write_table(pa.table(columns, schema=SCHEMAS[kind]), row_group_size=BLOCK)


def ids(prefix: str, numbers: np.ndarray) -> pa.Array:
    """`query-test-<n>` or `corpus-test-<n>`."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "-")


def qrels(numbers: np.ndarray, rng: np.random.Generator) -> dict[str, pa.Array]:
    """Rows of qrels: 150 pages a query."""
    theta = rng.normal(-1.5, 2.0, len(numbers))
    return {
        "query-id": ids("query-test", numbers // 150),
        "corpus-id": ids("corpus-test", rng.integers(0, 5244, len(numbers))),
        "score": pa.array(rng.choice([0, 1, 2], len(numbers), p=[0.96, 0.02, 0.02])),
        "gain": pa.array(1 / (1 + np.exp(-theta))),
        "theta": pa.array(theta),
    }


def criteria(numbers: np.ndarray, rng: np.random.Generator) -> dict[str, pa.Array]:
    """Rows of judge criteria: 100 windows of 10 pages a query."""
    return {
        "query-id": ids("query-test", numbers // 1000),
        "call_index": pa.array(numbers % 1000 // 10),
        "corpus-id": ids("corpus-test", rng.integers(0, 5244, len(numbers))),
        **{name: pa.array(rng.integers(0, 2, len(numbers))) for name in CRITERIA},
        "finish_reason": pa.array(["stop"] * len(numbers)),
    }


def measure(path: Path, kind: str) -> dict[str, float]:
    """The compiled check on the whole file, and jsonschema on a sample of it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        rows, failures, runs, peak = pool.apply(check, (path, kind))
    seconds = statistics.median(runs)
    sampled, plain = by_jsonschema(path, kind)
    compiled_rate, plain_rate = rows / seconds, sampled / plain
    return {
        "rows": rows,
        "failures": failures,
        "seconds": round(seconds, 3),
        "first_run_seconds": round(runs[0], 3),
        "rows_a_second": round(compiled_rate),
        "peak_memory_mb": round(peak),
        "jsonschema_rows": sampled,
        "jsonschema_rows_a_second": round(plain_rate),
        "times_faster": round(compiled_rate / plain_rate),
    }


def check(path: Path, kind: str) -> tuple[int, int, list[float], float]:
    """Rows, failures, seconds of each of three runs, and the process' peak memory in MB."""
    runs = []
    for _ in range(3):
        start = time.perf_counter()
        rows, failures = check_file(path, schema(kind))
        runs.append(time.perf_counter() - start)
    return rows, failures.height, runs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_jsonschema(path: Path, kind: str) -> tuple[int, float]:
    """Rows and seconds of jsonschema on rows spread over the whole file."""
    sample = list(_sample(path))
    validator = Validator(schema(kind))
    start = time.perf_counter()
    good = sum(validator.is_valid(row) for row in sample)
    seconds = time.perf_counter() - start
    if good != len(sample):
        raise SystemExit(f"jsonschema refuses {len(sample) - good} generated rows")
    return len(sample), seconds


def _sample(path: Path) -> Iterator[dict[str, object]]:
    with pq.ParquetFile(path) as file:
        each = max(1, SAMPLE // file.metadata.num_row_groups)
        for group in range(file.metadata.num_row_groups):
            yield from file.read_row_group(group).slice(0, each).to_pylist()


def table(results: dict[str, dict[str, float]]) -> str:
    """The results as text."""
    lines = [
        f"{'table':<15}{'rows':>12}{'seconds':>9}{'rows/s':>13}{'peak MB':>9}{'jsonschema rows/s':>19}{'times':>8}"
    ]
    lines += [
        f"{kind:<15}{r['rows']:>12,}{r['seconds']:>9.2f}{r['rows_a_second']:>13,}{r['peak_memory_mb']:>9,}"
        f"{r['jsonschema_rows_a_second']:>19,}{r['times_faster']:>8,}"
        for kind, r in results.items()
    ]
    sampled = ", ".join(f"{r['jsonschema_rows']:,} {kind} rows" for kind, r in results.items())
    return "\n".join([*lines, f"jsonschema ran on a sample of the same rows: {sampled}."])


if __name__ == "__main__":
    main()
