"""The 2PL in tournament mode: the worked numbers of method spec section 17.3, derivatives, oracles, and refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from provenance import irt
from provenance import irt_objective as model
from provenance.errors import DataError, FitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provenance.irt_objective import Counts, FloatArray, Parameters

Row = tuple[str, str, "Sequence[int]"]


def counts_of(pages: list[tuple[str, str, float]], rows: list[Row]) -> Counts:
    """Abilities and placements, as plain tuples, counted."""
    ability = pl.DataFrame(pages, schema=["query-id", "corpus-id", "ability"], orient="row")
    names = [f"C{k + 1}" for k in range(len(rows[0][2]))]
    placements = pl.DataFrame(
        [(query, page, *verdicts) for query, page, verdicts in rows],
        schema=["query-id", "corpus-id", *names],
        orient="row",
    )
    return irt.count(placements, ability, names)


def two_queries() -> Counts:
    """The spec's first world: two queries, five pages, three criteria, each placement 50 times."""
    pages = [("q1", "d1", 1.5), ("q1", "d2", -0.3), ("q1", "d3", 0.8), ("q2", "d4", 2.0), ("q2", "d5", -1.0)]
    rows: list[Row] = [
        ("q1", "d1", (1, 1, 0)),
        ("q1", "d2", (0, 0, 1)),
        ("q1", "d3", (1, 0, 1)),
        ("q2", "d4", (1, 1, 1)),
        ("q2", "d5", (0, 0, 0)),
    ]
    return counts_of(pages, rows * 50)


def one_query() -> Counts:
    """The spec's second world: one page passes both criteria, the other none, each 20 times."""
    return counts_of([("q1", "d1", 1.0), ("q1", "d2", -1.0)], [("q1", "d1", (1, 1)), ("q1", "d2", (0, 0))] * 20)


def synthetic(queries: int = 6) -> Counts:
    """The spec's third world: six queries of 40 pages, 12 placements a page, from numpy's default_rng(7)."""
    rng = np.random.default_rng(7)
    gamma, beta = np.array([1.3, 1.1, 0.8, 1.0, 0.8]), np.array([-2.5, -1.5, 0.0, 1.2, 2.8])
    pages, rows = [], []
    truth = zip([0.6, 0.9, 1.2, 1.5, 2.0, 1.0], [-1.0, 0.5, -0.3, 1.0, 0.0, -2.0], strict=True)
    for query, (tau, alpha) in list(enumerate(truth))[:queries]:
        for page, b in enumerate(rng.normal(0, 1.2, 40)):
            chance = 1 / (1 + np.exp(-gamma * (tau * b + alpha - beta)))
            pages.append((f"q{query}", f"q{query}-d{page}", float(b)))
            rows += [
                (f"q{query}", f"q{query}-d{page}", (rng.random(5) < chance).astype(int).tolist()) for _ in range(12)
            ]
    return counts_of(pages, rows)


def flat(at: Parameters) -> FloatArray:
    """All parameters in one vector: u, v, t, alpha."""
    return np.concatenate([at.u, at.v, at.t, at.alpha])


def unflat(x: FloatArray, counts: Counts) -> Parameters:
    """The parameters of a vector."""
    c, j = counts.passes.shape[1], len(counts.query_ids)
    return model.Parameters(*np.split(x, [c, 2 * c, 2 * c + j]))


def flat_gradient(x: FloatArray, counts: Counts) -> FloatArray:
    """The gradient of the mean objective in the order of `flat`."""
    slope = model.gradient(counts, unflat(x, counts))
    return np.concatenate([slope.shared, slope.query[:, 0], slope.query[:, 1]]) / counts.verdicts


def somewhere(counts: Counts, seed: int) -> FloatArray:
    """A random point, far from the minimum."""
    return np.random.default_rng(seed).normal(0, 1, 2 * counts.passes.shape[1] + 2 * len(counts.query_ids))


def test_worked_regulariser() -> None:
    """Two queries, two criteria, N = 4, tau = ln 2, alpha = +-0.5: (ln2 - 1)^2/8 + 0.5/64."""
    at = model.Parameters(np.zeros(2), np.zeros(2), np.zeros(2), np.array([0.5, -0.5]))
    assert 0.0195823316 == pytest.approx(model.regulariser(at, 4 * 2), abs=1e-10)


def test_worked_world_of_two_queries() -> None:
    """The spec's first world, to all printed digits, and its objective at the start."""
    counts = two_queries()
    assert 0.4867451 == pytest.approx(model.objective(counts, model.Parameters.start(3, 2)), abs=1e-7)
    fitted = irt.fit(counts)
    assert [1.26358, 1.60069, 0.13573] == pytest.approx(fitted.gamma, abs=1e-5)
    assert [-0.33644, 3.18289, -2.84645] == pytest.approx(fitted.beta, abs=1e-5)
    assert [3.88433, 5.65142] == pytest.approx(fitted.tau, abs=1e-5)
    assert [-1.25722, -3.19934] == pytest.approx(fitted.alpha, abs=1e-5)
    assert 0.2447580 == pytest.approx(fitted.objective, abs=1e-7)
    assert 250 == fitted.placements


def test_worked_world_of_one_query() -> None:
    """The spec's second world, symmetrical: gamma 1, beta 0, alpha 0."""
    fitted = irt.fit(one_query())
    assert [1.0, 1.0] == pytest.approx(fitted.gamma, abs=1e-9)
    assert [0.0, 0.0] == pytest.approx(fitted.beta, abs=1e-9)
    assert 3.45340 == pytest.approx(fitted.tau[0], abs=1e-5)
    assert 0.0 == pytest.approx(fitted.alpha[0], abs=1e-9)
    assert 0.0687675 == pytest.approx(fitted.objective, abs=1e-7)


def test_worked_synthetic_world() -> None:
    """The spec's third world, to all printed digits; the gradients are as small as the method asks."""
    fitted = irt.fit(synthetic())
    assert [1.30192, 1.13786, 0.81362, 0.93937, 0.80724] == pytest.approx(fitted.gamma, abs=1e-5)
    assert [-2.53394, -1.45431, 0.03361, 1.21556, 2.73908] == pytest.approx(fitted.beta, abs=1e-5)
    assert [0.59638, 0.98222, 1.15612, 1.44502, 1.90632, 1.03728] == pytest.approx(fitted.tau, abs=1e-5)
    assert [-1.05952, 0.55596, -0.32328, 0.91606, -0.02423, -2.01475] == pytest.approx(fitted.alpha, abs=1e-5)
    assert ["q0", "q1", "q2", "q3", "q4", "q5"] == fitted.queries()["query-id"].to_list()
    assert fitted.query_gradient < 1e-8
    assert fitted.item_gradient < 1e-10


def test_objective_is_the_stated_one() -> None:
    """The objective on counts equals method spec section 8.1 written out placement by placement."""
    counts = synthetic(2)
    x = somewhere(counts, 1)
    at = unflat(x, counts)
    gamma = 5 * np.exp(at.u) / np.exp(at.u).sum()
    beta = at.v - at.v.mean()
    tau = np.log(1 + np.exp(at.t))
    loss = 0.0
    for page, b in enumerate(counts.ability):
        query = int(page >= counts.starts[1])
        p = 1 / (1 + np.exp(-gamma * (tau[query] * b + at.alpha[query] - beta)))
        passed, n = counts.passes[page], counts.n[page]
        loss -= float((passed * np.log(p) + (n - passed) * np.log(1 - p)).sum())
    loss += float(((tau - 1) ** 2 / 2 + at.alpha**2 / 8).sum())
    expected = loss / (counts.placements * 5) + 0.5e-4 * float((at.u**2).sum() + (at.v**2).sum())
    assert 2 * 40 * 12 == counts.placements
    assert expected == pytest.approx(model.objective(counts, at), abs=1e-12)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("capped", [False, True])
def test_gradient_is_the_slope_of_the_objective(seed: int, *, capped: bool) -> None:
    """Central finite differences of the objective give the gradient, also where a u is over its cap of 10."""
    counts = synthetic(2)
    x = somewhere(counts, seed)
    x[0] = 10.5 if capped else x[0]
    step = 1e-5 * np.eye(len(x))
    slopes = [
        (model.objective(counts, unflat(x + d, counts)) - model.objective(counts, unflat(x - d, counts))) / 2e-5
        for d in step
    ]
    assert slopes == pytest.approx(flat_gradient(x, counts), abs=1e-8)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("capped", [False, True])
def test_hessian_is_the_slope_of_the_gradient(seed: int, *, capped: bool) -> None:
    """Central finite differences of the gradient give the arrow, and zero between one query and another."""
    counts = synthetic(2)
    x = somewhere(counts, seed)
    x[0] = 10.5 if capped else x[0]
    step = 1e-5 * np.eye(len(x))
    slopes = np.array([(flat_gradient(x + d, counts) - flat_gradient(x - d, counts)) / 2e-5 for d in step])
    arrow = model.hessian(counts, unflat(x, counts))
    dense = np.zeros_like(slopes)
    dense[:10, :10] = arrow.shared
    for query in range(2):
        place = [10 + query, 12 + query]
        dense[np.ix_(place, place)] = arrow.query[query]
        dense[place, :10] = arrow.cross[query]
        dense[:10, place] = arrow.cross[query].T
    assert slopes == pytest.approx(dense / counts.verdicts, abs=1e-8)


def test_fisher_information_is_the_mean_hessian() -> None:
    """With verdicts exactly as expected, priors at their centre and u, v 0, Hessian and Fisher form agree."""
    counts = synthetic(2)
    at = model.Parameters.start(5, 2)
    theta = counts.ability
    chance = 1 / (1 + np.exp(-theta))
    passes = np.repeat((counts.n * chance)[:, np.newaxis], 5, axis=1)
    exact = replace(counts, passes=passes)
    full, fisher = model.hessian(exact, at), model.hessian(exact, at, expected=True)
    assert full.shared == pytest.approx(fisher.shared, rel=1e-12, abs=1e-9)
    assert full.query == pytest.approx(fisher.query, rel=1e-12, abs=1e-9)
    assert full.cross == pytest.approx(fisher.cross, rel=1e-12, abs=1e-9)


def test_newton_step_solves_the_whole_system() -> None:
    """The eliminated arrow gives the same step as the dense system."""
    counts = synthetic(3)
    at = irt.fit(counts)
    point = model.Parameters.of(at.gamma, at.beta, at.tau * 1.01, at.alpha + 0.01)
    arrow, slope = model.hessian(counts, point), model.gradient(counts, point)
    dense = np.zeros((16, 16))
    dense[:10, :10] = arrow.shared
    for query in range(3):
        place = [10 + query, 13 + query]
        dense[np.ix_(place, place)] = arrow.query[query]
        dense[place, :10] = arrow.cross[query]
        dense[:10, place] = arrow.cross[query].T
    expected = np.linalg.solve(dense, np.concatenate([slope.shared, slope.query[:, 0], slope.query[:, 1]]))
    assert expected == pytest.approx(flat(irt.newton_step(arrow, arrow, slope)), rel=1e-8, abs=1e-12)


def test_agrees_with_scipy() -> None:
    """L-BFGS-B of scipy on the same objective finds the same minimum."""
    counts = synthetic(3)
    found = minimize(
        lambda x: model.objective(counts, unflat(x, counts)),
        flat(model.Parameters.start(5, 3)),
        jac=lambda x: flat_gradient(x, counts),
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10},
    )
    at, fitted = unflat(found.x, counts), irt.fit(counts)
    assert found.fun == pytest.approx(fitted.objective, abs=1e-12)
    assert at.gamma == pytest.approx(fitted.gamma, abs=1e-4)
    assert at.beta == pytest.approx(fitted.beta, abs=1e-4)
    assert at.tau == pytest.approx(fitted.tau, abs=1e-4)
    assert at.alpha == pytest.approx(fitted.alpha, abs=1e-4)


def test_published_estimates_are_a_stationary_point() -> None:
    """Parameters rebuilt from gamma, beta, tau and alpha have the fit's small gradients: the ridge fixes u and v."""
    counts = synthetic()
    fitted = irt.fit(counts)
    slope = model.gradient(counts, model.Parameters.of(fitted.gamma, fitted.beta, fitted.tau, fitted.alpha))
    assert np.abs(slope.query).max() < 1e-8
    assert np.abs(slope.shared).max() / counts.verdicts < 1e-10


@pytest.mark.parametrize("verdict", [0, 1])
def test_unidentified_verdicts_converge(verdict: int) -> None:
    """Where every verdict is the same the ridge and the priors still give a minimum, with equal items."""
    pages = [("q1", f"d{k}", float(k - 2)) for k in range(5)]
    fitted = irt.fit(counts_of(pages, [("q1", page, (verdict,) * 5) for _, page, _ in pages] * 4))
    assert [1.0] * 5 == pytest.approx(fitted.gamma, abs=1e-9)
    assert [0.0] * 5 == pytest.approx(fitted.beta, abs=1e-9)
    assert (fitted.alpha[0] > 0) == bool(verdict)


def test_verdicts_against_the_order_converge() -> None:
    """A query whose verdicts fall as ability rises has its best tau at 0, which stays above 0; the others fit well."""
    counts = synthetic()
    sign = np.where(np.arange(len(counts.ability)) < counts.starts[1], -1.0, 1.0)
    fitted = irt.fit(replace(counts, ability=sign * counts.ability))
    assert 0.0 < fitted.tau[0] < 1e-6
    assert fitted.query_gradient < 1e-8
    assert [0.9, 1.2, 1.5, 2.0, 1.0] == pytest.approx(fitted.tau[1:], abs=0.2)


@pytest.mark.parametrize("seed", range(12))
def test_noise_converges(seed: int) -> None:
    """Verdicts that have nothing to do with ability, extreme ones among them, still lead to a stationary point."""
    rng = np.random.default_rng(seed)
    queries, pages = 8, 12
    n = rng.integers(1, 8, queries * pages)
    chance = rng.beta(0.3, 0.3, (queries * pages, 4))
    counts = model.Counts(
        query_ids=tuple(f"q{query}" for query in range(queries)),
        corpus_ids=tuple(f"d{page}" for page in range(queries * pages)),
        starts=np.arange(queries + 1) * pages,
        ability=rng.normal(0, 5, queries * pages),
        n=n.astype(np.float64),
        passes=rng.binomial(n[:, np.newaxis], chance).astype(np.float64),
        placements=int(n.sum()),
        skipped=0,
    )
    fitted = irt.fit(counts)
    assert fitted.query_gradient < 1e-8
    assert fitted.item_gradient < 1e-10
    assert fitted.objective < model.objective(counts, model.Parameters.start(4, queries))


def test_the_result_is_the_same_with_any_executor() -> None:
    """Many blocks of queries on threads give the bits of one loop."""
    one = synthetic()
    copies = 30
    many = model.Counts(
        query_ids=tuple(f"{query}-{copy}" for copy in range(copies) for query in one.query_ids),
        corpus_ids=one.corpus_ids * copies,
        starts=np.concatenate([[0], (one.starts[1:] + one.starts[-1] * np.arange(copies)[:, np.newaxis]).ravel()]),
        ability=np.tile(one.ability, copies),
        n=np.tile(one.n, copies),
        passes=np.tile(one.passes, (copies, 1)),
        placements=one.placements * copies,
        skipped=0,
    )
    alone = irt.fit(many)
    with ThreadPoolExecutor(2) as executor:
        threaded = irt.fit(many, executor)
    for field in ("gamma", "beta", "tau", "alpha"):
        assert getattr(alone, field).tobytes() == getattr(threaded, field).tobytes()
    assert alone.objective == threaded.objective


def test_non_convergence_names_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one step allowed the fit is an error that names the queries, the worst first."""
    monkeypatch.setattr(irt, "_MAX_ITERATIONS", 1)
    with pytest.raises(FitError, match=r"2 queries have a gradient.*the worst: q[12], q[12]\)"):
        irt.fit(two_queries())


def test_count_adds_up_in_canonical_order() -> None:
    """Queries by number, pages as in the abilities, unjudged pages with 0; unknown pages and queries are counted."""
    ability = pl.DataFrame(
        {
            "query-id": ["q10", "q10", "q2", "q2", "q3"],
            "corpus-id": ["b", "a", "a", "c", "a"],
            "ability": [0.5, -0.5, 1.0, -1.0, 0.0],
        }
    )
    placements = pl.DataFrame(
        {
            "query-id": ["q10", "q10", "q2", "q2", "q2", "q7"],
            "corpus-id": ["a", "a", "a", "a", "z", "a"],
            "C1": [1, 1, 0, 1, 1, 1],
            "C2": [0, 1, 0, 0, 1, 1],
        }
    )
    counts = irt.count(placements, ability, ["C1", "C2"])
    assert ("q2", "q10") == counts.query_ids
    assert ("a", "c", "b", "a") == counts.corpus_ids
    assert [0, 2, 4] == counts.starts.tolist()
    assert [1.0, -1.0, 0.5, -0.5] == counts.ability.tolist()
    assert [2.0, 0.0, 0.0, 2.0] == counts.n.tolist()
    assert [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [2.0, 1.0]] == counts.passes.tolist()
    assert (4, 2) == (counts.placements, counts.skipped)


@pytest.mark.parametrize(
    ("ability", "verdict", "words"),
    [
        ([("q1", "a", 0.0)], 2, "a verdict is not 0 or 1.*query-id 'q1', corpus-id 'a'.*column 'C1'"),
        ([("q1", "a", 0.0)], None, "a verdict is not 0 or 1.*query-id 'q1', corpus-id 'a'.*column 'C1'"),
        ([("q1", "b", 0.0), ("q1", "a", float("nan"))], 1, "an ability is not finite.*corpus-id 'a'.*value nan"),
        ([("q1", "a", 0.0), ("q1", "a", 1.0)], 1, "a row is there twice.*column 'ability', value 1.0"),
        ([("q1", "b", 0.0)], 1, "no rubric placement is of a page with an ability"),
    ],
)
def test_bad_counts_are_refused(ability: list[tuple[str, str, float]], verdict: int | None, words: str) -> None:
    """A verdict that is not 0 or 1, an ability that is not finite or double, and nothing to count are refused."""
    abilities = pl.DataFrame(ability, schema=["query-id", "corpus-id", "ability"], orient="row")
    placements = pl.DataFrame(
        {"query-id": ["q1"], "corpus-id": ["a"], "C1": [verdict]}, schema_overrides={"C1": pl.Int64}
    )
    with pytest.raises(DataError, match=words):
        irt.count(placements, abilities, ["C1"])
