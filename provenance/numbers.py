"""Numbers that were written as text."""

from __future__ import annotations


def decimal(text: str) -> float:
    """A decimal number in ASCII, white space around it allowed.

    What Python alone takes for a number is none here: `1_0`, the digits of other scripts.

    Raises:
        ValueError: it is no number. `nan` and `inf` are numbers here: whoever calls refuses them.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r} is no decimal number")
    return float(text)
