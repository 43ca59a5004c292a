"""The proofs of a tree before it is published: the one place that asks for them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from builder import demo, report
from builder.digests import sha256_file
from builder.layout import MANIFEST
from builder.proofs.facts import Facts
from builder.validate import validate
from provenance.errors import InputError, SafetyError, Where
from releases.remote_validate import plain_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from builder.benchmark import Benchmark
    from releases.ledger.chain import Entry

_SHOWN = 10


def prove(
    tree: Path, benchmark: Benchmark, entries: Sequence[Entry], say: Callable[[str], None], *, fetched: bool
) -> bool:
    """Run every proof of `release validate`.

    Against upstream where it lies on this machine, and against the predecessor: its tree beside `tree`, or fetched.

    Args:
        tree: the release.
        benchmark: of which it is one.
        entries: the ledger.
        say: where progress goes.
        fetched: whether the predecessor may be fetched from the benchmark's repository.

    Returns:
        True: nothing failed. What is not provable here is no failure.

    Raises:
        SafetyError: a proof failed; up to ten failures are named.
        InputError: the predecessor's tree is not here, so what may not change cannot be proved.
    """
    before = [entry for entry in entries if entry.tag != tree.name]
    with _predecessor(tree, benchmark, before[-1] if before else None, say, fetched=fetched) as against:
        facts = Facts(
            tree,
            benchmark=benchmark,
            upstream=upstream_here(benchmark),
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


@contextlib.contextmanager
def _predecessor(
    tree: Path, benchmark: Benchmark, last: Entry | None, say: Callable[[str], None], *, fetched: bool
) -> Iterator[Path | None]:
    """The tree of the release before, as it was published; None where there is none, or it never had a manifest."""
    if last is None:
        yield None
        return
    if last.manifest_sha256 is None:
        say(f"{last.tag} has no manifest: what may not change (C3) is not proved here")
        yield None
        return
    beside = tree.parent / last.tag
    if _is(beside, last.manifest_sha256):
        yield beside
        return
    named = f"{benchmark.repo}@{last.revision}"
    if not fetched:
        raise InputError(
            f"the tree of the release before, {last.tag}, is not beside this one as it was published: what may not "
            "change (C3) cannot be proved",
            where=Where(str(beside)),
            remedy=f"put it there: hf download {benchmark.repo} --repo-type dataset --revision "
            f"{last.revision or last.tag} --local-dir {beside}",
        )
    with plain_tree(named) as found:
        if not _is(found, last.manifest_sha256):
            raise SafetyError(
                f"what {named} holds is not {last.tag} as it was published",
                where=Where(str(found / MANIFEST)),
                remedy="nothing was published; `release verify` says what is wrong with the remote.",
            )
        yield found


def _is(tree: Path, manifest_sha256: str | None) -> bool:
    file = tree / MANIFEST
    return manifest_sha256 is not None and file.is_file() and sha256_file(file) == manifest_sha256


def upstream_here(benchmark: Benchmark) -> dict[str, Path]:
    """Upstream's folders that lie on this machine."""
    folders = {
        name: demo.resolve(item.upstream) if item.upstream.startswith(demo.SCHEME) else Path(item.upstream)
        for name, item in benchmark.domains.items()
    }
    return {name: folder for name, folder in folders.items() if folder.is_dir()}
