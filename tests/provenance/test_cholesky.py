"""The Cholesky solver: numpy as oracle, refusal, and the same bits for any number of BLAS threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from provenance import cholesky

SOLVE = """
import hashlib
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from provenance import cholesky
def solve(_number):
    digest = hashlib.sha256()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(150, 150))
        matrix = np.einsum("ik,jk->ij", root, root) + np.eye(150)
        with cholesky.one_thread():
            digest.update(cholesky.Factor(matrix).solve(rng.normal(size=150)).tobytes())
    return digest.hexdigest()
alone = solve(0)
with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(3) as three:
    print(*sorted({alone, *one.map(solve, range(1)), *three.map(solve, range(6)), solve(0)}))
"""


@pytest.mark.parametrize("n", [1, 7, 50, 51, 150, 163])
def test_solves(n: int) -> None:
    """The solution of numpy, whatever stands above the diagonal."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    matrix, right = root @ root.T + np.eye(n), rng.normal(size=n)
    expected = np.linalg.solve(matrix, right)
    assert expected == pytest.approx(
        cholesky.Factor(np.tril(matrix) + np.triu(right[:, None], 1)).solve(right), rel=1e-8, abs=1e-9
    )


@pytest.mark.parametrize("row", [0, 60, 119])
def test_refuses_an_indefinite_matrix(row: int) -> None:
    """A negative eigenvalue anywhere is refused."""
    matrix = np.eye(120)
    matrix[row, row] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        cholesky.Factor(matrix)


def test_one_at_a_time() -> None:
    """A thread waits until nobody is inside; the thread that is inside may come in once more."""
    inside = threading.Event()

    def enter() -> None:
        with cholesky.one_thread():
            inside.set()

    thread = threading.Thread(target=enter)
    with cholesky.one_thread(), cholesky.one_thread():
        thread.start()
        assert not inside.wait(0.2)
    assert inside.wait(60)
    thread.join()


def test_blas_threads_do_not_change_a_bit() -> None:
    """With one, two and four OpenBLAS threads the bytes are the same, in the main thread, in another and in several."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", SOLVE],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2", "4")
    }
    assert 1 == len(digests)
    assert 65 == len(digests.pop())
