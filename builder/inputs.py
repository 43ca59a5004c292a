"""Judge inputs: a pipeline's outputs, or a release tree whose gains were made elsewhere (DESIGN section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
import pyarrow as pa

from builder import documents, slices
from builder.layout import FUSED, MANIFEST, README, RELEASES, SCHEMAS, config_name
from builder.releases_document import FORMAT
from builder.tables import batches, check_columns, read_frame, readable, refuse_bad_values
from builder.tree import open_tree
from provenance.errors import DataError, InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from builder.tree import ReleaseTree

ANSWERS = pa.schema(
    [
        ("query-id", pa.string()),
        ("call_index", pa.int64()),
        ("phase", pa.string()),
        ("corpus-ids", pa.list_(pa.string())),
        ("answer", pa.string()),
        ("finish_reason", pa.string()),
    ]
)
RUNS = pa.schema(
    [("model", pa.string()), ("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.float64())]
)
"""A run's rows as a pipeline stores them; a null score is kept."""
_GAINS = pa.schema(
    [
        ("domain", pa.string()),
        ("query-id", pa.string()),
        ("corpus-id", pa.string()),
        ("theta", pa.float64()),
        ("gain", pa.float64()),
    ]
)


@dataclass(frozen=True)
class ReadyGains:
    """Gains made elsewhere, of one domain.

    `gains` has query-id, corpus-id, theta, gain; `criteria` (in pieces, read anew each time they are gone through) and
    `calibration` are None where the inputs lack them.
    """

    gains: pl.DataFrame
    criteria: Iterable[pl.DataFrame] | None
    calibration: pl.DataFrame | None


@dataclass(frozen=True)
class RunFiles:
    """Where a domain's runs lie; `positioned` files say each row's stored place, others by the order of their rows."""

    paths: tuple[Path, ...]
    positioned: bool


@dataclass(frozen=True)
class Pieces:
    """A table of a release, a row group at a time; each iteration reads it anew."""

    paths: tuple[Path, ...]
    kind: str

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The pieces in file order.

        Raises:
            InputError, DataError: as `tables.read_frame`.
        """
        schema = SCHEMAS[self.kind]
        for path in self.paths:
            check_columns(path, schema)
            for batch in batches(path, schema.names):
                with readable(path):
                    table = pa.Table.from_batches([batch]).cast(schema)
                frame = pl.DataFrame(pl.from_arrow(table))
                refuse_bad_values(frame, path)
                yield frame


class JudgeInputs(Protocol):
    """What the builder asks of judge inputs; every table is one domain's."""

    path: Path

    def first_stage(self, domain: str) -> tuple[pl.DataFrame, str]:
        """Rows retriever, query-id, corpus-id, rank, score, and the file to name in messages."""

    def runs(self, domain: str) -> RunFiles:
        """Where the domain's runs lie."""

    def pool(self, domain: str) -> pl.DataFrame | None:
        """The published pool, where the inputs are a release."""

    def ready_gains(self, domain: str) -> ReadyGains | None:
        """Gains made elsewhere, or None where they are to be fitted."""

    def item_params(self) -> dict[str, Any]:
        """The item parameters that belong to `ready_gains`."""

    def windows(self) -> dict[str, Any] | None:
        """The account of windows that came with gains made elsewhere, if any."""

    def made(self) -> str:
        """How gains that are not fitted now were made: `here` (by this tool, before) or `elsewhere`."""

    def answers(self, stage: str, domain: str) -> Path:
        """The file of raw answers of a stage (`tournament` or `rubric`); InputError where there is none."""

    def files(self) -> Sequence[Path]:
        """Every file that was read for this judge, for the record of inputs."""


class PipelineInputs:
    """`first_stage/`, `judgements/<judge>/{tournament,rubric}/`, `runs/`; or `calibration/<judge>/` made elsewhere."""

    def __init__(self, path: Path, judge: str) -> None:
        self.path = path
        self._judge = judge
        self._calibration = path / "calibration" / judge
        if not self._calibration.is_dir() and not (path / "judgements" / judge).is_dir():
            raise InputError(
                f"the inputs hold neither judgements/{judge} nor calibration/{judge}",
                where=Where(str(path)),
                remedy="check --judge and --inputs.",
            )

    def first_stage(self, domain: str) -> tuple[pl.DataFrame, str]:
        """See `JudgeInputs`."""
        path = self.path / "first_stage" / f"{domain}.parquet"
        return read_frame(path, SCHEMAS["first_stage"]), str(path)

    def runs(self, domain: str) -> RunFiles:
        """See `JudgeInputs`."""
        return RunFiles((self.path / "runs" / f"{domain}.parquet",), positioned=False)

    def pool(self, domain: str) -> pl.DataFrame | None:  # noqa: ARG002 - a pipeline's pool is made here
        """See `JudgeInputs`."""
        return None

    def ready_gains(self, domain: str) -> ReadyGains | None:
        """See `JudgeInputs`."""
        if not self._calibration.is_dir():
            return None
        own = slices.by_value([self._calibration / "gains.parquet"], "domain", _GAINS).get(domain)
        gains = slices.read(own, _GAINS)[0] if own is not None else pl.DataFrame(pl.from_arrow(_GAINS.empty_table()))
        return ReadyGains(gains.drop("domain"), criteria=None, calibration=None)

    def item_params(self) -> dict[str, Any]:
        """See `JudgeInputs`."""
        path = self._calibration / "item_params.json"
        document: dict[str, Any] = documents.read_as(path, "item_params")
        return document

    def windows(self) -> dict[str, Any] | None:
        """See `JudgeInputs`."""
        return None

    def made(self) -> str:
        """See `JudgeInputs`."""
        return "elsewhere"

    def answers(self, stage: str, domain: str) -> Path:
        """See `JudgeInputs`."""
        return documents.present(self.path / "judgements" / self._judge / stage / f"{domain}.parquet")

    def files(self) -> Sequence[Path]:
        """See `JudgeInputs`."""
        folders = ["first_stage", "runs"]
        folders.append(f"calibration/{self._judge}" if self._calibration.is_dir() else f"judgements/{self._judge}")
        return sorted(file for folder in folders for file in _below(self.path / folder))


class TreeInputs:
    """A release tree: its own provenance and qrels; gains made elsewhere are checked, never refitted."""

    def __init__(self, tree: ReleaseTree, judge: str) -> None:
        self.path = tree.path
        self._tree = tree
        self._judge = judge

    def first_stage(self, domain: str) -> tuple[pl.DataFrame, str]:
        """See `JudgeInputs`."""
        frame = self._tree.table("first_stage", split=domain)
        return frame, str(self._tree.files("first_stage", split=domain)[0])

    def runs(self, domain: str) -> RunFiles:
        """See `JudgeInputs`."""
        return RunFiles(self._tree.files("runs", split=domain), positioned=True)

    def pool(self, domain: str) -> pl.DataFrame | None:
        """See `JudgeInputs`."""
        return self._tree.table("pool", split=domain) if self._tree.has("pool") else None

    def ready_gains(self, domain: str) -> ReadyGains:
        """See `JudgeInputs`."""
        subsets = [subset for subset in self._tree.subsets() if subset.rsplit("__", 1)[0] == domain]
        if not subsets:
            raise DataError(
                f"the release has no subset of domain '{domain}'",
                where=Where(str(self.path / README)),
                remedy="check that --inputs names a release of this benchmark.",
            )
        columns = ["query-id", "corpus-id", "theta", "gain"]
        qrels = pl.concat([self._tree.table("qrels", subset=subset).select(columns) for subset in subsets])
        has = self._tree.has
        return ReadyGains(
            qrels,
            Pieces(self._tree.files("judge_criteria", split=domain), "judge_criteria")
            if has("judge_criteria")
            else None,
            self._tree.table("calibration", split=domain) if has("calibration") else None,
        )

    def item_params(self) -> dict[str, Any]:
        """See `JudgeInputs`."""
        return self._tree.item_params(self._judge)

    def windows(self) -> dict[str, Any] | None:
        """See `JudgeInputs`."""
        return self._tree.windows(self._judge)

    def made(self) -> str:
        """See `JudgeInputs`; a release made by this tool says so of itself."""
        if not (self.path / RELEASES).is_file() or self._tree.releases.get("format") != FORMAT:
            return "elsewhere"
        calibration = self._tree.entries[-1].get("calibration")
        return str(calibration.get("made", "elsewhere")) if isinstance(calibration, dict) else "elsewhere"

    def answers(self, stage: str, domain: str) -> Path:
        """A release tree holds no raw answers: asking is a bug of the caller."""
        raise LookupError((stage, domain))

    def files(self) -> Sequence[Path]:
        """See `JudgeInputs`."""
        # `hf download` keeps its notes in .cache.
        return sorted(file for file in _below(self.path) if ".cache" not in file.relative_to(self.path).parts)


def _below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Every file below a folder. Links are followed, as when a file is read; one that leads back up is not."""
    real = folder.resolve()
    if not folder.is_dir() or real in above:
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _below(path, above | {real})
        elif path.is_file():
            yield path


def open_inputs(path: Path, judge: str) -> JudgeInputs:
    """The judge inputs that lie at `path`.

    Raises:
        InputError: there is nothing usable there.
    """
    if not path.is_dir():
        raise InputError("no such folder of judge inputs", where=Where(str(path)), remedy="check --inputs.")
    if (path / README).is_file():
        tree = open_tree(path)
        if config_name("pool") in tree.dataset.configs:
            return TreeInputs(tree, judge)
    return PipelineInputs(path, judge)


def refuse_changed(inputs: Path, digests: Mapping[Path, str]) -> None:
    """Refuse a release tree whose files are not those that its own manifest describes.

    Args:
        inputs: the judge inputs; nothing is checked where no manifest of this tool lies.
        digests: the files that were read and the sha256 of their bytes.

    Raises:
        DataError: a file was changed after its release was sealed.
    """
    if not (inputs / MANIFEST).is_file():
        return
    described = open_tree(inputs).manifest["files"]
    for path, digest in digests.items():
        name = path.relative_to(inputs).as_posix()
        said = described.get(name, {}).get("sha256")
        if name in described and said != digest:
            raise DataError(
                "a file of the release is not the one that its manifest describes",
                where=Where(str(path), column="sha256", value=digest),
                remedy="run `release validate` on it, or fetch the release again.",
            )


def without_fused(first_stage: pl.DataFrame) -> pl.DataFrame:
    """The retrievers' own rows."""
    return first_stage.filter(pl.col("retriever") != FUSED)
