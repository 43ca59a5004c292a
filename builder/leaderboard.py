"""Leaderboards: runs and qrels -> per-query values -> the tables of a release (method spec sections 10 and 11).

A table is one of {native, six-language} x {rcp, qrel, count} x {tie rule a, b}. Means are exactly rounded sums
(`math.fsum`) divided by the count, so that no order of rows or queries changes a bit of them:

* native: a domain's mean over the queries in its native language;
* six-language: a domain's mean of the means of its subsets;
* Mean: over the domains, unweighted, of the unrounded domain values.

Values stay unrounded fractions. Only `printed` rounds: `format(100 * value, ".1f")`, percent to one decimal, where the
exact binary value decides and a half goes to the even digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from builder.layout import CRITERIA
from builder.ndcg import TIE_RULES, Metric, TieRule, ndcg
from builder.ndcg import K as DEFAULT_K
from provenance.errors import DataError, Where
from provenance.ids import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from builder.benchmark import Benchmark

View: TypeAlias = Literal["native", "six-language"]
VIEWS: tuple[View, ...] = get_args(View)
MEAN = "mean"
PAIR = ("query-id", "corpus-id")


@dataclass(frozen=True)
class DomainValues:
    """Per-query nDCG of every system in one domain.

    Attributes:
        domain: its name.
        models: the systems, in the order of the arrays' first axis.
        queries: [query-id, language] in the order of the second axis (canonical order).
        ranked: (systems, queries) whether the system ranked at least one page of the pool.
        values: (systems, queries) by (metric, tie rule); NaN for a query that the metric leaves out.
    """

    domain: str
    models: tuple[str, ...]
    queries: pl.DataFrame
    ranked: NDArray[np.bool_]
    values: Mapping[tuple[Metric, TieRule], NDArray[np.float64]]

    def columns_of(self, language: str) -> NDArray[np.intp]:
        """The positions of the queries in a language."""
        return np.flatnonzero((self.queries["language"] == language).to_numpy())


@dataclass(frozen=True)
class Leaderboard:
    """One table.

    Attributes:
        view: which queries.
        metric: which gains.
        ties: which tie rule.
        k: the cut.
        models: the systems' run names, in the benchmark's order, one's own runs last.
        rows: their table names.
        columns: the domains in the benchmark's order, then `mean`.
        values: (rows, columns) fractions; NaN where a system ranked no query of a subset (and then in its mean).
    """

    view: View
    metric: Metric
    ties: TieRule
    k: int
    models: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64]


def printed(value: float) -> str:
    """A value as tables print it: percent, one decimal; a dash for one that is not defined."""
    return "-" if math.isnan(value) else format(100 * value, ".1f")


def count_gains(criteria: pl.DataFrame, *, where: str) -> pl.DataFrame:
    """The share of passed verdicts over a page's placements: [query-id, corpus-id, count] (method spec section 9.1).

    Args:
        criteria: [query-id, corpus-id, C1..C5], a row a placement.
        where: the file, for messages.

    Raises:
        DataError: a verdict is neither 0 nor 1.
    """
    for criterion in CRITERIA:
        wrong = criteria.with_row_index("row").filter(~pl.col(criterion).is_in([0, 1]).fill_null(value=False))
        if len(wrong):
            raise DataError(
                "a verdict is neither 0 nor 1",
                where=Where(where, int(wrong["row"][0]), criterion, wrong[criterion][0]),
                remedy="rebuild the tree: the criteria hold valid rubric windows only.",
            )
    passed, asked = pl.sum_horizontal(pl.col(CRITERIA).sum()), len(CRITERIA) * pl.len()
    return criteria.group_by(PAIR).agg((passed.cast(pl.Float64) / asked.cast(pl.Float64)).alias("count"))


def domain_values(
    domain: str,
    qrels: Mapping[str, pl.DataFrame],
    runs: pl.DataFrame,
    *,
    models: Sequence[str],
    metrics: Sequence[Metric] = ("rcp", "qrel"),
    ties: Sequence[TieRule] = TIE_RULES,
    k: int = DEFAULT_K,
    count: pl.DataFrame | None = None,
) -> DomainValues:
    """Replay the runs of a domain.

    Only pages of the judged pool are ranked (rows of the qrels with a gain); other scored pages are dropped. A labelled
    page outside the pool counts in the ideal of qrel-nDCG. A null score is not ranked.

    Args:
        domain: its name, for messages.
        qrels: by language, [query-id, corpus-id, score, gain]: one row a pool pair, and one with a null gain for each
            labelled page outside the pool.
        runs: [model, query-id, corpus-id, score], any order; models that are not asked for are left alone.
        models: which systems, and in which order.
        metrics: which gains.
        ties: which tie rules.
        k: the cut.
        count: [query-id, corpus-id, count] of `count_gains`, needed for the metric `count`.

    Raises:
        DataError: a pair appears twice, a query is in two languages, a score is not finite, a gain is negative, a
            page of the pool has no grade or no criteria.
    """
    pages = _pages(domain, qrels)
    gains = _gains(domain, pages, metrics, count)
    queries = pages.select("query-id", "language").unique(maintain_order=True)
    shape = (len(models), len(queries), gains[metrics[0]].shape[1])
    scores, ranked = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    pool = pages.filter(pl.col("gain").is_not_null()).select(*PAIR, "row", "column")
    for position, model in enumerate(models):
        run = runs.filter(pl.col("model") == model)
        _refuse_bad_rows(run, f"runs of {domain}, model {model}")
        found = run.drop_nulls("score").join(pool, on=PAIR, how="inner")
        place = (position, found["row"].to_numpy(), found["column"].to_numpy())
        scores[place] = found["score"].to_numpy()
        ranked[place] = True
    values = ndcg(scores, ranked, gains, k=k, ties=ties)
    return DomainValues(domain, tuple(models), queries, np.any(ranked, axis=2), values)


def leaderboard(
    benchmark: Benchmark,
    domains: Mapping[str, DomainValues],
    *,
    view: View,
    metric: Metric,
    ties: TieRule,
    names: Mapping[str, str],
    k: int = DEFAULT_K,
) -> Leaderboard:
    """Aggregate per-query values to one table.

    Args:
        benchmark: the order of domains and languages, and the native languages.
        domains: by domain, the values; all of the same systems.
        view: which queries.
        metric: which gains.
        ties: which tie rule.
        names: run name -> table name, in table order; each is a system of every domain.
        k: the cut that the values were computed with.
    """
    cells = np.full((len(names), len(benchmark.domains)), math.nan)
    labelled = np.zeros(len(benchmark.domains), dtype=np.bool_)
    for column, (name, domain) in enumerate(benchmark.domains.items()):
        values = domains[name]
        languages = [domain.native_language] if view == "native" else list(benchmark.languages)
        asked = np.concatenate([values.columns_of(language) for language in languages])
        labelled[column] = not np.isnan(values.values[metric, ties][:, asked]).all()
        for row, model in enumerate(names):
            cells[row, column] = _domain_mean(values, values.models.index(model), languages, metric, ties)
    # A domain without a labelled query is left out of every Mean; one that a system did not rank leaves that system
    # without a Mean, because it would not compare.
    means = [[_mean(row[labelled])] for row in cells]
    columns = (*benchmark.domains, MEAN)
    table = np.hstack([cells, np.asarray(means).reshape(len(names), 1)])
    return Leaderboard(view, metric, ties, k, tuple(names), tuple(names.values()), columns, table)


def _domain_mean(values: DomainValues, system: int, languages: Iterable[str], metric: Metric, ties: TieRule) -> float:
    """The mean of the subset means; NaN where the system ranked nothing in a subset."""
    means = []
    for language in languages:
        columns = values.columns_of(language)
        if not values.ranked[system, columns].any():
            return math.nan
        of_queries = values.values[metric, ties][system, columns]
        labelled = of_queries[~np.isnan(of_queries)]
        if len(labelled):
            means.append(_mean(labelled))
    return _mean(np.asarray(means))


def _mean(values: NDArray[np.float64]) -> float:
    """The exactly rounded sum over the count; NaN of nothing, and where a value is NaN."""
    return math.fsum(values) / len(values) if len(values) else math.nan


def _pages(domain: str, qrels: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Every judged pair with its array position: `row` in canonical query order, `column` by document id descending."""
    stacked = pl.concat(
        frame.select(*PAIR, "score", "gain").with_columns(language=pl.lit(language))
        for language, frame in qrels.items()
    )
    twice = stacked.filter(stacked.select(PAIR).is_duplicated())
    if len(twice):
        query, page = twice.row(0)[:2]
        raise DataError(
            f"page {page} appears twice for query {query}",
            where=Where(f"qrels of {domain}", column="corpus-id", value=page),
            remedy="a query has one row a page, in one language: rebuild the tree.",
        )
    spoken = stacked.group_by("query-id").agg(pl.col("language").n_unique()).filter(pl.col("language") > 1)
    if len(spoken):
        query, languages = spoken.sort("query-id").row(0)
        raise DataError(
            f"query {query} is in {languages} languages",
            where=Where(f"qrels of {domain}", column="query-id", value=query),
            remedy="a query belongs to one subset of its domain: rebuild the tree.",
        )
    ordered = canonical(stacked.sort("corpus-id", descending=True))
    return ordered.with_columns(
        row=pl.col("query-id").rle_id().cast(pl.Int64), column=pl.int_range(pl.len()).over("query-id")
    )


def _gains(
    domain: str, pages: pl.DataFrame, metrics: Sequence[Metric], count: pl.DataFrame | None
) -> dict[Metric, NDArray[np.float64]]:
    """By metric, the (queries, pages) array of gains; 0 outside the pool and beyond the end of a smaller one."""
    columns: dict[Metric, str] = {"rcp": "gain", "qrel": "score", "count": "count"}
    if "count" in metrics:
        if count is None:
            raise DataError(
                "Count-nDCG needs the judge's criteria",
                remedy="the tree has no provenance/judge_criteria; leave it out.",
            )
        pages = pages.join(count, on=PAIR, how="left", maintain_order="left")
    place = (pages["row"].to_numpy(), pages["column"].to_numpy())
    shape = tuple(int(indices.max(initial=-1)) + 1 for indices in place)
    gains: dict[Metric, NDArray[np.float64]] = {}
    for metric in metrics:
        has_gain = pl.lit(value=True) if metric == "qrel" else pl.col("gain").is_not_null()
        missing = pages.filter(has_gain & pl.col(columns[metric]).is_null())
        if len(missing):
            query, page = missing.row(0)[:2]
            raise DataError(
                f"page {page} of query {query} has no {columns[metric]} ({len(missing)} pairs have none)",
                where=Where(f"qrels of {domain}", column=columns[metric]),
                remedy="every page of a pool needs one: rebuild the tree.",
            )
        table = np.zeros(shape)
        column = pl.when(has_gain).then(pl.col(columns[metric])).otherwise(0).cast(pl.Float64)
        table[place] = pages.select(column).to_series().to_numpy()
        gains[metric] = table
    return gains


def _refuse_bad_rows(run: pl.DataFrame, where: str) -> None:
    """Refuse a pair that is scored twice, and NaN or infinite scores."""
    twice = run.filter(run.select(PAIR).is_duplicated())
    if len(twice):
        raise DataError(
            f"page {twice['corpus-id'][0]} is scored twice for query {twice['query-id'][0]}",
            where=Where(where, column="corpus-id", value=twice["corpus-id"][0]),
            remedy="a run scores each page of a query once.",
        )
    infinite = run.filter(~pl.col("score").is_finite())
    if len(infinite):
        raise DataError(
            f"the score of page {infinite['corpus-id'][0]} for query {infinite['query-id'][0]} is not finite",
            where=Where(where, column="score", value=infinite["score"][0]),
            remedy="leave out the pages that were not ranked (or leave their score null).",
        )
