"""`--to`: which kind of place a release goes to, and the remote that is there."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from provenance.errors import InputError, UsageError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releases.remote import Remote
    from releases.retry import Retry

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_KINDS = "hf:owner/name, local:DIR or git:URL"


@contextlib.contextmanager
def open_target(address: str, repo: str, work: Path, retry: Retry) -> Iterator[Remote]:
    """The remote that `address` names, from here to the end of the block.

    Args:
        address: `hf:owner/name`, `local:DIR` or `git:URL`.
        repo: the benchmark's own `owner/name`, which is its name in a `local:` store.
        work: a folder for what a git target needs for a while.
        retry: how calls are repeated.

    Raises:
        UsageError: it is none of these.
        InputError: it needs a program that is not installed, or a folder that cannot be used.
    """
    kind, colon, place = address.partition(":")
    if not colon or not place or kind not in {"hf", "local", "git"}:
        raise UsageError(f"'{address}' is no place to publish to", remedy=f"name {_KINDS}.")
    if kind == "git":
        from releases.targets.git import GitRemote  # noqa: PLC0415 - only where it is needed

        with GitRemote(place, work) as remote:
            yield remote
    elif kind == "hf":
        if _REPO_ID.fullmatch(place) is None:
            raise UsageError(f"'{place}' is no repository's name", remedy="name it as hf:owner/name.")
        from releases.targets.hub import HubRemote  # noqa: PLC0415 - the client reads HF_ENDPOINT when imported

        yield HubRemote(place, retry=retry)
    else:
        with _local(Path(place), repo, retry) as remote:
            yield remote


@contextlib.contextmanager
def _local(folder: Path, repo: str, retry: Retry) -> Iterator[Remote]:
    """The store in `folder`, behind a Hub of its own that only this process can write to."""
    # Read by the client when it is imported: this Hub has no Xet.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    from releases.local_hub import LocalHub  # noqa: PLC0415 - only where it is needed
    from releases.targets.hub import HubRemote  # noqa: PLC0415 - as above

    # A store is made with its first repository: a plan alone, or a refusal, leaves no folder behind.
    above = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise InputError(
            "the store cannot be used: it cannot be written",
            where=Where(str(above)),
            remedy="name a folder that can be written: local:DIR.",
        )
    token = f"local_{secrets.token_hex(16)}"
    hub = LocalHub(folder, token=token)
    hub.start()
    try:
        remote = HubRemote(repo, endpoint=hub.endpoint, token=token, retry=retry)
        # The port is another in each run; the folder is what a person knows.
        remote.name = f"local:{folder} ({repo})"
        yield remote
    finally:
        hub.stop()
