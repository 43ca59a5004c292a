"""What a run that was cut short has verified, so that the next one goes on from there.

Kept by the ledger's head and the place that is verified, and for a day: what was right last week is no proof for today.
A run that gets to its end removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from typing import TYPE_CHECKING

from builder import documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEPT_SECONDS = 24 * 3600
_SAVED_EVERY = 25


class State:
    """The finished checks; safe to use from several threads.

    Args:
        folder: where states are kept.
        head: the digest of the ledger's head.
        place: what is verified.
        clock: seconds since the epoch.
    """

    def __init__(self, folder: Path, head: str, place: str, clock: Callable[[], float]) -> None:
        digest = hashlib.sha256(f"{head}\n{place}".encode()).hexdigest()[:16]
        self._path = folder / f"verify-{digest}.json"
        self._clock = clock
        self._lock = threading.Lock()
        self._unsaved = 0
        self._done: dict[str, float] = {}
        oldest = clock() - KEPT_SECONDS
        self._done = {key: then for key, then in self._read().items() if oldest < then <= clock()}

    def _read(self) -> dict[str, float]:
        try:
            found = documents.parse(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        kept = found.items() if isinstance(found, dict) else ()
        return {key: then for key, then in kept if isinstance(then, int | float) and not isinstance(then, bool)}

    def done(self, key: str) -> bool:
        """Whether a check passed in a run of the last day that did not get to its end."""
        return key in self._done

    def keys(self, prefix: str) -> list[str]:
        """The finished checks whose keys begin so, without the beginning."""
        with self._lock:
            return [key.removeprefix(prefix) for key in self._done if key.startswith(prefix)]

    def mark(self, key: str) -> None:
        """A check passed."""
        with self._lock:
            self._done[key] = self._clock()
            self._unsaved += 1
            if self._unsaved >= _SAVED_EVERY:
                self._save()

    def keep(self) -> None:
        """The run was cut short."""
        with self._lock:
            self._save()

    def remove(self) -> None:
        """The run got to its end."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _save(self) -> None:
        """Keep what was found; where that cannot be written, the next run begins anew, and this one goes on."""
        self._unsaved = 0
        partial = self._path.with_suffix(".partial")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(self._done), encoding="utf-8")
            partial.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
