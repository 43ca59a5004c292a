"""Steps of long work: how long each took, and what a watching person sees. No clock of its own: it is passed in."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _silent(_message: str) -> None:
    """Report to nobody."""


@dataclass
class Steps:
    """Collects seconds a step (`seconds`, in order of first use) and tells `say` when one begins."""

    clock: Callable[[], float]
    say: Callable[[str], None] = _silent
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def time(self, step: str, detail: str = "") -> Iterator[None]:
        """Time a block as part of `step`; a step may be entered many times."""
        self.say(f"{step} {detail}".rstrip())
        start = self.clock()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + self.clock() - start
