"""`release build`, `validate`, `results` and `diff` on a made-up world, watched from outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import plain
from benchmarks.processes import Measured, measure
from benchmarks.report import Line
from provenance.gain import gains

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASE = [sys.executable, "-m", "releases"]
STEPS = (
    "inputs",
    "upstream",
    "pool",
    "runs",
    "tournament answers",
    "rubric answers",
    "2pl",
    "gains",
    "write",
    "card and manifest",
)
TAG = "v1-simulated"


def builds(share: float, folder: Path) -> Iterator[Line]:
    """Every command at a share of the queries; what it writes lies in `folder` and is removed."""
    world = folder / "world"
    made = measure([sys.executable, str(ROOT / "scripts" / "make_world"), "--scale", str(share), str(world)], cwd=ROOT)
    _good(made)
    yield Line("(making the world)", share, made.seconds, memory=made.peak.together)
    rows = counted(world)
    built = release("build", "--benchmark", world / "benchmark.toml", "--judge", "simulated", "--out", folder / "one")
    beside = plain.of_build(world, folder / "plain")
    for step in STEPS:
        number, of = rows.get(step, (None, ""))
        # A step of a moment may have been overlooked.
        _, peak = built.steps.get(step, (0.0, None))
        seconds = built.document()["seconds"][step]
        yield Line(
            f"build: {step}", share, seconds, number, of, None if peak is None else peak.together, beside.get(step, "")
        )
    total = sum(number for number, _ in rows.values())
    said = f"main process {built.peak.main / 1e9:.2f} GB; {built.processor:,.0f} s of processors"
    yield Line("build, all of it", share, built.seconds, total, "rows read", built.peak.together, said)
    tree = folder / "one" / TAG
    kept = sum(built.document()["rows"].values())
    proved = release("validate", tree, "--benchmark", world / "benchmark.toml")
    yield Line(
        "validate",
        share,
        proved.seconds,
        kept,
        "rows",
        proved.peak.together,
        f"{plain.of_validate(tree)}; {rules(share)}",
    )
    shown = release("results", tree, "--benchmark", world / "benchmark.toml")
    yield Line("results", share, shown.seconds, rows["runs"][0], "scores", shown.peak.together, plain.of_results(tree))
    recalibrated(world, tree)
    again = release("build", "--benchmark", world / "benchmark.toml", "--judge", "simulated", "--out", folder / "two")
    said = "gains made elsewhere: checked, not fitted"
    yield Line("build of a recalibration", share, again.seconds, None, "", again.peak.together, said)
    # Its leaderboard moves, so it may end with exit code 3, which is a finding and no fault.
    compared = release("diff", tree, folder / "two" / TAG, "--benchmark", world / "benchmark.toml", codes=(0, 3))
    said = plain.of_diff(tree, folder / "two" / TAG)
    yield Line("diff", share, compared.seconds, 2 * kept, "rows", compared.peak.together, said)
    shutil.rmtree(folder)


def release(*arguments: object, codes: tuple[int, ...] = (0,)) -> Measured:
    """Run a command of ours with --json."""
    done = measure([*RELEASE, *map(str, arguments), "--json"], cwd=ROOT, steps=STEPS)
    _good(done, codes)
    return done


def _good(done: Measured, codes: tuple[int, ...] = (0,)) -> None:
    if done.code not in codes:
        raise SystemExit(f"a command ended with {done.code}:\n{done.stderr[-3000:]}")


def counted(world: Path) -> dict[str, tuple[int, str]]:
    """Rows of the files that each step reads."""

    def rows(place: str) -> int:
        return sum(int(pl.scan_parquet(file).select(pl.len()).collect().item()) for file in world.glob(place))

    return {
        "upstream": (rows("upstream/*/corpus/*.parquet"), "pages"),
        "pool": (rows("pipeline/first_stage/*.parquet"), "first-stage rows"),
        "runs": (rows("pipeline/runs/*.parquet"), "scores"),
        "tournament answers": (rows("pipeline/judgements/*/tournament/*.parquet"), "answers"),
        "rubric answers": (rows("pipeline/judgements/*/rubric/*.parquet"), "answers"),
    }


def rules(share: float) -> str:
    """The row rules beside jsonschema, which scripts/bench_validate.py measures."""
    script = [sys.executable, str(ROOT / "scripts" / "bench_validate.py"), "--json", "--share", str(share)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(  # noqa: S603 - our own script
        script, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return "row rules: " + "; ".join(
        f"{kind} {fact['rows_a_second']:,} rows a second, jsonschema {fact['jsonschema_rows_a_second']:,} on a sample "
        f"of {fact['jsonschema_rows']:,}"
        for kind, fact in found.items()
    )


def recalibrated(world: Path, tree: Path) -> None:
    """Give the world other gains, as a recalibration would: each query's theta shifted a little, and each page's."""
    params = json.loads((tree / "provenance" / "item_params.simulated.json").read_text("utf-8"))
    random = np.random.default_rng(29)
    frames = []
    for file in sorted(tree.glob("*__*/qrels.parquet")):
        rows = pl.read_parquet(file, columns=["query-id", "corpus-id", "theta"])
        moved = rows["theta"].to_numpy() + random.normal(0, 0.2, rows.height)
        gain = gains(moved, np.array(params["gamma"]), np.array(params["beta"]), link=params["link"])
        frames.append(
            rows.select(
                pl.lit(file.parent.name.rsplit("__", 1)[0]).alias("domain"), "query-id", "corpus-id"
            ).with_columns(pl.Series("theta", moved), pl.Series("gain", gain))
        )
    folder = world / "pipeline" / "calibration" / "simulated"
    folder.mkdir(parents=True)
    pl.concat(frames).write_parquet(folder / "gains.parquet")
    (folder / "item_params.json").write_text(json.dumps(params), "utf-8")
