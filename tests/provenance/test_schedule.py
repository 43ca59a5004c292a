"""Window schedules: every row of method spec section 17.5, the digest of the draws, and their invariants."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance import schedule


@pytest.mark.parametrize(
    ("n", "window", "expected", "calls"),
    [
        (1, 10, (0, 0, 0), 0),
        (4, 10, (4, 2, 1), 13),
        (8, 10, (4, 2, 1), 13),
        (10, 10, (4, 2, 1), 13),
        (11, 10, (4, 2, 1), 19),
        (15, 10, (5, 3, 1), 23),
        (30, 10, (11, 5, 2), 46),
        (75, 10, (26, 14, 4), 108),
        (150, 10, (53, 27, 8), 216),
        (300, 10, (106, 54, 16), 432),
        (150, 5, (106, 54, 16), 432),  # images, video
    ],
)
def test_tournament_counts(n: int, window: int, expected: tuple[int, int, int], calls: int) -> None:
    """Method spec section 17.5: windows by phase and the most calls."""
    counts = schedule.tournament_counts(n, window=window)
    assert expected == counts[:3]
    assert calls == counts.calls


@pytest.mark.parametrize(
    ("n", "window", "expected"),
    [
        (1, 10, (4, 3)),
        (4, 10, (4, 3)),
        (8, 10, (4, 3)),
        (10, 10, (4, 3)),
        (11, 10, (4, 3)),
        (15, 10, (5, 5)),
        (30, 10, (10, 10)),
        (75, 10, (25, 25)),
        (150, 10, (50, 50)),
        (300, 10, (100, 100)),
        (150, 8, (62, 63)),  # images
        (150, 5, (100, 100)),  # video
    ],
)
def test_rubric_counts(n: int, window: int, expected: tuple[int, int]) -> None:
    """Method spec section 17.5: random and stratified windows."""
    assert expected == schedule.rubric_counts(n, window=window)


def test_rubric_counts_of_other_settings() -> None:
    """Method spec section 17.5, further pins: a small random share; few placements still show every unit."""
    assert (1, 12) == schedule.rubric_counts(20, share=0.01)
    assert 10 == sum(schedule.rubric_counts(95, placements=0.2))
    assert 10 == sum(schedule.rubric_counts(15, placements=0.2, units=95))


def test_stream_is_seeded_by_a_string() -> None:
    """Method spec section 17.5: the first draws of the stream 42/ds/q1."""
    rng = schedule.stream("ds", "q1")
    assert [0.7973292210476162, 0.3697914541670091] == [rng.random(), rng.random()]


def test_first_balanced_window() -> None:
    """Method spec section 17.5: the first window of random.Random(0) over 150 units."""
    expected = [97, 124, 52, 117, 112, 35, 141, 125, 40, 132]
    assert expected == schedule.balanced_windows(random.Random(0), 150, 10, 1)[0]


def test_digest_of_the_draws() -> None:
    """Method spec section 17.5: 18 worlds through all four draws give the pinned SHA-256."""
    worlds = []
    for seed in range(6):
        for n in (7, 23, 150):
            rng = random.Random(seed)
            groups = schedule.balanced_windows(rng, n, 10, 53)
            ability = [rng.gauss(0, 1.5) for _ in range(n)]
            order = schedule.by_ability(ability)
            stratified = schedule.stratified_windows(rng, order, 10, 27)
            values = schedule.boundary_values(order, ability, schedule.pair_counts(groups))
            worlds.append(
                {
                    "groups": groups,
                    "stratified": [[f"d{unit}" for unit in window] for window in stratified],
                    "boundaries": [
                        [f"{value:.9g}", f"d{above}", f"d{below}"]
                        for value, above, below in zip(values, order[:-1], order[1:], strict=True)
                    ],
                    "adaptive": [
                        [f"d{unit}" for unit in window] for window in schedule.adaptive_batch(ability, groups, 10, 8)
                    ],
                }
            )
    digest = hashlib.sha256(json.dumps(worlds, sort_keys=True).encode()).hexdigest()
    assert digest == "974e8e6d7d428309f9fd7e2f9c2ceded76c16ec8b60d411717bcca1fb2d965d6"


@given(n=st.integers(1, 40), window=st.integers(1, 12), count=st.integers(0, 30), seed=st.integers(0, 9))
def test_balanced_windows_show_every_unit_equally_often(n: int, window: int, count: int, seed: int) -> None:
    """Windows have distinct units and the stated size; counts never differ by more than one."""
    windows = schedule.balanced_windows(random.Random(seed), n, window, count)
    assert [min(n, window)] * count == [len(set(shown)) for shown in windows]
    shown = [sum(unit in chosen for chosen in windows) for unit in range(n)]
    assert max(shown) - min(shown) <= 1


@given(n=st.integers(1, 40), window=st.integers(1, 12), seed=st.integers(0, 9))
def test_stratified_windows_hold_neighbours(n: int, window: int, seed: int) -> None:
    """A stratified window holds consecutive places of the order, in any order."""
    order = list(range(n))[::-1]
    windows = schedule.stratified_windows(random.Random(seed), order, window, 5)
    size = min(n, window)
    for chosen in windows:
        assert list(range(min(chosen), min(chosen) + size)) == sorted(chosen)


def test_mirror_follows_its_window() -> None:
    """Window, mirror, window, mirror."""
    assert [[0, 1, 2], [2, 1, 0], [3, 1], [1, 3]] == schedule.mirrored([[0, 1, 2], [3, 1]])


def test_ability_ties_keep_unit_order() -> None:
    """Equal abilities stay in unit order."""
    assert [1, 0, 2, 3] == schedule.by_ability([0.0, 1.0, 0.0, -1.0])


def test_boundary_values_by_hand() -> None:
    """Equal abilities are worth 1/4 at rank 1; a pair held by one window half; rank 2 is divided by log2 3."""
    held = schedule.pair_counts([[2, 1]])
    values = schedule.boundary_values([0, 1, 2], [0.0, 0.0, 0.0], held)
    assert [0.25, 0.25 / 1.584962500721156 / 2] == pytest.approx(values, abs=1e-15)


def test_greedy_batch_by_hand() -> None:
    """The best sum first; its values then count 0.3; the lowest start wins a tie; zero ends the batch."""
    # Sums 3, 5, 4; then values 1, .6, .9, 1 with sums 1.6, 1.5, 1.9; then 1, .6, .27, .3 with sums 1.6, .87, .57.
    assert [[1, 2, 3], [2, 3, 4], [0, 1, 2]] == schedule.greedy_batch(range(5), [1.0, 2.0, 3.0, 1.0], 3, 3)
    assert [[0, 1]] == schedule.greedy_batch(range(3), [1.0, 1.0], 2, 1)
    assert [] == schedule.greedy_batch(range(3), [0.0, 0.0], 2, 4)


def test_pool_no_larger_than_a_window_is_shown_once() -> None:
    """A window as large as the pool is the whole pool in current order, once."""
    assert [[1, 0, 2]] == schedule.adaptive_batch([0.5, 1.0, 0.0], [], 10, 8)
