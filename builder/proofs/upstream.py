"""J2 and U1: questions, languages, pages and labels are upstream's, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from builder.proofs.facts import Facts, Table, UnprovableError
from builder.proofs.outcome import Coverage, Finding
from builder.proofs.places import failures
from builder.proofs.registry import each_domain, or_gap, proof
from builder.upstream import read_pages
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from builder.upstream import UpstreamDomain


@proof("J2", "a query's language is that of upstream's query, whatever row it stands in")
@each_domain
def languages(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves that every query of a subset stands upstream under that subset's language.

    The language of an id is the upstream config it stands in, never its place in a file. It does not prove that a
    subset has all of its queries, nor their texts: that is U1.
    """
    spoken = facts.upstream(domain).all_queries().select("id", pl.col("language").alias("upstream"))
    for table, frame in facts.domain_frame("queries", domain, ["id"]):
        yield Coverage(rows=frame.height, files=len(table.files), queries=frame.height)
        joined = frame.join(spoken, on="id", how="inner", maintain_order="left")
        bad = joined.filter(pl.col("upstream") != table.language).with_columns(pl.col("id").alias("query-id"))
        message = pl.format("upstream has this query in {}", pl.col("upstream"))
        yield failures(bad, table, rule="language", column="id", message=message)


@proof("U1", "queries, pages and positive labels equal upstream's at the pinned revision, one by one")
@each_domain
def upstream(facts: Facts, domain: str) -> Iterator[Finding]:
    """Proves that a domain's queries, pages and labels are upstream's: none changed, none missing, none added.

    Queries by text; pages by sha256 of the image's stored bytes, by path and text; labels are scores above 0.

    It does not prove that the benchmark file pins the right revision, nor that an image can be decoded.
    """
    theirs = facts.upstream(domain)
    yield from or_gap(_queries(facts, domain, theirs), "queries")
    yield from or_gap(_pages(facts, domain, theirs), "corpus")
    yield from or_gap(_labels(facts, domain, theirs), "labels")


def _queries(facts: Facts, domain: str, theirs: UpstreamDomain) -> Iterator[Finding]:
    found = facts.domain_frame("queries", domain, ["id", "text"])
    wanted = theirs.all_queries()
    texts = wanted.select("id", pl.col("text").alias("upstream"))
    for table, frame in found:
        yield Coverage(rows=frame.height, files=len(table.files), queries=frame.height)
        joined = _named(frame.join(texts, on="id", how="left", maintain_order="left"), "query-id")
        yield unlike(joined, table, "text", "upstream's query has another text")
        yield unknown(joined, table, "upstream has no such query")
    for table, _ in found:
        ours = pl.concat([frame["id"] for _, frame in found])
        own = wanted.filter(pl.col("language") == table.language)
        yield missing(own, ours, table, "query-id", "upstream has this query, the domain has not")


def _pages(facts: Facts, domain: str, theirs: UpstreamDomain) -> Iterator[Finding]:
    table = facts.one("corpus", domain)
    facts.frame(table, ["id", "text"])  # the columns and types are the layout's, or there is nothing to compare
    frames = []
    for number, name in enumerate(table.files):
        try:
            pages = read_pages([facts.inside(name)]).frame
        except ReleaseError as error:
            raise UnprovableError(f"{name}: {error.what}") from error
        frames.append(pages.with_row_index("__row").with_columns(pl.lit(number, pl.Int16).alias("__file")))
    ours = pl.concat(frames).cast({"__row": pl.Int64})
    yield Coverage(rows=ours.height, files=len(table.files))
    columns = {name: f"upstream {name}" for name in ("sha256", "path", "text")}
    wanted = theirs.pages.frame.select("id", *(pl.col(name).alias(new) for name, new in columns.items()))
    joined = _named(
        ours.join(wanted.with_columns(pl.lit(value=True).alias("known")), on="id", how="left", maintain_order="left"),
        "corpus-id",
    )
    yield unknown(joined.rename({"upstream text": "upstream"}), table, "upstream has no such page")
    known = joined.filter(pl.col("known"))
    for name, column, what in (
        ("sha256", "image.bytes", "the image's bytes are not upstream's (sha256 {})"),
        ("path", "image.path", "the image's path is not upstream's ({})"),
        ("text", "text", "the page's text is not upstream's ({})"),
    ):
        bad = known.filter(pl.col(name).ne_missing(pl.col(f"upstream {name}")))
        message = pl.format(what, pl.col(f"upstream {name}").fill_null("null").str.slice(0, 80))
        yield failures(bad, table, rule=f"page-{name}", column=column, value=name, message=message)
    yield missing(theirs.pages.frame, ours["id"], table, "corpus-id", "upstream has this page, the corpus has not")


def _labels(facts: Facts, domain: str, theirs: UpstreamDomain) -> Iterator[Finding]:
    pair = ["query-id", "corpus-id"]
    wanted = theirs.all_labels().rename({"score": "upstream"})
    tables = facts.domain_frame("qrels", domain, [*pair, "score"])
    for table, frame in tables:
        yield Coverage(rows=frame.height, files=len(table.files))
        joined = frame.join(wanted, on=pair, how="left", maintain_order="left")
        bad = joined.filter(pl.col("score") != pl.col("upstream").fill_null(0))
        message = pl.format("upstream's label is {}", pl.col("upstream").cast(pl.String).fill_null("none, so 0"))
        yield failures(bad, table, rule="label", column="score", message=message)
    ours = pl.concat([frame.select(pair) for _, frame in tables])
    for table, _ in tables:
        own = theirs.labels.get(table.language or "", wanted.clear())
        bad = own.join(ours, on=pair, how="anti", maintain_order="left")
        gone = "upstream labels this pair, the qrels have no row for it"
        yield failures(bad, table, rule="missing", column="score", message=gone)


def _named(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_columns(pl.col("id").alias(name))


def unlike(joined: pl.DataFrame, table: Table, column: str, what: str) -> pl.DataFrame:
    """Rows whose column differs from `upstream` (rows without one are `unknown`)."""
    bad = joined.filter(pl.col("upstream").is_not_null() & pl.col(column).ne_missing(pl.col("upstream")))
    message = pl.concat_str(pl.lit(f"{what}: "), pl.col("upstream").str.slice(0, 80))
    return failures(bad, table, rule=f"query-{column}", column=column, message=message)


def unknown(joined: pl.DataFrame, table: Table, what: str) -> pl.DataFrame:
    """Rows that upstream does not have."""
    return failures(joined.filter(pl.col("upstream").is_null()), table, rule="unknown", column="id", message=what)


def missing(wanted: pl.DataFrame, ours: pl.Series, table: Table, key: str, what: str) -> pl.DataFrame:
    """Rows of upstream that the tree does not have."""
    bad = wanted.filter(~pl.col("id").is_in(ours.drop_nulls().implode()))
    return failures(_named(bad, key), table, rule="missing", column="id", message=what)
