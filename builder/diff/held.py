"""What a release promises to leave as it was, and whether it did (pure; proof C3 holds a tree to the same list)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ALWAYS = ("corpus", "queries", "labels", "top_ranked", "pool", "first_stage", "runs")
"""What no release but the first may change. `labels` are the pairs of the qrels and their `score`."""

DECLARED = {
    "gain": "qrels.gain",
    "theta": "qrels.theta",
    "judge_criteria": "judge_criteria",
    "calibration": "calibration",
    "windows": "windows",
    "item_params": "item_params",
}
"""What a release may change where its `may_change` names it (`releases_document.MAY_CHANGE`)."""

QREL_NDCG = "qrel-nDCG"
EVERYTHING = "everything"


def promised(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the new release stands to the old one, and what may differ between them.

    Args:
        old: the entries of the old tree's releases.json.
        new: the entries of the new tree's.

    Returns:
        `kind`: `same release`, the new one's own kind where it follows directly, `later` where releases lie between,
        `earlier` where the old one is the later of both, or `unknown`; `steps`, how many releases further; and
        `may_change`, the union over the steps, None where nothing is promised.
    """
    tags = [entry.get("tag") for entry in new]
    before = [entry.get("tag") for entry in old]
    own = before[-1] if before else None
    if own is None or not tags:
        return {"kind": "unknown", "steps": None, "may_change": None}
    if own not in tags:
        kind = "earlier" if tags[-1] in before else "unknown"
        return {"kind": kind, "steps": None, "may_change": None}
    later = new[tags.index(own) + 1 :]
    if not later:
        return {"kind": "same release", "steps": 0, "may_change": []}
    declared = [entry.get("may_change") for entry in later]
    kind = later[0].get("kind") or "unknown" if len(later) == 1 else "later"
    known = None if None in declared else list(dict.fromkeys(name for names in declared for name in names or ()))
    return {"kind": kind, "steps": len(later), "may_change": known}


def held(
    tables: Mapping[str, Mapping[str, Any]],
    may_change: Sequence[str] | None,
    *,
    qrel_ndcg: bool | None,
    documents: Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """What is unchanged and what is not.

    Args:
        tables: by kind, the counts of `compare`.
        may_change: what may differ; None where nothing is promised.
        qrel_ndcg: whether every query's qrel-nDCG is the same to the last bit; None without runs in both.
        documents: by `windows` and `item_params`, the documents before and now (None where a release has none).

    Returns:
        A list of `what`, `unchanged` (None where neither release has it), `how` it was found, and `must`: whether it
        was promised to be unchanged.
    """
    found = [_table(what, tables) for what in (*ALWAYS, "gain", "theta", "judge_criteria", "calibration")]
    found.append({"what": QREL_NDCG, "unchanged": qrel_ndcg, "how": "query by query"})
    for name, (before, now) in documents.items():
        unchanged = None if before is None and now is None else before == now
        found.append({"what": name, "unchanged": unchanged, "how": "as documents"})
    promise = may_change is not None and EVERYTHING not in may_change
    return [{**item, "must": promise and DECLARED.get(item["what"]) not in (may_change or ())} for item in found]


def _table(what: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    column = {"labels": "score"}.get(what, what if what in {"gain", "theta"} else None)
    table = tables.get("qrels" if column else what)
    if table is None:
        return {"what": what, "unchanged": None, "how": "in neither release"}
    rows = table["added"] + table["removed"] + len(table["only_old"]) + len(table["only_new"])
    changed = table["columns"].get(column, 0) if column else table["changed"]
    how = "by digest" if table["same_by_digest"] == table["tables"] else "row by row"
    return {"what": what, "unchanged": not rows and not changed, "how": how}
