"""Where the releases are that are verified: a Hub, or a store on this machine behind a Hub of its own."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import constants, get_token

from provenance.errors import InputError, UsageError, Where
from releases.local_hub import LocalHub

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Target:
    """A dataset repository on a Hub.

    `token` is None where there is none. `name` is what a person calls the place.
    """

    repo: str
    endpoint: str
    token: str | None
    name: str


@contextlib.contextmanager
def open_hub(address: str, repo: str) -> Iterator[Target]:
    """The repository that `address` names, from here to the end of the block.

    Args:
        address: `hf:owner/name` (at HF_ENDPOINT), `local:DIR`, or `owner/name`.
        repo: the benchmark's own `owner/name`, which is its name in a `local:` store.

    Raises:
        UsageError: it is none of these.
        InputError: there is no such folder, or HF_HUB_OFFLINE is set.
    """
    kind, colon, place = address.partition(":")
    if colon and kind == "local":
        with _local(Path(place), repo) as target:
            yield target
        return
    if colon and kind == "git":
        raise UsageError(
            "a git: export has no Hub to ask",
            remedy="in a clone run git lfs fetch --all and git lfs fsck --dry-run; or name hf:owner/name or local:DIR.",
        )
    name = place if kind == "hf" else address
    if _REPO_ID.fullmatch(name) is None:
        raise UsageError(f"'{address}' is no place to verify", remedy="name hf:owner/name or local:DIR.")
    endpoint = constants.ENDPOINT.rstrip("/")
    if constants.HF_HUB_OFFLINE:
        raise InputError(
            f"HF_HUB_OFFLINE is set, so {endpoint} cannot be asked",
            remedy="unset it: what a cache holds proves nothing about the remote.",
        )
    yield Target(name, endpoint, get_token(), f"{endpoint}/datasets/{name}")


@contextlib.contextmanager
def _local(folder: Path, repo: str) -> Iterator[Target]:
    if not folder.is_dir():
        raise InputError("there is no such store", where=Where(str(folder)), remedy="name one: local:DIR.")
    with LocalHub(folder) as hub:
        yield Target(repo, hub.endpoint, None, f"local:{folder} ({repo})")
