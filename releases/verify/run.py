"""A verification: the ledger's releases, one or all, at one level and those before it."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provenance.errors import InputError, RemoteError
from releases.ledger.status import statuses
from releases.verify import ledger_level
from releases.verify.content import check_content, gap
from releases.verify.findings import LEDGER, LEVELS, MAIN, Gap, PinReport
from releases.verify.hub import HubReader
from releases.verify.load import Loading, job_of, run_job
from releases.verify.paced import BudgetSpentError, Paced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from releases.ledger.chain import Entry
    from releases.verify.state import State
    from releases.verify.target import Target

_MOST_AT_ONCE = 2


@dataclass(frozen=True)
class Asked:
    """What is to be verified.

    Attributes:
        level: a name in `findings.LEVELS`.
        pin: a tag; all releases without one.
        python: the interpreter that loads.
        budget: how many requests may be made.
    """

    level: str
    pin: str | None
    python: str
    budget: int

    @property
    def levels(self) -> tuple[str, ...]:
        """The level and those before it."""
        return LEVELS[: LEVELS.index(self.level) + 1]


def verify(
    entries: Sequence[Entry], target: Target, asked: Asked, state: State, say: Callable[[str], None]
) -> tuple[list[PinReport], int]:
    """Verify releases; one that fails does not stop the others.

    Returns:
        A report a release, after those of the ledger and of main; the number of requests that were made.

    Raises:
        RemoteError, InputError: not even the tags can be read.
    """
    paced = Paced(asked.budget)
    chosen = [entry for entry in entries if asked.pin in {None, entry.tag}]
    adopted = [entry for entry in chosen if ledger_level.is_adopted(entry)]
    reports = {
        entry.tag: PinReport(
            entry.tag, entry.revision, adopted=entry in adopted, levels=asked.levels, withdrawn=status.why
        )
        for entry, status in zip(entries, statuses(entries), strict=True)
        if entry in chosen
    }
    # Main is compared with the last release, where all are verified and that one is known.
    whole = asked.pin is None and bool(entries) and entries[-1] in adopted
    general = [PinReport(name, levels=("ledger",)) for name in (LEDGER, *([MAIN] if whole else []))]
    for entry in adopted:
        general[0].failures += ledger_level.inside(entry)
    if adopted:
        with paced.client():
            reader = HubReader(target)
            try:
                gone = _ledger(reader, entries, adopted, reports, general)
            except BudgetSpentError as error:
                for report in (*general, *reports.values()):
                    report.gaps += [gap(level, error) for level in report.levels]
                return [*general, *reports.values()], paced.used
            there = [entry for entry in adopted if entry.tag not in gone]
            if "content" in asked.levels:
                check_content(reader, [(entry, reports[entry.tag]) for entry in there], entries, state, say)
            jobs = {}
            if "load" in asked.levels:
                jobs = {entry.tag: job_of(reader, entry, reports[entry.tag]) for entry in there}
        loading = Loading(target, asked.python, state, say)
        _load(loading, {tag: job for tag, job in jobs.items() if job is not None}, reports, paced)
    return [*general, *reports.values()], paced.used


def _ledger(
    reader: HubReader,
    entries: Sequence[Entry],
    adopted: Sequence[Entry],
    reports: dict[str, PinReport],
    general: Sequence[PinReport],
) -> set[str]:
    """The level of the ledger; the tags of releases whose commit is gone.

    `general` are the reports of the ledger itself and, where that is compared, of main.
    """
    head, tags = reader.refs()
    history = reader.history() if head is not None else []
    gone = set()
    for entry in adopted:
        report = reports[entry.tag]
        report.failures += ledger_level.pin(entry, tags, history)
        try:
            listed = reader.files(str(entry.revision))
        except (RemoteError, InputError, BudgetSpentError) as error:
            report.gaps.append(gap("ledger", error))
            continue
        report.failures += ledger_level.tree(entry, listed)
        report.covered["ledger"] = {"files": len(entry.files)}
        if listed is None:
            gone.add(entry.tag)
            report.gaps += [Gap(level, "access", "its commit is not there") for level in report.levels[1:]]
    unknown = ledger_level.unknown_releases(entries, tags)
    general[0].failures += ledger_level.lacking(unknown)
    for main in general[1:]:
        last = entries[-1]
        try:
            files = None if head in {None, last.revision} else reader.files(str(head))
            main.failures += ledger_level.main(last, head, files, unknown)
        except (RemoteError, InputError, BudgetSpentError) as error:
            main.gaps.append(gap("ledger", error))
    return gone


def _load(loading: Loading, jobs: dict[str, dict[str, object]], reports: dict[str, PinReport], paced: Paced) -> None:
    """A process a release, as many at once as there are processors, at most two: a Hub counts an address's requests."""
    workers = min(_MOST_AT_ONCE, os.cpu_count() or 1, max(len(jobs), 1))
    allowance = _Allowance(paced, workers)

    def work(tag: str) -> None:
        share = allowance.take()
        used = 0
        try:
            if share == 0:
                reports[tag].gaps.append(Gap("load", "budget", f"the budget of {paced.budget} requests is spent"))
            else:
                used = run_job(loading, jobs[tag], reports[tag], share)
        finally:
            allowance.give_back(share, used)

    with ThreadPoolExecutor(workers) as executor:
        try:
            list(executor.map(work, jobs))
        except BaseException:
            # An interrupt ends the processes too.
            for process in list(loading.processes):
                process.kill()
            raise


class _Allowance:
    """The requests that are left, shared among processes that run at once."""

    def __init__(self, paced: Paced, workers: int) -> None:
        self._paced = paced
        self._free = workers
        self._lent = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        """The share of a process that starts."""
        with self._lock:
            share = (self._paced.budget - self._paced.used - self._lent) // self._free
            self._free -= 1
            self._lent += share
            return share

    def give_back(self, share: int, used: int) -> None:
        """A process has ended."""
        with self._lock:
            self._free += 1
            self._lent -= share
            self._paced.used += used
