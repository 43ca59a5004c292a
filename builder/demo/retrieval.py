"""The demo's three first-stage retrievers, run for real over the page texts.

Each is small and exact enough that its scores, rounded to six decimals, are the same on every
machine. A page without text is never returned, and a lexical retriever returns only pages that it
matches, as in the release's own first stage (method spec section 2).
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from builder.demo.questions import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from builder.demo.texts import Domain

    Scores = list[float]

_K1, _B = 1.5, 0.75
_STEM = 6
_SIGNS = 256
_DECIMALS = 6


def tokens(text: str) -> list[str]:
    """Lower-case words of two letters or more without accents, cut to six characters: a crude stemmer."""
    return [word[:_STEM] for word in _words(text)]


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return [word for word in re.findall(r"[a-z0-9]+", plain) if len(word) > 1]


def _idf(documents: Sequence[Sequence[str]]) -> dict[str, float]:
    counts = Counter(term for document in documents for term in set(document))
    size = sum(1 for document in documents if document)
    return {term: math.log(1 + (size - n + 0.5) / (n + 0.5)) for term, n in counts.items()}


def bm25(domain: Domain) -> Callable[[str], Scores]:
    """Okapi BM25 (k1 1.5, b 0.75) with the idf that stays positive; a function from a query's text to page scores."""
    documents = [tokens(page.text) for page in domain.pages]
    counts = [Counter(document) for document in documents]
    idf = _idf(documents)
    mean_length = sum(map(len, documents)) / sum(1 for document in documents if document)

    def score(query: str) -> Scores:
        terms = sorted(set(tokens(query)) & set(idf))
        scores = []
        for document, count in zip(documents, counts, strict=True):
            norm = _K1 * (1 - _B + _B * len(document) / mean_length)
            total = math.fsum(idf[term] * count[term] * (_K1 + 1) / (count[term] + norm) for term in terms)
            scores.append(round(total, _DECIMALS))
        return scores

    return score


def chargram(domain: Domain) -> Callable[[str], Scores]:
    """Cosine of TF-IDF vectors of the words' character 3- to 5-grams."""
    documents = [_grams(page.text) for page in domain.pages]
    idf = _idf(documents)
    column = {gram: index for index, gram in enumerate(sorted(idf))}

    def vector(grams: Sequence[str]) -> np.ndarray:
        values = np.zeros(len(column))
        for gram, count in sorted(Counter(grams).items()):
            if gram in column:
                values[column[gram]] = (1 + math.log(count)) * idf[gram]
        length = math.sqrt(math.fsum(values * values))
        return values / length if length else values

    matrix = np.stack([vector(document) for document in documents])

    def score(query: str) -> Scores:
        return [round(float(value), _DECIMALS) for value in matrix @ vector(_grams(query))]

    return score


def _grams(text: str) -> list[str]:
    padded = [f" {word} " for word in _words(text)]
    return [word[i : i + n] for word in padded for n in (3, 4, 5) for i in range(len(word) - n + 1)]


def hashed(domain: Domain) -> Callable[[str], Scores]:
    """Cosine of hashed embeddings: each word is 256 signs, and words of one glossary row share theirs.

    The glossary stands in for what a multilingual model has learnt. Components are integers, so that dot products
    are exact.
    """
    concepts: dict[str, list[str]] = {}
    for row, words in enumerate(domain.glossary):
        for word in words:
            for token in tokens(word):
                names = concepts.setdefault(token, [])
                if f"concept {row}" not in names:
                    names.append(f"concept {row}")

    def expand(text: str) -> list[str]:
        return [name for token in tokens(text) for name in concepts.get(token, [token])]

    documents = [expand(page.text) for page in domain.pages]
    weight = {term: round(8 * value) for term, value in _idf(documents).items()}

    def vector(terms: Sequence[str]) -> np.ndarray:
        total = np.zeros(_SIGNS, dtype=np.int64)
        for term in set(terms):
            total += weight.get(term, 0) * _signs(term)
        return total

    matrix = np.stack([vector(document) for document in documents])
    lengths = [math.sqrt(int(row @ row)) for row in matrix]

    def score(query: str) -> Scores:
        target = vector(expand(query))
        length = math.sqrt(int(target @ target))
        products = [int(value) for value in matrix @ target]
        return [
            round(product / (length * own), _DECIMALS) if length and own else 0.0
            for product, own in zip(products, lengths, strict=True)
        ]

    return score


def _signs(term: str) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(hashlib.sha256(term.encode()).digest(), dtype=np.uint8))
    return bits.astype(np.int64) * 2 - 1


def scorers(domain: Domain) -> dict[str, Callable[[str], Scores]]:
    """Each retriever by name: a function from a query's text to one score a page, in page order."""
    return {"hashed": hashed(domain), "bm25": bm25(domain), "chargram": chargram(domain)}


def first_stage(domain: Domain, *, depth: int) -> list[tuple[str, str, str, int, float]]:
    """(retriever, query id, page id, rank from 1, score): at most `depth` pages a list, equal scores by page number."""
    rows = []
    for retriever, score in scorers(domain).items():
        for query in queries(domain):
            pages = [
                (page, value)
                for page, value in zip(domain.pages, score(query.text), strict=True)
                if page.text and (value > 0 or retriever == "hashed")
            ]
            pages.sort(key=lambda pair: (-pair[1], pair[0].number))
            rows += [(retriever, query.id, page.id, rank, value) for rank, (page, value) in enumerate(pages[:depth], 1)]
    return rows
