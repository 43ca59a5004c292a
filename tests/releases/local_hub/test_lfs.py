"""The LFS store keeps whole objects under their own sha256, and nothing else."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releases.local_hub.http import Body
from releases.local_hub.lfs import LfsStore
from releases.local_hub.names import HubError
from releases.local_hub.tree import Pointer, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from huggingface_hub import HfApi

    from releases.local_hub import LocalHub

REPO = "someone/bench"
DATA = b"0123456789"
OID = hashlib.sha256(DATA).hexdigest()
UPLOAD = "0" * 32


def everything(folder: Path) -> list[Path]:
    """All files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_object_lies_where_git_lfs_looks(tmp_path: Path) -> None:
    """`lfs/objects/aa/bb/<oid>`, and no temporary file stays."""
    LfsStore(tmp_path).receive(OID, 10, io.BytesIO(DATA))
    assert [tmp_path / "lfs" / "objects" / OID[:2] / OID[2:4] / OID] == everything(tmp_path)


@pytest.mark.parametrize("sent", [DATA[:-1], DATA + b"x", DATA[:-1] + b"x", b""])
def test_other_bytes_than_announced_leave_nothing(tmp_path: Path, sent: bytes) -> None:
    """Too short, too long, or of another sha256."""
    store = LfsStore(tmp_path)
    with pytest.raises(HubError) as caught:
        store.receive(OID, 10, io.BytesIO(sent))
    assert 400 == caught.value.status
    assert store.size(OID) is None
    assert [] == everything(tmp_path)


def test_parts_are_joined_in_order_and_gone_afterwards(tmp_path: Path) -> None:
    """Parts that came in another order make the object; their files are removed."""
    store = LfsStore(tmp_path)
    for number, piece in ((3, DATA[8:]), (1, DATA[:4]), (2, DATA[4:8])):
        etag = store.receive_part(OID, UPLOAD, number, io.BytesIO(piece), limit=4)
        assert f'"{hashlib.md5(piece, usedforsecurity=False).hexdigest()}"' == etag
    store.complete(OID, 10, UPLOAD, [1, 2, 3])
    assert DATA == store.path(OID).read_bytes()
    assert [store.path(OID)] == everything(tmp_path)


def test_missing_or_wrong_part_makes_no_object(tmp_path: Path) -> None:
    """A multipart upload ends only when all parts are there and right."""
    store = LfsStore(tmp_path)
    store.receive_part(OID, UPLOAD, 1, io.BytesIO(DATA[:4]), limit=4)
    with pytest.raises(HubError, match="missing"):
        store.complete(OID, 10, UPLOAD, [1, 2])
    store.receive_part(OID, UPLOAD, 2, io.BytesIO(b"xxxxxx"), limit=6)
    with pytest.raises(HubError, match="sha256"):
        store.complete(OID, 10, UPLOAD, [1, 2])
    with pytest.raises(HubError, match="longer"):
        store.receive_part(OID, UPLOAD, 2, io.BytesIO(b"xxxxxxx"), limit=6)
    assert store.size(OID) is None


@given(st.binary(max_size=40), st.integers(0, 2**40))
def test_pointer_text_is_read_back(content: bytes, size: int) -> None:
    """A pointer's text is what is parsed from it; other bytes are no pointer."""
    pointer = Pointer(hashlib.sha256(content).hexdigest(), size)
    assert pointer == parse_pointer(pointer.text())
    assert parse_pointer(pointer.text() + content + b"x") is None
    assert parse_pointer(content) is None


@given(st.lists(st.binary(min_size=1, max_size=50)), st.integers(1, 60))
def test_chunked_body_is_its_chunks(chunks: list[bytes], step: int) -> None:
    """A chunked body reads as the chunks one after the other, then ends where the next request begins."""
    wire = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\nNEXT"
    stream = io.BytesIO(wire)
    body = Body(stream, {"Transfer-Encoding": "chunked"})
    read = b""
    while block := body.read(step):
        read += block
    assert b"".join(chunks) == read
    assert body.ended
    assert b"NEXT" == stream.read()


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), min_size=1))
def test_lines_of_a_body(lines: list[bytes]) -> None:
    """The lines of a body are what newlines part."""
    wire = b"\n".join(lines)
    body = Body(io.BytesIO(wire), {"Content-Length": str(len(wire))})
    expected = lines if lines[-1] else lines[:-1]
    assert expected == list(body.lines(1000))


@pytest.fixture
def connection(hub: LocalHub, api: HfApi) -> Iterator[http.client.HTTPConnection]:
    """A raw connection to a Hub with one repository."""
    del api
    opened = http.client.HTTPConnection(urlsplit(hub.endpoint).netloc, timeout=20)
    yield opened
    opened.close()


def ask(connection: http.client.HTTPConnection, method: str, address: str, body: Any = b"") -> tuple[int, bytes]:
    """One request on a kept connection."""
    split = urlsplit(address)
    connection.request(method, f"{split.path}?{split.query}", body=body)
    response = connection.getresponse()
    return response.status, response.read()


def batch(connection: http.client.HTTPConnection, operation: str, size: int = 10) -> dict[str, Any]:
    """The answer for the one object."""
    body = json.dumps({"operation": operation, "transfers": ["basic"], "objects": [{"oid": OID, "size": size}]})
    status, answer = ask(connection, "POST", f"/datasets/{REPO}.git/info/lfs/objects/batch", body.encode())
    assert 200 == status
    (answered,) = json.loads(answer)["objects"]
    return dict(answered)


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_upload_address_is_good_for_one_object_only(connection: http.client.HTTPConnection) -> None:
    """A changed signature, size or object is refused; the address itself takes the right bytes, in chunks too."""
    href = batch(connection, "upload")["actions"]["upload"]["href"]
    other = href.replace(OID, "0" * 64)
    for wrong in (href[:-1] + ("0" if href[-1] != "0" else "1"), href.replace("size=10", "size=11"), other):
        assert 403 == ask(connection, "PUT", wrong, DATA)[0]
    assert 400 == ask(connection, "PUT", href, DATA[::-1])[0]
    assert "actions" in batch(connection, "upload")
    # A body of unknown length goes in chunks.
    assert 200 == ask(connection, "PUT", href, iter([DATA[:3], DATA[3:]]))[0]
    assert "actions" not in batch(connection, "upload")


@pytest.mark.enable_socket
@pytest.mark.loopback
def test_download_through_the_batch_route(connection: http.client.HTTPConnection) -> None:
    """What git-lfs asks for over HTTP: an error for what is not here, an address for what is."""
    assert 404 == batch(connection, "download")["error"]["code"]
    ask(connection, "PUT", batch(connection, "upload")["actions"]["upload"]["href"], DATA)
    href = batch(connection, "download")["actions"]["download"]["href"]
    assert (200, DATA) == ask(connection, "GET", href)
    assert 403 == ask(connection, "GET", href.split("&")[0])[0]
