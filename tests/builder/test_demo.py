"""The demo's inputs: their shape, their first stage, where they lie, and that they are the same every time."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from importlib import metadata
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest
from PIL import Image
from support.demo_inputs import BENCHMARK, DOMAINS, LANGUAGES, corpus, digests, qrels, queries, read

from builder import demo
from builder.demo import retrieval, texts
from provenance import fusion
from provenance.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

TWO_BATCHES = ("computer_science", "energy", "finance_en", "hr", "pharmaceuticals")

# What this project's first machine made; a change of texts or of the simulation changes it on purpose.
PINNED = "b47c73bad3d5976b08bf793ac7d895746ec264291a42ff538a428135e54d605e"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's inputs, made once for this module."""
    folder = tmp_path_factory.mktemp("demo") / "inputs"
    demo.materialise(folder)
    return folder


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
