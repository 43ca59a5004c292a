"""The workflows: no permission but where it is needed, every action pinned by its commit, a token only to publish."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


def read(name: str) -> dict[str, Any]:
    """A workflow; `on` is read as the word that it is."""
    document: dict[str, Any] = yaml.load((FOLDER / name).read_text(), yaml.BaseLoader)  # noqa: S506 - strings only
    return document


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Every step of every job."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_there_are_three() -> None:
    """Continuous integration, the daily verification, the release by hand."""
    assert ["ci.yml", "release.yml", "verify.yml"] == [file.name for file in FILES]


@pytest.mark.parametrize("name", [file.name for file in FILES])
def test_nothing_is_permitted_by_default(name: str) -> None:
    """The top grants nothing; each job says what it needs and how long it may take."""
    workflow = read(name)
    assert {} == workflow["permissions"]
    assert all(job["permissions"] and int(job["timeout-minutes"]) <= 360 for job in workflow["jobs"].values())


@pytest.mark.parametrize("name", [file.name for file in FILES])
def test_actions_are_pinned_and_checkouts_keep_no_token(name: str) -> None:
    """A tag of an action can be moved, a commit cannot; a checkout leaves no credential behind."""
    used = [step for step in steps(read(name)) if "uses" in step]
    assert [] == [step["uses"] for step in used if PINNED.fullmatch(step["uses"]) is None]
    checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
    assert checkouts
    assert {"false"} == {step["with"]["persist-credentials"] for step in checkouts}


@pytest.mark.parametrize("name", [file.name for file in FILES])
def test_no_expression_stands_in_a_script(name: str) -> None:
    """What comes from outside reaches a shell as a variable, never as text of the script."""
    assert [] == [step["run"] for step in steps(read(name)) if "${{" in step.get("run", "")]


def test_only_the_publishing_job_gets_an_identity() -> None:
    """Trusted publishing: one job of one workflow, behind an environment, by hand, with no secret anywhere."""
    holders = {
        (file.name, job): content
        for file in FILES
        for job, content in read(file.name)["jobs"].items()
        if "id-token" in content["permissions"]
    }
    assert [("release.yml", "publish")] == list(holders)
    assert "hub" == holders["release.yml", "publish"]["environment"]
    assert ["workflow_dispatch"] == list(read("release.yml")["on"])
    assert [] == [file.name for file in FILES if "secrets." in file.read_text()]


def test_a_release_is_proved_before_and_verified_after() -> None:
    """Build, validate and diff come before the publish, the ledger and the verification after it."""
    jobs = read("release.yml")["jobs"]
    build = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert build.index("release build") < build.index("release validate") < build.index("release diff")
    assert "build" == jobs["publish"]["needs"]
    assert ["build", "publish"] == jobs["record"]["needs"] == jobs["verify"]["needs"]


def test_every_pin_is_loaded_daily_with_oldest_and_newest() -> None:
    """The matrix is the ledger's pins by two versions of datasets; one that fails stops no other, and is reported."""
    workflow = read("verify.yml")
    assert "schedule" in workflow["on"]
    load = workflow["jobs"]["load"]
    assert "false" == load["strategy"]["fail-fast"]
    assert ["oldest", "newest"] == load["strategy"]["matrix"]["datasets"]
    assert "needs.pins.outputs.tags" in load["strategy"]["matrix"]["tag"]
    assert "failure()" == workflow["jobs"]["report"]["if"]
    assert {"pins", "ledger", "load"} == set(workflow["jobs"]["report"]["needs"])
