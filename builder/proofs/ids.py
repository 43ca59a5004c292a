"""S2: ids have the upstream form and are unique."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from builder.json_schemas import schema
from builder.layout import PROVENANCE_KINDS, SUBSET_KINDS
from builder.proofs.facts import FILE, ROW, Facts, Table
from builder.proofs.outcome import Coverage, Finding
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, or_gap, proof
from builder.proofs.structure import IS_ID_FORM, placed

if TYPE_CHECKING:
    from collections.abc import Iterator


@proof("S2", "ids have the upstream form and are unique; (query, page) pairs are unique")
def unique_ids(facts: Facts) -> Iterator[Finding]:
    """Proves that page and query ids are `corpus-<split>-<n>` and `query-<split>-<n>` and name one row each.

    A query id is unique over all languages of its domain. Pairs (and ranks, where a schema's `x-unique` says so) stand
    once in a table. It does not prove that an id is upstream's: that is U1. Ids elsewhere only have to join (J1).
    """
    for found in facts.row_findings:
        yield placed(found.failures.filter(IS_ID_FORM), found)
    yield from _over_domains(facts)


@each_domain
def _over_domains(facts: Facts, domain: str) -> Iterator[Finding]:
    for kind in (*SUBSET_KINDS, *PROVENANCE_KINDS):
        yield from or_gap(_kind(facts, domain, kind), f"{kind}")


def _kind(facts: Facts, domain: str, kind: str) -> Iterator[Finding]:
    tables = [table for table in facts.tables if table.kind == kind and table.domain == domain]
    if kind == "corpus":
        tables = tables[:1]
    ids = []
    for table in tables:
        for columns in schema(kind)["x-unique"]:
            frame = facts.frame(table, columns)
            yield Coverage(rows=frame.height, files=len(table.files))
            yield repeated(frame, table, columns)
            if columns == ["id"]:
                yield foreign_split(frame, table)
                ids.append(frame.with_columns(pl.lit(table.language).alias("language")))
    if kind == "queries" and ids:
        yield from _across_languages(ids, tables)


def repeated(frame: pl.DataFrame, table: Table, columns: list[str]) -> pl.DataFrame:
    """Rows that repeat the columns of an earlier row."""
    bad = frame.filter(~pl.struct(columns).is_first_distinct())
    shown = pl.concat_str([pl.col(column).cast(pl.String).fill_null("null") for column in columns], separator=", ")
    named = (
        bad.with_columns(bad["id"].alias("query-id" if table.kind == "queries" else "corpus-id"))
        if columns == ["id"]
        else bad
    )
    message = f"an earlier row has the same {', '.join(columns)}"
    return failures(named, table, rule="x-unique", column=columns[-1], value=shown, message=message)


def foreign_split(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Ids of the upstream form whose middle is not the split's name."""
    middle = pl.col("id").str.extract(r"^(?:query|corpus)-(\w+)-[0-9]+$", 1)
    bad = frame.filter(middle.is_not_null() & (middle != table.split))
    named = bad.with_columns(bad["id"].alias("query-id" if table.kind == "queries" else "corpus-id"))
    return failures(
        named, table, rule="id-split", column="id", message=f"the id does not name the split '{table.split}'"
    )


def _across_languages(ids: list[pl.DataFrame], tables: list[Table]) -> Iterator[pl.DataFrame]:
    first: dict[str, str] = {}
    for frame, table in zip(ids, tables, strict=True):
        known = frame.select("id", ROW, FILE).filter(pl.col("id").is_in(list(first))) if first else frame.clear()
        if known.height:
            said = pl.format("the {} queries have this id too", pl.col("id").replace_strict(first, default=""))
            named = known.with_columns(known["id"].alias("query-id"))
            yield failures(named, table, rule="one-language", column="id", message=said)
        for identifier in frame["id"].drop_nulls().to_list():
            first.setdefault(identifier, table.language or "")
