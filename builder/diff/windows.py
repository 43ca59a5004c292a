"""What two releases say of the judge's windows and item parameters (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builder.proofs.windows import totals

if TYPE_CHECKING:
    from collections.abc import Mapping

STAGES = ("tournament", "rubric")


def windows_document(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """By stage, the windows by outcome before and now, and by domain the outcomes whose number changed.

    Outcomes are `windows` (all), `fitted` and `left out (<reason>)`. None where a release has no account.
    """
    if old is None or new is None:
        return None
    found: dict[str, Any] = {}
    for stage in STAGES:
        before, now = totals(old, stage), totals(new, stage)
        names = list(dict.fromkeys([*before, *now]))
        found[stage] = {
            "outcomes": {name: {"old": before.get(name, 0), "new": now.get(name, 0)} for name in names},
            "domains": _domains(old, new, stage),
        }
    return found


def _domains(old: Mapping[str, Any], new: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """By domain that both have, the outcomes whose number differs."""
    found = {}
    for domain in new["domains"]:
        if domain in old["domains"]:
            before, now = (totals({"domains": {domain: side["domains"][domain]}}, stage) for side in (old, new))
            changed = {
                name: {"old": before.get(name, 0), "new": now.get(name, 0)}
                for name in dict.fromkeys([*before, *now])
                if before.get(name, 0) != now.get(name, 0)
            }
            if changed:
                found[domain] = changed
    return found


def items_document(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """Discrimination (gamma) and difficulty (beta, logits) of each criterion before and now.

    None where a release has no item parameters, or another number of criteria.
    """
    if old is None or new is None or old["num_criteria"] != new["num_criteria"]:
        return None
    return [
        {
            "criterion": f"C{number + 1}",
            **{
                f"{name}_{side}": item[name][number]
                for name in ("gamma", "beta")
                for side, item in (("old", old), ("new", new))
            },
        }
        for number in range(new["num_criteria"])
    ]
