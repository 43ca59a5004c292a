"""Routes that read: information, refs, commits, trees, paths and files."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from releases.local_hub.http import FilePart, Reply, byte_range, json_reply
from releases.local_hub.hub import OWNER
from releases.local_hub.names import HubError
from releases.local_hub.store import MAIN

if TYPE_CHECKING:
    from releases.local_hub.http import Request
    from releases.local_hub.hub import Hub
    from releases.local_hub.store import Repository
    from releases.local_hub.tree import Entry


def whoami(hub: Hub, request: Request) -> Reply:
    """GET whoami-v2: the one user, for the holder of the token."""
    if not hub.knows(request):
        raise HubError(HTTPStatus.UNAUTHORIZED, "Invalid username or password.")
    return json_reply({"type": "user", "name": OWNER, "fullname": OWNER, "orgs": [], "auth": {"type": "access_token"}})


def info(_: Hub, request: Request, repository: Repository, revision: str = MAIN) -> Reply:
    """GET a repository, or one revision of it."""
    commit = repository.resolve(revision)
    siblings = []
    for path, entry in repository.tree(commit).items():
        if not entry.is_directory:
            sibling: dict[str, Any] = {"rfilename": path}
            if request.flag("blobs"):
                row = entry.row()
                sibling |= {"size": row["size"], "blobId": row["oid"]}
                if entry.lfs is not None:
                    sibling["lfs"] = {
                        "sha256": entry.lfs.oid,
                        "size": entry.lfs.size,
                        "pointerSize": entry.size,
                    }
            siblings.append(sibling)
    settings = repository.settings()
    date = repository.log(commit, 0, 1)[0]["date"]
    return json_reply(
        {
            "_id": "",
            "id": repository.repo_id,
            "author": repository.repo_id.partition("/")[0],
            "sha": commit,
            "lastModified": date,
            "createdAt": date,
            "private": settings.private,
            "gated": "manual" if settings.gated else False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": siblings,
        }
    )


def refs(_: Hub, __: Request, repository: Repository) -> Reply:
    """GET branches and tags."""
    kinds = {"branches": "heads", "tags": "tags", "converts": "convert"}
    return json_reply(
        {
            key: [{"name": r.name, "ref": r.full_name, "targetCommit": r.commit} for r in repository.refs(kind)]
            for key, kind in kinds.items()
        }
    )


def commits(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """GET the commits from a revision backwards, a page at a time."""
    limit = min(max(request.number("limit", hub.limits.commits_page), 1), hub.limits.tree_page)
    page = request.number("p", 0)
    rows = repository.log(repository.resolve(revision), page * limit, limit + 1)
    more = len(rows) > limit
    return json_reply(rows[:limit], headers=_next(request, p=page + 1) if more else {})


def tree(hub: Hub, request: Request, repository: Repository, revision: str, path: str = "") -> Reply:
    """GET the files under a folder, a page at a time."""
    commit = repository.resolve(revision)
    entries = repository.tree(commit)
    path = path.strip("/")
    if path and (path not in entries or not entries[path].is_directory):
        raise _no_entry(path, commit)
    inside = f"{path}/" if path else ""
    recursive = request.flag("recursive")
    found = [
        entry
        for name, entry in entries.items()
        if name.startswith(inside) and (recursive or "/" not in name.removeprefix(inside))
    ]
    limit = min(max(request.number("limit", hub.limits.tree_page), 1), hub.limits.tree_page)
    start = request.number("cursor", 0)
    headers = _next(request, cursor=start + limit) if start + limit < len(found) else {}
    return json_reply([entry.row() for entry in found[start : start + limit]], headers=headers)


def paths_info(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST paths, form-encoded or as JSON; rows for those that exist."""
    entries = repository.tree(repository.resolve(revision))
    if request.headers.get("Content-Type", "").startswith("application/json"):
        paths = request.body.json(hub.limits.json_body).get("paths", [])
    else:
        paths = parse_qs(request.body.read_all(hub.limits.json_body).decode(errors="replace")).get("paths", [])
    return json_reply([entries[path].row() for path in paths if path in entries])


def resolve(hub: Hub, request: Request, repository: Repository, revision: str, path: str) -> Reply:
    """GET or HEAD a file at a revision, or a range of it."""
    hub.check_content(request, repository)
    commit = repository.resolve(revision)
    entry = repository.tree(commit).get(path)
    if entry is None or entry.is_directory:
        raise _no_entry(path, commit)
    headers = {
        "X-Repo-Commit": commit,
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
        "ETag": f'"{entry.oid if entry.lfs is None else entry.lfs.oid}"',
    }
    if entry.lfs is not None:
        headers |= {"X-Linked-Size": str(entry.lfs.size), "X-Linked-Etag": headers["ETag"]}
    if request.method == "HEAD":
        size = entry.size if entry.lfs is None else entry.lfs.size
        return Reply(HTTPStatus.OK, {**headers, "Content-Length": str(size)})
    return _content(request, repository, entry, headers)


def _content(request: Request, repository: Repository, entry: Entry, headers: dict[str, str]) -> Reply:
    if entry.lfs is None:
        content = repository.blob(entry.oid)
        size = len(content)
    else:
        stored = repository.lfs.size(entry.lfs.oid)
        if stored is None:
            raise HubError(HTTPStatus.NOT_FOUND, f"The object of {entry.path} is not in the store", headers=headers)
        size = stored
    part = byte_range(request.headers.get("Range"), size)
    start, end = part or (0, size)
    if part is not None:
        headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
    body = content[start:end] if entry.lfs is None else FilePart(repository.lfs.path(entry.lfs.oid), start, end - start)
    return Reply(HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT, headers, body)


def _no_entry(path: str, commit: str) -> HubError:
    headers = {"X-Repo-Commit": commit}
    return HubError(HTTPStatus.NOT_FOUND, f"Entry not found: {path[:200]}", code="EntryNotFound", headers=headers)


def _next(request: Request, **changed: int) -> dict[str, str]:
    query = urlencode({**request.query, **{name: str(value) for name, value in changed.items()}})
    return {"Link": f'<{request.base}{request.path}?{query}>; rel="next"'}
