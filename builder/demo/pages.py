"""The demo's page images, drawn with Pillow and its embedded font: small greyscale PNGs.

The same Pillow draws the same bytes; another version may not.
"""

from __future__ import annotations

import io
import random
import textwrap
import unicodedata
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

from builder.demo.texts import YEARS
from provenance.errors import InputError

if TYPE_CHECKING:
    from builder.demo.texts import Domain, Page

SIZE = (480, 640)

_WHITE, _BLACK, _GREY, _PALE = 255, 0, 110, 205
_MARGIN, _TOP, _BOTTOM = 36, 64, 600
_LINE, _COLUMNS = 20, 56
_SHADES = (60, 120, 180)

# Strokes of each combining accent (acute, grave, circumflex, diaeresis, cedilla), in pixels from the letter's middle.
_CEDILLA = "\u0327"
_STROKES = {
    "\u0301": (((-1, 0), (2, -2)),),
    "\u0300": (((-2, -2), (1, 0)),),
    "\u0302": (((-2, 0), (0, -2)), ((0, -2), (2, 0))),
    "\u0308": (((-2, -1), (-2, -1)), ((2, -1), (2, -1))),
    _CEDILLA: (((0, -2), (1, -1)), ((1, -1), (-1, 0))),
}


def draw(domain: Domain, page: Page, *, seed: int) -> bytes:
    """A page as PNG: running head, the page's text, its table, chart or figure, and a page number."""
    image = Image.new("L", SIZE, _WHITE)
    pen = ImageDraw.Draw(image)
    stream = random.Random(f"{seed}/drawing/{domain.name}/{page.number}")  # noqa: S311 - no secret
    if page.kind == "picture":
        _shapes(pen, stream, top=0, bottom=SIZE[1])
        return _png(image)
    small, normal, large = (_font(size) for size in (11, 13, 17))
    _say(pen, (_MARGIN, 24), domain.title, font=small, fill=_GREY)
    pen.line((_MARGIN, 44, SIZE[0] - _MARGIN, 44), fill=_PALE)
    _say(pen, (SIZE[0] // 2, 615), str(page.number + 1), font=small, fill=_GREY)
    heading, *body = page.text.split("\n")
    y = _TOP
    for line in textwrap.wrap(heading, 44):
        _say(pen, (_MARGIN, y), line, font=large, fill=_BLACK)
        y += _LINE + 4
    y += 8
    if page.kind == "table":
        _table(pen, page, y, normal)
        return _png(image)
    for paragraph in body:
        for line in textwrap.wrap(paragraph, _COLUMNS):
            _say(pen, (_MARGIN, y), line, font=normal, fill=_BLACK)
            y += _LINE
        y += 8
    if page.kind == "chart":
        _chart(pen, page, y + 10, small)
    if page.kind == "figure":
        _shapes(pen, stream, top=y + 10, bottom=_BOTTOM)
    return _png(image)


def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise InputError(
            "this Pillow has no FreeType, so the demo's pages cannot be drawn",
            remedy="install Pillow from its wheel: pip install --force-reinstall pillow.",
        )
    return font


def _say(
    pen: ImageDraw.ImageDraw, place: tuple[int, int], text: str, *, font: ImageFont.FreeTypeFont, fill: int
) -> None:
    """Write a line. Pillow's embedded font has no accents, so they are drawn as strokes over the plain letters."""
    plain = ""
    for character in unicodedata.normalize("NFD", text):
        if character not in _STROKES:
            plain += character
            continue
        left, top, right, bottom = font.getbbox(plain[-1], anchor="ls")
        x = place[0] + font.getlength(plain[:-1]) + (left + right) / 2
        baseline = place[1] + font.getmetrics()[0]
        edge = baseline + bottom + 3 if character == _CEDILLA else baseline + top - 2
        for start, end in _STROKES[character]:
            pen.line((x + start[0], edge + start[1], x + end[0], edge + end[1]), fill=fill)
    pen.text(place, plain, font=font, fill=fill)


def _table(pen: ImageDraw.ImageDraw, page: Page, top: int, font: ImageFont.FreeTypeFont) -> None:
    edges = [_MARGIN + 220 + 62 * column for column in range(len(YEARS))]
    for row, cells in enumerate([("", YEARS), *page.rows]):
        name, values = cells
        y = top + row * 30
        _say(pen, (_MARGIN, y + 7), name, font=font, fill=_BLACK)
        for x, value in zip(edges, values, strict=True):
            _say(pen, (x, y + 7), str(value), font=font, fill=_BLACK)
        pen.line((_MARGIN, y + 30, SIZE[0] - _MARGIN, y + 30), fill=_GREY if row == 0 else _PALE)


def _chart(pen: ImageDraw.ImageDraw, page: Page, top: int, font: ImageFont.FreeTypeFont) -> None:
    """Bars: a group an item, a shade a year, heights proportional to the values."""
    base = _BOTTOM - 40
    largest = max(value for _, values in page.rows for value in values)
    width = (SIZE[0] - 2 * _MARGIN) // len(page.rows)
    for group, (name, values) in enumerate(page.rows):
        left = _MARGIN + group * width
        for bar, (value, shade) in enumerate(zip(values, _SHADES, strict=True)):
            x = left + 8 + bar * 24
            pen.rectangle((x, base - (base - top) * value // largest, x + 20, base), fill=shade)
        for row, line in enumerate(textwrap.wrap(name, 15)[:2]):
            _say(pen, (left + 4, base + 6 + 14 * row), line, font=font, fill=_BLACK)
    pen.line((_MARGIN, base, SIZE[0] - _MARGIN, base), fill=_BLACK)


def _shapes(pen: ImageDraw.ImageDraw, stream: random.Random, *, top: int, bottom: int) -> None:
    """Discs joined by lines, at places drawn from the page's stream."""
    places = [(stream.randint(70, SIZE[0] - 70), stream.randint(top + 40, bottom - 40)) for _ in range(6)]
    pen.line(places, fill=_GREY, width=3)
    for x, y in places:
        radius, shade = stream.randint(14, 34), stream.randint(60, 220)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shade, outline=_BLACK)


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()
