"""A published release is proved as a tree on disk is, and its predecessors are the ledger's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.published import REPO, V1, V2, World, write_published

from builder.proofs.facts import Facts
from builder.validate import validate
from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two releases; read only."""
    return write_published(tmp_path_factory.mktemp("published") / "world")


def test_a_published_release_is_validated_by_its_name(published: World, tmp_path: Path) -> None:
    """`owner/name@tag`: fetched at its commit, every proof that a tree gets, C2 against the ledger beside the file."""
    command = [sys.executable, "-m", "releases", "validate", f"{REPO}@{V2}", "--against", f"{REPO}@{V1}", "--json"]
    with LocalHub(published.store) as hub:
        environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run(
            [*command, "--benchmark", str(published.folder / "benchmark.toml")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert f"{REPO}@{V2}" == document["tree"]
    proved = {name: item["status"] for name, item in document["proofs"].items()}
    assert {"passed"} == {proved[name] for name in ("M1", "S1", "U1", "G1", "C1", "C2", "C3")}


def c2(tree: Path, pins: dict[str, str | None]) -> pl.DataFrame:
    """The failures of C2 that come from the ledger."""
    result = validate(Facts(tree, published=pins), ["C2"], clock=lambda: 0.0, say=lambda _: None)
    failures = result.outcomes[0].failures
    return failures.filter(failures["rule"] == "ledger").select("column", "value", "message")


def test_c2_compares_the_releases_before_with_the_ledger(published: World) -> None:
    """Another commit, another tag, a release that is missing: each is named; later releases do not matter."""
    tree = published.folder / "out" / V2
    revision = published.entries()[0].revision
    assert 0 == c2(tree, {V1: revision}).height
    assert 0 == c2(tree, {V1: revision, V2: "2" * 40, "v3-toy": "3" * 40}).height
    assert 0 == c2(tree, {V1: None}).height
    other = "1" * 40
    assert [("releases.0.revision", revision, f"in the ledger, {V1} is commit {other}")] == c2(tree, {V1: other}).rows()
    assert [("releases.0.tag", V1, "release 1 of the ledger is v1-other")] == c2(tree, {"v1-other": other}).rows()
    assert [("releases.1.number", "2", "the ledger has 0 release(s), so 1 is the next")] == c2(tree, {}).rows()


def test_what_is_neither_a_folder_nor_a_name_is_refused(published: World) -> None:
    """The message says what could be named."""
    done = published.run("validate", "nowhere")
    assert (4, "") == (done.code, done.stdout)
    assert "owner/name@revision" in done.stderr
