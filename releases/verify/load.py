"""The level of the load: each release is loaded as its readers load it, in a process with an empty cache of its own.

A load proves nothing about another process: the client may hand out what it finds in a cache (Hub spec section 0.1).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from builder import documents
from builder.dataset_folder import front_matter
from builder.layout import MANIFEST, README, TASK_FILE
from builder.manifest import configs_of
from provenance.errors import DataError, InputError, RemoteError
from releases.verify.content import gap
from releases.verify.findings import Failure, Gap
from releases.verify.paced import BudgetSpentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releases.ledger.chain import Entry
    from releases.verify.findings import PinReport
    from releases.verify.hub import HubReader
    from releases.verify.state import State
    from releases.verify.target import Target

LEVEL = "load"
_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.append({root!r}); from releases.verify.loader import main; main()"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OTHERS = ("HF_", "HUGGINGFACE_", "HUGGING_FACE_", "PYTHON", "MTEB_", "XDG_")
"""Variables of the caller that would lead a library to another cache, Hub or module."""
_TAIL = 600
_SAID_EVERY = 50


@dataclass(frozen=True)
class Loading:
    """How releases are loaded: from where, with which Python (whose `datasets` is the one that is tried)."""

    target: Target
    python: str
    state: State
    say: Callable[[str], None]
    processes: set[subprocess.Popen[str]] = field(default_factory=set)


def job_of(reader: HubReader, entry: Entry, report: PinReport) -> dict[str, Any] | None:
    """What a process needs to know to load a release; None where it cannot be had, which goes to the report."""
    name = MANIFEST if MANIFEST in entry.files else README
    try:
        if name not in entry.files:
            report.gaps.append(Gap(LEVEL, "access", f"the release has neither {MANIFEST} nor {README}"))
            return None
        file = entry.files[name]
        content = reader.document(name, str(entry.revision), str(file["sha256"] if file["lfs"] else file["oid"]))
        configs = _from_manifest(documents.parse(content)) if name == MANIFEST else _from_card(content)
    except (RemoteError, InputError, BudgetSpentError) as error:
        report.gaps.append(gap(LEVEL, error))
        return None
    except (DataError, ValueError, LookupError, TypeError) as error:
        # The published bytes themselves: they were so when the ledger was written.
        report.gaps.append(Gap(LEVEL, "access", f"{name} cannot be read ({type(error).__name__})"))
        return None
    if name == README:
        report.gaps.append(Gap(LEVEL, "optional", "the release has no manifest: rows and features were not compared"))
    return {
        "repo": reader.target.repo,
        "revision": entry.revision,
        "tag": entry.tag,
        "configs": configs,
        "tasks": TASK_FILE in entry.files,
        "task_file": entry.files[TASK_FILE]["oid"] if TASK_FILE in entry.files else None,
    }


def _from_manifest(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    files = manifest["files"]
    return [
        {
            "name": config.name,
            "kind": config.kind,
            "files": {split: list(paths) for split, paths in config.files.items()},
            "bytes": sum(files[path]["bytes"] for paths in config.files.values() for path in paths),
            "expected": {
                split: {
                    "rows": sum(files[path]["rows"] for path in paths),
                    "schema": files[paths[0]]["schema"],
                    "images": ["image"] if config.kind == "corpus" else [],
                }
                for split, paths in config.files.items()
            },
        }
        for config in configs_of(manifest)
    ]


def _from_card(card: bytes) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="release-card-") as folder:
        path = Path(folder) / README
        path.write_bytes(card)
        configs = front_matter(path).get("configs") or []
    return [
        {
            "name": str(config["config_name"]),
            "kind": _kind(str(config["config_name"])),
            "files": {"": config.get("data_files")},
            "bytes": 0,
            "expected": None,
        }
        for config in configs
    ]


def _kind(name: str) -> str:
    """`energy__english-qrels` is a qrels; `provenance-first-stage` is of its own kind."""
    return name if name.startswith("provenance-") else name.rsplit("-", 1)[-1]


def run_job(loading: Loading, job: Mapping[str, Any], report: PinReport, budget: int) -> int:
    """Load one release in a process of its own; what it says goes to the report.

    Returns:
        The requests that it made.
    """
    prefix = f"load {loading.python} {job['tag']} "
    document = {**job, "budget": budget, "done": loading.state.keys(prefix)}
    said: dict[str, Any] = {"requests": 0}
    checks = len(document["done"])
    with (
        tempfile.TemporaryDirectory(prefix="release-load-", ignore_cleanup_errors=True) as home,
        (Path(home) / "stderr").open("w+") as errors,
        subprocess.Popen(  # noqa: S603  # a fixed program text; the interpreter is the caller's own choice
            # -B: a full disk must not leave half a compiled module in this checkout.
            [loading.python, "-B", "-P", "-c", _START.format(root=str(_ROOT))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(Path(home), loading.target),
            cwd=home,
            text=True,
        ) as process,
    ):
        loading.processes.add(process)
        try:
            if process.stdin is not None and process.stdout is not None:
                process.stdin.write(json.dumps(document))
                process.stdin.close()
                for line in process.stdout:
                    said = json.loads(line)
                    checks += _take(said, report, prefix, loading.state)
                    if "check" in said and checks % _SAID_EVERY == 0:
                        loading.say(f"  {job['tag']}: {checks} checks")
        except BrokenPipeError:
            pass
        finally:
            if process.poll() is None and "end" not in said:
                process.kill()
            loading.processes.discard(process)
        code = process.wait()
        if "end" not in said:
            errors.seek(0)
            tail = " ".join(errors.read()[-_TAIL:].split())
            report.gaps.append(Gap(LEVEL, "access", f"{loading.python} ended with code {code}: {tail}"))
    report.covered[LEVEL] = {"checks": checks}
    if "end" in said:
        loading.say(f"load: {job['tag']} with datasets {said['datasets']}: {checks} checks")
    return int(said["requests"])


def _take(said: Mapping[str, Any], report: PinReport, prefix: str, state: State) -> int:
    """One line of the process."""
    if "gap" in said:
        report.gaps.append(Gap(LEVEL, said["gap"], said["reason"]))
    elif "check" in said and said["failure"] is None:
        state.mark(prefix + said["check"])
    elif "check" in said:
        name = str(said["check"]).partition(" ")[2]
        report.failures.append(Failure(said["failure"], LEVEL, said["message"], name))
    return 1 if "check" in said else 0


def _environment(home: Path, target: Target) -> dict[str, str]:
    """The caller's, without what leads to another cache or Hub; a token only where the caller has one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OTHERS)}
    own = {
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": target.endpoint,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "XDG_CACHE_HOME": str(home / "cache"),
        "MTEB_CACHE": str(home / "mteb"),
        "HOME": str(home),
    }
    if target.token is not None:
        own["HF_TOKEN"] = target.token
    if urlsplit(target.endpoint).hostname in _LOOPBACK:
        # A Hub on this machine speaks LFS only.
        own["HF_HUB_DISABLE_XET"] = "1"
    return kept | own
