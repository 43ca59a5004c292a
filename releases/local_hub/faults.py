"""What tests make go wrong, and the record of what was asked.

A `Faults` object is given to the server by a test; the `release hub` command has no option for it.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RATE_LIMITED = {"RateLimit": '"api";r=0;t=1', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}


@dataclass(frozen=True)
class Recorded:
    """One request that the server answered, on record before the answer leaves.

    `path` is as it was sent, with its query; `status` is 0 where the connection was cut without an answer; bytes are
    those of the bodies, `bytes_out` what the answer holds.
    """

    method: str
    path: str
    status: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True)
class Fault:
    """What happens to the `nth` request (from 1) whose method and path match, and to the `times - 1` after it.

    Args:
        method: the HTTP method, or `*`.
        path: a regular expression searched for in the path with its query.
        nth: which of the matching requests.
        times: how many of them in a row.
        delay: seconds to wait first.
        perform: do what was asked (a commit is made) before the answer goes wrong.
        call: called after that and before the answer.
        cut: close the connection instead of answering; with `perform`, after `cut_after` bytes of the body.
        status: answer with this status.
        headers: with these headers besides.
        body: and with this body; without a status, in place of the right body.
    """

    method: str
    path: str
    nth: int = 1
    times: int = 1
    delay: float = 0.0
    perform: bool = False
    call: Callable[[], None] | None = None
    cut: bool = False
    cut_after: int | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


class Faults:
    """Faults to come and requests that were; safe to use from several threads."""

    def __init__(self, *faults: Fault) -> None:
        self._lock = threading.Lock()
        self._faults = list(faults)
        self._seen = [0] * len(self._faults)
        self._requests: list[Recorded] = []

    def add(self, fault: Fault) -> None:
        """One more fault; it counts requests from now on."""
        with self._lock:
            self._faults.append(fault)
            self._seen.append(0)

    def clear(self) -> None:
        """No more faults, and an empty record."""
        with self._lock:
            self._faults.clear()
            self._seen.clear()
            self._requests.clear()

    def match(self, method: str, path: str) -> Fault | None:
        """Count a request; the first fault that is due for it."""
        due = None
        with self._lock:
            for index, fault in enumerate(self._faults):
                if fault.method in {"*", method} and re.search(fault.path, path) is not None:
                    self._seen[index] += 1
                    if due is None and fault.nth <= self._seen[index] < fault.nth + fault.times:
                        due = fault
        return due

    def record(self, request: Recorded) -> None:
        """Keep what was asked."""
        with self._lock:
            self._requests.append(request)

    def requests(self, method: str = "*", path: str = "") -> list[Recorded]:
        """The recorded requests whose method and path match, in the order in which they were answered."""
        with self._lock:
            return [r for r in self._requests if method in {"*", r.method} and re.search(path, r.path) is not None]

    def bytes_in(self) -> int:
        """The bytes of all request bodies so far."""
        return sum(request.bytes_in for request in self.requests())
