"""C1: front matter, manifest and files agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builder.dataset_folder import front_matter
from builder.layout import MANIFEST, README, SUBSET_KINDS, config_name
from builder.proofs.facts import UnprovableError
from builder.proofs.outcome import Coverage, Finding, Gap, Warn, fault
from builder.proofs.registry import proof
from provenance.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from builder.proofs.facts import Facts

MOST_SPLITS = 30
LONGEST_FRONT_MATTER = 200_000
LONGEST_CARD = 10 * 2**20
_ALWAYS = ("pool", "first_stage", "runs")


@proof("C1", "front matter, manifest and files agree, each pattern matching exactly its files")
def card(facts: Facts) -> Iterator[Finding]:
    """Proves that the card's configs are ones that `datasets` can read, and that each names files that are there.

    Every Parquet file has a config; configs, splits and files are the manifest's, and the benchmark file's.

    It does not prove that a config loads: that is `verify --level load`.
    """
    front = facts.front
    for rule, value, message in front.faults:
        yield fault(rule, message, file=README, column="configs", value=value)
    named = {file for splits in front.configs.values() for files in splits.values() for file in files}
    yield Coverage(files=len(named))
    yield from _without_config(facts, named)
    yield from _not_strings(facts)
    yield from _against_manifest(facts)
    yield from _against_benchmark(facts)
    yield from _limits(facts)


def _without_config(facts: Facts, named: set[str]) -> Iterator[Finding]:
    for file in facts.files:
        if file.endswith(".parquet") and file not in named:
            yield fault("no-config", "no config of the card names this file", file=file)


def _not_strings(facts: Facts) -> Iterator[Finding]:
    """YAML 1.1 reads `no` as a boolean and `1e3` as a number: names that are lists of strings must hold strings."""
    if not facts.front.configs:
        return
    try:
        parsed: Mapping[str, Any] = front_matter(facts.path / README)
    except DataError:
        return  # one of `front.faults`
    for key in ("license", "pretty_name", "language", "tags", "task_categories"):
        values = parsed.get(key)
        for value in values if isinstance(values, list) else [] if values is None else [values]:
            if not isinstance(value, str):
                message = f"'{key}' holds a value that YAML does not read as a string: quote it"
                yield fault("not-a-string", message, file=README, column=key, value=value)


def _against_manifest(facts: Facts) -> Iterator[Finding]:
    try:
        listed = facts.manifest["configs"]
    except UnprovableError as error:
        yield Gap(str(error))
        return
    declared = {
        config["config_name"]: {item["split"]: tuple(item["path"]) for item in config["data_files"]}
        for config in listed
    }
    found = facts.front.configs
    for name, splits in declared.items():
        if name not in found:
            yield fault("manifest-config", "the manifest has this config, the card has not", config=name, file=README)
        elif found[name] != splits:
            message = f"the card's files of this config are not the manifest's ({_files(splits)})"
            yield fault("manifest-config", message, config=name, file=README, value=_files(found[name]))
    for name in found:
        if name not in declared:
            yield fault("manifest-config", "the card has this config, the manifest has not", config=name, file=README)
    missing = {file for splits in declared.values() for files in splits.values() for file in files} - set(facts.files)
    for file in sorted(missing):
        yield fault(
            "manifest-file", "a config of the manifest names a file that is not there", file=MANIFEST, value=file
        )


def _files(splits: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{split}: {', '.join(files) or 'none'}" for split, files in splits.items())


def _against_benchmark(facts: Facts) -> Iterator[Finding]:
    if not facts.has_benchmark:
        yield Gap("no benchmark file says which configs there should be")
        return
    benchmark = facts.benchmark
    wanted = {
        config_name(kind, subset.name): (benchmark.split,) for subset in benchmark.subsets() for kind in SUBSET_KINDS
    }
    provenance = {name: tuple(benchmark.domains) for name in map(config_name, _ALWAYS)}
    found = {name: tuple(splits) for name, splits in facts.front.configs.items()}
    for name, splits in (wanted | provenance).items():
        if name not in found:
            yield fault("benchmark-config", "the benchmark file asks for this config", config=name, file=README)
        elif sorted(found[name]) != sorted(splits):
            message = f"the benchmark file asks for the split(s) {', '.join(splits)}"
            yield fault("benchmark-config", message, config=name, file=README, value=", ".join(found[name]))
    for name in found:
        foreign = name not in wanted and not name.startswith("provenance-")
        if foreign and name.endswith(tuple(f"-{kind}" for kind in SUBSET_KINDS)):
            yield fault("benchmark-config", "the benchmark file has no such subset", config=name, file=README)


def _limits(facts: Facts) -> Iterator[Finding]:
    front = facts.front
    for name, splits in front.configs.items():
        if len(splits) > MOST_SPLITS:
            yield Warn("splits", f"{name} has {len(splits)} splits; the Hub's viewer shows no more than {MOST_SPLITS}")
    if front.size > LONGEST_FRONT_MATTER:
        yield Warn(
            "front-matter", f"{front.size:,} bytes of front matter; the Hub has refused cards of this kind (413)"
        )
    card = facts.path / README
    if card.is_file() and card.stat().st_size > LONGEST_CARD:
        yield Warn("card", f"README.md has {card.stat().st_size:,} bytes; the Hub takes no more than {LONGEST_CARD:,}")
