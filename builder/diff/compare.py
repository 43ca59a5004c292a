"""What changed between two releases, as one document (DESIGN section 5, `release diff`).

Tables of equal sha256 are not read row by row. The others are read a domain at a time; memory is that of one
domain's tables.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from builder.diff.changelog import relation
from builder.diff.gains import GainChanges, gain_changes, gains_document
from builder.diff.held import held, promised
from builder.diff.results import Values, board_documents, common_benchmark, replay_domain, same_values
from builder.diff.rows import OLD, Matched, RowChanges, count, differs, key, match
from builder.diff.sides import Part, Side, identical, part_changes, qrels
from builder.diff.top import TopChanges, top_changes, top_document
from builder.diff.windows import items_document, windows_document
from builder.layout import PROVENANCE_KINDS, SUBSET_KINDS
from builder.steps import Steps
from provenance.errors import UsageError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from builder.benchmark import Benchmark

FORMAT = "rcp-release.diff.v1"
_PAIR = ["query-id", "corpus-id"]


@dataclass
class _Work:
    """A comparison under way."""

    old: Side
    new: Side
    benchmark: Benchmark
    common: Benchmark
    steps: Steps
    changes: dict[Part, RowChanges] = field(default_factory=dict)
    by_digest: set[Part] = field(default_factory=set)
    gains: list[GainChanges] = field(default_factory=list)
    tops: list[TopChanges] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)


def compare(old: Side, new: Side, benchmark: Benchmark, steps: Steps) -> dict[str, Any]:
    """Compare two releases of a benchmark.

    Args:
        old: the earlier release.
        new: the later one.
        benchmark: their benchmark file: systems, native languages, the order of domains.
        steps: times the steps and reports them.

    Returns:
        A JSON document: `old`, `new`, `relation`, `files`, `tables` by kind, `held` (what must not change),
        `gains`, `ideal_top`, `leaderboards`, `windows`, `item_params`. Fractions are unrounded; None is undefined.

    Raises:
        InputError, DataError: a table is missing or broken, or a key stands twice in one.
    """
    _refuse_strangers(old, new)
    work = _Work(old, new, benchmark, common_benchmark(benchmark, old, new), steps)
    for domain in [part.name for part in _parts(work, "corpus")]:
        with steps.time("tables", domain):
            _tables(work, domain)
        with steps.time("gains", domain):
            _gains(work, domain)
    boards: list[dict[str, Any]] = []
    if work.values:
        with steps.time("leaderboards"):
            boards = list(board_documents(work.common, work.values))
    tables = _by_kind(work)
    windows = [_document(side, "windows") for side in (old, new)]
    items = [_document(side, "item_params") for side in (old, new)]
    promise = promised(old.releases, new.releases)
    return {
        "format": FORMAT,
        "benchmark": benchmark.name,
        "old": _side(old),
        "new": _side(new),
        "relation": promise,
        "files": _files(old, new),
        "tables": tables,
        "held": held(
            tables,
            promise["may_change"],
            qrel_ndcg=same_values(work.values, "qrel") if work.values else None,
            documents={"windows": windows, "item_params": items},
        ),
        "gains": gains_document(work.gains),
        "ideal_top": top_document(work.tops),
        "leaderboards": boards,
        "windows": windows_document(*windows),
        "item_params": items_document(*items),
    }


def relation_to(old: Side, new: Side, benchmark: Benchmark) -> dict[str, Any]:
    """What a card says of the release before (`changelog.relation`); arguments and errors as `compare`."""
    return relation(compare(old, new, benchmark, Steps(lambda: 0.0)))


def _refuse_strangers(old: Side, new: Side) -> None:
    names = [side.tree.releases.get("benchmark") for side in (old, new)]
    if None not in names and names[0] != names[1]:
        raise UsageError(
            f"these are releases of two benchmarks, '{names[0]}' and '{names[1]}'",
            where=Where(new.label),
            remedy="name two releases of one benchmark.",
        )


def _parts(work: _Work, kind: str) -> list[Part]:
    """The tables of a kind in either release, the new card's order first."""
    return [part for part in dict.fromkeys([*work.new.parts, *work.old.parts]) if part.kind == kind]


def _of(part: Part, domain: str) -> bool:
    return part.name == domain or part.name.rsplit("__", 1)[0] == domain


def _tables(work: _Work, domain: str) -> None:
    """Compare a domain's tables, all but its qrels."""
    for kind in (*SUBSET_KINDS, *PROVENANCE_KINDS):
        for part in _parts(work, kind):
            if kind != "qrels" and _of(part, domain):
                work.changes[part] = _part(work, part)


def _part(work: _Work, part: Part) -> RowChanges:
    if part not in work.old.parts:
        rows = work.new.rows(part)
        return RowChanges(rows_new=rows, added=rows)
    if part not in work.new.parts:
        rows = work.old.rows(part)
        return RowChanges(rows_old=rows, removed=rows)
    if identical(work.old, work.new, part):
        work.by_digest.add(part)
        rows = work.new.rows(part)
        return RowChanges(rows, rows)
    return part_changes(work.old, work.new, part)


def _gains(work: _Work, domain: str) -> None:
    """Match a domain's qrels, and from them its gains, its ideal lists and its runs' values."""
    matched: dict[Part, Matched] = {}
    for part in _parts(work, "qrels"):
        if _of(part, domain):
            if part in work.old.parts and part in work.new.parts:
                matched[part] = _qrels(work, part)
                work.changes[part] = count(matched[part])
            else:
                work.changes[part] = _part(work, part)
    if not matched:
        return
    with_old = ["gain", "theta", "gain" + OLD, "theta" + OLD]
    work.gains.append(gain_changes(domain, pl.concat(item.both.select(*_PAIR, *with_old) for item in matched.values())))
    work.tops.append(top_changes(domain, pl.concat(_pairs(item) for item in matched.values())))
    if domain in work.common.domains:
        shared = {part.name.rsplit("__", 1)[1]: item for part, item in matched.items()}
        languages = {name: shared[name] for name in work.common.languages}
        work.values[domain] = replay_domain(
            work.common,
            domain,
            (work.old, work.new),
            (
                {name: _before(item) for name, item in languages.items()},
                {name: _now(item) for name, item in languages.items()},
            ),
            same_runs=work.changes[Part("runs", domain)].none,
            same_labels=all(_same_labels(item) for item in languages.values()),
            same_gains=all(not item.both.select(differs("gain").any()).item() for item in languages.values()),
        )


def _qrels(work: _Work, part: Part) -> Matched:
    now = qrels(work.new, part)
    if identical(work.old, work.new, part):
        work.by_digest.add(part)
        return match(now, now, key("qrels"), what=part.name)
    before = qrels(work.old, part)
    return match(before, now, key("qrels"), what=f"qrels of {part.name}")


def _pairs(item: Matched) -> pl.DataFrame:
    """query-id, corpus-id, gain, gain@old of every pair of either release."""
    was = pl.col("gain").alias("gain" + OLD)
    none = pl.lit(None, pl.Float64)
    return pl.concat(
        [
            item.both.select(*_PAIR, "gain", "gain" + OLD),
            item.added.select(*_PAIR, "gain", none.alias("gain" + OLD)),
            item.removed.select(*_PAIR, none.alias("gain"), was),
        ]
    )


def _before(item: Matched) -> pl.DataFrame:
    both = item.both.select(*_PAIR, *(pl.col(name + OLD).alias(name) for name in ("score", "gain")))
    return pl.concat([both, item.removed.select(both.columns)])


def _now(item: Matched) -> pl.DataFrame:
    both = item.both.select(*_PAIR, "score", "gain")
    return pl.concat([both, item.added.select(both.columns)])


def _same_labels(item: Matched) -> bool:
    """Whether pairs and labels are the same, and the same pairs have a gain."""
    other = differs("score") | (pl.col("gain").is_null() != pl.col("gain" + OLD).is_null())
    return not (item.added.height or item.removed.height or item.both.select(other.any()).item())


def _by_kind(work: _Work) -> dict[str, Any]:
    """By kind that either release has: its tables and the sum of their row changes."""
    by_kind: dict[str, list[Part]] = defaultdict(list)
    for kind in (*SUBSET_KINDS, *PROVENANCE_KINDS):
        by_kind[kind] = [part for part in work.changes if part.kind == kind]
    found = {}
    for kind, parts in by_kind.items():
        if parts:
            total = sum((work.changes[part] for part in parts), RowChanges())
            found[kind] = {
                "tables": len(parts),
                "same_by_digest": sum(part in work.by_digest for part in parts),
                "differing": [part.name for part in parts if not work.changes[part].none],
                "only_old": [part.name for part in parts if part not in work.new.parts],
                "only_new": [part.name for part in parts if part not in work.old.parts],
                "rows_old": total.rows_old,
                "rows_new": total.rows_new,
                "added": total.added,
                "removed": total.removed,
                "changed": total.changed,
                "columns": dict(total.columns),
            }
    return found


def _files(old: Side, new: Side) -> dict[str, Any]:
    """Files by path and bytes (sha256); the manifest itself, which names them, is left out."""
    both = [name for name in new.files if name in old.files]
    changed = [name for name in both if old.files[name]["sha256"] != new.files[name]["sha256"]]
    return {
        "old": len(old.files),
        "new": len(new.files),
        "same": len(both) - len(changed),
        "added": sorted(new.files.keys() - old.files.keys()),
        "removed": sorted(old.files.keys() - new.files.keys()),
        "changed": sorted(changed),
    }


def _document(side: Side, stem: str) -> Mapping[str, Any] | None:
    """The windows or item parameters of a release's judge; None where it has none."""
    judge = side.judge()
    if judge is None:
        return None
    return side.tree.item_params(judge) if stem == "item_params" else side.tree.windows(judge)


def _side(side: Side) -> dict[str, Any]:
    own = side.own
    judge = own.get("judge")
    known = judge if isinstance(judge, dict) else {"name": judge if isinstance(judge, str) else side.judge()}
    return {
        "label": side.label,
        "tag": own.get("tag"),
        "number": own.get("number"),
        "judge": known.get("name"),
        "model": known.get("model"),
        "simulated": known.get("simulated") is True,
        "sealed": side.sealed,
    }
