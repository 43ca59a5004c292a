"""Other readers of the same store: git with git-lfs, `datasets`, and a second server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError

from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.loopback]

REPO = "someone/bench"
CARD = (
    b"---\nconfigs:\n- config_name: energy-qrels\n  data_files:\n  - split: test\n    path: energy/qrels.parquet\n---\n"
)
LOADER = """
import json, sys
from datasets import load_dataset
ds = load_dataset("someone/bench", "energy-qrels", revision=sys.argv[1], split="test")
print(json.dumps({"gain": ds["gain"][:], "sha": ds.cache_files[0]["filename"].split("/")[-2]}))
"""


def parquet(path: Path, gains: list[float]) -> bytes:
    """A Parquet file of one column."""
    pq.write_table(pa.table({"gain": gains}), path)
    return path.read_bytes()


def commit(api: HfApi, files: dict[str, bytes]) -> str:
    """One commit; its sha."""
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    return str(api.create_commit(REPO, operations, commit_message="change", repo_type="dataset").oid)


def run(arguments: list[str], **env: str) -> str:
    """A program's standard output."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **env}
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_load_dataset_at_an_old_tag_and_sha(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    """After a newer release, `datasets` with an empty cache loads the old one by tag and by sha."""
    old = commit(api, {"README.md": CARD, "energy/qrels.parquet": parquet(tmp_path / "a", [0.9, 0.1])})
    api.create_tag(REPO, tag="v1", repo_type="dataset")
    new = commit(api, {"energy/qrels.parquet": parquet(tmp_path / "b", [0.5])})
    for number, (revision, sha, gains) in enumerate(
        [("v1", old, [0.9, 0.1]), (old, old, [0.9, 0.1]), (new, new, [0.5])]
    ):
        env = {
            "HF_ENDPOINT": hub.endpoint,
            "HF_HOME": str(tmp_path / f"home{number}"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        assert {"gain": gains, "sha": sha} == json.loads(run([sys.executable, "-c", LOADER, revision], **env))


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_git_clone_reads_the_same_store(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    """`git clone` and `git lfs pull` of the bare repository give the files, and nothing is missing."""
    data = parquet(tmp_path / "a", [0.9, 0.1])
    sha = commit(api, {"README.md": CARD, "energy/qrels.parquet": data})
    api.create_tag(REPO, tag="v1", tag_message="first", repo_type="dataset")
    clone = tmp_path / "clone"
    env = {"GIT_LFS_SKIP_SMUDGE": "1"}
    run(["git", "clone", "--quiet", f"file://{hub.store.repository(REPO).path}", str(clone)], **env)
    run(["git", "-C", str(clone), "lfs", "install", "--local"])
    run(["git", "-C", str(clone), "lfs", "pull"])
    assert data == (clone / "energy" / "qrels.parquet").read_bytes()
    assert CARD == (clone / "README.md").read_bytes()
    assert sha == run(["git", "-C", str(clone), "rev-parse", "v1^{commit}"]).strip()
    assert "" == run(["git", "-C", str(clone), "status", "--porcelain"])
    assert "Git LFS fsck OK" in run(["git", "-C", str(clone), "lfs", "fsck", "--dry-run"])


def test_git_makes_the_same_tree(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    """A folder's tree hash from plain git and git-lfs is the one that the Hub's commit has."""
    data = parquet(tmp_path / "a", [0.9, 0.1])
    sha = commit(api, {"README.md": CARD, "energy/qrels.parquet": data})
    work = tmp_path / "work"
    run(["git", "init", "--quiet", str(work)])
    run(["git", "-C", str(work), "lfs", "install", "--local"])
    attributes = hub.store.repository(REPO).blob(hub.store.repository(REPO).tree(sha)[".gitattributes"].oid)
    (work / ".gitattributes").write_bytes(attributes)
    (work / "README.md").write_bytes(CARD)
    (work / "energy").mkdir()
    (work / "energy" / "qrels.parquet").write_bytes(data)
    run(["git", "-C", str(work), "add", "-A"])
    bare = str(hub.store.repository(REPO).path)
    expected = run(["git", "-C", str(work), "write-tree"]).strip()
    assert expected == run(["git", "--git-dir", bare, "rev-parse", f"{sha}^{{tree}}"]).strip()


def test_two_servers_on_one_store(hub: LocalHub, api: HfApi) -> None:
    """What one process commits the other sees, and one parent is good for one commit between them."""
    with LocalHub(hub.store.root) as other:
        there = HfApi(endpoint=other.endpoint, token=False)
        parent = api.dataset_info(REPO).sha
        sha = commit(api, {"x.parquet": b"x"})
        assert sha == there.dataset_info(REPO).sha
        with pytest.raises(HfHubHTTPError) as caught:
            there.create_commit(
                REPO,
                [CommitOperationAdd("y.parquet", b"y")],
                commit_message="y",
                repo_type="dataset",
                parent_commit=parent,
            )
        assert 412 == caught.value.response.status_code
