"""Ids, words, and Parquet files that grow a block of queries at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 64
"""Queries a row group."""
_TEXT = """
plan report table figure energy network budget policy safety engine patient reactor contract market income
pension training module memory kernel signal sensor valve pressure storage transport method result section
annual monthly average maximum current previous detailed applied general specific first second total net
"""
WORDS = _TEXT.split()


class Tables:
    """Parquet files that grow a row group at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}

    def add(self, name: str, table: pa.Table) -> None:
        """Append one row group to `<name>`."""
        if name not in self._writers:
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writers[name] = pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1)
        self._writers[name].write_table(table, row_group_size=max(len(table), 1))

    def close(self) -> None:
        """Write the footers."""
        for writer in self._writers.values():
            writer.close()


def query_id(number: int) -> str:
    """An id of upstream's form."""
    return f"query-test-{number}"


def page_id(number: int) -> str:
    """An id of upstream's form."""
    return f"corpus-test-{number}"


def prose(random: np.random.Generator, words: int) -> str:
    """Words in a row."""
    return " ".join(WORDS[word] for word in random.integers(0, len(WORDS), words)) + "."


def names(prefix: str, numbers: np.ndarray) -> pa.DictionaryArray:
    """An id column, dictionary-encoded: `numbers` may have any shape."""
    values, codes = np.unique(numbers, return_inverse=True)
    ids = pa.array([f"{prefix}-test-{value}" for value in values])
    return pa.DictionaryArray.from_arrays(pa.array(codes.ravel().astype(np.int32)), ids)
