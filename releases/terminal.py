"""What a person sees: messages and progress on stderr, one document on stdout."""

from __future__ import annotations

import contextlib
import math
import shlex
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from builder import documents
from builder.benchmark import DEFAULT
from provenance.errors import ReleaseError
from provenance.shown import excerpt, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from builder.benchmark import Benchmark

_LONGEST_LINE = 4000

_printed = ContextVar("printed", default=False)

stderr = Console(stderr=True)
stdout = Console()


def say(message: str) -> None:
    """Plain lines of progress on stderr; what a terminal would obey is shown, not sent.

    A stderr that takes nothing, such as a log on a full disk, stops no work: the exit code and stdout stay right.
    """
    with contextlib.suppress(OSError):
        stderr.print(_lines(message), markup=False, emoji=False, highlight=False, soft_wrap=True)


def show(text: str) -> None:
    """Lines for a person on stdout, as `say`; a document for a program is not passed through here."""
    typer.echo(_lines(text))


def _lines(text: str) -> str:
    return "\n".join(excerpt(visible(line), _LONGEST_LINE) for line in text.split("\n"))


def as_typed(
    benchmark: Benchmark, *, ledger: Path | None = None, to: str | None = None, out: Path | None = None
) -> str:
    """The options of this run that its printed next command needs too, quoted for a shell, with a leading blank."""
    named = None if benchmark.name == DEFAULT else benchmark.name if benchmark.embedded else benchmark.path
    given = {"--benchmark": named, "--ledger": ledger, "--to": to, "--out": out}
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in given.items() if value is not None)


def print_json(document: Any) -> None:
    """One JSON document on stdout, nothing else."""
    _printed.set(True)
    typer.echo(documents.dump(document), nl=False)


@contextlib.contextmanager
def one_document(*, wanted: bool) -> Iterator[None]:
    """Around a command: where a document was `wanted` and an error came before it, the document tells of the error."""
    _printed.set(False)
    try:
        yield
    except ReleaseError as error:
        where = None if error.where is None else {name: _json(value) for name, value in vars(error.where).items()}
        _tell({"exit_code": error.exit_code, "what": error.what, "where": where, "next": error.remedy}, wanted=wanted)
        raise
    except KeyboardInterrupt:
        what, again = "interrupted", "run the same command again."
        _tell({"exit_code": 130, "what": what, "where": None, "next": again}, wanted=wanted)
        raise


def _tell(error: Mapping[str, Any], *, wanted: bool) -> None:
    if wanted and not _printed.get():
        # Where stdout takes nothing more, stderr and the exit code still tell of the error.
        with contextlib.suppress(OSError):
            print_json({"error": error})


def _json(value: object) -> str | int | float | bool | None:
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if value is None or (isinstance(value, str | int | float) and finite) else repr(value)
