"""The embedded benchmark's inputs, made by a seeded script on first use and not committed.

A benchmark in the exact shape of ViDoRe v3: eight domains in six languages, 40 pages a domain,
three questions a domain, pools of 20, three retrievers, two simulated judges and four rerankers.
Tables are the same on every machine; images are where Pillow is the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

from builder.demo import world
from provenance.errors import InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

SEED = 20260101
SCHEME = "demo://"

_LIBRARIES = ("numpy", "pillow", "polars", "pyarrow")


def materialise(folder: Path, *, seed: int = SEED) -> None:
    """Write the demo's inputs as `folder`: all of them, or nothing.

    Layout: `upstream/<domain>/` (a dataset directory), `pipeline/{first_stage,judgements/<judge>/{tournament,rubric},
    runs}/`, and `pipeline-reread/`, the same with the first judge's unusable tournament answers read again.

    Raises:
        InputError: `folder` exists and is not empty, or cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(
            f"the demo's inputs cannot be written: {error.strerror}",
            where=Where(str(folder)),
            remedy="name a folder that can be written; XDG_CACHE_HOME says where the cache is.",
        ) from error
    try:
        world.write(building, seed=seed)
        building.chmod(0o755)
        building.rename(folder)
    except OSError as error:
        raise InputError(
            f"the demo's inputs cannot be written: {error.strerror}",
            where=Where(str(folder)),
            remedy="name an empty folder on a disk with 20 MB to spare.",
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/rcp-release`, or `~/.cache/rcp-release`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rcp-release"


def ensure(cache: Path | None = None) -> Path:
    """The folder of the demo's inputs, made on the first call.

    Its name holds a digest of what it is made from and with, so that a changed demo is made anew. Two processes
    may call this at once: one of them wins, and both find a whole folder.

    Raises:
        InputError: the cache cannot be written.
    """
    folder = (cache or default_cache()) / f"demo-{digest()}"
    if not folder.is_dir():
        try:
            materialise(folder)
        except InputError:
            if not folder.is_dir():
                raise
    return folder


def resolve(uri: str, cache: Path | None = None) -> Path:
    """The folder behind a `demo://` address, such as `demo://upstream/energy` or `demo://pipeline`.

    Raises:
        InputError: the demo has no such folder; see also `ensure`.
    """
    inside = uri.removeprefix(SCHEME)
    root = ensure(cache)
    known = {"pipeline", "pipeline-reread", *(f"upstream/{path.name}" for path in (root / "upstream").iterdir())}
    if inside not in known:
        raise InputError(
            f"the demo has no '{inside}'",
            where=Where(uri),
            remedy=f"one of: {', '.join(sorted(SCHEME + name for name in known))}.",
        )
    return root / inside


def digest() -> str:
    """16 hex digits over what the inputs are made from: sources, benchmark file, `provenance`, libraries' versions."""
    total = hashlib.sha256()
    total.update((resources.files("builder") / "benchmarks" / "demo.toml").read_bytes())
    for room in (resources.files("builder") / "demo", resources.files("provenance")):
        for name, content in sorted(_sources(room, "")):
            total.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    for library in _LIBRARIES:
        total.update(f"{library} {metadata.version(library)}\n".encode())
    return total.hexdigest()[:16]


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith((".py", ".toml")):
            yield prefix + entry.name, entry.read_bytes()
