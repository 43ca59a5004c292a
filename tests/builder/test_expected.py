"""Declared counts are asserted while a release is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import release_here

if TYPE_CHECKING:
    from pathlib import Path

TRUE = {"pages": 10, "queries": 2, "labels": 3, "labelled_pages": 3, "pages_without_text": 1, "distinct_texts": 10}
SUITE = {"injected_pairs": 2, "pages_without_text_in_a_pool": 0}


def declare(world: Path, domain: dict[str, int], suite: dict[str, int]) -> Path:
    """The tiny benchmark with `[expected]`."""
    path = tiny.write_world(world)
    lines = ["[expected]", *(f"{name} = {value}" for name, value in suite.items()), "[expected.domains.paper]"]
    lines += [f"{name} = {value}" for name, value in domain.items()]
    path.write_text(path.read_text() + "\n" + "\n".join(lines) + "\n")
    return path


def test_counts_that_hold_build(tmp_path: Path) -> None:
    """Counted by hand: ten pages, two questions a language, three labels on three pages, one empty text."""
    benchmark = declare(tmp_path, TRUE, SUITE)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--workers", "1", "--out", tmp_path / "out"
    )
    assert 0 == done.code, done.stderr


@pytest.mark.parametrize("name", [*TRUE, *SUITE])
def test_a_count_that_does_not_hold_stops_the_build(name: str, tmp_path: Path) -> None:
    """One more than there is: exit code 3, with the domain, the count and the expectation; nothing is written."""
    domain = {key: value + (key == name) for key, value in TRUE.items()}
    suite = {key: value + (key == name) for key, value in SUITE.items()}
    benchmark = declare(tmp_path, domain, suite)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--workers", "1", "--out", tmp_path / "out"
    )
    assert 3 == done.code
    place = "paper" if name in TRUE else "all domains"
    truth = {**TRUE, **SUITE}[name]
    assert f"{place}: {name}" in done.stderr
    assert f"is {truth}, expected {truth + 1}" in done.stderr
    assert not (tmp_path / "out").exists()
