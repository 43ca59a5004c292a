"""HTTP plumbing: a request whose body is read as a stream, a reply that is bytes or a piece of a file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from builder import documents
from releases.local_hub.names import HubError, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BLOCK = 1024 * 1024
_LONGEST_CHUNK_LINE = 1024
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_NUMBER = re.compile(r"[0-9]{1,18}")
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,15}")


class Body:
    """The body of a request, with `Content-Length` or chunked; counts what is read."""

    def __init__(self, stream: BinaryIO, headers: Mapping[str, str]) -> None:
        self._stream = stream
        self._chunked = headers.get("Transfer-Encoding", "").lower() == "chunked"
        length = headers.get("Content-Length") or "0"
        if _NUMBER.fullmatch(length) is None:
            raise bad_request("Content-Length is no number")
        self._left = 0 if self._chunked else int(length)
        self._ended = not self._chunked
        self.count = 0

    @property
    def ended(self) -> bool:
        """Whether all of it was read, so that the connection can carry another request."""
        return self._ended and self._left == 0

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end.

        Raises:
            ConnectionError: the client went away in the middle.
        """
        if self._left == 0 and not self._ended:
            self._next_chunk()
        if self._left == 0:
            return b""
        block = self._stream.read(min(size, self._left))
        if not block:
            raise ConnectionAbortedError("the client closed the connection inside a body")
        self._left -= len(block)
        self.count += len(block)
        if self._chunked and self._left == 0:
            self._stream.readline(_LONGEST_CHUNK_LINE)
        return block

    def _next_chunk(self) -> None:
        line = self._stream.readline(_LONGEST_CHUNK_LINE).split(b";")[0].strip()
        if _CHUNK.fullmatch(line) is None:
            raise ConnectionAbortedError("the client sent a broken chunk")
        self._left = int(line, 16)
        if self._left == 0:
            self._ended = True
            while self._stream.readline(_LONGEST_CHUNK_LINE).strip():
                continue

    def read_all(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            HubError: 413, it is longer than `limit` bytes.
        """
        content = bytearray()
        while block := self.read(_BLOCK):
            content += block
            if len(content) > limit:
                raise too_large(limit)
        return bytes(content)

    def lines(self, limit: int) -> Iterator[bytes]:
        """Its lines without their ends, one in memory at a time.

        Raises:
            HubError: 413, a line is longer than `limit` bytes.
        """
        pending = bytearray()
        while block := self.read(_BLOCK):
            *whole, rest = block.split(b"\n")
            for piece in whole:
                pending += piece
                yield bytes(pending)
                pending.clear()
            pending += rest
            if len(pending) > limit:
                raise too_large(limit)
        if pending:
            yield bytes(pending)

    def json(self, limit: int) -> Any:
        """The body as JSON; an empty body is an empty object.

        Raises:
            HubError: 400, it is no JSON object; 413, too long.
        """
        try:
            document = documents.parse(self.read_all(limit) or b"{}")
        except ValueError as error:
            raise bad_request(f"The body is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise bad_request("The body is no JSON object")
        return document


def too_large(limit: int) -> HubError:
    """A 413."""
    return HubError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Payload too large: the limit is {limit} bytes")


class Request:
    """What a handler sees of a request."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: Body) -> None:
        split = urlsplit(target)
        self.method = method
        self.path = split.path
        self.query = {name: values[-1] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        self.headers = headers
        self.body = body

    @property
    def base(self) -> str:
        """The address under which the client reaches this server."""
        return f"http://{self.headers.get('Host', '')}"

    def flag(self, name: str) -> bool:
        """A query parameter that is `true` or `1`."""
        return self.query.get(name, "").lower() in {"true", "1"}

    def number(self, name: str, default: int) -> int:
        """A query parameter that is a natural number.

        Raises:
            HubError: 400.
        """
        text = self.query.get(name, str(default))
        if _NUMBER.fullmatch(text) is None:
            raise bad_request(f"{name} must be a number")
        return int(text)


@dataclass(frozen=True)
class FilePart:
    """A piece of a file, sent without reading it whole."""

    path: Path
    start: int
    length: int


@dataclass(frozen=True)
class Reply:
    """What a handler answers."""

    status: int = HTTPStatus.OK
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | FilePart = b""

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return len(self.body) if isinstance(self.body, bytes) else self.body.length

    def blocks(self) -> Iterator[bytes]:
        """The body, in pieces."""
        if isinstance(self.body, bytes):
            yield self.body
            return
        with self.body.path.open("rb") as file:
            file.seek(self.body.start)
            left = self.body.length
            while left and (block := file.read(min(_BLOCK, left))):
                left -= len(block)
                yield block


def json_reply(document: object, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Reply:
    """A JSON document as a reply."""
    content = json.dumps(document).encode(errors="surrogatepass")
    return Reply(status, {"Content-Type": "application/json; charset=utf-8", **(headers or {})}, content)


def error_reply(error: HubError) -> Reply:
    """A refusal, with the headers from which the client makes its exception."""
    # A header holds one line of latin-1.
    line = " ".join(error.message.split()).encode("ascii", "replace").decode()
    headers = {"X-Error-Message": line, **error.headers}
    if error.code is not None:
        headers["X-Error-Code"] = error.code
    return json_reply({"error": error.message, **error.body}, error.status, headers)


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Start and end (exclusive) of a `Range` header over `size` bytes, or None for the whole.

    Several ranges, or another unit, are answered with the whole, as HTTP allows.

    Raises:
        HubError: 416, nothing of the file is asked for.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or not (match[1] or match[2]):
        return None
    if match[1]:
        start, end = int(match[1]), min(size, int(match[2]) + 1) if match[2] else size
    else:
        start, end = max(0, size - int(match[2])), size
    if start >= end:
        raise HubError(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "The range is outside of the file",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end
