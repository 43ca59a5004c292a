"""Plain git with git-lfs: the same trees as on a Hub, branch and tag together or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from support import small

from provenance.errors import InputError, RemoteError, SafetyError, UsageError
from releases.ledger.chain import read_ledger
from releases.local_hub import LocalHub
from releases.publish import WAS_DONE
from releases.targets.git import GitRemote
from releases.targets.hub import HubRemote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GAINS = "paper__english/qrels.parquet"


@pytest.fixture(autouse=True)
def _somebody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who git says made a commit, and no configuration of this machine."""
    (tmp_path / "home").mkdir()
    for name, value in {
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.org",
        "GIT_COMMITTER_NAME": "Somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.org",
        "HOME": str(tmp_path / "home"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where nothing is yet."""
    return f"file://{tmp_path / 'remotes' / 'tiny.git'}"


@pytest.fixture
def remote(url: str, tmp_path: Path) -> Iterator[GitRemote]:
    """That place, opened."""
    with GitRemote(url, tmp_path / "work") as opened:
        yield opened


def git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is found on the PATH
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def bare(tmp_path: Path) -> Path:
    """The repository behind `url`."""
    return tmp_path / "remotes" / "tiny.git"


def publish_two(remote: GitRemote | HubRemote, tmp_path: Path, name: str) -> Path:
    """Two releases; the second changes the gains and drops a file. The ledger."""
    ledger = tmp_path / f"{name}.jsonl"
    trees = tmp_path / f"trees-{name}"
    small.publish(remote, trees / small.write_release(trees), ledger)
    change = {GAINS: b"PAR1 \x00 others PAR1", "paper__english/queries.parquet": None}
    # The documents name the first release's commit, which is another on each remote: the tables are compared.
    small.publish(remote, trees / small.write_release(trees, read_ledger(ledger), change=change), ledger)
    return ledger


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_trees_equal_the_hubs(remote: GitRemote, tmp_path: Path) -> None:
    """The first release has the same root tree on both; of the second all folders of tables have the same hashes."""
    by_git = read_ledger(publish_two(remote, tmp_path, "git"))
    with LocalHub(tmp_path / "store") as hub:
        by_hub = read_ledger(publish_two(HubRemote(small.REPO, endpoint=hub.endpoint, token=False), tmp_path, "hub"))
        store = hub.store.repository(small.REPO).path
    assert by_hub[0].tree == by_git[0].tree == git(bare(tmp_path), "rev-parse", "v1-toy^{tree}")
    assert by_git[1].tree == git(bare(tmp_path), "rev-parse", "v2-toy^{tree}")
    for folder in ("paper", "paper__english"):
        assert git(store, "rev-parse", f"v2-toy:{folder}") == git(bare(tmp_path), "rev-parse", f"v2-toy:{folder}")


def test_a_clone_is_whole(remote: GitRemote, url: str, tmp_path: Path) -> None:
    """`git lfs fsck` finds nothing; each release's files in a clone are the trees' bytes; history is one line."""
    publish_two(remote, tmp_path, "git")
    one, two = read_ledger(tmp_path / "git.jsonl")
    assert "Git LFS fsck OK" == git(bare(tmp_path), "lfs", "fsck", "--dry-run")
    git(tmp_path, "-c", "filter.lfs.required=false", "clone", "--quiet", url, "clone")
    clone = tmp_path / "clone"
    git(clone, "lfs", "install", "--local")
    for entry in (one, two):
        git(clone, "lfs", "fetch", "--all")
        git(clone, "checkout", "--quiet", entry.tag)
        git(clone, "lfs", "checkout")
        assert "Git LFS fsck OK" == git(clone, "lfs", "fsck", "--dry-run")
        tree = tmp_path / "trees-git" / entry.tag
        assert set(entry.files) == {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
        for name in entry.files:
            assert (tree / name).read_bytes() == (clone / name).read_bytes()
    assert [two.revision, one.revision] == git(clone, "log", "--format=%H", "main").split()
    assert one.parent is None


def test_a_second_run_does_nothing(remote: GitRemote, tmp_path: Path) -> None:
    """What is published is found; a lost ledger is written again from what is there."""
    ledger = publish_two(remote, tmp_path, "git")
    before = ledger.read_text()
    done = small.publish(remote, tmp_path / "trees-git" / "v2-toy", ledger)
    assert {WAS_DONE} == set(done.steps.values())
    ledger.write_text(before.split("\n")[0] + "\n")
    done = small.publish(remote, tmp_path / "trees-git" / "v2-toy", ledger)
    assert {"commit": WAS_DONE, "tag": WAS_DONE, "ledger": "done"} == done.steps
    assert before == ledger.read_text()


def test_the_push_is_atomic(remote: GitRemote, tmp_path: Path) -> None:
    """Where the remote refuses the tag, the branch does not move either; the next run ends right."""
    trees, ledger = tmp_path / "trees", tmp_path / "ledger.jsonl"
    small.publish(remote, trees / small.write_release(trees), ledger)
    hook = bare(tmp_path) / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/tags/*) exit 1 ;; esac\n')
    hook.chmod(0o755)
    head = git(bare(tmp_path), "rev-parse", "main")
    tree = trees / small.write_release(trees, read_ledger(ledger), change={GAINS: b"PAR1 \x00 others PAR1"})
    with pytest.raises(RemoteError):
        small.publish(remote, tree, ledger)
    assert head == git(bare(tmp_path), "rev-parse", "main")
    hook.unlink()
    small.publish(remote, tree, ledger)
    assert ["v1-toy", "v2-toy"] == git(bare(tmp_path), "tag").split()


def test_someone_else_pushes_first(remote: GitRemote, url: str, tmp_path: Path) -> None:
    """A commit that comes between plan and push is named with its author; branch and tag stay as they are."""
    trees, ledger = tmp_path / "trees", tmp_path / "ledger.jsonl"
    small.publish(remote, trees / small.write_release(trees), ledger)
    tree = trees / small.write_release(trees, read_ledger(ledger), change={GAINS: b"PAR1 \x00 others PAR1"})

    class Intruder(small.Quiet):
        """Pushes when the commit is about to be."""

        def say(self, step: str) -> None:
            """Push."""
            if step == "commit":
                git(tmp_path, "-c", "filter.lfs.required=false", "clone", "--quiet", url, "other")
                git(tmp_path / "other", "commit", "--quiet", "--allow-empty", "-m", "mine")
                git(tmp_path / "other", "push", "--quiet")

    with pytest.raises(SafetyError, match=r"someone else published: .*'mine'\) by Somebody, 20"):
        small.publish(remote, tree, ledger, Intruder())
    assert ["v1-toy"] == git(bare(tmp_path), "tag").split()
    assert 1 == len(read_ledger(ledger))


def test_the_tree_is_only_read(remote: GitRemote, tmp_path: Path) -> None:
    """Nothing is written into the release's folder, and this machine's own settings of git change nothing."""
    (tmp_path / "home" / ".gitconfig").write_text(
        f"[core]\n\texcludesFile = {tmp_path / 'ignored'}\n\tautocrlf = true\n"
    )
    (tmp_path / "ignored").write_text("*.parquet\n")
    trees = tmp_path / "trees"
    tag = small.write_release(trees, change={"README.md": b"---\r\nlicense: mit\r\n---\r\n"})
    before = {path: path.stat().st_mtime_ns for path in trees.rglob("*")}
    small.publish(remote, trees / tag, tmp_path / "ledger.jsonl")
    assert before == {path: path.stat().st_mtime_ns for path in trees.rglob("*")}
    assert 8 == len(git(bare(tmp_path), "ls-tree", "-r", "--name-only", "main").split())


def test_what_a_killed_run_left_is_removed(url: str, tmp_path: Path) -> None:
    """The folder of a process that is gone goes; that of one that runs stays."""
    gone = subprocess.Popen(["true"])  # noqa: S607 - on every PATH
    gone.wait()
    for owner in (gone.pid, os.getppid()):
        (tmp_path / "work" / f".publish-{owner}-x").mkdir(parents=True)
    with GitRemote(url, tmp_path / "work"):
        assert not (tmp_path / "work" / f".publish-{gone.pid}-x").exists()
    assert [f".publish-{os.getppid()}-x"] == [path.name for path in (tmp_path / "work").iterdir()]


def test_without_git_lfs(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git-lfs is told to install it; nothing is committed as it is."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(InputError, match="git-lfs is not installed"), GitRemote(url, tmp_path / "work"):
        pass


@pytest.mark.parametrize("address", ["https://me:hf_secret@example.org/x.git", "https://hf_secret@example.org/x.git"])
def test_an_address_with_a_token(address: str, tmp_path: Path) -> None:
    """It would stand in the list of processes: it is refused, and not repeated in the message."""
    with pytest.raises(UsageError, match="must not hold a password or a token") as caught:
        GitRemote(address, tmp_path)
    assert "hf_secret" not in str(caught.value)


def test_a_remote_that_is_not_there(tmp_path: Path) -> None:
    """An address that leads nowhere is a remote that fails."""
    trees = tmp_path / "trees"
    tag = small.write_release(trees)
    (tmp_path / "file").write_text("no repository")
    with (
        GitRemote(f"ssh://nobody@127.0.0.1:1{tmp_path}/x.git", tmp_path / "work") as remote,
        pytest.raises(RemoteError, match="cannot read the branches and tags"),
    ):
        small.publish(remote, trees / tag, tmp_path / "ledger.jsonl")


def test_nobody_makes_no_commit(remote: GitRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name git cannot commit: the message says how to give one."""
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name)
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    trees = tmp_path / "trees"
    with pytest.raises(InputError, match=r"does not know who you are(?s:.*)git config --global user.name"):
        small.publish(remote, trees / small.write_release(trees), tmp_path / "ledger.jsonl")


def test_a_relative_path_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git runs in a folder of its own, so a path is taken from where the command was typed; an address stays."""
    monkeypatch.chdir(tmp_path)
    with GitRemote("./new.git", tmp_path / "work") as remote:
        remote.create()
        assert remote.refs() is not None
    assert (tmp_path / "new.git" / "HEAD").is_file()
    with GitRemote("someone@example.org:new.git", tmp_path / "work") as remote:
        assert "git:someone@example.org:new.git" == remote.name
