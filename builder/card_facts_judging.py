"""What the card says of judging and calibration: windows, item parameters, reliability, gains and scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.judged import STAGES
from builder.layout import CRITERIA
from provenance.errors import DataError, Where
from provenance.gain import probabilities
from provenance.windows import FITTED, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from builder.benchmark import Benchmark
    from builder.tree import ReleaseTree

BINS = 10
PAIR = ["query-id", "corpus-id"]


@dataclass(frozen=True)
class StageFacts:
    """The windows of one stage over all domains: how many, how many were fitted, and why the others were not."""

    stage: str
    windows: int
    fitted: int
    left_out: int
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class Reliability:
    """Predicted pass probabilities against verdicts (method spec section 12).

    Attributes:
        verdicts: how many.
        predicted: the mean prediction of each of 10 equal bins on [0, 1]; NaN for an empty one.
        observed: the share of passes of each bin; NaN for an empty one.
        counts: verdicts of each bin.
        ece: expected calibration error.
        brier: mean squared error.
    """

    verdicts: int
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.float64]
    ece: float
    brier: float


@dataclass(frozen=True)
class GradeFacts:
    """The gains of the pool pages with one human grade, quartiles and a histogram of 40 bins on [0, 1]."""

    grade: int
    pairs: int
    quartiles: tuple[float, float, float]
    histogram: NDArray[np.int64]


@dataclass(frozen=True)
class Calibration:
    """What item parameters and tables say together.

    Attributes:
        link: how a gain comes from theta.
        items: criterion -> (gamma, beta).
        below_easiest: the share of pool pairs whose theta is below every difficulty.
        thetas: the theta of every pool pair, sorted.
        grades: gains by human grade, 0 for pages without a label.
        placements: rows of the criteria; None where the tree has none.
        reliability: None where the tree has no criteria.
        taus: the tau of every question, sorted; None where the tree has no calibration table.
        alphas: its alpha, in the order of `taus`.
    """

    link: str
    items: Mapping[str, tuple[float, float]]
    below_easiest: float
    thetas: NDArray[np.float64]
    grades: tuple[GradeFacts, ...]
    placements: int | None
    reliability: Reliability | None
    taus: NDArray[np.float64] | None
    alphas: NDArray[np.float64] | None

    @property
    def tau_range(self) -> tuple[float, float]:
        """The 5th and 95th percentile of tau."""
        return _range(self.taus)

    @property
    def alpha_range(self) -> tuple[float, float]:
        """The 5th and 95th percentile of alpha."""
        return _range(self.alphas)

    @property
    def tau_median(self) -> float:
        """The median of tau."""
        return _median(self.taus)

    @property
    def alpha_median(self) -> float:
        """The median of alpha."""
        return _median(self.alphas)


def stages(account: Mapping[str, Any]) -> tuple[StageFacts, ...]:
    """Sum an account of windows (`provenance/windows.<judge>.json`) over domains and phases."""
    totals = {stage: dict.fromkeys(OUTCOMES, 0) for stage in STAGES}
    for domain in account["domains"].values():
        for stage, phases in domain.items():
            total = totals[stage]
            for outcomes in phases.values():
                for outcome, number in outcomes.items():
                    total[outcome] = total.get(outcome, 0) + number
    return tuple(
        StageFacts(
            stage,
            windows=sum(total.values()),
            fitted=total[FITTED],
            left_out=sum(total.values()) - total[FITTED],
            reasons={outcome: number for outcome, number in total.items() if number and outcome != FITTED},
        )
        for stage, total in totals.items()
    )


def calibration(tree: ReleaseTree, benchmark: Benchmark, judge: str) -> Calibration:
    """Read what a judge's calibration left in the tree.

    Raises:
        InputError, DataError: a table or the item parameters are missing or broken.
    """
    params = tree.item_params(judge)
    gamma, beta = np.asarray(params["gamma"], np.float64), np.asarray(params["beta"], np.float64)
    judged: list[pl.DataFrame] = []
    passes: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]] = []
    scales: list[pl.DataFrame] = []
    for domain in benchmark.domains:
        subsets = [f"{domain}__{language}" for language in benchmark.languages]
        qrels = pl.concat(tree.table("qrels", subset=subset) for subset in subsets).drop_nulls("theta")
        judged.append(qrels.select("score", "gain", "theta"))
        if tree.has("judge_criteria"):
            passes.append(_passes(tree.table("judge_criteria", split=domain), qrels))
        if tree.has("calibration"):
            table = tree.table("calibration", split=domain).select("query-id", "tau", "alpha")
            scales.append(table.unique("query-id", maintain_order=True).select("tau", "alpha"))
    if passes and not any(n.sum() for _, n, _ in passes):
        raise DataError(
            "no verdict is about a pair of the qrels",
            where=Where(str(tree.path), column="judge_criteria"),
            remedy="both must come from one release.",
        )
    pairs = pl.concat(judged)
    thetas = np.sort(pairs["theta"].to_numpy())
    scale = pl.concat(scales).sort("tau", "alpha") if scales else None
    return Calibration(
        link=str(params.get("link", "")),
        items={name: (float(g), float(b)) for name, g, b in zip(_names(len(gamma)), gamma, beta, strict=True)},
        below_easiest=float(np.searchsorted(thetas, beta.min()) / max(len(thetas), 1)),
        thetas=thetas,
        grades=_grades(pairs),
        placements=int(sum(n.sum() for _, n, _ in passes)) if passes else None,
        reliability=reliability((probabilities(theta, gamma, beta), n, passed) for theta, n, passed in passes)
        if passes
        else None,
        taus=None if scale is None else scale["tau"].to_numpy(),
        alphas=None if scale is None else scale["alpha"].to_numpy(),
    )


def reliability(
    parts: Iterable[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]],
) -> Reliability:
    """Reliability of predicted pass probabilities in 10 bins, left-closed, 1.0 in the last (method spec section 12).

    Args:
        parts: predicted (pages, criteria), verdicts a page and criterion (pages,), passes (pages, criteria).
    """
    counts, passed, predicted = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    squares = 0.0
    for chance, n, passes in parts:
        asked = np.broadcast_to(n[:, np.newaxis], chance.shape)
        # k / 10 is exactly the edge's float, so an edge value goes to the bin above it.
        bins = np.clip(np.searchsorted(np.arange(BINS) / BINS, chance.ravel(), side="right") - 1, 0, BINS - 1)
        counts += np.bincount(bins, asked.ravel(), minlength=BINS)
        passed += np.bincount(bins, passes.ravel(), minlength=BINS)
        predicted += np.bincount(bins, (asked * chance).ravel(), minlength=BINS)
        squares += float((passes * (1 - chance) ** 2 + (asked - passes) * chance**2).sum())
    total = float(counts.sum())
    filled = counts > 0
    means = np.divide(predicted, counts, out=np.full(BINS, np.nan), where=filled)
    rates = np.divide(passed, counts, out=np.full(BINS, np.nan), where=filled)
    gaps = counts[filled] * np.abs(rates[filled] - means[filled])
    return Reliability(int(total), means, rates, counts, float(gaps.sum() / total), squares / total)


def _passes(
    criteria: pl.DataFrame, qrels: pl.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """theta, placements and passes a criterion of each page with verdicts."""
    sums = criteria.group_by(PAIR, maintain_order=True).agg(pl.len().alias("n"), pl.col(CRITERIA).sum())
    found = sums.join(qrels.select(*PAIR, "theta"), on=PAIR, how="inner", maintain_order="left")
    passed = found.select(pl.col(CRITERIA).cast(pl.Float64)).to_numpy()
    return found["theta"].to_numpy(), found["n"].cast(pl.Float64).to_numpy(), passed


def _grades(pairs: pl.DataFrame) -> tuple[GradeFacts, ...]:
    found = []
    for grade in sorted(pairs["score"].unique()):
        gains = np.sort(pairs.filter(pl.col("score") == grade)["gain"].to_numpy())
        low, middle, high = (float(value) for value in np.percentile(gains, [25, 50, 75]))
        histogram = np.histogram(gains, bins=40, range=(0.0, 1.0))[0]
        found.append(GradeFacts(int(grade), len(gains), (low, middle, high), histogram))
    return tuple(found)


def _names(criteria: int) -> Sequence[str]:
    return [f"C{number}" for number in range(1, criteria + 1)]


def _range(values: NDArray[np.float64] | None) -> tuple[float, float]:
    low, high = np.percentile(_there(values), [5, 95])
    return float(low), float(high)


def _median(values: NDArray[np.float64] | None) -> float:
    return float(np.median(_there(values)))


def _there(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if values is None:
        raise ValueError(values)
    return values
