"""A diff in plain sentences: what changed, by how much, and whether a leaderboard claim still stands (pure).

Every number stands in the document that `compare` makes; nothing is computed here but counts of its lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builder.diff.held import QREL_NDCG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAMES = {
    "corpus": "pages",
    "queries": "queries",
    "qrels": "qrels",
    "labels": "human labels",
    "top_ranked": "top_ranked",
    "pool": "pools",
    "first_stage": "first stage",
    "runs": "runs",
    "gain": "gains",
    "theta": "theta",
    "judge_criteria": "judge's criteria",
    "calibration": "calibration",
    "windows": "windows",
    "item_params": "item parameters",
    QREL_NDCG: QREL_NDCG,
}
METRICS = {"rcp": "RCP-nDCG", "qrel": "qrel-nDCG"}
HEADLINE = ("native", "rcp", "b")
"""The table that the card shows first: view, metric, tie rule."""
_NAMED = 3


def title(document: Mapping[str, Any]) -> str:
    """`v1-x -> v2-x: recalibration`."""
    old, new = (named(document[side]) for side in ("old", "new"))
    judge = document["new"]["judge"]
    simulated = ", a simulated judge: its gains are no judgements" if document["new"]["simulated"] else ""
    return f"{old} -> {new}: {_kind(document)}" + (f" (judge {judge}{simulated})" if judge else "")


def headline(document: Mapping[str, Any]) -> list[str]:
    """The sentences that answer a newcomer: nine at most, and one more where a promise is broken."""
    if not different(document):
        return [
            "No change: both releases hold the same files with the same bytes."
            if _same_files(document)
            else "No change in any table: only files that describe the release differ.",
            *broken(document),
        ]
    lines = [f"In short: {_verdict(document)}", *broken(document)]
    lines += [*claims(document), *_gains(document), *_top(document), *_windows(document)]
    return [*lines, _rows(document), _kept(document)]


def named(side: Mapping[str, Any]) -> str:
    """A release by its tag, or by what the person called it."""
    return str(side["tag"] or side["label"])


def different(document: Mapping[str, Any]) -> bool:
    """Whether any table, windows or item parameters differ."""
    return any(item["unchanged"] is False for item in document["held"]) or any(
        table["differing"] for table in document["tables"].values()
    )


def broken(document: Mapping[str, Any]) -> list[str]:
    """What changed although the release does not declare it: a sentence, or none."""
    names = [NAMES[item["what"]] for item in document["held"] if item["must"] and item["unchanged"] is False]
    if not names:
        return []
    return [f"PROMISE BROKEN: {listed(names)} changed, and the new release does not declare it (proof C3)."]


def board(document: Mapping[str, Any], view: str, metric: str, ties: str) -> Mapping[str, Any] | None:
    """One of the document's leaderboards, or None."""
    for found in document["leaderboards"]:
        if (found["view"], found["metric"], found["ties"]) == (view, metric, ties):
            return dict(found)
    return None


def board_name(found: Mapping[str, Any]) -> str:
    """`RCP-nDCG@10, native view, ties b`."""
    return f"{METRICS[found['metric']]}@{found['k']}, {found['view']} view, ties {found['ties']}"


def claims(document: Mapping[str, Any]) -> list[str]:
    """Whether the leaderboard's order and its significant differences still stand."""
    found = board(document, *HEADLINE)
    if found is None:
        return ["Leaderboard: not compared; a release has no runs of the benchmark's systems."]
    lines = [f"Leaderboard ({board_name(found)}): {order(found)}; {moved(found)}."]
    if found["pairs"]:
        lines.append(f"Its claims: {apart(found)}")
    boards = document["leaderboards"]
    supported = _supported(boards)
    stand = sum(item["apart"]["kept"] for item in boards)
    lost = fallen(boards)
    names = f"; no longer {'stands' if len(lost) == 1 else 'stand'}: {some(lost)}" if lost else ""
    lines.append(
        f"Over {plural(len(boards), 'table')} (view, metric, tie rule): {swaps(boards)}; of "
        f"{plural(supported, 'claim')} 'A is ahead of B' that the old release supports, {all_of(stand, supported)} "
        f"still stand{names}{''.join(f'; {text}' for text in _unchecked(boards))}."
    )
    return lines


def swaps(boards: Sequence[Mapping[str, Any]]) -> str:
    """How many pairs of systems changed their order: by Mean, and in a single domain."""
    means, domains = (sum(len(item[name]) for item in boards) for name in ("swaps", "domain_swaps"))
    return f"{plural(means, 'rank swap')} of the means, {domains:,} within single domains"


def fallen(boards: Sequence[Mapping[str, Any]]) -> list[str]:
    """The claims that the old release supports and the new one does not: `A ahead of B (table)`."""
    return [
        f"{pair['first']} ahead of {pair['second']} ({board_name(item)})"
        for item in boards
        for pair in item["pairs"]
        if pair["apart_old"] and (not pair["apart_new"] or reversed_pair(pair))
    ]


def order(found: Mapping[str, Any]) -> str:
    """Which systems came and went, and how the order of the others by Mean changed."""
    come_and_gone = [
        f"{some(found[name])} {'is' if len(found[name]) == 1 else 'are'} {what}; "
        for name, what in (("removed", "gone"), ("added", "new"))
        if found[name]
    ]
    return "".join(come_and_gone) + _order(found, "systems of both" if come_and_gone else "systems")


def _order(found: Mapping[str, Any], systems: str) -> str:
    ranked = [row for row in found["systems"] if row["rank_old"] is not None and row["rank_new"] is not None]
    before, now = (
        [row["system"] for row in sorted(ranked, key=lambda row, side=side: row[f"rank_{side}"])]  # type: ignore[misc]
        for side in ("old", "new")
    )
    same = next((place for place, pair in enumerate(zip(before, now, strict=True)) if pair[0] != pair[1]), len(now))
    if same == len(now):
        return f"the order of all {len(now)} {systems} is unchanged" if len(now) > 1 else "there is one system"
    rest = [
        f"{row['system']} is number {row['rank_new']}, was {row['rank_old']}"
        for row in sorted(ranked, key=lambda row: int(row["rank_new"]))
        if row["rank_old"] != row["rank_new"]
    ]
    top = f"the order of the top {same} is unchanged; " if same > 1 else "the first is unchanged; " if same else ""
    return top + some(rest)


def moved(found: Mapping[str, Any]) -> str:
    """How far the cells moved."""
    cells = found["cells"]
    if not cells["changed"]:
        return f"all {cells['compared']} cells are unchanged"
    return (
        f"{cells['changed_as_printed']} of {plural(cells['compared'], 'cell')} print another value, "
        f"the largest change is {points(cells['max_size'])}"
    )


def apart(found: Mapping[str, Any]) -> str:
    """Which significant differences of Means are kept, lost and won."""
    tally, pairs = found["apart"], found["pairs"]
    text = (
        f"of {plural(tally['of'], 'pair')} of systems, {tally['old']} were apart (95 % bootstrap interval of their gap "
        f"excludes 0); {all_of(tally['kept'], tally['old'])} still are{', in the same order' if tally['kept'] else ''}"
    )
    if found["unchecked"]:
        text += (
            f"; {found['unchecked']} more {'was' if found['unchecked'] == 1 else 'were'}, with a system that is gone"
        )
    for sentence, rows in (
        ("no longer apart", [pair for pair in pairs if pair["apart_old"] and not pair["apart_new"]]),
        ("now apart", [pair for pair in pairs if pair["apart_new"] and not pair["apart_old"]]),
        ("reversed", [pair for pair in pairs if reversed_pair(pair)]),
    ):
        if rows:
            text += f"; {sentence}: {some([pair_name(pair) for pair in rows])}"
    return text + "."


def reversed_pair(pair: Mapping[str, Any]) -> bool:
    """Whether both releases have the pair apart, in opposite orders."""
    return bool(pair["apart_old"] and pair["apart_new"] and pair["gap_old"] * pair["gap_new"] < 0)


def pair_name(pair: Mapping[str, Any]) -> str:
    """`A over B (gap 1.20, now 0.30 points)`; the first is ahead in the old release."""
    return f"{pair['first']} over {pair['second']} (gap {100 * pair['gap_old']:.2f}, now {points(pair['gap_new'])})"


def swap_name(swap: Mapping[str, Any]) -> str:
    """`hr: A over B (gap 2.65, now -0.13 points)`: an order that turned in one domain."""
    return f"{swap['domain']}: {pair_name(swap)}"


def changed_test(change: Mapping[str, Any]) -> str:
    """`hr: A over B (p 0.012, now 0.2)`: a t-test that says another thing than before."""
    before, now = ("undefined" if p is None else f"{p:.3g}" for p in (change["p_old"], change["p_new"]))
    return f"{change['domain']}: {change['first']} over {change['second']} (p {before}, now {now})"


def points(fraction: float) -> str:
    """A fraction in points, two decimals."""
    return f"{100 * fraction:.2f} points"


def plural(number: int, word: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def all_of(number: int, of: int) -> str:
    """`all 6`, `none`, `4`."""
    if number == of:
        return f"all {of:,}" if of else "none"
    return f"{number:,}" if number else "none"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "nothing"


def some(texts: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _kind(document: Mapping[str, Any]) -> str:
    relation = document["relation"]
    return {
        "same release": "the same release",
        "later": f"{relation['steps']} releases later",
        "earlier": "the second is the earlier release",
        "unknown": "how the two are related is not recorded",
    }.get(relation["kind"], str(relation["kind"]))


def _verdict(document: Mapping[str, Any]) -> str:
    changed = [NAMES[item["what"]] for item in document["held"] if item["unchanged"] is False]
    must = [item for item in document["held"] if item["must"]]
    text = f"{listed(changed)} changed"
    if must and not broken(document):
        text += "; nothing changed that must not"
    if document["leaderboards"]:
        text += f"; {_stands(document['leaderboards'])}"
    return text + "."


def _stands(boards: Sequence[Mapping[str, Any]]) -> str:
    """Over all tables: whether systems swapped, and whether significant claims are lost."""
    swapped = any(item["swaps"] or item["domain_swaps"] for item in boards)
    lost = sum(item["apart"]["old"] - item["apart"]["kept"] for item in boards)
    found = [swaps(boards) if swapped else "no two systems swapped, in the mean or in a domain"]
    if lost:
        claims = plural(_supported(boards), "significant leaderboard claim")
        found.append(f"{lost:,} of {claims} no longer stand{'s' * (lost == 1)}")
    found += _unchecked(boards)
    return "; ".join(found if len(found) > 1 else [*found, "every significant leaderboard claim still stands"])


def _supported(boards: Sequence[Mapping[str, Any]]) -> int:
    """How many claims the old release supports."""
    return sum(item["apart"]["old"] + item["unchecked"] for item in boards)


def _unchecked(boards: Sequence[Mapping[str, Any]]) -> list[str]:
    """That claims cannot be checked, as systems are gone: a sentence, or none."""
    number = sum(item["unchecked"] for item in boards)
    gone = list(dict.fromkeys(name for item in boards for name in item["removed"]))
    if not number:
        return []
    claims = plural(_supported(boards), "significant leaderboard claim")
    return [f"{number:,} of {claims} cannot be checked, as {some(gone)} {'is' if len(gone) == 1 else 'are'} gone"]


def _gains(document: Mapping[str, Any]) -> Iterable[str]:
    found, theta = document["gains"]["gain"], document["gains"]["theta"]
    if found["changed"]:
        how_many = "all" if found["changed"] == found["pairs"] else f"{found['changed']:,} of"
        yield (
            f"Gains: {how_many} {plural(found['pairs'], 'pair')} changed, by {found['median_size']:.4f} at the median "
            f"and {found['max_size']:.4f} at most (a gain is in 0 to 1); theta by {theta['median_size']:.4f} and "
            f"{theta['max_size']:.4f}."
        )


def _top(document: Mapping[str, Any]) -> Iterable[str]:
    found = document["ideal_top"]
    if found["queries"] and document["gains"]["gain"]["changed"]:
        yield (
            f"Ideal top {found['k']}: {100 * found['mean_overlap']:.1f} % of its pages stay on average; "
            f"{found['same_pages']:,} of {found['queries']:,} queries keep the same "
            f"pages, {found['same_order']:,} also their order."
        )


def _windows(document: Mapping[str, Any]) -> Iterable[str]:
    if document["windows"] is None:
        return
    parts = []
    for stage, found in document["windows"].items():
        fitted, every = found["outcomes"]["fitted"], found["outcomes"]["windows"]
        if fitted["old"] != fitted["new"] or every["old"] != every["new"]:
            parts.append(
                f"{stage} {fitted['old']:,} of {every['old']:,} before, {fitted['new']:,} of {every['new']:,} now"
            )
    yield f"Windows fitted: {'; '.join(parts)}." if parts else "Windows: as many fitted and left out as before."


def _rows(document: Mapping[str, Any]) -> str:
    parts = []
    for kind, table in document["tables"].items():
        counts = [f"{table[name]:,} {name}" for name in ("added", "removed", "changed") if table[name]]
        if counts:
            parts.append(f"{NAMES[kind]} {', '.join(counts)} of {table['rows_old']:,}")
    found = document["files"]
    files = f"{len(found['changed']):,} changed, {len(found['added']):,} added, {len(found['removed']):,} removed"
    return f"Rows: {'; '.join(parts) or 'none added, removed or changed'}. Files: {files}, {found['same']:,} the same."


def _kept(document: Mapping[str, Any]) -> str:
    names = [NAMES[item["what"]] for item in document["held"] if item["unchanged"]]
    return f"Unchanged, by digest or row by row: {listed(names)}."


def _same_files(document: Mapping[str, Any]) -> bool:
    return not any(document["files"][name] for name in ("added", "removed", "changed"))
