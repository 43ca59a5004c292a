"""Requests to a Hub: counted, bounded, and paced as its answers ask.

For the libraries that make the requests (`huggingface_hub`, and `datasets` through it) a failure of the remote is
final: they would go on with what they find in a cache. Stands alone, so that it runs in any environment that has
`huggingface_hub` 1.0 or newer.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]
"""The HTTP library's own error: the client has changed its library before."""
_RESET = re.compile(r"\bt=([0-9]+)")
_WAIT = re.compile(r"[0-9]{1,9}")
_PASSING = frozenset({429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403})
_TRIES = 4
_LONGEST_WAIT = 330
"""Seconds: the Hub's window is 300."""
_SECONDS = 60.0


class BudgetSpentError(Exception):
    """No more requests are to be made in this run."""


class RemoteFailedError(Exception):
    """The remote could not be reached, or failed, after several tries; or it refuses (`refused`)."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Paced:
    """A budget of requests, and what went wrong with any of them.

    Args:
        budget: how many requests may be made.
        sleep: how time passes.
    """

    def __init__(self, budget: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self.budget = budget
        self.used = 0
        self.fault: RemoteFailedError | BudgetSpentError | None = None
        self._sleep = sleep
        self._lock = threading.Lock()

    @contextmanager
    def client(self) -> Iterator[None]:
        """Every request of `huggingface_hub` in this process goes through here, to the end of the block."""
        ready = huggingface_hub.get_session()
        # Its hooks too: they keep to HF_HUB_OFFLINE.
        kind, hooks = type(ready), ready.event_hooks

        def plain() -> Any:
            return kind(event_hooks=hooks, follow_redirects=True, timeout=None)

        def paced() -> Any:
            session = kind(event_hooks=hooks, follow_redirects=True, timeout=_SECONDS)
            send = session.send
            vars(session)["send"] = lambda request, **options: self.send(send, request, **options)
            return session

        # Else the client asks the Hub who drives it, with tries of their own.
        huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
        huggingface_hub.set_client_factory(paced)
        try:
            yield
        finally:
            huggingface_hub.set_client_factory(plain)

    def send(self, send: Callable[..., Any], request: Any, **options: Any) -> Any:
        """The answer to a request, asked again where that can help.

        Raises:
            BudgetSpentError, RemoteFailedError: also kept as `fault`, since callers swallow what they do not know.
        """
        for number in range(1, _TRIES + 1):
            self._count()
            asked: float | None = None
            try:
                answer = send(request, **options)
            except (OSError, _HTTP_ERROR) as error:
                why = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code in _REFUSED:
                    raise self._failed(f"HTTP {answer.status_code} for {_plain(request)}", refused=True)
                if answer.status_code not in _PASSING:
                    return answer
                why = f"HTTP {answer.status_code}"
                asked = _asked(answer.headers)
                answer.close()
            if number < _TRIES:
                self._sleep(min(asked + 1, _LONGEST_WAIT) if asked is not None else 2.0 ** (number - 2))
        raise self._failed(f"{why} for {_plain(request)}, {_TRIES} times")

    def _count(self) -> None:
        with self._lock:
            if self.used >= self.budget:
                self.fault = BudgetSpentError(f"the budget of {self.budget} requests is spent")
                raise self.fault
            self.used += 1

    def _failed(self, message: str, *, refused: bool = False) -> RemoteFailedError:
        failure = RemoteFailedError(message, refused=refused)
        self.fault = failure
        return failure


def _asked(headers: Any) -> float | None:
    """Seconds that an answer asks to wait (`RateLimit: "api";r=0;t=55`, or `Retry-After`)."""
    reset = _RESET.search(headers.get("RateLimit", ""))
    after = reset[1] if reset is not None else headers.get("Retry-After", "")
    return float(after) if _WAIT.fullmatch(after) else None


def _plain(request: Any) -> str:
    """A request without its query, which may be signed."""
    return f"{request.method} {str(request.url).partition('?')[0]}"
