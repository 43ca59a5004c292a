"""Digests of files and of a table's content; the latter do not depend on how Parquet encoded it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CHUNK = 1 << 20


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class ContentDigest:
    """Hex sha256 of rows in the order given, fed batch by batch; how rows are cut into batches does not matter.

    Each leaf column has three streams: validity (a byte a value), lengths (little-endian int64, for strings, binaries
    and lists) and data (UTF-8 or raw bytes; little-endian int64 or float64; a byte a bool). The digest covers every
    column's name and type, then its three stream digests, in schema order. Bit-exact: -0.0 and 0.0 differ.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = [(field.name, str(field.type), _Streams()) for field in schema]
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add rows; columns are taken by name."""
        self._rows += batch.num_rows
        for name, _, streams in self._columns:
            _feed(streams, batch.column(name))

    def hexdigest(self) -> str:
        """The digest of all rows fed so far."""
        whole = hashlib.sha256(str(self._rows).encode())
        for name, kind, streams in self._columns:
            whole.update(f"\0{name}\0{kind}\0{streams.hexdigest()}".encode())
        return whole.hexdigest()


def content_digest(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
    """`ContentDigest` over all batches, columns cast to `schema` (strings of any layout to plain strings)."""
    digest = ContentDigest(schema)
    for batch in batches:
        digest.update(batch.select(schema.names).cast(schema))
    return digest.hexdigest()


class _Streams:
    def __init__(self) -> None:
        self.validity = hashlib.sha256()
        self.lengths = hashlib.sha256()
        self.data = hashlib.sha256()
        self.children: dict[str, _Streams] = {}

    def child(self, name: str) -> _Streams:
        return self.children.setdefault(name, _Streams())

    def hexdigest(self) -> str:
        own = (self.validity.hexdigest(), self.lengths.hexdigest(), self.data.hexdigest())
        below = (f"{name}={child.hexdigest()}" for name, child in sorted(self.children.items()))
        return "/".join([*own, *below])


def _feed(streams: _Streams, array: pa.Array) -> None:
    kind = array.type
    streams.validity.update(_bytes(pc.is_valid(array).cast(pa.uint8()), np.uint8))
    if pa.types.is_struct(kind):
        for index, field in enumerate(kind):
            _feed(streams.child(field.name), array.field(index))
    elif pa.types.is_list(kind):
        streams.lengths.update(_bytes(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()), np.int64))
        _feed(streams.child("element"), array.flatten())
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        filled = pc.fill_null(array, "" if pa.types.is_string(kind) else b"")
        streams.lengths.update(_bytes(pc.binary_length(filled).cast(pa.int64()), np.int64))
        streams.data.update(_text_bytes(filled))
    elif pa.types.is_boolean(kind):
        streams.data.update(_bytes(pc.fill_null(array, fill_value=False).cast(pa.uint8()), np.uint8))
    elif pa.types.is_integer(kind):
        streams.data.update(_bytes(pc.fill_null(array, 0).cast(pa.int64()), np.int64))
    elif pa.types.is_float64(kind):
        streams.data.update(_bytes(pc.fill_null(array, 0.0), np.float64))
    else:
        raise TypeError(f"no digest is defined for {kind}")


def _bytes(array: pa.Array, dtype: type[np.generic]) -> bytes:
    values: np.ndarray = array.to_numpy(zero_copy_only=False)
    return values.astype(np.dtype(dtype).newbyteorder("<"), copy=False).tobytes()


def _text_bytes(array: pa.Array) -> memoryview:
    """The concatenated values of a string or binary array without nulls, respecting its offset."""
    if len(array) == 0:
        return memoryview(b"")
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(data if data is not None else b"")[int(offsets[0]) : int(offsets[-1])]
