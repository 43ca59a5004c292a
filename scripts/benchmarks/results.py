"""The metric at ViDoRe v3's size beside pytrec_eval."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytrec_eval

from benchmarks.report import Line
from builder.ndcg import ndcg

SYSTEMS, QUERIES, PAGES = 14, 14_514, 150


def results(share: float) -> Line:
    """Both metrics and both tie rules from arrays, beside pytrec_eval (tie rule a alone) with its dictionaries."""
    systems, queries, pages = SYSTEMS, max(1, round(QUERIES * share)), PAGES
    random = np.random.default_rng(0)
    # Multiples of 1/1024: exact as float32, in which pytrec_eval holds scores, and tied here and there.
    scores = random.integers(0, 1024, size=(systems, queries, pages)) / 1024
    gains = random.random((queries, pages))
    grades = random.choice([0.0, 1.0, 2.0], p=[0.96, 0.03, 0.01], size=(queries, pages))
    grades[:, 0] = 1.0
    ranked = np.ones(scores.shape, dtype=np.bool_)
    ids = sorted((f"corpus-test-{page}" for page in range(pages)), reverse=True)
    names = [f"query-test-{query}" for query in range(queries)]

    start = time.perf_counter()
    ours = ndcg(scores, ranked, {"rcp": gains, "qrel": grades})
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    start = time.perf_counter()
    # pytrec_eval takes integers: its gains are thousandths, which takes as long.
    tables = (np.round(1000 * gains).astype(int), grades.astype(int))
    evaluators = [
        pytrec_eval.RelevanceEvaluator(
            {name: dict(zip(ids, row, strict=True)) for name, row in zip(names, table.tolist(), strict=True)},
            {"ndcg_cut.10"},
        )
        for table in tables
    ]
    dictionaries, evaluation, furthest = time.perf_counter() - start, 0.0, 0.0
    for system in range(systems):
        start = time.perf_counter()
        rows = zip(names, scores[system].tolist(), strict=True)
        run = {name: dict(zip(ids, row, strict=True)) for name, row in rows}
        filled = time.perf_counter()
        _, measured = (evaluator.evaluate(run) for evaluator in evaluators)
        dictionaries += filled - start
        evaluation += time.perf_counter() - filled
        theirs = np.array([measured[name]["ndcg_cut_10"] for name in names])
        furthest = max(furthest, float(np.abs(theirs - ours["qrel", "a"][system]).max()))
    total = dictionaries + evaluation
    beside = (
        f"both metrics, both tie rules; pytrec_eval, tie rule a alone: {total:,.1f} s ({dictionaries:,.1f} s of them "
        f"its dictionaries): {total / seconds:,.0f} times as long; qrel-nDCG differs by at most {furthest:.0e}"
    )
    return Line("nDCG@10 of 14 rerankers", share, seconds, systems * queries * pages, "scores", peak, beside)
