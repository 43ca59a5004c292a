"""How every figure looks, and how it is saved so that its bytes depend on the facts only."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes

WIDTH = 7.0
"""Inches; at 100 pixels an inch it is the Hub's column of 700 pixels."""

GROUND = "#fbfaf7"
INK = "#24292f"
MUTED = "#6b7280"
GRID = "#dcdcd6"
# Okabe and Ito.
BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"

_PIXELS_AN_INCH = 200
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": GROUND,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": GROUND,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.08,
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.hashsalt": "rcp-release",
    # Outlines: text looks the same where the font is missing.
    "svg.fonttype": "path",
}


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's defaults and our style, whatever the user's own matplotlibrc says."""
    with style.context(["default", _STYLE]), mpl.rc_context():
        yield


def new_figure(height: float) -> Figure:
    """An empty figure of the column's width, `height` in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def light_grid(axes: Axes, axis: str) -> None:
    """Thin lines behind the marks, along one axis (`x` or `y`)."""
    axes.grid(visible=True, axis="x" if axis == "x" else "y", linewidth=0.8)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `<name>.svg` and `<name>.png`; neither holds a date, nor the version of what wrote it."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", dpi=_PIXELS_AN_INCH, metadata={"Software": None})
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    (folder / f"{name}.png").write_bytes(png.getvalue())
    (folder / f"{name}.svg").write_text(svg.getvalue(), encoding="utf-8", newline="\n")
