"""nDCG of one query as a plain loop over Python floats: the oracle of the array code, and of the task file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def plain_dcg(gains: list[float], k: int) -> float:
    """The DCG of gains in rank order."""
    total = 0.0
    for rank, gain in enumerate(gains[:k], start=1):
        total += gain / math.log2(rank + 1)
    return total


def plain_ndcg(
    scores: Mapping[str, float], gains: Mapping[str, float], *, k: int, rule: str, undefined: float = 0.0
) -> float:
    """NDCG@k of the scored pages; the ideal takes all gains; a page without a gain has 0."""
    order = sorted(scores, reverse=True)
    order.sort(key=lambda page: -scores[page])
    credited: list[float] = []
    while len(credited) < len(order):
        tied = [page for page in order if scores[page] == scores[order[len(credited)]]]
        found = [gains.get(page, 0.0) for page in tied]
        if rule == "b":
            total = 0.0
            for gain in found:
                total += gain
            found = [total / len(tied)] * len(tied)
        credited += found
    ideal = plain_dcg(sorted(gains.values(), reverse=True), k)
    return plain_dcg(credited, k) / ideal if ideal > 0 else undefined
