"""The proofs of a tree before it is published: the one place that asks for them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from builder import demo, report
from builder.digests import sha256_file
from builder.layout import MANIFEST
from builder.proofs.facts import Facts
from builder.validate import validate
from provenance.errors import SafetyError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from builder.benchmark import Benchmark
    from releases.ledger.chain import Entry

_SHOWN = 10


def prove(tree: Path, benchmark: Benchmark, entries: Sequence[Entry], say: Callable[[str], None]) -> bool:
    """Run every proof of `release validate`: against upstream where it lies on this machine, and against the
    predecessor's tree where that lies beside `tree`.

    Returns:
        True: nothing failed. What is not provable here is no failure.

    Raises:
        SafetyError: a proof failed; up to ten failures are named.
    """
    before = [entry for entry in entries if entry.tag != tree.name]
    against = tree.parent / before[-1].tag if before else None
    if against is not None and not _is(against, before[-1].manifest_sha256):
        say(f"the predecessor's tree is not in {tree.parent}: what may not change (C3) is not proved here")
        against = None
    facts = Facts(
        tree,
        benchmark=benchmark,
        upstream=_upstream(benchmark),
        against=None if against is None else Facts(against),
    )
    result = validate(facts, clock=time.perf_counter, say=lambda _message: None)
    say(f"proofs: {len(result.named('passed'))} hold, {len(result.named('not provable'))} not provable here")
    if not result.holds(strict=False):
        lines = [
            f"{outcome.proof}: {failure['file'] or failure['config']}: {failure['message']}"
            for outcome in result.outcomes
            for failure in report.first_a_rule(outcome.failures).iter_rows(named=True)
        ]
        more = f"\n    and {result.failures - _SHOWN} more" if result.failures > _SHOWN else ""
        raise SafetyError(
            f"the tree fails its proofs ({', '.join(result.named('failed'))}):\n    "
            + "\n    ".join(lines[:_SHOWN])
            + more,
            where=Where(str(tree)),
            remedy="nothing was published. `release validate` shows every failure; build the release again.",
        )
    return True


def _is(tree: Path, manifest_sha256: str | None) -> bool:
    file = tree / MANIFEST
    return manifest_sha256 is not None and file.is_file() and sha256_file(file) == manifest_sha256


def _upstream(benchmark: Benchmark) -> dict[str, Path]:
    """Upstream's folders that lie on this machine."""
    folders = {
        name: demo.resolve(item.upstream) if item.upstream.startswith(demo.SCHEME) else Path(item.upstream)
        for name, item in benchmark.domains.items()
    }
    return {name: folder for name, folder in folders.items() if folder.is_dir()}
