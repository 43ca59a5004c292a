"""Upstream data of one domain: pages, questions by language, human labels (method spec section 1)."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from builder.layout import SCHEMAS
from builder.tables import CORPUS_METADATA, IMAGE_ROWS, batches, check_columns, open_parquet, read_frame, write_tables
from provenance import checks
from provenance.errors import DataError, Where
from provenance.ids import canonical, id_number
from provenance.shown import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from builder.benchmark import Benchmark, Domain
    from builder.dataset_folder import DatasetFolder

_NO_PAGES = pl.DataFrame(schema=dict.fromkeys(("id", "text", "sha256", "path"), pl.String))
_LABELS = pa.schema([("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.int64())])


@dataclass(frozen=True)
class Pages:
    """A domain's corpus: where its files lie, and what of it fits in memory.

    `frame` has one row a page in file order: id, text, `sha256` (hex, of the image's stored bytes), path.
    """

    files: tuple[Path, ...]
    frame: pl.DataFrame


@dataclass(frozen=True)
class UpstreamDomain:
    """One domain: its pages, `queries[language]` (id, text; canonical order) and `labels[language]`.

    `labels` holds that language's rows only: query-id, corpus-id, score (int64, > 0), canonical order.
    """

    pages: Pages
    queries: Mapping[str, pl.DataFrame]
    labels: Mapping[str, pl.DataFrame]

    def all_queries(self) -> pl.DataFrame:
        """Every language's questions with their `language`, canonical order."""
        frames = [frame.with_columns(pl.lit(name).alias("language")) for name, frame in self.queries.items()]
        return pl.concat(frames).sort([id_number("id"), "id"])

    def all_labels(self) -> pl.DataFrame:
        """Every language's labels, canonical order."""
        return canonical(pl.concat(list(self.labels.values())), "corpus-id")


def needed_configs(benchmark: Benchmark, domain: Domain) -> tuple[str, ...]:
    """The upstream configs that a domain is read from; the corpus is the same in all languages and read once."""
    per_language = (f"{language}-{kind}" for language in benchmark.languages for kind in ("queries", "qrels"))
    return (f"{domain.native_language}-corpus", *per_language)


def read_upstream(benchmark: Benchmark, domain: Domain, folder: DatasetFolder) -> UpstreamDomain:
    """Read and check one domain.

    The language of a question is the config it stands in; a `language` column must agree. Each `<language>-qrels`
    holds all languages' rows upstream and is cut to the language's own questions.

    Raises:
        InputError, DataError: a file is missing or broken; an id is null, repeated or joins nothing; a page without
            image bytes; a label that is not positive; a language column that disagrees with its config.
    """
    split = benchmark.split
    files = folder.files(f"{domain.native_language}-corpus", split)
    pages = read_pages(files)
    _refuse_ids(pages.frame, "corpus", split, files[0] if len(files) == 1 else files[0].parent)
    queries: dict[str, pl.DataFrame] = {}
    labels: dict[str, pl.DataFrame] = {}
    seen: dict[str, str] = {}
    for language in benchmark.languages:
        files = folder.files(f"{language}-queries", split)
        queries[language] = _read_queries(files, language, split, seen)
    known = set(seen)
    for language in benchmark.languages:
        files = folder.files(f"{language}-qrels", split)
        labels[language] = _read_labels(files, queries[language], known, pages.frame["id"])
    return UpstreamDomain(pages, queries, labels)


def read_pages(files: Sequence[Path]) -> Pages:
    """Read a corpus without keeping its images: they are hashed as stored bytes, never decoded.

    Raises:
        DataError: wrong columns or types, a null id or text, a repeated id, an image without bytes.
    """
    frames = []
    for file in files:
        with open_parquet(file) as parquet:
            _check_corpus_schema(parquet.schema_arrow, file)
        check_columns(file, SCHEMAS["corpus"])
        digests, row = [_NO_PAGES], 0
        for batch in batches(file, ["id", "image", "text"], rows=256):
            digests.append(_digest_pages(batch, file, row))
            row += batch.num_rows
        pages = pl.concat(digests)
        checks.refuse_repeats(pages, ["id"], column="id", file=str(file))
        frames.append(pages)
    frame = pl.concat(frames)
    repeated = frame.filter(pl.col("id").is_duplicated())
    if repeated.height:
        raise DataError(
            "a page id stands in two files of the corpus",
            where=Where(str(files[0]), column="id", value=repeated["id"][0]),
            remedy="ids must be unique in a corpus.",
        )
    return Pages(tuple(files), frame)


def write_corpus(pages: Pages, folder: Path) -> tuple[str, ...]:
    """Put a corpus into `folder` as `corpus-00000-of-0000N.parquet`; returns the file names.

    A file whose schema is already ours is copied byte for byte; else its columns are rewritten, image bytes and paths
    untouched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(f"corpus-{index:05}-of-{len(pages.files):05}.parquet" for index in range(len(pages.files)))
    for source, name in zip(pages.files, names, strict=True):
        if is_ours(source):
            shutil.copyfile(source, folder / name)
        else:
            pages_of = (
                pa.Table.from_batches([batch]) for batch in batches(source, ["id", "image", "text"], rows=IMAGE_ROWS)
            )
            write_tables(pages_of, "corpus", folder / name)
    return names


def is_ours(file: Path) -> bool:
    """Whether a corpus file has exactly our columns, types, order and feature metadata."""
    with open_parquet(file) as parquet:
        schema = parquet.schema_arrow
    return bool(schema.equals(SCHEMAS["corpus"].with_metadata(CORPUS_METADATA), check_metadata=True))


def _check_corpus_schema(schema: pa.Schema, file: Path) -> None:
    for name in ("image", "id", "text"):
        if name not in schema.names:
            raise DataError(
                f"column '{name}' is missing (there are: {', '.join(schema.names)})",
                where=Where(str(file), column=name),
                remedy="the corpus needs image, id and text: use the upstream that carries the page text.",
            )
        if schema.names.count(name) > 1:
            raise DataError(
                f"column '{name}' stands twice", where=Where(str(file), column=name), remedy="write each column once."
            )
    kind = schema.field("image").type
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"bytes", "path"}:
        raise DataError(
            f"column 'image' is {kind}, expected a struct of bytes and path",
            where=Where(str(file), column="image"),
            remedy="store pages as the Hub's Image feature does, embedded.",
        )


def _digest_pages(batch: pa.RecordBatch, file: Path, first: int) -> pl.DataFrame:
    images = batch.column("image")
    digests = []
    for offset, content in enumerate(images.field("bytes")):
        view = content.as_buffer() if content.is_valid else None
        if view is None or view.size == 0:
            raise DataError(
                "a page has no image bytes",
                where=Where(str(file), first + offset, "image", images.field("path")[offset].as_py()),
                remedy="embed the image in the file: a path alone is nothing that can be released.",
            )
        digests.append(hashlib.sha256(view).hexdigest())
    frame = pl.DataFrame(
        {
            "id": pl.Series(batch.column("id").to_pylist(), dtype=pl.String),
            "text": pl.Series(batch.column("text").to_pylist(), dtype=pl.String),
            "sha256": pl.Series(digests, dtype=pl.String),
            "path": pl.Series(images.field("path").to_pylist(), dtype=pl.String),
        }
    )
    for name in ("id", "text"):
        missing = frame[name].is_null().arg_true()
        if missing.len():
            raise DataError(
                f"column '{name}' is null",
                where=Where(str(file), first + int(missing[0]), name, "null"),
                remedy='an empty text is "", never null.' if name == "text" else "every page needs an id.",
            )
    return frame


def _read_queries(files: Sequence[Path], language: str, split: str, seen: dict[str, str]) -> pl.DataFrame:
    frames = []
    for file in files:
        with open_parquet(file) as parquet:
            names = parquet.schema_arrow.names
        columns = ["id", "text", *(["language"] if "language" in names else [])]
        frame = read_frame(file, pa.schema([(name, pa.string()) for name in columns]))
        for row, identifier in enumerate(frame["id"].to_list()):
            if identifier in seen:
                raise DataError(
                    f"query {quoted(identifier)} stands twice (first in the {seen[identifier]} queries)",
                    where=Where(str(file), row, "id", identifier),
                    remedy="a query id names one question in one language of a domain.",
                )
            seen[identifier] = language
        _refuse_ids(frame, "query", split, file)
        checks.refuse(
            frame,
            pl.col("text") == "",
            "a question without text",
            column="text",
            file=str(file),
            remedy="a question is never empty: mend it upstream.",
            context=["id"],
        )
        if "language" in names:
            checks.refuse(
                frame,
                pl.col("language") != language,
                f"a query of the {language} config is in another language",
                column="language",
                file=str(file),
                remedy="the upstream configs and their language column must agree.",
                context=["id"],
            )
        frames.append(frame.select("id", "text"))
    return pl.concat(frames).sort([id_number("id"), "id"])


def _refuse_ids(frame: pl.DataFrame, kind: str, split: str, file: Path) -> None:
    """Ids have the upstream form `<kind>-<split>-<number>` in ASCII (method spec section 1.1), as proof S2 has it."""
    checks.refuse(
        frame,
        ~pl.col("id").str.contains(rf"\A{kind}-{split}-(0|[1-9][0-9]*)\z"),
        f"an id that is not of the form {kind}-{split}-<number>",
        column="id",
        file=str(file),
        remedy="keep the ids of the upstream dataset: they join it.",
    )


def _read_labels(files: Sequence[Path], queries: pl.DataFrame, known: set[str], page_ids: pl.Series) -> pl.DataFrame:
    frames = []
    for file in files:
        frame, name = read_frame(file, _LABELS), str(file)
        checks.refuse_unknown(frame, "query-id", known, "the domain's questions", file=name)
        checks.refuse_unknown(frame, "corpus-id", page_ids.to_list(), "the domain's pages", file=name)
        checks.refuse_repeats(frame, ["query-id", "corpus-id"], column="corpus-id", file=name)
        checks.refuse(
            frame,
            pl.col("score") <= 0,
            "a label is not positive",
            column="score",
            file=name,
            remedy="upstream labels are positives only; a page without a label has no row.",
            context=["query-id", "corpus-id"],
        )
        frames.append(frame)
    own = pl.concat(frames).filter(pl.col("query-id").is_in(queries["id"].implode()))
    return canonical(own, "corpus-id")
