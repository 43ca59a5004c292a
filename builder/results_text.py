"""Results as text: JSON, CSV, Markdown, and a table for a terminal (pure: results in, text out)."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from builder.leaderboard import MEAN, printed
from builder.markdown import literal
from builder.significance import reading
from provenance.shown import excerpt, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builder.benchmark import Benchmark
    from builder.coverage import Coverage
    from builder.leaderboard import Leaderboard
    from builder.results import Results
    from builder.statistics import Agreement, Statistics

_METRIC_NAMES = {"rcp": "RCP-nDCG", "qrel": "qrel-nDCG", "count": "Count-nDCG"}
_LONGEST_NAME = 60
_RULE_NAMES = {"a": "document id", "b": "group mean"}


def title(board: Leaderboard) -> str:
    """`RCP-nDCG@10, native view, ties by group mean (b), percent`."""
    rule = f"ties by {_RULE_NAMES[board.ties]} ({board.ties})"
    return f"{_METRIC_NAMES[board.metric]}@{board.k}, {board.view} view, {rule}, percent"


def as_document(results: Results) -> dict[str, Any]:
    """One JSON document: unrounded fractions, None where a value is not defined."""
    document: dict[str, Any] = {
        "unit": "fraction",
        "simulated_judge": results.simulated,
        "tables": [_board_document(board) for board in results.tables],
        "own_runs": {name: _coverage_document(coverage) for name, coverage in results.coverage.items()},
        "absent": list(results.absent),
    }
    for table, found in zip(document["tables"], results.statistics, strict=bool(results.statistics)):
        table["statistics"] = _defined(asdict(found))
    if results.agreements:
        document["agreements"] = [_agreement_document(found) for found in results.agreements]
    return document


def as_csv(results: Results) -> str:
    """One header, a line a table and system; unrounded fractions that read back exactly, empty where undefined."""
    lines = [_csv_line(["view", "metric", "ties", "model", *results.tables[0].columns])]
    for board in results.tables:
        for name, values in zip(board.rows, board.values.tolist(), strict=True):
            cells = ["" if math.isnan(value) else repr(value) for value in values]
            lines.append(_csv_line([board.view, board.metric, board.ties, name, *cells]))
    return "".join(lines)


def as_markdown(results: Results, labels: Mapping[str, str]) -> str:
    """A heading and a table for each leaderboard, percent with one decimal."""
    return "\n".join(f"### {title(board)}\n\n{markdown_table(board, labels)}" for board in results.tables)


def markdown_table(board: Leaderboard, labels: Mapping[str, str]) -> str:
    """One leaderboard as a Markdown table, percent with one decimal."""
    heads = ["Model", *(literal(labels.get(column, column)) for column in board.columns)]
    lines = [_line(heads), _line(["---", *("---:" for _ in board.columns)])]
    for name, values in zip(board.rows, board.values.tolist(), strict=True):
        lines.append(_line([literal(name), *(printed(value) for value in values)]))
    return "\n".join(lines) + "\n"


def as_table(board: Leaderboard, labels: Mapping[str, str]) -> Table:
    """One leaderboard for a terminal, to stand under its `title`."""
    table = Table()
    table.add_column("Model", no_wrap=True)
    for column in board.columns:
        table.add_column(_cell(labels.get(column, column)), justify="right")
    for name, values in zip(board.rows, board.values.tolist(), strict=True):
        table.add_row(_cell(name), *(printed(value) for value in values))
    return table


def remarks(results: Results) -> list[str]:
    """What must be known beside the tables, a line each."""
    lines = ["the judge of this tree is simulated: its gains are no judgements."] if results.simulated else []
    lines.extend(f"the tree has no run of {name}." for name in results.absent)
    lines.extend(f"{name}: {remark}" for name, coverage in results.coverage.items() for remark in coverage.remarks())
    return lines


def readings(board: Leaderboard, own: Sequence[str], statistics: Statistics | None) -> list[str]:
    """Plain sentences about a table: one's own runs against their nearest neighbours, and what the tests separate.

    A gap below 0.02 (2 points) is a tie.
    """
    means = {name: float(value) for name, value in zip(board.rows, board.values[:, -1], strict=True)}
    ordered = sorted((name for name in means if not math.isnan(means[name])), key=lambda name: -means[name])
    lines = []
    for name in own:
        if name not in ordered:
            continue
        place = ordered.index(name)
        lines.append(f"{name} is number {place + 1} of {len(ordered)} by Mean.")
        neighbours = [*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2]]
        lines.extend(reading(name, means[name], other, means[other]) for other in neighbours)
    if statistics is not None and statistics.pairs:
        share = 100 * statistics.separated_mean
        ties = sum(pair.tie for pair in statistics.pairs)
        lines.append(
            f"Of {len(statistics.pairs)} pairs, {share:.1f} % are separated in a domain (paired t-test, p < 0.05); "
            f"{ties} tie (a gap of Means below 2 points)."
        )
    return lines


def domain_labels(benchmark: Benchmark) -> dict[str, str]:
    """How column heads name the domains, from the benchmark file, and `Mean`."""
    return {**dict(benchmark.card.get("domain_labels", {})), MEAN: "Mean"}


def _board_document(board: Leaderboard) -> dict[str, Any]:
    rows = [
        {"model": name, "values": dict(zip(board.columns, _defined(values), strict=True))}
        for name, values in zip(board.rows, board.values.tolist(), strict=True)
    ]
    return {
        "view": board.view,
        "metric": board.metric,
        "ties": board.ties,
        "k": board.k,
        "columns": list(board.columns),
        "rows": rows,
    }


def _agreement_document(found: Agreement) -> dict[str, Any]:
    flips = [
        {"first": first, "second": second, "queries": count} for (first, second), count in found.sign_flips.items()
    ]
    return {"view": found.view, "ties": found.ties, "kendall_tau": found.kendall_tau, "sign_flips": flips}


def _coverage_document(coverage: Coverage) -> dict[str, Any]:
    return {**asdict(coverage), "remarks": coverage.remarks()}


def _defined(value: Any) -> Any:
    """NaN, which JSON does not have, becomes None; tuples become lists."""
    if isinstance(value, dict):
        return {key: _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO(newline="")
    # A cell is quoted for the signs of the line's end only: both of them, or a lone one would end a line.
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().removesuffix("\r\n") + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(name: str) -> Text:
    """A name in a table for a terminal: text, not markup, and never so long that no room is left for the numbers."""
    return Text(excerpt(visible(name), _LONGEST_NAME))
