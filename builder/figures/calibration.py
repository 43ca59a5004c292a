"""Figures of the calibration: the gain link, reliability, gains by human grade, the questions' scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from builder.figures.style import BLUE, GRID, INK, MUTED, ORANGE, SKY, VERMILION, light_grid, new_figure
from provenance.gain import THETA_LINKS, gains, probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from builder.card_facts import CardFacts

_BINS = 60
_NEAR = 0.045


def gain_link(facts: CardFacts) -> Figure | None:
    """Gain against theta with the criteria's difficulties, above the distribution of theta over the pool.

    None where the item parameters name no link that is known.
    """
    calibration = facts.calibration
    if calibration.link not in THETA_LINKS or not len(calibration.thetas):
        return None
    gamma = np.array([item[0] for item in calibration.items.values()])
    beta = np.array([item[1] for item in calibration.items.values()])
    low, high = np.percentile(calibration.thetas, [0.1, 99.9])
    low, high = min(low, beta.min()) - 0.5, max(high, beta.max()) + 0.5
    grid = np.linspace(low, high, 400)
    figure = new_figure(4.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    chances = probabilities(grid, gamma, beta)
    for column in range(len(beta)):
        top.plot(grid, chances[:, column], color=SKY, linewidth=0.9, label="chance to pass a criterion" * (column == 0))
    top.plot(grid, gains(grid, gamma, beta, calibration.link), color=BLUE, linewidth=2.4, label="gain")
    ends: list[float] = []
    for name, value in sorted(zip(calibration.items, beta, strict=True), key=lambda item: item[1]):
        # A name stands on the lowest step where it covers no other.
        level = next((step for step, end in enumerate(ends) if value > end), len(ends))
        ends[level : level + 1] = [value + _NEAR * (high - low)]
        for axes in (top, bottom):
            axes.axvline(value, color=VERMILION, linewidth=1, linestyle=(0, (4, 3)))
        top.annotate(
            name,
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 11 * level),
            textcoords="offset points",
            ha="center",
            color=VERMILION,
            fontsize=9,
        )
    top.set_ylim(0, 1)
    top.set_ylabel("gain")
    top.legend(loc="upper left", fontsize=8.5)
    _histogram(bottom, calibration.thetas, (low, high), BLUE)
    bottom.set_xlabel("theta (dashed: difficulty of a criterion)")
    bottom.set_ylabel("share of\npool pairs, %")
    light_grid(top, "y")
    return figure


def reliability(facts: CardFacts) -> Figure | None:
    """Observed shares of passes against predicted chances, above the verdicts of each bin; None without criteria."""
    found = facts.calibration.reliability
    if found is None:
        return None
    figure = new_figure(5.2)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    top.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="perfectly calibrated")
    filled = found.counts > 0
    top.plot(found.predicted[filled], found.observed[filled], "o-", color=BLUE, label="the judge's verdicts")
    top.set_ylabel("observed share of passes")
    top.set_ylim(0, 1)
    top.legend(loc="upper left")
    top.set_title(f"Expected calibration error {found.ece:.4f}")
    bins = len(found.counts)
    share = 100 * found.counts / found.counts.sum()
    bottom.bar((np.arange(bins) + 0.5) / bins, share, width=0.92 / bins, color=SKY)
    bottom.set_ylabel("share of\nverdicts, %")
    bottom.set_xlabel("predicted probability to pass")
    bottom.set_xlim(0, 1)
    for axes in (top, bottom):
        light_grid(axes, "y")
    return figure


def gain_by_grade(facts: CardFacts) -> Figure | None:
    """The distribution of gains for each human grade, with median and quartiles; None for an empty pool."""
    grades = facts.calibration.grades
    if not grades:
        return None
    figure = new_figure(0.8 + 1.15 * len(grades))
    for axes, grade in zip(
        np.atleast_1d(np.asarray(figure.subplots(len(grades), 1, sharex=True))), grades, strict=True
    ):
        share = 100 * grade.histogram / grade.pairs
        edges = np.linspace(0, 1, len(share) + 1)
        axes.stairs(share, edges, fill=True, color=SKY)
        low, middle, high = grade.quartiles
        axes.axvspan(low, high, color=ORANGE, alpha=0.28, linewidth=0)
        axes.axvline(middle, color=VERMILION, linewidth=2)
        name = "no label (0)" if grade.grade == 0 else f"human grade {grade.grade}"
        axes.set_title(f"{name}: {grade.pairs:,} pairs, median {middle:.2f}", fontsize=9.5, fontweight="normal")
        axes.set_xlim(0, 1)
        axes.set_ylabel("share, %")
        light_grid(axes, "y")
    figure.axes[-1].set_xlabel("gain (line: median, band: quartiles)")
    return figure


def scales(facts: CardFacts) -> Figure | None:
    """The distributions of tau and alpha over the questions; None where the tree has no calibration table."""
    taus, alphas = facts.calibration.taus, facts.calibration.alphas
    if taus is None or alphas is None:
        return None
    figure = new_figure(2.7)
    for axes, values, name, colour in zip(
        figure.subplots(1, 2), (taus, alphas), ("tau", "alpha"), (BLUE, VERMILION), strict=True
    ):
        low, high = float(values.min()), float(values.max())
        room = 0.02 * (high - low) or 0.5
        _histogram(axes, values, (low - room, high + room), colour, bins=30)
        axes.axvline(float(np.median(values)), color=INK, linewidth=1.5)
        axes.set_xlabel(f"{name} of a question (line: median)")
        axes.set_ylabel("share, %")
        light_grid(axes, "y")
    return figure


def _histogram(
    axes: Axes, values: NDArray[np.float64], span: tuple[float, float], colour: str, *, bins: int = _BINS
) -> None:
    counts, edges = np.histogram(values, bins=bins, range=span)
    axes.stairs(100 * counts / len(values), edges, fill=True, color=colour, alpha=0.55)
    axes.set_ylim(bottom=0)
    axes.spines["bottom"].set_color(GRID)
