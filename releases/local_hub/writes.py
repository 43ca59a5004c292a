"""Routes that write: repositories, commits, tags, branches."""

from __future__ import annotations

import base64
import binascii
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import documents
from releases.local_hub.attributes import ignored_paths, lfs_paths
from releases.local_hub.http import Reply, json_reply, too_large
from releases.local_hub.hub import OWNER
from releases.local_hub.limits import validate_card
from releases.local_hub.names import HubError, bad_request, check_lfs_oid, check_path
from releases.local_hub.store import Delete, Put, Settings
from releases.local_hub.tree import Pointer

if TYPE_CHECKING:
    from releases.local_hub.http import Request
    from releases.local_hub.hub import Hub
    from releases.local_hub.store import Repository

README = "README.md"


def _text(document: dict[str, Any], name: str, default: str | None = None) -> str:
    value = document.get(name, default)
    if not isinstance(value, str):
        raise bad_request(f'"{name}" must be a string')
    return value


def create_repo(hub: Hub, request: Request) -> Reply:
    """POST repos/create."""
    document = request.body.json(hub.limits.json_body)
    if document.get("type") != "dataset":
        raise bad_request("This Hub holds datasets only")
    repo_id = f"{document.get('organization') or OWNER}/{_text(document, 'name')}"
    url = f"{request.base}/datasets/{repo_id}"
    try:
        private = document.get("private") is True or document.get("visibility") == "private"
        hub.store.create(repo_id, Settings(private=private))
    except HubError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        raise HubError(error.status, error.message, body={"url": url, "id": repo_id}) from error
    return json_reply({"url": url, "id": repo_id, "name": repo_id})


def delete_repo(hub: Hub, request: Request) -> Reply:
    """DELETE repos/delete."""
    document = request.body.json(hub.limits.json_body)
    if document.get("type") != "dataset":
        raise bad_request("This Hub holds datasets only")
    hub.store.delete(f"{document.get('organization') or OWNER}/{_text(document, 'name')}")
    return json_reply({})


def change_settings(hub: Hub, request: Request, repository: Repository) -> Reply:
    """PUT settings: private, gated."""
    document = request.body.json(hub.limits.json_body)
    now = repository.settings()
    visibility = document.get("visibility")
    private = visibility == "private" if visibility is not None else document.get("private", now.private)
    gated = document.get("gated", now.gated)
    repository.set_settings(Settings(private=bool(private), gated=bool(gated)))
    return json_reply({"private": bool(private), "gated": gated})


def validate_yaml(hub: Hub, request: Request) -> Reply:
    """POST validate-yaml: 400 with the errors, 413 for a card that is too long."""
    content = _text(request.body.json(hub.limits.card), "content")
    errors, warnings = validate_card(content)
    document = {
        "errors": [{"message": message} for message in errors],
        "warnings": [{"message": message} for message in warnings],
    }
    return json_reply(document, HTTPStatus.BAD_REQUEST if errors else HTTPStatus.OK)


def preupload(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST preupload: for each file, how to send it, whether to leave it out, and what is there now."""
    document = request.body.json(hub.limits.json_body)
    commit = repository.resolve(revision)
    tree = repository.tree(commit)
    sizes: dict[str, int] = {}
    for file in document.get("files", []):
        if not isinstance(file, dict) or not isinstance(file.get("size"), int):
            raise bad_request('each of "files" has a path and a size')
        sizes[check_path(_text(file, "path"))] = file["size"]
    gitignore = document.get("gitIgnore")
    if gitignore is None and ".gitignore" in tree:
        gitignore = repository.blob(tree[".gitignore"].oid).decode(errors="replace")
    by_rule = lfs_paths(repository.path, commit, list(sizes))
    ignored = ignored_paths(repository.path, (gitignore or "").encode(), list(sizes))
    rows = []
    for path, size in sizes.items():
        lfs = path in by_rule or size > hub.limits.regular_file
        row: dict[str, Any] = {
            "path": path,
            "uploadMode": "lfs" if lfs else "regular",
            "shouldIgnore": path in ignored,
        }
        entry = tree.get(path)
        if entry is not None and not entry.is_directory:
            row["oid"] = entry.oid if entry.lfs is None else entry.lfs.oid
        rows.append(row)
    return json_reply({"files": rows})


def commit(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST commit: ndjson of a header and the changes, which become one commit or none."""
    if request.flag("create_pr"):
        raise bad_request("This Hub has no pull requests")
    header: dict[str, Any] | None = None
    changes: list[Put | Delete] = []
    blobs: list[tuple[str, Path]] = []
    with tempfile.TemporaryDirectory(prefix="hub-commit-") as folder:
        for line in request.body.lines(2 * hub.limits.regular_file):
            if not line.strip():
                continue
            key, value = _change(line)
            if key == "header":
                header = value
            elif key in {"deletedFile", "deletedFolder"}:
                path = check_path(_text(value, "path").rstrip("/"))
                changes.append(Delete(path, is_folder=key == "deletedFolder"))
            else:
                path = check_path(_text(value, "path"))
                content = _file(hub, value) if key == "file" else _pointer(repository, value)
                target = Path(folder) / str(len(blobs))
                target.write_bytes(content)
                blobs.append((path, target))
        if header is None:
            raise bad_request("The commit has no header")
        oids = repository.write_blobs([file for _, file in blobs])
    changes += [Put(path, oid) for (path, _), oid in zip(blobs, oids, strict=True)]
    title, description = _text(header, "summary"), _text(header, "description", "")
    parent = header.get("parentCommit")
    new = repository.commit(
        revision.removeprefix("refs/heads/"),
        changes,
        message=f"{title}\n\n{description}\n" if description else f"{title}\n",
        parent=None if parent is None else str(parent),
    )
    url = f"{request.base}/datasets/{repository.repo_id}/commit/{new}"
    return json_reply({"success": True, "commitOid": new, "commitUrl": url, "hookOutput": ""})


def _change(line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        document = documents.parse(line)
        key, value = document["key"], document["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("Each line of a commit is a JSON object with a key and a value") from error
    if key not in {"header", "file", "lfsFile", "deletedFile", "deletedFolder"} or not isinstance(value, dict):
        raise bad_request(f"Unknown change {str(key)[:40]!r}")
    return key, value


def _file(hub: Hub, value: dict[str, Any]) -> bytes:
    if value.get("encoding") != "base64":
        raise bad_request("A file's encoding is base64")
    try:
        content = base64.b64decode(_text(value, "content"), validate=True)
    except binascii.Error as error:
        raise bad_request(f"The content of {value['path']} is no base64") from error
    limit = hub.limits.readme if value["path"] == README else hub.limits.regular_file
    if len(content) > limit:
        raise too_large(limit)
    return content


def _pointer(repository: Repository, value: dict[str, Any]) -> bytes:
    if value["path"] == README:
        raise bad_request(f"{README} cannot be an LFS file: it is longer than the Hub takes")
    oid = check_lfs_oid(value.get("oid"))
    stored = repository.lfs.size(oid)
    if stored is None or value.get("size", stored) != stored:
        raise bad_request(f"The LFS object of {value['path']} was not uploaded")
    return Pointer(oid, stored).text()


def create_tag(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST tag/REVISION."""
    document = request.body.json(hub.limits.json_body)
    message = document.get("message")
    repository.create_tag(
        _text(document, "tag"), repository.resolve(revision), None if message is None else str(message)
    )
    return json_reply({})


def delete_tag(_: Hub, __: Request, repository: Repository, revision: str) -> Reply:
    """DELETE tag/TAG: the Hub protects no tag."""
    repository.delete_ref(f"refs/tags/{revision}")
    return json_reply({})


def create_branch(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST branch/NAME."""
    start = request.body.json(hub.limits.json_body).get("startingPoint") or "main"
    repository.create_branch(revision, repository.resolve(str(start)))
    return json_reply({})


def super_squash(hub: Hub, request: Request, repository: Repository, revision: str) -> Reply:
    """POST super-squash/BRANCH: what tests of tampering need."""
    message = request.body.json(hub.limits.json_body).get("message")
    repository.squash(revision, str(message or f"Super-squash branch '{revision}'"))
    return json_reply({})
