"""Bradley-Terry: the worked numbers of method spec section 17.4, derivatives, oracles, and refusals."""

from __future__ import annotations

import choix
import numpy as np
import polars as pl
import pytest
from scipy.optimize import approx_fprime, minimize

from provenance import bradley_terry as bt
from provenance.errors import DataError

WINDOWS = [
    ("abcd", [2, 1, 0, -1]),
    ("dcba", [-0.5, 0.2, 0.8, 1.5]),
    ("bdac", [0.9, -0.8, 1.7, 0.1]),
    ("cadb", [0.3, 2.2, -1.2, 1.1]),
    ("cab", [0.4, 1.9, -0.3]),
]


def scores_of(windows: list[tuple[str, list[float]]], query: str = "query-test-1") -> pl.DataFrame:
    """Windows as the `scores` frame that `fit` takes."""
    rows = [
        (query, call, position, page, float(score))
        for call, (pages, scores) in enumerate(windows)
        for position, (page, score) in enumerate(zip(pages, scores, strict=True), start=1)
    ]
    columns = ["query-id", "call_index", "position", "corpus-id", "score"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def shown_of(pages: str, query: str = "query-test-1") -> pl.DataFrame:
    """Pages as the `shown` frame that `fit` takes."""
    return pl.DataFrame({"query-id": [query] * len(pages), "corpus-id": list(pages)})


def pairs_of(windows: list[tuple[str, list[float]]], pages: str) -> bt.Pairs:
    """Windows as `comparisons` takes them, pages numbered by their place in `pages`."""
    page = np.array([pages.index(name) for names, _ in windows for name in names])
    score = np.array([value for _, values in windows for value in values], dtype=np.float64)
    starts = np.cumsum([0, *(len(names) for names, _ in windows)])
    return bt.comparisons(page, score, starts, len(pages))


def random_pairs(seed: int, pages: int, comparisons: int) -> bt.Pairs:
    """Random comparisons with labels in (0, 1)."""
    rng = np.random.default_rng(seed)
    winner = rng.integers(0, pages, comparisons)
    loser = (winner + rng.integers(1, pages, comparisons)) % pages
    return bt.aggregate(pages, winner, loser, rng.uniform(0.1, 2, comparisons), rng.uniform(0.02, 0.98, comparisons))


def test_worked_comparisons() -> None:
    """The spec's six comparisons with ridge 1e-3, to all printed digits."""
    pairs = bt.aggregate(
        4, [0, 0, 1, 2, 1, 0], [1, 2, 2, 3, 3, 3], [1, 0.5, 2, 1, 1, 1], [0.9, 0.7, 0.6, 0.8, 0.4, 0.95]
    )
    expected = [1.451781, -0.367211, -0.275322, -0.809247]
    assert expected == pytest.approx(bt.abilities(pairs, ridge=1e-3), abs=1e-6)


def test_worked_windows() -> None:
    """The spec's five valid windows and an invalid one: abilities to all printed digits."""
    fitted = bt.fit(scores_of(WINDOWS), shown_of("abcd"))
    assert ["query-id", "corpus-id", "ability"] == fitted.columns
    assert list("abcd") == fitted["corpus-id"].to_list()
    assert [1.360124, 0.232549, -0.244856, -1.347817] == pytest.approx(fitted["ability"].to_list(), abs=1e-6)


def test_worked_standard_errors() -> None:
    """The spec's standard errors of the same windows, and the weight of their 27 comparisons: w - 1 a window."""
    pairs = pairs_of(WINDOWS, "abcd")
    theta = bt.abilities(pairs)
    assert theta is not None
    assert [1.009378, 0.843321, 0.852544, 1.136170] == pytest.approx(bt.standard_errors(theta, pairs), abs=1e-6)
    assert 4 * 3 + 2 == pytest.approx(pairs.total, abs=1e-12)


def test_labels_and_weights_of_a_window() -> None:
    """Scores 2, -1, 0.5, 0.5 give six pairs of weight 0.5; a > b has label 0.9525741 and the equal pair 0.5."""
    pairs = pairs_of([("abcd", [2, -1, 0.5, 0.5])], "abcd")
    assert [0.5] * 6 == pairs.weight.tolist()
    assert [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] == list(zip(pairs.first, pairs.second, strict=True))
    assert 0.9525741 == pytest.approx(pairs.label[0] / 0.5, abs=1e-7)
    assert 0.5 == pytest.approx(pairs.label[5] / 0.5, abs=1e-15)


def test_labels_are_clipped() -> None:
    """Scores 5 and -5 give one pair of weight 1 and label 0.99, whichever page comes first."""
    for scores, expected in (([5, -5], 0.99), ([-5, 5], 0.01)):
        pairs = pairs_of([("ab", scores)], "ab")
        assert [1.0] == pairs.weight.tolist()
        assert expected == pytest.approx(pairs.label[0], abs=1e-15)


def test_wins_share_out_the_weight() -> None:
    """The matrix of wins holds each pair's label and what is left of its weight."""
    wins = pairs_of([("abc", [2, 0, -1])], "abc").wins()
    sigmoid_2 = 1 / (1 + np.exp(-2.0))
    assert 2 / 3 * sigmoid_2 == pytest.approx(wins[0, 1], abs=1e-15)
    assert 2 / 3 * (1 - sigmoid_2) == pytest.approx(wins[1, 0], abs=1e-15)
    assert [0.0, 0.0, 0.0] == np.diag(wins).tolist()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gradient_is_the_slope_of_the_objective(seed: int) -> None:
    """Central finite differences of the objective give the gradient."""
    pairs, theta = random_pairs(seed, 7, 30), np.random.default_rng(seed).normal(0, 2, 7)
    step = 1e-6 * np.eye(7)
    slopes = [(bt.objective(theta + d, pairs, 0.01) - bt.objective(theta - d, pairs, 0.01)) / 2e-6 for d in step]
    assert slopes == pytest.approx(bt.gradient(theta, pairs, 0.01), abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hessian_is_the_slope_of_the_gradient(seed: int) -> None:
    """Finite differences of the gradient give the Hessian's lower triangle; the upper one is zero."""
    pairs, theta = random_pairs(seed, 7, 30), np.random.default_rng(seed).normal(0, 2, 7)
    slopes = approx_fprime(theta, lambda at: bt.gradient(at, pairs, 0.01), 1e-7)
    assert np.tril(slopes) == pytest.approx(bt.hessian(theta, pairs, 0.01), abs=1e-6)


@pytest.mark.parametrize("seed", [3, 4])
def test_agrees_with_scipy(seed: int) -> None:
    """BFGS of scipy on a plain statement of the objective finds the same abilities."""
    rng = np.random.default_rng(seed)
    windows = [
        ("".join(rng.permutation(list("abcdefgh"))[:5]), rng.normal(0, 2, 5).round(1).tolist()) for _ in range(9)
    ]

    def plain(theta: np.ndarray) -> float:
        """The objective of method spec section 6, comparison by comparison."""
        loss = weight = 0.0
        for names, values in windows:
            for i in range(5):
                for j in range(i + 1, 5):
                    label = min(max(1 / (1 + np.exp(values[j] - values[i])), 0.01), 0.99)
                    p = 1 / (1 + np.exp(theta["abcdefgh".index(names[j])] - theta["abcdefgh".index(names[i])]))
                    loss -= 0.4 * (label * np.log(p) + (1 - label) * np.log(1 - p))
                    weight += 0.4
        return loss / weight + 0.5e-4 * float((theta**2).sum())

    found = minimize(plain, np.zeros(8), method="BFGS", options={"gtol": 1e-9, "xrtol": 0}).x
    fitted = bt.fit(scores_of(windows), shown_of("abcdefgh"))
    assert found - found.mean() == pytest.approx(fitted["ability"].to_numpy(), abs=1e-4)


def test_agrees_with_choix() -> None:
    """The library choix has the same objective, summed and with penalty ridge * weight / 2, when every label is 1."""
    rng = np.random.default_rng(5)
    outcomes = [tuple(rng.permutation(6)[:2].tolist()) for _ in range(60)]
    winner, loser = zip(*outcomes, strict=True)
    expected = choix.opt_pairwise(6, outcomes, alpha=1e-2 * 60 / 2, tol=1e-12)
    pairs = bt.aggregate(6, winner, loser, np.ones(60), np.ones(60))
    assert expected - expected.mean() == pytest.approx(bt.abilities(pairs, ridge=1e-2), abs=1e-7)


def test_choix_on_the_matrix_of_wins() -> None:
    """Without a ridge to speak of, choix's maximum likelihood on `wins` is the same fit."""
    pairs = random_pairs(6, 12, 400)
    expected = choix.ilsr_pairwise_dense(pairs.wins(), tol=1e-12)
    assert expected == pytest.approx(bt.abilities(pairs, ridge=1e-13), abs=1e-8)


def test_far_apart_pages_converge() -> None:
    """A chain whose every label is at the clip converges, though its ends lie far apart."""
    pages = 40
    chain = np.arange(pages - 1)
    pairs = bt.aggregate(pages, chain, chain + 1, np.ones(pages - 1), np.full(pages - 1, 0.99))
    theta = bt.abilities(pairs)
    assert theta is not None
    assert np.abs(bt.gradient(theta, pairs)).max() < 1e-13
    assert (np.diff(theta) < 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_hard_comparisons_converge(seed: int) -> None:
    """Sparse comparisons, certain labels, weights far apart: a Newton step from the result is below 1e-10."""
    rng = np.random.default_rng([7, seed])
    pages, count = int(rng.integers(2, 160)), int(rng.integers(1, 300))
    winner = rng.integers(0, pages, count)
    loser = (winner + rng.integers(1, pages, count)) % pages
    pairs = bt.aggregate(
        pages, winner, loser, np.exp(rng.normal(0, 3, count)), rng.choice([0.0, 0.01, 0.5, 1.0], count)
    )
    ridge = 10.0 ** -(seed % 6 + 1)
    theta = bt.abilities(pairs, ridge)
    assert theta is not None
    lower = bt.hessian(theta, pairs, ridge)
    left = np.linalg.solve(lower + np.tril(lower, -1).T, bt.gradient(theta, pairs, ridge))
    assert np.abs(left).max() < 1e-10


@pytest.mark.parametrize("gap", [-2000.0, -701.0, -30.0, 30.0, 701.0, 2000.0])
def test_the_objective_is_right_far_out(gap: float) -> None:
    """Far apart the cross entropy is the gap times what the label denies it: no overflow, no cut."""
    pairs = bt.aggregate(2, [0], [1], [1.0], [0.75])
    expected = 0.25 * gap if gap > 0 else -0.75 * gap
    theta = np.array([gap / 2, -gap / 2])
    assert expected == pytest.approx(bt.objective(theta, pairs, ridge=0.0), rel=1e-13)
    assert (0.25 if gap > 0 else -0.75) == pytest.approx(bt.gradient(theta, pairs, ridge=0.0)[0], abs=1e-12)


def test_a_single_comparison_converges() -> None:
    """One certain comparison, among pages never compared, converges: its objective is far smaller than its terms."""
    theta = bt.abilities(bt.aggregate(34, [3], [20], [0.7], [1.0]))
    assert theta is not None
    assert np.abs(bt.gradient(theta, bt.aggregate(34, [3], [20], [0.7], [1.0]))).max() < 1e-12


def test_queries_are_independent_and_in_canonical_order() -> None:
    """Queries come by number, pages as shown, each query fitted as if alone, whatever the rows' order."""
    first, second = scores_of(WINDOWS, "query-test-10"), scores_of(WINDOWS[:2], "query-test-9")
    shown = pl.concat([shown_of("badc", "query-test-10"), shown_of("abcd", "query-test-9")])
    fitted = bt.fit(pl.concat([first, second]), shown)
    assert ["query-test-9"] * 4 + ["query-test-10"] * 4 == fitted["query-id"].to_list()
    assert list("abcdbadc") == fitted["corpus-id"].to_list()
    alone = bt.fit(second, shown_of("abcd", "query-test-9"))
    assert alone["ability"].to_list() == fitted["ability"].to_list()[:4]
    shuffled = bt.fit(pl.concat([second, first]).sample(fraction=1.0, shuffle=True, seed=1), shown)
    assert fitted.equals(shuffled)


def test_abilities_sum_to_zero_with_a_page_never_scored() -> None:
    """A page shown only in invalid windows gets the ability the ridge gives it; the sum is zero."""
    fitted = bt.fit(scores_of(WINDOWS), shown_of("abcde"))
    assert 0.0 == pytest.approx(fitted["ability"].sum(), abs=1e-14)
    assert 0.0 == pytest.approx(fitted["ability"][4], abs=1e-9)


def test_a_query_without_a_comparison_is_absent() -> None:
    """Windows of one page compare nothing, and a query without a valid window has nothing: both are absent."""
    shown = pl.concat([shown_of("ab"), shown_of("a", "query-test-2"), shown_of("ab", "query-test-3")])
    scores = pl.concat([scores_of([("ab", [1, 0])]), scores_of([("a", [1])], "query-test-2")])
    assert ["query-test-1"] == bt.fit(scores, shown)["query-id"].unique().to_list()
    assert 0 == bt.fit(scores.clear(), shown).height
    assert 0 == bt.fit(scores.clear(), shown.clear()).height


@pytest.mark.parametrize(
    ("windows", "shown", "words"),
    [
        ([("abz", [1, 2, 3])], "abc", "never shown for this query.*call_index 0.*column 'corpus-id', value 'z'"),
        ([("ab", [1, float("nan")])], "ab", "position 2.*column 'score', value nan"),
        ([("ab", [1, float("inf")])], "ab", "position 2.*column 'score', value inf"),
        ([("aba", [1, 2, 3])], "ab", "a window scores a page twice"),
        ([("ab", [1, 2])], "aba", "there twice.*column 'corpus-id', value 'a'"),
    ],
)
def test_bad_windows_are_refused(windows: list[tuple[str, list[float]]], shown: str, words: str) -> None:
    """An unknown page, a score that is not finite and a page twice are refused with their place."""
    with pytest.raises(DataError, match=words):
        bt.fit(scores_of(windows), shown_of(shown))


def test_two_pages_at_one_position_are_refused() -> None:
    """A window's positions are distinct."""
    with pytest.raises(DataError, match="two pages at one position"):
        bt.fit(scores_of([("ab", [1, 2])]).with_columns(position=pl.lit(1)), shown_of("ab"))


@pytest.mark.parametrize(
    ("shown", "words"),
    [([0, 1, 0], "a page twice.*\\[0, 0, 1\\]"), ([0, 1, 3], "unknown page"), ([-1, 0, 1], "unknown page")],
)
def test_bad_numbers_of_pages_are_refused(shown: list[int], words: str) -> None:
    """A window shows each page once, by a number that the query has."""
    with pytest.raises(DataError, match=words):
        bt.comparisons(np.array(shown), np.zeros(3), np.array([0, 3]), 3)


@pytest.mark.parametrize(
    ("winner", "loser", "weight", "label", "words"),
    [
        (0, 3, 1.0, 0.5, "unknown page"),
        (1, 1, 1.0, 0.5, "compared with itself"),
        (0, 1, 0.0, 0.5, "weight must be above 0"),
        (0, 1, 1.0, 1.5, r"label must lie in \[0, 1\]"),
        (0, 1, 1.0, float("nan"), r"label must lie in \[0, 1\]"),
    ],
)
def test_bad_comparisons_are_refused(winner: int, loser: int, weight: float, label: float, words: str) -> None:
    """The comparisons that the method's newest version refuses are refused."""
    with pytest.raises(DataError, match=words):
        bt.aggregate(3, [winner], [loser], [weight], [label])
