"""The demo's rerankers: one that computes something real, and three that see the relevance through noise."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from builder.demo.relevance import noise
from builder.demo.retrieval import scorers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from builder.demo.questions import Query
    from builder.demo.texts import Domain

# Run name -> standard deviation of its noise about the relevance, in logits.
_SPREAD = {"simulated-large": 0.5, "simulated-small": 1.3, "simulated-coarse": 0.8}
MODELS = (*_SPREAD, "hashed")

_DECIMALS = 6


def runs(
    domain: Domain, pools: Mapping[Query, Sequence[str]], truth: Mapping[tuple[str, str], float], *, seed: int
) -> list[tuple[str, str, str, float]]:
    """(model, query id, page id, score) of every reranker over every pool.

    `simulated-coarse` gives whole grades from 0 to 4, and hence many ties. The rows of a query are in an order of
    their own, which is neither the pool's nor that of the scores.
    """
    embed = scorers(domain)["hashed"]
    rows = []
    for model in MODELS:
        for query, pool in pools.items():
            score = (
                _embedding(domain, embed(query.text))
                if model == "hashed"
                else _simulated(model, query, truth, seed, domain)
            )
            order = list(pool)
            random.Random(f"{seed}/order/{model}/{domain.name}/{query.id}").shuffle(order)  # noqa: S311 - no secret
            rows += [(model, query.id, page_id, score(page_id)) for page_id in order]
    return rows


def _embedding(domain: Domain, values: Sequence[float]) -> Callable[[str], float]:
    by_page = {page.id: value for page, value in zip(domain.pages, values, strict=True)}
    return by_page.__getitem__


def _simulated(
    model: str, query: Query, truth: Mapping[tuple[str, str], float], seed: int, domain: Domain
) -> Callable[[str], float]:
    def score(page_id: str) -> float:
        key = (seed, model, domain.name, query.id, page_id)
        seen = truth[query.id, page_id] + noise(*key, spread=_SPREAD[model])
        if model == "simulated-coarse":
            return float(min(max(math.floor(seen + 2.0), 0), 4))
        return round(1.0 / (1.0 + math.exp(-seen)), _DECIMALS)

    return score
