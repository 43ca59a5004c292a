"""The fits on a real benchmark's decoded answers, against the results of independent code (agreement to 1e-6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pytest

from provenance import bradley_terry, gain, irt, windows

if TYPE_CHECKING:
    from pathlib import Path

DOMAINS = ("sysadmin_en", "sysadmin_fr")
BAR = 1e-6


class Fitted(NamedTuple):
    """Abilities and the 2PL of both domains, query ids as `<domain>||<query-id>`."""

    abilities: pl.DataFrame
    items: irt.ItemFit


@pytest.fixture(scope="module")
def fitted(reference: Path) -> Fitted:
    """Every answer decoded and both fits made, once."""
    abilities, placements = [], []
    for domain in DOMAINS:
        folder = reference / "pipeline" / "judgements" / "simulated"
        tournament, rubric = (
            pl.read_parquet(folder / stage / f"{domain}.parquet") for stage in ("tournament", "rubric")
        )
        read = windows.read_tournament(tournament, file=domain)
        own = pl.concat_str(pl.lit(f"{domain}||"), "query-id").alias("query-id")
        abilities.append(bradley_terry.fit(read.scores, read.shown).with_columns(own))
        placements.append(windows.read_rubric(rubric, file=domain).placements.with_columns(own))
    every = pl.concat(abilities)
    return Fitted(every, irt.fit(irt.count(pl.concat(placements), every)))


def expected_of(reference: Path, table: str) -> pl.DataFrame:
    """A table of expected results with query ids as `<domain>||<query-id>`."""
    frame = pl.read_parquet(reference / "expected" / f"{table}.parquet")
    return frame.with_columns(pl.concat_str("domain", pl.lit("||"), "query-id").alias("query-id"))


def largest(difference: pl.Expr, frame: pl.DataFrame) -> float:
    """The largest absolute value of an expression."""
    return float(frame.select(difference.abs().max()).item())


def test_abilities(fitted: Fitted, reference: Path) -> None:
    """Every ability equals the expected one, and they sum to zero in each query."""
    both = expected_of(reference, "gains").join(fitted.abilities, on=["query-id", "corpus-id"])
    assert 43_200 == both.height == fitted.abilities.height
    assert largest(pl.col("bt") - pl.col("ability"), both) < BAR
    sums = fitted.abilities.group_by("query-id").agg(pl.col("ability").sum())
    assert largest(pl.col("ability"), sums) < 1e-12


def test_tau_and_alpha(fitted: Fitted, reference: Path) -> None:
    """Every tau and alpha equals the expected one; the gradients are as small as the method asks."""
    both = expected_of(reference, "queries").join(fitted.items.queries(), on="query-id", suffix="_fitted")
    assert 288 == both.height == len(fitted.items.query_ids)
    assert largest(pl.col("tau") - pl.col("tau_fitted"), both) < BAR
    assert largest(pl.col("alpha") - pl.col("alpha_fitted"), both) < BAR
    assert fitted.items.query_gradient < 1e-8
    assert fitted.items.item_gradient < 1e-10


def test_item_parameters(fitted: Fitted, reference: Path) -> None:
    """Gamma, beta and the objective equal the expected ones; every placement was used."""
    expected = json.loads((reference / "expected" / "reference.json").read_text())
    assert expected["gamma"] == pytest.approx(fitted.items.gamma, abs=BAR)
    assert expected["beta"] == pytest.approx(fitted.items.beta, abs=BAR)
    assert expected["objective"] == pytest.approx(fitted.items.objective, abs=BAR)
    assert (expected["placements"], 0) == (fitted.items.placements, fitted.items.skipped)


def test_theta_and_gain(fitted: Fitted, reference: Path) -> None:
    """Every theta and gain equals the expected one."""
    theta = pl.col("tau") * pl.col("ability") + pl.col("alpha")
    frame = fitted.abilities.join(fitted.items.queries(), on="query-id", maintain_order="left").with_columns(our=theta)
    gains = gain.gains(frame["our"].to_numpy(), fitted.items.gamma, fitted.items.beta)
    both = frame.with_columns(won=pl.Series(gains)).join(expected_of(reference, "gains"), on=["query-id", "corpus-id"])
    assert 43_200 == both.height
    assert largest(pl.col("theta") - pl.col("our"), both) < BAR
    assert largest(pl.col("gain") - pl.col("won"), both) < BAR
