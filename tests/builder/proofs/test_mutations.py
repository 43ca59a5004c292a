"""Random changes of one cell or one row of the real benchmark's tree: each is seen, or listed with why it cannot be."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.proving import Tree, copy_tree

from builder import manifest
from builder.layout import CRITERIA, FUSED, MANIFEST
from builder.proofs.facts import Facts
from builder.upstream import read_pages
from builder.validate import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from builder.proofs.facts import RowFinding, Table
    from builder.upstream import UpstreamDomain

SEED = 20261129
DOMAINS = ("sysadmin_en", "sysadmin_fr")
LANGUAGES = ("english", "french", "german", "italian", "portuguese", "spanish")
READERS = {
    "corpus": ("S1", "S2", "J1", "U1"),
    "queries": ("S1", "S2", "J1", "J2", "U1", "P3"),
    "qrels": ("S1", "S2", "J1", "U1", "P2", "P3", "G1", "G2"),
    "top_ranked": ("S1", "S2", "J1", "P3"),
    "pool": ("S1", "S2", "J1", "P2", "P3", "R1"),
    "first_stage": ("S1", "S2", "J1", "P1", "P2"),
    "runs": ("S1", "S2", "J1", "R1"),
    "judge_criteria": ("S1", "S2", "J1", "L1", "G2"),
    "calibration": ("S1", "S2", "J1", "G1", "G2"),
}
"""The proofs that read a kind of table; the others cannot see a change of it."""
ROUNDS = 12
"""Changes of each sort (18 sorts, so 216 changes)."""
BLIND = {
    "retriever score": "only ranks are fused, and no tree holds the retriever that gave the score",
    "run score, same order": "no tree holds the model that gave it, and its rank is still right",
    "two stored positions": "they are the order of the input's rows, which no tree holds",
    "verdicts to another window": "windows of one query may show any pages, and counts a page stay what they are",
    "tournament windows": "the tournament's raw answers are not published",
}


class Remembering(Facts):
    """Facts of one domain that remember what files not touched by a change hold (a copy shares their inodes)."""

    memory: dict[object, Any] = {}  # noqa: RUF012 - shared on purpose, for the module's tests only

    def __init__(self, tree: Tree, only: str | None, kinds: frozenset[str]) -> None:
        super().__init__(tree.path, benchmark=tree.benchmark, upstream=tree.upstream)
        self._only = only
        self._kinds = kinds

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the domain and the kinds."""
        return tuple(t for t in super().tables if self._only in {None, t.domain} and t.kind in self._kinds)

    def _read(self, name: str, kind: str, columns: Sequence[str]) -> pa.Table:
        return self._once((name, *columns), lambda: Facts._read(self, name, kind, columns))

    def _row_finding(self, table: Table, name: str) -> RowFinding:
        return self._once((name, "rows"), lambda: Facts._row_finding(self, table, name))

    def upstream(self, domain: str) -> UpstreamDomain:
        """Upstream's data of a domain, read once."""
        if domain not in self.memory:
            self.memory[domain] = super().upstream(domain)
        return self.memory[domain]

    def _once(self, key: tuple[str, ...], read: Callable[[], Any]) -> Any:
        stat = (self.path / key[0]).stat()
        if stat.st_nlink == 1:  # a changed file: nobody will ask for it again, and each holds megabytes
            return read()
        known = (stat.st_ino, stat.st_mtime_ns, *key)
        if known not in self.memory:
            self.memory[known] = read()
        return self.memory[known]


@dataclass(frozen=True)
class Change:
    """One change: the file, its kind and domain, what was done, and the name in `BLIND` where no proof can see it."""

    name: str
    kind: str
    domain: str
    what: str
    blind: str | None


class Mutator:
    """Makes seeded random changes of a tree."""

    def __init__(self, tree: Tree, seed: str) -> None:
        self.tree = tree
        self.random = random.Random(seed)
        self.domain = self.random.choice(DOMAINS)
        self.subset = f"{self.domain}__{self.random.choice(LANGUAGES)}"

    def _path(self, kind: str) -> str:
        if kind == "corpus":
            return f"{self.domain}/corpus-00000-of-00001.parquet"
        if kind in {"queries", "qrels", "top_ranked"}:
            return f"{self.subset}/{kind}.parquet"
        return f"provenance/{kind}/{self.domain}.parquet"

    def _change(self, kind: str, what: str, blind: str | None, edit: Callable[[pa.Table], pa.Table]) -> Change:
        self.tree.table(self._path(kind), edit)
        return Change(self._path(kind), kind, self.domain, what, blind)

    def _rows(self, kind: str) -> int:
        return int(pq.read_metadata(self.tree.path / self._path(kind)).num_rows)

    def cell(
        self, kind: str, column: str, new: Callable[[Any], Any], *, row: int | None = None, blind: str | None = None
    ) -> Change:
        """Change one cell."""
        row = self.random.randrange(self._rows(kind)) if row is None else row

        def edit(table: pa.Table) -> pa.Table:
            changed = table.slice(row, 1).to_pylist()[0]
            changed[column] = new(changed[column])
            middle = pa.Table.from_pylist([changed], schema=table.schema)
            return pa.concat_tables([table.slice(0, row), middle, table.slice(row + 1)])

        return self._change(kind, f"{column} of row {row}", blind, edit)

    def other_id(self, kind: str, column: str) -> Change:
        """Another id of the domain in an id's place, or one that nothing has."""
        prefix = "corpus-test" if column in {"corpus-id", "corpus-ids"} or kind == "corpus" else "query-test"

        def new(old: str) -> str:
            number = int(old.rsplit("-", 1)[1])
            return f"{prefix}-{self.random.choice([number + 1, number + 10_000, 0 if number else 1])}"

        return self.cell(kind, column, new)

    def drop(self, kind: str, row: int | None = None) -> Change:
        """Leave one row out."""
        row = self.random.randrange(self._rows(kind)) if row is None else row
        return self._change(
            kind, f"without row {row}", None, lambda t: pa.concat_tables([t.slice(0, row), t.slice(row + 1)])
        )

    def repeat(self, kind: str) -> Change:
        """Put one row in twice."""
        row = self.random.randrange(self._rows(kind))
        return self._change(kind, f"row {row} twice", None, lambda t: pa.concat_tables([t, t.slice(row, 1)]))

    def nudge(self, kind: str, column: str, row: int | None = None, blind: str | None = None) -> Change:
        """Move a number by a little or by much."""
        factor = self.random.choice([1 + 1e-9, 1 - 1e-6, 1.01, -1.0, 0.5])
        return self.cell(kind, column, lambda old: old * factor + (0.1 if old == 0 else 0.0), row=row, blind=blind)

    def read(self, kind: str, *columns: str) -> pl.DataFrame:
        """Columns of a table, with the rows' numbers in `row`."""
        table = pq.read_table(self.tree.path / self._path(kind), columns=list(columns))
        return pl.DataFrame(pl.from_arrow(table)).with_row_index("row")

    def pick(self, rows: pl.DataFrame) -> int:
        """The number of one of the rows."""
        return int(rows["row"][self.random.randrange(rows.height)])

    def text(self, kind: str, column: str) -> Change:
        """A text with one character more."""
        return self.cell(kind, column, lambda old: old + self.random.choice([" ", "é", "\n", "x"]))


def _any_row(make: Mutator) -> Change:
    return make.drop(make.random.choice(["queries", "qrels", "top_ranked", "pool", "runs", "judge_criteria", "corpus"]))


def _any_repeat(make: Mutator) -> Change:
    return make.repeat(make.random.choice(sorted(READERS)))


def _any_id(make: Mutator) -> Change:
    kind, column = make.random.choice(
        [
            ("queries", "id"),
            ("corpus", "id"),
            *(
                (kind, column)
                for kind in ("qrels", "pool", "runs", "calibration")
                for column in ("query-id", "corpus-id")
            ),
        ]
    )
    return make.other_id(kind, column)


def _verdict(make: Mutator) -> Change:
    return make.cell("judge_criteria", make.random.choice(CRITERIA), lambda old: 1 - old)


def _judged_page(make: Mutator) -> Change:
    return make.other_id("judge_criteria", "corpus-id")


def _fused(make: Mutator) -> Change:
    row = make.pick(make.read("first_stage", "retriever").filter(pl.col("retriever") == FUSED))
    column = make.random.choice(["score", "corpus-id", "rank"])
    if column == "score":
        return make.nudge("first_stage", "score", row)
    new = (lambda old: f"{old}9") if column == "corpus-id" else (lambda old: old + 1)
    return make.cell("first_stage", column, new, row=row)


def _retriever(make: Mutator) -> Change:
    """A retriever's page or rank among its first hundred."""
    rows = make.read("first_stage", "retriever", "rank")
    row = make.pick(rows.filter((pl.col("retriever") != FUSED) & (pl.col("rank") <= 100)))
    what = make.random.choice(["page", "rank", "drop", "retriever"])
    if what == "drop":
        return make.drop("first_stage", row)
    column = {"page": "corpus-id", "rank": "rank", "retriever": "retriever"}[what]
    new: dict[str, Callable[[Any], Any]] = {
        "page": lambda old: f"{old}9",
        "rank": lambda old: old + 1,
        "retriever": lambda old: f"{old}2",
    }
    return make.cell("first_stage", column, new[what], row=row)


def _retriever_score(make: Mutator) -> Change:
    row = make.pick(make.read("first_stage", "retriever").filter(pl.col("retriever") != FUSED))
    return make.nudge("first_stage", "score", row, blind="retriever score")


def _pool(make: Mutator) -> Change:
    column = make.random.choice(["pool_rank", "rrf_score", "gt_injected"])
    if column == "rrf_score":
        return make.cell(
            "pool", column, lambda old: old + make.random.choice([1e-16, 1e-3]) if old > 1e-1 else old + 1e-3
        )
    return make.cell("pool", column, (lambda old: old + 1) if column == "pool_rank" else (lambda old: not old))


def _gain(make: Mutator) -> Change:
    return make.cell("qrels", "gain", lambda old: old + make.random.choice([1e-9, -1e-6, 0.01]))


def _theta(make: Mutator) -> Change:
    return make.nudge("qrels", "theta")


def _label(make: Mutator) -> Change:
    return make.cell("qrels", "score", lambda old: make.random.choice([s for s in (0, 1, 2, 3) if s != old]))


def _calibration(make: Mutator) -> Change:
    return make.nudge("calibration", make.random.choice(["ability", "tau", "alpha"]))


def _top_ranked(make: Mutator) -> Change:
    def swap(pages: list[str]) -> list[str]:
        one, other = make.random.sample(range(len(pages)), 2)
        pages[one], pages[other] = pages[other], pages[one]
        return pages

    return make.cell("top_ranked", "corpus-ids", swap)


def _run_score(make: Mutator) -> Change:
    """A run's score: seen where the order changes, by a sort of plain tuples."""
    rows = make.read("runs", "model", "query-id", "corpus-id", "score")
    row = make.pick(rows)
    model, query, score = rows.select("model", "query-id", "score").row(row)
    new = score * make.random.choice([1 + 1e-12, 1.5, -1.0]) + make.random.choice([0.0, 0.25])
    same = rows.filter((pl.col("model") == model) & (pl.col("query-id") == query)).select("row", "score", "corpus-id")
    before = sorted(same.iter_rows(), key=lambda r: (r[1], r[2]), reverse=True)
    after = sorted(same.iter_rows(), key=lambda r: (new if r[0] == row else r[1], r[2]), reverse=True)
    kept = [r[0] for r in before] == [r[0] for r in after]
    return make.cell("runs", "score", lambda _: new, row=row, blind="run score, same order" if kept else None)


def _run_place(make: Mutator) -> Change:
    column = make.random.choice(["rank_by_score", "stored_position"])
    return make.cell("runs", column, lambda old: old + make.random.choice([-1, 1, 200]))


def _positions(make: Mutator) -> Change:
    rows = make.read("runs", "model", "query-id")
    one = make.pick(rows)
    model, query = rows.select("model", "query-id").row(one)
    own = (pl.col("model") == model) & (pl.col("query-id") == query)
    other = make.pick(rows.filter(own & (pl.col("row") != one)))

    def edit(table: pa.Table) -> pa.Table:
        values = table.column("stored_position").to_pylist()
        values[one], values[other] = values[other], values[one]
        place = table.schema.get_field_index("stored_position")
        return table.set_column(place, "stored_position", pa.array(values, pa.int64()))

    return make._change("runs", f"positions of rows {one} and {other}", "two stored positions", edit)


def _window(make: Mutator) -> Change:
    """A page's verdicts counted to another window: one that does not exist, or (blind) one that does."""
    rows = make.read("judge_criteria", "query-id", "call_index", "corpus-id", "finish_reason")
    row = make.pick(rows)
    query, _, page, reason = rows.drop("row").row(row)
    own = rows.filter(pl.col("query-id") == query)
    shown = own.filter((pl.col("corpus-id") == page) | (pl.col("finish_reason") != reason))["call_index"]
    free = own.filter(~pl.col("call_index").is_in(shown.implode()))["call_index"].unique().sort().to_list()
    if make.random.random() < 0.5 and free:
        call = make.random.choice(free)
        return make.cell("judge_criteria", "call_index", lambda _: call, row=row, blind="verdicts to another window")
    return make.cell("judge_criteria", "call_index", lambda old: old + 10_000, row=row)


def _image(make: Mutator) -> Change:
    if make.random.random() < 0.5:
        return make.cell("corpus", "image", lambda old: {**old, "bytes": old["bytes"][:-1] + b"\x00"})
    return make.cell("corpus", "image", lambda old: {**old, "path": make.random.choice([None, "page.jpg"])})


def _upstream(make: Mutator) -> Change:
    """A text, an image's bytes or its path."""
    if make.random.random() < 0.5:
        return _image(make)
    return make.text(make.random.choice(["corpus", "queries"]), "text")


SORTS: dict[str, Callable[[Mutator], Change]] = {
    f.__name__.strip("_"): f
    for f in (
        _any_row,
        _any_repeat,
        _any_id,
        _verdict,
        _judged_page,
        _fused,
        _retriever,
        _retriever_score,
        _pool,
        _gain,
        _theta,
        _label,
        _calibration,
        _top_ranked,
        _run_score,
        _run_place,
        _window,
        _upstream,
    )
}


@pytest.fixture(scope="module")
def source(reference_tree: Path) -> Path:
    """The good tree of the real benchmark."""
    return reference_tree


def _seal(tree: Tree, change: Change) -> None:
    """Describe the one changed file in the manifest."""
    document = json.loads((tree.path / MANIFEST).read_bytes())
    entry = document["files"][change.name]
    document["files"][change.name] = manifest.describe_file(tree.path / change.name, change.kind, entry["configs"])
    if change.kind == "corpus":
        document["pages"][change.domain] = dict(
            read_pages([tree.path / change.name]).frame.select("id", "sha256").iter_rows()
        )
    tree.write(MANIFEST, json.dumps(document).encode())


def _seen_by(tree: Tree, change: Change) -> list[str]:
    """The proofs that fail, of those that read the file."""
    names = READERS[change.kind]
    joined = {"queries", "corpus", "pool"}
    # What joins nothing but these needs no other table looked at again; all look at these.
    near = frozenset(READERS if change.kind in joined else {change.kind, *joined})
    failed = []
    for only, kinds, wanted in (
        (change.domain, near, {"S1", "S2", "J1"}),
        (change.domain, frozenset(READERS), set(names) - {"S1", "S2", "J1", "L1", "G2"}),
        (None, frozenset(READERS), {"L1", "G2"}),
    ):
        chosen = [name for name in names if name in wanted]
        if chosen:
            facts = Remembering(tree, only, kinds)
            failed += validate(facts, chosen, clock=time.perf_counter, say=lambda _: None).named("failed")
    return failed


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """What was remembered goes with the module."""
    yield
    Remembering.memory.clear()


@pytest.mark.parametrize("sort", SORTS)
def test_random_changes_are_seen_unless_no_proof_can(sort: str, source: Path, reference: Path, tmp_path: Path) -> None:
    """Twelve seeded changes of a sort: a proof that reads the file fails, exactly where the change is not blind."""
    wrong = []
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        copy_tree(source, folder)
        tree = Tree.of(folder, reference / "benchmark.toml")
        change = SORTS[sort](Mutator(tree, f"{SEED}/{sort}/{number}"))
        if change.kind != "corpus":  # a corpus with a repeated id has no pages to describe
            _seal(tree, change)
        assert change.blind is None or change.blind in BLIND
        seen = _seen_by(tree, change)
        if bool(seen) == (change.blind is not None):
            wrong.append((change, seen))
    assert [] == wrong


def test_the_tree_itself_fails_no_proof_that_the_changes_are_put_to(source: Path, reference: Path) -> None:
    """What the changes are seen by is silent on the good tree."""
    tree = Tree.of(source, reference / "benchmark.toml")
    for kind in READERS:
        assert [] == _seen_by(tree, Change("", kind, DOMAINS[0], "nothing", None))
    assert {} == tree.failing()


def test_more_blind_spots_are_what_they_are_said_to_be(source: Path, reference: Path, tmp_path: Path) -> None:
    """Two stored positions of a list, and tournament windows moved between reasons, are seen by no proof."""
    copy_tree(source, tmp_path / "a")
    tree = Tree.of(tmp_path / "a", reference / "benchmark.toml")
    change = _positions(Mutator(tree, f"{SEED}/positions"))
    assert [] == _seen_by(tree, change)

    def move(document: dict[str, Any]) -> None:
        outcomes = document["domains"]["sysadmin_en"]["tournament"]["random"]
        outcomes["fitted"] -= 1
        outcomes["schema"] += 1

    tree.json("provenance/windows.simulated.json", move)
    assert {} == tree.failing("S1", "L1")
