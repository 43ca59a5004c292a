"""What a card and a dataset's changelog say about the release before (pure: a diff's document in)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builder.diff.held import QREL_NDCG
from builder.diff.sentences import HEADLINE, NAMES, board, board_name, headline, named, title
from builder.markdown import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROWS = {
    "corpus": "pages",
    "queries": "queries",
    "top_ranked": "lists of top_ranked",
    "pool": "rows of the pools",
    "first_stage": "rows of the first stage",
    "runs": "rows of the runs",
    "judge_criteria": "rows of the judge's criteria",
}


def relation(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the new release's card says of the old one: whole numbers only, each a count in the document.

    Returns:
        `tag` of the old release, and `changes`: a list of `what`, `changed`, `of`, in the order to print.
    """
    return {"tag": named(document["old"]), "changes": list(_changes(document))}


def changelog(document: Mapping[str, Any]) -> str:
    """One entry of the dataset's CHANGELOG.md: the new tag, and the diff's first sentences as text without markup."""
    lines = [f"## {literal(named(document['new']))}", "", f"{literal(title(document))}.", ""]
    return "\n".join([*lines, *(f"* {literal(sentence)}" for sentence in headline(document))]) + "\n"


def _changes(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    gains, top = document["gains"], document["ideal_top"]
    for name in ("gain", "theta"):
        yield _change(NAMES[name], gains[name]["changed"], gains[name]["pairs"])
    k = top["k"]
    yield _change(
        f"queries with other pages in their ideal top {k}", top["queries"] - top["same_pages"], top["queries"]
    )
    yield _change(
        f"queries with another order of their ideal top {k}", top["queries"] - top["same_order"], top["queries"]
    )
    found = board(document, *HEADLINE)
    if found is not None:
        name = board_name(found)
        cells, apart = found["cells"], found["apart"]
        yield _change(f"printed cells of {name}", cells["changed_as_printed"], cells["compared"])
        yield _change(f"pairs of systems that swap ranks by Mean ({name})", len(found["swaps"]), apart["of"])
        yield _change(
            f"significant differences of Means that no longer stand (bootstrap interval, {name})",
            apart["old"] - apart["kept"],
            apart["old"],
        )
        gone = sum(item["unchecked"] for item in document["leaderboards"])
        if gone:
            kept = sum(item["apart"]["old"] for item in document["leaderboards"])
            yield _change("significant differences of Means with a system that is gone", gone, kept + gone)
        every = [item["apart"] for item in document["leaderboards"]]
        supported = sum(item["old"] for item in every)
        yield _change(
            "significant differences of Means that no longer stand (bootstrap interval, over all views, metrics and "
            "tie rules)",
            supported - sum(item["kept"] for item in every),
            supported,
        )
        qrel = [item["cells"] for item in document["leaderboards"] if item["metric"] == "qrel"]
        yield _change(f"cells of {QREL_NDCG}", sum(item["changed"] for item in qrel), sum(i["compared"] for i in qrel))
    tables = document["tables"]
    if "qrels" in tables:
        yield _change(NAMES["labels"], tables["qrels"]["columns"].get("score", 0), tables["qrels"]["rows_new"])
    for kind, what in _ROWS.items():
        if kind in tables:
            yield _rows(what, tables[kind])
    yield from _windows(document["windows"] or {})


def _rows(what: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Rows added, removed or changed, of all rows of either release."""
    return _change(what, table["added"] + table["removed"] + table["changed"], table["rows_old"] + table["added"])


def _windows(stages: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for stage, found in stages.items():
        every, fitted = found["outcomes"]["windows"], found["outcomes"]["fitted"]
        for side, when in (("old", "before"), ("new", "now")):
            yield _change(f"{stage} windows left out {when}", every[side] - fitted[side], every[side])


def _change(what: str, changed: int, of: int) -> dict[str, Any]:
    return {"what": what, "changed": changed, "of": of}
