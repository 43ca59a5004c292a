"""The figures of a card: SVG and PNG into `assets/`, the same bytes for the same facts (extra `plots`).

A figure has an opaque light ground of its own, so it reads the same on a light and on a dark page, wherever the card is
shown: a transparent ground would lose its dark text on a dark page, and not every viewer knows `<picture>` with
`prefers-color-scheme`. Colours are those of Okabe and Ito and the map `cividis`, which colour-blind readers can tell
apart; no meaning hangs on colour alone. Widths suit a column of 700 pixels.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from provenance.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from builder.card_facts import CardFacts


def require() -> None:
    """Refuse to go on without matplotlib.

    Raises:
        InputError: it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            "the card's figures need matplotlib, which is not installed",
            remedy="install the extra: pip install 'rcp-release[plots]'; or build with --no-figures.",
        )


def draw(facts: CardFacts, assets: Path) -> tuple[str, ...]:
    """Draw every figure that the facts allow into a folder, `<name>.svg` and `<name>.png` each.

    Deterministic on one version of matplotlib and its libraries (fonts are matplotlib's own, ids are salted, no date).

    Args:
        facts: what the card says.
        assets: the folder; it is made.

    Returns:
        The names that were drawn. A tree without runs has no leaderboard, and so on.

    Raises:
        InputError: matplotlib is not installed.
    """
    require()
    # Only here: without figures a build does without matplotlib.
    from builder.figures.calibration import gain_by_grade, gain_link, reliability, scales  # noqa: PLC0415
    from builder.figures.results import domains, leaderboard  # noqa: PLC0415
    from builder.figures.style import save, styled  # noqa: PLC0415

    drawn = []
    for make in (leaderboard, domains, gain_link, reliability, gain_by_grade, scales):
        with styled():
            figure = make(facts)
            if figure is not None:
                save(figure, assets, make.__name__)
                drawn.append(make.__name__)
    return tuple(drawn)
