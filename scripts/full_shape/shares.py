"""What each domain of the made-up benchmark holds, at any scale."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from builder.benchmark import DEFAULT, load_benchmark

if TYPE_CHECKING:
    from pathlib import Path

POOL = 150
FEWEST_PAGES = 400
"""A pool needs its pages even where there is one question."""
WINDOWS, RUBRIC_WINDOWS = 216, 100
# Of the whole benchmark (method spec section 5.5 and the card of release 2).
TOTALS = {
    "injected": 11_843,
    "windows": 3_122_771,
    "partial": 2_322,
    "unreadable": 27,
    "odd": 6_024,
    "rubric_windows": 1_451_399,
    "rubric_unusable": 11,
}


Written = dict[str, Any]


@dataclass(frozen=True)
class Share:
    """What one domain holds: its names and its counts, cut to scale."""

    index: int
    name: str
    retrievers: tuple[str, ...]
    models: tuple[str, ...]
    languages: tuple[str, ...]
    native: str
    counts: dict[str, int]
    seed: int


def shares(scale: float, seed: int) -> list[Share]:
    """The domains of ViDoRe v3; suite-wide counts are dealt out by each domain's number of queries."""
    benchmark = load_benchmark(DEFAULT)
    declared = benchmark.expected["domains"]
    questions = {name: max(1, round(declared[name]["queries"] * scale)) for name in benchmark.domains}
    languages = tuple(benchmark.languages)
    ends = np.cumsum([0, *questions.values()]) / sum(questions.values())
    queries = sum(questions.values()) * len(languages)
    totals = {name: max(1, round(number * min(scale, 1.0))) for name, number in TOTALS.items()}
    totals["missing"] = max(queries * WINDOWS - totals["windows"], 0) if scale == 1 else round(queries * 0.84)
    totals["rubric_missing"] = queries * RUBRIC_WINDOWS - totals["rubric_windows"] if scale == 1 else 1
    found = []
    for index, (name, domain) in enumerate(benchmark.domains.items()):
        full, asked = declared[name], questions[name]
        pages = max(FEWEST_PAGES, round(full["pages"] * scale))
        without_text = round(full["pages_without_text"] * pages / full["pages"])
        labelled = min(max(asked, round(full["labelled_pages"] * scale)), pages - without_text)
        repeated = (full["pages"] - full["distinct_texts"]) - max(full["pages_without_text"] - 1, 0)
        counts = {
            "pages": pages,
            "queries": asked,
            "labelled_pages": labelled,
            "labels": min(max(labelled, round(full["labels"] * scale)), labelled * asked),
            "pages_without_text": without_text,
            "distinct_texts": pages - round(repeated * pages / full["pages"]) - max(without_text - 1, 0),
        }
        dealt = {key: round(total * ends[index + 1]) - round(total * ends[index]) for key, total in totals.items()}
        dealt["injected"] = min(dealt["injected"], counts["labels"] * len(languages))
        found.append(
            Share(
                index,
                name,
                tuple(benchmark.fusion.retrievers),
                tuple(benchmark.rerankers),
                languages,
                domain.native_language,
                counts | dealt,
                seed,
            )
        )
    return found


def write_benchmark(out: Path, found: list[Share], written: list[Written]) -> None:
    """The benchmark file: ViDoRe's own names, this folder's data, the counts that were written."""
    real = load_benchmark(DEFAULT)
    lines = [
        'name = "full_shape"',
        'title = "RCP-nDCG on a made-up world"',
        'repo = "example/rcp-ndcg-full-shape"',
        'task_prefix = "FullShape"',
        f'split = "test"\npool_size = {POOL}\n[languages]',
        *(f'{name} = "{code}"' for name, code in real.languages.items()),
        f"[fusion]\nk = {real.fusion.k}\nretrievers = {json.dumps(list(real.fusion.retrievers))}",
    ]
    for share in found:
        lines += [
            f'[domains.{share.name}]\nnative_language = "{share.native}"',
            f'task = "{real.domains[share.name].task}"\nupstream = "upstream/{share.name}"',
        ]
    lines += [
        '[judges.simulated]\nmodel = "simulated/full-shape"\nslug = "simulated"\nsimulated = true\ninputs = "pipeline"',
        "[rerankers]",
        *(f'"{name}" = "{label}"' for name, label in real.rerankers.items()),
        '[card]\nlicence = "cc0-1.0"\ntags = ["retrieval"]\n[card.domain_labels]',
        *(f'{share.name} = "{share.name}"' for share in found),
        "[card.retriever_names]",
        *(f'{name} = "{name}"' for name in real.fusion.retrievers),
        f"[expected]\ninjected_pairs = {sum(item['injected'] for item in written)}\npages_without_text_in_a_pool = 0",
    ]
    declared = ("pages", "queries", "labels", "labelled_pages", "pages_without_text", "distinct_texts")
    for item in written:
        lines += [f"[expected.domains.{item['name']}]", *(f"{key} = {item[key]}" for key in declared)]
    (out / "benchmark.toml").write_text("\n".join(lines) + "\n", "utf-8")
