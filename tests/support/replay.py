"""An independent replay of leaderboards: scikit-learn and pytrec_eval, query by query, from plain rows."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import pytrec_eval
from sklearn.metrics import ndcg_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Qrels = dict[str, dict[str, tuple[int, float]]]
Run = dict[str, dict[str, float]]


def as_qrels(rows: Iterable[tuple[str, str, int, float]]) -> Qrels:
    """Rows (query, page, grade, gain) by query and page."""
    qrels: Qrels = defaultdict(dict)
    for query, page, grade, gain in rows:
        qrels[query][page] = (grade, gain)
    return qrels


def as_run(rows: Iterable[tuple[str, str, float]]) -> Run:
    """Rows (query, page, score) by query and page."""
    run: Run = defaultdict(dict)
    for query, page, score in rows:
        run[query][page] = score
    return run


def mean_ndcg(qrels: Qrels, run: Run, metric: str, rule: str) -> float:
    """The mean nDCG@10 over the queries of `qrels`; every pool page is scored, every query has a positive."""
    if rule == "a" and metric == "qrel":
        return statistics.fmean(_trec(qrels, run))
    values = []
    for query, judged in qrels.items():
        pages = sorted(judged)
        scores = [run[query][page] for page in pages]
        if rule == "a":
            order = sorted(range(len(pages)), key=lambda index: (scores[index], pages[index]))
            scores = [float(order.index(index)) for index in range(len(pages))]
        gains = [judged[page][0 if metric == "qrel" else 1] for page in pages]
        values.append(float(ndcg_score([gains], [scores], k=10)))
    return statistics.fmean(values)


def domain_cell(subsets: Mapping[str, Qrels], native: str, run: Run, *, view: str, metric: str, rule: str) -> float:
    """A cell: the native subset's mean, or the mean of the subset means."""
    languages = [native] if view == "native" else list(subsets)
    return statistics.fmean(mean_ndcg(subsets[language], run, metric, rule) for language in languages)


def _trec(qrels: Qrels, run: Run) -> list[float]:
    """pytrec_eval's ndcg_cut.10 a query. It holds scores as float32, so it is given their dense ranks instead."""
    grades = {query: {page: grade for page, (grade, _) in judged.items()} for query, judged in qrels.items()}
    ranked = {}
    for query in qrels:
        levels = {score: float(level) for level, score in enumerate(sorted(set(run[query].values())))}
        ranked[query] = {page: levels[score] for page, score in run[query].items()}
    measured = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10"}).evaluate(ranked)
    return [measured[query]["ndcg_cut_10"] for query in qrels]
