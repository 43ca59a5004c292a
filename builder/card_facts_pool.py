"""What the card says of a domain's corpus, questions and pool, counted from its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from builder.layout import FUSED, config_name
from builder.proofs.notes import differing
from builder.tables import batches
from provenance import fusion
from provenance.ids import canonical

if TYPE_CHECKING:
    from builder.benchmark import Benchmark
    from builder.tree import ReleaseTree

_PAIR = ["query-id", "corpus-id"]


@dataclass(frozen=True)
class DomainFacts:
    """One domain. Counts of questions, labels and pairs are over all languages unless they say `native`.

    Attributes:
        name: its name in ids and paths.
        label: its name in tables.
        native_language: the language its questions were written in.
        pages: pages of the corpus.
        native_questions: questions in the native language.
        questions: questions in all languages.
        native_labels: human labels (score above 0) of the native questions.
        labels: human labels.
        pairs: judged pairs of question and page.
        injected: of them, relevant pages that the first stage missed.
        injected_questions: questions with such a page.
        without_text: pages whose text is empty.
        without_text_in_pool: of them, those in any pool.
        text_groups: groups of pages with the same text, empty texts left out.
        grouped_pages: pages in these groups.
        split_groups: groups whose pages carry different labels for one question.
        language_batches: how often the blocks of languages repeat in the order of the questions' ids.
    """

    name: str
    label: str
    native_language: str
    pages: int
    native_questions: int
    questions: int
    native_labels: int
    labels: int
    pairs: int
    injected: int
    injected_questions: int
    without_text: int
    without_text_in_pool: int
    text_groups: int
    grouped_pages: int
    split_groups: int
    language_batches: int


@dataclass(frozen=True)
class FusionFacts:
    """The first stage fused again.

    Attributes:
        depth: the longest list of a retriever.
        lists: lists of a retriever for a question that hold fewer pages than `depth`.
        pages: fused rows.
        differing: fused rows whose page differs from the published one.
        largest_difference: the largest absolute difference of a published and a fused score.
    """

    depth: int
    short_lists: int
    rows: int
    differing: int
    largest_difference: float


def domain_facts(tree: ReleaseTree, benchmark: Benchmark, domain: str) -> DomainFacts:
    """Count a domain. Its pages' images are not read.

    Raises:
        InputError, DataError: a table is missing or broken.
    """
    languages = {language: f"{domain}__{language}" for language in benchmark.languages}
    native = languages[benchmark.domains[domain].native_language]
    qrels = {
        language: tree.table("qrels", subset=subset).select(*_PAIR, "score") for language, subset in languages.items()
    }
    questions = pl.concat(
        tree.table("queries", subset=subset).select(pl.col("id").alias("query-id"), language=pl.lit(language))
        for language, subset in languages.items()
    )
    pages = corpus_texts(tree, native)
    pool = tree.table("pool", split=domain)
    labels = pl.concat(qrels.values()).filter(pl.col("score") > 0)
    empty = pages.filter(pl.col("text") == "")["id"]
    groups = text_groups(pages)
    native_qrels = qrels[benchmark.domains[domain].native_language]
    injected = pool.filter("gt_injected")
    return DomainFacts(
        name=domain,
        label=benchmark.card.get("domain_labels", {}).get(domain, domain),
        native_language=benchmark.domains[domain].native_language,
        pages=pages.height,
        native_questions=native_qrels["query-id"].n_unique(),
        questions=questions.height,
        native_labels=native_qrels.filter(pl.col("score") > 0).height,
        labels=labels.height,
        pairs=pool.height,
        injected=injected.height,
        injected_questions=injected["query-id"].n_unique(),
        without_text=len(empty),
        without_text_in_pool=len(set(empty) & set(pool["corpus-id"].unique())),
        text_groups=groups["text"].n_unique(),
        grouped_pages=groups.height,
        split_groups=differing(groups, labels),
        language_batches=language_batches(questions),
    )


def corpus_texts(tree: ReleaseTree, subset: str) -> pl.DataFrame:
    """The pages of a subset's corpus: [id, text]."""
    files = tree.files("corpus", subset=subset)
    parts = [pl.from_arrow(batch) for file in files for batch in batches(file, ["id", "text"])]
    return pl.concat([part for part in parts if isinstance(part, pl.DataFrame)])


def text_groups(pages: pl.DataFrame) -> pl.DataFrame:
    """The pages whose text is another page's too, empty texts left out: [corpus-id, text, size] of their groups.

    Args:
        pages: [id, text].
    """
    repeated = pages.filter((pl.col("text") != "") & pl.col("text").is_duplicated())
    return repeated.select(pl.col("id").alias("corpus-id"), "text", pl.len().over("text").alias("size"))


def language_batches(questions: pl.DataFrame) -> int:
    """How often the blocks of languages repeat in the order of ids: 1 where each language is one block.

    Args:
        questions: [query-id, language].
    """
    ordered = canonical(questions)
    blocks = ordered.select(pl.col("language").rle().struct.field("value"))
    return int(blocks.group_by("value").len()["len"].max() or 0)  # type: ignore[arg-type]  # a count is an int


def fusion_facts(tree: ReleaseTree, benchmark: Benchmark) -> FusionFacts | None:
    """Fuse the published lists again and compare; None where the tree has no first stage."""
    if config_name("first_stage") not in tree.dataset.configs:
        return None
    found = [_fused_again(tree, benchmark, domain) for domain in benchmark.domains]
    depth = max(item.depth for item in found)
    return FusionFacts(
        depth,
        sum(item.short_lists for item in found),
        sum(item.rows for item in found),
        sum(item.differing for item in found),
        max(item.largest_difference for item in found),
    )


def _fused_again(tree: ReleaseTree, benchmark: Benchmark, domain: str) -> FusionFacts:
    table = tree.table("first_stage", split=domain)
    published = table.filter(pl.col("retriever") == FUSED)
    lists = table.filter(pl.col("retriever") != FUSED)
    query_ids = published["query-id"].unique(maintain_order=True).to_list()
    fused = fusion.fuse(
        lists,
        retrievers=benchmark.fusion.retrievers,
        k=benchmark.fusion.k,
        depth=benchmark.pool_size,
        query_ids=query_ids,
    )
    both = published.join(fused, on=["query-id", "rank"], how="full", suffix="_again", coalesce=True)
    lengths = lists.group_by("retriever", "query-id").len()["len"]
    differences = (both["score"] - both["score_again"]).abs()
    return FusionFacts(
        depth=int(lists["rank"].max() or 0),  # type: ignore[arg-type]  # a rank is an int
        # A retriever without any row for a query gave an empty list.
        short_lists=len(query_ids) * len(benchmark.fusion.retrievers) - int((lengths >= benchmark.pool_size).sum()),
        rows=published.height,
        differing=both.filter(pl.col("corpus-id").ne_missing(pl.col("corpus-id_again"))).height,
        largest_difference=float(differences.max() or 0.0),  # type: ignore[arg-type]  # a score is a float
    )
