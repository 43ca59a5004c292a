"""A world with two published releases, made once; each test spoils a copy of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.published import World, write_published

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Read only."""
    return write_published(tmp_path_factory.mktemp("published") / "world")


@pytest.fixture
def world(published: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy, with a cache of its own for what a run that was cut short keeps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return published.copy(tmp_path / "world")
