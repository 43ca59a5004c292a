"""The table of routes (Hub spec section 2), and the way from a request to its handler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

from releases.local_hub import lfs_routes, reads, writes
from releases.local_hub.names import HubError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from releases.local_hub.http import Reply, Request
    from releases.local_hub.hub import Hub

_API = r"/api/datasets/(?P<namespace>[^/]+)/(?P<name>[^/]+)"
_LFS = r"/datasets/(?P<namespace>[^/]+)/(?P<name>[^/]+)\.git/info/lfs"
_REVISION = r"(?P<revision>[^/]+)"
_OID = r"(?P<oid>[0-9a-f]{64})"
_UPLOAD = r"(?P<upload>[0-9a-f]{32})"


class Access(Enum):
    """Who may use a route; SIGNED and OPEN routes look for themselves."""

    OPEN = "open"
    READ = "read"
    WRITE = "write"
    SIGNED = "signed"


@dataclass(frozen=True)
class Route:
    """A method, a path and what answers it; a path with `namespace` and `name` gets its repository."""

    methods: frozenset[str]
    path: re.Pattern[str]
    access: Access
    handler: Callable[..., Reply]


def _route(methods: str, path: str, access: Access, handler: Callable[..., Reply]) -> Route:
    return Route(frozenset(methods.split()), re.compile(path), access, handler)


ROUTES = (
    _route("GET", "/api/whoami-v2", Access.OPEN, reads.whoami),
    _route("POST", "/api/validate-yaml", Access.OPEN, writes.validate_yaml),
    _route("POST", "/api/repos/create", Access.WRITE, writes.create_repo),
    _route("DELETE", "/api/repos/delete", Access.WRITE, writes.delete_repo),
    _route("GET", _API, Access.READ, reads.info),
    _route("GET", f"{_API}/revision/{_REVISION}", Access.READ, reads.info),
    _route("GET", f"{_API}/refs", Access.READ, reads.refs),
    _route("GET", f"{_API}/commits/{_REVISION}", Access.READ, reads.commits),
    _route("GET", f"{_API}/tree/{_REVISION}(?:/(?P<path>.*))?", Access.READ, reads.tree),
    _route("POST", f"{_API}/paths-info/{_REVISION}", Access.READ, reads.paths_info),
    _route("PUT", f"{_API}/settings", Access.WRITE, writes.change_settings),
    _route("POST", f"{_API}/preupload/{_REVISION}", Access.WRITE, writes.preupload),
    _route("POST", f"{_API}/commit/{_REVISION}", Access.WRITE, writes.commit),
    _route("POST", f"{_API}/tag/{_REVISION}", Access.WRITE, writes.create_tag),
    _route("DELETE", f"{_API}/tag/{_REVISION}", Access.WRITE, writes.delete_tag),
    _route("POST", f"{_API}/branch/{_REVISION}", Access.WRITE, writes.create_branch),
    _route("POST", f"{_API}/super-squash/{_REVISION}", Access.WRITE, writes.super_squash),
    _route("POST", f"{_LFS}/objects/batch", Access.READ, lfs_routes.batch),
    _route("POST", f"{_LFS}/verify", Access.WRITE, lfs_routes.verify),
    _route("PUT", f"{_LFS}/objects/{_OID}", Access.SIGNED, lfs_routes.put_object),
    _route("GET", f"{_LFS}/objects/{_OID}", Access.SIGNED, lfs_routes.get_object),
    _route("PUT", rf"{_LFS}/objects/{_OID}/parts/{_UPLOAD}/(?P<number>\d{{1,5}})", Access.SIGNED, lfs_routes.put_part),
    _route("POST", f"{_LFS}/objects/{_OID}/parts/{_UPLOAD}", Access.SIGNED, lfs_routes.complete),
    _route(
        "GET HEAD",
        rf"/datasets/(?P<namespace>[^/]+)/(?P<name>[^/]+)/resolve/{_REVISION}/(?P<path>.+)",
        Access.READ,
        reads.resolve,
    ),
)


def dispatch(hub: Hub, request: Request) -> Reply:
    """Answer a request.

    Raises:
        HubError: the refusal to send.
    """
    allowed: set[str] = set()
    for route in ROUTES:
        match = route.path.fullmatch(request.path)
        if match is None:
            continue
        if request.method not in route.methods:
            allowed |= route.methods
            continue
        found = {key: _unquote(value) for key, value in match.groupdict().items() if value is not None}
        if route.access is Access.WRITE:
            hub.check_write(request)
        if "name" not in found:
            return route.handler(hub, request)
        repository = hub.store.repository(f"{found.pop('namespace')}/{found.pop('name')}")
        if route.access is Access.READ:
            hub.check_read(request, repository)
        return route.handler(hub, request, repository, **found)
    if allowed:
        headers = {"Allow": ", ".join(sorted(allowed))}
        raise HubError(HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed", headers=headers)
    raise HubError(HTTPStatus.NOT_FOUND, "Sorry, we can't find the page you are looking for.")


def _unquote(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise bad_request("The address is not UTF-8") from error
