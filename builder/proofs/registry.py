"""The proofs by id, and how they are run (DESIGN section 4).

A proof is a function from the facts of a tree to its findings. It is registered under its id; its docstring says what
it proves and what it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

import polars as pl

from builder.proofs.facts import Facts, UnprovableError
from builder.proofs.outcome import FAILURES, Coverage, Finding, Gap, Measure, Outcome, Warn

if TYPE_CHECKING:
    from collections.abc import Iterable

Prove = Callable[[Facts], Iterator[Finding]]
PROOFS: dict[str, Proof] = {}


@dataclass(frozen=True)
class Proof:
    """A registered proof."""

    name: str
    title: str
    prove: Prove

    @property
    def explanation(self) -> str:
        """What it proves and what it does not."""
        return self.prove.__doc__ or ""


def proof(name: str, title: str) -> Callable[[Prove], Prove]:
    """Register a proof under its id; `title` is what holds, in one line."""

    def register(prove: Prove) -> Prove:
        if name in PROOFS:
            raise ValueError(f"two proofs are called {name}")
        PROOFS[name] = Proof(name, title, prove)
        return prove

    return register


def each_domain(prove: Callable[[Facts, str], Iterator[Finding]]) -> Prove:
    """Prove a domain at a time; a domain that lacks something leaves a gap, the others are proved all the same."""

    @wraps(prove)
    def over_domains(facts: Facts) -> Iterator[Finding]:
        for domain in facts.domains():
            yield from or_gap(prove(facts, domain), domain)

    return over_domains


def or_gap(findings: Iterator[Finding], part: str) -> Iterator[Finding]:
    """The findings up to where something turns out to be missing, which becomes a gap of `part`."""
    try:
        yield from findings
    except UnprovableError as error:
        yield Gap(f"{part}: {error}" if part else str(error))


def run(
    facts: Facts, names: Iterable[str], *, clock: Callable[[], float], say: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run proofs by id, in the order given. No proof stops another, and all failures are kept."""
    for name in names:
        entry = PROOFS[name]
        say(f"{name} {entry.title}")
        yield collect(entry, or_gap(entry.prove(facts), ""), clock)


def collect(entry: Proof, findings: Iterable[Finding], clock: Callable[[], float]) -> Outcome:
    """Gather what a proof yields into its outcome."""
    start = clock()
    failures: list[pl.DataFrame] = []
    coverage = Coverage()
    gaps: list[str] = []
    measures: dict[str, float] = {}
    warnings: list[Warn] = []
    for finding in findings:
        if isinstance(finding, pl.DataFrame):
            failures.append(finding.select(FAILURES.names()))
        elif isinstance(finding, Coverage):
            coverage += finding
        elif isinstance(finding, Gap):
            gaps.append(finding.reason)
        elif isinstance(finding, Measure):
            measures[finding.name] = finding.value
        else:
            warnings.append(finding)
    table = pl.concat(failures) if failures else pl.DataFrame(schema=FAILURES)
    return Outcome(
        entry.name,
        entry.title,
        table,
        coverage,
        tuple(dict.fromkeys(gaps)),
        measures,
        tuple(warnings),
        round(clock() - start, 3),
    )
