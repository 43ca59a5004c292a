"""`release build`: upstream data and judge inputs become a release tree (DESIGN sections 1, 3 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from builder import expected, figures
from builder.assemble import Request, Work, judge, write_judged, write_pool, write_runs, write_upstream
from builder.calibrate import LINK
from builder.digests import sha256_file
from builder.inputs import open_inputs, refuse_changed
from builder.output import new_tree, sole_writer
from builder.seal import seal
from builder.shards import shard_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from builder.runner import Runner
    from builder.steps import Steps

__all__ = ["LINK", "Request", "build"]


def build(
    request: Request, out: Path, runners: Callable[[], AbstractContextManager[Runner]], steps: Steps
) -> dict[str, Any]:
    """Build a release tree into `out/<tag>`, all or nothing; the same inputs give the same bytes.

    Finished shards lie in `out/.<tag>.shards` until the tree is there. They are kept when the build is killed,
    interrupted or loses its workers, and the next one goes on from them.

    Args:
        request: what to build.
        out: the folder of trees.
        runners: gives the runner of shards; results do not depend on it.
        steps: times the steps and reports them.

    Returns:
        tag, tree, rows a config, windows by outcome, the fit's objective and iterations, shards done and reused,
        seconds a step.

    Raises:
        InputError, DataError, FitError: bad input, or no matplotlib to draw with; nothing is left at `out`.
        SafetyError: something else lies at `out/<tag>`, or another build of it is under way.
        RemoteError: a worker died.
    """
    benchmark = request.benchmark
    tag = request.numbering.tag(benchmark.judge(request.judge))
    if request.figures:
        figures.require()
    place = out / tag
    with (
        sole_writer(place),
        runners() as runner,
        shard_store(out / f".{tag}.shards", runner) as store,
        new_tree(place) as tree,
    ):
        work = Work(request, tree, open_inputs(request.inputs.path, request.judge), store, steps)
        with steps.time("inputs"):
            files = work.inputs.files()
            work.digests |= zip(files, runner.map(sha256_file, files), strict=True)
            refuse_changed(work.inputs.path, work.digests)
        for domain in benchmark.domains.values():
            write_upstream(work, domain)
            write_pool(work, domain.name)
        without_text = {
            name: set(item.pages.frame.filter(pl.col("text") == "")["id"]) for name, item in work.upstream.items()
        }
        expected.check_pools(benchmark, work.pools, without_text)
        write_runs(work)
        judged = judge(work)
        with steps.time("write"):
            write_judged(work, judged)
        report = seal(work, judged, tag)
        shards = {"done": store.done, "reused": store.reused}
    seconds = {name: round(value, 3) for name, value in steps.seconds.items()}
    return {"tag": tag, "tree": str(place), **report, "shards": shards, "seconds": seconds}
