"""The `release` command: one subcommand a module in `releases.commands`, errors turned into exit codes here."""

from __future__ import annotations

import typer

app = typer.Typer(name="release", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Entry point of the `release` command."""
    app()
