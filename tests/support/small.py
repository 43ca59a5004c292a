"""Releases of eight files that say of themselves what a publish asks, and publishers of them in processes of their own.

Nothing in their tables is ever read: a publish moves bytes. `Killing` makes a publisher die at a step.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import gitattributes
from builder.benchmark import Benchmark, parse_benchmark
from builder.manifest import FORMAT as MANIFEST_FORMAT
from builder.releases_document import FORMAT as RELEASES_FORMAT
from provenance.errors import ReleaseError
from releases.ledger.chain import Entry, read_ledger
from releases.plan import MOST_DELETES
from releases.progress import Progress
from releases.publish import Ledger, Published, bring
from releases.ready import Ready, read_ready
from releases.retry import Retry
from support import tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Barrier

    from releases.remote import Remote

REPO = "example/rcp-ndcg-tiny"
FILES = {
    "README.md": b"---\nlicense: cc-by-4.0\n---\n\n# tiny\n",
    "rcp_ndcg_tasks.py": b"TASKS = ()\n",
    "paper/corpus-00000-of-00001.parquet": b"PAR1 \x00 pages PAR1",
    "paper__english/queries.parquet": b"PAR1 \x00 questions PAR1",
    "paper__english/qrels.parquet": b"PAR1 \x00 gains of one PAR1",
}

MANIFEST = {
    "format": MANIFEST_FORMAT,
    "tool": {"name": "rcp-release", "version": "0.1.0"},
    "settings": {},
    "inputs": {"uris": {}, "files": {}},
    "configs": [
        {
            "config_name": "paper__english-qrels",
            "kind": "qrels",
            "data_files": [{"split": "test", "path": ["paper__english/qrels.parquet"]}],
        }
    ],
    "pages": {},
}
"""Of its manifest, all but the files."""

# Imports the clients once; each publisher is forked from there, so that a sweep of kills takes seconds.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        "releases.targets.hub",
        "releases.publish",
        "releases.ready",
        "releases.progress",
        "builder.benchmark",
        "pyarrow.parquet",
    ]
)


def benchmark() -> Benchmark:
    """The tiny world's benchmark."""
    return parse_benchmark(tiny.BENCHMARK.encode(), source=Path("benchmark.toml"))


def write_release(
    folder: Path, entries: Sequence[Entry] = (), *, slug: str = "toy", change: Mapping[str, bytes | None] | None = None
) -> str:
    """Write the release after `entries` into `folder/<tag>`; its tag.

    Args:
        folder: of trees.
        entries: the ledger.
        slug: ends the tag.
        change: files that differ from `FILES`; None for one that is missing.
    """
    number = len(entries) + 1
    tag = f"v{number}-{slug}"
    tree = folder / tag
    files: dict[str, bytes | None] = {".gitattributes": gitattributes.TEXT.encode(), **FILES, **(change or {})}
    own = {
        "number": number,
        "tag": tag,
        "revision": None,
        "kind": "first" if number == 1 else "recalibration",
        "status": "current",
        "data_revision": None,
        "judge": {"name": slug, "model": f"example/{slug}", "simulated": True},
        "calibration": None,
        "superseded_by": None,
        "upstream": None,
        "tasks": None,
        "may_change": None,
    }
    earlier = [{**entry.release, "revision": entry.revision, "status": "superseded"} for entry in entries]
    releases = {"format": RELEASES_FORMAT, "benchmark": "tiny", "repo": REPO, "releases": [*earlier, own]}
    files["provenance/releases.json"] = json.dumps(releases).encode()
    declared = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in files.items()
        if data is not None
    }
    files["provenance/manifest.json"] = json.dumps({**MANIFEST, "files": declared}).encode()
    for name, data in files.items():
        if data is not None:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(data)
    return tag


def ready(tree: Path, entries: Sequence[Entry] = ()) -> Ready:
    """A tree as `release publish` reads it."""
    return read_ready(tree, tree.name, benchmark(), tuple(entries))


class Quiet(Progress):
    """Says nothing; keeps what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, step: str) -> None:
        """Keep it."""
        self.said.append(step)

    @contextlib.contextmanager
    def upload(self, files: int, size: int) -> Iterator[Callable[[int, int], None]]:
        """Keep what was to be sent."""
        self.said.append(f"upload {files} {size}")
        yield lambda _files, _size: None


class Killing(Quiet):
    """Ends its process with SIGKILL when a step begins."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self._step = step

    def say(self, step: str) -> None:
        """Die, if this is the step."""
        if step.startswith(self._step):
            os.kill(os.getpid(), signal.SIGKILL)


class Waiting(Quiet):
    """Waits for others before the commit."""

    def __init__(self, barrier: Barrier) -> None:
        super().__init__()
        self._barrier = barrier

    def say(self, step: str) -> None:
        """Wait, if it is the commit that begins."""
        if step == "commit":
            self._barrier.wait(timeout=60)


def publish(remote: Remote, tree: Path, ledger: Path, progress: Progress | None = None, **options: Any) -> Published:
    """What `release publish` does with a tree, without the proofs and without waiting between tries."""
    entries = read_ledger(ledger)
    return bring(
        remote,
        ready(tree, entries),
        Ledger(ledger, entries),
        allowed_deletes=options.get("allowed_deletes", MOST_DELETES),
        progress=progress or Quiet(),
        retry=options.get("retry", Retry(sleep=lambda _seconds: None)),
    )


@dataclass
class Publisher:
    """A publisher in a process of its own, against a Hub at `endpoint`."""

    endpoint: str
    tree: Path
    ledger: Path
    progress: Progress = field(default_factory=Quiet)

    def start(self) -> BaseProcess:
        """Begin."""
        # Not a pipe: what a killed process has written stays readable.
        self.outcome.unlink(missing_ok=True)
        process = processes.Process(target=self._main, daemon=True)
        process.start()
        return process

    @property
    def outcome(self) -> Path:
        """Where it writes how it ended: an exit code and a message."""
        return self.ledger.with_name(f"{self.ledger.name}.{self.tree.parent.name}.outcome")

    def _main(self) -> None:
        from releases.targets.hub import HubRemote  # noqa: PLC0415 - after the environment is set

        try:
            remote = HubRemote(REPO, endpoint=self.endpoint, token=False)
            done = publish(remote, self.tree, self.ledger, self.progress)
            self.outcome.write_text(json.dumps([0, done.revision]))
        except ReleaseError as error:
            self.outcome.write_text(json.dumps([error.exit_code, str(error)]))
