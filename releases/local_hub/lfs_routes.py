"""The LFS protocol: batch, basic and multipart uploads, verification, downloads.

The addresses of uploads are signed, because clients send no token with them.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from releases.local_hub.http import FilePart, Reply, byte_range, json_reply
from releases.local_hub.names import HubError, bad_request, check_lfs_oid

if TYPE_CHECKING:
    from releases.local_hub.http import Request
    from releases.local_hub.hub import Hub
    from releases.local_hub.store import Repository

_JSON = {"Content-Type": "application/vnd.git-lfs+json"}


def batch(hub: Hub, request: Request, repository: Repository) -> Reply:
    """POST batch: for each object, where to send it (nowhere if it is here), or where to read it."""
    document = request.body.json(hub.limits.json_body)
    operation = document.get("operation")
    if operation not in {"upload", "download"}:
        raise bad_request("operation is upload or download")
    if operation == "upload":
        hub.check_write(request)
    else:
        hub.check_content(request, repository)
    multipart = "multipart" in document.get("transfers", ["basic"])
    objects = []
    for item in document.get("objects", []):
        size = item.get("size") if isinstance(item, dict) else None
        if not isinstance(size, int) or size < 0:
            raise bad_request("each object has an oid and a size")
        oid = check_lfs_oid(item.get("oid"))
        if operation == "upload":
            objects.append(_upload(hub, request, repository, oid, size, multipart=multipart))
        else:
            objects.append(_download(hub, request, repository, oid, size))
    parts = any("chunk_size" in o.get("actions", {}).get("upload", {}).get("header", {}) for o in objects)
    answer = {"transfer": "multipart" if parts else "basic", "objects": objects, "hash_algo": "sha256"}
    return json_reply(answer, headers=_JSON)


def _address(request: Request, repository: Repository, tail: str) -> str:
    return f"{request.base}/datasets/{repository.repo_id}.git/info/lfs/{tail}"


def _upload(
    hub: Hub, request: Request, repository: Repository, oid: str, size: int, *, multipart: bool
) -> dict[str, Any]:
    if repository.lfs.size(oid) == size:
        return {"oid": oid, "size": size}
    if size > hub.limits.upload:
        return {"oid": oid, "size": size, "error": {"code": HTTPStatus.UNPROCESSABLE_ENTITY, "message": "too large"}}
    upload: dict[str, Any]
    if multipart and size > hub.limits.multipart_above:
        chunk = hub.limits.multipart_chunk
        name = secrets.token_hex(16)
        query = f"size={size}&signature={hub.sign(repository.repo_id, oid, size, name)}"
        whole = _address(request, repository, f"objects/{oid}/parts/{name}")
        header = {f"{n:05d}": f"{whole}/{n}?{query}" for n in range(1, -(-size // chunk) + 1)}
        upload = {"href": f"{whole}?{query}", "header": {"chunk_size": str(chunk), **header}}
    else:
        query = f"size={size}&signature={hub.sign(repository.repo_id, oid, size)}"
        upload = {"href": f"{_address(request, repository, f'objects/{oid}')}?{query}"}
    verify = {"href": _address(request, repository, "verify")}
    authorization = request.headers.get("Authorization")
    if authorization:
        verify["header"] = {"Authorization": authorization}  # type: ignore[assignment]  # a nested object
    return {"oid": oid, "size": size, "authenticated": True, "actions": {"upload": upload, "verify": verify}}


def _download(hub: Hub, request: Request, repository: Repository, oid: str, size: int) -> dict[str, Any]:
    if repository.lfs.size(oid) is None:
        return {"oid": oid, "size": size, "error": {"code": HTTPStatus.NOT_FOUND, "message": "Object does not exist"}}
    query = f"size={size}&signature={hub.sign(repository.repo_id, oid, size, 'download')}"
    href = f"{_address(request, repository, f'objects/{oid}')}?{query}"
    return {"oid": oid, "size": size, "authenticated": True, "actions": {"download": {"href": href}}}


def put_object(hub: Hub, request: Request, repository: Repository, oid: str) -> Reply:
    """PUT an object whole."""
    size = request.number("size", 0)
    hub.check_signature(request, repository.repo_id, oid, size)
    repository.lfs.receive(oid, size, request.body)
    return Reply()


def get_object(hub: Hub, request: Request, repository: Repository, oid: str) -> Reply:
    """GET an object."""
    hub.check_signature(request, repository.repo_id, oid, request.number("size", 0), "download")
    size = repository.lfs.size(oid)
    if size is None:
        raise HubError(HTTPStatus.NOT_FOUND, "Object does not exist")
    part = byte_range(request.headers.get("Range"), size)
    start, end = part or (0, size)
    headers = {"Content-Type": "application/octet-stream"}
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
    return Reply(status, headers, FilePart(repository.lfs.path(oid), start, end - start))


def put_part(hub: Hub, request: Request, repository: Repository, *, oid: str, upload: str, number: str) -> Reply:
    """PUT one part of an object."""
    size = request.number("size", 0)
    hub.check_signature(request, repository.repo_id, oid, size, upload)
    chunk = hub.limits.multipart_chunk
    if not 1 <= int(number) <= -(-size // chunk):
        raise bad_request(f"there is no part {int(number)}")
    etag = repository.lfs.receive_part(oid, upload, int(number), request.body, chunk)
    return Reply(headers={"ETag": etag})


def complete(hub: Hub, request: Request, repository: Repository, oid: str, upload: str) -> Reply:
    """POST the end of a multipart upload."""
    size = request.number("size", 0)
    hub.check_signature(request, repository.repo_id, oid, size, upload)
    request.body.read_all(hub.limits.json_body)
    repository.lfs.complete(oid, size, upload, range(1, -(-size // hub.limits.multipart_chunk) + 1))
    return json_reply({"success": True})


def verify(hub: Hub, request: Request, repository: Repository) -> Reply:
    """POST verify: 404 unless the object is here with that size."""
    document = request.body.json(hub.limits.json_body)
    if repository.lfs.size(check_lfs_oid(document.get("oid"))) != document.get("size"):
        raise HubError(HTTPStatus.NOT_FOUND, "Object does not exist")
    return json_reply({"success": True}, headers=_JSON)
