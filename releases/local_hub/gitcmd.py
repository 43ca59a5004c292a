"""Run git plumbing on a bare repository: no user or system configuration, no terminal, no hooks' surprises."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from provenance.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ZERO = "0" * 40

# What a caller's shell may hold must not reach the store.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_FIXED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": "local",
    "GIT_AUTHOR_EMAIL": "local@localhost",
    "GIT_COMMITTER_NAME": "local",
    "GIT_COMMITTER_EMAIL": "local@localhost",
}
_OPTIONS = (
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.filesRefLockTimeout=5000",
    "-c",
    "core.packedRefsTimeout=5000",
    "-c",
    "gc.auto=0",
)


class GitError(Exception):
    """git ended with a code that is not 0."""

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        super().__init__(f"git {arguments[0]}: code {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


def git(
    git_dir: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, ok: tuple[int, ...] = (0,)
) -> bytes:
    """The standard output of `git --git-dir GIT_DIR ARGUMENTS`.

    Args:
        git_dir: the bare repository.
        arguments: the subcommand and its arguments.
        stdin: what it reads.
        env: further environment variables.
        ok: the exit codes that are no error.

    Raises:
        GitError: another exit code.
        InputError: git is not installed.
    """
    program = shutil.which("git")
    if program is None:
        raise InputError("git is not installed", remedy="install git, version 2.39 or newer")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    done = subprocess.run(  # noqa: S603  # a fixed program; the arguments are checked names, never a shell
        [program, *_OPTIONS, "--git-dir", str(git_dir), *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env={**environment, **_FIXED, **(env or {})},
    )
    if done.returncode not in ok:
        raise GitError(arguments, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout
