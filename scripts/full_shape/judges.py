"""Windows and raw answers of both stages; a published share of the answers is of no use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from builder.inputs import ANSWERS
from full_shape.shares import POOL, RUBRIC_WINDOWS, WINDOWS
from full_shape.tables import names, prose
from provenance.verdicts import CRITERIA

if TYPE_CHECKING:
    from full_shape.tables import Tables

WIDTH = 10
GAMMA, BETA = np.array([1.3, 1.15, 1.0, 0.9, 0.65]), np.array([-2.2, -1.0, 0.1, 1.1, 2.0])
OPENINGS = (
    "Compared the pages on how directly they treat the request",
    "Looked for the exact entity that is asked for",
)


class Faults:
    """Which calls of a domain are not made, and which answers are odd or of no use."""

    def __init__(self, counts: dict[str, int], random: np.random.Generator, queries: int) -> None:
        batch = 8  # windows
        self.calls = np.full(queries, WINDOWS)
        stopped = random.permutation(queries)
        self.calls[stopped[: counts["missing"] // batch]] -= batch
        self.calls[stopped[-1]] -= counts["missing"] % batch
        self.rubric_calls = np.full(queries, RUBRIC_WINDOWS)
        self.rubric_calls[stopped[: counts["rubric_missing"]]] -= 1
        drawn = random.permutation(int(self.calls.sum()))
        self.kind: dict[int, str] = {}
        for kind in ("partial", "unreadable", "odd"):
            taken, drawn = drawn[: counts[kind]], drawn[counts[kind] :]
            self.kind |= dict.fromkeys(taken.tolist(), kind)
        chosen = random.permutation(int(self.rubric_calls.sum()))[: counts["rubric_unusable"]]
        self.rubric_kind = dict.fromkeys(chosen.tolist(), "partial")
        self.asked, self.rubric_asked = 0, 0


class Desk(NamedTuple):
    """Where a domain's judge sits."""

    tables: Tables
    domain: str
    random: np.random.Generator
    faults: Faults


class Shown(NamedTuple):
    """A block's windows: places in each query's pool `(queries, windows, 10)`, which are asked, and their phases."""

    block: np.ndarray
    pool: np.ndarray
    places: np.ndarray
    kept: np.ndarray
    phases: np.ndarray


def write_tournament(desk: Desk, block: np.ndarray, pool: np.ndarray, truth: np.ndarray) -> None:
    """216 windows a query: 53 balanced and 27 stratified, each with its mirror, and 7 batches of 8 near the top."""
    random, faults = desk.random, desk.faults
    random, faults = desk.random, desk.faults
    rows = len(block)
    balanced = random.random((rows, 4, POOL)).argsort(axis=2).reshape(rows, -1, WIDTH)[:, :53]
    order = (truth + random.normal(0, 0.6, truth.shape)).argsort(axis=1)[:, ::-1]
    starts = np.linspace(0, POOL - WIDTH, 27).round().astype(int)
    stratified = order[:, starts[:, np.newaxis] + np.arange(WIDTH)]
    stratified = random.permuted(stratified, axis=2)
    starts = (random.random((rows, 56)) ** 3 * (POOL - WIDTH + 1)).astype(int)
    places = starts[..., np.newaxis] + np.arange(WIDTH)
    adaptive = np.take_along_axis(order[:, np.newaxis, :].repeat(56, axis=1), places, axis=2)
    windows = np.concatenate([mirrored(balanced), mirrored(stratified), adaptive], axis=1)
    scores = np.take_along_axis(truth[:, np.newaxis, :].repeat(WINDOWS, axis=1), windows, axis=2)
    tenths = (10 * np.clip(scores + random.normal(0, 0.8, scores.shape), -5, 5)).round().astype(int)
    ranking = (1 - tenths).argsort(axis=2, kind="stable") + 1
    kept = np.arange(WINDOWS) < faults.calls[block, np.newaxis]
    reasons = [f"{OPENINGS[i % 2]}; {prose(random, 28)}" for i in range(32)]
    chosen = random.integers(0, len(reasons), int(kept.sum())).tolist()
    numbers = [f"{tenth / 10:.1f}" for tenth in range(-50, 51)]
    docs = '"doc_%s", ' * (WIDTH - 1) + '"doc_%s"'
    pairs = ", ".join(f'"doc_{slot}": %s' for slot in range(1, WIDTH + 1))
    template = f'{{"reasoning": "%s", "ranking": [{docs}], "scores": {{{pairs}}}}}'
    answers = [
        template % (reasons[reason], *ranks, *[numbers[tenth] for tenth in row])
        for reason, ranks, row in zip(chosen, ranking[kept].tolist(), (tenths[kept] + 50).tolist(), strict=True)
    ]
    finish = spoil(answers, faults.kind, faults.asked)
    faults.asked += len(answers)
    phases = np.repeat([0, 1, 2], [106, 54, 56])
    write_answers(desk, "tournament", Shown(block, pool, windows, kept, phases), answers, finish)


def mirrored(windows: np.ndarray) -> np.ndarray:
    """Each window followed by its reverse."""
    return np.stack([windows, windows[..., ::-1]], axis=2).reshape(len(windows), -1, WIDTH)


def write_rubric(desk: Desk, block: np.ndarray, pool: np.ndarray, truth: np.ndarray) -> None:
    """100 windows a query: 50 balanced and 50 stratified, no mirrors."""
    random, faults = desk.random, desk.faults
    random, faults = desk.random, desk.faults
    rows = len(block)
    balanced = random.random((rows, 4, POOL)).argsort(axis=2).reshape(rows, -1, WIDTH)[:, :50]
    order = (truth + random.normal(0, 0.6, truth.shape)).argsort(axis=1)[:, ::-1]
    starts = np.linspace(0, POOL - WIDTH, 50).round().astype(int)
    stratified = random.permuted(order[:, starts[:, np.newaxis] + np.arange(WIDTH)], axis=2)
    windows = np.concatenate([balanced, stratified], axis=1)
    theta = random.uniform(0.7, 1.5, (rows, 1)) * truth + random.normal(0, 1, (rows, 1))
    chance = 1 / (1 + np.exp(-GAMMA * (theta[..., np.newaxis] - BETA)))
    codes = np.empty(windows.shape, dtype=np.int64)
    for query in range(rows):
        passed = random.random((*windows.shape[1:], len(CRITERIA))) < chance[query][windows[query]]
        codes[query] = passed @ (1 << np.arange(len(CRITERIA)))
    variants = 4
    pieces = []
    for code in range(1 << len(CRITERIA)):
        criteria = json.dumps({name: code >> place & 1 for place, name in enumerate(CRITERIA)})
        pieces += [f'{{"reasoning": "{prose(random, 8)}", "criteria": {criteria}}}' for _ in range(variants)]
    pieces_of = codes * variants + random.integers(0, variants, codes.shape)
    kept = np.arange(RUBRIC_WINDOWS) < faults.rubric_calls[block, np.newaxis]
    template = "{" + ", ".join(f'"doc_{slot}": %s' for slot in range(1, WIDTH + 1)) + "}"
    answers = [template % tuple([pieces[piece] for piece in row]) for row in pieces_of[kept].tolist()]
    finish = spoil(answers, faults.rubric_kind, faults.rubric_asked)
    faults.rubric_asked += len(answers)
    phases = np.repeat([0, 1], [50, 50])
    write_answers(desk, "rubric", Shown(block, pool, windows, kept, phases), answers, finish)


def spoil(answers: list[str | None], kinds: dict[int, str], first: int) -> list[str]:
    """Spoil the answers whose turn it is, in place; returns every finish_reason."""
    finish = ["stop"] * len(answers)
    for place in range(len(answers)):
        kind = kinds.get(first + place)
        if kind is None:
            continue
        text, turn = answers[place], (first + place) % 4
        if kind == "partial":
            answers[place] = text[: text.rindex(', "doc_10": ')] + ("}}" if '"scores"' in text else "}")
        elif kind == "odd":
            answers[place] = (
                f"<think>First a look at {{all}} of them.</think>\n{text}",
                f"```json\n{text}\n```",
                text.replace('"reasoning": "', '"reasoning": "About \\pi pages. ', 1),
                f"{text}\nThe last pages were close.",
            )[turn]
        elif turn == 0:
            answers[place], finish[place] = text[: len(text) // 2], "length"
        else:
            answers[place] = (None, "1. doc_3 is best. 2. doc_1.", f"<think>Perhaps {text}")[turn - 1]
    return finish


def write_answers(desk: Desk, stage: str, windows: Shown, answers: list[str | None], finish: list[str]) -> None:
    """A block's windows with what came back."""
    block, pool, places, kept, phases = windows
    shown = np.take_along_axis(pool[:, np.newaxis, :].repeat(places.shape[1], axis=1), places, axis=2)[kept]
    which, call = np.nonzero(kept)
    offsets = np.arange(0, shown.size + 1, WIDTH, dtype=np.int32)
    table = pa.table(
        {
            "query-id": names("query", block[which]).cast(pa.string()),
            "call_index": call,
            "phase": pa.DictionaryArray.from_arrays(
                phases[call].astype(np.int32), ["random", "stratified", "adaptive"]
            ).cast(pa.string()),
            "corpus-ids": pa.ListArray.from_arrays(offsets, names("corpus", shown).cast(pa.string())),
            "answer": pa.array(answers, pa.string()),
            "finish_reason": pa.array(finish, pa.string()),
        },
        schema=ANSWERS,
    )
    desk.tables.add(f"pipeline/judgements/simulated/{stage}/{desk.domain}.parquet", table)
