"""From runs and qrels to tables: aggregation by hand, and the real benchmark against an independent replay."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from support import tiny
from support.replay import as_qrels, as_run, domain_cell

from builder.benchmark import load_benchmark, parse_benchmark
from builder.leaderboard import Leaderboard, View, count_gains, domain_values, leaderboard, printed
from builder.ndcg import METRICS, TIE_RULES, Metric, TieRule
from provenance.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from builder.benchmark import Benchmark

L = 1 / math.log2(3)
TWO_DOMAINS = tiny.BENCHMARK.replace(
    "[judges.toy]",
    '[domains.glue]\nnative_language = "french"\ntask = "Glue"\nupstream = "upstream/glue"\n\n[judges.toy]',
)


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    """Two domains, paper (native english) and glue (native french), two languages."""
    return parse_benchmark(TWO_DOMAINS.encode(), source=tmp_path / "benchmark.toml")


def qrels(*rows: tuple[str, str, int | None, float | None]) -> pl.DataFrame:
    """Qrels of a subset."""
    schema = {"query-id": pl.String, "corpus-id": pl.String, "score": pl.Int64, "gain": pl.Float64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def runs(*rows: tuple[str, str, str, float | None]) -> pl.DataFrame:
    """Runs of a domain."""
    schema = {"model": pl.String, "query-id": pl.String, "corpus-id": pl.String, "score": pl.Float64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


PAPER = {
    "english": qrels(("q0", "a", 1, 1.0), ("q0", "b", 0, 0.0), ("q2", "a", 1, 1.0), ("q2", "b", 0, 0.0)),
    "french": qrels(("q1", "a", 1, 1.0), ("q1", "b", 0, 0.0)),
}
GLUE = {
    "english": qrels(("q0", "a", 1, 1.0), ("q0", "b", 0, 0.0)),
    "french": qrels(("q1", "a", 1, 1.0), ("q1", "b", 0, 0.0)),
}
# q0: right order (1), q2: wrong order (L), q1: tied (b: (1 + L) / 2; a: b before a, so L).
STEEP = [
    ("steep", "q0", "a", 2.0),
    ("steep", "q0", "b", 1.0),
    ("steep", "q2", "b", 2.0),
    ("steep", "q2", "a", 1.0),
    ("steep", "q1", "a", 1.0),
    ("steep", "q1", "b", 1.0),
]


def board(
    benchmark: Benchmark, paper: Any, glue: Any, *, view: View = "native", metric: Metric = "rcp", ties: TieRule = "b"
) -> Leaderboard:
    """The table of two systems over both domains."""
    names = {"steep": "Steep", "flat": "Flat"}
    values = {
        "paper": domain_values("paper", PAPER, runs(*paper), models=list(names)),
        "glue": domain_values("glue", GLUE, runs(*glue), models=list(names)),
    }
    return leaderboard(benchmark, values, view=view, metric=metric, ties=ties, names=names)


@pytest.mark.parametrize(
    ("view", "ties", "paper", "glue"),
    [
        ("native", "b", (1 + L) / 2, (1 + L) / 2),
        ("native", "a", (1 + L) / 2, L),
        ("six-language", "b", ((1 + L) / 2 + (1 + L) / 2) / 2, (1 + (1 + L) / 2) / 2),
        ("six-language", "a", ((1 + L) / 2 + L) / 2, (1 + L) / 2),
    ],
)
def test_aggregation_by_hand(benchmark: Benchmark, view: View, ties: TieRule, paper: float, glue: float) -> None:
    """Native takes each domain's own language; six-language the mean of subset means; Mean is over the domains."""
    no_q2 = [row for row in STEEP if row[1] != "q2"]
    table = board(benchmark, STEEP, no_q2, view=view, ties=ties)
    assert ("Steep", "Flat") == table.rows
    assert ("paper", "glue", "mean") == table.columns
    assert pytest.approx([paper, glue, (paper + glue) / 2], abs=1e-15) == table.values[0].tolist()


def test_missing_is_not_zero(benchmark: Benchmark) -> None:
    """A system that ranked nothing in a subset has no value there and no Mean; one it ranked in part counts 0."""
    part = [row for row in STEEP if row[1] == "q0"]
    table = board(benchmark, part, [])
    assert [0.5] == table.values[0, :1].tolist()
    assert table.values[0, 1:].tolist() == pytest.approx([math.nan, math.nan], nan_ok=True)
    assert [True] * 3 == [math.isnan(value) for value in table.values[1]]


def test_null_scores_are_not_ranked(benchmark: Benchmark) -> None:
    """A page with a null score takes no rank, but counts in the ideal."""
    scores = [
        ("steep", "q0", "a", None),
        ("steep", "q0", "b", 1.0),
        ("steep", "q2", "a", 5.0),
        ("steep", "q2", "b", None),
    ]
    assert [0.5] == board(benchmark, scores, []).values[0, :1].tolist()


def test_foreign_pages_are_dropped(benchmark: Benchmark) -> None:
    """Pages outside the pool and foreign queries change nothing."""
    more = [*STEEP, ("steep", "q0", "zz", 9.0), ("steep", "q99", "a", 9.0), ("other", "q0", "a", 9.0)]
    assert board(benchmark, STEEP, STEEP).values.tolist()[0] == board(benchmark, more, STEEP).values.tolist()[0]


def test_labels_outside_the_pool() -> None:
    """A labelled page without a gain is no candidate, but counts in the ideal of qrel-nDCG."""
    judged = {"english": qrels(("q0", "a", 1, 0.5), ("q0", "b", 0, 0.25), ("q0", "out", 1, None))}
    scored = runs(("m", "q0", "out", 9.0), ("m", "q0", "a", 2.0), ("m", "q0", "b", 1.0))
    values = domain_values("d", judged, scored, models=["m"], k=2).values
    # method spec section 17.1: scores a 2, b 1; qrels a 1, elsewhere 1.
    assert pytest.approx(0.6131472, abs=5e-8) == values["qrel", "b"][0, 0]
    assert values["rcp", "b"][0, 0] == 1.0


def test_query_without_a_positive_is_left_out(benchmark: Benchmark) -> None:
    """A query without a positive grade is left out of the qrel mean and stays in the RCP mean."""
    unlabelled = {**PAPER, "english": PAPER["english"].with_columns(score=pl.Series([1, 0, 0, 0]))}
    values = {
        "paper": domain_values("paper", unlabelled, runs(*STEEP), models=["steep"]),
        "glue": domain_values("glue", GLUE, runs(*STEEP), models=["steep"]),
    }
    cells = {
        metric: leaderboard(benchmark, values, view="native", metric=metric, ties="b", names={"steep": "Steep"}).values[
            0, 0
        ]
        for metric in ("rcp", "qrel")
    }
    assert {"rcp": pytest.approx((1 + L) / 2), "qrel": 1.0} == cells


def test_domain_without_labels_is_left_out(benchmark: Benchmark) -> None:
    """A domain without any labelled query is left out of everyone's Mean, not counted as 0."""
    none = {language: frame.with_columns(score=pl.lit(0)) for language, frame in GLUE.items()}
    values = {
        "paper": domain_values("paper", PAPER, runs(*STEEP), models=["steep"]),
        "glue": domain_values("glue", none, runs(*STEEP), models=["steep"]),
    }
    table = leaderboard(benchmark, values, view="native", metric="qrel", ties="b", names={"steep": "Steep"})
    assert pytest.approx([(1 + L) / 2, math.nan, (1 + L) / 2], nan_ok=True) == table.values[0].tolist()


def test_row_order_changes_no_bit(benchmark: Benchmark) -> None:
    """Shuffled rows give the same bits."""
    shuffled = [STEEP[index] for index in (3, 5, 0, 2, 4, 1)]
    assert board(benchmark, STEEP, STEEP).values.tolist()[0] == board(benchmark, shuffled, shuffled).values.tolist()[0]


@pytest.mark.parametrize(
    ("judged", "rows", "message"),
    [
        ({"english": qrels(("q0", "a", 1, 1.0), ("q0", "a", 1, 1.0))}, [], "page a appears twice for query q0"),
        (
            {"english": qrels(("q0", "a", 1, 1.0)), "french": qrels(("q0", "b", 1, 1.0))},
            [],
            "query q0 is in 2 languages",
        ),
        ({"english": qrels(("q0", "a", None, 1.0))}, [], "page a of query q0 has no score"),
        (PAPER, [("m", "q0", "a", 1.0), ("m", "q0", "a", 2.0)], "page a is scored twice for query q0.*model m"),
        (PAPER, [("m", "q0", "a", math.nan)], "score of page a for query q0 is not finite.*runs of d, model m"),
        (PAPER, [("m", "q0", "a", math.inf)], "is not finite.*value inf"),
    ],
)
def test_refused(judged: dict[str, pl.DataFrame], rows: list[tuple[str, str, str, float]], message: str) -> None:
    """Repeated pairs, a query of two languages, a missing grade and scores that are not finite are refused."""
    with pytest.raises(DataError, match=message):
        domain_values("d", judged, runs(*rows), models=["m"])


def criteria(*rows: tuple[str, str, int, int, int, int, int]) -> pl.DataFrame:
    """Criteria rows, a placement each."""
    return pl.DataFrame(list(rows), schema=["query-id", "corpus-id", "C1", "C2", "C3", "C4", "C5"], orient="row")


def test_count_gains() -> None:
    """The passed share over a page's placements: 2, 2, 1, 0, 0 of 2 is 0.5; 1, 0, 0, 0, 0 of 1 is 0.2 (17.2)."""
    found = count_gains(
        criteria(("q", "a", 1, 1, 1, 0, 0), ("q", "a", 1, 1, 0, 0, 0), ("q", "b", 1, 0, 0, 0, 0)), where="f"
    )
    assert [("q", "a", 0.5), ("q", "b", 0.2)] == found.sort("corpus-id").rows()
    with pytest.raises(DataError, match=r"neither 0 nor 1 \[f, row 1, column 'C3', value 2\]"):
        count_gains(criteria(("q", "a", 1, 1, 1, 0, 0), ("q", "b", 1, 1, 2, 0, 0)), where="f")


def test_count_metric_needs_every_page() -> None:
    """Count-nDCG is refused where a page of the pool has no placement."""
    count = count_gains(criteria(("q1", "a", 1, 0, 0, 0, 0)), where="f")
    with pytest.raises(DataError, match=r"page b of query q1 has no count \(1 pairs"):
        domain_values("d", {"french": PAPER["french"]}, runs(), models=[], metrics=["count"], count=count)
    with pytest.raises(DataError, match="needs the judge's criteria"):
        domain_values("d", PAPER, runs(), models=[], metrics=["count"])


@pytest.mark.parametrize(
    ("text", "value"), [("12.3", 0.12345), ("0.1", 0.0005 + 1e-9), ("100.0", 1.0), ("-", math.nan)]
)
def test_printed(text: str, value: float) -> None:
    """A value is printed in percent with one decimal, a missing one as a dash."""
    assert text == printed(value)


@pytest.mark.parametrize("metric", METRICS[:2])
@pytest.mark.parametrize("rule", TIE_RULES)
def test_real_runs(reference: Path, metric: Metric, rule: TieRule) -> None:
    """On the real benchmark every cell equals scikit-learn's and pytrec_eval's within 1e-12, in both views."""
    benchmark = load_benchmark(str(reference / "benchmark.toml"))
    gains = pl.read_parquet(reference / "expected" / "gains.parquet")
    values, expected = {}, {}
    for name, domain in benchmark.domains.items():
        judged = {
            language: gains.filter(domain=name, language=language).select("query-id", "corpus-id", "score", "gain")
            for language in benchmark.languages
        }
        scored = pl.read_parquet(reference / "pipeline" / "runs" / f"{name}.parquet")
        values[name] = domain_values(
            name, judged, scored, models=list(benchmark.rerankers), metrics=[metric], ties=[rule]
        )
        plain = {language: as_qrels(frame.iter_rows()) for language, frame in judged.items()}
        for model in benchmark.rerankers:
            run = as_run(scored.filter(model=model).select("query-id", "corpus-id", "score").iter_rows())
            for view in ("native", "six-language"):
                expected[view, model, name] = domain_cell(
                    plain, domain.native_language, run, view=view, metric=metric, rule=rule
                )
    for view in ("native", "six-language"):
        table = leaderboard(benchmark, values, view=view, metric=metric, ties=rule, names=benchmark.rerankers)
        for row, model in enumerate(benchmark.rerankers):
            cells = [expected[view, model, name] for name in benchmark.domains]
            assert pytest.approx([*cells, statistics.fmean(cells)], abs=1e-12) == table.values[row].tolist()
