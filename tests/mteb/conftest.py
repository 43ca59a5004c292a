"""What the tests inside mteb share: a Hub on loopback, caches of a test's own, the task file loaded from a path.

They run in environments that have mteb (`scripts/test-mteb` makes them); elsewhere this folder is left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from typing import TYPE_CHECKING

import datasets
import huggingface_hub
import pytest
from huggingface_hub import HfApi
from support.command import release_here
from support.publisher import Publisher
from support.tiny import write_world

from releases.local_hub import Faults, LocalHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Tests write task files anew within a second: cached bytecode, known by second and size, would be another file's.
sys.dont_write_bytecode = True

_mteb = find_spec("mteb")
# Without mteb this very folder is found, as a package without an origin.
if _mteb is None or _mteb.origin is None:
    collect_ignore_glob = ["*"]
else:
    # Read when mteb is imported: no test writes into a cache of the person who runs it.
    os.environ["MTEB_CACHE"] = tempfile.mkdtemp(prefix="mteb-cache-")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches that no other test has filled."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets-cache")


@pytest.fixture(scope="session")
def tiny_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The benchmark file of the tiny world; its release tree lies at `dist/v1-toy` beside it. Read only."""
    benchmark = write_world(tmp_path_factory.mktemp("tiny"))
    out = benchmark.parent / "dist"
    built = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", out, "--workers", "1", "--no-figures"
    )
    assert built.code == 0, built.stderr
    return benchmark


@pytest.fixture
def tiny_tree(tiny_world: Path) -> Path:
    """The tiny release. Read only."""
    return tiny_world.parent / "dist" / "v1-toy"


@pytest.fixture
def faults() -> Faults:
    """What goes wrong on the Hub, and the record of requests."""
    return Faults()


@pytest.fixture
def hub(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A Hub on loopback, where every client of this process looks."""
    with LocalHub(tmp_path / "store", faults=faults) as running:
        endpoint = running.endpoint
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(
            huggingface_hub.constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", endpoint)
        yield running


@pytest.fixture
def publisher(hub: LocalHub) -> Publisher:
    """A publisher of the tiny benchmark's repository."""
    return Publisher(HfApi(endpoint=hub.endpoint, token=False), "example/rcp-ndcg-tiny")
