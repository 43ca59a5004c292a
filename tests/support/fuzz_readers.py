"""The readers that are fuzzed, each as a function of one file; what it gives is checked to be well formed.

`READERS` names them as `tests/fuzz/corpus` does. A reader raises errors of our tree, an assertion where it took
garbage, and nothing else.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import shutil
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import huggingface_hub
import polars as pl
from huggingface_hub import HfApi

from builder import documents, hub_source, slices
from builder.benchmark import Benchmark, load_benchmark
from builder.dataset_folder import open_dataset
from builder.inputs import ANSWERS, Pieces, TreeInputs, refuse_changed
from builder.layout import PROVENANCE_KINDS, SCHEMAS
from builder.own_run import read_run
from builder.proofs.facts import Facts
from builder.tables import read_frame
from builder.tree import open_tree
from builder.upstream import read_pages
from builder.validate import validate
from provenance import windows
from provenance.answers import UnusableAnswerError
from provenance.errors import ReleaseError
from provenance.verdicts import rubric_verdicts, tournament_scores
from releases.git_objects import File
from releases.ledger.chain import Entry, head_digest, read_ledger
from releases.ledger.status import statuses
from releases.local_hub.limits import validate_card
from releases.named import benchmark_of
from releases.numbering import next_release
from releases.reproduce import read_record
from releases.retry import Retry
from releases.targets.hub import HubRemote
from releases.verify.hub import HubReader
from releases.verify.ledger_level import inside
from releases.verify.load import job_of
from releases.verify.state import State
from releases.verify.target import Target
from support import tiny
from support.command import release_here
from support.fuzzing import outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

WINDOW = 3
SHA = "0123456789abcdef0123456789abcdef01234567"
_REPO = "example/tiny"


def answers(path: Path) -> dict[str, Any]:
    """A judge's answer as both stages read it: scores or verdicts, or the category that it is left out for."""
    text = path.read_bytes().decode("utf-8", "surrogatepass")
    found: dict[str, Any] = {}
    for name, decode, count in (("tournament", tournament_scores, WINDOW), ("rubric", rubric_verdicts, WINDOW * 5)):
        try:
            found[name] = decode(text, "stop", WINDOW)
        except UnusableAnswerError as error:
            found[name] = error.category
            continue
        assert count == len(found[name])
        assert all(type(value) is (float if name == "tournament" else int) for value in found[name])
        assert all(math.isfinite(value) if name == "tournament" else value in {0, 1} for value in found[name])
    assert all(isinstance(values, list) or values in windows.OUTCOMES for values in found.values())
    return found


def _check_frame(frame: pl.DataFrame, schema: pa.Schema, nullable: frozenset[str] = frozenset()) -> pl.DataFrame:
    assert schema.names == frame.columns
    for name, dtype in frame.schema.items():
        assert pl.DataFrame(pl.from_arrow(schema.empty_table())).schema[name] == dtype
        for value in frame[name].to_list():
            assert value is not None or name in nullable
            assert not isinstance(value, float) or math.isfinite(value)
            assert not isinstance(value, list) or None not in value
    return frame


def qrels(path: Path) -> pl.DataFrame:
    """A table of strings, integers and floats."""
    return _check_frame(read_frame(path, SCHEMAS["qrels"]), SCHEMAS["qrels"])


def top_ranked(path: Path) -> pl.DataFrame:
    """A table with lists."""
    return _check_frame(read_frame(path, SCHEMAS["top_ranked"]), SCHEMAS["top_ranked"])


def criteria(path: Path) -> pl.DataFrame:
    """A table that is read a row group at a time."""
    pieces = [_check_frame(piece, SCHEMAS["judge_criteria"]) for piece in Pieces((path,), "judge_criteria")]
    return pl.concat(pieces) if pieces else pl.DataFrame()


def pages(path: Path) -> pl.DataFrame:
    """A corpus."""
    frame = read_pages([path]).frame
    assert frame["id"].null_count() == frame["text"].null_count() == 0
    assert all(isinstance(text, str) for text in frame["text"].to_list())
    return frame


def judgements(path: Path) -> pl.DataFrame:
    """A table of windows with raw answers, sliced by query as a build does, and parsed."""
    parts = []
    for block in slices.by_queries([path], ANSWERS, rows=2):
        table, rows = slices.read(block, ANSWERS, nullable=frozenset({"answer", "finish_reason"}))
        assert len(table) == len(rows)
        checked = windows.checked(table, "tournament", file=str(path))
        parts.append(windows.parse_tournament(checked).windows)
    return pl.concat(parts)


def own_run(path: Path) -> pl.DataFrame:
    """A run of one's own."""
    run = read_run(path)
    assert {pl.String, pl.Float64} == set(run.dtypes)
    for row in run.rows():
        assert all(isinstance(name, str) and name for name in row[:2])
        assert row[2] is None or math.isfinite(row[2])
    assert len(run) == len(run.unique(subset=[name for name in run.columns if name != "score"]))
    return run


def benchmark(path: Path) -> Benchmark:
    """A benchmark file."""
    found = load_benchmark(str(path))
    assert type(found.pool_size) is type(found.fusion.k) is int
    assert 0 < found.pool_size < 2**63
    assert all(isinstance(domain.upstream, str) for domain in found.domains.values())
    json.dumps(dict(found.card), allow_nan=False, default=str).encode("utf-8")
    return found


def document(path: Path) -> Any:
    """A JSON document, whatever it is."""
    found = documents.read(path)
    documents.dump(found).encode("utf-8")
    return found


def ledger(path: Path) -> tuple[Entry, ...]:
    """A ledger, and what is asked of one."""
    entries = read_ledger(path)
    tiny_benchmark = _tiny_benchmark()
    numbering = next_release(tiny_benchmark, path)
    numbering.kind(tiny_benchmark.judges["toy"], {})
    head_digest(entries)
    assert len(entries) == len(statuses(entries)) == numbering.number - 1
    for entry in entries:
        list(inside(entry))
        assert type(entry.number) is int
    return entries


def card(path: Path) -> dict[str, Any]:
    """A dataset's card: its configs, and the files of each split where it has any."""
    validate_card(path.read_bytes().decode("utf-8", "replace"))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-card-") as folder:
        shutil.copyfile(path, Path(folder) / "README.md")
        # The card is read under its own name; what is said of it must name that.
        path = Path(folder) / "README.md"
        (path.parent / "test").mkdir()
        (path.parent / "test" / "a.parquet").touch()
        dataset = open_dataset(path.parent)
        for config, splits in dataset.configs.items():
            for split in splits:
                files = outcome(lambda _path, c=config, s=split: dataset.files(c, s), path)
                found[f"{config} {split}"] = files
                assert isinstance(files, ReleaseError) or all(file.is_relative_to(path.parent) for file in files)
    return found


@lru_cache(maxsize=1)
def world() -> Path:
    """A tiny world with its release built, in a folder that goes when the process ends."""
    folder = _until_the_end("fuzz-world-")
    file = tiny.write_world(folder)
    built = release_here("build", "--benchmark", file, "--judge", "toy", "--workers", "1", "--out", folder / "out")
    assert built.code == 0, built.stderr
    return folder


def _until_the_end(prefix: str) -> Path:
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _tiny_benchmark() -> Benchmark:
    return load_benchmark(str(_tiny_file()))


@lru_cache(maxsize=1)
def _tiny_file() -> Path:
    file = _until_the_end("fuzz-tiny-") / "benchmark.toml"
    file.write_text(tiny.BENCHMARK, encoding="utf-8")
    return file


def tree_document(path: Path) -> str:
    """A document of a release tree in place of the right one, and whatever reads it."""
    with tempfile.TemporaryDirectory(prefix="fuzz-tree-") as folder:
        tree = Path(folder) / "v1-toy"
        shutil.copytree(world() / "out" / "v1-toy", tree)
        shutil.copyfile(path, tree / "provenance" / path.name)
        opened = open_tree(tree)
        readers: list[Callable[[Path], Any]] = [
            lambda _: (opened.releases, opened.entries),
            lambda _: opened.manifest,
            lambda _: opened.item_params("toy"),
            lambda _: opened.windows("toy"),
            lambda _: TreeInputs(opened, "toy").made(),
            lambda _: refuse_changed(tree, {}),
            lambda _: read_record(tree, "v1-toy"),
        ]
        found = [outcome(reader, path) for reader in readers]
        with contextlib.suppress(ReleaseError):
            # It says only that a benchmark must be named.
            benchmark_of(tree, None)
        for wrong in found:
            if isinstance(wrong, ReleaseError):
                raise wrong
    return "read"


def validated(path: Path) -> list[str]:
    """A table or document of a release (by the file's name) in place of the right one, as it is proved."""
    with tempfile.TemporaryDirectory(prefix="fuzz-proofs-") as folder:
        tree = Path(folder) / "v1-toy"
        shutil.copytree(world() / "out" / "v1-toy", tree)
        if path.suffix == ".json":
            place = f"provenance/{path.name}"
        elif path.stem in PROVENANCE_KINDS:
            place = f"provenance/{path.stem}/paper.parquet"
        else:
            place = f"paper__english/{path.name}"
        shutil.copyfile(path, tree / place)
        facts = Facts(tree, benchmark=load_benchmark(str(world() / "benchmark.toml")), upstream={})
        result = validate(facts, clock=lambda: 0.0, say=lambda _message: None)
        failures = [row for proved in result.outcomes for row in proved.failures.iter_rows(named=True)]
        # A manifest that is wrong is told by the files that it is wrong about.
        assert not failures or path.suffix == ".json" or place in {row["file"] for row in failures}
        return result.named("failed")


def state(path: Path) -> list[str]:
    """What a verification that was cut short had kept: never an error, at worst nothing."""
    name = State(path.parent, "head", "place", lambda: 100.0)._path
    shutil.copyfile(path, name)
    try:
        return State(path.parent, "head", "place", lambda: 100.0).keys("")
    finally:
        name.unlink()


def hub(path: Path) -> dict[str, Any]:
    """A Hub that gives the same reply to every request, read by each of our clients.

    The file is JSON: `kind` (refs, commits, tree, info or file), `status`, `headers`, and `body` (text).
    """
    reply = json.loads(path.read_bytes())
    with _replying(reply), tempfile.TemporaryDirectory(prefix="fuzz-hub-") as folder:
        found = {
            name: outcome(lambda _path, call=call: call(), path)
            for name, call in _clients(path.name, Path(folder))[reply["kind"]].items()
        }
        assert not [file for file in Path(folder).rglob("*") if file.name.startswith("tmp")]
    for wrong in found.values():
        if isinstance(wrong, ReleaseError):
            raise wrong
    return found


def _clients(name: str, cache: Path) -> dict[str, dict[str, Callable[[], Any]]]:
    """Each client's calls by the kind of the reply that they read."""
    reader = HubReader(Target(_REPO, "http://hub.test", None, name))
    remote = HubRemote(_REPO, endpoint="http://hub.test", token=False, retry=Retry(sleep=lambda _seconds: None))
    remote.name = name
    source = hub_source._HubSource(name, _REPO, cache, HfApi(endpoint="http://hub.test"))

    def listing() -> list[hub_source.Listed]:
        rows = source._listing(SHA)
        assert rows == source._kept_listing(SHA) or not rows
        for row in rows:
            _check_file(row.path, File(row.blob, row.size, row.sha256, row.sha256 is not None))
        return rows

    def files(found: dict[str, File] | None) -> Any:
        for path, file in (found or {}).items():
            _check_file(path, file)
        return found

    entry = Entry(1, "v1-toy", SHA, None, SHA, None, {}, proved=True, files={"README.md": _readme()})
    report: Any = SimpleNamespace(gaps=[], failures=[], covered={})
    return {
        "refs": {
            "verify": lambda: _check_refs(*reader.refs()),
            "publish": lambda: [_check_refs(*vars(refs).values()) for refs in [remote.refs()] if refs is not None],
            "build": lambda: _check_refs(source.commit("main", pinned=False), {}),
        },
        "commits": {
            "verify": lambda: [_check_sha(sha) for sha in reader.history()],
            "publish": lambda: str(remote.commit(SHA)).encode("utf-8"),
        },
        "tree": {"verify": lambda: files(reader.files(SHA)), "publish": lambda: files(remote.files(SHA))},
        "info": {"build": listing},
        "file": {
            "verify": lambda: reader.fetch("README.md", SHA, 3),
            "document": lambda: reader.document("README.md", SHA, SHA),
            "load": lambda: job_of(reader, entry, report),
        },
    }


def _readme() -> dict[str, Any]:
    return {"oid": SHA, "size": 3, "sha256": "0" * 64, "lfs": False}


def _check_refs(head: str | None, tags: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    for sha in (*tags.values(), *([] if head is None else [head])):
        _check_sha(sha)
    assert all(isinstance(name, str) and name for name in tags)
    return head, tags


def _check_sha(sha: object) -> object:
    assert isinstance(sha, str)
    assert 40 == len(sha)
    assert set(sha) <= set("0123456789abcdef")
    return sha


def _check_file(path: str, file: File) -> None:
    assert not path.startswith("/")
    assert ".." not in path.split("/")
    _check_sha(file.oid)
    assert type(file.size) is int
    assert file.size >= 0
    assert file.lfs == (file.sha256 is not None)


@lru_cache(maxsize=1)
def _client_kind() -> Any:
    """The HTTP library's client, in whichever library the Hub's client uses; one costs a read of all certificates."""
    return type(huggingface_hub.get_session())


@contextlib.contextmanager
def _replying(reply: dict[str, Any]) -> Iterator[None]:
    """The Hub's client gets this reply to each request; no socket is opened, nothing waits."""
    kind = _client_kind()
    library = sys.modules[kind.__module__]

    def answer(request: Any) -> Any:
        body = reply["body"].encode("utf-8", "surrogatepass")
        return library.Response(reply["status"], headers=reply["headers"], content=body, request=request)

    before = huggingface_hub.utils._http._GLOBAL_CLIENT_FACTORY
    huggingface_hub.set_client_factory(lambda: kind(transport=library.MockTransport(answer), trust_env=False))
    clock = SimpleNamespace(sleep=lambda _seconds: None, time=time.time)
    try:
        with (
            mock.patch("huggingface_hub.utils._http.time", clock),
            mock.patch("builder.hub_source.sleep"),
        ):
            yield
    finally:
        huggingface_hub.set_client_factory(before)


READERS: dict[str, Callable[[Path], Any]] = {
    "answers": answers,
    "qrels": qrels,
    "top_ranked": top_ranked,
    "criteria": criteria,
    "pages": pages,
    "judgements": judgements,
    "own_run": own_run,
    "benchmark": benchmark,
    "document": document,
    "tree_document": tree_document,
    "ledger": ledger,
    "card": card,
    "validated": validated,
    "state": state,
    "hub": hub,
}
