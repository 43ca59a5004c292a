"""With `--json` there is one document on stdout, whether the command could do its work or not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import release_here

from provenance.errors import DataError, Where
from releases.terminal import one_document, print_json


def test_an_error_is_the_document(tmp_path: Path) -> None:
    """What, where, what next and the exit code; stderr has the same words for a person."""
    done = release_here("validate", tmp_path / "nowhere", "--json")
    assert 4 == done.code
    error = json.loads(done.stdout)["error"]
    assert ["exit_code", "next", "what", "where"] == sorted(error)
    assert 4 == error["exit_code"]
    assert str(tmp_path / "nowhere") in json.dumps(error)
    assert f"error: {error['what']}" in done.stderr


def test_a_value_that_is_no_json_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A NaN is named as text: no parser of JSON stumbles over it."""
    with pytest.raises(DataError), one_document(wanted=True):
        raise DataError("no number", where=Where("runs.parquet", 3, "score", float("nan")))
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert {"file": "runs.parquet", "row": 3, "column": "score", "value": "nan"} == document["error"]["where"]


def test_a_document_that_was_given_stays_the_only_one(capsys: pytest.CaptureFixture[str]) -> None:
    """An error after the command's own document is told on stderr and by the exit code."""

    def command() -> None:
        print_json({"tag": "v1-toy"})
        raise DataError("too late")

    with pytest.raises(DataError), one_document(wanted=True):
        command()
    assert {"tag": "v1-toy"} == json.loads(capsys.readouterr().out)


def test_an_interrupt_is_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C too: exit code 130, and that the same command can be run again."""
    with pytest.raises(KeyboardInterrupt), one_document(wanted=True):
        raise KeyboardInterrupt
    assert 130 == json.loads(capsys.readouterr().out)["error"]["exit_code"]


def test_what_cannot_be_read_is_the_document_too(tmp_path: Path) -> None:
    """A name that the system does not take is an error as any other: exit code 4, and a document that says so."""
    done = release_here("list", "--json", "--ledger", tmp_path / ("x" * 300))
    assert 4 == done.code
    assert 4 == json.loads(done.stdout)["error"]["exit_code"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_document_that_stdout_does_not_take() -> None:
    """Where stdout is full, the error's own exit code and its words on stderr are left."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "releases", "validate", "nowhere", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert 4 == done.returncode
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_json_stdout_is_empty(tmp_path: Path) -> None:
    """A person reads the error on stderr only."""
    done = release_here("validate", tmp_path / "nowhere")
    assert 4 == done.code
    assert not done.stdout
