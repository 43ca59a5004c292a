"""C2: tag, releases.json, card, task file and successors say the same."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from builder import documents, tasks
from builder.json_schemas import faults
from builder.layout import README, RELEASES, TASK_FILE
from builder.manifest import version
from builder.proofs.facts import UnprovableError
from builder.proofs.outcome import Coverage, Finding, Gap, fault
from builder.proofs.registry import or_gap, proof
from builder.releases_document import withdrawn
from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from builder.proofs.facts import Facts

_REVISION = re.compile(r"""^_REVISION\s*(?::[^=\n]+)?=\s*["']([^"'\n]*)["']""", re.MULTILINE)
_DIGESTS = re.compile(r"(?<=^_FILES: dict\[str, str\] = json\.loads\(r\"\"\").*?(?=\"\"\"\))", re.MULTILINE | re.DOTALL)
_REVISION_LINE = re.compile(r"_REVISION = \"[^\"\\]*\"")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CARRIED = ("number", "tag", "data_revision", "judge", "calibration", "upstream", "tasks", "may_change")


@proof("C2", "tag, releases.json, card, task file and superseded_by say the same; one release is current")
def releases(facts: Facts) -> Iterator[Finding]:
    """Proves that releases.json is whole in itself, and that the card and the task file agree with it.

    Numbers run 1..n; each tag names its number, once; the last release is the tree's own, current, and the only one
    that is; every other names its successor and a full sha, no two the same. The own entry's judge is the item
    parameters', its benchmark, repository, upstream pins and tasks the benchmark file's. With a predecessor, its
    entries are carried on; with a ledger, the releases before are the ledger's, at its commits. It does not prove that
    a sha exists on the remote: that is `verify`.
    """
    if RELEASES not in facts.files:
        raise UnprovableError(f"the tree has no {RELEASES}")
    try:
        document = documents.read(facts.inside(RELEASES))
    except (ReleaseError, UnprovableError, OSError) as error:
        yield fault("unreadable", error.what if isinstance(error, ReleaseError) else str(error), file=RELEASES)
        return
    if not isinstance(document, dict) or (not facts.made_here and "format" not in document):
        raise UnprovableError(f"{RELEASES} has another form than this tool's")
    broken = list(faults(document, "releases"))
    for path, rule, value, message in broken:
        yield fault(rule, message, file=RELEASES, column=path, value=value)
    if broken:
        return
    entries = document["releases"]
    yield Coverage(rows=len(entries), files=1)
    yield from sequence(entries)
    yield from successors(entries)
    yield from or_gap(_texts(facts, entries), "")
    yield from or_gap(_judge(facts, entries[-1]), "")
    yield from _benchmark(facts, document)
    yield from or_gap(_task_file(facts, document), "")
    if facts.against is not None:
        yield from or_gap(_carried(entries, facts.against), "predecessor")
    if facts.published is not None:
        yield from _in_ledger(entries, facts.published)


def _in_ledger(entries: Sequence[Mapping[str, Any]], published: Mapping[str, str | None]) -> Iterator[Finding]:
    """The releases before the own one are those of the ledger, each at the ledger's commit where both name one."""
    own = entries[-1]["number"]
    for place, (tag, revision) in enumerate(list(published.items())[: own - 1]):
        said = entries[place] if place < len(entries) - 1 else None
        column = f"releases.{place}"
        if said is None or said["tag"] != tag:
            message = f"release {place + 1} of the ledger is {tag}"
            yield fault("ledger", message, file=RELEASES, column=f"{column}.tag", value=said and said["tag"])
        elif None not in {said["revision"], revision} and said["revision"] != revision:
            message = f"in the ledger, {tag} is commit {revision}"
            yield fault("ledger", message, file=RELEASES, column=f"{column}.revision", value=said["revision"])
    if own > len(published) + 1:
        message = f"the ledger has {len(published)} release(s), so {len(published) + 1} is the next"
        yield fault("ledger", message, file=RELEASES, column=f"releases.{own - 1}.number", value=own)


def sequence(entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Numbers run 1..n, tags name them, shas are named once."""
    tags: set[str] = set()
    shas: set[str] = set()
    for place, entry in enumerate(entries):
        column = f"releases.{place}"
        if entry["number"] != place + 1:
            message = f"the numbers are not 1, 2, 3, ...: {place + 1} is due here"
            yield fault("number", message, file=RELEASES, column=f"{column}.number", value=entry["number"])
        if not entry["tag"].startswith(f"v{entry['number']}-"):
            message = f"the tag of release {entry['number']} must start with v{entry['number']}-"
            yield fault("tag", message, file=RELEASES, column=f"{column}.tag", value=entry["tag"])
        if entry["tag"] in tags:
            yield fault("tag", "two releases have this tag", file=RELEASES, column=f"{column}.tag", value=entry["tag"])
        if entry["revision"] in shas:
            message = "two releases have this revision"
            yield fault("revision", message, file=RELEASES, column=f"{column}.revision", value=entry["revision"])
        tags.add(entry["tag"])
        if entry["revision"] is not None:
            shas.add(entry["revision"])


def successors(entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The last release is current, alone and without a sha; the others are not, and name their successor."""
    for place, entry in enumerate(entries):
        last = place == len(entries) - 1
        column = f"releases.{place}"
        following = None if last else entries[place + 1]["tag"]
        if (entry["status"] == "current") != last:
            message = "the tree's own release must be current" if last else "only the last release is current"
            yield fault("status", message, file=RELEASES, column=f"{column}.status", value=entry["status"])
        if entry["superseded_by"] != following:
            message = f"the release that follows is {following}" if following else "no release follows"
            value = entry["superseded_by"]
            yield fault("superseded_by", message, file=RELEASES, column=f"{column}.superseded_by", value=value)
        if last and entry["revision"] is not None:
            message = "a commit cannot hold its own sha: the last release's revision is null"
            yield fault("revision", message, file=RELEASES, column=f"{column}.revision", value=entry["revision"])
        if not last and entry["revision"] is None:
            message = f"the revision of {entry['tag']} is not known: its pin cannot be proved"
            yield Gap(message)


def _texts(facts: Facts, entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    own = entries[-1]["tag"]
    tasks = facts.inside(TASK_FILE).read_text("utf-8", errors="replace")
    yield Coverage(files=1)
    found = _REVISION.search(tasks)
    if found is None:
        yield fault("task-revision", 'the task file has no line _REVISION = "..."', file=TASK_FILE, column="_REVISION")
    elif found[1] != own:
        row = tasks.count("\n", 0, found.start())
        message = f"the task file must name its own release, {own}"
        yield fault("task-revision", message, file=TASK_FILE, row=row, column="_REVISION", value=found[1])
    text = facts.front.text
    if not text:
        raise UnprovableError("there is no card that could name the releases")
    yield Coverage(files=1)
    for entry in entries:
        for key in ("tag", "revision"):
            if entry[key] is not None and not _says(text, entry[key]):
                message = f"the card does not name the {key} of release {entry['number']}"
                yield fault(f"card-{key}", message, file=README, column=key, value=entry[key])


def _task_file(facts: Facts, document: Mapping[str, Any]) -> Iterator[Finding]:
    """The task file is the one that the benchmark file renders to, but for the digests that it checks itself.

    A wrong digest in it makes its tasks refuse to load; any other change could make them score something else.
    """
    if not facts.made_here or not facts.has_benchmark or facts.manifest["tool"]["version"] != version():
        yield Gap("the task file is rendered again only for a tree of this version, with its benchmark file")
        return
    own = document["releases"][-1]["tag"]
    text = facts.inside(TASK_FILE).read_text("utf-8", errors="replace")
    files = {name: str(fact["sha256"]) for name, fact in facts.manifest["files"].items()}
    try:
        rendered = tasks.render(facts.benchmark, tag=own, files=files, withdrawn=withdrawn(document))
    except ReleaseError as error:
        yield Gap(f"the task file cannot be rendered again: {error.what}")
        return
    pairs = zip_longest(_without_digests(text), _without_digests(rendered))
    for row, (found, wanted) in enumerate(pairs):
        if found != wanted and not (
            _REVISION_LINE.fullmatch(found or "") and _REVISION_LINE.fullmatch(wanted or "")  # `_texts` tells of it
        ):
            message = f"the benchmark file renders this line as {wanted!r}"
            yield fault("task-file", message, file=TASK_FILE, row=row, value=found)
            return


def _without_digests(text: str) -> list[str]:
    """The lines; digests are left out only where they are nothing else, so that no code can hide among them."""
    found = _DIGESTS.search(text)
    if found is not None and _are_digests(found[0]):
        text = text[: found.start()] + text[found.end() :]
    return text.split("\n")


def _are_digests(text: str) -> bool:
    try:
        document = documents.parse(text)
    except ValueError:
        return False
    return isinstance(document, dict) and all(
        isinstance(value, str) and _SHA256.fullmatch(value) for value in document.values()
    )


def _says(text: str, name: str) -> bool:
    """Whether a text holds a name as a whole word (`v1-a` is not in `v1-a-b`)."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def _judge(facts: Facts, own: Mapping[str, Any]) -> Iterator[Finding]:
    name = own["judge"]["name"] if isinstance(own["judge"], dict) and "name" in own["judge"] else own["judge"]
    if name != facts.judge():
        message = f"the tree's item parameters are those of '{facts.judge()}'"
        yield fault("judge", message, file=RELEASES, column="judge", value=name)


def _benchmark(facts: Facts, document: Mapping[str, Any]) -> Iterator[Finding]:
    if not facts.has_benchmark:
        yield Gap("no benchmark file says what releases.json should name")
        return
    benchmark, own = facts.benchmark, document["releases"][-1]
    at = f"releases.{len(document['releases']) - 1}"
    pins = {name: domain.upstream_as_written for name, domain in benchmark.domains.items()}
    expected: dict[str, tuple[object, object]] = {
        "benchmark": (document["benchmark"], benchmark.name),
        "repo": (document["repo"], benchmark.repo),
        f"{at}.tasks": (own["tasks"] or [], list(benchmark.task_names())),
        f"{at}.upstream": ({name: pin["uri"] for name, pin in (own["upstream"] or {}).items()}, pins),
    }
    judge = next((item for item in benchmark.judges.values() if own["tag"] == f"v{own['number']}-{item.slug}"), None)
    if judge is None:
        expected[f"{at}.tag"] = (
            own["tag"],
            " or ".join(f"v{own['number']}-{j.slug}" for j in benchmark.judges.values()),
        )
    for name, pin in (own["upstream"] or {}).items():
        uri, revision = str(pin["uri"]), pin["revision"]
        due = uri.rpartition("@")[2] if uri.startswith("hf://") else revision if "://" in uri else None
        expected[f"{at}.upstream.{name}.revision"] = (revision, due)
    for column, (found, wanted) in expected.items():
        if found != wanted:
            yield fault("benchmark", f"the benchmark file says {wanted!r}", file=RELEASES, column=column, value=found)


def _carried(entries: Sequence[Mapping[str, Any]], before: Facts) -> Iterator[Finding]:
    """The predecessor's entries are carried on; only status, successor and a revision that was null may change."""
    earlier = before.releases["releases"]
    if len(entries) != len(earlier) + 1:
        message = f"the predecessor has {len(earlier)} release(s), so {len(earlier) + 1} are due"
        yield fault("predecessor", message, file=RELEASES, column="releases", value=len(entries))
    for place, (old, new) in enumerate(zip(earlier, entries, strict=False)):
        keys = [*_CARRIED, *(["revision"] if old["revision"] is not None else [])]
        for key in keys:
            if old[key] != new[key]:
                message = f"the predecessor says {old[key]!r}"
                yield fault("predecessor", message, file=RELEASES, column=f"releases.{place}.{key}", value=new[key])
