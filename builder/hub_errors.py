"""What the Hub's client raises, as what a person is told, and whether another try can help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from builder.hub_replies import HTTP_ERROR

AGAIN = "run the same command again; if it stays, tell the owners of the repository."
WITHOUT_NETWORK = (
    "check the network and HF_ENDPOINT and run the same command again, or run what needs no network: "
    "release build --benchmark demo --judge simulated"
)
_LOG_IN = "log in with an account that may read it (hf auth login, or HF_TOKEN)."

_TRY_AGAIN = frozenset({429, 500, 502, 503, 504})
_RESET = re.compile(r"\bt=([0-9]+)")
_SECONDS = re.compile(r"[0-9]{1,9}")
_LONGEST = 200


@dataclass(frozen=True)
class _Case:
    """Which errors (a kind, and for an HTTP answer its status), and the words for them."""

    kinds: tuple[type[BaseException], ...]
    statuses: frozenset[int | None]
    what: str
    remedy: str


_ANY = frozenset({*range(400, 600)})
_NONE: frozenset[int | None] = frozenset({None})

# The first that fits is taken: the kinds are subclasses of each other.
_CASES = (
    _Case((RevisionNotFoundError,), _ANY, "the repository has no such revision", "check the sha or the tag."),
    _Case(
        (GatedRepoError,), _ANY, "the repository is gated", "accept its terms at {hub}/datasets/{repo}, then " + _LOG_IN
    ),
    _Case(
        (RepositoryNotFoundError,),
        frozenset({404}),
        "there is no such repository at {hub}",
        "check its name; it was deleted or renamed, or is private.",
    ),
    _Case(
        (HfHubHTTPError,),
        frozenset({401, 403}),
        "the repository is private, or is not at {hub} (status {status})",
        "check its name, or " + _LOG_IN,
    ),
    _Case((EntryNotFoundError,), frozenset({404}), "a file is listed and cannot be had", AGAIN),
    _Case(
        (HfHubHTTPError,),
        frozenset({404}),
        "{hub} answers 404 and says no more: an object is lost, or it is no Hub",
        "check HF_ENDPOINT; " + AGAIN,
    ),
    _Case(
        (HfHubHTTPError,),
        frozenset({429}),
        "{hub} takes no more requests for now (429)",
        "run the same command again {when}; with HF_TOKEN the limit is higher.",
    ),
    _Case((HfHubHTTPError,), _ANY, "{hub} failed with status {status}", WITHOUT_NETWORK),
    _Case(
        (OfflineModeIsEnabled,),
        _NONE,
        "HF_HUB_OFFLINE is set, so {hub} was not asked",
        "unset it, or " + WITHOUT_NETWORK,
    ),
    _Case(
        (HTTP_ERROR, TimeoutError, ConnectionError, LocalEntryNotFoundError),
        _NONE,
        "{hub} could not be reached ({error})",
        WITHOUT_NETWORK,
    ),
    _Case((OSError,), _NONE, "a file could not be had or kept ({error})", "check the disk, then " + AGAIN),
)


def reason(error: Exception, repo: str, hub: str) -> tuple[str, str]:
    """What is wrong, and what to do next.

    Args:
        error: what the client raised.
        repo: `owner/name`.
        hub: the Hub's address.
    """
    status = _status(error)
    asked = _asked_wait(error)
    words = {
        "hub": hub,
        "repo": repo,
        "status": status,
        "when": "later" if asked is None else f"in {asked} s",
        "error": f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST] or 'no message'}",
    }
    # The client has no exception of its own for it.
    if "Consistency check failed" in str(error):
        return "a file came truncated ({error})".format(**words), AGAIN
    for case in _CASES:
        if isinstance(error, case.kinds) and status in case.statuses:
            return case.what.format(**words), case.remedy.format(**words)
    return f"{hub} did not answer as a Hub does ({words['error']})", WITHOUT_NETWORK


def wait_before(error: Exception, attempt: int) -> float | None:
    """Seconds before another try (attempts count from 1), or None where another try cannot help."""
    status = _status(error)
    if status is None:
        hopeless = isinstance(error, OfflineModeIsEnabled) or not isinstance(error, HTTP_ERROR | TimeoutError)
    else:
        hopeless = status not in _TRY_AGAIN
    if hopeless:
        return None
    asked = _asked_wait(error)
    return float(asked) if asked is not None else 2.0 ** (attempt - 1)


def _status(error: Exception) -> int | None:
    return int(error.response.status_code) if isinstance(error, HfHubHTTPError) else None


def _asked_wait(error: Exception) -> int | None:
    """Seconds that a reply asks for (`RateLimit: "api";r=0;t=55`, or `Retry-After`)."""
    if not isinstance(error, HfHubHTTPError):
        return None
    match = _RESET.search(error.response.headers.get("RateLimit", ""))
    after = match[1] if match is not None else error.response.headers.get("Retry-After", "")
    return int(after) if _SECONDS.fullmatch(after) else None
