"""Refusals that name a row: the columns' types, nulls, non-finite numbers, repeated keys, unknown names.

Every function takes a table as its file gave it and raises `DataError` for the first offending
row; a row number is 0-based over the whole file. All are pure.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import polars as pl

from provenance.errors import DataError, Where
from provenance.shown import LONGEST, look_alike, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

ROW = "__row__"


def refuse(
    frame: pl.DataFrame,
    bad: pl.Expr,
    what: str,
    *,
    column: str,
    file: str | None,
    remedy: str,
    context: Sequence[str] = (),
) -> None:
    """Raise for the first row on which `bad` is true.

    Args:
        frame: the table in the file's row order (or with the file's row numbers in a column `ROW`).
        bad: a boolean expression over the table's columns.
        what: what is wrong with such a row.
        column: the column whose value is shown.
        file: the table's file; None for a derived table, whose rows are then not numbered.
        remedy: what to do next.
        context: further columns whose values tell which row this is.

    Raises:
        DataError: a row is bad; the message says how many are.
    """
    rows = frame if ROW in frame.columns else frame.with_row_index(ROW)
    found = rows.filter(bad)
    if found.is_empty():
        return
    first = found.row(found[ROW].arg_min() or 0, named=True)
    keys = ", ".join(f"{name} {quoted(first[name], name)}" for name in context if name != column)
    others = f"; {found.height - 1} more such rows" if found.height > 1 else ""
    raise DataError(
        f"{what}{f' ({keys})' if keys else ''}{others}",
        # A derived table's row numbers would lead nowhere.
        where=Where(file, row=first[ROW] if file is not None else None, column=column, value=first[column]),
        remedy=remedy,
    )


def require_columns(frame: pl.DataFrame, schema: Mapping[str, pl.DataType], *, file: str | None) -> None:
    """Every column of `schema` is there with its type.

    Nothing is cast: a narrower or wider type is refused, so that no value changes on the way in.

    Raises:
        DataError: a column is missing or has another type.
    """
    for name, dtype in schema.items():
        if name not in frame.columns:
            raise DataError(
                f"the column is missing (there are: {', '.join(frame.columns)})",
                where=Where(file, column=name),
                remedy="write the table with the columns that the README's input section names.",
            )
        if frame.schema[name] != dtype:
            raise DataError(
                f"the column's type is {frame.schema[name]}, not {dtype}",
                where=Where(file, column=name),
                remedy=f"write the column as {dtype}.",
            )


def refuse_nulls(frame: pl.DataFrame, columns: Sequence[str], *, file: str | None) -> None:
    """No null in any of `columns`.

    Raises:
        DataError: a column holds a null.
    """
    for name in columns:
        refuse(
            frame,
            pl.col(name).is_null(),
            "a null where a value is required",
            column=name,
            file=file,
            remedy="give the value; nothing is filled in.",
        )


def refuse_not_finite(frame: pl.DataFrame, column: str, *, file: str | None, context: Sequence[str] = ()) -> None:
    """No NaN and no infinity in a float column (nulls are not looked at).

    Raises:
        DataError: the column holds a NaN or an infinity.
    """
    refuse(
        frame,
        ~pl.col(column).is_finite(),
        "a number that is not finite",
        column=column,
        file=file,
        remedy="mend the step that made it; a score is a finite number.",
        context=context,
    )


def refuse_repeats(frame: pl.DataFrame, keys: Sequence[str], *, column: str, file: str | None) -> None:
    """The rows' `keys` are unique; the second of two equal rows is named.

    Raises:
        DataError: a key is there twice.
    """
    refuse(
        frame,
        ~pl.struct(keys).is_first_distinct(),
        "a row is there twice",
        column=column,
        file=file,
        remedy="keep one of them.",
        context=keys,
    )


def refuse_unknown(frame: pl.DataFrame, column: str, known: Collection[str], what: str, *, file: str | None) -> None:
    """Every value of `column` is one of `known`; `what` says of whom (for instance "the benchmark's retrievers").

    Raises:
        DataError: another value is there; the nearest known one is proposed.
    """
    unknown = frame.filter(~pl.col(column).is_in(list(known)))[column]
    if unknown.is_empty():
        return
    near = _near(unknown[0], known)
    refuse(
        frame,
        ~pl.col(column).is_in(list(known)),
        f"not one of {what}",
        column=column,
        file=file,
        remedy=near or f"remove the rows, or add the name to {what}.",
    )


def _near(name: str | None, known: Collection[str]) -> str | None:
    """A known name that may have been meant, as a question."""
    if name is None or len(name) > LONGEST:
        return None
    same = next((other for other in known if len(other) <= 2 * LONGEST and look_alike(name, other)), None)
    if same is not None:
        return (
            f"did you mean {quoted(same)}? The two look alike, and differ in Unicode normalisation, case, blanks or "
            "signs that are not seen; names are compared as they are."
        )
    near = difflib.get_close_matches(name, [other for other in known if len(other) <= LONGEST], n=1)
    return f"did you mean {quoted(near[0])}?" if near else None
