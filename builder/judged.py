"""What judging gives a release, whoever fitted it: gains, criteria, calibration, item parameters, windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl
    import pyarrow as pa

STAGES = ("tournament", "rubric")


@dataclass(frozen=True)
class Judged:
    """A judge's results over all domains.

    Attributes:
        gains: a domain's query-id, corpus-id, theta, gain.
        criteria: a domain's rubric verdicts, in pieces that follow each other; empty where the inputs lack them.
        calibration: a domain's query-id, corpus-id, ability, tau, alpha; empty where the inputs lack them.
        item_params: gamma, beta, link, priors, what was fitted.
        windows: the account of windows by domain, stage, phase and outcome; None where it is not known.
        made: `here` (fitted by this tool from raw answers) or `elsewhere` (not by it: checked, not refitted).
    """

    gains: Mapping[str, pl.DataFrame]
    criteria: Mapping[str, Iterable[pa.Table | pl.DataFrame]]
    calibration: Mapping[str, pl.DataFrame]
    item_params: dict[str, Any]
    windows: dict[str, Any] | None
    made: str
