"""M1 and S1: the files are the manifest's, and have their schemas' columns, types and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq

from builder import documents
from builder.digests import sha256_file
from builder.json_schemas import faults, schema
from builder.layout import MANIFEST, SCHEMAS
from builder.manifest import describe_file
from builder.proofs.facts import Facts, RowFinding, Table, UnprovableError
from builder.proofs.outcome import FAILURES, Coverage, Finding, Gap, Warn, fault
from builder.proofs.registry import proof
from builder.tables import UNREADABLE
from builder.upstream import read_pages
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LARGEST_ROW_GROUP = 286 * 2**20
_POINTER = b"version https://git-lfs"


@proof("M1", "every file's bytes, rows and digests are the manifest's, and nothing else is there")
def manifest(facts: Facts) -> Iterator[Finding]:
    """Proves that the tree is, byte for byte, what its manifest says, and that no file lies beside what it lists.

    Every listed file is hashed; a table's rows, columns and content digest, and each page image, are computed again.
    It does not prove that the manifest is the one that was published: whoever can rewrite the tree can seal it again
    (the ledger's digest is for that). `.git` and `.cache` at the top are not part of a tree.
    """
    if MANIFEST not in facts.files:
        raise UnprovableError(f"the tree has no {MANIFEST}")
    yield from _unsafe_links(facts)
    try:
        document = documents.read(facts.inside(MANIFEST))
    except (ReleaseError, UnprovableError, OSError) as error:
        what = error.what if isinstance(error, ReleaseError) else str(error)
        yield fault("manifest", what, file=MANIFEST)
        return
    broken = [
        fault("manifest", message, file=MANIFEST, column=path, value=value)
        for path, _, value, message in faults(document, "manifest")
    ]
    yield from broken
    if broken:
        return
    listed: Mapping[str, Any] = document["files"]
    for name in facts.files:
        if name not in listed and name != MANIFEST:
            yield fault("unlisted", "the file is not in the manifest", file=name)
    for name, entry in listed.items():
        yield from _check_file(facts, name, entry)
    yield from _check_pages(facts, document["pages"])


def _unsafe_links(facts: Facts) -> Iterator[pl.DataFrame]:
    root = facts.path.resolve()
    for name in facts.files:
        path = facts.path / name
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            yield fault("link", "a symbolic link leads out of the tree", file=name, value=str(path.readlink()))


def _check_file(facts: Facts, name: str, entry: Mapping[str, Any]) -> Iterator[Finding]:
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        yield fault("path", "the manifest lists a path that is not one inside the tree", file=MANIFEST, value=name)
        return
    path = facts.path / name
    if name not in facts.files:
        yield fault("missing", "the manifest lists a file that is not there", file=name)
        return
    try:
        facts.inside(name)
    except UnprovableError:
        return  # a link out of the tree is reported as one; a folder cannot be listed as a file by `files`
    yield Coverage(files=1)
    size = path.stat().st_size
    if size != entry["bytes"]:
        yield fault(
            "bytes", f"the file has {size:,} bytes, the manifest says {entry['bytes']:,}", file=name, value=size
        )
    digest = sha256_file(path)
    if digest != entry["sha256"]:
        yield fault("sha256", f"{_what_lies_there(path)}the bytes are not the manifest's", file=name, value=digest)
    if "kind" in entry:
        yield from _check_table(path, name, entry)


def _what_lies_there(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(len(_POINTER))
    return "a git-lfs pointer lies where the file should be: " if head == _POINTER else ""


def _check_table(path: Path, name: str, entry: Mapping[str, Any]) -> Iterator[Finding]:
    if entry["kind"] not in SCHEMAS:
        yield fault("kind", "the manifest names a kind of table that there is not", file=name, value=entry["kind"])
        return
    try:
        found = describe_file(path, entry["kind"], entry["configs"])
    except (ReleaseError, *UNREADABLE, KeyError, TypeError):
        return  # S1 says that it cannot be read, or that its columns are not its kind's
    yield Coverage(rows=found["rows"])
    for key, what in (("rows", "rows"), ("schema", "columns"), ("content_sha256", "content digest")):
        if found[key] != entry[key]:
            message = f"the {what} of the table are not the manifest's ({entry[key]})"
            yield fault(key, message, file=name, value=found[key], config=entry["configs"][0])


def _check_pages(facts: Facts, pages: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    for domain in sorted(pages.keys() | set(facts.domains())):
        if domain not in pages:
            yield fault("pages", "the manifest has no pages of a domain of the card", file=MANIFEST, value=domain)
            continue
        try:
            table = facts.one("corpus", domain)
            frame = read_pages([facts.inside(name) for name in table.files]).frame if table.files else None
        except (UnprovableError, ReleaseError, OSError):
            frame = None
        if frame is None:
            yield Gap(f"{domain}: the pages cannot be read")
            continue
        found = dict(frame.select("id", "sha256").iter_rows())
        for page in sorted(found.keys() | pages[domain].keys()):
            if found.get(page) != pages[domain].get(page):
                message = (
                    f"the page's image is not the manifest's ({pages[domain].get(page, 'which has no such page')})"
                )
                value = found.get(page, "no such page")
                yield fault(
                    "pages",
                    message,
                    config=table.config,
                    file=table.files[0],
                    column="image",
                    value=value,
                    corpus_id=page,
                )


@proof("S1", "every file has exactly its schema's columns, types and values")
def schemas(facts: Facts) -> Iterator[Finding]:
    """Proves that each table file is Parquet with its kind's columns and Arrow types in order, and keeps its row rules.

    The same layout in all subsets follows. Only corpus files carry the Hub's feature metadata (in a tree made elsewhere
    that is a warning). No NaN, no infinity, no null where none is allowed; bounds and enumerations as `builder/schemas`
    says; JSON documents keep their schemas. It does not prove that a value is right, only that it is one; the form of
    ids is S2's.
    """
    seen: set[str] = set()
    for table in facts.tables:
        for name in table.files:
            if name not in seen:
                seen.add(name)
                yield from _check_columns(facts, table, name)
    for found in facts.row_findings:
        yield from _check_rows(facts, found)
    for stem in ("item_params", "windows"):
        for _, name in facts.judge_files(stem):
            yield from _check_document(facts, name, stem)


IS_ID_FORM = (pl.col("rule") == "pattern") & (pl.col("column") == "id")
"""Which row failures are about the form of an id: those are S2's."""


def _check_rows(facts: Facts, found: RowFinding) -> Iterator[Finding]:
    config, name = found.table.config, found.file
    if found.error is not None:
        pointer = "a git-lfs pointer lies where a Parquet file should be: " if _is_pointer(facts, name) else ""
        message = f"{pointer}not a whole Parquet file: {found.error.splitlines()[0]}"
        yield fault("unreadable", message, config=config, file=name)
        return
    yield Coverage(rows=found.rows, files=1)
    least = schema(found.table.kind)["x-row-count"]["minimum"]
    if found.rows < least:
        yield fault(
            "x-row-count", f"the table needs at least {least} row(s)", config=config, file=name, value=found.rows
        )
    yield placed(found.failures.filter(~IS_ID_FORM), found)


def placed(failures: pl.DataFrame, found: RowFinding) -> pl.DataFrame:
    """Row failures as failures of the report; a row of -1 is the whole file's."""
    frame = failures.with_columns(
        pl.lit(found.table.config).alias("config"),
        pl.lit(found.file).alias("file"),
        pl.when(pl.col("row") >= 0).then(pl.col("row")).alias("row"),
    )
    return frame.select(FAILURES.names()).cast(FAILURES)


def _check_columns(facts: Facts, table: Table, name: str) -> Iterator[Finding]:
    try:
        metadata = pq.read_metadata(facts.inside(name))
        found = metadata.schema.to_arrow_schema()
    except (UnprovableError, *UNREADABLE):
        return  # `_check_rows` says so
    wanted = SCHEMAS[table.kind]
    for field in wanted:
        if field.name not in found.names:
            yield _column(table, name, field.name, "missing", f"the column is missing (it is {field.type})")
        elif found.names.count(field.name) > 1:
            yield _column(table, name, field.name, "twice", "the column is there twice")
        elif found.field(field.name).type != field.type:
            actual = found.field(field.name).type
            yield _column(table, name, field.name, str(actual), f"the column is {actual}, its schema says {field.type}")
    for extra in sorted(set(found.names) - set(wanted.names)):
        yield _column(table, name, extra, str(found.field(extra).type), "the column is not in the schema")
    if set(found.names) == set(wanted.names) and found.names != wanted.names:
        yield _column(table, name, None, ", ".join(found.names), f"the columns' order is not {', '.join(wanted.names)}")
    largest = max((metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)), default=0)
    if largest > LARGEST_ROW_GROUP:
        yield Warn("row-group", f"{name} has a row group of {largest:,} bytes, which the Hub's viewer does not read")
    yield from _check_metadata(facts, table, name, carries=b"huggingface" in (found.metadata or {}))


def _check_metadata(facts: Facts, table: Table, name: str, *, carries: bool) -> Iterator[Finding]:
    """The Hub's feature metadata: on corpus files, whose images need it, and on no other file."""
    if table.kind == "corpus" and not carries:
        message = "the file lacks the Hub's feature metadata: its images would load as plain structs"
        yield fault("metadata", message, config=table.config, file=name, value="huggingface")
    elif table.kind != "corpus" and carries:
        message = "the file carries the Hub's feature metadata, which older readers may not understand"
        if facts.made_here:
            yield fault("metadata", message, config=table.config, file=name, value="huggingface")
        else:
            yield Warn("metadata", f"{name}: {message}")


def _is_pointer(facts: Facts, name: str) -> bool:
    path = facts.path / name
    return path.is_file() and path.stat().st_size < 1024 and path.read_bytes().startswith(_POINTER)  # noqa: PLR2004


def _column(table: Table, name: str, column: str | None, value: str, message: str) -> pl.DataFrame:
    return fault("columns", message, config=table.config, file=name, column=column, value=value)


def _check_document(facts: Facts, name: str, stem: str) -> Iterator[Finding]:
    try:
        document = documents.read(facts.inside(name))
    except (ReleaseError, UnprovableError, OSError) as error:
        yield fault("unreadable", error.what if isinstance(error, ReleaseError) else str(error), file=name)
        return
    yield Coverage(files=1)
    for path, rule, value, message in faults(document, stem):
        yield fault(rule, message, file=name, column=path, value=value)
