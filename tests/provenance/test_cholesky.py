"""The Cholesky solver: numpy as oracle, refusal, and the same bits for any number of BLAS threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from provenance import cholesky

SOLVE = """
import hashlib
import numpy as np
from provenance import cholesky
digest = hashlib.sha256()
for seed in range(20):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(150, 150))
    matrix = np.einsum("ik,jk->ij", root, root) + np.eye(150)
    with cholesky.one_thread():
        digest.update(cholesky.Factor(matrix).solve(rng.normal(size=150)).tobytes())
print(digest.hexdigest())
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


OVERLAP = """
from threadpoolctl import threadpool_info
from provenance import cholesky
def limits():
    return sorted({found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"})
first, second = cholesky.one_thread(), cholesky.one_thread()
seen = [limits()]
for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None),
             lambda: second.__exit__(None, None, None)):
    step()
    seen.append(limits())
print(seen)
"""


def test_the_limit_holds_while_anybody_is_inside() -> None:
    """Whoever leaves first does not lift the limit for the other; the last restores what was."""
    done = subprocess.run(
        [sys.executable, "-c", OVERLAP],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "[[2], [1], [1], [1], [2]]" == done.stdout.strip()


def test_blas_threads_do_not_change_a_bit() -> None:
    """Processes with one, two and four OpenBLAS threads give the same bytes."""
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
