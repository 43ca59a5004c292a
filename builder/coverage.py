"""How a run and a benchmark meet: what is cut away, and what is missing.

A run that covers a benchmark in part is scored where it can be, and what is missing is said; it is never scored as 0
in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from builder.own_run import COLUMNS, SUBSET, refuse_duplicates
from provenance.errors import DataError, Where
from provenance.shown import plain, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Subset

_SHOWN = 5


@dataclass(frozen=True)
class SubsetCoverage:
    """What a run says about one subset.

    Attributes:
        subset: its name.
        queries: how many it has.
        missing: the queries of which the run ranks no page of the pool; canonical order.
        pairs: how many pool pairs it has.
        ranked: how many of them the run ranks.
    """

    subset: str
    queries: int
    missing: tuple[str, ...]
    pairs: int
    ranked: int


@dataclass(frozen=True)
class Coverage:
    """How a run and a benchmark meet.

    Attributes:
        subsets: every subset of the benchmark.
        foreign_queries: queries of the run that the benchmark does not have; sorted.
        foreign_pairs: how many rows name a page outside the query's pool, or a foreign query; they are not ranked.
        foreign_pair: the first of them that is in no pool, for a person to see; None where there is none.
        unscored: how many rows have a null score.
    """

    subsets: tuple[SubsetCoverage, ...]
    foreign_queries: tuple[str, ...]
    foreign_pairs: int
    foreign_pair: str | None
    unscored: int

    def remarks(self) -> list[str]:
        """What a reader of the run's scores must know, a sentence each; none for a complete run."""
        lines = []
        absent = [part.subset for part in self.subsets if len(part.missing) == part.queries]
        if absent:
            lines.append(f"nothing is ranked in {_some(absent)}: no score there, and no mean over it.")
        lines.extend(
            f"{part.subset}: {len(part.missing)} of {part.queries} queries have no ranked page and score 0 "
            f"({_some(part.missing)})."
            for part in self.subsets
            if 0 < len(part.missing) < part.queries
        )
        met = [part for part in self.subsets if part.subset not in absent]
        pairs, ranked = sum(part.pairs for part in met), sum(part.ranked for part in met)
        if ranked < pairs:
            lines.append(f"{pairs - ranked} of {pairs} pool pairs of these subsets are not ranked.")
        if self.foreign_queries:
            lines.append(
                f"queries that the benchmark lacks: {len(self.foreign_queries)} ({_some(self.foreign_queries)})."
            )
        if self.foreign_pairs:
            example = "" if self.foreign_pair is None else f", e.g. {self.foreign_pair}"
            lines.append(f"rows outside the pools, left out: {self.foreign_pairs}{example}.")
        return lines


@dataclass(frozen=True)
class MatchedRun:
    """A run cut to a benchmark: by domain, [query-id, corpus-id, score] of pool pairs; and its coverage."""

    domains: Mapping[str, pl.DataFrame]
    coverage: Coverage


def match_run(run: pl.DataFrame, qrels: Mapping[Subset, pl.DataFrame], *, where: str) -> MatchedRun:
    """Cut a run to the pools of a benchmark and say how much of it is covered.

    Args:
        run: [query-id, corpus-id, score] and perhaps subset (the name of a subset or of a domain).
        qrels: by subset, [query-id, corpus-id, gain]; the pool is the rows with a gain.
        where: the run's file, for messages.

    Raises:
        DataError: nothing matches; no score is there; an id is in several domains and the run does not say which is
            meant; an unknown subset name.
    """
    pool = pl.concat(
        frame.filter(pl.col("gain").is_not_null()).select(
            "query-id", "corpus-id", domain=pl.lit(subset.domain), of=pl.lit(subset.name)
        )
        for subset, frame in qrels.items()
    )
    located = _locate(run, pool.select("query-id", "domain", "of").unique(), where)
    found = located.join(pool, on=["query-id", "corpus-id", "domain", "of"], how="inner")
    ranked = found.drop_nulls("score")
    if ranked.is_empty() and len(found):
        raise DataError(
            "the run has no score: all those of the benchmark's pairs are empty",
            where=Where(where, column="score"),
            remedy="write a number where a page was ranked; an empty score means 'not ranked'.",
        )
    if ranked.is_empty():
        first = f" (its first: {_pair(run)})" if len(run) else ""
        raise DataError(
            f"the run matches nothing of this benchmark: none of its pairs is in a pool{first}",
            where=Where(where),
            remedy=f"use the benchmark's ids, e.g. query '{pool['query-id'][0]}' with page '{pool['corpus-id'][0]}'.",
        )
    foreign = run.join(pool.select("query-id").unique(), on="query-id", how="anti")["query-id"].unique().sort()
    outside = run.join(pool.select("query-id", "corpus-id").unique(), on=["query-id", "corpus-id"], how="anti")
    coverage = Coverage(
        subsets=tuple(_subset_coverage(subset.name, frame, ranked) for subset, frame in qrels.items()),
        foreign_queries=tuple(foreign),
        foreign_pairs=len(run) - len(found),
        foreign_pair=_pair(outside) if len(outside) else None,
        unscored=run["score"].null_count(),
    )
    domains = dict.fromkeys(subset.domain for subset in qrels)
    return MatchedRun({name: found.filter(pl.col("domain") == name).select(COLUMNS) for name in domains}, coverage)


def _locate(run: pl.DataFrame, queries: pl.DataFrame, where: str) -> pl.DataFrame:
    """The run's rows of known queries with the subset each belongs to, in columns `domain` and `of`."""
    if SUBSET not in run.columns:
        domains = (
            queries.group_by("query-id").agg(pl.col("domain").unique().sort()).filter(pl.col("domain").list.len() > 1)
        )
        repeated = domains.join(run.select("query-id").unique(), on="query-id", how="semi").sort("query-id")
        if len(repeated):
            query, among = repeated.row(0)
            raise DataError(
                f"query {quoted(query)} is in {len(among)} domains ({_some(among)}), and the run does not say which it "
                "means",
                where=Where(where, column="query-id", value=query),
                remedy="add a column 'subset' (a subset's or a domain's name), or give a folder with one file each.",
            )
        return run.join(queries, on="query-id", how="inner")
    known = [*queries["of"].unique(), *queries["domain"].unique()]
    unknown = run.with_row_index("row").filter(~pl.col(SUBSET).is_in(known).fill_null(value=False))
    if len(unknown):
        raise DataError(
            f"{quoted(unknown[SUBSET][0])} is no subset and no domain of this benchmark",
            where=Where(where, unknown["row"][0], SUBSET, unknown[SUBSET][0]),
            remedy=f"name one of {', '.join(sorted(known))}.",
        )
    by_subset = run.join(queries.with_columns(pl.col("of").alias(SUBSET)), on=["query-id", SUBSET], how="inner")
    by_domain = run.join(queries.with_columns(pl.col("domain").alias(SUBSET)), on=["query-id", SUBSET], how="inner")
    located = pl.concat([by_subset, by_domain])
    refuse_duplicates(located.select(*COLUMNS, pl.col("of").alias(SUBSET)), where)
    return located


def _subset_coverage(name: str, qrels: pl.DataFrame, ranked: pl.DataFrame) -> SubsetCoverage:
    met = ranked.filter(pl.col("of") == name)
    queries = qrels["query-id"].unique(maintain_order=True)
    missing = queries.filter(~queries.is_in(met["query-id"].unique().implode()))
    return SubsetCoverage(name, len(queries), tuple(missing), qrels["gain"].count(), len(met))


def _pair(run: pl.DataFrame) -> str:
    """The first row's ids, in ASCII: a name that joins nothing may look like one that does."""
    return f"query {quoted(run['query-id'][0])} with page {quoted(run['corpus-id'][0])}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(plain(name) for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
