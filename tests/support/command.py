"""Running the `release` command as a person would, in a process of its own or (faster) in this one."""

from __future__ import annotations

import contextlib
import filecmp
import io
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releases.cli import run

if TYPE_CHECKING:
    from pathlib import Path


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
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "releases", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def same_trees(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    names = sorted(path.relative_to(one) for path in one.rglob("*"))
    if names != sorted(path.relative_to(other) for path in other.rglob("*")):
        return False
    files = [str(name) for name in names if (one / name).is_file()]
    return filecmp.cmpfiles(one, other, files, shallow=False)[0] == files
