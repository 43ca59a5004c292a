"""N1: what the data are like, counted, and compared with what the benchmark file expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from builder.proofs.outcome import Coverage, Finding, Gap, Measure, fault
from builder.proofs.registry import each_domain, proof
from provenance.ids import id_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from builder.proofs.facts import Facts

SUITE = ("pages_without_text_in_a_pool", "injected_pairs")
"""Counts that `[expected]` declares over all domains."""


@proof("N1", "the data notes, and the counts that the benchmark file expects")
def notes(facts: Facts) -> Iterator[Finding]:
    """Counts what a user of the data should know, and proves each count that the benchmark file's `[expected]` has.

    A group is pages of a domain with byte-identical text that is not empty; its labels differ where some query grades
    two of its pages differently (a page without a label counts as 0). Language blocks are runs of one language when a
    domain's queries stand in order of their ids; they repeat where there are more of them than languages. What is not
    declared is shown and not judged.
    """
    totals: dict[str, int] = {}

    def one(facts: Facts, domain: str) -> Iterator[Finding]:
        counts = count(facts, domain)
        yield Coverage(counts["pages"], 0, counts["queries"])
        for name, value in counts.items():
            yield Measure(f"{domain}: {name}", float(value))
            totals[name] = totals.get(name, 0) + value
        if facts.has_benchmark:
            yield from _by_language(facts, domain)
            declared = facts.benchmark.expected.get("domains", {}).get(domain, {})
            yield from unexpected(domain, {k: v for k, v in declared.items() if k not in _LANGUAGE}, counts)

    yield from each_domain(one)(facts)
    for name, value in totals.items():
        yield Measure(f"all domains: {name}", float(value))
    if not facts.has_benchmark or not facts.benchmark.expected:
        yield Gap("no [expected] counts are declared")
    elif set(SUITE) <= totals.keys():
        yield from unexpected("all domains", {k: v for k, v in facts.benchmark.expected.items() if k in SUITE}, totals)


_LANGUAGE = ("queries", "labels", "labelled_pages")


def unexpected(place: str, declared: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[pl.DataFrame]:
    """Counts that differ from what is declared."""
    for name, wanted in declared.items():
        if counts.get(name) != wanted:
            message = f"{place}: {name} is {counts.get(name)}, the benchmark file expects {wanted}"
            yield fault("expected", message, column=name, value=counts.get(name))


def count(facts: Facts, domain: str) -> dict[str, int]:
    """The notes of a domain; `queries` and `labels` over all languages."""
    pages = facts.frame(facts.one("corpus", domain), ["id", "text"])
    queries = facts.domain_frame("queries", domain, ["id"])
    pair = ["query-id", "corpus-id"]
    qrels = pl.concat([frame for _, frame in facts.domain_frame("qrels", domain, [*pair, "score"])])
    pool = facts.frame(facts.one("pool", domain), ["corpus-id", "gt_injected"])
    labels = qrels.filter(pl.col("score") > 0).select(*pair, "score")
    empty = pages.filter(pl.col("text") == "")["id"]
    groups = (
        pages.filter(pl.col("text") != "")
        .with_columns(pl.len().over("text").alias("size"))
        .filter(pl.col("size") > 1)
        .select(pl.col("id").alias("corpus-id"), "text", "size")
    )
    spoken = pl.concat([frame.select("id", pl.lit(table.language).alias("language")) for table, frame in queries])
    in_order = spoken.sort([id_number("id"), "id"])["language"]
    blocks = int((in_order != in_order.shift(1)).sum()) + 1 if in_order.len() else 0
    return {
        "pages": pages.height,
        "queries": spoken.height,
        "labels": labels.height,
        "pages_without_text": empty.len(),
        "pages_without_text_in_a_pool": pool.filter(pl.col("corpus-id").is_in(empty.implode()))["corpus-id"].n_unique(),
        "pages_without_text_relevant": labels.filter(pl.col("corpus-id").is_in(empty.implode()))[
            "corpus-id"
        ].n_unique(),
        "distinct_texts": pages["text"].n_unique(),
        "groups_of_identical_text": groups["text"].n_unique(),
        "pages_of_identical_text": groups.height,
        "groups_with_differing_labels": differing(groups, labels),
        "language_blocks": blocks,
        "language_blocks_repeat": int(blocks > len(queries)),
        "injected_pairs": int(pool["gt_injected"].sum()),
    }


def differing(groups: pl.DataFrame, labels: pl.DataFrame) -> int:
    """Groups in which some query grades two pages differently; a page without a label has grade 0."""
    graded = (
        labels.join(groups, on="corpus-id", how="inner")
        .group_by("text", "query-id")
        .agg(pl.len().alias("labelled"), pl.col("score").n_unique().alias("grades"), pl.col("size").first())
    )
    return graded.filter((pl.col("grades") > 1) | (pl.col("labelled") < pl.col("size")))["text"].n_unique()


def _by_language(facts: Facts, domain: str) -> Iterator[pl.DataFrame]:
    """Counts that are declared a language: each language must have as many."""
    declared = facts.benchmark.expected.get("domains", {}).get(domain, {})
    wanted = {name: declared[name] for name in _LANGUAGE if name in declared}
    for table, frame in facts.domain_frame("queries", domain, ["id"]):
        yield from unexpected(
            table.config, {k: v for k, v in wanted.items() if k == "queries"}, {"queries": frame.height}
        )
    for table, frame in facts.domain_frame("qrels", domain, ["corpus-id", "score"]):
        labels = frame.filter(pl.col("score") > 0)
        found = {"labels": labels.height, "labelled_pages": labels["corpus-id"].n_unique()}
        yield from unexpected(table.config, {k: v for k, v in wanted.items() if k != "queries"}, found)
