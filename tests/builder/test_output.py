"""Writing a tree all or nothing, one build at a time, after builds that were killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from builder.layout import MANIFEST
from builder.output import new_tree, sole_writer
from provenance.errors import InputError, SafetyError

if TYPE_CHECKING:
    from pathlib import Path


def write(place: Path, text: str) -> None:
    """A tree that holds a manifest."""
    with sole_writer(place), new_tree(place) as tree:
        (tree / "provenance").mkdir()
        (tree / MANIFEST).write_text(json.dumps(text))


def test_an_older_tree_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    """After two builds the second tree is there, and no lock or temporary folder."""
    write(tmp_path / "v1", "first")
    write(tmp_path / "v1", "second")
    assert ["v1"] == [path.name for path in tmp_path.iterdir()]
    assert '"second"' == (tmp_path / "v1" / MANIFEST).read_text()


def test_what_a_killed_build_left_is_cleared(tmp_path: Path) -> None:
    """Half a tree of a build that was killed is removed; another release's is not touched."""
    (tmp_path / ".v1.00.partial" / "x").mkdir(parents=True)
    (tmp_path / ".v10.00.partial").mkdir()
    with sole_writer(tmp_path / "v1"):
        assert not (tmp_path / ".v1.00.partial").exists()
    assert [".v10.00.partial"] == [path.name for path in tmp_path.iterdir()]


def test_a_tree_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames, the old tree is put back where it was."""
    write(tmp_path / "v1", "first")
    (tmp_path / "v1").rename(tmp_path / ".v1.00.old")
    with sole_writer(tmp_path / "v1"):
        assert '"first"' == (tmp_path / "v1" / MANIFEST).read_text()
    assert ["v1"] == [path.name for path in tmp_path.iterdir()]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """While one build holds a place another is refused; afterwards, and at another place, it is not."""
    with sole_writer(tmp_path / "v1"):
        with pytest.raises(SafetyError, match="another build"), sole_writer(tmp_path / "v1"):
            raise AssertionError
        with sole_writer(tmp_path / "v2"):
            pass
    with sole_writer(tmp_path / "v1"):
        pass


def test_a_place_that_cannot_be_is_said(tmp_path: Path) -> None:
    """A file where a folder should be: an input error with what to do, no traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--out"), sole_writer(tmp_path / "file" / "v1"):
        raise AssertionError
