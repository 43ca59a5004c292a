"""Replies of a Hub: each client of ours reads what the Hub's client makes of them, and believes none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import SHA, hub
from support.fuzzing import mutated_bytes, mutated_json, read, short

from provenance.errors import ReleaseError

_OTHER = "f" * 40
BODIES: dict[str, Any] = {
    "refs": {
        "branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": SHA}],
        "tags": [{"name": "v1-toy", "ref": "refs/tags/v1-toy", "targetCommit": _OTHER}],
        "converts": [],
    },
    "commits": [
        {"id": SHA, "title": "two", "message": "", "authors": [{"user": "me"}], "date": "2026-01-02T03:04:05.000Z"},
        {"id": _OTHER, "title": "one", "message": "", "authors": [], "date": "2026-01-01T03:04:05.000Z"},
    ],
    "tree": [
        {"type": "directory", "oid": SHA, "size": 0, "path": "paper"},
        {"type": "file", "oid": SHA, "size": 3, "path": "README.md"},
        {
            "type": "file",
            "oid": _OTHER,
            "size": 99,
            "path": "paper/qrels.parquet",
            "lfs": {"oid": "a" * 64, "size": 99, "pointerSize": 130},
        },
    ],
    "info": {
        "id": "example/tiny",
        "sha": SHA,
        "private": False,
        "tags": [],
        "siblings": [
            {"rfilename": "README.md", "size": 3, "blobId": SHA},
            {
                "rfilename": "a/b.parquet",
                "size": 9,
                "blobId": _OTHER,
                "lfs": {"sha256": "b" * 64, "size": 9, "pointerSize": 130},
            },
        ],
    },
}
HEADERS = (
    {},
    {"Retry-After": "\u0661".encode("latin-1", "replace").decode("latin-1")},
    {"Retry-After": "9" * 5000},
    {"Retry-After": "-1"},
    {"RateLimit": '"api";r=0;t=' + "9" * 5000},
    {"Location": "http://hub.test/elsewhere"},
    {"Location": "file:///etc/passwd"},
    {"X-Error-Code": "RepoNotFound"},
    {"X-Error-Code": "RevisionNotFound"},
    {"X-Error-Message": "no\x1b[2J"},
    {"X-Repo-Commit": "0" * 40},
    {"Content-Encoding": "gzip"},
    {"Content-Length": "1"},
    {"Content-Type": "text/html; charset=x-none"},
    {"Link": '<http://hub.test/next>; rel="previous"'},
)
STATUSES = (200, 200, 200, 204, 206, 301, 308, 400, 401, 403, 404, 409, 416, 418, 429, 500, 503, 599)


def reply(kind: str, body: str, status: int = 200, headers: dict[str, str] | None = None) -> bytes:
    """A reply, as its reader takes it."""
    return json.dumps({"kind": kind, "status": status, "headers": headers or {}, "body": body}).encode()


@pytest.mark.parametrize("kind", BODIES)
def test_valid_replies_are_read(kind: str) -> None:
    """What the others mangle is good, to every client that reads it."""
    assert not isinstance(read(hub, reply(kind, json.dumps(BODIES[kind])), "some.json"), ReleaseError)


@pytest.mark.parametrize("kind", BODIES)
def test_any_body_is_believed_or_refused(kind: str) -> None:
    """Shas, sizes and paths are of their form in what comes back: no path leads out, nothing stands twice."""

    @short(120)
    @given(st.one_of(mutated_json(BODIES[kind]), mutated_bytes(json.dumps(BODIES[kind]).encode())))
    def holds(body: bytes) -> None:
        read(hub, reply(kind, body.decode("utf-8", "replace")), "some.json")

    holds()


@short(150)
@given(
    st.sampled_from([*BODIES, "file"]),
    st.sampled_from(STATUSES),
    st.sampled_from(HEADERS),
    st.sampled_from(["", "{}", "[]", "null", "<html>", '{"error": "no"}', "[" * 3000]),
)
def test_any_status_is_an_error_that_is_ours(kind: str, status: int, headers: dict[str, str], body: str) -> None:
    """Statuses, waits that never end, codings that lie, redirects: an error of our tree, soon."""
    read(hub, reply(kind, body, status, headers), "some.json")
