"""What every test shares: where the real benchmark lies, and how it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of the real benchmark; `RCP_REFERENCE_DATA` says where it is on another machine."""
    folder = Path(os.environ.get("RCP_REFERENCE_DATA", ROOT.parent / "shared" / "data" / "debian-reference"))
    if not (folder / "benchmark.toml").is_file():
        pytest.skip(f"the debian-reference data are missing: no {folder}/benchmark.toml (set RCP_REFERENCE_DATA)")
    return folder
