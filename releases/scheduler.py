"""Shards on a Dask cluster in place of this machine's processes (DESIGN section 7; the extra `cluster`)."""

from __future__ import annotations

import contextlib
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from builder.runner import Runner
from provenance.errors import InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = "10s"


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Runner]:
    """The workers of the Dask scheduler at `address`; a worker that dies is replaced by another, up to Dask's patience.

    Raises:
        InputError: Dask is not installed, or no scheduler with a worker answers.
    """
    try:
        # Here and not above: most builds need no cluster, and the import takes a second.
        from distributed import Client, KilledWorker  # noqa: PLC0415
        from distributed.client import ClosedClientError  # noqa: PLC0415
        from distributed.comm.addressing import parse_address, parse_host_port  # noqa: PLC0415
        from distributed.comm.core import CommClosedError  # noqa: PLC0415
        from distributed.comm.registry import get_backend  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "--scheduler needs Dask, which is not installed",
            remedy="install the extra `cluster` here and on every worker (README, Large builds).",
        ) from error
    with contextlib.ExitStack() as stack:
        try:
            # Else a client is half made, which takes its time and says so when it goes.
            scheme, place = parse_address(address)
            get_backend(scheme)
            parse_host_port(place)
            client = stack.enter_context(Client(address, timeout=_PATIENCE, set_as_default=False))
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"no Dask cluster answers: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                where=Where(column="--scheduler", value=address),
                remedy="start it (`dask scheduler`, then `dask worker ADDRESS`), or leave --scheduler out.",
            ) from error
        executor = client.get_executor(pure=False)
        try:
            yield Runner(
                executor,
                lost=(KilledWorker, CommClosedError, CancelledError, ClosedClientError),
                loss="the cluster is gone, or its workers died again and again",
                workers=lambda: len(client.nthreads()),
            )
        finally:
            # Of a cluster that is gone nothing can be cancelled.
            with contextlib.suppress(ClosedClientError, CommClosedError):
                executor.shutdown(wait=False)
