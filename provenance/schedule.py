"""Which pages a judge sees together: the window schedules of both stages (method spec sections 4 and 7.1).

Units are positions 0..n-1 of a query's pool. A window is a list of units in prompt order. All
functions are pure but for the random stream they are given, from which they draw in a fixed order,
so a schedule is bit-exact. A tournament is, in order:

1. `balanced_windows`, each followed by its mirror; fit Bradley-Terry;
2. `stratified_windows` over the units by descending ability, each followed by its mirror; fit again;
3. up to `BATCHES` times `adaptive_batch`, each followed by a fit; no window ends the phase.

A rubric is `balanced_windows`, a Rasch fit, `stratified_windows` over its order; no mirrors.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SEED = 42
WINDOW = 10
BATCHES = 7
DEPTH = 150
DISCOUNT = 0.3
REPICK = 0.3

# Placements of a document, as the paper's counts for a pool of 150 in windows of 10.
_RANDOM = 53 * 10 / 150
_STRATIFIED = 27 * 10 / 150
_ADAPTIVE = 7 * 8 * 10 / 150
_RUBRIC = 100 * 10 / 150

Window = list[int]
Pair = tuple[int, int]


class TournamentCounts(NamedTuple):
    """Windows of a tournament, mirrors not counted: `adaptive` windows a batch, at most `batches` batches."""

    random: int
    stratified: int
    adaptive: int
    batches: int

    @property
    def calls(self) -> int:
        """The most answers that the tournament asks for."""
        return 2 * (self.random + self.stratified) + self.adaptive * self.batches


class RubricCounts(NamedTuple):
    """Windows of a rubric."""

    random: int
    stratified: int


def stream(dataset: str, query_id: str, *, seed: int = SEED) -> random.Random:
    """The random stream of a (stage, query); both stages start from the same string `<seed>/<dataset>/<query_id>`."""
    return random.Random(f"{seed}/{dataset}/{query_id}")  # noqa: S311 - a schedule, not a secret


def tournament_counts(n: int, *, window: int = WINDOW) -> TournamentCounts:
    """Windows of a tournament over `n` documents (method spec section 4).

    A pool no larger than a window gets one adaptive window in one batch; a pool of one gets none.
    """
    if n < 2:  # noqa: PLR2004 - two documents make a comparison
        return TournamentCounts(0, 0, 0, 0)
    size = min(window, n)
    adaptive = round(_ADAPTIVE * n / (size * BATCHES))
    if n <= window:
        return TournamentCounts(round(_RANDOM * n / size), round(_STRATIFIED * n / size), min(adaptive, 1), 1)
    return TournamentCounts(round(_RANDOM * n / size), round(_STRATIFIED * n / size), adaptive, BATCHES)


def rubric_counts(
    n: int, *, window: int = WINDOW, units: int | None = None, placements: float = _RUBRIC, share: float = 0.5
) -> RubricCounts:
    """Windows of a rubric over `n` documents (method spec section 7.1).

    Args:
        n: documents, at least 1.
        window: units a window.
        units: what is shown, `n` unless documents are cut into chunks.
        placements: how often a document is shown.
        share: the share of random windows.
    """
    units = n if units is None else units
    size = min(window, units)
    total = max(math.ceil(units / size), round(placements * n / size))
    first = min(total, max(1, round(share * total)))
    return RubricCounts(first, total - first)


def balanced_windows(rng: random.Random, n: int, window: int, count: int) -> list[Window]:
    """`count` random windows of min(`window`, `n`) units in which no two units' counts differ by more than one.

    Method spec section 4, phase 1, without the mirrors: each window takes the least shown units, ties by a
    uniform drawn for every unit in order, and is then shuffled.
    """
    shown = [0] * n
    windows = []
    for _ in range(count):
        draws = [rng.random() for _ in range(n)]
        chosen = sorted(range(n), key=lambda unit: (shown[unit], draws[unit]))[:window]
        rng.shuffle(chosen)
        for unit in chosen:
            shown[unit] += 1
        windows.append(chosen)
    return windows


def stratified_windows(rng: random.Random, order: Sequence[int], window: int, count: int) -> list[Window]:
    """`count` windows of neighbours in `order`, shuffled, spread evenly over it.

    Method spec section 4, phase 2, without the mirrors: each window starts where the coverage is least; an equal
    later start is taken with probability 0.3, and only then is a uniform drawn.

    Args:
        rng: the query's stream.
        order: the units by descending ability (`by_ability`); it stays fixed for the phase.
        window: units a window, cut to the pool's size.
        count: windows.
    """
    size = min(window, len(order))
    coverage = [0] * len(order)
    windows = []
    for _ in range(count):
        best, start = math.inf, 0
        for candidate in range(len(order) - size + 1):
            total = sum(coverage[candidate : candidate + size])
            if total < best or (total == best and rng.random() < REPICK):
                best, start = total, candidate
        for place in range(start, start + size):
            coverage[place] += 1
        chosen = list(order[start : start + size])
        rng.shuffle(chosen)
        windows.append(chosen)
    return windows


def mirrored(windows: Iterable[Window]) -> list[Window]:
    """Each window followed at once by its exact reverse."""
    return [shown for window in windows for shown in (window, window[::-1])]


def by_ability(ability: Sequence[float]) -> list[int]:
    """Units by descending ability, ties in unit order; `ability` has one number a unit (0.0 where none is known)."""
    return sorted(range(len(ability)), key=lambda unit: -ability[unit])


def pair_counts(windows: Iterable[Window]) -> Counter[Pair]:
    """How many windows hold both units of a pair; the key is (smaller, larger)."""
    return Counter(pair for window in windows for pair in combinations(sorted(window), 2))


def boundary_values(order: Sequence[int], ability: Sequence[float], held: Mapping[Pair, int]) -> list[float]:
    """What asking about each adjacent pair of `order` is worth: p (1 - p) / log2(r + 1) / (1 + n_r).

    Method spec section 4, phase 3: r is the upper unit's rank from 1, p the probability that it is better,
    n_r how many valid windows so far held both.

    Returns:
        One value an adjacent pair, from the top: len(order) - 1 numbers.
    """
    values = []
    for rank, (upper, lower) in enumerate(pairwise(order), 1):
        p = 1.0 / (1.0 + math.exp(ability[lower] - ability[upper]))
        pair = (min(upper, lower), max(upper, lower))
        values.append(p * (1.0 - p) * (1.0 / math.log2(rank + 1)) * (1.0 / (1 + held.get(pair, 0))))
    return values


def greedy_batch(order: Sequence[int], values: Sequence[float], window: int, count: int) -> list[Window]:
    """Up to `count` windows of neighbours in `order`, in that order, with the greatest sums of boundary values.

    Method spec section 4, phase 3: the lowest start wins a tie; covered values are multiplied by 0.3 after each
    window; the batch ends when nothing is left to learn. A window as large as the pool is the pool, once.
    """
    if window >= len(order):
        return [list(order)]
    remaining = list(values)
    windows: list[Window] = []
    while len(windows) < count:
        sums = [sum(remaining[start : start + window - 1]) for start in range(len(order) - window + 1)]
        start = max(range(len(sums)), key=sums.__getitem__)
        if sums[start] <= 0:
            break
        windows.append(list(order[start : start + window]))
        for place in range(start, start + window - 1):
            remaining[place] *= DISCOUNT
    return windows


def adaptive_batch(ability: Sequence[float], windows: Iterable[Window], window: int, count: int) -> list[Window]:
    """The next batch of phase 3: `count` windows over the `DEPTH` best units.

    Args:
        ability: the current ability of each unit.
        windows: every valid window so far, a mirrored one counted again.
        window: units a window.
        count: windows a batch, `TournamentCounts.adaptive`.
    """
    order = by_ability(ability)[:DEPTH]
    return greedy_batch(order, boundary_values(order, ability, pair_counts(windows)), window, count)
