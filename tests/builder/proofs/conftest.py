"""A good tree of the tiny world, built once, and a fresh copy of it for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import release_here
from support.proving import Tree, copy_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def good_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny world with a good tree in out/v1-toy."""
    world = tmp_path_factory.mktemp("proved")
    benchmark = tiny.write_world(world)
    done = release_here("build", "--benchmark", benchmark, "--judge", "toy", "--out", world / "out", "--workers", "1")
    assert done.code == 0, done.stderr
    return world


@pytest.fixture
def tree(good_world: Path, tmp_path: Path) -> Tree:
    """A copy of the good tree that a test may break."""
    copy_tree(good_world / "out" / "v1-toy", tmp_path / "tree")
    return Tree.of(tmp_path / "tree", good_world / "benchmark.toml")
