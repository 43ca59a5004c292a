"""`release hub init` and `release hub serve`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from releases.cli import run
from releases.local_hub import LOOPBACK, LocalHub

if TYPE_CHECKING:
    from pathlib import Path

REPO = "someone/bench"


def test_init_makes_what_the_hub_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document names the repository and its first commit; a second time it is refused, as is a bad name."""
    assert 0 == run(["hub", "init", str(tmp_path), REPO, "--json"])
    document = json.loads(capsys.readouterr().out)
    hub = LocalHub(tmp_path)
    assert (REPO, hub.store.repository(REPO).resolve("main")) == (document["repo"], document["head"])
    assert 5 == run(["hub", "init", str(tmp_path), REPO])
    assert 2 == run(["hub", "init", str(tmp_path), "../x"])


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_serve_until_interrupted(tmp_path: Path) -> None:
    """The command says where it answers, asks for the token to write, and ends well when it is told to."""
    assert 0 == run(["hub", "init", str(tmp_path), REPO])
    token = "a-secret"  # noqa: S105  # of a Hub that lives for one test
    command = [sys.executable, "-m", "releases", "hub", "serve", str(tmp_path), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "RELEASE_HUB_TOKEN": token}
    ) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(4)]
            endpoint = json.loads(b"".join(lines))["endpoint"]
            with pytest.raises(HfHubHTTPError):
                HfApi(endpoint=endpoint, token=False).create_tag(REPO, tag="v1", repo_type="dataset")
            HfApi(endpoint=endpoint, token=token).create_tag(REPO, tag="v1", repo_type="dataset")
        finally:
            # A test runner in the background has its children ignore SIGINT.
            process.terminate()
        said = process.communicate(timeout=60)[1].decode()
        assert 0 == process.returncode
    assert f"export HF_ENDPOINT={endpoint} HF_HUB_DISABLE_XET=1" in said
    assert token not in said


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_serve_on_a_taken_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A port that another program has is an error with a remedy, exit code 4."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert 4 == run(["hub", "serve", str(tmp_path), "--port", port])
    assert "choose another --port" in capsys.readouterr().err.replace("\n", " ")
