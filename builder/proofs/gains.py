"""G1 and G2: gains follow from theta, theta from the calibration, and the calibration from the verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from builder.layout import CRITERIA
from builder.proofs import certificate
from builder.proofs.facts import FILE, ROW, Facts, Table, UnprovableError
from builder.proofs.outcome import Coverage, Finding, Gap, Measure, fault
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, or_gap, proof
from builder.ready import gain_tolerance
from provenance.errors import ReleaseError
from provenance.gain import DEFAULT_LINK, gains

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PAIR = ["query-id", "corpus-id"]
_ZERO_SUM = 1e-9
"""Abilities sum to zero in a query: the fit subtracts the mean in float64, 150 roundings of numbers below 20."""
_OBJECTIVE = 1e-10
"""Relative. Two float64 sums of some ten million terms in different orders agree far closer."""


@proof("G1", "gain is the link of theta; theta = tau * ability + alpha, tau > 0, abilities sum to zero in a query")
def links(facts: Facts) -> Iterator[Finding]:
    """Proves every gain from its theta under the item parameters, and every theta from tau, alpha and its ability.

    Within 1e-12, or 1e-7 where the fit was not made in float64 (see `builder.ready`).

    It does not prove that theta is the right one: that is G2; nor that abilities follow from the tournament's answers,
    which no tree holds.
    """
    params = facts.item_params()
    yield from _parameters(facts, params)
    yield from _links(facts)


def _parameters(facts: Facts, params: Mapping[str, Any]) -> Iterator[Finding]:
    """Gamma sums to the number of criteria, beta to zero (method spec section 8.1)."""
    name = f"provenance/item_params.{facts.judge()}.json"
    criteria = params["num_criteria"]
    for key in ("gamma", "beta"):
        if len(params[key]) != criteria or criteria != len(CRITERIA):
            message = f"{key} needs {len(CRITERIA)} numbers, one a criterion"
            yield fault("criteria", message, file=name, column=key, value=params[key])
            raise UnprovableError(f"{name} does not hold {len(CRITERIA)} criteria")
    tolerance = 1e-9 if params.get("fit", {}).get("dtype") == "float64" else 1e-4
    for key, total in (("gamma", float(criteria)), ("beta", 0.0)):
        found = float(np.sum(params[key]))
        if not abs(found - total) <= tolerance:
            yield fault(
                "scale", f"{key} must sum to {total:g}, it sums to {found!r}", file=name, column=key, value=found
            )


@each_domain
def _links(facts: Facts, domain: str) -> Iterator[Finding]:
    params = facts.item_params()
    tolerance = gain_tolerance(params)
    thetas = []
    for table, frame in facts.domain_frame("qrels", domain, [*_PAIR, "gain", "theta"]):
        yield Coverage(frame.height, len(table.files), frame["query-id"].n_unique())
        yield wrong_gains(frame, table, params, tolerance)
        thetas.append((table, frame))
    yield from or_gap(_thetas(facts, domain, thetas, tolerance), "calibration")


def wrong_gains(frame: pl.DataFrame, table: Table, params: Mapping[str, Any], tolerance: float) -> pl.DataFrame:
    """Rows whose gain is not the link of their theta. A theta that is not finite is S1's."""
    usable = frame.filter(pl.col("theta").is_finite())
    link = params.get("link", DEFAULT_LINK)
    try:
        wanted = gains(usable["theta"].to_numpy(), params["gamma"], params["beta"], link=link)
    except ReleaseError as error:
        raise UnprovableError(f"the link '{link}': {error.what}") from error
    joined = usable.with_columns(pl.Series("wanted", wanted, dtype=pl.Float64))
    bad = joined.filter(~((pl.col("gain") - pl.col("wanted")).abs() <= tolerance).fill_null(value=False))
    message = pl.format("{}(theta = {}) is {}", pl.lit(link), pl.col("theta"), pl.col("wanted"))
    return failures(bad, table, rule="gain", column="gain", message=message)


def _thetas(facts: Facts, domain: str, thetas: list[tuple[Table, pl.DataFrame]], tolerance: float) -> Iterator[Finding]:
    table = facts.one("calibration", domain)
    frame = facts.frame(table, [*_PAIR, "ability", "tau", "alpha"])
    yield Coverage(frame.height, len(table.files))
    yield failures(frame.filter(~(pl.col("tau") > 0)), table, rule="tau", column="tau", message="tau must be above 0")
    for name in ("tau", "alpha"):
        first = pl.col(name).first().over("query-id")
        bad = frame.filter(pl.col(name).ne_missing(first))
        message = pl.format(f"the query's first row has the {name} {{}}", bad.select(first.alias("f"))["f"])
        yield failures(bad, table, rule="one-a-query", column=name, message=message)
    sums = frame.group_by("query-id", maintain_order=True).agg(pl.col("ability").sum(), pl.col(ROW, FILE).first())
    bad = sums.filter(~(pl.col("ability").abs() <= _ZERO_SUM))
    yield failures(bad, table, rule="zero-sum", column="ability", message="the query's abilities do not sum to zero")
    theta = (pl.col("tau") * pl.col("ability") + pl.col("alpha")).alias("wanted")
    wanted = frame.select(*_PAIR, theta)
    for qrels, rows in thetas:
        joined = rows.join(wanted, on=_PAIR, how="left", maintain_order="left")
        gone = joined.filter(pl.col("wanted").is_null())
        yield failures(
            gone, qrels, rule="calibrated", column="theta", message="the calibration has no row for this pair"
        )
        scale = pl.max_horizontal(pl.lit(1.0), pl.col("wanted").abs())
        off = joined.filter(
            pl.col("wanted").is_not_null() & ~((pl.col("theta") - pl.col("wanted")).abs() <= tolerance * scale)
        )
        message = pl.format("tau * ability + alpha is {}", pl.col("wanted"))
        yield failures(off, qrels, rule="theta", column="theta", message=message)
    known = pl.concat([rows.select(_PAIR) for _, rows in thetas])
    extra = frame.join(known, on=_PAIR, how="anti", maintain_order="left")
    yield failures(extra, table, rule="calibrated", column="corpus-id", message="no qrels row has this pair")


@dataclass(frozen=True)
class _DomainBlock:
    """A domain for the certificate.

    `queries` has query-id, `table` (a number in `tables`: where a failure of the query is shown) and, where that is
    the calibration, the place of the query's first row.
    """

    queries: pl.DataFrame
    block: certificate.Block
    tables: tuple[Table, ...]
    skipped: int


@proof("G2", "the published fit is a stationary point of the declared objective on the published verdicts")
def stationary(facts: Facts) -> Iterator[Finding]:
    """Proves, without refitting, that theta, gamma and beta are where the declared objective has no slope.

    Every query's equations for alpha and (with a calibration table) tau, and the ten shared gradients with their
    ridge, from the published verdicts and thetas; the recorded number of placements and objective too. The 2PL in
    (tau, alpha) is convex for given items, so a query's equations have one solution; the items are fixed up to what
    ten gradients can see. A residual may reach the tolerance that item_params records plus what rounding in the
    recorded dtype can do to these sums; where the fit's dtype or tolerance is not recorded, residuals are shown and
    not judged.

    Blind spots. Swapping two pages of a query with equal verdict counts moves no sum without the calibration table
    (with it, abilities tell them apart, unless these are swapped as well: raw tournament answers are not published).
    Without the table the tau equation only asks for a root, so a change along it stays hidden unless it moves alpha's
    equation. One theta moved by d moves its query's equation by n gamma^2 p (1 - p) d: changes below the tolerance
    over that slope, and pages with n = 0, are G1's alone. Verdicts that are swapped between windows of the same page
    change no count.
    """
    params = facts.item_params()
    items = _items(params)
    sums = certificate.SharedSums.zero(len(items.gamma))
    total = _Total()
    for domain in facts.domains():
        yield from or_gap(_judge_domain(facts, domain, items, sums, total), domain)
    if total.domains == len(facts.domains()):
        yield from _judge_shared(facts, params, items, sums, total)
    for name, value in total.worst.items():
        yield Measure(name, value)
    if not items.judged:
        yield Gap("item_params does not record the fit's dtype and tolerance: residuals are shown, not judged")


@dataclass
class _Total:
    """What the domains add up to: how many were read, whether all have a calibration, the worst residuals."""

    domains: int = 0
    calibrated: bool = True
    worst: dict[str, float] = field(default_factory=dict)


def _items(params: Mapping[str, Any]) -> certificate.Items:
    items = certificate.Items.of(params)
    if len(items.gamma) != len(CRITERIA) or len(items.beta) != len(CRITERIA):
        raise UnprovableError("the item parameters do not hold one number a criterion")
    mode = params.get("fit", {}).get("mode", "tournament")
    if mode != "tournament":
        raise UnprovableError(f"the fit's mode is {mode!r}; the certificate knows tournament mode")
    return items


def _judge_domain(
    facts: Facts, domain: str, items: certificate.Items, sums: certificate.SharedSums, total: _Total
) -> Iterator[Finding]:
    read = _read_block(facts, domain)
    residuals = certificate.judge_block(read.block, items, sums)
    total.domains += 1
    total.calibrated &= read.block.tau is not None
    for name, value in _worst(residuals).items():
        total.worst[name] = max(total.worst.get(name, 0.0), value)
    if read.skipped:
        total.worst["verdict rows without a theta"] = (
            total.worst.get("verdict rows without a theta", 0.0) + read.skipped
        )
    yield Coverage(int(read.block.n.sum()) + len(read.block.theta), len(read.tables) + 1, read.queries.height)
    if items.judged:
        yield from judge_queries(residuals, read.queries, read.tables, items)


def _worst(residuals: certificate.QueryResiduals) -> dict[str, float]:
    found = {"largest alpha residual": certificate.largest(residuals.alpha)}
    if residuals.tau is not None:
        found["largest tau residual"] = certificate.largest(residuals.tau)
    if residuals.root is not None:
        found["queries without a tau"] = float(np.isnan(residuals.root).sum())
    return found


def judge_queries(
    residuals: certificate.QueryResiduals, queries: pl.DataFrame, tables: tuple[Table, ...], items: certificate.Items
) -> Iterator[pl.DataFrame]:
    """Queries whose equations do not hold within tolerance and rounding."""
    limit = items.query_tolerance or 0.0
    calibrated = residuals.tau is not None
    equations = [
        ("stationary-alpha", "alpha" if calibrated else "theta", residuals.alpha, limit + residuals.alpha_bound)
    ]
    if residuals.tau is not None:
        equations.append(("stationary-tau", "tau", residuals.tau, limit + residuals.tau_bound))
    for rule, column, values, bounds in equations:
        frame = queries.with_columns(pl.Series("slope", values), pl.Series("bound", bounds))
        bad = frame.filter(~(pl.col("slope").abs() <= pl.col("bound")))
        message = f"the slope of the objective in the query's {rule.removeprefix('stationary-')} is not 0 (within {{}})"
        yield from _at_tables(bad, tables, rule=rule, column=column, message=message)
    if residuals.discriminant is not None:
        frame = queries.with_columns(
            pl.Series("slope", residuals.discriminant), pl.Series("bound", limit + residuals.tau_bound)
        )
        bad = frame.filter(~(pl.col("slope") >= -pl.col("bound")))
        message = "no positive tau makes the objective stationary (discriminant below {})"
        yield from _at_tables(bad, tables, rule="no-root", column="theta", message=message)


def _at_tables(
    bad: pl.DataFrame, tables: tuple[Table, ...], *, rule: str, column: str, message: str
) -> Iterator[pl.DataFrame]:
    for number, table in enumerate(tables):
        own = bad.filter(pl.col("table") == number)
        text = pl.format(message, pl.col("bound"))
        yield failures(own, table, rule=rule, column=column, value="slope", message=text)


def _judge_shared(
    facts: Facts,
    params: Mapping[str, Any],
    items: certificate.Items,
    sums: certificate.SharedSums,
    total: _Total,
) -> Iterator[pl.DataFrame]:
    if sums.placements == 0:
        raise UnprovableError("no verdict has a theta")
    name = f"provenance/item_params.{facts.judge()}.json"
    by_u, by_v, rounding = certificate.shared_gradients(sums, items)
    total.worst["largest gamma gradient"] = certificate.largest(by_u)
    total.worst["largest beta gradient"] = certificate.largest(by_v)
    fit = params.get("fit", {})
    if items.judged:
        limit = (items.item_tolerance or 0.0) + rounding
        for key, gradient in (("gamma", by_u), ("beta", by_v)):
            for criterion, value in zip(CRITERIA, gradient, strict=True):
                if not abs(value) <= limit:
                    message = f"the slope of the objective in {key} of {criterion} is not 0 (within {limit:.3g})"
                    yield fault(f"stationary-{key}", message, file=name, column=key, value=float(value))
    if "placements" in fit and fit["placements"] != int(sums.placements):
        message = f"the fit used {fit['placements']:,} placements, the tree has verdicts of {int(sums.placements):,}"
        yield fault("placements", message, file=name, column="fit.placements", value=fit["placements"])
    if total.calibrated and "objective" in fit and fit.get("dtype") == "float64":
        found = certificate.mean_objective(sums, items)
        if not abs(found - fit["objective"]) <= _OBJECTIVE * abs(found):
            message = f"the objective at the published values is {found!r}"
            yield fault("objective", message, file=name, column="fit.objective", value=fit["objective"])


def _read_block(facts: Facts, domain: str) -> _DomainBlock:
    """A domain's pages with theta, verdict counts and, where there is one, calibration."""
    criteria = facts.one("judge_criteria", domain)
    counts = (
        facts.frame(criteria, [*_PAIR, *CRITERIA])
        .lazy()
        .group_by(_PAIR)
        .agg(pl.len().alias("n"), *(pl.col(name).sum() for name in CRITERIA))
        .collect()
    )
    read = facts.domain_frame("qrels", domain, [*_PAIR, "theta"])
    pages = pl.concat([frame.with_columns(pl.lit(n, pl.Int16).alias("table")) for n, (_, frame) in enumerate(read)])
    pages = pages.filter(pl.col("theta").is_finite()).drop(ROW, FILE)
    tables = tuple(table for table, _ in read)
    calibrated = any(table.kind == "calibration" and table.domain == domain for table in facts.tables)
    if calibrated:
        tables = (facts.one("calibration", domain),)
        scale = facts.frame(tables[0], [*_PAIR, "ability", "tau", "alpha"])
        pages = pages.drop("table").join(scale, on=_PAIR, how="inner", maintain_order="left")
        pages = pages.with_columns(pl.lit(0, pl.Int16).alias("table"))
    placements = int(counts["n"].sum())
    pages = pages.join(counts, on=_PAIR, how="left", maintain_order="left").with_columns(
        pl.col("n", *CRITERIA).fill_null(0)
    )
    # A query without one verdict took no part in the fit: it has no tau and alpha of its own.
    pages = pages.filter(pl.col("n").sum().over("query-id") > 0)
    own = [pl.col("tau", "alpha", ROW, FILE).first()] if calibrated else [pl.col("theta").mean().alias("alpha")]
    queries = pages.group_by("query-id", maintain_order=True).agg(pl.col("table").first(), *own)
    number = pages.select("query-id").join(
        queries.select("query-id").with_row_index("number"), on="query-id", how="left", maintain_order="left"
    )["number"]
    block = certificate.Block(
        query=number.cast(pl.Int64).to_numpy(),
        theta=pages["theta"].to_numpy(),
        ability=pages["ability"].to_numpy() if calibrated else None,
        n=pages["n"].cast(pl.Float64).to_numpy(),
        passes=pages.select(pl.col(CRITERIA).cast(pl.Float64)).to_numpy(),
        tau=queries["tau"].to_numpy() if calibrated else None,
        alpha=queries["alpha"].to_numpy(),
    )
    place = queries.drop("alpha", "tau", strict=False)
    return _DomainBlock(place, block, tables, placements - int(pages["n"].sum()))
