"""Solve symmetric positive definite systems with LAPACK, on one thread.

OpenBLAS factorises a matrix of 64 rows or more in parallel, and rounds differently with each number of threads. Under
`one_thread` the same machine gives the same bits whatever `OPENBLAS_NUM_THREADS` says, and small systems are solved
faster than by threads that wait for each other.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Iterator

FloatArray = NDArray[np.float64]

_BLAS = ThreadpoolController()  # made after scipy.linalg was imported: it knows the libraries that are loaded by then


_LOCK = RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it BLAS starts no threads of its own, in the whole process; 10 us. Another thread waits to get in.

    OpenBLAS has one limit a process: a thread that left would lift it for the others.
    """
    with _LOCK, _BLAS.limit(limits=1, user_api="blas"):
        yield


class Factor:
    """The Cholesky factor of a symmetric positive definite matrix, ready to solve systems with.

    Bit-exact for any number of BLAS threads under `one_thread`, which is the caller's to enter: once around many.
    """

    def __init__(self, matrix: FloatArray) -> None:
        """Factorise `matrix`, `(n, n)`; only its lower triangle is read.

        Raises:
            numpy.linalg.LinAlgError: the matrix is not positive definite.
        """
        # A lower triangle in C order is the upper one of LAPACK's order.
        self._upper, failed = dpotrf(matrix.T, lower=0, clean=0)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(self, right: FloatArray) -> FloatArray:
        """`(n,)`: the x of `matrix @ x = right`."""
        x: FloatArray = dpotrs(self._upper, right, lower=0)[0]
        return x
