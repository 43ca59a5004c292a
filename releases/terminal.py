"""What a person sees: messages and progress on stderr, one document on stdout."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console

from builder import documents

stderr = Console(stderr=True)
stdout = Console()


def say(message: str) -> None:
    """A plain line of progress on stderr."""
    stderr.print(message, markup=False, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """One JSON document on stdout, nothing else."""
    typer.echo(documents.dump(document), nl=False)
