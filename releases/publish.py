"""Publishing a release: one commit, one tag, one line in the ledger, whatever dies on the way (DESIGN section 6).

plan -> upload -> one commit on the plan's parent -> compare the remote tree with the plan -> tag -> read back -> ledger

Nothing is remembered between runs but the ledger: where a run left off is read from the remote. A commit is never
simply repeated: after any error the head is read first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builder.layout import GITATTRIBUTES, README
from provenance.errors import RemoteError, SafetyError, Where
from releases.ledger.chain import Entry, append, check_writable, head_digest
from releases.plan import Plan, make_plan, tree_of
from releases.remote import OvertakenError
from releases.retry import TRIES, Retry, TransientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releases.git_objects import File
    from releases.progress import Progress
    from releases.ready import Ready
    from releases.remote import Refs, Release, Remote

STEPS = ("commit", "tag", "ledger")
DONE = "done"
WAS_DONE = "was done"
"""Of a step: by this run, or by an earlier one."""
_SHOWN = 10
_NEW_REPOSITORY = frozenset({GITATTRIBUTES, README})
"""What a Hub may have put into a repository that nobody has used yet."""


@dataclass(frozen=True)
class Ledger:
    """Where the ledger lies and what it says."""

    path: Path
    entries: tuple[Entry, ...]

    @property
    def last(self) -> Entry | None:
        """The last release."""
        return self.entries[-1] if self.entries else None


@dataclass(frozen=True)
class Situation:
    """How far the remote is: the plan, and the release's commit if it stands on the remote already."""

    plan: Plan
    exists: bool
    commit: str | None = None
    tagged: bool = False


@dataclass
class Published:
    """What a publish did."""

    revision: str
    plan: Plan
    bytes_sent: int
    steps: dict[str, str] = field(default_factory=dict)
    """A name in `STEPS` -> `DONE` or `WAS_DONE`."""
    overtaken_by: str | None = None
    """A commit that stands on top of the release by now, which is another's."""


def bring(
    remote: Remote, ready: Ready, ledger: Ledger, *, allowed_deletes: int, progress: Progress, retry: Retry
) -> Published:
    """Publish a release, from wherever an earlier run left off; if it is published already, only check that it is.

    Raises:
        SafetyError, RemoteError, InputError: as `survey`, `publish` and `confirm`.
    """
    last = ledger.last
    if last is not None and last.tag == ready.release.tag:
        confirm(remote, last, ready.files)
        plan = Plan(last.parent, ready.files, (), tuple(sorted(ready.files)), ())
        return Published(str(last.revision), plan, 0, dict.fromkeys(STEPS, WAS_DONE))
    situation = survey(remote, ready, ledger, allowed_deletes=allowed_deletes)
    check_writable(ledger.path)
    return publish(remote, ready, ledger, situation, progress=progress, retry=retry)


def survey(remote: Remote, ready: Ready, ledger: Ledger, *, allowed_deletes: int) -> Situation:
    """Read the remote and plan; nothing is written.

    Raises:
        SafetyError: the release cannot go on top of what is there; the message says what is there, and what to do.
        RemoteError, InputError: the remote fails, or refuses.
    """
    refs = remote.refs()
    if refs is None or refs.head is None:
        _expect_nothing(remote, ledger)
        plan = make_plan(ready.files, None, {}, allowed_deletes=allowed_deletes)
        return Situation(plan, exists=refs is not None)
    tag = ready.release.tag
    tagged = refs.tags.get(tag)
    if tagged is not None and tagged != refs.head:
        raise _tag_taken(remote, tag, tagged)
    held = remote.files(refs.head)
    base = ledger.last.revision if ledger.last is not None else None
    if refs.head != base and tree_of(held) == tree_of(ready.files):
        # Perhaps a publish that died after its commit.
        commit = remote.commit(refs.head)
        if ledger.last is None or commit.parent == base:
            before = remote.files(commit.parent) if commit.parent is not None else {}
            plan = make_plan(ready.files, commit.parent, before, allowed_deletes=allowed_deletes)
            return Situation(plan, exists=True, commit=refs.head, tagged=tagged is not None)
    _check_base(remote, refs, held, ledger)
    if tagged is not None:
        raise _tag_taken(remote, tag, tagged)
    attributes = _attributes(remote, refs.head, held, ready.files)
    plan = make_plan(ready.files, refs.head, held, held_attributes=attributes, allowed_deletes=allowed_deletes)
    if not plan.adds and not plan.deletes:
        raise SafetyError(
            f"release {tag} changes nothing: the last release has the same files",
            where=Where(remote.name),
            remedy="there is nothing to publish; build a release that differs.",
        )
    return Situation(plan, exists=True)


def publish(
    remote: Remote, ready: Ready, ledger: Ledger, situation: Situation, *, progress: Progress, retry: Retry
) -> Published:
    """Bring a release to where `survey` found the remote to be; every step may have been done by an earlier run.

    Raises:
        SafetyError: someone else published meanwhile, or the remote holds something else than was planned.
        RemoteError: the remote failed; the same command again goes on from there.
    """
    release, plan = ready.release, situation.plan
    done = Published(situation.commit or "", plan, 0)
    if situation.commit is None:
        if plan.parent is None:
            plan = done.plan = _first_plan(remote, ready)
        with progress.upload(len(plan.adds), plan.bytes_to_send) as sent:
            remote.upload(release, plan, sent)
        done.bytes_sent = plan.bytes_to_send
        progress.say("commit")
        done.revision = _commit(remote, release, plan, retry)
    done.steps["commit"] = DONE if situation.commit is None else WAS_DONE
    progress.say(f"compare {len(plan.files)} files of {done.revision}")
    _compare(remote, done.revision, plan, retry)
    progress.say(f"tag {release.tag}")
    refs = _tag(remote, release.tag, done.revision, retry)
    done.steps["tag"] = WAS_DONE if situation.tagged else DONE
    if refs.head != done.revision:
        done.overtaken_by = refs.head
    progress.say("ledger")
    append(ledger.path, entry_of(ready, plan, done.revision, ledger.entries))
    done.steps["ledger"] = DONE
    return done


def entry_of(ready: Ready, plan: Plan, revision: str, entries: Sequence[Entry]) -> Entry:
    """The ledger's line for a release whose commit is known."""
    return Entry(
        number=len(entries) + 1,
        tag=ready.release.tag,
        revision=revision,
        parent=plan.parent,
        tree=plan.tree,
        manifest_sha256=ready.manifest_sha256,
        release={**ready.entry, "revision": revision},
        proved=ready.proved,
        files={
            path: {"oid": file.oid, "size": file.size, "sha256": file.sha256, "lfs": file.lfs}
            for path, file in plan.files.items()
        },
        previous=head_digest(entries),
    )


def confirm(remote: Remote, entry: Entry, files: Mapping[str, File]) -> None:
    """Check that a release which the ledger has already is this tree, and that the remote has it.

    Raises:
        SafetyError: it is another tree, or the remote's tag leads elsewhere.
    """
    if entry.tree != tree_of(files):
        raise SafetyError(
            f"release {entry.number} is published already, and it is another tree: {entry.tag} is commit "
            f"{entry.revision}, with root tree {entry.tree}",
            where=Where(remote.name),
            remedy="build the release again: it takes the next number.",
        )
    refs = remote.refs()
    target = None if refs is None else refs.tags.get(entry.tag)
    if target != entry.revision:
        raise SafetyError(
            f"the ledger says that {entry.tag} is commit {entry.revision}, the remote says {target or 'there is none'}",
            where=Where(remote.name),
            remedy="if this is another remote than the one that it was published to, name a ledger of its own with "
            "--ledger; else find out who moved the tag: `release verify` says what else differs.",
        )


def _expect_nothing(remote: Remote, ledger: Ledger) -> None:
    if ledger.last is not None:
        raise SafetyError(
            f"the ledger ends with {ledger.last.tag} (commit {ledger.last.revision}), and the remote holds nothing "
            "that may be read",
            where=Where(remote.name),
            remedy="publish to the repository that the ledger is about (your token must be able to read it), or name "
            "another ledger with --ledger.",
        )


def _check_base(remote: Remote, refs: Refs, held: Mapping[str, File], ledger: Ledger) -> None:
    """The head must be the ledger's, or what a Hub makes of a new repository."""
    head = refs.head or ""
    if ledger.last is None:
        if not _NEW_REPOSITORY.issuperset(held) or refs.tags:
            raise SafetyError(
                f"the ledger is empty, but the repository holds {len(held)} files and {len(refs.tags)} tags; its head "
                f"is {remote.commit(head)}",
                where=Where(remote.name),
                remedy="take what was published there into the ledger with `release adopt`, or name an empty "
                "repository.",
            )
    elif ledger.last.revision is None:
        raise SafetyError(
            f"the ledger does not know at which commit {ledger.last.tag} was published",
            where=Where(str(ledger.path)),
            remedy="take what was published by hand into the ledger with `release adopt`.",
        )
    elif head != ledger.last.revision:
        raise _foreign(remote, head, f"the last release, {ledger.last.tag}, is commit {ledger.last.revision}")
    elif ledger.last.tree is not None and tree_of(held) != ledger.last.tree:
        raise SafetyError(
            f"commit {head} has root tree {tree_of(held)}, in the ledger {ledger.last.tree}",
            where=Where(remote.name),
            remedy="`release verify` says which files differ; nothing was published.",
        )


def _foreign(remote: Remote, head: str, expected: str) -> SafetyError:
    return SafetyError(
        f"someone else published: the head of the repository is {remote.commit(head)}; {expected}",
        where=Where(remote.name),
        remedy="look at that commit. If it is a release, get the ledger that has it and build again on top of it; if "
        "a former run of yours made it from another tree, publish that tree; if it was made by hand, take it into the "
        "ledger with `release adopt`.",
    )


def _tag_taken(remote: Remote, tag: str, target: str) -> SafetyError:
    return SafetyError(
        f"the tag {tag} exists and leads to another commit: {remote.commit(target)}",
        where=Where(remote.name),
        remedy="a tag is never moved. Build the release again with the ledger that has that one, or take it in with "
        "`release adopt`.",
    )


def _attributes(remote: Remote, head: str, held: Mapping[str, File], files: Mapping[str, File]) -> str | None:
    """The remote's `.gitattributes`, unless it is the release's own byte for byte."""
    theirs, ours = held.get(GITATTRIBUTES), files.get(GITATTRIBUTES)
    if theirs is None or (ours is not None and theirs.oid == ours.oid):
        return None
    return remote.text(GITATTRIBUTES, head)


def _first_plan(remote: Remote, ready: Ready) -> Plan:
    """Make the repository; plan again, on top of what the remote put into it."""
    remote.create()
    refs = remote.refs()
    if refs is None:
        raise RemoteError(
            "the repository was made, and the remote does not show it",
            where=Where(remote.name),
            remedy="check that your token may read it, and run the same command again.",
        )
    if refs.head is None:
        return make_plan(ready.files, None, {})
    held = remote.files(refs.head)
    if not _NEW_REPOSITORY.issuperset(held):
        raise _foreign(remote, refs.head, "the repository was empty a moment ago")
    return make_plan(ready.files, refs.head, held, held_attributes=_attributes(remote, refs.head, held, ready.files))


def _commit(remote: Remote, release: Release, plan: Plan, retry: Retry) -> str:
    """Make the commit: the head is read after every error, and another try names the same parent."""
    unsure = False
    for number in range(1, TRIES + 1):
        try:
            sha = remote.push(release, plan)
        except OvertakenError:
            return _whose(remote, plan, unsure=unsure)
        except RemoteError as error:
            unsure = True
            refs = remote.refs()
            if refs is not None and refs.head != plan.parent:
                return _whose(remote, plan, unsure=unsure)
            if number == TRIES:
                raise
            retry.pause(number, error)
        else:
            if sha == plan.parent:
                raise SafetyError(
                    "the remote found nothing to change, and made no commit",
                    where=Where(remote.name),
                    remedy="run the same command with --dry-run, and compare the plan with the remote.",
                )
            return sha
    raise AssertionError


def _whose(remote: Remote, plan: Plan, *, unsure: bool) -> str:
    """The head is not the parent any more: by our own try that seemed to fail (its sha), or by someone else."""
    refs = remote.refs()
    head = refs.head if refs is not None else None
    if head is None or head == plan.parent:
        raise RemoteError(
            "the remote refused the commit, and shows no other",
            where=Where(remote.name),
            remedy="run the same command again.",
        )
    if unsure and tree_of(remote.files(head)) == plan.tree and remote.commit(head).parent == plan.parent:
        return head
    raise _foreign(remote, head, f"this release was planned on top of {plan.parent or 'nothing'}")


def _compare(remote: Remote, sha: str, plan: Plan, retry: Retry) -> None:
    """Every file of the commit, and its parent, are the plan's."""
    held = retry(lambda: remote.files(sha))
    differing = sorted(
        path
        for path in held.keys() | plan.files.keys()
        if path not in held or path not in plan.files or held[path].oid != plan.files[path].oid
    )
    parent = remote.commit(sha).parent
    if differing or parent != plan.parent:
        faults = [f"parent {parent}, planned {plan.parent}"] if parent != plan.parent else []
        faults += [
            f"{path}: {held[path].oid if path in held else 'missing'}, planned "
            f"{plan.files[path].oid if path in plan.files else 'none'}"
            for path in differing[:_SHOWN]
        ]
        more = f"\n    and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise SafetyError(
            f"commit {sha} is not what was planned; it is neither tagged nor in the ledger:\n    "
            + "\n    ".join(faults)
            + more,
            where=Where(remote.name),
            remedy="look at the commit on the remote; nothing that was pinned before is touched.",
        )


def _tag(remote: Remote, tag: str, sha: str, retry: Retry) -> Refs:
    """Make the tag unless it is there, and read it back."""
    for number in range(1, TRIES + 1):
        refs = remote.refs()
        target = None if refs is None else refs.tags.get(tag)
        if refs is not None and target == sha:
            return refs
        if target is not None:
            raise _tag_taken(remote, tag, target)
        try:
            remote.tag(tag, sha)
        except TransientError as error:
            if number == TRIES:
                raise
            retry.pause(number, error)
        except OvertakenError:
            continue
    refs = remote.refs()
    if refs is not None and refs.tags.get(tag) == sha:
        return refs
    raise RemoteError(
        f"the tag {tag} was made, and the remote does not show it",
        where=Where(remote.name),
        remedy="run the same command again.",
    )


def report(ready: Ready, done: Published, remote: Remote, ledger: Ledger) -> dict[str, Any]:
    """What `release publish --json` prints."""
    plan = done.plan
    return {
        "tag": ready.release.tag,
        "revision": done.revision,
        "parent": plan.parent,
        "tree": plan.tree,
        "target": remote.name,
        "kind": ready.entry["kind"],
        "files": {"added": len(plan.adds), "unchanged": len(plan.unchanged), "deleted": len(plan.deletes)},
        "bytes_sent": done.bytes_sent,
        "bytes_of_tree": plan.bytes_of_tree,
        "steps": done.steps,
        "overtaken_by": done.overtaken_by,
        "ledger": str(ledger.path),
    }
