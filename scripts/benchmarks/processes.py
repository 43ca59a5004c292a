"""Run a command and watch it: seconds, and the memory of its main process and of all its processes together."""

from __future__ import annotations

import json
import resource
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_EVERY = 0.2  # seconds between two looks


@dataclass
class Peak:
    """The most memory seen, in bytes: resident in the main process, and in all processes together.

    Pages that processes share are counted once for each, so `together` is never too low.
    """

    main: int = 0
    together: int = 0

    def see(self, main: int, together: int) -> None:
        """Take in one look."""
        self.main, self.together = max(self.main, main), max(self.together, together)


@dataclass
class Measured:
    """How a command went.

    `seconds` are the clock's, `processor` those of all its processes; `steps` have seconds and peaks, by the first
    words of the lines that it wrote to stderr.
    """

    code: int
    seconds: float
    processor: float
    peak: Peak
    stdout: str
    stderr: str
    steps: dict[str, tuple[float, Peak]] = field(default_factory=dict)

    def document(self) -> Any:
        """What the command wrote to stdout, as JSON."""
        return json.loads(self.stdout)


def measure(command: Sequence[str], *, cwd: Path, steps: Sequence[str] = ()) -> Measured:
    """Run `command` to its end; a line of stderr that starts with one of `steps` begins that step."""
    start, before = time.perf_counter(), _processor()
    whole, by_step = Peak(), {}
    lines, current, ended = [], [None], threading.Event()
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True)  # noqa: S603 - our own command

    def listen() -> None:
        for line in process.stderr:
            lines.append(line)
            step = next((name for name in steps if line.startswith(name)), None)
            if step is not None:
                current[0] = step

    def look() -> None:
        last = time.perf_counter()
        while not ended.wait(_EVERY):
            main, together = resident(process.pid)
            whole.see(main, together)
            now, step = time.perf_counter(), current[0]
            if step is not None:
                seconds, peak = by_step.get(step, (0.0, Peak()))
                peak.see(main, together)
                by_step[step] = (seconds + now - last, peak)
            last = now

    threads = [threading.Thread(target=work, daemon=True) for work in (listen, look)]
    for thread in threads:
        thread.start()
    out = process.stdout.read()
    code = process.wait()
    ended.set()
    for thread in threads:
        thread.join()
    spent = _processor() - before
    return Measured(code, time.perf_counter() - start, spent, whole, out, "".join(lines), by_step)


def _processor() -> float:
    """Processor seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def resident(root: int) -> tuple[int, int]:
    """Bytes resident in process `root`, and in it and everything that it started."""
    parents, sizes = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue  # it has ended
        rest = text.rpartition(")")[2].split()
        parents[int(entry.name)] = int(rest[1])
        sizes[int(entry.name)] = int(rest[21]) * 4096
    family, grown = {root}, True
    while grown:
        children = {child for child, parent in parents.items() if parent in family} - family
        family, grown = family | children, bool(children)
    return sizes.get(root, 0), sum(sizes.get(member, 0) for member in family)
