"""Run the proofs over a tree and gather what they say (DESIGN section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from builder.proofs import (  # noqa: F401 - importing a family registers its proofs
    card,
    card_numbers,
    gains,
    ids,
    joins,
    notes,
    pool,
    predecessor,
    releases,
    runs,
    structure,
    upstream,
    windows,
)
from builder.proofs.registry import PROOFS, run
from provenance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from builder.proofs.facts import Facts
    from builder.proofs.outcome import Outcome


ORDER = ("M1", "S1", "S2", "J1", "J2", "U1", "P1", "P2", "P3", "G1", "G2", "R1", "R2", "L1", "C1", "C2", "C3", "N1")
"""The order of DESIGN section 4; proofs that other families add follow by name."""


@dataclass(frozen=True)
class Validation:
    """The outcomes of all proofs that were run."""

    tree: str
    outcomes: tuple[Outcome, ...]

    @property
    def failures(self) -> int:
        """All failures of all proofs."""
        return sum(outcome.failures.height for outcome in self.outcomes)

    @property
    def warnings(self) -> int:
        """All warnings of all proofs."""
        return sum(len(outcome.warnings) for outcome in self.outcomes)

    def holds(self, *, strict: bool) -> bool:
        """Whether nothing failed (strict: and nothing warned). What is not provable is neither."""
        return self.failures == 0 and not (strict and self.warnings)

    def named(self, status: str) -> list[str]:
        """Ids of the proofs with this status."""
        return [outcome.proof for outcome in self.outcomes if outcome.status == status]


def validate(
    facts: Facts,
    names: Iterable[str] = (),
    *,
    clock: Callable[[], float],
    say: Callable[[str], None],
) -> Validation:
    """Run proofs by id, all of them by default, each to its end.

    Raises:
        UsageError: there is no such proof.
    """
    known = [name for name in ORDER if name in PROOFS] + sorted(PROOFS.keys() - set(ORDER))
    chosen = [name.upper() for name in names] or known
    for name in chosen:
        if name not in PROOFS:
            raise UsageError(f"there is no proof '{name}'", remedy=f"name one of {', '.join(known)}.")
    ordered = [name for name in known if name in chosen]
    return Validation(str(facts.path), tuple(run(facts, ordered, clock=clock, say=say)))
