"""Solve symmetric positive definite systems with LAPACK, on one thread.

OpenBLAS factorises a matrix of 64 rows or more in parallel, and rounds differently with each number of threads. Under
`one_thread` the same machine gives the same bits whatever `OPENBLAS_NUM_THREADS` says, and small systems are solved
faster than by threads that wait for each other.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FloatArray = NDArray[np.float64]

_BLAS = ThreadpoolController()  # made after scipy.linalg was imported: it knows the libraries that are loaded by then


class _OneThread:
    """A limit of BLAS that is in force while anybody is inside: the first sets it, the last restores what was."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _BLAS.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


_ONE_THREAD = _OneThread()


def one_thread() -> AbstractContextManager[None]:
    """Within it BLAS starts no threads of its own, in the whole process; 10 us. Threads may overlap in it."""
    return _ONE_THREAD


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
