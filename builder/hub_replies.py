"""What a Hub says of a repository, checked before anything is done with it: the client takes whatever comes.

A path decides where bytes are written, a hash what they are compared with: one of another form is nonsense.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from huggingface_hub.errors import HfHubHTTPError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from huggingface_hub import GitRefs

_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST = 120
HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]
"""The HTTP library's own error: the client has changed its library before."""
NONSENSE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What the client, or a function here, raises where an answer is not of the form that it expects."""

T = TypeVar("T")


def path(value: object) -> str:
    """A file's path inside a repository.

    Raises:
        ValueError: it is none: it would lead out of a folder, or git has no such path.
    """
    parts = value.split("/") if isinstance(value, str) else [""]
    if not isinstance(value, str) or any(part in {"", ".", ".."} for part in parts) or "\0" in value:
        raise _odd("path", value)
    # Half of a surrogate pair is no name for a file.
    value.encode("utf-8")
    return value


def size(value: object) -> int:
    """A number of bytes.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise _odd("size", value)
    return value


def commit(value: object) -> str:
    """A git sha, in full.

    Raises:
        ValueError: it is none.
    """
    return _hexadecimal(value, _SHA1, "git sha")


def sha256(value: object) -> str:
    """The sha256 of an LFS object, in hexadecimal digits.

    Raises:
        ValueError: it is none.
    """
    return _hexadecimal(value, _SHA256, "sha256")


def text(value: object) -> str:
    """Words of a person.

    Raises:
        ValueError: they are none, or no text that can be shown.
    """
    if not isinstance(value, str):
        raise _odd("text", value)
    value.encode("utf-8")
    return value


def refs(answer: GitRefs, target: Callable[[object], str] = commit) -> tuple[dict[str, str], dict[str, str]]:
    """Branches and tags, each with the commit that it leads to.

    Args:
        answer: what the client makes of the reply.
        target: checks a commit.

    Raises:
        ValueError: a name or a sha is none, or a name stands twice.
    """
    return tuple(  # type: ignore[return-value]  # two of them
        unique((path(ref.name), target(ref.target_commit)) for ref in kind) for kind in (answer.branches, answer.tags)
    )


def unique(rows: Iterable[tuple[str, T]]) -> dict[str, T]:
    """The rows by name.

    Raises:
        ValueError: a name stands twice.
    """
    found: dict[str, T] = {}
    for name, row in rows:
        if name in found:
            raise ValueError(f"{name[:_LONGEST]!r} is listed twice")
        found[name] = row
    return found


def _hexadecimal(value: object, form: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise _odd(what, value)
    return value


def _odd(what: str, value: object) -> ValueError:
    return ValueError(f"{str(value)[:_LONGEST]!r} is no {what}")
