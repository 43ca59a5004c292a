"""All that a card says, read from a tree on disk and its benchmark file: the templates do no arithmetic.

`read_facts` serves `release build` (the tree is written but for its card and manifest), `release card` and proof R2
alike, so what a build prints and what a proof recomputes come from the same tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from builder import documents
from builder.card_facts_judging import Calibration, StageFacts, calibration, stages
from builder.card_facts_pool import DomainFacts, FusionFacts, domain_facts, fusion_facts
from builder.card_facts_results import ResultFacts, result_facts
from builder.card_numbers import Declared
from builder.dataset_folder import DatasetFolder
from builder.layout import RELEASES, Config
from builder.tree import ReleaseTree
from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from builder.benchmark import Benchmark, Judge


@dataclass(frozen=True)
class KindFacts:
    """The configs of one kind: how many there are, their files' rows (a shared file once), their columns."""

    kind: str
    configs: int
    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Totals:
    """Sums over the domains, as in `DomainFacts`, and what is made of them.

    `injecting` counts domains with an injected page, `batched` those whose ids repeat the languages' blocks.
    """

    domains: int
    languages: int
    subsets: int
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
    batched: int


@dataclass(frozen=True)
class Change:
    """One line of what differs from the release before: `changed` of `of` things that `what` names."""

    what: str
    changed: int
    of: int


@dataclass(frozen=True)
class Relation:
    """What a diff found against the release before."""

    tag: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class CardFacts:
    """All that a card says.

    Attributes:
        benchmark: the benchmark file: names, wording, declared numbers.
        judge: whose gains these are.
        tag: the release's tag.
        configs: the card's configs.
        releases: the entries of releases.json, the own one last.
        kinds: the layout table.
        domains: one a domain.
        totals: over all domains.
        fusion: the first stage fused again; None where the tree has none.
        stages: the judge's windows; None where their account is not in the tree.
        calibration: item parameters and what they predict.
        results: None where the tree has no runs.
        declared: by key, what only the benchmark file can say.
        relation: None where there is no diff against a release before.
    """

    benchmark: Benchmark
    judge: Judge
    tag: str
    configs: Sequence[Config]
    releases: Sequence[Mapping[str, Any]]
    kinds: tuple[KindFacts, ...]
    domains: tuple[DomainFacts, ...]
    totals: Totals
    fusion: FusionFacts | None
    stages: tuple[StageFacts, ...] | None
    calibration: Calibration
    results: ResultFacts | None
    declared: Mapping[str, Declared]
    relation: Relation | None = None


def read_facts(
    path: Path, benchmark: Benchmark, configs: Sequence[Config], relation: Relation | None = None
) -> CardFacts:
    """Read what a card says from the tables and documents of a tree.

    Args:
        path: the tree; its card and manifest are not read.
        benchmark: its benchmark file.
        configs: its configs.
        relation: what a diff against the release before found; by default what the tree's own entry of releases.json
            says (proof C3 holds it to the predecessor's tree).

    Raises:
        InputError, DataError: a table or document is missing or broken, or the tree is not of this benchmark.
    """
    tree = ReleaseTree(path, DatasetFolder(path, {config.name: config.files for config in configs}))
    if tree.releases.get("benchmark") != benchmark.name:
        raise DataError(
            f"the tree is of benchmark '{tree.releases.get('benchmark')}', not of '{benchmark.name}'",
            where=Where(str(path / RELEASES), column="benchmark"),
            remedy="name the tree's benchmark file with --benchmark.",
        )
    releases = documents.read_as(path / RELEASES, "releases")["releases"]
    judge = benchmark.judge(releases[-1]["judge"]["name"])
    account = tree.windows(judge.name)
    domains = tuple(domain_facts(tree, benchmark, domain) for domain in benchmark.domains)
    return CardFacts(
        benchmark=benchmark,
        judge=judge,
        tag=releases[-1]["tag"],
        configs=configs,
        releases=releases,
        kinds=_kinds(path, configs),
        domains=domains,
        totals=_totals(benchmark, domains),
        fusion=fusion_facts(tree, benchmark),
        stages=None if account is None else stages(account),
        calibration=calibration(tree, benchmark, judge.name),
        results=result_facts(tree, benchmark),
        declared=_declared(benchmark),
        relation=relation or _relation(releases[-1]),
    )


def _relation(entry: Mapping[str, Any]) -> Relation | None:
    said = entry.get("relation")
    return None if said is None else Relation(said["tag"], tuple(Change(**change) for change in said["changes"]))


def _kinds(path: Path, configs: Sequence[Config]) -> tuple[KindFacts, ...]:
    found = []
    for kind in dict.fromkeys(config.kind for config in configs):
        files = [
            file
            for config in configs
            if config.kind == kind
            for split_files in config.files.values()
            for file in split_files
        ]
        rows = sum(pq.read_metadata(path / file).num_rows for file in dict.fromkeys(files))
        columns = tuple(pq.read_schema(path / files[0]).names)
        found.append(KindFacts(kind, sum(config.kind == kind for config in configs), rows, columns))
    return tuple(found)


def _totals(benchmark: Benchmark, domains: Sequence[DomainFacts]) -> Totals:
    def total(name: str) -> int:
        return sum(getattr(domain, name) for domain in domains)

    return Totals(
        domains=len(domains),
        languages=len(benchmark.languages),
        subsets=len(domains) * len(benchmark.languages),
        pages=total("pages"),
        native_questions=total("native_questions"),
        questions=total("questions"),
        native_labels=total("native_labels"),
        labels=total("labels"),
        pairs=total("pairs"),
        injected=total("injected"),
        injected_questions=total("injected_questions"),
        without_text=total("without_text"),
        without_text_in_pool=total("without_text_in_pool"),
        text_groups=total("text_groups"),
        grouped_pages=total("grouped_pages"),
        split_groups=total("split_groups"),
        batched=sum(domain.language_batches > 1 for domain in domains),
    )


def _declared(benchmark: Benchmark) -> dict[str, Declared]:
    declared = benchmark.card.get("declared", {})
    return {key: Declared(entry["value"], entry["source"]) for key, entry in declared.items()}
