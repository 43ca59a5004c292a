"""The rubric-only 2PL: the worked numbers of method spec section 17.3, derivatives, guards."""

from __future__ import annotations

import numpy as np
import pytest

from provenance import gain, rubric_only
from provenance.errors import DataError, FitError

GAMMA = np.array([4.404612065692, 5.532794079707, 5.146755673246, 5.447101223049, 3.485862117399])
BETA = np.array([1.698116711712, 1.823789099850, 2.102794308, 2.587050236003, 3.164257607783])


def degenerate() -> tuple[np.ndarray, np.ndarray]:
    """The spec's near-degenerate world: 4,000 pages placed 3 times; the fifth criterion passes on two pages only."""
    rng = np.random.default_rng(3)
    passes = np.zeros((4000, 5))
    for k in range(4):
        passes[:, k] = rng.binomial(3, 0.05 + 0.05 * k, 4000)
    passes[:2, 4] = 1
    return np.full(4000, 3), passes


@pytest.mark.parametrize(
    ("passes", "theta", "sd", "won"),
    [
        ([0, 0, 0, 0, 0], -0.225766, 0.836720, 0.000043),
        ([4, 0, 0, 0, 0], 1.628776, 0.143688, 0.155337),
        ([4, 4, 0, 0, 0], 1.988559, 0.122862, 0.395086),
        ([4, 4, 4, 4, 0], 2.828962, 0.175981, 0.834251),
        ([4, 4, 4, 4, 4], 3.598792, 0.345340, 0.972775),
    ],
)
def test_worked_abilities(passes: list[int], theta: float, sd: float, won: float) -> None:
    """The spec's posterior means, standard deviations and gains of four placements, to all printed digits."""
    mean, error = rubric_only.abilities(GAMMA, BETA, [4], [passes])
    assert theta == pytest.approx(mean[0], abs=2e-6)
    assert sd == pytest.approx(error[0], abs=2e-6)
    assert won == pytest.approx(gain.gains(mean, GAMMA, BETA)[0], abs=2e-6)


def test_worked_near_degenerate_fit() -> None:
    """The spec's fit of a nearly degenerate world: discriminations, the largest share, the likelihood."""
    fitted = rubric_only.fit(rubric_only.Patterns.of(*degenerate()))
    assert [0.299802, 0.254694, 0.174329, 0.142243, 2.848666] == pytest.approx(fitted.gamma, abs=1e-3)
    assert 0.765825 == pytest.approx(fitted.gamma.max() / fitted.gamma.sum(), abs=1e-3)
    assert 17238.707 == pytest.approx(fitted.negative_log_likelihood, abs=1e-3)
    assert not fitted.ordinal_only


@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_is_the_slope_of_the_objective(seed: int) -> None:
    """Central finite differences give the gradient by log gamma and beta."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 8, 700)
    patterns = rubric_only.Patterns.of(n, rng.binomial(n[:, np.newaxis], [0.6, 0.3, 0.1], (700, 3)))
    assert len(patterns.n) > 1 + 512 // 4
    x = np.concatenate([rng.normal(0, 0.5, 3), rng.normal(0, 1, 3)])

    def value(at: np.ndarray) -> float:
        """The objective at log gamma and beta."""
        return rubric_only.objective(np.exp(at[:3]), at[3:], patterns)

    slopes = [(value(x + d) - value(x - d)) / 2e-5 for d in 1e-5 * np.eye(6)]
    assert slopes == pytest.approx(rubric_only.gradient(np.exp(x[:3]), x[3:], patterns), abs=1e-4)


def test_the_clipped_gradient_is_the_slope_of_the_clipped_objective() -> None:
    """Where a chance is clipped it has no slope: with gamma 15 most of the grid is clipped."""
    patterns = rubric_only.Patterns.of([3, 3, 2], [[3, 0], [1, 2], [0, 0]])
    gamma, beta = np.array([15.0, 9.0]), np.array([0.513, 2.017])
    step, first = 1e-6, np.array([1.0, 0.0])
    slope = (
        rubric_only.objective(gamma, beta + step * first, patterns)
        - rubric_only.objective(gamma, beta - step * first, patterns)
    ) / (2 * step)
    assert slope == pytest.approx(rubric_only.gradient(gamma, beta, patterns)[2], abs=1e-5)


def test_equal_counts_are_one_pattern() -> None:
    """Pages with the same counts are merged and counted."""
    patterns = rubric_only.Patterns.of([2, 1, 2], [[1, 0], [0, 0], [1, 0]])
    assert [1.0, 2.0] == patterns.n.tolist()
    assert [[0.0, 0.0], [1.0, 0.0]] == patterns.passes.tolist()
    assert [1.0, 2.0] == patterns.pages.tolist()


def test_the_reported_scale_is_centred_and_keeps_gains() -> None:
    """Reported gamma has mean 1 and beta mean 0, and every gain is as before."""
    scale = rubric_only.Scale.of(GAMMA, BETA)
    gamma, beta = scale.items(GAMMA, BETA)
    theta, error = scale.pages(np.array([0.0, 2.0]), np.array([1.0, 0.5]))
    assert 1.0 == pytest.approx(gamma.mean(), abs=1e-12)
    assert 0.0 == pytest.approx(beta.mean(), abs=1e-12)
    assert gain.gains([0.0, 2.0], GAMMA, BETA) == pytest.approx(gain.gains(theta, gamma, beta), abs=1e-12)
    assert [scale.shift, scale.slope] == pytest.approx([theta[0], error[0]], abs=1e-12)


def test_few_passing_pages_are_flagged() -> None:
    """With one page in a hundred passing anything, only the order means much."""
    passes = np.zeros((300, 2))
    passes[:3] = [[2, 1], [1, 1], [2, 2]]
    assert rubric_only.fit(rubric_only.Patterns.of(np.full(300, 3), passes)).ordinal_only


def test_one_criterion_alone_is_refused() -> None:
    """Where one criterion tells everything and the other is noise, the fit is refused and the criterion named."""
    rng = np.random.default_rng(1)
    good = rng.random(3000) < 0.5
    passes = np.column_stack([np.where(good, 20, 0), rng.binomial(20, 0.5, 3000)])
    with pytest.raises(FitError, match="criterion 1 takes 9"):
        rubric_only.fit(rubric_only.Patterns.of(np.full(3000, 20), passes))


@pytest.mark.parametrize(
    ("n", "passes"), [([2], [[3, 0]]), ([0], [[0, 0]]), ([2], [[-1, 0]]), ([2], [[1]]), ([2, 2], [[1, 0]]), ([], [])]
)
def test_impossible_counts_are_refused(n: list[int], passes: list[list[int]]) -> None:
    """Passes outside 0..n, no placement, a single criterion, unequal lengths and no page are refused."""
    with pytest.raises(DataError):
        rubric_only.Patterns.of(n, passes)
