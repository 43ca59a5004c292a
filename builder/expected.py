"""Counts that the benchmark file declares, asserted while a release is built (DESIGN section 2, `[expected]`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provenance.errors import DataError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from builder.benchmark import Benchmark
    from builder.upstream import UpstreamDomain


def counts(upstream: UpstreamDomain) -> dict[str, dict[str, int]]:
    """What can be counted of a domain: count name -> where it was counted -> number.

    `queries`, `labels` and `labelled_pages` are counted a language, since each must have as many.
    """
    pages = upstream.pages.frame
    return {
        "pages": {"corpus": pages.height},
        "pages_without_text": {"corpus": pages.filter(pages["text"] == "").height},
        "distinct_texts": {"corpus": pages["text"].n_unique()},
        "queries": {language: frame.height for language, frame in upstream.queries.items()},
        "labels": {language: frame.height for language, frame in upstream.labels.items()},
        "labelled_pages": {language: frame["corpus-id"].n_unique() for language, frame in upstream.labels.items()},
    }


def check_domain(benchmark: Benchmark, domain: str, upstream: UpstreamDomain) -> None:
    """Compare a domain with its `[expected.domains.<domain>]`.

    Raises:
        DataError: every count that differs, with the domain, the count and the expectation.
    """
    declared: Mapping[str, int] = benchmark.expected.get("domains", {}).get(domain, {})
    found = counts(upstream)
    faults = [
        f"{domain}: {name} ({place}) is {number}, expected {declared[name]}"
        for name in declared
        for place, number in found[name].items()
        if number != declared[name]
    ]
    _refuse(benchmark, faults)


def check_pools(benchmark: Benchmark, pools: Mapping[str, pl.DataFrame], without_text: Mapping[str, set[str]]) -> None:
    """Compare all domains together with the suite's own counts.

    Args:
        benchmark: declares the counts.
        pools: each domain's pool.
        without_text: each domain's pages whose text is empty.

    Raises:
        DataError: as `check_domain`.
    """
    found: dict[str, Any] = {
        "injected_pairs": sum(int(pool["gt_injected"].sum()) for pool in pools.values()),
        "pages_without_text_in_a_pool": sum(
            len(without_text[domain] & set(pool["corpus-id"].unique())) for domain, pool in pools.items()
        ),
    }
    declared = {name: value for name, value in benchmark.expected.items() if name != "domains"}
    _refuse(
        benchmark,
        [
            f"all domains: {name} is {found[name]}, expected {value}"
            for name, value in declared.items()
            if found[name] != value
        ],
    )


def _refuse(benchmark: Benchmark, faults: list[str]) -> None:
    if faults:
        raise DataError(
            "expected counts do not hold:\n    " + "\n    ".join(faults),
            where=Where(benchmark.path, column="expected"),
            remedy="check the upstream pin; where the data changed on purpose, change [expected] with it.",
        )
