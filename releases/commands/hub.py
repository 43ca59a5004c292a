"""`release hub`: a small Hub on this machine, for rehearsals and tests."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from provenance.errors import InputError, SafetyError, UsageError, Where
from releases.local_hub import LocalHub, Store
from releases.local_hub.names import HubError, check_repo_id
from releases.local_hub.store import MAIN
from releases.terminal import print_json, say

# Not an option: the arguments of a process are there for all to read.
TOKEN = "RELEASE_HUB_TOKEN"  # noqa: S105  # the variable's name

app = typer.Typer(help="A small Hub on this machine, for rehearsals and tests.", no_args_is_help=True)


@app.command()
def serve(
    root: Annotated[Path, typer.Argument(help="The folder of repositories; made if it is not there.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The loopback port; 0 takes a free one.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Serve ROOT on this machine's loopback address until interrupted.

    With RELEASE_HUB_TOKEN in the environment only the holder of that token writes, and reads what is private or gated.
    """
    hub = LocalHub(root, token=os.environ.get(TOKEN) or None, port=port)
    try:
        root.mkdir(parents=True, exist_ok=True)
        hub.start()
    except OSError as error:
        raise InputError(
            f"cannot serve: {error.strerror}",
            where=Where(str(root), value=port or None),
            remedy="choose another --port, or a folder that can be written.",
        ) from error
    try:
        if json:
            print_json({"endpoint": hub.endpoint, "root": str(root)})
        say(f"serving {root} at {hub.endpoint}; Ctrl-C ends it")
        say("in another terminal:")
        # Without the second the client uploads through Xet, which this Hub does not speak.
        say(f"  export HF_ENDPOINT={hub.endpoint} HF_HUB_DISABLE_XET=1")
        with suppress(KeyboardInterrupt):
            hub.wait()
    finally:
        hub.stop()


@app.command()
def init(
    root: Annotated[Path, typer.Argument(help="The folder of repositories; made if it is not there.")],
    repo: Annotated[str, typer.Argument(help="The dataset repository: namespace/name.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Make an empty dataset repository in ROOT, as the Hub makes one."""
    try:
        check_repo_id(repo)
    except HubError as error:
        raise UsageError(error.message, where=Where(value=repo)) from error
    try:
        repository = Store(root.resolve()).create(repo)
    except HubError as error:
        raise SafetyError(
            f"{repo} exists already", where=Where(str(root)), remedy="use it as it is, or choose another name."
        ) from error
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", where=Where(str(root))) from error
    head = repository.resolve(MAIN)
    if json:
        print_json({"root": str(root), "repo": repo, "path": str(repository.path), "head": head})
    say(f"made {repo} in {root}")
    say(f"next: release hub serve {root}")
