"""The manifest: what every file of a tree is, and content digests that outlive an encoding (DESIGN section 3)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from builder import documents
from builder.digests import content_digest, sha256_file
from builder.layout import MANIFEST, SCHEMAS, Config
from builder.tables import batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FORMAT = "rcp-release.manifest.v1"


@dataclass(frozen=True)
class Inputs:
    """What a tree was made from.

    `uris` names each input as the maintainer wrote it, with the revision it was resolved to (None for a folder);
    `digests` maps what was read to the sha256 of its bytes.
    """

    uris: Mapping[str, Mapping[str, str | None]]
    digests: Mapping[str, str] = field(default_factory=dict)


def describe(
    tree: Path, configs: Iterable[Config], each: Callable[..., Iterable[dict[str, Any]]] = map
) -> dict[str, dict[str, Any]]:
    """Facts of every file in `tree` but the manifest: path -> sha256, bytes, and for tables rows, schema, configs.

    A table's `content_sha256` covers its rows in file order (which is canonical), not their encoding.

    Args:
        tree: the folder.
        configs: what its tables are.
        each: works as `map` does; files may be described side by side.
    """
    kinds: dict[str, str] = {}
    named: dict[str, list[str]] = defaultdict(list)
    for config in configs:
        for files in config.files.values():
            for file in files:
                kinds[file] = config.kind
                named[file].append(config.name)
    paths = {path.relative_to(tree).as_posix(): path for path in sorted(tree.rglob("*")) if path.is_file()}
    paths.pop(MANIFEST, None)
    facts = each(
        describe_file, paths.values(), [kinds.get(name) for name in paths], [named.get(name, []) for name in paths]
    )
    return dict(zip(paths, facts, strict=True))


def describe_file(path: Path, kind: str | None, configs: list[str]) -> dict[str, Any]:
    """The manifest's entry of one file; `kind` is None for a file that no config names."""
    fact: dict[str, Any] = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
    if kind is not None:
        schema = SCHEMAS[kind]
        fact |= {
            "kind": kind,
            "configs": configs,
            "rows": pq.read_metadata(path).num_rows,
            "schema": {item.name: str(item.type) for item in pq.read_schema(path)},
            "content_sha256": content_digest(schema, batches(path, schema.names, rows=4096)),
        }
    return fact


def assemble(
    files: Mapping[str, Mapping[str, Any]],
    configs: Iterable[Config],
    pages: Mapping[str, Mapping[str, str]],
    *,
    settings: Mapping[str, Any],
    inputs: Inputs,
) -> dict[str, Any]:
    """The manifest document.

    Args:
        files: as `describe` gives them.
        configs: the card's configs, in its order.
        pages: a domain's pages: corpus-id -> sha256 of the image's stored bytes.
        settings: what the maintainer chose and the bytes depend on (figures, link, judge).
        inputs: what the tree was made from.
    """
    return {
        "format": FORMAT,
        "tool": {"name": "rcp-release", "version": version()},
        "settings": dict(settings),
        "inputs": {"uris": {name: dict(uri) for name, uri in inputs.uris.items()}, "files": dict(inputs.digests)},
        "configs": [
            {
                "config_name": config.name,
                "kind": config.kind,
                "data_files": [{"split": split, "path": list(paths)} for split, paths in config.files.items()],
            }
            for config in configs
        ],
        "files": {name: dict(fact) for name, fact in files.items()},
        "pages": {domain: dict(digests) for domain, digests in pages.items()},
    }


def configs_of(manifest: Mapping[str, Any]) -> list[Config]:
    """The configs that a manifest declares, in its order."""
    return [
        Config(
            entry["config_name"],
            entry["kind"],
            {item["split"]: tuple(item["path"]) for item in entry["data_files"]},
        )
        for entry in manifest["configs"]
    ]


def seal(tree: Path) -> None:
    """Rewrite the manifest of `tree` so that it describes the files that lie there now; all else in it is kept.

    For whoever changes a tree on purpose: a card written anew, a test that breaks one rule and not M1.
    """
    manifest = documents.read(tree / MANIFEST)
    manifest["files"] = describe(tree, configs_of(manifest))
    documents.write(manifest, tree / MANIFEST)


def version() -> str:
    """The version of this tool, from the installed distribution (or the source tree it runs from)."""
    try:
        return metadata.version("rcp-release")
    except metadata.PackageNotFoundError:
        text = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
        return next(line.split('"')[1] for line in text.splitlines() if line.startswith("version = "))
