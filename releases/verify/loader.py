"""Load one release as its readers do, and say what came: the process that `load` starts, with a cache of its own.

It stands alone (standard library, `datasets`, `huggingface_hub`; mteb where it is installed), so that it runs in an
environment with another version of `datasets` than the tool's own. A job comes on stdin, one JSON line a check goes to
stdout.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import datasets
from huggingface_hub import hf_hub_download

from releases.verify.paced import BudgetSpentError, Paced, RemoteFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

TASK_FILE = "rcp_ndcg_tasks.py"
VERSION = metadata.version("datasets")
_LONGEST = 400
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})


class OtherReleaseError(Exception):
    """What was loaded is another release than the one that was asked for."""


class DiskFullError(Exception):
    """What was to be loaded cannot be written here, which says nothing of the release."""


class AsPublishedError(Exception):
    """It loads, but not as it was published."""


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error: libraries wrap what they meet."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def main() -> None:
    """Read a job, check it, end; whatever a library prints goes to stderr."""
    job = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    datasets.disable_progress_bars()
    paced = Paced(job["budget"])
    with paced.client():
        Loader(job, paced, out).run()
    out.write(json.dumps({"end": True, "requests": paced.used, "datasets": VERSION}) + "\n")


class Loader:
    """The checks of one release.

    Args:
        job: `repo`, `revision` (the sha), `tag`; `configs`: name, kind, `files` (what it names, by split), `bytes`, and
            `expected` (rows and schema by split, None without a manifest); `tasks`: whether to load the task
            file; `task_file`: its git blob sha; `done`: checks that need not be made again.
        paced: the requests.
        out: where a line a check goes.
    """

    def __init__(self, job: dict[str, Any], paced: Paced, out: TextIO) -> None:
        self.repo, self.revision, self.tag = str(job["repo"]), str(job["revision"]), str(job["tag"])
        self._job = job
        self._paced = paced
        self._out = out

    def run(self) -> None:
        """One of each kind by tag, in an empty cache; then every config by sha; then the tasks."""
        configs = self._job["configs"]
        try:
            for config in _one_of_each_kind(configs):
                self._check("tag", config["name"], lambda c=config: self._load(c, self.tag))  # type: ignore[misc]
            loaded: dict[str, str] = {}
            for config in configs:
                name, files = config["name"], json.dumps(config["files"], sort_keys=True)
                if files in loaded:
                    self._check("sha", name, lambda a=name, b=loaded[files]: self._same_files(a, b))  # type: ignore[misc]
                else:
                    loaded[files] = name
                    self._check("sha", name, lambda c=config: self._load(c, self.revision))  # type: ignore[misc]
            if self._job["tasks"]:
                self._check_tasks()
        except DiskFullError as error:
            self._say(gap="access", reason=str(error))
        except (BudgetSpentError, RemoteFailedError) as error:
            kind = "budget" if isinstance(error, BudgetSpentError) else "access" if error.refused else "remote"
            self._say(gap=kind, reason=str(error))

    def _check(self, by: str, name: str, check: Callable[[], None]) -> None:
        """One check. A failure of the remote ends the run: a library may have gone on with what its cache holds."""
        key = f"{by} {name}"
        if key in self._job["done"]:
            return
        failure: tuple[str, str] | None = None
        try:
            check()
        except OtherReleaseError as error:
            failure = ("loads-another-release", str(error))
        except Exception as error:  # whatever a library raises over a release that it cannot load is the finding
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
            if _is_full(error):
                raise DiskFullError(f"this machine's disk takes no more: {text}") from error
            failure = (f"unloadable-with-datasets-{VERSION}", f"by {by}: {text}")
        if self._paced.fault is not None:
            raise self._paced.fault
        self._say(check=key, failure=None if failure is None else failure[0], message=failure and failure[1])

    def _say(self, **line: object) -> None:
        self._out.write(json.dumps({**line, "requests": self._paced.used}) + "\n")

    def _load(self, config: dict[str, Any], revision: str) -> None:
        loaded = datasets.load_dataset(self.repo, config["name"], revision=revision)
        folders = {}
        for split, data in loaded.items():
            if not data.cache_files:
                raise OtherReleaseError(f"asked for {revision}: nothing says which release was loaded")
            folder = Path(data.cache_files[0]["filename"]).parent
            folders[split] = folder
            if folder.name != self.revision:
                raise OtherReleaseError(f"asked for {revision}, which is {self.revision}; {folder.name} was loaded")
        if config["expected"] is not None:
            _compare(config, {split: _described(data) for split, data in loaded.items()})
        del loaded
        # The Arrow copies of all configs would need several times the space of the release.
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _same_files(self, name: str, other: str) -> None:
        """A config that names the files of one that was loaded: the same files are what it resolves to."""
        ours, theirs = self._resolved(name), self._resolved(other)
        if ours != theirs:
            raise AsPublishedError(f"it should read the files of {other}, and reads {ours}, not {theirs}")
        if any(f"@{self.revision}/" not in file for files in ours.values() for file in files):
            raise OtherReleaseError(f"asked for {self.revision}: it reads {ours}")

    def _resolved(self, name: str) -> dict[str, list[str]]:
        builder = datasets.load_dataset_builder(self.repo, name, revision=self.revision)
        return {str(split): sorted(map(str, files)) for split, files in builder.config.data_files.items()}

    def _check_tasks(self) -> None:
        if importlib.util.find_spec("mteb") is None:
            self._say(gap="optional", reason=f"mteb is not installed: {TASK_FILE} was not imported")
            return
        tasks: list[Any] = []
        self._check("tag", TASK_FILE, lambda: tasks.extend(self._tasks()))
        for task in sorted(tasks, key=lambda task: str(task.metadata.hf_subsets)):
            self._check("tag", f"task {task.metadata.name}", task.load_data)

    def _tasks(self) -> list[Any]:
        file = hf_hub_download(self.repo, TASK_FILE, repo_type="dataset", revision=self.tag)
        content = Path(file).read_bytes()
        # It is run below: only what was published is.
        if hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() != self._job["task_file"]:  # noqa: S324 - git's
            raise AsPublishedError(f"{TASK_FILE} of {self.tag} is not the file that was published; it was not run")
        spec = importlib.util.spec_from_file_location("rcp_ndcg_tasks", file)
        if spec is None or spec.loader is None:
            raise AsPublishedError(f"{TASK_FILE} is no Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        views: list[dict[str, Any]] = [{}]
        if "view" in inspect.signature(module.get_tasks).parameters:
            views = [{"view": v, "text_only": text} for v in ("reranking", "retrieval") for text in (False, True)]
        tasks = [task for view in views for task in module.get_tasks(**view)]
        for task in tasks:
            pinned = task.metadata.dataset["revision"]
            if pinned not in {self.tag, self.revision}:
                raise OtherReleaseError(f"task {task.metadata.name} of {self.tag} reads {pinned}")
        return tasks


def _one_of_each_kind(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The smallest config of each kind."""
    chosen: dict[str, dict[str, Any]] = {}
    for config in configs:
        kind = config["kind"]
        if kind not in chosen or config["bytes"] < chosen[kind]["bytes"]:
            chosen[kind] = config
    return list(chosen.values())


def _described(data: Any) -> dict[str, Any]:
    """Rows, Arrow types by column, and the columns that are images."""
    types = {field.name: _type(str(field.type)) for field in data.features.arrow_schema}
    images = sorted(name for name, feature in data.features.items() if isinstance(feature, datasets.Image))
    return {"rows": data.num_rows, "schema": types, "images": images}


def _type(name: str) -> str:
    """An Arrow type by name, whatever the writer calls the items of a list."""
    return name.replace("list<element: ", "list<item: ")


def _compare(config: dict[str, Any], found: dict[str, Any]) -> None:
    """Splits, rows and features against the manifest's."""
    expected = config["expected"]
    if expected.keys() != found.keys():
        raise AsPublishedError(f"it has the splits {sorted(found)}, and was published with {sorted(expected)}")
    for split, fact in expected.items():
        wanted = {**fact, "schema": {name: _type(kind) for name, kind in fact["schema"].items()}}
        for key, value in wanted.items():
            if found[split][key] != value:
                raise AsPublishedError(f"split {split}: {key} {found[split][key]}, published with {value}")


if __name__ == "__main__":
    main()
