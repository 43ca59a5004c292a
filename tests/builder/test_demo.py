"""The demo's inputs: their shape, their faults in known shares, and that they are the same every time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
from collections import Counter
from importlib import metadata
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from PIL import Image

from builder import demo
from builder.benchmark import load_benchmark
from builder.demo import relevance, retrieval, texts
from provenance import fusion, pool
from provenance.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

BENCHMARK = load_benchmark("demo")
LANGUAGES = ("english", "french", "german", "italian", "portuguese", "spanish")
DOMAINS = (
    "computer_science",
    "energy",
    "finance_en",
    "finance_fr",
    "hr",
    "industrial",
    "pharmaceuticals",
    "physics",
)
TWO_BATCHES = ("computer_science", "energy", "finance_en", "hr", "pharmaceuticals")
SHARD = "test-00000-of-00001.parquet"
# What this project's first machine made; a change of texts or of the simulation changes it on purpose.
PINNED = "b47c73bad3d5976b08bf793ac7d895746ec264291a42ff538a428135e54d605e"
CRITERIA = {"C1", "C2", "C3", "C4", "C5"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's inputs, made once for this module."""
    folder = tmp_path_factory.mktemp("demo") / "inputs"
    demo.materialise(folder)
    return folder


def read(*parts: str | Path) -> pl.DataFrame:
    """One Parquet file."""
    return pl.read_parquet(os.path.join(*parts))  # noqa: PTH118 - joins strings and paths alike


def corpus(inputs: Path, domain: str) -> pl.DataFrame:
    """A domain's pages."""
    return read(inputs, "upstream", domain, "corpus", SHARD)


def queries(inputs: Path, domain: str) -> pl.DataFrame:
    """A domain's questions in all languages, with the config that each row stands in."""
    frames = [
        read(inputs, "upstream", domain, f"{language}-queries", SHARD).with_columns(config=pl.lit(language))
        for language in LANGUAGES
    ]
    return pl.concat(frames)


def qrels(inputs: Path, domain: str, language: str = "english") -> pl.DataFrame:
    """A domain's labels as one language's config holds them."""
    return read(inputs, "upstream", domain, f"{language}-qrels", SHARD)


def judgements(inputs: Path, judge: str, stage: str, *, pipeline: str = "pipeline") -> pl.DataFrame:
    """All domains' answers of a stage."""
    frames = [
        read(inputs, pipeline, "judgements", judge, stage, f"{domain}.parquet").with_columns(domain=pl.lit(domain))
        for domain in DOMAINS
    ]
    return pl.concat(frames)


def digests(folder: Path) -> dict[str, str]:
    """Every file's path and SHA-256."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


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


def test_same_bytes_twice(inputs: Path, tmp_path: Path) -> None:
    """Two materialisations give the same files with the same bytes."""
    demo.materialise(tmp_path / "again")
    assert digests(inputs) == digests(tmp_path / "again")


def test_tables_do_not_depend_on_the_machine(inputs: Path) -> None:
    """The tables' content is pinned: a digest over every row of every table, page images left out."""
    total = hashlib.sha256()
    for path in sorted(inputs.rglob("*.parquet")):
        frame = pl.read_parquet(path).drop("image", strict=False)
        rows = [json.dumps(row, ensure_ascii=False) for row in frame.iter_rows()]
        total.update("\n".join([path.relative_to(inputs).as_posix(), *frame.columns, *rows]).encode())
    assert total.hexdigest() == PINNED


def test_layout_is_a_real_benchmarks(inputs: Path, reference: Path) -> None:
    """Each domain holds the files of a domain of the real benchmark, with its columns, types and feature metadata."""
    model = {
        "upstream": reference / "upstream" / "sysadmin_en",
        "pipeline/first_stage": reference / "pipeline" / "first_stage" / "sysadmin_en.parquet",
        "pipeline/runs": reference / "pipeline" / "runs" / "sysadmin_en.parquet",
    }
    for stage in ("tournament", "rubric"):
        place = f"judgements/simulated/{stage}"
        model[f"pipeline/{place}"] = reference / "pipeline" / place / "sysadmin_en.parquet"
    for domain in DOMAINS:
        for place, example in model.items():
            ours = inputs / place / (domain if example.is_dir() else f"{domain}.parquet")
            names = (
                [path.relative_to(example) for path in sorted(example.rglob("*.parquet"))] if example.is_dir() else [""]
            )
            for name in names:
                expected, actual = pq.read_schema(example / name), pq.read_schema(ours / name)
                assert expected.equals(actual, check_metadata=True), (domain, place, name)
    front_matter = (model["upstream"] / "README.md").read_text("utf-8").split("---")[1].replace("gpl-2.0", "apache-2.0")
    assert front_matter == (inputs / "upstream" / "hr" / "README.md").read_text("utf-8").split("---")[1]


def test_forty_eight_subsets(inputs: Path) -> None:
    """Eight domains in six languages, as the benchmark file says, each with three questions and 40 pages."""
    assert tuple(BENCHMARK.domains) == DOMAINS
    assert tuple(BENCHMARK.languages) == LANGUAGES
    assert [f"{domain}__{language}" for domain in DOMAINS for language in LANGUAGES] == [
        subset.name for subset in BENCHMARK.subsets()
    ]
    for domain in DOMAINS:
        assert dict.fromkeys(LANGUAGES, 3) == Counter(queries(inputs, domain)["config"])
        assert corpus(inputs, domain).height == 40


def test_native_languages_are_upstreams() -> None:
    """Energy, finance_fr and physics are French, the others English, in the benchmark file and in the texts."""
    french = {"energy", "finance_fr", "physics"}
    for domain in DOMAINS:
        expected = "french" if domain in french else "english"
        assert expected == BENCHMARK.domains[domain].native_language
        assert expected == texts.load_domain(domain, seed=demo.SEED).language


def test_query_ids_are_upstreams(inputs: Path) -> None:
    """Ids are `query-test-0` to `query-test-17`, over all languages; the language column is the config's."""
    for domain in DOMAINS:
        frame = queries(inputs, domain)
        assert {f"query-test-{number}" for number in range(18)} == set(frame["id"])
        assert frame["config"].to_list() == frame["language"].to_list()
        assert frame["text"].n_unique() == 18


def test_position_does_not_tell_the_language(inputs: Path) -> None:
    """Five domains hold two batches of language blocks: the blocks by number are twelve there, and six elsewhere."""
    for domain in DOMAINS:
        frame = queries(inputs, domain).sort(pl.col("id").str.extract(r"(\d+)$").cast(pl.Int64))
        blocks = frame["language"].rle_id().n_unique()
        assert blocks == (12 if domain in TWO_BATCHES else 6), domain


def test_qrels_hold_all_languages(inputs: Path) -> None:
    """Each language's qrels are the same rows, of all 18 queries, with grades 1 and 2."""
    for domain in DOMAINS:
        first = qrels(inputs, domain)
        assert first["query-id"].n_unique() == 18
        assert {1, 2} == set(first["score"])
        assert first.select("query-id", "corpus-id").is_unique().all()
        for language in LANGUAGES[1:]:
            assert first.equals(qrels(inputs, domain, language))


def test_each_language_has_the_same_labels(inputs: Path) -> None:
    """The translations of a question share its labels."""
    for domain in DOMAINS:
        joined = qrels(inputs, domain).join(queries(inputs, domain), left_on="query-id", right_on="id")
        by_language = {
            language: sorted(frame.select("corpus-id", "score").rows())
            for (language,), frame in joined.group_by("language")
        }
        assert len(by_language) == 6
        assert len({tuple(rows) for rows in by_language.values()}) == 1


def test_one_page_without_text_and_one_pair(inputs: Path) -> None:
    """Each domain has one page whose text is "" and two pages with the same text, and nothing else alike."""
    for domain in DOMAINS:
        pages = corpus(inputs, domain)
        assert pages["text"].null_count() == 0
        assert Counter({1: 38, 2: 1}) == Counter(Counter(pages["text"]).values())
        assert pages.filter(pl.col("text") == "").height == 1
        assert pages["image"].struct.field("bytes").n_unique() == 40


def test_a_table_a_chart_and_a_figure(inputs: Path) -> None:
    """Every topic has one of each, named in the page's text, and the picture without text is a drawing too."""
    for domain in DOMAINS:
        found = corpus(inputs, domain)["text"].str.extract(r"^(Table|Chart|Tableau|Graphique|Figure) \d\. ")
        words = {"english": ("Table", "Chart"), "french": ("Tableau", "Graphique")}
        table, chart = words[BENCHMARK.domains[domain].native_language]
        # Two figures gave way to the repeated page and to the page without text.
        assert Counter({table: 8, chart: 8, "Figure": 6}) == Counter(found.drop_nulls())


def test_images_are_small_greyscale_png(inputs: Path) -> None:
    """Every page is a 480 x 640 greyscale PNG under 40 kB, with ink on it, and its path has no folder."""
    for domain in DOMAINS:
        for number, cell in enumerate(corpus(inputs, domain)["image"]):
            with Image.open(io.BytesIO(cell["bytes"])) as image:
                assert ("PNG", "L", (480, 640)) == (image.format, image.mode, image.size)
                low, high = image.getextrema()
            assert (low, high) < (200, 256)
            assert len(cell["bytes"]) < 40_000
            assert cell["path"] == f"{domain}-{number:03}.png"


def test_expected_counts_are_those_of_the_files(inputs: Path) -> None:
    """The benchmark file's [expected] equals a count of the files."""
    injected = 0
    for domain in DOMAINS:
        pages, labels = corpus(inputs, domain), qrels(inputs, domain)
        english = labels.join(
            queries(inputs, domain).filter(pl.col("language") == "english"), left_on="query-id", right_on="id"
        )
        counted = {
            "pages": pages.height,
            "queries": queries(inputs, domain).height // 6,
            "labels": english.height,
            "labelled_pages": english["corpus-id"].n_unique(),
            "pages_without_text": (pages["text"] == "").sum(),
            "distinct_texts": len(set(pages["text"])),
        }
        assert counted == BENCHMARK.expected["domains"][domain]
        stored = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
        fused = stored.filter(pl.col("retriever") == "rrf_fused")
        injected += labels.join(fused, on=["query-id", "corpus-id"], how="anti").height
    assert injected == BENCHMARK.expected["injected_pairs"]
    assert 0 < injected < 0.05 * 8 * 18 * 20


def test_first_stage_fuses_to_its_stored_rows(inputs: Path) -> None:
    """Every domain's lists pass the checks of a first stage, and the stored fusion is theirs."""
    for domain in DOMAINS:
        frame = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
        asked = queries(inputs, domain)["id"].to_list()
        retrievers = BENCHMARK.fusion.retrievers
        fusion.check_first_stage(frame, retrievers=retrievers, query_ids=asked, file=domain)
        fused = fusion.fuse(frame, retrievers=retrievers, k=60, depth=20, query_ids=asked)
        fusion.check_fused(frame, fused, file=domain)
        assert frame.filter(pl.col("retriever") == "rrf_fused").height == 18 * 20
        empty = corpus(inputs, domain).filter(pl.col("text") == "")["id"].item()
        assert empty not in set(frame["corpus-id"])


def test_bm25_matches_words_only(inputs: Path) -> None:
    """BM25 returns pages with a positive score only, so its lists differ in length; hashed embeddings return 20."""
    lengths: dict[str, set[int]] = {"hashed": set(), "bm25": set()}
    for domain in DOMAINS:
        frame = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
        for retriever, found in lengths.items():
            rows = frame.filter(pl.col("retriever") == retriever)
            found |= set(rows.group_by("query-id").len()["len"])
        assert frame.filter(pl.col("retriever") == "bm25")["score"].min() > 0  # type: ignore[operator]
    assert {20} == lengths["hashed"]
    assert len(lengths["bm25"]) > 5


def test_bm25_by_hand() -> None:
    """Two pages, one query word: the score is idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))."""
    pages = tuple(texts.Page(number, 0, "detail", text) for number, text in enumerate(["pump pump oil", "oil", ""]))
    world = texts.Domain("tiny", "english", "Tiny", (), (), pages, ())
    # idf = ln(1 + (2 - 1 + 0.5) / (1 + 0.5)) = ln 2; mean length 2; page 0: 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 1.5)).
    assert [0.853104, 0.0, 0.0] == pytest.approx(retrieval.bm25(world)("pump"), abs=1e-6)


def test_tokens_are_without_accents_and_cut() -> None:
    """Accents go, case goes, single letters go, six characters stay."""
    assert ["eolien", "terres", "isolat"] == retrieval.tokens("L'Éolienne terrestre : d'isolation")


def test_native_questions_find_their_answer(inputs: Path) -> None:
    """BM25 is meaningful: in the native language its first page is a labelled one for at least 20 of 24 questions."""
    hits = 0
    for domain in DOMAINS:
        native = queries(inputs, domain).filter(pl.col("language") == BENCHMARK.domains[domain].native_language)
        frame = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
        best = frame.filter((pl.col("retriever") == "bm25") & (pl.col("rank") == 1)).join(
            native, left_on="query-id", right_on="id"
        )
        hits += best.join(qrels(inputs, domain), on=["query-id", "corpus-id"]).height
    assert hits >= 20


def judged_pools(inputs: Path, domain: str) -> dict[str, list[str]]:
    """Each query's pool, made from the stored fusion and the labels."""
    stored = read(inputs, "pipeline", "first_stage", f"{domain}.parquet")
    fused = stored.filter(pl.col("retriever") == "rrf_fused").drop("retriever")
    made = pool.inject(fused, qrels(inputs, domain).select("query-id", "corpus-id"), size=20)
    return dict(made.group_by("query-id", maintain_order=True).agg("corpus-id").iter_rows())


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


def test_materialise_refuses_a_full_folder(tmp_path: Path) -> None:
    """A folder with something in it is refused, left as it was, and nothing is left beside it."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        demo.materialise(tmp_path / "full")
    assert ["full", "full/mine"] == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))


def test_interrupted_materialisation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing stops half-way there is no folder, and no rest of one."""

    def stop(folder: Path, *, seed: int) -> None:
        (folder / "upstream").mkdir()
        raise KeyboardInterrupt(seed)

    monkeypatch.setattr("builder.demo.world.write", stop)
    with pytest.raises(KeyboardInterrupt):
        demo.materialise(tmp_path / "inputs")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A stand-in for the writing, which takes no time; holds one entry a call."""
    calls: list[int] = []

    def write(folder: Path, *, seed: int) -> None:
        calls.append(seed)
        for place in ("pipeline", "pipeline-reread", "upstream/energy"):
            (folder / place).mkdir(parents=True)

    monkeypatch.setattr("builder.demo.world.write", write)
    return calls


def test_ensure_makes_once(tmp_path: Path, quick: list[int]) -> None:
    """The first call makes the folder, the second finds it; its name holds the digest of what it is made from."""
    first = demo.ensure(tmp_path)
    assert first == demo.ensure(tmp_path) == tmp_path / f"demo-{demo.digest()}"
    assert [demo.SEED] == quick


def test_digest_follows_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Pillow is another digest, because its images may differ."""
    before = demo.digest()
    assert before == demo.digest()
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.0" if name == "pillow" else real(name))
    assert before != demo.digest()


def test_cache_is_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME names the cache, else ~/.cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "rcp-release" == demo.default_cache()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert tmp_path / "home" / ".cache" / "rcp-release" == demo.default_cache()


@pytest.mark.usefixtures("quick")
def test_resolve_knows_its_folders(tmp_path: Path) -> None:
    """`demo://` addresses are folders of the inputs; any other name is refused with the list of those there are."""
    root = demo.ensure(tmp_path)
    assert root / "upstream" / "energy" == demo.resolve("demo://upstream/energy", tmp_path)
    assert root / "pipeline-reread" == demo.resolve("demo://pipeline-reread", tmp_path)
    for wrong in ("demo://upstream/enregy", "demo://../..", "demo://"):
        with pytest.raises(InputError, match="demo://pipeline, demo://pipeline-reread, demo://upstream/energy"):
            demo.resolve(wrong, tmp_path)


@pytest.mark.usefixtures("quick")
def test_unwritable_cache_is_named(tmp_path: Path) -> None:
    """A cache that is a file is refused with its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as refusal:
        demo.ensure(tmp_path / "file")
    assert str(tmp_path / "file") in str(refusal.value)
