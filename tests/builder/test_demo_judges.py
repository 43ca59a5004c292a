"""The demo's simulated judges and rerankers: real schedules, faults in known shares, relevance seen through noise."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from support.demo_inputs import BENCHMARK, DOMAINS, digests, judged_pools, judgements, qrels, read

from builder import demo
from builder.demo import relevance, texts

if TYPE_CHECKING:
    from pathlib import Path

CRITERIA = {"C1", "C2", "C3", "C4", "C5"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's inputs, made once for this module."""
    folder = tmp_path_factory.mktemp("demo") / "inputs"
    demo.materialise(folder)
    return folder


def usable(answer: str | None, finish_reason: str, size: int, stage: str) -> bool:
    """A second reading of an answer, coarser than the decoder: does it say something of every document?

    The object is sought from the first brace after any closed thinking; stray escapes are doubled.
    """
    if answer is None or finish_reason != "stop":
        return False
    text = answer.rsplit("</think>", 1)[-1].replace("\\pi", "\\\\pi")
    if "<think>" in text or "{" not in text:
        return False
    value, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    names = {f"doc_{place}" for place in range(1, size + 1)}
    if stage == "rubric":
        return set(value) == names and all(set(document["criteria"]) == CRITERIA for document in value.values())
    scores: dict[str, float] = value["scores"]
    return set(scores) == names == set(value["ranking"]) and all(-5 <= score <= 5 for score in scores.values())


def usable_rows(frame: pl.DataFrame, stage: str) -> list[bool]:
    """`usable` of each row."""
    return [
        usable(answer, reason, len(shown), stage)
        for answer, reason, shown in frame.select("answer", "finish_reason", "corpus-ids").iter_rows()
    ]


def test_schedule_is_the_methods(inputs: Path) -> None:
    """29 tournament and 13 rubric calls a query, in windows of 10 of its pool, by phase as for a pool of 20."""
    phases: dict[str, dict[str, int]] = {
        "tournament": {"random": 14, "stratified": 8, "adaptive": 7},
        "rubric": {"random": 6, "stratified": 7},
    }
    for judge in ("simulated", "simulated-2"):
        for stage, expected in phases.items():
            frame = judgements(inputs, judge, stage)
            for (domain, _), calls in frame.group_by("domain", "query-id"):
                assert expected == Counter(calls["phase"]), (judge, domain)
                assert list(range(sum(expected.values()))) == calls["call_index"].to_list()
            assert {10} == set(frame["corpus-ids"].list.len())
            assert frame["corpus-ids"].list.n_unique().to_list() == [10] * frame.height


def test_windows_are_mirrored(inputs: Path) -> None:
    """In the random and stratified phases of the tournament every second window is the reverse of the one before."""
    frame = judgements(inputs, "simulated", "tournament").filter(pl.col("phase") != "adaptive")
    shown = frame["corpus-ids"].to_list()
    assert [window[::-1] for window in shown[0::2]] == shown[1::2]


def test_windows_show_the_judged_pool(inputs: Path) -> None:
    """Every page of a pool is shown in both stages, and no other page is; the first window is the stated draw."""
    for domain in ("energy", "industrial"):
        pools = judged_pools(inputs, domain)
        for stage in ("tournament", "rubric"):
            frame = read(inputs, "pipeline", "judgements", "simulated", stage, f"{domain}.parquet")
            shown = frame.explode("corpus-ids").group_by("query-id").agg("corpus-ids")
            for query_id, pages in shown.iter_rows():
                assert set(pools[query_id]) == set(pages)
            stream = random.Random(f"42/{domain}/query-test-0")
            draws = [stream.random() for _ in range(20)]
            first = sorted(range(20), key=draws.__getitem__)[:10]
            stream.shuffle(first)
            assert [pools["query-test-0"][unit] for unit in first] == frame["corpus-ids"][0].to_list()


@pytest.mark.parametrize(
    ("judge", "stage", "every"),
    [
        ("simulated", "tournament", 33),
        ("simulated", "rubric", 97),
        ("simulated-2", "tournament", 61),
        ("simulated-2", "rubric", 151),
    ],
)
def test_unusable_share_is_known(inputs: Path, judge: str, stage: str, every: int) -> None:
    """A domain's every so many-th answer is unusable, and all others are usable, by an independent reading."""
    frame = judgements(inputs, judge, stage)
    for (domain,), calls in frame.group_by("domain", maintain_order=True):
        expected = [number % every != 0 for number in range(1, calls.height + 1)]
        assert expected == usable_rows(calls, stage), domain


def test_every_kind_of_fault_is_met(inputs: Path) -> None:
    """Cut off, refused, prose, unclosed thinking, a missing score, NaN, a missing document, an extra key."""
    tournament, rubric = (judgements(inputs, "simulated", stage) for stage in ("tournament", "rubric"))
    for frame in (tournament, rubric):
        assert frame.filter(pl.col("finish_reason") == "length").height > 2
        refused = frame.filter(pl.col("answer").is_null())
        assert refused.height > 2
        assert {"content_filter"} == set(refused["finish_reason"])
    answers = tournament["answer"].drop_nulls()
    assert answers.str.contains("NaN").sum() > 2
    assert (~answers.str.contains("{", literal=True)).sum() > 2
    assert (answers.str.starts_with("<think>Perhaps") & ~answers.str.contains("</think>")).sum() > 2
    assert (answers.str.count_matches(r'"doc_\d+": ') == 9).sum() > 2
    complete = rubric.filter(pl.col("finish_reason") == "stop")["answer"]
    assert (complete.str.count_matches(r'"doc_\d+"') == 9).sum() > 1
    assert complete.str.contains('"summary"').sum() > 1


def test_oddities_are_met_in_usable_answers(inputs: Path) -> None:
    """Closed and orphan thinking, fences, bad escapes and prose after the object stand in usable answers."""
    for stage in ("tournament", "rubric"):
        frame = judgements(inputs, "simulated", stage).filter(pl.col("answer").is_not_null())
        answers = frame.filter(pl.Series(usable_rows(frame, stage)))["answer"]
        for odd in ("<think>", "Weighing the pages.</think>", "```json", "\\pi", "were close."):
            assert answers.str.contains(odd, literal=True).sum() > 2, (stage, odd)


def test_reread_mends_the_first_judges_tournament_only(inputs: Path) -> None:
    """`pipeline-reread` differs in the first judge's unusable tournament answers, all usable there; nothing else."""
    before, after = digests(inputs / "pipeline"), digests(inputs / "pipeline-reread")
    changed = {name for name in before if before[name] != after[name]}
    assert set(before) == set(after)
    assert {f"judgements/simulated/tournament/{domain}.parquet" for domain in DOMAINS} == changed
    old = judgements(inputs, "simulated", "tournament")
    new = judgements(inputs, "simulated", "tournament", pipeline="pipeline-reread")
    assert old.drop("answer", "finish_reason").equals(new.drop("answer", "finish_reason"))
    assert all(usable_rows(new, "tournament"))
    kept = pl.Series(usable_rows(old, "tournament"))
    assert old.filter(kept).equals(new.filter(kept))


def test_scores_are_tenths(inputs: Path) -> None:
    """A tournament score is a number of tenths from -5 to 5, never -0.0."""
    plain = judgements(inputs, "simulated", "tournament")["answer"].str.starts_with('{"reasoning": "Compared')
    frame = judgements(inputs, "simulated", "tournament").filter(plain & (pl.col("finish_reason") == "stop"))
    values = frame["answer"].str.extract_all(r'"doc_\d+": (-?\d+\.\d)[,}]').explode().drop_nulls()
    assert values.len() > 30_000
    assert not values.str.contains("-0.0", literal=True).any()
    assert (values.str.extract(r"(-?\d+\.\d)[,}]").cast(pl.Float64).abs() <= 5).all()


def passes(inputs: Path, judge: str) -> dict[int, float]:
    """Grade -> mean of the five verdicts, over a judge's plain rubric answers."""
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for domain in DOMAINS:
        grades = {(query, page): score for query, page, score in qrels(inputs, domain).iter_rows()}
        frame = read(inputs, "pipeline", "judgements", judge, "rubric", f"{domain}.parquet")
        for query, shown, answer in frame.select("query-id", "corpus-ids", "answer").iter_rows():
            if answer is None or not answer.startswith('{"doc_1"') or not answer.endswith("}}}"):
                continue
            value: dict[str, Any] = json.loads(answer.replace("\\pi", ""))
            for name, document in value.items():
                page = shown[int(name.removeprefix("doc_")) - 1]
                found[grades.get((query, page), 0)] += document["criteria"].values()
    return {grade: sum(values) / len(values) for grade, values in found.items()}


def test_judges_follow_the_relevance(inputs: Path) -> None:
    """Pages with a higher grade pass more criteria, and the second judge passes fewer at every grade."""
    first, strict = passes(inputs, "simulated"), passes(inputs, "simulated-2")
    for judge in (first, strict):
        assert judge[2] > judge[1] > judge[0] + 0.2
    assert all(first[grade] > strict[grade] + 0.05 for grade in first)


def test_runs_score_each_pool_pair_once(inputs: Path) -> None:
    """Four rerankers, each of which scores exactly the judged pool of each query, in an order of its own."""
    for domain in DOMAINS:
        frame = read(inputs, "pipeline", "runs", f"{domain}.parquet")
        pools = judged_pools(inputs, domain)
        assert set(BENCHMARK.rerankers) == set(frame["model"])
        in_pool_order = 0
        for (_, query_id), rows in frame.group_by("model", "query-id", maintain_order=True):
            assert sorted(pools[str(query_id)]) == sorted(rows["corpus-id"])
            in_pool_order += rows["corpus-id"].to_list() == pools[str(query_id)]
        assert in_pool_order == 0
        assert frame["score"].is_finite().all()


def test_one_reranker_has_many_ties(inputs: Path) -> None:
    """`simulated-coarse` gives at most five scores; the other simulated ones have hardly an equal pair in a query."""
    for domain in DOMAINS:
        frame = read(inputs, "pipeline", "runs", f"{domain}.parquet")
        distinct = frame.group_by("model", "query-id").agg(pl.col("score").n_unique())
        by_model = dict(distinct.group_by("model").agg(pl.col("score").mean()).iter_rows())
        assert by_model["simulated-coarse"] <= 5
        assert by_model["simulated-large"] > 19
        assert by_model["simulated-small"] > 19


def test_repeated_page_is_as_relevant_as_its_original() -> None:
    """Relevance follows the text: the copy of a labelled overview has its level, without having its label."""
    domain = texts.load_domain("hr", seed=demo.SEED)
    copy = next(page for page in domain.pages if page.kind == "copy")
    original = next(page for page in domain.pages if page.text == copy.text)
    question = domain.questions[2]
    assert "copy" not in question.labels
    assert question.labels["overview"] == 1
    assert relevance._level(original, question) == relevance._level(copy, question) == 1.3


def test_noise_has_its_spread() -> None:
    """4,000 draws have the mean and the standard deviation asked for, within 5 standard errors."""
    values = [relevance.noise("test", number, spread=2.0) for number in range(4000)]
    mean = sum(values) / 4000
    deviation = (sum((value - mean) ** 2 for value in values) / 4000) ** 0.5
    assert pytest.approx(0.0, abs=0.16) == mean
    assert pytest.approx(2.0, abs=0.12) == deviation
