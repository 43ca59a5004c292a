"""Who runs shards: a standard executor, and what it raises when a worker is gone (DESIGN section 7)."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, TypeVar

from provenance.errors import RemoteError, UsageError
from provenance.shown import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Result = TypeVar("_Result")

_MOST_A_CORE = 16
_LOOK = 2.0
"""Seconds between two looks at how many workers there are."""
_ALONE = 60.0
"""Seconds without any worker, after which the wait is over: a nanny starts one again in some seconds."""
_LIMITS = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "POLARS_MAX_THREADS",
)
"""Set to 1 in workers: work runs over shards, and threads of a worker's own would only get in the others' way."""


@dataclass(frozen=True)
class Runner:
    """An executor.

    `lost` are the exceptions of its futures that mean that a worker died, which `loss` says in words. `workers` tells
    how many there are, where an executor goes on without any; the others raise by themselves.
    """

    executor: Executor
    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    loss: str = "a worker died"
    workers: Callable[[], int] | None = None

    def submit(self, work: Callable[..., _Result], *arguments: Any) -> Future[_Result]:
        """Hand over one call.

        Raises:
            RemoteError: the workers are gone.
        """
        with self._watched():
            return self.executor.submit(work, *arguments)

    def result(self, future: Future[_Result]) -> _Result:
        """Wait for a call; its own exceptions are raised here.

        Raises:
            RemoteError: its worker died.
        """
        with self._watched():
            if self.workers is not None:
                self._wait(future, self.workers)
            return future.result()

    def map(self, work: Callable[..., _Result], *arguments: Iterable[Any]) -> list[_Result]:
        """The results of many calls, in order; errors as `result`."""
        futures = [self.submit(work, *each) for each in zip(*arguments, strict=True)]
        return [self.result(future) for future in futures]

    def _wait(self, future: Future[_Result], workers: Callable[[], int]) -> None:
        seen = time.monotonic()
        while not wait([future], timeout=_LOOK).done:
            now = time.monotonic()
            if workers() > 0:
                seen = now
            elif now - seen > _ALONE:
                raise RemoteError(
                    f"no worker was there for {_ALONE:.0f} s",
                    remedy="start workers, and run the same command again: it goes on from the shards that are done.",
                )

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except self.lost as error:
            raise RemoteError(
                f"{self.loss}: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                remedy="run the same command again: it goes on from the shards that are done. If workers ran out of "
                "memory, use fewer, or give them more.",
            ) from error


@contextlib.contextmanager
def local(workers: int) -> Iterator[Runner]:
    """Processes of this machine, or a single thread where one worker is enough.

    At an error, what is not begun is dropped. Processes are spawned: a fork of a process that runs threads can hang.

    Raises:
        UsageError: so many workers would only bring this machine down: all of them are started at once.
    """
    most = _MOST_A_CORE * (os.cpu_count() or 1)
    if workers > most:
        raise UsageError(
            f"--workers {excerpt(str(workers))} is more than {most}, which is {_MOST_A_CORE} a processor",
            remedy="one a processor is the fastest, and the default.",
        )
    executor: Executor
    if workers == 1:
        executor = ThreadPoolExecutor(1)
    else:
        executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    with _environment(dict.fromkeys(_LIMITS, "1")):
        try:
            yield Runner(executor)
        finally:
            executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """Begin a worker: Ctrl-C is for the main process, and a worker ends with it, however that died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set what is not set yet; processes that are started in the block inherit it."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
