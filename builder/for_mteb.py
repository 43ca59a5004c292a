"""The task definitions of a release for a pull request to mteb (method spec sections 16.4 and 16.5)."""

from __future__ import annotations

import ast
from importlib import resources
from pprint import pformat
from typing import TYPE_CHECKING, Any

from builder import tasks
from builder.layout import TASK_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from builder.benchmark import Benchmark

_WIDTH = 100
_METRIC = "from builder.task_file.rcp_ndcg_tasks import ndcg_float\n"


def render(benchmark: Benchmark, *, number: int, revision: str, merged: Sequence[int] = ()) -> str:
    """A Python module with one class a task, pinned to a commit.

    Where mteb has earlier releases, a task is called `<task>.v<number>` and supersedes the last of the earlier ones: a
    comment names the lines to change.

    Args:
        benchmark: names, languages, licence.
        number: the release's number.
        revision: the commit of its tag: mteb pins commits.
        merged: the numbers of the releases that mteb has, any order; the first of them has the plain names.
    """
    source = (resources.files("builder") / "task_file" / TASK_FILE).read_text("utf-8")
    metric = "\n\n\n".join(_function(source, name) for name in ("_dcg", "ndcg_float"))
    head, tail = (resources.files("builder") / "task_file" / "for_mteb.py").read_text("utf-8").split(_METRIC)
    imports = "from mteb.abstasks.task_metadata import TaskMetadata\n\n\n"
    head = head.rstrip("\n").replace("from typing import Any\n", "import math\nfrom typing import Any\n") + "\n"
    base = (
        tail.strip("\n").replace("  # type: ignore[misc]  # mteb has no types here", "").replace("  # noqa: ARG002", "")
    )
    entries = tasks.metadata(benchmark, revision)
    classes = [_class(task_name(name, number, merged), number, merged, entry) for name, entry in entries.items()]
    superseded = _superseded(list(entries), number, merged)
    return "\n\n\n".join([head + imports.rstrip("\n"), metric, base, *classes, *superseded]) + "\n"


def task_name(name: str, number: int, merged: Sequence[int]) -> str:
    """What a release's task is called in mteb: the plain name for the first that mteb has, then `.v<number>`."""
    return f"{name}.v{number}" if any(earlier < number for earlier in merged) else name


def _class(name: str, number: int, merged: Sequence[int], entry: dict[str, Any]) -> str:
    lines = [f"        name={name!r},"]
    for key, value in entry.items():
        first, *rest = pformat(value, width=_WIDTH, sort_dicts=False).splitlines()
        lines += [f"        {key}={first}", *(f"        {line}" for line in rest)]
        lines[-1] += ","
    class_name = name.replace(f".v{number}", f"V{number}") if merged else name
    return "\n".join([f"class {class_name}(_RcpTask):", "    metadata = TaskMetadata(", *lines, "    )"])


def _superseded(names: list[str], number: int, merged: Sequence[int]) -> list[str]:
    earlier = [one for one in merged if one < number]
    if not earlier:
        return []
    last = max(earlier)
    lines = [
        f"#   {task_name(name, last, earlier)}: superseded_by={task_name(name, number, merged)!r}" for name in names
    ]
    return ["\n".join([f"# In the classes of release {last}, set:", *lines])]


def _function(source: str, name: str) -> str:
    (node,) = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return str(ast.get_source_segment(source, node))
