"""Progress of a publish: a bar on a terminal, plain lines elsewhere, nothing on stdout."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from releases.terminal import say, stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Progress:
    """What a person sees while a release is published."""

    def say(self, step: str) -> None:
        """A step begins."""
        say(step)

    @contextlib.contextmanager
    def upload(self, files: int, size: int) -> Iterator[Callable[[int, int], None]]:
        """Progress of an upload of `files` files of `size` bytes; the function that it gives takes what went since."""
        if not stderr.is_terminal:
            yield self._lines(files, size)
            return
        columns = (
            TextColumn("upload"),
            BarColumn(),
            DownloadColumn(),
            TextColumn("{task.fields[went]} of {task.fields[files]} files"),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=stderr) as bar:
            task = bar.add_task("upload", total=size, went=0, files=files)

            def advance(count: int, length: int) -> None:
                bar.update(task, advance=length, went=bar.tasks[0].fields["went"] + count)

            yield advance

    @staticmethod
    def _lines(files: int, size: int) -> Callable[[int, int], None]:
        say(f"upload {files} files, {size:,} bytes")
        went = [0, 0]

        def sent(count: int, length: int) -> None:
            went[0] += count
            went[1] += length
            say(f"  {went[0]} of {files} files, {went[1]:,} of {size:,} bytes")

        return sent
