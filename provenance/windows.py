"""Tables of judge windows: checked, read, and every window accounted for (method spec sections 5, 7.3 and 12).

`read_tournament` and `read_rubric` do all of it at once. A large table is cut instead: `checked` once, then
`parse_tournament` or `parse_rubric` on each of `query_blocks`, in any order and in any process, then `join`.
Both ways give the same rows.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import polars as pl

from provenance.answers import Category, UnusableAnswerError
from provenance.errors import DataError, Where
from provenance.ids import canonical
from provenance.verdicts import CRITERIA, rubric_verdicts, tournament_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Stage = Literal["tournament", "rubric"]

FITTED = "fitted"
OUTCOMES: tuple[str, ...] = (FITTED, *get_args(Category))
# The rubric's schedule has no adaptive phase (method spec section 7.1).
PHASES: dict[Stage, tuple[str, ...]] = {
    "tournament": ("random", "stratified", "adaptive"),
    "rubric": ("random", "stratified"),
}

_COLUMNS: dict[str, pl.DataType] = {
    "query-id": pl.String(),
    "call_index": pl.Int64(),
    "phase": pl.String(),
    "corpus-ids": pl.List(pl.String()),
    "answer": pl.String(),
    "finish_reason": pl.String(),
}
_ROW = "row of the file"


@dataclass(frozen=True)
class Tournament:
    """The windows of a tournament, in canonical order (query by number, then call_index).

    Attributes:
        windows: query-id, call_index, phase, outcome ("fitted" or a category); one row a window.
        scores: query-id, call_index, position (1-based, int64), corpus-id, score (logits, float64); the
            placements of fitted windows, in prompt order.
        shown: query-id, corpus-id; each page shown in any window of the query, fitted or not, in order of
            first appearance (method spec section 6).
    """

    windows: pl.DataFrame
    scores: pl.DataFrame
    shown: pl.DataFrame


@dataclass(frozen=True)
class Rubric:
    """The windows of a rubric, in canonical order (query by number, then call_index).

    Attributes:
        windows: query-id, call_index, phase, outcome ("fitted" or a category); one row a window.
        placements: query-id, call_index, corpus-id, C1..C5 (int64, 0 or 1), finish_reason; the placements of
            fitted windows, in prompt order.
    """

    windows: pl.DataFrame
    placements: pl.DataFrame


_Read = TypeVar("_Read", Tournament, Rubric)
_Number = TypeVar("_Number", int, float)


def read_tournament(judgements: pl.DataFrame, *, file: str) -> Tournament:
    """The windows of a tournament's table.

    Args:
        judgements: query-id, call_index, phase, corpus-ids (as shown, doc_1 first), answer (raw text or
            null), finish_reason; rows in any order.
        file: the table's name in messages.

    Raises:
        DataError: the table is malformed (see `checked`). An unusable answer is no error: it is counted.
    """
    return parse_tournament(checked(judgements, "tournament", file=file))


def read_rubric(judgements: pl.DataFrame, *, file: str) -> Rubric:
    """The windows of a rubric's table; arguments and errors are those of `read_tournament`."""
    return parse_rubric(checked(judgements, "rubric", file=file))


def checked(judgements: pl.DataFrame, stage: Stage, *, file: str) -> pl.DataFrame:
    """The table in canonical order, with the six columns of a table of windows.

    Raises:
        DataError: a column is missing or of another type; an id, a call_index or a phase is null, a phase is
            none of the stage's, a call_index is negative, a window shows no page, a null or a page twice;
            two rows have one (query-id, call_index).
    """
    for name, dtype in _COLUMNS.items():
        if name not in judgements.columns:
            raise DataError(f"a table of {stage} windows needs the column '{name}'", where=Where(file, column=name))
        if judgements.schema[name] != dtype:
            raise DataError(
                f"the column '{name}' must be {dtype}, and is {judgements.schema[name]}",
                where=Where(file, column=name),
                remedy="write the column with that type; nothing is cast",
            )
    table = judgements.select(*_COLUMNS).with_row_index(_ROW)
    phases, pages = PHASES[stage], pl.col("corpus-ids")
    rules = (
        ("query-id", pl.col("query-id").is_null(), "a window has no query-id"),
        ("call_index", pl.col("call_index").is_null(), "a window has no call_index"),
        ("call_index", pl.col("call_index") < 0, "a call_index counts from 0"),
        ("phase", ~pl.col("phase").is_in(phases).fill_null(value=False), f"a phase is one of {', '.join(phases)}"),
        ("corpus-ids", pages.list.len().fill_null(0) == 0, "a window shows no page"),
        ("corpus-ids", pages.list.drop_nulls().list.len() < pages.list.len(), "a window shows a page without an id"),
        ("corpus-ids", pages.list.n_unique() < pages.list.len(), "a window shows a page twice"),
    )
    for column, broken, what in rules:
        _refuse(table.filter(broken), column, what, file)
    repeated = pl.struct("query-id", "call_index").is_duplicated()
    _refuse(table.filter(repeated), "call_index", "two windows have the same query-id and call_index", file)
    return canonical(table, "call_index").drop(_ROW)


def _refuse(rows: pl.DataFrame, column: str, what: str, file: str) -> None:
    if rows.is_empty():
        return
    first = rows.row(0, named=True)
    more = f" (and {rows.height - 1} more rows)" if rows.height > 1 else ""
    null = ", the value is null" if first[column] is None else ""
    raise DataError(
        f"{what}: query {first['query-id']}, call {first['call_index']}{null}{more}",
        where=Where(file, first[_ROW], column, first[column]),
        remedy="mend the pipeline's output, or leave the row out where it was written",
    )


def query_blocks(table: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """A checked table cut into at most `count` runs of whole queries, of about as many windows each."""
    ends = table["query-id"].rle_id().rle().struct.field("len").cum_sum().to_numpy()
    targets = [table.height * part // count for part in range(1, count + 1)]
    cuts = sorted({int(ends[np.searchsorted(ends, target)]) for target in targets}) if len(ends) else []
    return [table.slice(start, end - start) for start, end in zip([0, *cuts], cuts, strict=False)]


def join(parts: Sequence[_Read]) -> _Read:
    """The whole of what was read in blocks; the parts in the order of `query_blocks`, at least one."""
    kind = type(parts[0])
    return kind(*(pl.concat([getattr(part, field.name) for part in parts]) for field in fields(kind)))


def parse_tournament(block: pl.DataFrame) -> Tournament:
    """The windows of a checked table, or of one of its blocks; pure."""
    outcomes, scores = _parse(block, tournament_scores, array("d"))
    windows, placements = _outcomes_and_placements(block, outcomes)
    return Tournament(
        windows=windows,
        scores=placements.select(
            "query-id",
            "call_index",
            "position",
            "corpus-id",
            pl.Series("score", np.frombuffer(scores, dtype=np.float64), dtype=pl.Float64),
        ),
        shown=(
            block.select("query-id", pl.col("corpus-ids").alias("corpus-id"))
            .explode("corpus-id")
            .unique(maintain_order=True, keep="first")
        ),
    )


def parse_rubric(block: pl.DataFrame) -> Rubric:
    """The windows of a checked table, or of one of its blocks; pure."""
    outcomes, verdicts = _parse(block, rubric_verdicts, array("q"))
    windows, placements = _outcomes_and_placements(block, outcomes)
    table = np.frombuffer(verdicts, dtype=np.int64).reshape(-1, len(CRITERIA))
    return Rubric(
        windows=windows,
        placements=placements.select(
            "query-id",
            "call_index",
            "corpus-id",
            *(pl.Series(name, table[:, k], dtype=pl.Int64) for k, name in enumerate(CRITERIA)),
            "finish_reason",
        ),
    )


def _parse(
    block: pl.DataFrame, read: Callable[[str | None, str | None, int], list[_Number]], values: array[_Number]
) -> tuple[list[str], array[_Number]]:
    """Each window's outcome, and the values of the fitted windows end to end."""
    outcomes: list[str] = []
    sizes = block["corpus-ids"].list.len()
    for answer, finish_reason, size in zip(block["answer"], block["finish_reason"], sizes, strict=True):
        try:
            values.extend(read(answer, finish_reason, size))
        except UnusableAnswerError as error:
            outcomes.append(error.category)
        else:
            outcomes.append(FITTED)
    return outcomes, values


def _outcomes_and_placements(block: pl.DataFrame, outcomes: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    judged = block.with_columns(pl.Series("outcome", outcomes, dtype=pl.String))
    fitted = judged.filter(pl.col("outcome") == FITTED).select(
        "query-id",
        "call_index",
        "finish_reason",
        pl.int_ranges(1, pl.col("corpus-ids").list.len().cast(pl.Int64) + 1).alias("position"),
        pl.col("corpus-ids").alias("corpus-id"),
    )
    return judged.select("query-id", "call_index", "phase", "outcome"), fitted.explode("position", "corpus-id")


def account(windows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """How many windows of each phase had each outcome; the counts sum to the number of windows.

    Args:
        windows: the `windows` of a `Tournament` or a `Rubric`.

    Returns:
        phase -> outcome -> count, for the phases that occur and for every outcome there is.
    """
    counted = windows.group_by("phase", "outcome").len()
    counts: dict[tuple[str, str], int] = {(phase, outcome): number for phase, outcome, number in counted.iter_rows()}
    present = {phase for phase, _ in counts}
    return {
        phase: {outcome: counts.get((phase, outcome), 0) for outcome in OUTCOMES}
        for phase in PHASES["tournament"]
        if phase in present
    }


def flagged(windows: pl.DataFrame) -> list[dict[str, Any]]:
    """The queries of one stage whose unusable windows are too many (method spec section 12), in canonical order.

    Args:
        windows: the `windows` of a `Tournament` or a `Rubric`.

    Returns:
        One document a flagged query: query-id, windows, unusable, share, and reasons: `share` when more than
        5 % of its windows are unusable (exactly 5 % is not), `adaptive` when an adaptive one is.
    """
    unusable = pl.col("outcome") != FITTED
    queries = windows.group_by("query-id", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("windows"),
        unusable.sum().cast(pl.Int64).alias("unusable"),
        (unusable & (pl.col("phase") == "adaptive")).any().alias("adaptive"),
    )
    flags = []
    for query_id, total, left_out, adaptive in queries.iter_rows():
        # Whole numbers, so that exactly 5 % is exact.
        tests = {"share": 20 * left_out > total, "adaptive": adaptive}
        reasons = [reason for reason, holds in tests.items() if holds]
        if reasons:
            flags.append(
                {
                    "query-id": query_id,
                    "windows": total,
                    "unusable": left_out,
                    "share": left_out / total,
                    "reasons": reasons,
                }
            )
    return flags
