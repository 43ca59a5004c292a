"""The mteb task file of a release, rendered."""

from __future__ import annotations


def render(benchmark, *, tag, files):
    return f'_REVISION = "{tag}"\n'
