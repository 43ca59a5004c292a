"""What we publish is readable through a Hub that others wrote: olah, over a clone of the store.

Our own local Hub and our own tests could share a mistake about what the Hub serves. olah reads git and LFS objects by
itself; the clients are the real ones. It serves a clone only if that is not bare and has every LFS object (Hub spec
section 2).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from support import tiny
from support.published import REPO, V1, V2, World, publish_next

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releases.ledger.chain import Entry

OLAH = Path(__file__).resolve().parents[2] / ".venv-olah" / "bin" / "olah-cli"
CONFIG, TABLE = "paper__english-qrels", "paper__english/qrels.parquet"
SERVING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")
LOADER = """
import json, sys
from datasets import load_dataset
repo, config, *revisions = sys.argv[1:]
print(json.dumps([load_dataset(repo, config, revision=revision, split="test").to_list() for revision in revisions]))
"""

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.loopback,
    pytest.mark.skipif(not OLAH.is_file(), reason="no .venv-olah: scripts/olah makes it"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two releases, published to a store; the second has other gains."""
    made = World(tmp_path_factory.mktemp("world"))
    tiny.write_world(made.folder)
    publish_next(made, V1, "--no-figures")
    answers = made.folder / "pipeline" / "judgements" / "toy" / "tournament" / "paper.parquet"
    tiny.edit_rows(answers, lambda rows: [*rows[:3], {**rows[3], "answer": rows[2]["answer"]}, *rows[4:]])
    publish_next(made, V2, "--no-figures", "--against", made.folder / "out" / V1)
    return made


@pytest.fixture(scope="module")
def endpoint(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """olah, serving a clone of the store that has the LFS objects of every release."""
    folder = tmp_path_factory.mktemp("olah")
    clone = folder / "mirrors" / "datasets" / REPO
    git("clone", "--quiet", f"file://{world.bare}", str(clone))
    git("-C", str(clone), "lfs", "install", "--local")
    git("-C", str(clone), "lfs", "fetch", "--all")
    with serving(folder) as address:
        yield address


@pytest.fixture
def api(endpoint: str) -> HfApi:
    """The Hub's own client, pointed at olah."""
    return HfApi(endpoint=endpoint, token=False)


def environment(**more: str) -> dict[str, str]:
    """This process's, without the machine's settings of git."""
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **more}


def git(*arguments: str) -> None:
    """Run git; LFS objects are fetched when they are asked for."""
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - the machine's git
        env=environment(GIT_LFS_SKIP_SMUDGE="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run olah offline, on a port that the machine picks, all that it writes in `folder`; its address."""
    config, log = folder / "olah.toml", folder / "said.txt"
    config.write_text(
        f"""
        [basic]
        host = "127.0.0.1"
        port = 0
        repos-path = "{folder / "cache"}"
        mirrors-path = ["{folder / "mirrors"}"]
        [accessibility]
        offline = true
        """
    )
    command = [str(OLAH), "--config", str(config), "--log-path", str(folder / "logs")]
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=said, stderr=subprocess.STDOUT)
    try:
        yield _address(process, log)
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where olah says that it runs, once it does."""
    for _ in range(600):
        if (found := SERVING.search(log.read_text())) is not None:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"olah does not start (exit code {process.poll()}):\n{log.read_text()}")


def rows(world: World, tag: str) -> list[dict[str, Any]]:
    """The table of the config as it was built, before it was published."""
    return pq.read_table(world.folder / "out" / tag / TABLE).to_pylist()


def pins(world: World) -> dict[str, str]:
    """Tags and commits, as the ledger has them."""
    return {entry.tag: str(entry.revision) for entry in world.entries()}


def test_refs(api: HfApi, world: World) -> None:
    """The tags are the ledger's, at the ledger's commits; main is the last release."""
    refs = api.list_repo_refs(REPO, repo_type="dataset")
    assert [V1, V2] == sorted(pins(world))
    assert pins(world) == {tag.name: tag.target_commit for tag in refs.tags}
    assert {"main": pins(world)[V2]} == {branch.name: branch.target_commit for branch in refs.branches}


@pytest.mark.parametrize("tag", [V1, V2])
def test_info(api: HfApi, world: World, tag: str) -> None:
    """By tag and by sha the commit and the list of files are the ledger's."""
    entry = entry_of(world, tag)
    for revision in (tag, str(entry.revision)):
        info = api.dataset_info(REPO, revision=revision)
        assert entry.revision == info.sha
        assert sorted(entry.files) == sorted(file.rfilename for file in info.siblings or ())


@pytest.mark.parametrize("tag", [V1, V2])
def test_every_file(api: HfApi, world: World, tag: str, tmp_path: Path) -> None:
    """Each file of a release, downloaded by its tag, has the sha256 that the ledger has; LFS objects are among them."""
    files = entry_of(world, tag).files
    assert {True, False} == {file["lfs"] for file in files.values()}
    got = {
        name: Path(api.hf_hub_download(REPO, name, repo_type="dataset", revision=tag, cache_dir=tmp_path))
        for name in files
    }
    expected = {name: file["sha256"] for name, file in files.items()}
    assert expected == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in got.items()}


@pytest.mark.parametrize("by", ["tag", "sha"])
def test_rows(endpoint: str, world: World, by: str, tmp_path: Path) -> None:
    """`datasets` with an empty cache loads each release's own gains, the first's too, now that there is a second."""
    revisions = [tag if by == "tag" else sha for tag, sha in sorted(pins(world).items())]
    done = subprocess.run(
        [sys.executable, "-c", LOADER, REPO, CONFIG, *revisions],
        env=environment(HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    first, second = rows(world, V1), rows(world, V2)
    assert first != second
    assert [first, second] == json.loads(done.stdout)


def entry_of(world: World, tag: str) -> Entry:
    """A release in the ledger."""
    return next(entry for entry in world.entries() if entry.tag == tag)
