"""The metric against its worked numbers, a plain loop, scikit-learn, pytrec_eval and brute force."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import ndcg_score
from support.plain_ndcg import plain_ndcg

from builder.ndcg import TIE_RULES, Metric, TieRule, dcg, ideal_dcg, ndcg
from provenance.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

L = math.log2(3)

RERANKER_SCORES = {
    591: 0.9609375,
    641: 0.95703125,
    603: 0.9453125,
    646: 0.91015625,
    604: 0.89453125,
    606: 0.88671875,
    601: 0.8359375,
    590: 0.70703125,
    643: 0.65234375,
    587: 0.62109375,
    602: 0.62109375,
}
RERANKER_GAINS = {
    485: 0.8485621083554453,
    521: 0.7976766844683422,
    545: 0.5947730473675333,
    587: 0.4442322545051289,
    590: 0.7833224148301204,
    591: 0.8970193041430923,
    592: 0.8328470943055565,
    598: 0.5969526935922028,
    601: 0.7591418876463392,
    602: 0.4972298499631581,
    603: 0.5854880877198808,
    604: 0.4755659283890064,
    606: 0.46377638687913775,
    641: 0.5300889679008732,
    643: 0.5866025418469998,
    646: 0.44491430239403784,
}
RERANKER_QRELS = dict.fromkeys((485, 521, 545, 587, 591, 592, 595, 598, 641), 1) | {590: 2, 601: 2}


def one(scores: dict[Any, float], gains: dict[Any, float], *, k: int, ties: TieRule, metric: Metric = "rcp") -> float:
    """One query through the array code: pages are laid out by id descending."""
    pages = sorted({str(page) for page in (*scores, *gains)}, reverse=True)
    by_id = {str(page): score for page, score in scores.items()}
    gain_of = {str(page): gain for page, gain in gains.items()}
    table = np.array([[[by_id.get(page, math.nan) for page in pages]]])
    found = ndcg(
        table,
        ~np.isnan(table),
        {metric: np.array([[float(gain_of.get(page, 0.0)) for page in pages]])},
        k=k,
        ties=[ties],
    )
    return float(found[metric, ties][0, 0])


def test_dcg_worked_number() -> None:
    """Gains 3, 2, 1 have DCG 4.7618595 at 3 and 4.2618595 at 2 (method spec section 17.1)."""
    gains = np.array([[3.0, 2.0, 1.0]])
    assert [3 + 2 / L + 0.5] == dcg(gains, k=3).tolist()
    assert pytest.approx(4.7618595, abs=5e-8) == dcg(gains, k=3)[0]
    assert pytest.approx(4.2618595, abs=5e-8) == dcg(gains, k=2)[0]


@pytest.mark.parametrize(
    ("expected", "scores", "gains", "k", "ties"),
    [
        (0.6839106, {"d2": 3, "d3": 2, "d1": 1}, {"d1": 0.9, "d2": 0.1, "d3": 0.5}, 3, "a"),
        (0.6309298, {"unknown": 2, "d1": 1}, {"d1": 1}, 2, "a"),
        (0.6131472, {"a": 1}, {"a": 1, "elsewhere": 1}, 2, "a"),
        (0.8154649, {"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 0, "c": 0}, 2, "b"),
        (0.6309298, {"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 0, "c": 0}, 2, "a"),
        (0.8611217, dict.fromkeys("abcde", 1), {"a": 1, "b": 0.8, "c": 0.6, "d": 0.4, "e": 0.2}, 5, "b"),
        (1.0, {"a": 2, "b": 1}, {"a": 1, "b": 0.5}, 2, "b"),
        (0.4796249, {"unjudged": 9, "a": 2, "b": 1}, {"a": 1, "b": 0.5}, 2, "b"),
        (0.6131472, {"a": 2, "b": 1}, {"a": 1, "elsewhere": 1}, 2, "b"),
        (0.6309298, {"a": 2, "b": 1}, {"b": 1}, 2, "b"),
    ],
)
def test_worked_numbers(
    expected: float, scores: dict[str, float], gains: dict[str, float], k: int, ties: TieRule
) -> None:
    """The small cases of method spec section 17.1."""
    assert pytest.approx(expected, abs=5e-8) == one(scores, gains, k=k, ties=ties)


@pytest.mark.parametrize(
    ("expected", "tolerance", "metric", "ties"),
    [
        # The pinned 0.8226438806 carries float32 gains: 1e-8 is the spec's tolerance for it.
        (0.8226438806247116, 1e-8, "rcp", "b"),
        (0.8226438832, 5e-11, "rcp", "b"),
        (0.8248335111, 5e-11, "rcp", "a"),
        (0.4977024886349645, 1e-12, "qrel", "b"),
        (0.4742944931, 5e-11, "qrel", "a"),
    ],
)
def test_published_query(expected: float, tolerance: float, metric: Metric, ties: TieRule) -> None:
    """The published ViDoRe query of method spec section 17.1, both metrics, both rules."""
    gains = RERANKER_GAINS if metric == "rcp" else RERANKER_QRELS
    assert pytest.approx(expected, abs=tolerance) == one(RERANKER_SCORES, gains, k=10, ties=ties, metric=metric)


def test_no_positive_label() -> None:
    """A query without a positive gain has RCP-nDCG and Count-nDCG 0 and no qrel-nDCG."""
    scores, gains = {"a": 2.0, "b": 1.0}, {"a": 0.0, "b": 0.0}
    assert one(scores, gains, k=10, ties="b", metric="rcp") == 0.0
    assert one(scores, gains, k=10, ties="b", metric="count") == 0.0
    assert math.isnan(one(scores, gains, k=10, ties="b", metric="qrel"))


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("metric", ["rcp", "qrel"])
def test_nothing_ranked(ties: TieRule, metric: Metric) -> None:
    """A labelled query of which nothing is ranked scores 0."""
    assert one({}, {"a": 1.0, "b": 0.5}, k=10, ties=ties, metric=metric) == 0.0


# Few distinct values make ties likely; 1/3 and 0.1 make sums inexact.
_SCORES = st.sampled_from([0.0, -0.0, 0.1, 1 / 3, 0.5, 1.0])
_GAINS = st.one_of(st.just(0.0), st.floats(0.0, 1.0, allow_subnormal=False))


@given(data=st.data(), pages=st.integers(1, 24), k=st.integers(1, 30), rule=st.sampled_from(TIE_RULES))
def test_plain_loop(data: st.DataObject, pages: int, k: int, rule: TieRule) -> None:
    """The array code gives the bits of the plain loop, for ties, gaps in the ranking, and pools smaller than k."""
    shape = (2, 3, pages)
    scores = data.draw(hnp.arrays(np.float64, shape, elements=_SCORES))
    ranked = data.draw(hnp.arrays(np.bool_, shape))
    gains = data.draw(hnp.arrays(np.float64, shape[1:], elements=_GAINS))
    found = ndcg(scores, ranked, {"rcp": gains}, k=k, ties=[rule])["rcp", rule]
    ids = sorted((f"p{page}" for page in range(pages)), reverse=True)
    expected = [
        [
            plain_ndcg(
                {page: scores[system, query, i] for i, page in enumerate(ids) if ranked[system, query, i]},
                dict(zip(ids, gains[query].tolist(), strict=True)),
                k=k,
                rule=rule,
            )
            for query in range(3)
        ]
        for system in range(2)
    ]
    assert expected == found.tolist()


def test_blocks() -> None:
    """More queries than one block holds give the bits of the plain loop too."""
    random = np.random.default_rng(1)
    scores = np.round(random.random((1, 5000, 12)), 1)
    gains = random.random((5000, 12))
    found = ndcg(scores, np.ones(scores.shape, dtype=np.bool_), {"rcp": gains}, k=5)
    ids = [f"p{99 - page}" for page in range(12)]
    for rule in TIE_RULES:
        expected = [
            plain_ndcg(
                dict(zip(ids, scores[0, query].tolist(), strict=True)),
                dict(zip(ids, gains[query].tolist(), strict=True)),
                k=5,
                rule=rule,
            )
            for query in range(5000)
        ]
        assert expected == found["rcp", rule][0].tolist()


@settings(deadline=None)
@given(
    scores=st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=6),
    gains=st.lists(st.floats(0.0, 1.0, allow_subnormal=False), min_size=6, max_size=6),
    k=st.integers(1, 7),
)
def test_brute_force(scores: list[float], gains: list[float], k: int) -> None:
    """Tie rule b is the mean nDCG over every order of the pages that respects the scores."""
    own = gains[: len(scores)]
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[first] >= scores[second] for first, second in itertools.pairwise(order))
    ]
    ideal = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(own, reverse=True)[:k]))
    totals = [sum(own[page] / math.log2(rank + 2) for rank, page in enumerate(order[:k])) for order in orders]
    expected = sum(totals) / len(totals) / ideal if ideal else 0.0
    table = np.array([[scores]])
    found = ndcg(table, np.ones(table.shape, dtype=np.bool_), {"rcp": np.array([own])}, k=k, ties=["b"])
    assert pytest.approx(expected, abs=1e-12) == found["rcp", "b"][0, 0]


def _random_queries() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    random = np.random.default_rng(7)
    # Multiples of 1/64 are exact as float32, in which pytrec_eval holds scores.
    scores = random.integers(0, 64, size=(200, 40)) / 64
    grades = random.choice([0.0, 0.0, 0.0, 1.0, 2.0], size=(200, 40))
    grades[:, 0] = 1.0
    return scores, grades


@pytest.mark.parametrize("k", [1, 5, 10, 60])
def test_scikit_learn(k: int) -> None:
    """Tie rule b is scikit-learn's ndcg_score, for float gains and integer grades."""
    scores, grades = _random_queries()
    gains = np.random.default_rng(8).random(scores.shape)
    found = ndcg(scores[None], np.ones((1, *scores.shape), dtype=np.bool_), {"rcp": gains, "qrel": grades}, k=k)
    for metric, table in (("rcp", gains), ("qrel", grades)):
        expected = [ndcg_score([table[query]], [scores[query]], k=k) for query in range(len(scores))]
        assert pytest.approx(expected, abs=1e-12) == found[metric, "b"][0].tolist()  # type: ignore[index]


def test_pytrec_eval() -> None:
    """Tie rule a is trec_eval's order: pytrec_eval's ndcg_cut agrees on integer grades."""
    scores, grades = _random_queries()
    # Ids of different lengths: "p9" sorts after "p10" as a string.
    ids = sorted((f"p{page}" for page in range(40)), reverse=True)
    qrels = {
        str(query): {page: int(grade) for page, grade in zip(ids, grades[query], strict=True)} for query in range(200)
    }
    run = {
        str(query): {page: float(score) for page, score in zip(ids, scores[query], strict=True)} for query in range(200)
    }
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    expected = [measured[str(query)]["ndcg_cut_10"] for query in range(200)]
    found = ndcg(scores[None], np.ones((1, 200, 40), dtype=np.bool_), {"qrel": grades}, ties=["a"])["qrel", "a"]
    assert pytest.approx(expected, abs=1e-12) == found[0].tolist()


@given(scores=hnp.arrays(np.float64, (1, 2, 8), elements=_SCORES), factor=st.sampled_from([0.5, 2.0, 1024.0]))
def test_only_order_matters(scores: NDArray[np.float64], factor: float) -> None:
    """A monotone change of the scores that is exact in floats changes no bit."""
    gains = np.linspace(0.0, 1.0, 16).reshape(2, 8)
    ranked = np.ones(scores.shape, dtype=np.bool_)
    before = ndcg(scores, ranked, {"rcp": gains})
    after = ndcg(scores * factor, ranked, {"rcp": gains})
    assert all(before[key].tolist() == after[key].tolist() for key in before)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_refuses_a_score(score: float) -> None:
    """A ranked score that is not finite is refused; the same value on a page that is not ranked is not read."""
    scores = np.array([[[1.0, score]]])
    with pytest.raises(DataError, match=r"query 0, page 1.*column 'score'"):
        ndcg(scores, np.array([[[True, True]]]), {"rcp": np.ones((1, 2))})
    found = ndcg(scores, np.array([[[True, False]]]), {"rcp": np.array([[1.0, 0.0]])})
    assert found["rcp", "a"].tolist() == [[1.0]]


@pytest.mark.parametrize("gain", [math.nan, math.inf, -0.1])
def test_refuses_a_gain(gain: float) -> None:
    """A gain that is negative or not finite is refused."""
    with pytest.raises(DataError, match=r"query 1, page 0.*column 'gain'"):
        ideal_dcg(np.array([[1.0], [gain]]))


def test_refuses_a_cut() -> None:
    """NDCG@0 is refused."""
    with pytest.raises(UsageError, match="nDCG@0"):
        ndcg(np.ones((1, 1, 1)), np.ones((1, 1, 1), dtype=np.bool_), {"rcp": np.ones((1, 1))}, k=0)


def test_no_queries() -> None:
    """No query and no page give empty values, not an error."""
    found = ndcg(np.zeros((2, 0, 0)), np.zeros((2, 0, 0), dtype=np.bool_), {"rcp": np.zeros((0, 0))})
    assert found["rcp", "b"].shape == (2, 0)
