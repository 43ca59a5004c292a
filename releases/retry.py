"""Bounded tries with growing pauses, for calls that may be made again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from provenance.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

TRIES = 5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 16.0
LONGEST_WAIT = 330.0
"""Seconds that a remote may ask us to wait (the Hub's window is 300 s); it is not obeyed beyond."""


class TransientError(RemoteError):
    """A failure that may pass.

    `wait` is how many seconds the remote asked for, None where it asked for nothing.
    """

    wait: float | None = None


def _silent(_message: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Retry:
    """How often, how the pauses pass, and who is told of them."""

    tries: int = TRIES
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = _silent

    def __call__(self, call: Callable[[], T], *, tries: int | None = None) -> T:
        """The result of `call`, made again after a `TransientError`, at most `tries` times in all.

        Raises:
            TransientError: the last one.
        """
        most = self.tries if tries is None else tries
        for number in range(1, most):
            try:
                return call()
            except TransientError as error:
                self.pause(number, error)
        return call()

    def pause(self, number: int, error: RemoteError) -> None:
        """Wait after try `number` (from 1): as long as the remote asked, else 1, 2, 4, 8, 16 s."""
        asked = error.wait if isinstance(error, TransientError) else None
        doubled = min(_FIRST_PAUSE * 2 ** (number - 1), _LONGEST_PAUSE)
        seconds = doubled if asked is None else min(asked + 1, LONGEST_WAIT)
        self.say(f"{error.what}; again in {seconds:.0f} s")
        self.sleep(seconds)
