"""Which uploads become LFS objects, and which are ignored: git's own reading of `.gitattributes` and `.gitignore`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from releases.local_hub.gitcmd import git

if TYPE_CHECKING:
    from collections.abc import Sequence


def lfs_paths(git_dir: Path, commit: str | None, paths: Sequence[str]) -> set[str]:
    """Those of `paths` that the commit's `.gitattributes` files give the filter `lfs`."""
    if not paths or commit is None:
        return set()
    with tempfile.TemporaryDirectory(prefix="hub-attributes-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git(git_dir, "read-tree", commit, env=env)
        output = git(
            git_dir, "check-attr", "--cached", "-z", "--stdin", "filter", stdin=_zero_terminated(paths), env=env
        )
    fields = output.decode(errors="surrogateescape").split("\0")
    return {path for path, value in zip(fields[0::3], fields[2::3], strict=False) if value == "lfs"}


def ignored_paths(git_dir: Path, gitignore: bytes | None, paths: Sequence[str]) -> set[str]:
    """Those of `paths` that a root `.gitignore` of this content leaves out."""
    if not paths or not gitignore:
        return set()
    with tempfile.TemporaryDirectory(prefix="hub-ignore-") as folder:
        (Path(folder) / ".gitignore").write_bytes(gitignore)
        arguments = ("--work-tree", folder, "check-ignore", "--no-index", "-z", "--stdin")
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        # Code 1 says that no path is ignored.
        output = git(git_dir, *arguments, stdin=_zero_terminated(paths), env=env, ok=(0, 1))
    return set(output.decode(errors="surrogateescape").split("\0")[:-1])


def _zero_terminated(paths: Sequence[str]) -> bytes:
    return "".join(f"{path}\0" for path in paths).encode(errors="surrogateescape")
