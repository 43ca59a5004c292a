"""The blocks of a report as plain text, as Markdown for a step summary, and as one HTML page (pure).

Ids and names come from data: control characters are shown as escapes, Markdown's and HTML's own signs are escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from builder.diff.report import Block, Grid, Heading, Lines
from builder.markdown import literal
from provenance.shown import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "td,th{border-bottom:1px solid #ccc;padding:.2em .6em;text-align:left;white-space:nowrap}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
)


def as_text(blocks: Iterable[Block]) -> str:
    """Plain text; the title and the first sentences stand without blank lines between them."""
    lines: list[str] = []
    for number, block in enumerate(blocks):
        if isinstance(block, Heading):
            lines += [visible(block.text)] if number == 0 else ["", visible(block.text)]
        elif isinstance(block, Lines):
            lines += [f"  {visible(line)}" for line in block.lines]
        else:
            lines += _columns(block)
    return "\n".join(lines) + "\n"


def as_markdown(blocks: Iterable[Block]) -> str:
    """GitHub's Markdown."""
    parts = []
    for number, block in enumerate(blocks):
        if isinstance(block, Heading):
            parts.append(f"{'##' if number == 0 else '###'} {literal(block.text)}\n")
        elif isinstance(block, Lines):
            parts.append("".join(f"* {literal(line)}\n" for line in block.lines))
        else:
            rule = ["---" if column < block.left else "---:" for column in range(len(block.head))]
            rows = [[literal(cell) for cell in row] for row in (block.head, *block.rows)]
            parts.append("".join(f"| {' | '.join(row)} |\n" for row in (rows[0], rule, *rows[1:])))
    return "\n".join(parts)


def as_html(blocks: Iterable[Block]) -> str:
    """One page with its style inside, without scripts, links or images."""
    listed = list(blocks)
    heading = next(block.text for block in listed if isinstance(block, Heading))
    body = "\n".join(line for number, block in enumerate(listed) for line in _html(block, first=number == 0))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_safe(heading)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _columns(grid: Grid) -> Iterator[str]:
    rows = [[visible(cell) for cell in row] for row in (grid.head, *grid.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(grid.head))]
    for row in rows:
        cells = (
            cell.ljust(width) if column < grid.left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _html(block: Block, *, first: bool) -> Iterator[str]:
    if isinstance(block, Heading):
        level = 1 if first else 2
        yield f"<h{level}>{_safe(block.text)}</h{level}>"
    elif isinstance(block, Lines):
        yield "<ul>" + "".join(f"<li>{_safe(line)}</li>" for line in block.lines) + "</ul>"
    else:
        yield "<table>"
        yield _html_row(block.head, "th", block.left)
        for row in block.rows:
            yield _html_row(row, "td", block.left)
        yield "</table>"


def _html_row(cells: Sequence[str], tag: str, left: int) -> str:
    number = ' class="n"'
    marked = (f"<{tag}{'' if column < left else number}>{_safe(cell)}</{tag}>" for column, cell in enumerate(cells))
    return f"<tr>{''.join(marked)}</tr>"


def _safe(text: str) -> str:
    return escape(visible(text))
