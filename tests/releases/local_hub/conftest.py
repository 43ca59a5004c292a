"""A Hub on loopback and the real client, for each test."""

from __future__ import annotations

import os

# Read by huggingface_hub when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from typing import TYPE_CHECKING

import huggingface_hub.constants
import pytest
from huggingface_hub import HfApi

from releases.local_hub import Faults, Limits, LocalHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPO = "someone/bench"


@pytest.fixture(autouse=True)
def _plain_lfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have imported the client first."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)


@pytest.fixture
def faults() -> Faults:
    """No faults yet; the record of requests."""
    return Faults()


@pytest.fixture
def hub(tmp_path: Path, faults: Faults) -> Iterator[LocalHub]:
    """A Hub without a token, whose multipart uploads and pages are small."""
    limits = Limits(multipart_above=2_000_000, multipart_chunk=1_000_000, tree_page=7, commits_page=3)
    with LocalHub(tmp_path / "store", faults=faults, limits=limits) as running:
        yield running


@pytest.fixture
def api(hub: LocalHub) -> HfApi:
    """The real client, pointed at the Hub, with a repository `someone/bench`."""
    client = HfApi(endpoint=hub.endpoint, token=False)
    client.create_repo(REPO, repo_type="dataset")
    return client
