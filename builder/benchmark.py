"""The benchmark file: the only place that knows domain names, upstream pins, judges and wording (DESIGN section 2)."""

from __future__ import annotations

import difflib
import hashlib
import math
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import json_schemas
from provenance.errors import BenchmarkError, InputError, Where
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema.exceptions import ValidationError

DEFAULT = "vidore_v3"
_DEEPEST = 20


@dataclass(frozen=True)
class Domain:
    """One corpus with its questions in every language.

    `upstream` is a URI, absolute where it is a folder; `upstream_as_written` is what a release records, so that a
    tree does not depend on where the benchmark file lies.
    """

    name: str
    native_language: str
    task: str
    upstream: str
    upstream_as_written: str
    mteb_domains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subset:
    """A domain in one query language: four configs of a release."""

    domain: str
    language: str

    @property
    def name(self) -> str:
        """The subset's name, `<domain>__<language>`."""
        return f"{self.domain}__{self.language}"


@dataclass(frozen=True)
class Judge:
    """Whose judgements gains come from; `inputs` is a URI or None (then `--inputs` must say), as for `Domain`."""

    name: str
    model: str
    slug: str
    simulated: bool
    inputs: str | None
    inputs_as_written: str | None


@dataclass(frozen=True)
class Fusion:
    """Reciprocal rank fusion: its constant and the retrievers in their contractual order."""

    k: int
    retrievers: tuple[str, ...]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark file, checked against `schemas/benchmark.schema.json`."""

    name: str
    title: str
    repo: str
    task_prefix: str
    split: str
    pool_size: int
    languages: Mapping[str, str]
    fusion: Fusion
    domains: Mapping[str, Domain]
    judges: Mapping[str, Judge]
    rerankers: Mapping[str, str]
    card: Mapping[str, Any]
    expected: Mapping[str, Any]
    mteb: Mapping[str, Any]
    path: str = field(compare=False)
    sha256: str = field(compare=False)
    embedded: bool = field(default=False, compare=False)

    def subsets(self) -> Iterator[Subset]:
        """Every subset, domains in file order, languages in file order."""
        for domain in self.domains:
            for language in self.languages:
                yield Subset(domain, language)

    def task_name(self, domain: str, view: str = "Reranking", *, text_only: bool = False) -> str:
        """The mteb task of a domain: `<prefix><Domain>RCP<view>`, with `OCR` where only text is read (section 16.4)."""
        return f"{self.task_prefix}{self.domains[domain].task}RCP{view}{'OCR' if text_only else ''}"

    def task_names(self) -> tuple[str, ...]:
        """Every task of a release: both views, with and without images, domains in file order."""
        return tuple(
            self.task_name(domain, view, text_only=text_only)
            for view in ("Reranking", "Retrieval")
            for text_only in (False, True)
            for domain in self.domains
        )

    def judge(self, name: str) -> Judge:
        """The judge called `name`.

        Raises:
            InputError: the benchmark file has no such judge.
        """
        if name not in self.judges:
            near = difflib.get_close_matches(name, self.judges, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"the file names {', '.join(sorted(self.judges))}."
            raise InputError(
                f"benchmark '{self.name}' has no judge '{name}': {hint}",
                where=Where(self.path, column="judges"),
                remedy="name one of the file's judges with --judge, or add a [judges.NAME] table to it.",
            )
        return self.judges[name]


def load_benchmark(name: str = DEFAULT) -> Benchmark:
    """Read an embedded benchmark by name, or a file by path (anything ending in `.toml` or holding a `/`).

    Raises:
        InputError: no such benchmark or file.
        BenchmarkError: the file is no TOML or breaks the schema; each fault is named with its path.
    """
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise InputError("no such benchmark file", where=Where(name), remedy="check the path of --benchmark.")
        return parse_benchmark(path.read_bytes(), source=path)
    folder = resources.files("builder") / "benchmarks"
    embedded = {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
    if name not in embedded:
        raise InputError(
            f"no embedded benchmark is called '{name}' (there are: {', '.join(sorted(embedded))})",
            remedy="name one of these, or give the path of a .toml file.",
        )
    with resources.as_file(embedded[name]) as path:
        return replace(parse_benchmark(path.read_bytes(), source=path), embedded=True)


def parse_benchmark(content: bytes, *, source: Path) -> Benchmark:
    """Parse and check a benchmark file; relative `upstream` and `inputs` are resolved against the folder of `source`.

    Raises:
        BenchmarkError: see `load_benchmark`.
    """
    where = str(source)
    try:
        document = tomllib.loads(content.decode("utf-8"))
        odd = list(_odd_values(document))
    except (ValueError, RecursionError) as error:
        # TOMLDecodeError, UnicodeDecodeError, and an integer of so many digits that Python does not read it.
        raise BenchmarkError(
            f"not a TOML file: {error}", where=Where(where), remedy="mend the line that the message names."
        ) from error
    faults = odd or [_describe(error) for error in json_schemas.errors(document, "benchmark")]
    faults = faults or [*_cross_checks(document), *_address_checks(document)]
    if faults:
        raise BenchmarkError(
            "the benchmark file breaks its schema:\n    " + "\n    ".join(sorted(faults)),
            where=Where(where),
            remedy="mend each line above; builder/schemas/benchmark.schema.json describes every key.",
        )
    return _construct(document, source, hashlib.sha256(content).hexdigest())


def _construct(document: dict[str, Any], source: Path, sha256: str) -> Benchmark:
    base = source.parent

    def resolve(uri: str) -> str:
        return uri if "://" in uri else str((base / uri).resolve())

    fusion = document["fusion"]
    return Benchmark(
        name=document["name"],
        title=document["title"],
        repo=document["repo"],
        task_prefix=document.get("task_prefix", ""),
        split=document["split"],
        pool_size=document["pool_size"],
        languages=dict(document["languages"]),
        fusion=Fusion(k=fusion["k"], retrievers=tuple(fusion["retrievers"])),
        domains={
            name: Domain(
                name,
                table["native_language"],
                table["task"],
                resolve(table["upstream"]),
                table["upstream"],
                tuple(table.get("mteb_domains", ())),
            )
            for name, table in document["domains"].items()
        },
        judges={
            name: Judge(
                name,
                table["model"],
                table["slug"],
                table.get("simulated", False),
                resolve(table["inputs"]) if "inputs" in table else None,
                table.get("inputs"),
            )
            for name, table in document["judges"].items()
        },
        rerankers=dict(document.get("rerankers", {})),
        card=document.get("card", {}),
        expected=document.get("expected", {}),
        mteb=document.get("mteb", {}),
        path=str(source),
        sha256=sha256,
    )


def _odd_values(node: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Values that TOML can write and nothing here can use."""
    if len(path) > _DEEPEST:
        yield f"{path[0]}: nested deeper than {_DEEPEST}"
    elif isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _odd_values(child, (*path, str(key)))
    elif isinstance(node, float) and not math.isfinite(node):
        yield f"{'.'.join(path)}: {node} is not a finite number"
    elif isinstance(node, int) and not -(2**63) <= node < 2**63:
        yield f"{'.'.join(path)}: an integer that does not fit 64 bits"


def _address_checks(document: dict[str, Any]) -> Iterator[str]:
    """Addresses that no file system takes."""
    for table, key in (("domains", "upstream"), ("judges", "inputs")):
        for name, entry in document[table].items():
            if "\0" in entry.get(key, ""):
                yield f"{table}.{name}.{key}: an address with a NUL character"


def _cross_checks(document: dict[str, Any]) -> Iterator[str]:
    """Rules between keys, which JSON Schema does not express."""
    for name, domain in document["domains"].items():
        if domain["native_language"] not in document["languages"]:
            yield f"domains.{name}.native_language: '{domain['native_language']}' is not among [languages]"
        if name == "provenance":
            yield "domains.provenance: the name is taken by the provenance configs"
    tasks = [domain["task"] for domain in document["domains"].values()]
    for task in sorted({task for task in tasks if tasks.count(task) > 1}):
        yield f"domains: two domains have the task name '{task}'"
    slugs = [judge["slug"] for judge in document["judges"].values()]
    for slug in sorted({slug for slug in slugs if slugs.count(slug) > 1}):
        yield f"judges: two judges have the slug '{slug}', so their tags could not be told apart"
    for slug in slugs:
        if ".." in slug or slug.endswith(".lock"):
            yield f"judges: git takes no tag with the slug '{slug}' (it holds '..', or ends in '.lock')"
    expected = document.get("expected", {}).get("domains", {})
    for name in expected:
        if name not in document["domains"]:
            yield f"expected.domains.{name}: no such domain"


def _describe(error: ValidationError) -> str:
    """`path: message`, with the nearest right key where a key is unknown or missing."""
    path = ".".join(str(part) for part in error.absolute_path) or "(top level)"
    if error.validator != "additionalProperties" or not (
        isinstance(error.schema, dict) and isinstance(error.instance, dict)
    ):
        return f"{path}: {json_schemas.shorten(error.message)}"
    known = list(error.schema.get("properties", {}))
    lines = []
    for key in sorted(set(error.instance) - set(known)):
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
        lines.append(f"{path}: unknown key {quoted(key)} ({hint})")
    return "; ".join(lines)
