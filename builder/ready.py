"""Gains made elsewhere: taken as they are, after checking what can be checked without refitting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.layout import CRITERIA
from provenance import gain
from provenance.errors import DataError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from builder.inputs import ReadyGains

GAIN_TOLERANCE = 1e-12
"""Absolute. A recorded `fit.dtype` of float32, or none recorded, widens it: see `gain_tolerance`."""
FLOAT32_TOLERANCE = 1e-7


def gain_tolerance(item_params: Mapping[str, Any]) -> float:
    """How far a gain may lie from its link of theta: float64 fits 1e-12, others 1e-7 (method spec section 9.2)."""
    return GAIN_TOLERANCE if item_params.get("fit", {}).get("dtype") == "float64" else FLOAT32_TOLERANCE


def check_ready(ready: ReadyGains, pool: pl.DataFrame, item_params: Mapping[str, Any], *, file: str) -> None:
    """Refuse gains that do not cover the pool, or do not follow from theta and the item parameters.

    Raises:
        DataError: a pair is missing, foreign or repeated; a gain differs from the link of its theta; a calibration row
            whose tau is not positive or that does not give theta; a criteria row outside the pool.
    """
    pairs = ["query-id", "corpus-id"]
    for frame, other, what in (
        (pool, ready.gains, "a pool pair has no gain"),
        (ready.gains, pool, "a gain belongs to no pool pair"),
    ):
        _refuse(frame.join(other, on=pairs, how="anti"), what, "corpus-id", file)
    for piece in ready.criteria or ():
        _refuse(piece.join(pool, on=pairs, how="anti"), "a row belongs to no pool pair", "corpus-id", file)
    _refuse(ready.gains.filter(pl.struct(pairs).is_duplicated()), "a pair has two gains", "corpus-id", file)
    gamma, beta = _parameters(item_params, file)
    link = item_params.get("link", "weighted_discrimination")
    expected = gain.gains(ready.gains["theta"].to_numpy(), gamma, beta, link=link)
    off = np.abs(ready.gains["gain"].to_numpy() - expected) > gain_tolerance(item_params)
    _refuse(ready.gains.filter(pl.Series(off)), f"a gain is not {link}(theta) under the item parameters", "gain", file)
    if ready.calibration is not None:
        joined = ready.calibration.join(ready.gains, on=pairs, how="left")
        theta = pl.col("tau") * pl.col("ability") + pl.col("alpha")
        bad = joined.filter((pl.col("tau") <= 0) | ((theta - pl.col("theta")).abs() > gain_tolerance(item_params)))
        _refuse(bad, "theta is not tau * ability + alpha with tau > 0", "theta", file)


def check_pool(published: pl.DataFrame, recomputed: pl.DataFrame, *, file: str) -> None:
    """Refuse a published pool that is not what fusion and injection give, up to the places of injected pages.

    The stated rule leaves open where an injected page stands (method spec section 3), so a pool published elsewhere
    keeps its own `pool_rank`; its pairs, scores and flags must be the recomputed ones.

    Raises:
        DataError: a pair, an rrf_score or a flag differs.
    """
    pairs = ["query-id", "corpus-id"]
    for frame, other, what in (
        (published, recomputed, "the published pool has a page that fusion and injection do not give"),
        (recomputed, published, "the published pool lacks a page that fusion and injection give"),
    ):
        _refuse(frame.join(other, on=pairs, how="anti"), what, "corpus-id", file)
    joined = published.join(recomputed, on=pairs, how="left", suffix="_recomputed")
    for name, differs in (
        ("rrf_score", (pl.col("rrf_score") - pl.col("rrf_score_recomputed")).abs() > GAIN_TOLERANCE),
        ("gt_injected", pl.col("gt_injected") != pl.col("gt_injected_recomputed")),
    ):
        _refuse(joined.filter(differs), f"the published pool's {name} is not the recomputed one", name, file)


def _parameters(item_params: Mapping[str, Any], file: str) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for name in ("gamma", "beta"):
        values = item_params.get(name)
        if not isinstance(values, list) or len(values) != len(CRITERIA):
            raise DataError(
                f"the item parameters need {len(CRITERIA)} numbers in '{name}'",
                where=Where(file, column=name, value=values),
                remedy="give the item_params that belong to these gains.",
            )
        odd = [value for value in values if not _is_number(value)]
        if odd:
            raise DataError(
                f"the item parameters hold what is no finite number in '{name}'",
                where=Where(file, column=name, value=odd[0]),
                remedy="give the item_params that belong to these gains.",
            )
        found.append(np.asarray(values, dtype=np.float64))
    return found[0], found[1]


def _is_number(value: object) -> bool:
    """Whether float64 holds it: no NaN, no infinity, no integer beyond."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _refuse(bad: pl.DataFrame, what: str, column: str, file: str) -> None:
    if bad.height:
        row = bad.row(0, named=True)
        raise DataError(
            f"{what}: query {quoted(row['query-id'])}, page {quoted(row['corpus-id'])} ({bad.height} such rows)",
            where=Where(file, column=column, value=row[column]),
            remedy="the gains, the pool and the item parameters must come from one release.",
        )
