"""What a validation of a published release needs: a plain tree of it, and what the ledger says of its predecessors."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from releases.named import locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from releases.ledger.chain import Entry


@contextlib.contextmanager
def plain_tree(named: str) -> Iterator[Path]:
    """The folder of a release, to the end of the block: a tree as it lies, or `owner/name@revision` fetched.

    A cache of the Hub links to files outside the folder, which no release may do: they are put into a folder of their
    own, as hard links where that works.

    Raises:
        InputError, DataError, SafetyError: as `named.locate`.
    """
    folder = locate(named)
    if Path(named).is_dir():
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix=".validate-", dir=folder.parent, ignore_cleanup_errors=True) as copy:
        tree = Path(copy) / folder.name
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = tree / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file.resolve(), target)
            except OSError:
                shutil.copyfile(file, target)
        yield tree


def pins_of(entries: Sequence[Entry]) -> dict[str, str | None] | None:
    """Tag -> commit of every release of the ledger, for proof C2; None where there is none."""
    return {entry.tag: entry.revision for entry in entries} or None
