"""What every test shares: where the real benchmark lies, and how it is asked for."""

from __future__ import annotations

import os

# Read by huggingface_hub when it is imported. Telemetry would have it keep in its cache, which is the user's, what the
# tests' Hubs say.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

from pathlib import Path

import pytest
from filelock import FileLock
from support.command import release_here

ROOT = Path(__file__).resolve().parent.parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of the real benchmark; `RCP_REFERENCE_DATA` says where it is on another machine."""
    folder = Path(os.environ.get("RCP_REFERENCE_DATA", ROOT.parent / "shared" / "data" / "debian-reference"))
    if not (folder / "benchmark.toml").is_file():
        pytest.skip(f"the debian-reference data are missing: no {folder}/benchmark.toml (set RCP_REFERENCE_DATA)")
    return folder


@pytest.fixture(scope="session")
def reference_tree(reference: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The release tree of the real benchmark, built once a test run (shared by xdist's workers); read only."""
    root = tmp_path_factory.getbasetemp()
    root = root if worker_id == "master" else root.parent
    with FileLock(root / "reference.lock"):
        trees = root / "reference"
        if not trees.is_dir():
            benchmark = str(reference / "benchmark.toml")
            built = release_here("build", "--benchmark", benchmark, "--judge", "simulated", "--out", trees)
            assert built.code == 0, built.stderr
    return trees / "v1-simulated"
