"""Running the `release` command as a person would, in a process of its own or (faster) in this one."""

from __future__ import annotations

import contextlib
import filecmp
import io
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from releases.cli import run

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 300
"""Seconds: many times what the longest command takes here, and less than pytest's own limit for a test."""


@dataclass(frozen=True)
class Done:
    """How a command ended and what it said."""

    code: int
    stdout: str
    stderr: str


def release_here(*args: str | Path) -> Done:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(arg) for arg in args])
    return Done(code, out.getvalue(), err.getvalue())


def release(*args: str | Path, cwd: Path | None = None) -> Done:
    """Run the command in a process of its own; one that hangs fails the test, and says where each of its threads is."""
    command = [sys.executable, "-X", "faulthandler", "-m", "releases", *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd) as process:
        try:
            out, err = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            pytest.fail(f"after {_LONGEST} s it still runs: {command}\n{process.communicate(timeout=30)[1]}")
    return Done(process.returncode, out, err)


def same_trees(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    names = sorted(path.relative_to(one) for path in one.rglob("*"))
    if names != sorted(path.relative_to(other) for path in other.rglob("*")):
        return False
    files = [str(name) for name in names if (one / name).is_file()]
    return filecmp.cmpfiles(one, other, files, shallow=False)[0] == files
