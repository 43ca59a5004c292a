"""Each file that a build reads is missed by name: no traceback, no tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support import tiny
from support.command import release_here

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = (
    "first_stage/paper.parquet",
    "runs/paper.parquet",
    "judgements/toy/tournament/paper.parquet",
    "judgements/toy/rubric/paper.parquet",
)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("instead", ["nothing", "a folder", "a pipe", "a device"])
def test_a_missing_file_is_named(tmp_path: Path, name: str, instead: str) -> None:
    """A file that is not there, or is none, ends with exit code 4 and its path; nothing is built."""
    benchmark = tiny.write_world(tmp_path / "world")
    (path,) = (tmp_path / "world").rglob(name)
    path.unlink()
    if instead == "a folder":
        path.mkdir()
    elif instead == "a pipe":
        os.mkfifo(path)
    elif instead == "a device":
        path.symlink_to(os.devnull)
    done = release_here(
        "build", "--benchmark", benchmark, "--judge", "toy", "--out", tmp_path / "out", "--workers", "1", "--no-figures"
    )
    assert 4 == done.code
    assert f"error: a file is missing [{path}]\n" in done.stderr
    assert [] == [item.name for item in (tmp_path / "out").glob("v*")]
