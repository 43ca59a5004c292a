"""L1: every window of the judge is accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from builder.layout import windows_path
from builder.proofs.facts import UnprovableError
from builder.proofs.outcome import Coverage, Finding, Measure, Warn, fault
from builder.proofs.places import failures
from builder.proofs.registry import or_gap, proof

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from builder.proofs.facts import Facts

_FITTED = "fitted"


@proof("L1", "windows in = windows fitted + windows left out, by reason")
def windows(facts: Facts) -> Iterator[Finding]:
    """Proves that the account of windows agrees with what else the tree holds.

    Its judge and domains are the tree's; as many rubric windows are fitted as the judge's criteria have windows
    (query-id, call_index), and each of these shows its pages once. It does not prove the tournament's counts, nor the
    reasons: the raw answers are not published; they are proved when the release is built.
    """
    account = facts.windows()
    if not facts.domains():
        raise UnprovableError("the card names no domain")
    name = windows_path(facts.judge())
    if account["judge"] != facts.judge():
        yield fault(
            "judge", f"the file is named for '{facts.judge()}'", file=name, column="judge", value=account["judge"]
        )
    for domain in sorted(set(facts.domains()) - account["domains"].keys()):
        yield fault("domain", "the account lacks a domain", file=name, column="domains", value=domain)
    for domain in sorted(account["domains"].keys() - set(facts.domains())):
        yield fault(
            "domain", "the account has a domain that the tree has not", file=name, column="domains", value=domain
        )
    for stage in ("tournament", "rubric"):
        for measure, value in totals(account, stage).items():
            yield Measure(f"{stage} {measure}", float(value))
    for domain, stages in account["domains"].items():
        if domain in facts.domains():
            yield from or_gap(_rubric(facts, domain, stages["rubric"], name), domain)
    yield from _flags(account)


def totals(account: Mapping[str, Any], stage: str) -> dict[str, int]:
    """Windows, fitted, and left out by reason, of a stage over all domains and phases."""
    counts: dict[str, int] = {"windows": 0}
    for stages in account["domains"].values():
        for outcomes in stages[stage].values():
            for outcome, number in outcomes.items():
                counts["windows"] += number
                label = outcome if outcome == _FITTED else f"left out ({outcome})"
                counts[label] = counts.get(label, 0) + number
    return counts


def _rubric(facts: Facts, domain: str, phases: Mapping[str, Mapping[str, int]], name: str) -> Iterator[Finding]:
    table = facts.one("judge_criteria", domain)
    frame = facts.frame(table, ["query-id", "call_index", "finish_reason"])
    calls = frame.select("query-id", "call_index").n_unique()
    yield Coverage(frame.height, len(table.files) + 1, frame["query-id"].n_unique())
    fitted = sum(outcomes[_FITTED] for outcomes in phases.values())
    if fitted != calls:
        message = f"the judge's criteria of {domain} have {calls:,} windows, the account has {fitted:,} fitted"
        column = f"domains.{domain}.rubric"
        yield fault("fitted", message, file=name, column=column, value=fitted)
    first = pl.col("finish_reason").first().over("query-id", "call_index")
    bad = frame.filter(pl.col("finish_reason").ne_missing(first))
    message = "another row of the same window has another finish_reason"
    yield failures(bad, table, rule="one-a-window", column="finish_reason", message=message)


def _flags(account: Mapping[str, Any]) -> Iterator[Finding]:
    """Queries whose unusable windows are too many (method spec section 12), where the account names them."""
    for domain, stages in account.get("flagged", {}).items():
        for stage, queries in stages.items():
            for query in queries:
                share = query["unusable"] / query["windows"] if query["windows"] else 0.0
                why = " and ".join(
                    f"{share:.1%} of its windows are unusable"
                    if reason == "share"
                    else "an adaptive window is unusable"
                    for reason in query["reasons"]
                )
                yield Warn("unusable-windows", f"{domain}, {stage}, {query['query-id']}: {why}")
