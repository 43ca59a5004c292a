"""J1: every id joins, as the `x-foreign-key` rules of the schemas say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from builder.json_schemas import schema
from builder.layout import PROVENANCE_KINDS, SUBSET_KINDS
from builder.proofs.outcome import Coverage, Finding
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, or_gap, proof

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from builder.proofs.facts import Facts, Table


@proof("J1", "every id joins: tables to queries and pages, and queries to the tables that must have them")
@each_domain
def joins(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves that each query-id and corpus-id of a table names a query and a page of its domain.

    For qrels and top_ranked that is a query of the subset. A judged pair is in the pool; where a rule says `both`, no
    query is left out.

    It does not prove that the right pages are there: that is P2 and P3; nor that each run is whole: that is R1.
    """
    queries = [facts.frame(table, ["id"])["id"] for table in facts.subsets("queries", domain)]
    yield Coverage(queries=pl.concat(queries).n_unique())
    for kind in (*SUBSET_KINDS, *PROVENANCE_KINDS):
        for table in facts.tables:
            if table.kind == kind and table.domain == domain:
                yield from or_gap(_table(facts, table), table.config)


def _table(facts: Facts, table: Table) -> Iterator[Finding]:
    for rule in schema(table.kind).get("x-foreign-key", ()):
        columns: list[str] = rule["columns"]
        frame = facts.frame(table, columns)
        if isinstance(frame.schema[columns[0]], pl.List):
            frame = frame.explode(columns)
        known = _references(facts, table, rule)
        yield Coverage(rows=frame.height)
        yield orphans(frame, known, table, rule)
        if rule.get("both"):
            yield left_out(frame, known, table, rule)


def _references(facts: Facts, table: Table, rule: Mapping[str, Any]) -> pl.DataFrame:
    """The keys that a rule refers to: of the subset, or of all the domain's subsets."""
    targets = facts.subsets(rule["kind"], table.domain)
    if rule["kind"] == "corpus":
        targets = targets[:1]
    elif table.language is not None:
        targets = [target for target in targets if target.language == table.language]
    frames = [facts.frame(target, rule["references"]).select(rule["references"]) for target in targets]
    renamed = dict(zip(rule["references"], rule["columns"], strict=True))
    return (
        pl.concat(frames).rename(renamed).unique()
        if frames
        else pl.DataFrame(schema=dict.fromkeys(rule["columns"], pl.String))
    )


def orphans(frame: pl.DataFrame, known: pl.DataFrame, table: Table, rule: Mapping[str, Any]) -> pl.DataFrame:
    """Rows whose key joins nothing."""
    columns: list[str] = rule["columns"]
    bad = frame.join(known, on=columns, how="anti", maintain_order="left")
    message = f"no row of the {rule['kind']} has this {' and '.join(columns)}"
    value = pl.concat_str([pl.col(column).fill_null("null") for column in columns], separator=", ")
    return failures(bad, table, rule="x-foreign-key", column=columns[-1], value=value, message=message)


def left_out(frame: pl.DataFrame, known: pl.DataFrame, table: Table, rule: Mapping[str, Any]) -> pl.DataFrame:
    """Keys of the other table that no row of this one has."""
    columns: list[str] = rule["columns"]
    bad = known.join(frame, on=columns, how="anti").sort(columns)
    message = f"the table has no row for it, although the {rule['kind']} have it"
    return failures(bad, table, rule="left-out", column=columns[-1], message=message)
