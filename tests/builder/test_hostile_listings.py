"""A Hub that lists what is no file of its repository: nothing is read, written or removed by such a name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from builder import hub_source
from builder.sources import resolve
from provenance.errors import SafetyError

if TYPE_CHECKING:
    from pathlib import Path

SHA = "0" * 40
URI = "hf://datasets/someone/bench"


class Hub:
    """A client whose Hub lists one file, and leads its tag `v1` somewhere."""

    endpoint = "http://127.0.0.1:1"

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self.target = target

    def dataset_info(self, _repo: str, **_options: object) -> SimpleNamespace:
        """The listing of a commit."""
        file = SimpleNamespace(rfilename=self.name, size=3, blob_id=SHA, lfs=None)
        return SimpleNamespace(sha=SHA, siblings=[file])

    def list_repo_refs(self, _repo: str, **_options: object) -> SimpleNamespace:
        """The tags."""
        return SimpleNamespace(tags=[SimpleNamespace(name="v1", target_commit=self.target)], branches=[])


def put(monkeypatch: pytest.MonkeyPatch, name: str = "README.md", target: str = SHA) -> None:
    """Let the client be one of such a Hub."""
    monkeypatch.setattr(hub_source, "HfApi", lambda **_options: Hub(name, target))


@pytest.mark.parametrize(
    "name", ["../../../../../victim", "/victim", "a/../../x", "a\\..\\x", "C:x", "./x", "a//x", "a\0b", "a\nb", ""]
)
def test_a_listing_that_leads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A file outside the cache, which is not as the Hub says, is not taken for a damaged one and removed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    put(monkeypatch, name.replace("/victim", str(victim)) if name == "/victim" else name)
    with pytest.raises(SafetyError, match="a file outside the repository"):
        resolve(f"{URI}@{SHA}", cache=tmp_path / "cache")
    assert "mine" == victim.read_text()
    assert [victim] == [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("target", ["../../x", "main", "0" * 39, SHA + "\n", ""])
def test_a_tag_that_leads_to_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """What a Hub says that a tag leads to becomes part of a path only if it is a sha."""
    put(monkeypatch, target=target)
    with pytest.raises(SafetyError, match="a commit that is none"):
        resolve(f"{URI}@v1", cache=tmp_path / "cache")
    assert [] == list(tmp_path.rglob("*"))
