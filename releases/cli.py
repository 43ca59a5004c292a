"""The `release` command: one subcommand a module in `releases.commands`; errors become exit codes here."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import typer

from provenance.errors import ReleaseError
from releases.commands.build import build
from releases.commands.results import results
from releases.terminal import stderr

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130

app = typer.Typer(
    name="release",
    help="Build, prove and publish a benchmark dataset: one tagged commit, never rewritten.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _callback() -> None:
    """A callback makes typer keep subcommands even while there is only one."""


app.command()(build)
app.command()(results)


def main() -> None:
    """Entry point of the `release` command.

    Exit codes: 0 fine; 1 a bug of ours; 2 usage; 3 the data breaks a rule; 4 an input is missing or unreachable;
    5 refused for safety; 6 the remote failed; 130 interrupted.
    """
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except ReleaseError as error:
        stderr.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        stderr.print("interrupted: nothing was left behind", markup=False)
        # No flushing of pools that were told to stop: the temporary folders are gone already.
        os._exit(INTERRUPTED)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
