"""G1 and G2: what the certificate sees, with and without a calibration table, and what it cannot see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from builder.layout import CRITERIA
from builder.proofs import certificate
from provenance import irt, irt_objective
from provenance.gain import gains

if TYPE_CHECKING:
    from pathlib import Path

    from support.proving import Tree

QRELS = "paper__english/qrels.parquet"
CALIBRATION = "provenance/calibration/paper.parquet"
VERDICTS = "provenance/judge_criteria/paper.parquet"
ITEMS = "provenance/item_params.toy.json"
FIRST = slice(0, 6)  # the rows of query-test-0, in the calibration and in the English qrels


def _recalibrate(tree: Tree, change: dict[str, Any]) -> None:
    """Change query-test-0's calibration rows, and carry it through to theta and gain, so that G1 holds."""
    params = json.loads((tree.path / ITEMS).read_bytes())
    thetas: list[float] = []

    def calibrate(rows: list[dict[str, Any]]) -> None:
        for column, values in change.items():
            for row, value in zip(rows[FIRST], values(rows[FIRST]), strict=True):
                row[column] = value
        thetas.extend(row["tau"] * row["ability"] + row["alpha"] for row in rows[FIRST])

    def link(rows: list[dict[str, Any]]) -> None:
        for row, theta, gain in zip(rows[FIRST], thetas, gains(thetas, params["gamma"], params["beta"]), strict=True):
            row.update(theta=theta, gain=float(gain))

    tree.rows(CALIBRATION, calibrate)
    tree.rows(QRELS, link)
    tree.seal()


def test_a_verdict_turned_round_is_seen_by_g2_alone(tree: Tree) -> None:
    """One verdict changed moves its query's equations, shared gradients and the objective."""
    tree.cell(VERDICTS, 1, "C1", 1)
    tree.seal()
    found = tree.failing()
    assert {"G2"} == set(found)
    assert [("stationary-alpha", CALIBRATION, 0, "alpha"), ("stationary-tau", CALIBRATION, 0, "tau")] == [
        place[:4] for place in found["G2"][:2]
    ]
    assert ("objective", ITEMS, None, "fit.objective") in [place[:4] for place in found["G2"]]


@pytest.mark.parametrize(
    ("column", "values", "rules"),
    [
        ("alpha", lambda rows: [row["alpha"] + 1e-6 for row in rows], {"stationary-alpha", "stationary-tau"}),
        ("tau", lambda rows: [row["tau"] * (1 + 1e-6) for row in rows], {"stationary-tau"}),
        ("ability", lambda rows: [row["ability"] * (1 + 1e-6) for row in rows], {"stationary-tau"}),
        ("ability", lambda rows: [rows[i]["ability"] for i in (0, 1, 3, 2, 4, 5)], {"stationary-tau"}),
    ],
)
def test_a_calibration_off_its_optimum_is_seen_by_g2_alone(
    tree: Tree, column: str, values: object, rules: set[str]
) -> None:
    """alpha, tau or abilities moved by a millionth, or two neighbours swapped, carried through to the gains."""
    _recalibrate(tree, {column: values})
    found = tree.failing()
    assert {"G2"} == set(found)
    assert rules <= {place[0] for place in found["G2"]}
    assert {CALIBRATION, ITEMS} >= {place[1] for place in found["G2"]}


def test_item_parameters_off_their_optimum_are_seen_by_g2_alone(tree: Tree) -> None:
    """Gamma turned a little, its sum kept and every gain recomputed, moves the shared gradients."""

    def turn(document: dict[str, Any]) -> None:
        document["gamma"][0] += 1e-6
        document["gamma"][1] -= 1e-6

    tree.json(ITEMS, turn)
    params = json.loads((tree.path / ITEMS).read_bytes())

    def link(rows: list[dict[str, Any]]) -> None:
        values = gains([row["theta"] for row in rows], params["gamma"], params["beta"])
        for row, gain in zip(rows, values, strict=True):
            row["gain"] = float(gain)

    for language in ("english", "french"):
        tree.rows(f"paper__{language}/qrels.parquet", link)
    tree.seal()
    found = tree.failing()
    assert {"G2"} == set(found)
    assert "stationary-gamma" in {place[0] for place in found["G2"]}


def test_a_theta_that_is_not_its_calibration_is_g1s(tree: Tree) -> None:
    """A theta moved by 1e-9, its gain with it, breaks theta = tau * ability + alpha in its row."""
    params = json.loads((tree.path / ITEMS).read_bytes())

    def move(rows: list[dict[str, Any]]) -> None:
        theta = rows[3]["theta"] + 1e-9
        rows[3].update(theta=theta, gain=float(gains([theta], params["gamma"], params["beta"])[0]))

    tree.rows(QRELS, move)
    tree.seal()
    assert {"G1": [("theta", QRELS, 3, "theta")]} == {
        proof: [place[:4] for place in places] for proof, places in tree.failing("G1", "J1", "P3", "S1").items()
    }


def test_an_ability_that_does_not_sum_to_zero_is_g1s(tree: Tree) -> None:
    """An ability and alpha that trade a constant keep theta and leave the zero sum."""

    def trade(rows: list[dict[str, Any]]) -> None:
        for row in rows[FIRST]:
            row["ability"] += 0.5
            row["alpha"] -= 0.5 * row["tau"]

    tree.rows(CALIBRATION, trade)
    tree.seal()
    assert ("zero-sum", CALIBRATION, 0, "ability", "3.0") == tuple(
        v if i < 4 else f"{float(v):.1f}" for i, v in enumerate(tree.failing("G1")["G1"][0])
    )


def test_tau_must_be_positive_and_one_a_query(tree: Tree) -> None:
    """A negative tau, and a tau that differs inside a query, are named."""
    tree.cell(CALIBRATION, 2, "tau", -1.0)
    tree.seal()
    found = [place[:4] for place in tree.failing("G1")["G1"]]
    assert ("tau", CALIBRATION, 2, "tau") in found
    assert ("one-a-query", CALIBRATION, 2, "tau") in found


def test_gamma_has_to_sum_to_the_number_of_criteria(tree: Tree) -> None:
    """A scale other than the declared one is named, although every gain follows from it."""
    tree.json(ITEMS, lambda document: document.update(gamma=[value * 1.1 for value in document["gamma"]]))
    assert ("scale", ITEMS, None, "gamma") in [place[:4] for place in tree.failing("G1")["G1"]]


def test_without_a_record_of_the_fit_residuals_are_shown_and_not_judged(tree: Tree) -> None:
    """A tree whose item_params do not say how they were fitted gets numbers, and no verdict."""
    tree.json(ITEMS, lambda document: document.pop("fit"))
    outcome = tree.validate("G2").outcomes[0]
    assert "not provable" == outcome.status
    assert outcome.measures["largest alpha residual"] < 1e-9
    assert outcome.measures["largest gamma gradient"] < 1e-11


def _without_calibration(tree: Tree) -> None:
    """Take the calibration table out of the tree, its card and its manifest, as release 2 is."""
    (tree.path / CALIBRATION).unlink()
    card = (tree.path / "README.md").read_text("utf-8")
    start = card.index('- config_name: "provenance-calibration"')
    end = card.index("---", start)
    tree.write("README.md", (card[:start] + card[end:]).encode())
    tree.json(
        "provenance/manifest.json",
        lambda m: m.update(configs=[c for c in m["configs"] if c["config_name"] != "provenance-calibration"]),
    )
    tree.seal()


def test_without_a_calibration_table_the_certificate_uses_the_zero_sum(tree: Tree) -> None:
    """Alpha is theta's mean and tau a root: a good tree passes G2; G1 says what it cannot prove."""
    _without_calibration(tree)
    result = {outcome.proof: outcome for outcome in tree.validate().outcomes}
    assert ("passed", "not provable") == (result["G2"].status, result["G1"].status)
    assert 0 == result["G2"].measures["queries without a tau"]
    assert 0 == sum(outcome.failures.height for outcome in result.values())


def test_without_a_calibration_table_scaled_thetas_are_seen(tree: Tree) -> None:
    """Theta times 1.01 leaves alpha's equation, in the file of the query's language."""
    _without_calibration(tree)
    for language in ("english", "french"):
        tree.rows(
            f"paper__{language}/qrels.parquet", lambda rows: [row.update(theta=row["theta"] * 1.01) for row in rows]
        )
    found = tree.failing("G2")["G2"]
    assert {"paper__english/qrels.parquet", "paper__french/qrels.parquet", ITEMS} == {place[1] for place in found}
    assert "stationary-alpha" in {place[0] for place in found}


def _suite(seed: int, queries: int = 4, pages: int = 7) -> tuple[irt_objective.Counts, irt_objective.Parameters]:
    """A random world of counts, and random parameters whose u and v have mean zero."""
    rng = np.random.default_rng(seed)
    starts = np.arange(queries + 1) * pages
    ability = rng.normal(size=queries * pages)
    n = rng.integers(0, 6, size=queries * pages).astype(np.float64)
    n[starts[:-1]] = 3
    passes = np.minimum(rng.integers(0, 6, size=(queries * pages, 5)), n[:, None]).astype(np.float64)
    names = tuple(f"q{i}" for i in range(queries))
    counts = irt_objective.Counts(
        names, tuple(map(str, range(queries * pages))), starts, ability, n, passes, int(n.sum()), 0
    )
    at = irt_objective.Parameters.of(
        5 * (w := rng.uniform(0.5, 1.5, 5)) / w.sum(),
        (b := rng.normal(size=5)) - b.mean(),
        rng.uniform(0.5, 2, queries),
        rng.normal(size=queries),
    )
    return counts, at


@pytest.mark.parametrize("seed", range(5))
def test_the_certificates_gradients_are_finite_differences_of_the_objective(seed: int) -> None:
    """alpha, t, u and v: central differences of the fit's own objective, which finite differences tested too."""
    counts, at = _suite(seed)
    items = _items(at, dtype="float64")
    sums = certificate.SharedSums.zero(5)
    query = np.repeat(np.arange(4), 7)
    theta = at.tau[query] * counts.ability + at.alpha[query]
    block = certificate.Block(query, theta, counts.ability, counts.n, counts.passes, at.tau, at.alpha)
    residuals = certificate.judge_block(block, items, sums)
    by_u, by_v, _ = certificate.shared_gradients(sums, items)
    step = 1e-6

    def difference(name: str, index: int) -> float:
        values = []
        for sign in (1, -1):
            moved = {key: getattr(at, key).copy() for key in ("u", "v", "t", "alpha")}
            moved[name][index] += sign * step
            values.append(irt_objective.objective(counts, irt_objective.Parameters(**moved)))
        return (values[0] - values[1]) / (2 * step)

    assert residuals.tau is not None
    verdicts = counts.verdicts
    assert np.allclose([difference("alpha", j) * verdicts for j in range(4)], residuals.alpha, atol=1e-6)
    assert np.allclose([difference("t", j) * verdicts for j in range(4)], residuals.tau, atol=1e-6)
    assert np.allclose([difference("u", c) for c in range(5)], by_u, atol=1e-8)
    assert np.allclose([difference("v", c) for c in range(5)], by_v, atol=1e-8)
    assert certificate.mean_objective(sums, items) == pytest.approx(irt_objective.objective(counts, at), rel=1e-12)


@pytest.mark.parametrize("with_abilities", [False, True])
def test_swapping_two_pages_of_equal_counts_is_the_blind_spot(*, with_abilities: bool) -> None:
    """Two pages of a query with equal verdict counts trade thetas unseen, unless published abilities differ."""
    counts, at = _suite(11)
    counts.n[1], counts.passes[1] = counts.n[0], counts.passes[0]
    query = np.repeat(np.arange(4), 7)
    theta = at.tau[query] * counts.ability + at.alpha[query]
    swapped = theta[[1, 0, *range(2, 28)]]
    found = []
    for values in (theta, swapped):
        sums = certificate.SharedSums.zero(5)
        ability, tau = (counts.ability, at.tau) if with_abilities else (None, None)
        block = certificate.Block(query, values, ability, counts.n, counts.passes, tau, at.alpha)
        residuals = certificate.judge_block(block, _items(at, dtype="float64"), sums)
        by_u, by_v, _ = certificate.shared_gradients(sums, _items(at, dtype="float64"))
        own = residuals.tau if residuals.tau is not None else residuals.discriminant
        assert own is not None
        found.append([*residuals.alpha, *own, *by_u, *by_v])
    assert with_abilities != np.allclose(*found, atol=1e-10, rtol=0)


def _items(at: irt_objective.Parameters, *, dtype: str) -> certificate.Items:
    return certificate.Items(at.gamma, at.beta, 1.0, 1.0, 0.0, 2.0, 1e-4, dtype, 1e-9, 1e-11)


@pytest.fixture(scope="session")
def expected(reference: Path, reference_tree: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The real benchmark's expected thetas with the verdict counts of its tree, and its expected item parameters."""
    counts = pl.concat(
        pl.read_parquet(path).with_columns(pl.lit(path.stem).alias("domain"))
        for path in sorted((reference_tree / "provenance" / "judge_criteria").glob("*.parquet"))
    )
    keys = ["domain", "query-id", "corpus-id"]
    counts = counts.group_by(keys).agg(pl.len().alias("n"), *(pl.col(c).sum() for c in CRITERIA))
    thetas = pl.read_parquet(reference / "expected" / "gains.parquet").select(*keys, "bt", "theta")
    scale = pl.read_parquet(reference / "expected" / "queries.parquet")
    joined = thetas.join(counts, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("n", *CRITERIA).fill_null(0)
    )
    frame = joined.join(scale, on=["domain", "query-id"], how="left", maintain_order="left")
    return frame, json.loads((reference / "expected" / "reference.json").read_bytes())


def _residuals(frame: pl.DataFrame, params: dict[str, Any]) -> tuple[certificate.QueryResiduals, float]:
    """The certificate without abilities, and the largest shared gradient."""
    items = certificate.Items(
        np.array(params["gamma"]), np.array(params["beta"]), 1.0, 1.0, 0.0, 2.0, 1e-4, "float64", 1e-9, 1e-11
    )
    query = frame.select(pl.struct("domain", "query-id").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    means = np.bincount(query, frame["theta"].to_numpy()) / np.bincount(query)
    sums = certificate.SharedSums.zero(5)
    passes = frame.select(pl.col(CRITERIA).cast(pl.Float64)).to_numpy()
    n = frame["n"].cast(pl.Float64).to_numpy()
    block = certificate.Block(query, frame["theta"].to_numpy(), None, n, passes, None, means)
    residuals = certificate.judge_block(block, items, sums)
    by_u, by_v, _ = certificate.shared_gradients(sums, items)
    return residuals, max(np.abs(by_u).max(), np.abs(by_v).max())


def test_the_certificate_holds_for_results_computed_by_other_code(expected: tuple[pl.DataFrame, Any]) -> None:
    """The expected thetas of the real benchmark: no slope in alpha, a root for each query, no shared slope."""
    frame, params = expected
    residuals, shared = _residuals(frame, params)
    assert certificate.largest(residuals.alpha) < 1e-9
    assert shared < 1e-12
    assert residuals.root is not None
    taus = frame.group_by(pl.struct("domain", "query-id").rank("dense").alias("q")).agg(pl.col("tau").first()).sort("q")
    assert np.abs(residuals.root - taus["tau"].to_numpy()).max() < 1e-8


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda theta: theta.cast(pl.Float32).cast(pl.Float64), 1e-6),
        (lambda theta: theta * 1.01, 1.0),
    ],
)
def test_the_certificate_sees_other_thetas_of_the_real_benchmark(
    expected: tuple[pl.DataFrame, Any], change: Any, least: float
) -> None:
    """Theta in float32 leaves alpha's equation by some 1e-6, theta times 1.01 by more than 1."""
    frame, params = expected
    residuals, _ = _residuals(frame.with_columns(change(pl.col("theta"))), params)
    assert certificate.largest(residuals.alpha) > least


def test_scaled_thetas_leave_most_queries_without_a_root(expected: tuple[pl.DataFrame, Any]) -> None:
    """Theta times 1.01: at least 280 of the 288 queries have no tau left that makes them stationary."""
    frame, params = expected
    residuals, _ = _residuals(frame.with_columns(pl.col("theta") * 1.01), params)
    assert residuals.root is not None
    assert int(np.isnan(residuals.root).sum()) >= 280


def test_a_float32_fit_is_judged_by_float32s_rounding() -> None:
    """A fit whose theta was rounded to float32 keeps its bound where it says so, and breaks float64's."""
    counts, _ = _suite(3, queries=6, pages=40)
    fitted = irt.fit(counts)
    at = irt_objective.Parameters.of(fitted.gamma, fitted.beta, fitted.tau, fitted.alpha)
    query = np.repeat(np.arange(6), 40)
    theta = (at.tau[query] * counts.ability + at.alpha[query]).astype(np.float32).astype(np.float64)
    broken = {}
    for dtype in ("float32", "float64"):
        sums = certificate.SharedSums.zero(5)
        block = certificate.Block(query, theta, counts.ability, counts.n, counts.passes, at.tau, at.alpha)
        residuals = certificate.judge_block(block, _items(at, dtype=dtype), sums)
        broken[dtype] = int((np.abs(residuals.alpha) > 1e-9 + residuals.alpha_bound).sum())
    assert {"float32": 0, "float64": 6} == broken


def test_raw_items_have_mean_zero() -> None:
    """U is log gamma and v beta, each less its mean: gamma and beta come back from them."""
    gamma = np.array([1.5, 1.2, 0.9, 0.8, 0.6])
    items = certificate.Items.of({"gamma": gamma, "beta": [-2.0, -1.0, 0.0, 1.0, 2.0], "num_criteria": 5})
    u, v = certificate.raw_items(items)
    assert np.allclose([0.0, 0.0], [u.sum(), v.sum()], atol=1e-15)
    assert np.allclose(gamma, 5 * np.exp(u) / np.exp(u).sum())


def test_a_query_that_no_verdict_reaches_has_no_equation(tree: Tree) -> None:
    """G2 covers the queries with verdicts only; the recorded placements say that rows are gone."""
    tree.rows(VERDICTS, lambda rows: rows.__delitem__(slice(0, 43)))
    outcome = tree.validate("G2").outcomes[0]
    assert "placements" in outcome.failures["rule"].to_list()
