"""Figures of the results: both leaderboards with the slopes between them, and a heat map by domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from builder.card_facts_results import LEVEL
from builder.figures.style import BLUE, INK, MUTED, VERMILION, light_grid, new_figure
from builder.leaderboard import MEAN, printed
from provenance.shown import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from builder.card_facts import CardFacts
    from builder.card_facts_results import Reading
    from builder.leaderboard import Leaderboard

_LONGEST_NAME = 30
_ROW = 0.27
_FRAME = 1.25
_LINEAR_BELOW = 0.04045


def leaderboard(facts: CardFacts) -> Figure | None:
    """Means with their bootstrap intervals under both metrics, each in its own order, and a slope between the places.

    Native view, tie rule b. Systems without a Mean are left out; None without any.
    """
    results = facts.results
    if results is None or not results.readings:
        return None
    boards = [results.table(metric, "native", "b") for metric in ("rcp", "qrel")]
    orders = [_order(board, reading) for board, reading in zip(boards, results.readings, strict=True)]
    rows = len(orders[0])
    figure = new_figure(_FRAME + _ROW * rows)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 0.42, 1.0])
    for axes, board, order, reading, colour in zip(
        (left, right), boards, orders, results.readings, (BLUE, VERMILION), strict=True
    ):
        _dots(axes, board, order, reading, colour)
    right.yaxis.tick_right()
    places = {name: place for place, name in enumerate(orders[1])}
    for place, name in enumerate(orders[0]):
        moved = places[name] != place
        middle.plot([0, 1], [place, places[name]], color=INK if moved else MUTED, linewidth=1.3)
    middle.set_xlim(0, 1)
    middle.set_ylim(left.get_ylim())
    middle.axis("off")
    return figure


def domains(facts: CardFacts) -> Figure | None:
    """NDCG by system and domain for both metrics, native view, tie rule b; None without runs."""
    results = facts.results
    if results is None:
        return None
    boards = [results.table(metric, "native", "b") for metric in ("rcp", "qrel")]
    labels = {**{domain.name: domain.label for domain in facts.domains}, MEAN: "Mean"}
    rows = len(boards[0].rows)
    figure = new_figure(2 * (_FRAME + _ROW * rows))
    for axes, board, metric in zip(figure.subplots(2, 1), boards, ("RCP-nDCG", "qrel-nDCG"), strict=True):
        percent = 100 * board.values
        axes.set_title(f"{metric}@{board.k}, percent")
        if np.isnan(percent).all():
            axes.axis("off")
            continue
        image = axes.imshow(percent, cmap="cividis", aspect="auto")
        for row, column in np.ndindex(percent.shape):
            value = float(percent[row, column])
            colour = _readable_on(image.to_rgba(value))
            axes.text(column, row, printed(value / 100), ha="center", va="center", color=colour, fontsize=8.5)
        axes.set_xticks(range(len(board.columns)), [_literal(labels[column]) for column in board.columns])
        axes.set_yticks(range(rows), [_literal(name) for name in board.rows])
        axes.tick_params(length=0)
        if len(board.columns) > 5:  # noqa: PLR2004 - more labels than fit side by side
            for label in axes.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        # The Mean stands apart.
        axes.axvline(len(board.columns) - 1.5, color="white", linewidth=2)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure


def _order(board: Leaderboard, reading: Reading) -> list[str]:
    """The systems that have a Mean, best first; equal ones in the table's order."""
    means = dict(zip(board.rows, board.values[:, -1].tolist(), strict=True))
    return sorted(reading.intervals, key=lambda name: -means[name])


def _dots(axes: Axes, board: Leaderboard, order: list[str], reading: Reading, colour: str) -> None:
    means = dict(zip(board.rows, board.values[:, -1].tolist(), strict=True))
    for place, name in enumerate(order):
        low, high = reading.intervals[name]
        axes.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2, alpha=0.45)
        axes.plot(100 * means[name], place, "o", color=colour, markersize=5)
        axes.annotate(
            printed(means[name]),
            (100 * means[name], place),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
        )
    axes.set_yticks(range(len(order)), [_literal(name) for name in order])
    axes.set_ylim(len(order) - 0.4, -0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title(f"{reading.metric}@{board.k}")
    axes.set_xlabel(f"Mean, percent, with {LEVEL} % intervals", color=MUTED)
    axes.margins(x=0.06)
    light_grid(axes, "x")


def _readable_on(ground: Sequence[float]) -> str:
    """Black or white, whichever has the higher contrast on a colour (WCAG's relative luminance)."""
    red, green, blue = (
        part / 12.92 if part <= _LINEAR_BELOW else ((part + 0.055) / 1.055) ** 2.4 for part in ground[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"


def _literal(text: str) -> str:
    """Text from the benchmark file as it stands, on one line and cut where it is long: a dollar starts no formula."""
    shown = visible(text)
    if len(shown) > _LONGEST_NAME:
        shown = f"{shown[: _LONGEST_NAME - 1]}…"
    return shown.replace("$", r"\$")
