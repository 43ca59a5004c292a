"""A diff as headings, sentences and tables, for any renderer (pure: the document in, blocks out)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builder.diff.gains import MEASURES
from builder.diff.sentences import (
    NAMES,
    board_name,
    changed_test,
    different,
    headline,
    named,
    pair_name,
    reversed_pair,
    swap_name,
    title,
)
from builder.leaderboard import MEAN, printed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FILES = 20
"""Files of a list that are named; the JSON document has all."""
_TESTS = {
    "became": "Now significant",
    "ceased": "No longer significant",
    "reversed": "Significant, reversed",
}


@dataclass(frozen=True)
class Heading:
    """A heading; the first one of a report is its title."""

    text: str


@dataclass(frozen=True)
class Lines:
    """Sentences, a line each."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table; the first `left` columns are words, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


Block = Heading | Lines | Grid


def blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """The whole report: what a newcomer asks first, then every count behind it."""
    yield Heading(title(document))
    yield Lines(tuple(headline(document)))
    yield from _held(document)
    yield from _tables(document)
    yield from _files(document)
    if different(document):
        yield from _gains(document)
        yield from _top(document)
        for board in document["leaderboards"]:
            yield from _board(board)
        yield from _windows(document)
        yield from _items(document)


def _held(document: Mapping[str, Any]) -> Iterator[Block]:
    yield Heading("What changed, and what must not")
    rows = [
        (
            NAMES[item["what"]],
            {True: "unchanged", False: "changed", None: "cannot be said"}[item["unchanged"]],
            item["how"],
            "must not change" if item["must"] else "may change",
        )
        for item in document["held"]
    ]
    yield Grid(("what", "found", "how", "declared"), tuple(rows), left=4)
    for side in ("old", "new"):
        if not document[side]["sealed"]:
            yield Lines((f"{named(document[side])} has no manifest of this tool: its files were hashed now.",))


def _tables(document: Mapping[str, Any]) -> Iterator[Block]:
    yield Heading("Rows")
    counts = ("tables", "same_by_digest", "rows_old", "rows_new", "added", "removed", "changed")
    rows = [
        (
            NAMES[kind],
            *(f"{table[name]:,}" for name in counts),
            ", ".join(f"{name} {number:,}" for name, number in table["columns"].items()) or "-",
        )
        for kind, table in document["tables"].items()
    ]
    head = ("table", "files", "same digest", "rows before", "rows now", "added", "removed", "changed", "by column")
    yield Grid(head, tuple(rows))


def _files(document: Mapping[str, Any]) -> Iterator[Block]:
    found = document["files"]
    for what in ("added", "removed", "changed"):
        names = found[what]
        if names:
            more = (f"and {len(names) - _FILES:,} more",) if len(names) > _FILES else ()
            yield Heading(f"Files {what}: {len(names):,}")
            yield Lines((*names[:_FILES], *more))


def _gains(document: Mapping[str, Any]) -> Iterator[Block]:
    gains = document["gains"]
    if not any(gains[name]["changed"] for name in MEASURES):
        return
    yield Heading("Theta and gain, now minus before")
    levels = list(next(gains[name]["quantiles"] for name in MEASURES if gains[name]["pairs"]))
    rows = [
        (
            name,
            f"{gains[name]['pairs']:,}",
            f"{gains[name]['changed']:,}",
            *(f"{gains[name][key]:+z.4f}" for key in ("mean",)),
            *(f"{gains[name][key]:.4f}" for key in ("mean_size", "median_size", "max_size")),
            *(f"{gains[name]['quantiles'][level]:+z.4f}" for level in levels),
        )
        for name in MEASURES
    ]
    sizes = ("mean", "mean size", "median size", "largest")
    yield Grid(("", "pairs", "changed", *sizes, *(f"{100 * float(level):.0f} %" for level in levels)), tuple(rows))
    yield Heading("Queries whose gains moved most (mean size over their pages)")
    yield Grid(
        ("domain", "query", "pages", "mean", "largest"),
        tuple(
            (row["domain"], row["query-id"], f"{row['pairs']:,}", f"{row['moved']:.4f}", f"{row['most']:.4f}")
            for row in gains["queries"]
        ),
        left=2,
    )
    yield Heading("Pages whose gain moved most")
    yield Grid(
        ("domain", "query", "page", "gain before", "gain now", "theta before", "theta now"),
        tuple(
            (
                row["domain"],
                row["query-id"],
                row["corpus-id"],
                *(f"{row[name]:.4f}" for name in ("gain_old", "gain", "theta_old", "theta")),
            )
            for row in gains["pages"]
        ),
        left=3,
    )


def _top(document: Mapping[str, Any]) -> Iterator[Block]:
    found = document["ideal_top"]
    if not found["queries"]:
        return
    tau = found["kendall_tau"]
    yield Heading(f"Ideal top {found['k']} of each query")
    yield Grid(
        ("queries", "mean overlap", "least overlap", "same pages", "same order", "mean Kendall tau"),
        (
            (
                f"{found['queries']:,}",
                f"{found['mean_overlap']:.4f}",
                f"{found['min_overlap']:.4f}",
                f"{found['same_pages']:,}",
                f"{found['same_order']:,}",
                "-" if tau is None else f"{tau:.4f}",
            ),
        ),
        left=0,
    )


def _board(board: Mapping[str, Any]) -> Iterator[Block]:
    yield Heading(f"{board_name(board)}, percent, and the change in points")
    if not board["cells"]["changed"] and not board["added"] and not board["removed"]:
        yield Lines((f"All {board['cells']['compared']:,} cells are unchanged.",))
        return
    rows = [
        (
            row["system"],
            "-" if row["rank_new"] is None else str(row["rank_new"]),
            "-" if row["rank_old"] is None else str(row["rank_old"]),
            *(_cell(row["old"][column], row["new"][column]) for column in board["columns"]),
        )
        for row in board["systems"]
    ]
    heads = ("Mean" if column == MEAN else column for column in board["columns"])
    yield Grid(("system", "rank", "before", *heads), tuple(rows))
    tests = board["tests"]
    pairs = board["pairs"]
    tau = board["kendall_tau"]
    lines = [
        f"Kendall's tau between both orders: {tau:.4f}." if tau is not None else "Both orders: no tau is defined.",
        *(f"Swapped: {pair_name(pair)}." for pair in board["swaps"]),
        *(f"Swapped in {swap_name(swap)}." for swap in board["domain_swaps"]),
        *(f"No longer apart: {pair_name(pair)}." for pair in pairs if pair["apart_old"] and not pair["apart_new"]),
        *(f"Now apart: {pair_name(pair)}." for pair in pairs if pair["apart_new"] and not pair["apart_old"]),
        *(f"Apart, reversed: {pair_name(pair)}." for pair in pairs if reversed_pair(pair)),
        (
            f"Paired t-tests in a domain (p < 0.05): {tests['old']:,} of {tests['of']:,} separated before, "
            f"{tests['new']:,} now; {tests['became']:,} became, {tests['ceased']:,} ceased, "
            f"{tests['reversed']:,} reversed."
        ),
        *(f"{_TESTS[change['change']]} in {changed_test(change)}." for change in board["test_changes"]),
        *(f"Added: {name}." for name in board["added"]),
        *(f"Removed: {name}." for name in board["removed"]),
    ]
    yield Lines(tuple(lines))


def _cell(before: float | None, now: float | None) -> str:
    if now is None:
        return "-"
    return printed(now) + ("" if before is None else f" ({100 * (now - before):+z.2f})")


def _windows(document: Mapping[str, Any]) -> Iterator[Block]:
    if document["windows"] is None:
        return
    yield Heading("Windows of the judge")
    rows = [
        (stage, outcome, f"{number['old']:,}", f"{number['new']:,}", f"{number['new'] - number['old']:+,}")
        for stage, found in document["windows"].items()
        for outcome, number in found["outcomes"].items()
    ]
    yield Grid(("stage", "outcome", "before", "now", "change"), tuple(rows), left=2)


def _items(document: Mapping[str, Any]) -> Iterator[Block]:
    if document["item_params"] is None:
        return
    yield Heading("Item parameters")
    rows = [
        (
            row["criterion"],
            *(f"{row[name]:.4f}" for name in ("gamma_old", "gamma_new", "beta_old", "beta_new")),
        )
        for row in document["item_params"]
    ]
    yield Grid(("criterion", "gamma before", "gamma now", "beta before", "beta now"), tuple(rows))
