"""The house's own rules: imports, module sizes, forbidden calls, tests that say what they claim, the lock."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from pathlib import Path

import git
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
# What each room may import of the house.
ROOMS = {
    "provenance": {"provenance"},
    "builder": {"builder", "card_templates", "provenance"},
    "releases": {"builder", "card_templates", "provenance", "releases"},
    "card_templates": {"card_templates"},
}
LONGEST_MODULE = 450
MEDIAN_MODULE = 200


def modules(*folders: str) -> list[Path]:
    """Every Python file of the folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def imported_rooms(tree: ast.Module) -> set[str]:
    """The house's rooms that a module imports, anywhere in it, or names to import machinery."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Call) and called_name(node) in {"import_module", "files", "__import__"}:
            names |= {arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
    return {name.split(".")[0] for name in names} & set(ROOMS)


def called_name(call: ast.Call) -> str:
    """The last name of what is called: `f` of `a.b.f(...)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_one_way(room: str) -> None:
    """A room imports only itself and the rooms before it: provenance <- builder <- releases."""
    wrong = {
        str(path.relative_to(ROOT)): sorted(extra)
        for path in modules(room)
        if (extra := imported_rooms(parsed(path)) - ROOMS[room])
    }
    assert {} == wrong


@pytest.mark.parametrize(
    "source",
    [
        "import builder.tables",
        "from builder import tables",
        "def f():\n    import builder",
        "import importlib\nimportlib.import_module('builder.tables')",
        "from importlib import resources\nresources.files('builder')",
    ],
)
def test_imports_are_seen_in_each_form(source: str) -> None:
    """The import rule sees plain, from, nested and dynamic imports."""
    assert {"builder"} == imported_rooms(ast.parse(source))


def test_modules_stay_small() -> None:
    """No Python file is above 450 lines, and the rooms' median module is under 200."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in modules(*ROOMS, "tests", "scripts")}
    assert {} == {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > LONGEST_MODULE}
    rooms = [n for path, n in lengths.items() if path.relative_to(ROOT).parts[0] in ROOMS]
    assert statistics.median(rooms) < MEDIAN_MODULE


# A release is one create_commit on a stated parent; a tag is made once; nothing is rewritten (DESIGN section 6).
FORBIDDEN_NAMES = {"upload_folder", "upload_large_folder", "push_to_hub", "super_squash_history", "delete_tag"}
# The local Hub is the other side: it serves the route that a client of ours must never call.
SERVER, SERVED = "releases/local_hub/", "delete_tag"
FORBIDDEN_ARGUMENTS = re.compile(r"--force(-with-lease|-if-includes)?(=.*)?|--mirror|--prune|\+(refs/|HEAD).*")


def forbidden_calls(tree: ast.Module) -> list[str]:
    """Whatever a module does that could rewrite what was published, as `line: name`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_NAMES:
            found.append(f"{node.lineno}: {node.attr}")
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.lineno}: {alias.name}" for alias in node.names if alias.name in FORBIDDEN_NAMES]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in FORBIDDEN_NAMES or FORBIDDEN_ARGUMENTS.fullmatch(node.value):
                found.append(f"{node.lineno}: {node.value}")
        elif isinstance(node, ast.Call):
            keywords = {word.arg: word.value for word in node.keywords}
            forced = keywords.get("force")
            if called_name(node) in {"push", "create_tag", "create_head"} and forced is not None:
                found.append(f"{node.lineno}: {called_name(node)}(force=...)")
            stated = "parent_commit" in keywords or None in keywords  # None: keywords passed on with **
            if called_name(node) == "create_commit" and isinstance(node.func, ast.Attribute) and not stated:
                found.append(f"{node.lineno}: create_commit without parent_commit")
    return found


def test_nothing_can_rewrite_what_was_published() -> None:
    """No module uploads in several commits, squashes, force-pushes, deletes a tag or commits on an unstated parent."""
    found = [
        f"{name}:{call}"
        for path in modules(*ROOMS, "scripts")
        for call in forbidden_calls(parsed(path))
        if not ((name := path.relative_to(ROOT).as_posix()).startswith(SERVER) and call.endswith(f" {SERVED}"))
    ]
    assert [] == found


@pytest.mark.parametrize(
    "source",
    [
        "api.upload_folder(folder_path='x')",
        "from huggingface_hub import upload_large_folder",
        "dataset.push_to_hub('a/b')",
        "getattr(api, 'super_squash_history')('a/b')",
        "api.delete_tag('a/b', tag='v1')",
        "run(['git', 'push', '--force', 'origin'])",
        "run(['git', 'push', '--force-with-lease=main', 'origin'])",
        "run(['git', 'push', 'origin', '+refs/heads/main:refs/heads/main'])",
        "repo.create_tag('v1', force=True)",
        "remote.push(force=True)",
        "api.create_commit('a/b', operations=[], commit_message='x')",
    ],
)
def test_forbidden_calls_are_seen(source: str) -> None:
    """The lint rule sees each way to rewrite a repository."""
    assert 1 == len(forbidden_calls(ast.parse(source)))


def test_a_commit_on_a_stated_parent_is_allowed() -> None:
    """The lint rule lets through what a publish does."""
    allowed = "api.create_commit('a/b', operations=[], commit_message='x', parent_commit=head)\napi.create_tag('a/b')"
    assert [] == forbidden_calls(ast.parse(allowed))


def test_every_test_states_its_claim() -> None:
    """Each test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in modules("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert [] == silent


def test_no_registry_host_is_named() -> None:
    """No tracked text file names a host of a package registry: installs work with any mirror."""
    # The brackets keep this file from naming them.
    hosts = re.compile(rb"p[y]pi[.]org|python[h]osted[.]org|registry[.]n[p]mjs|deb[.]d[e]bian[.]org")
    tracked = git.Repo(ROOT).git.ls_files("-z").rstrip("\0").split("\0")
    files = [ROOT / name for name in tracked if (ROOT / name).is_file()]
    assert [] == [str(path.relative_to(ROOT)) for path in files if hosts.search(path.read_bytes())]


LOCKED = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\(?P<hashes>(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)"
)


def locked() -> dict[str, list[str]]:
    """The lock's versions of each distribution (several where they depend on the Python version)."""
    versions: dict[str, list[str]] = {}
    for match in LOCKED.finditer((ROOT / "requirements.lock").read_text("utf-8")):
        versions.setdefault(match["name"], []).append(match["version"])
    return versions


@pytest.mark.parametrize("lock", ["requirements.lock", "scripts/olah.lock", "scripts/workflows.lock"])
def test_every_line_of_a_lock_carries_hashes(lock: str) -> None:
    """A lock is nothing but comments and pinned requirements with sha256 hashes: no host, no option."""
    text = (ROOT / lock).read_text("utf-8")
    rest = re.sub(r"(?m)^ *#.*$", "", LOCKED.sub("", text))
    assert "" == rest.strip()
    assert "://" not in text


def test_the_lock_covers_what_is_declared() -> None:
    """Each declared dependency is in the lock at a version that its bound allows; mteb has environments of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    declared = [
        *project["project"]["dependencies"],
        *extras["plots"],
        *extras["cluster"],
        *(requirement for group in project["dependency-groups"].values() for requirement in group),
    ]
    versions = locked()
    unmet = [
        requirement
        for requirement in map(Requirement, declared)
        if not (found := versions.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version) for version in found)
    ]
    assert [] == unmet
    assert "mteb" not in versions
