"""The demo's simulated judges: real schedules, simulated answers (method spec sections 4, 5.1 and 7).

A judge sees the latent relevance through noise of its own. It is no model, and is called
`simulated` wherever it is shown. For the ability between phases a running mean of the scores stands
in for the live Bradley-Terry fit: only the order of pages matters to the schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from builder.demo import answers
from builder.demo.relevance import noise
from provenance import schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOWEST, _HIGHEST = -5.0, 5.0


@dataclass(frozen=True)
class JudgeModel:
    """A simulated judge.

    Attributes:
        name: its name in the benchmark file.
        severity: logits that it takes off every page in the rubric; 0 for the first judge.
        score_spread: standard deviation of a tournament score about the relevance, in logits.
        opinion_spread: standard deviation of its lasting opinion of a (query, page), in logits.
        unusable_every: every so many-th tournament answer of a domain is unusable.
        rubric_unusable_every: the same for the rubric.
        odd_every: every so many-th usable answer is odd, and has to be seen through.
    """

    name: str
    severity: float
    score_spread: float
    opinion_spread: float
    unusable_every: int
    rubric_unusable_every: int
    odd_every: int = 29


FIRST = JudgeModel("simulated", 0.0, 0.8, 0.2, unusable_every=33, rubric_unusable_every=97)
STRICT = JudgeModel("simulated-2", 0.9, 0.6, 0.5, unusable_every=61, rubric_unusable_every=151)
JUDGES = (FIRST, STRICT)

# Discrimination and difficulty of the criteria, C1 to C5, as the simulated judges apply them.
_GAMMA = (1.3, 1.2, 1.0, 1.0, 0.8)
_BETA = (-1.6, -0.8, 0.0, 0.9, 1.9)


@dataclass(frozen=True)
class Call:
    """One window of a query: what was shown (page ids in prompt order) and what came back."""

    query_id: str
    call_index: int
    phase: str
    page_ids: tuple[str, ...]
    answer: answers.Answer


@dataclass
class Clerk:
    """Turns answers into text; counts a stage's answers over a domain to make a known share of them unusable.

    Attributes:
        stage: `tournament` or `rubric`.
        unusable_every: every so many-th answer is unusable.
        odd_every: every so many-th answer is odd, unless it is unusable.
        first_kind: where the turn of the unusable kinds begins, so that each is met over the domains.
        reread: read every unusable answer again: this time it is as asked for.
    """

    stage: str
    unusable_every: int
    odd_every: int
    first_kind: int
    reread: bool
    _count: int = field(default=0, init=False)
    _unusable: int = field(default=0, init=False)
    _odd: int = field(default=0, init=False)

    def write(self, content: dict[str, object]) -> tuple[answers.Answer, bool]:
        """The answer, and whether it was usable when the judge first gave it."""
        self._count += 1
        if self._count % self.unusable_every == 0:
            kinds = answers.UNUSABLE[self.stage]
            kind = kinds[(self.first_kind + self._unusable) % len(kinds)]
            self._unusable += 1
            return (answers.plain(content) if self.reread else kind(content)), False
        if self._count % self.odd_every == 0:
            self._odd += 1
            return answers.ODD[(self._odd - 1) % len(answers.ODD)](content), True
        return answers.plain(content), True


@dataclass(frozen=True)
class Seat:
    """A judge before the pool of one query: `opinion` is its relevance of each unit, in pool order."""

    model: JudgeModel
    key: str
    dataset: str
    query_id: str
    page_ids: Sequence[str]
    opinion: Sequence[float]

    def scores(self, window: Sequence[int], call: int) -> list[float]:
        """A score a page of the window: tenths from -5 to 5."""
        found = []
        for unit in window:
            seen = self.opinion[unit] + noise(self.key, "score", call, unit, spread=self.model.score_spread)
            # Adding 0.0 turns the negative zero that rounding may give into zero.
            found.append(round(min(max(seen, _LOWEST), _HIGHEST), 1) + 0.0)
        return found

    def verdicts(self, window: Sequence[int], call: int) -> list[dict[str, int]]:
        """The five criteria of each page: a pass with probability sigma(gamma (theta - beta))."""
        found = []
        for unit in window:
            theta = self.opinion[unit] - self.model.severity
            draws = schedule.stream(self.key, f"verdict/{call}/{unit}")
            passes = {}
            for criterion, gamma, beta in zip(answers.CRITERIA, _GAMMA, _BETA, strict=True):
                passes[criterion] = int(draws.random() < 1.0 / (1.0 + math.exp(-gamma * (theta - beta))))
            found.append(passes)
        return found


def take_seat(
    model: JudgeModel, *, seed: int, dataset: str, query_id: str, page_ids: Sequence[str], truth: Sequence[float]
) -> Seat:
    """Put a judge before a pool; `truth` is the latent relevance of each page, in logits."""
    key = f"{seed}/{model.name}/{dataset}/{query_id}"
    opinion = [
        value + noise(key, "opinion", page_id, spread=model.opinion_spread)
        for page_id, value in zip(page_ids, truth, strict=True)
    ]
    return Seat(model, key, dataset, query_id, page_ids, opinion)


def tournament(seat: Seat, clerk: Clerk) -> list[Call]:
    """Stage A of a query, by the schedule of method spec section 4; unusable answers teach the schedule nothing."""
    n = len(seat.page_ids)
    counts = schedule.tournament_counts(n)
    rng = schedule.stream(seat.dataset, seat.query_id)
    calls: list[Call] = []
    usable: list[schedule.Window] = []
    totals, shown = [0.0] * n, [0] * n

    def ask(windows: Sequence[schedule.Window], phase: str) -> None:
        for window in windows:
            scores = seat.scores(window, len(calls))
            answer, was_usable = clerk.write(answers.tournament(scores))
            page_ids = tuple(seat.page_ids[unit] for unit in window)
            calls.append(Call(seat.query_id, len(calls), phase, page_ids, answer))
            if was_usable:
                usable.append(window)
                for unit, score in zip(window, scores, strict=True):
                    totals[unit] += score
                    shown[unit] += 1

    def ability() -> list[float]:
        return [total / count if count else 0.0 for total, count in zip(totals, shown, strict=True)]

    ask(schedule.mirrored(schedule.balanced_windows(rng, n, schedule.WINDOW, counts.random)), "random")
    order = schedule.by_ability(ability())
    ask(
        schedule.mirrored(schedule.stratified_windows(rng, order, schedule.WINDOW, counts.stratified)),
        "stratified",
    )
    for _ in range(counts.batches):
        batch = schedule.adaptive_batch(ability(), usable, schedule.WINDOW, counts.adaptive)
        if not batch:
            break
        ask(batch, "adaptive")
    return calls


def rubric(seat: Seat, clerk: Clerk) -> list[Call]:
    """Stage B of a query, by the schedule of method spec section 7.1."""
    n = len(seat.page_ids)
    counts = schedule.rubric_counts(n)
    rng = schedule.stream(seat.dataset, seat.query_id)
    calls: list[Call] = []
    passes, shown = [0] * n, [0] * n

    def ask(windows: Sequence[schedule.Window], phase: str) -> None:
        for window in windows:
            verdicts = seat.verdicts(window, len(calls))
            answer, was_usable = clerk.write(answers.rubric(verdicts))
            page_ids = tuple(seat.page_ids[unit] for unit in window)
            calls.append(Call(seat.query_id, len(calls), phase, page_ids, answer))
            if was_usable:
                for unit, criteria in zip(window, verdicts, strict=True):
                    passes[unit] += sum(criteria.values())
                    shown[unit] += 1

    ask(schedule.balanced_windows(rng, n, schedule.WINDOW, counts.random), "random")
    share = [passed / count if count else 0.0 for passed, count in zip(passes, shown, strict=True)]
    order = schedule.by_ability(share)
    ask(schedule.stratified_windows(rng, order, schedule.WINDOW, counts.stratified), "stratified")
    return calls
