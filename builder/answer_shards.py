"""Raw answers, a block of queries a shard: decoded, every window accounted for, and abilities fitted within queries.

Method spec sections 5 to 7. A shard reads its rows straight from the file's row groups, in whatever process it is done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from builder import slices
from builder.inputs import ANSWERS
from builder.layout import SCHEMAS
from builder.shards import Shard
from builder.tables import conform, read_frame
from provenance import bradley_terry, windows
from provenance.errors import DataError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from builder.shards import ShardStore, Tables

WINDOWS_A_SHARD = 16_384
"""Windows a shard, at least: a constant, so that shards do not depend on how many workers there are."""
_NULLABLE = frozenset({"answer", "finish_reason"})
_PAIR = ["query-id", "corpus-id"]
_ACCOUNT = b"account"


def begin(stage: windows.Stage, path: Path, pool: Path, store: ShardStore, digests: Mapping[Path, str]) -> Tables:
    """Have the answers of one file read, a block of whole queries a shard.

    Args:
        stage: whose answers they are.
        path: the file of answers.
        pool: the domain's pool as it was written.
        store: has the shards done.
        digests: the SHA-256 of both files.

    Returns:
        A tournament's abilities (query-id, corpus-id, ability), or a rubric's verdicts (as judge_criteria). Each
        table's metadata has the account of its windows (`Account`).

    Raises:
        InputError, DataError: the file is missing or broken. What a shard refuses is raised where its table is read.
    """
    work = _tournament if stage == "tournament" else _rubric
    facts = {"answers": digests[path], "pool": digests[pool]}
    return store.start(
        [
            Shard(work, (block, pool), facts | {"queries": list(block.values)})
            for block in slices.by_queries([path], ANSWERS, rows=WINDOWS_A_SHARD)
        ]
    )


def _tournament(block: slices.Slice, pool: Path) -> pa.Table:
    """The abilities of a block's queries, with the account of its windows."""
    parsed = windows.parse_tournament(_read(block, "tournament", pool))
    abilities = bradley_terry.fit(parsed.scores, parsed.shown)
    return _accounted(abilities.to_arrow(), parsed.windows)


def _rubric(block: slices.Slice, pool: Path) -> pa.Table:
    """The verdicts of a block's queries, with the account of its windows."""
    parsed = windows.parse_rubric(_read(block, "rubric", pool))
    return _accounted(conform(parsed.placements, "judge_criteria"), parsed.windows)


def _read(block: slices.Slice, stage: windows.Stage, pool: Path) -> pl.DataFrame:
    """A block's rows, checked as windows of pages of the pool."""
    file = str(block.parts[0][0])
    table, rows = slices.read(block, ANSWERS, nullable=_NULLABLE)
    with slices.numbered(rows, file):
        table = windows.checked(table, stage, file=file)
    shown = table.select("query-id", pl.col("corpus-ids").alias("corpus-id")).explode("corpus-id").unique()
    foreign = shown.join(pairs(pool), on=_PAIR, how="anti").sort(_PAIR)
    if foreign.height:
        query, page = foreign.row(0)
        raise DataError(
            f"a window of query {quoted(query)} shows a page that is not in its pool ({foreign.height} such pairs)",
            where=Where(file, column="corpus-ids", value=page),
            remedy="the answers belong to another pool: judge and build from the same first stage.",
        )
    return table


def pairs(pool: Path) -> pl.DataFrame:
    """The pairs of a pool: query-id, corpus-id."""
    return read_frame(pool, pa.schema([SCHEMAS["pool"].field(name) for name in _PAIR]))


def _accounted(table: pa.Table, judged: pl.DataFrame) -> pa.Table:
    return table.replace_schema_metadata(
        {_ACCOUNT: json.dumps({"counts": windows.account(judged), "flagged": windows.flagged(judged)})}
    )


@dataclass
class Account:
    """A stage's windows: counts by phase and outcome, and the queries with too many unusable ones."""

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    flagged: list[dict[str, Any]] = field(default_factory=list)

    def add(self, table: pa.Table) -> None:
        """Add what a shard says of its windows."""
        shard = json.loads(table.schema.metadata[_ACCOUNT])
        self.flagged += shard["flagged"]
        for phase, outcomes in shard["counts"].items():
            total = self.counts.setdefault(phase, dict.fromkeys(outcomes, 0))
            for outcome, number in outcomes.items():
                total[outcome] += number

    def in_order(self) -> dict[str, dict[str, int]]:
        """The counts, phases in their order."""
        return {phase: self.counts[phase] for phase in windows.PHASES["tournament"] if phase in self.counts}


def frames(tables: Iterable[pa.Table], account: Account) -> Iterator[pl.DataFrame]:
    """The shards' frames; what they say of their windows is added to `account`."""
    for table in tables:
        account.add(table)
        yield pl.DataFrame(pl.from_arrow(table))
