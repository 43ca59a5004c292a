"""C3: what a release does not declare it changes is unchanged from its predecessor."""

from __future__ import annotations

import filecmp
from typing import TYPE_CHECKING, Any

import polars as pl

from builder import documents
from builder.diff.compare import relation_to
from builder.diff.held import DECLARED, EVERYTHING
from builder.diff.rows import OLD, differs, key, match
from builder.diff.sides import described_side, open_side
from builder.layout import PROVENANCE_KINDS, RELEASES, SCHEMAS, SUBSET_KINDS, item_params_path, windows_path
from builder.manifest import configs_of, describe
from builder.proofs.facts import FILE, ROW, Facts, Table, UnprovableError
from builder.proofs.outcome import Coverage, Finding, Gap, fault
from builder.proofs.places import failures
from builder.proofs.registry import or_gap, proof
from builder.releases_document import MAY_CHANGE
from builder.tables import UNREADABLE, open_parquet, read_frame
from builder.upstream import read_pages
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

_PAGES = {"sha256": "image.bytes", "path": "image.path", "text": "text"}
"""What a corpus is compared by, and the columns that failures name."""


@proof("C3", "what a release does not declare it changes is unchanged from its predecessor")
def predecessor(facts: Facts) -> Iterator[Finding]:
    """Proves that a release changes nothing of its predecessor but what its kind may change.

    Its entry of releases.json declares a kind that fits its judge and place, and exactly what that kind may change.
    Pages, queries, human labels, pools, top_ranked, first stage and runs are the predecessor's, and so is whatever
    else is not declared: compared by their files' bytes and, where these differ, row by row. qrel-nDCG is a function of
    labels, pools and runs, so it is unchanged too (`release diff` computes it). What the entry says of its relation to
    the predecessor, and the card prints, is what a diff of both trees gives.

    It does not prove that what may change has changed well: that is G1, G2 and L1; nor anything about the card.
    """
    entries = facts.releases["releases"]
    yield Coverage(rows=len(entries), files=1)
    yield from declared(entries)
    if len(entries) == 1:
        return
    before = facts.against
    if before is None:
        raise UnprovableError("no predecessor was given (--against TREE)")
    try:
        last = before.releases["releases"][-1]["tag"]
    except UnprovableError as error:
        yield Gap(f"that --against is the predecessor cannot be told: {error}")
    else:
        if last != entries[-2]["tag"]:
            raise UnprovableError(f"--against is {last}, the predecessor is {entries[-2]['tag']}")
    allowed = set(MAY_CHANGE.get(entries[-1].get("kind"), ())) - {EVERYTHING}
    for kind in (*SUBSET_KINDS, *PROVENANCE_KINDS):
        if kind == "qrels" or DECLARED.get(kind) not in allowed:
            yield from _kind(facts, before, kind, allowed)
    for name, path in (("windows", windows_path), ("item_params", item_params_path)):
        if DECLARED[name] not in allowed:
            yield from or_gap(_document(facts, before, path(facts.judge())), name)
    yield from or_gap(_relation(facts, before, entries), "relation")


def declared(entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The last entry's kind fits its place and judge, and it declares what that kind may change."""
    own, at = entries[-1], f"releases.{len(entries) - 1}"
    kind = own.get("kind")
    if kind not in MAY_CHANGE:
        message = f"a release is one of: {', '.join(MAY_CHANGE)}"
        yield fault("kind", message, file=RELEASES, column=f"{at}.kind", value="null" if kind is None else kind)
        return
    if list(own["may_change"] or ()) != list(MAY_CHANGE[kind]):
        message = f"a release of kind '{kind}' may change {', '.join(MAY_CHANGE[kind])}"
        yield fault("may-change", message, file=RELEASES, column=f"{at}.may_change", value=own["may_change"])
    if len(entries) == 1:
        fits = {"first"}
    elif _judge(own) != _judge(entries[-2]):
        fits = {"new judge"}
    else:
        fits = {"recalibration", "card only"}
    if kind not in fits:
        message = f"by its judge and place this release is: {' or '.join(sorted(fits))}"
        yield fault("kind", message, file=RELEASES, column=f"{at}.kind", value=kind)


def _judge(entry: Mapping[str, Any]) -> Any:
    judge = entry["judge"]
    return judge.get("name") if isinstance(judge, dict) else judge


def _kind(facts: Facts, before: Facts, kind: str, allowed: AbstractSet[str]) -> Iterator[Finding]:
    """A kind's tables, each against the predecessor's of the same domain and language."""
    ours, theirs = _tables(facts, kind), _tables(before, kind)
    for place, table in theirs.items():
        if place not in ours:
            yield fault("gone", "the predecessor has this table", config=table.config, value=table.split)
    for place, table in ours.items():
        if place not in theirs:
            message = "the predecessor has no such table"
            yield fault("new-table", message, config=table.config, file=table.files[0] if table.files else None)
        else:
            yield from or_gap(_table(facts, before, table, theirs[place], allowed), table.config)


def _tables(facts: Facts, kind: str) -> dict[tuple[str, str | None], Table]:
    """A kind's tables by domain and language; a corpus once a domain."""
    found: dict[tuple[str, str | None], Table] = {}
    for table in facts.tables:
        if table.kind == kind:
            found.setdefault((table.domain, None if kind == "corpus" else table.language), table)
    return found


def _table(facts: Facts, before: Facts, table: Table, other: Table, allowed: AbstractSet[str]) -> Iterator[Finding]:
    ours = [facts.inside(name) for name in table.files]
    theirs = [before.inside(name) for name in other.files]
    if len(ours) == len(theirs) and all(
        filecmp.cmp(one, two, shallow=False) for one, two in zip(ours, theirs, strict=True)
    ):
        try:
            rows = sum(_rows(path) for path in ours)
        except ReleaseError as error:
            raise UnprovableError(error.what) from error
        yield Coverage(rows=rows, files=len(ours))
        return
    new, old, columns = (_pages if table.kind == "corpus" else _frames)(facts, before, table, other)
    held = {name: shown for name, shown in columns.items() if DECLARED.get(name) not in allowed}
    yield Coverage(rows=new.height, files=len(ours))
    yield from _unlike(old, new, table, held)


def _rows(path: Any) -> int:
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)


def _frames(
    facts: Facts, before: Facts, table: Table, other: Table
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str]]:
    """Both tables' rows, and the columns that are no key. Columns of the predecessor are widened to the layout's."""
    schema = SCHEMAS[table.kind]
    try:
        parts = [read_frame(before.inside(name), schema, nullable=frozenset(schema.names)) for name in other.files]
    except (ReleaseError, *UNREADABLE) as error:
        raise UnprovableError(f"the predecessor's table cannot be read: {error}") from error
    columns = {name: name for name in schema.names if name not in key(table.kind)}
    return facts.frame(table, schema.names), pl.concat(parts), columns


def _pages(
    facts: Facts, before: Facts, table: Table, other: Table
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str]]:
    """Both corpora's pages: id, text, path and the sha256 of the image's bytes."""
    sides = []
    for side, listed in ((facts, table), (before, other)):
        try:
            parts = [read_pages([side.inside(name)]).frame for name in listed.files]
        except ReleaseError as error:
            raise UnprovableError(f"a corpus cannot be read: {error}") from error
        sides.append(
            pl.concat(
                frame.with_row_index(ROW).with_columns(pl.lit(number, pl.Int16).alias(FILE), pl.col(ROW).cast(pl.Int64))
                for number, frame in enumerate(parts)
            )
        )
    return sides[0], sides[1].drop(ROW, FILE), _PAGES


def _unlike(old: pl.DataFrame, new: pl.DataFrame, table: Table, held: Mapping[str, str]) -> Iterator[Finding]:
    keys = key(table.kind)
    try:
        matched = match(old, new, keys, what=table.config)
    except ReleaseError as error:
        raise UnprovableError(error.what) from error
    for name, shown in held.items():
        bad = _named(matched.both.filter(differs(name)), table)
        message = pl.format("the predecessor has {}", _text(bad, name + OLD))
        yield failures(bad, table, rule="changed", column=shown, value=name, message=message)
    gone = "the predecessor has this row"
    yield failures(
        _named(matched.added, table), table, rule="added", column=keys[-1], message="the predecessor has no such row"
    )
    yield failures(_named(matched.removed, table), table, rule="removed", column=keys[-1], message=gone)


def _named(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Failures name queries and pages, whose own tables call the column `id`."""
    name = {"queries": "query-id", "corpus": "corpus-id"}.get(table.kind)
    return frame if name is None else frame.with_columns(pl.col("id").alias(name))


def _text(frame: pl.DataFrame, column: str) -> pl.Expr:
    listed = isinstance(frame.schema[column], pl.List)
    text = pl.col(column).list.join(", ") if listed else pl.col(column).cast(pl.String)
    return text.fill_null("null").str.slice(0, 80)


def _document(facts: Facts, before: Facts, name: str) -> Iterator[Finding]:
    """A JSON document is the predecessor's, value by value."""
    present = [name in side.files for side in (facts, before)]
    if not any(present):
        return
    if not all(present):
        message = "the predecessor has no such file" if present[0] else "the predecessor has this file"
        yield fault("changed", message, file=name)
        return
    try:
        ours, theirs = (documents.read(side.inside(name)) for side in (facts, before))
    except ReleaseError as error:
        raise UnprovableError(error.what) from error
    yield Coverage(files=1)
    for path, now, was in _leaves(ours, theirs, ""):
        yield fault("changed", f"the predecessor has {was!r}", file=name, column=path, value=now)


def _leaves(now: Any, was: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ: path, value now, value before."""
    if isinstance(now, dict) and isinstance(was, dict):
        for name in sorted(now.keys() | was.keys()):
            yield from _leaves(now.get(name), was.get(name), f"{path}.{name}" if path else name)
    elif isinstance(now, list) and isinstance(was, list) and len(now) == len(was):
        for place, (one, other) in enumerate(zip(now, was, strict=True)):
            yield from _leaves(one, other, f"{path}.{place}")
    elif now != was:
        yield path, now, was


def _relation(facts: Facts, before: Facts, entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The counts that the card prints are those of a diff."""
    said = entries[-1].get("relation")
    if said is None:
        return
    listed = configs_of(facts.manifest)
    try:
        old = open_side(before.path, entries[-2]["tag"])
        found = relation_to(old, described_side(facts.path, listed, describe(facts.path, listed)), facts.benchmark)
    except (ReleaseError, OSError) as error:
        raise UnprovableError(f"a diff with the predecessor cannot be made: {error}") from error
    yield Coverage(files=1)
    for path, now, diff in _leaves(said, found, f"releases.{len(entries) - 1}.relation"):
        yield fault("relation", f"a diff of both trees gives {diff!r}", file=RELEASES, column=path, value=now)
