"""Fetching what a build needs of its inputs, and no more: the card first, then the files of the configs it names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from builder.dataset_folder import open_dataset
from builder.demo import default_cache
from builder.layout import PROVENANCE_KINDS, README, config_name
from builder.sources import Source, resolve
from builder.upstream import needed_configs
from provenance.errors import InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from builder.benchmark import Benchmark, Judge
    from builder.dataset_folder import DatasetFolder

DOCUMENTS = "provenance/*.json"


def fetch_upstream(benchmark: Benchmark, domain: str, cache: Path | None = None) -> Source:
    """A domain's upstream on disk: its card and the files of the configs that `read_upstream` reads.

    Raises:
        InputError, DataError, SafetyError: as `sources.resolve`.
    """
    item = benchmark.domains[domain]
    cache = cache or default_cache()
    if _is_local(item.upstream):
        return replace(resolve(item.upstream, cache=cache), uri=item.upstream_as_written)
    card = resolve(item.upstream, cache=cache, patterns=[README])
    dataset = open_dataset(card.path)
    wanted = [
        pattern for config in needed_configs(benchmark, item) for pattern in dataset.patterns(config, benchmark.split)
    ]
    return resolve(item.upstream, cache=cache, patterns=[README, *wanted])


def fetch_inputs(judge: Judge, override: str | None, cache: Path | None = None) -> Source:
    """A judge's inputs on disk; of a release everything but its corpora, of a pipeline everything.

    Args:
        judge: whose inputs.
        override: another address than the benchmark file's.
        cache: the folder of the cache.

    Raises:
        InputError, DataError, SafetyError: as `sources.resolve`, and where no address is known.
    """
    uri, written = (override, override) if override is not None else (judge.inputs, judge.inputs_as_written)
    if uri is None or written is None:
        raise InputError(
            f"judge '{judge.name}' has no inputs in the benchmark file",
            where=Where(column=f"judges.{judge.name}.inputs"),
            remedy="name them with --inputs.",
        )
    cache = cache or default_cache()
    if _is_local(uri):
        return replace(resolve(uri, cache=cache), uri=written)
    if not uri.startswith("hf://"):
        return resolve(uri, cache=cache)
    card = resolve(uri, cache=cache, patterns=[README])
    return resolve(uri, cache=cache, patterns=[README, DOCUMENTS, *_release_files(open_dataset(card.path))])


def _release_files(dataset: DatasetFolder) -> Iterable[str]:
    """The patterns of a release's qrels and provenance configs."""
    provenance = {config_name(kind) for kind in PROVENANCE_KINDS}
    for name, splits in dataset.configs.items():
        if name in provenance or name.endswith("-qrels"):
            for patterns in splits.values():
                yield from patterns


def _is_local(uri: str) -> bool:
    return "://" not in uri or uri.startswith("demo://")
