"""The `release` command: one subcommand a module in `releases.commands`; errors become exit codes here."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import typer

from builder.output import UNWRITABLE
from provenance.errors import InputError, ReleaseError, Where
from releases.commands import hub
from releases.commands.adopt import adopt
from releases.commands.build import build
from releases.commands.card import card
from releases.commands.demo import demo
from releases.commands.diff import diff
from releases.commands.list import list_releases
from releases.commands.pins import pins
from releases.commands.publish import publish
from releases.commands.reproduce import reproduce
from releases.commands.results import results
from releases.commands.tasks import tasks
from releases.commands.validate import validate
from releases.commands.verify import verify
from releases.commands.withdraw import withdraw
from releases.terminal import one_document, say

if TYPE_CHECKING:
    from collections.abc import Sequence
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


_COMMANDS = (build, validate, card, results, diff, publish, verify, pins, withdraw, adopt, reproduce, demo, tasks)
for _command in _COMMANDS:
    app.command()(_command)
app.command("list")(list_releases)
app.add_typer(hub.app, name="hub")


def main() -> None:
    """Entry point of the `release` command: `run` on the command line's arguments, then exit."""
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # It was said, if it could be; at the end Python would flush once more, and end with another exit code.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code.

    0 fine; 1 a bug of ours (its traceback is not caught); 2 usage; 3 the data breaks a rule; 4 an input is missing or
    unreachable; 5 refused for safety; 6 the remote failed; 130 interrupted.
    """
    try:
        with one_document(wanted="--json" in arguments):
            return _run(arguments)
    except ReleaseError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted: nothing half-done was left behind; the same command can be run again")
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    try:
        return _dispatch(arguments)
    except OSError as error:
        # Where no temporary file can be made at all, Python says that it found no folder for one.
        if error.errno not in UNWRITABLE and "temporary directory" not in str(error):
            raise
        raise _unwritable(error) from error


def _dispatch(arguments: Sequence[str]) -> int:
    try:
        app(list(arguments))
    except SystemExit as end:
        # A full disk may be met only when the rest of the output goes there.
        sys.stdout.flush()
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from None  # the command line's library takes Ctrl-C for an end
        return end.code if isinstance(end.code, int) else 0
    return 0


def _unwritable(error: OSError) -> InputError:
    """What a full disk, a folder that is only read or a right that is missing come to, wherever they are met."""
    return InputError(
        f"something cannot be written, or may not be read: {error.strerror or error}",
        where=Where(None if error.filename is None else str(error.filename)),
        remedy="free some space, check the permissions, or name another place; then run the same command again.",
    )


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
