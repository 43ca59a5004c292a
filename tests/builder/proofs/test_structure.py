"""M1 and S1: what a changed byte, a lost file, a wrong type or a value that is none gets."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.proving import Tree

QRELS = "paper__english/qrels.parquet"
CRITERIA = "provenance/judge_criteria/paper.parquet"
CORPUS = "paper/corpus-00000-of-00001.parquet"
WINDOWS = "provenance/windows.toy.json"
MANIFEST = "provenance/manifest.json"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n"


def test_a_good_tree_passes_every_proof_and_says_what_was_covered(tree: Tree) -> None:
    """Each proof passes with something covered; N1 has nothing to compare and is not called passed."""
    result = tree.validate()
    assert {"passed": 15, "failed": 0, "not provable": 1} == {
        status: len(result.named(status)) for status in ("passed", "failed", "not provable")
    }
    assert ["N1"] == result.named("not provable")
    assert all(o.coverage.rows + o.coverage.files + o.coverage.queries > 0 for o in result.outcomes)


def test_one_flipped_byte_fails_m1_alone(tree: Tree) -> None:
    """A byte changed in the card's body, size kept, is seen by its digest and by no other proof."""
    content = bytearray((tree.path / "README.md").read_bytes())
    content[-2] ^= 1
    tree.write("README.md", bytes(content))
    assert [("M1", "sha256", "README.md")] == [(p, f[0], f[1]) for p, fs in tree.failing().items() for f in fs]


def test_a_file_beside_the_manifest_fails_m1(tree: Tree) -> None:
    """A file that is not listed is named; `.git` and `.cache` at the top are no part of a tree."""
    tree.write("paper/notes.txt", b"mine")
    tree.write(".git/HEAD", b"ref: refs/heads/main\n")
    tree.write(".cache/huggingface/x.lock", b"")
    assert {"M1": [("unlisted", "paper/notes.txt", None, None, None)]} == tree.failing()


def test_a_listed_file_that_is_gone_fails_m1(tree: Tree) -> None:
    """A listed file that is not there is named."""
    (tree.path / ".gitattributes").unlink()
    assert {"M1": [("missing", ".gitattributes", None, None, None)]} == tree.failing()


@pytest.mark.parametrize(("key", "value"), [("rows", 99), ("content_sha256", "0" * 64), ("bytes", 1)])
def test_a_wrong_entry_of_the_manifest_fails_m1(tree: Tree, key: str, value: object) -> None:
    """Rows (also where the file was cut or repeated elsewhere), digests and sizes are computed again."""
    tree.json(MANIFEST, lambda m: m["files"][CRITERIA].__setitem__(key, value))
    assert {"M1": [(key, CRITERIA)]} == {p: [f[:2] for f in fs] for p, fs in tree.failing().items()}


def test_a_page_digest_that_differs_fails_m1(tree: Tree) -> None:
    """Each page's image is hashed and compared with the manifest."""
    tree.json(MANIFEST, lambda m: m["pages"]["paper"].__setitem__("corpus-test-3", "0" * 64))
    found = tree.failing()
    assert {"M1": [("pages", CORPUS, None, "image")]} == {p: [f[:4] for f in fs] for p, fs in found.items()}


def test_rows_lost_from_a_table_fail_m1_by_rows_and_digest(tree: Tree) -> None:
    """Rows that vanish while the manifest keeps the old count are seen from the file's own footer."""
    tree.rows("provenance/runs/paper.parquet", lambda rows: rows.pop())
    rules = {failure[0] for failure in tree.failing("M1")["M1"]}
    assert {"rows", "content_sha256", "sha256"} <= rules


@pytest.mark.parametrize(
    ("column", "value", "rule", "shown"),
    [
        ("gain", math.nan, "finite", "nan"),
        ("gain", math.inf, "finite", "inf"),
        ("theta", -math.inf, "finite", "-inf"),
        ("gain", None, "type", "None"),
        ("gain", 1.0, "exclusiveMaximum", "1.0"),
        ("gain", -0.25, "exclusiveMinimum", "-0.25"),
        ("score", None, "type", "None"),
        ("score", -1, "minimum", "-1"),
    ],
)
def test_a_value_that_is_none_fails_s1_in_its_cell(
    tree: Tree, column: str, value: object, rule: str, shown: str
) -> None:
    """NaN, infinities, nulls and numbers out of bounds are named with file, row, column and value."""
    tree.cell(QRELS, 5, column, value)
    tree.seal()
    found = tree.failing()["S1"]
    assert (rule, QRELS, 5, column, shown) in found
    assert {5} == {place[2] for place in found}


@pytest.mark.parametrize(
    ("column", "kind"),
    [("gain", pa.float32()), ("score", pa.int32()), ("query-id", pa.large_string()), ("score", pa.uint32())],
)
def test_a_column_of_another_type_in_one_subset_fails_s1(tree: Tree, column: str, kind: pa.DataType) -> None:
    """All subsets have one schema: float32, int32, unsigned and large strings in one of them are named."""

    def retype(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        return table.set_column(place, column, table.column(column).cast(kind))

    tree.table(QRELS, retype)
    tree.seal()
    assert {"S1": [("columns", QRELS, None, column, str(kind))]} == tree.failing()


@pytest.mark.parametrize(
    ("edit", "column", "shown"),
    [
        (lambda table: table.drop_columns(["theta"]), "theta", "missing"),
        (lambda table: table.append_column("extra", pa.nulls(table.num_rows, pa.string())), "extra", "string"),
        (lambda table: table.select(["corpus-id", "query-id", "score", "gain", "theta"]), None, None),
    ],
)
def test_columns_that_are_not_the_schemas_fail_s1(
    tree: Tree, edit: Callable[[pa.Table], pa.Table], column: str | None, shown: str | None
) -> None:
    """A missing column, one too many, and another order are named in the file that has them."""
    tree.table(QRELS, edit)
    found = [place for place in tree.failing("S1")["S1"] if place[0] == "columns"]
    assert [(QRELS, column)] == [(place[1], place[3]) for place in found]
    assert shown in (None, found[0][4])


def test_hub_metadata_on_a_table_fails_s1(tree: Tree) -> None:
    """Feature metadata on anything but a corpus fails: older readers do not know the List feature."""
    metadata = {b"huggingface": b'{"info": {"features": {}}}'}
    tree.table("paper__english/top_ranked.parquet", lambda table: table.replace_schema_metadata(metadata))
    tree.seal()
    place = ("metadata", "paper__english/top_ranked.parquet", None, None, "huggingface")
    assert {"S1": [place]} == tree.failing()


def test_a_corpus_without_its_metadata_fails_s1(tree: Tree) -> None:
    """Without the Image feature the page column would load as a plain struct."""
    tree.table(CORPUS, lambda table: table.replace_schema_metadata(None))
    tree.seal()
    assert {"S1": [("metadata", CORPUS, None, None, "huggingface")]} == tree.failing()


def test_a_page_without_bytes_fails_s1(tree: Tree) -> None:
    """An image that is only a path is named; what needs its bytes is not provable."""
    tree.rows(CORPUS, lambda rows: rows[2].__setitem__("image", {"bytes": None, "path": "page-2.png"}))
    found = tree.failing("S1")
    assert {"S1": [("type", CORPUS, 2, "image.bytes", "None")]} == found


def test_a_null_text_fails_s1_and_an_empty_one_does_not(tree: Tree) -> None:
    """A page without text has the empty text, never a null."""
    tree.cell(CORPUS, 1, "text", None)
    assert {"S1": [("type", CORPUS, 1, "text", "None")]} == tree.failing("S1")


def test_an_empty_table_is_not_taken_for_a_proved_one(tree: Tree) -> None:
    """A table without rows fails S1."""
    tree.table("provenance/calibration/paper.parquet", lambda table: table.slice(0, 0))
    tree.seal()
    place = ("x-row-count", "provenance/calibration/paper.parquet", None, None, "0")
    assert [place] == tree.failing()["S1"]


@pytest.mark.parametrize(
    ("name", "content", "proof", "rule"),
    [
        (QRELS, b"", "S1", "unreadable"),
        (QRELS, POINTER, "S1", "unreadable"),
        (QRELS, b"PAR1" + b"\0" * 100 + b"PAR1", "S1", "unreadable"),
        (QRELS, b"not a parquet file at all", "S1", "unreadable"),
        (WINDOWS, b"", "S1", "unreadable"),
        (WINDOWS, b"[" * 10_000_000, "S1", "unreadable"),
        (WINDOWS, b'{"judge": "toy", "judge": "toy", "domains": {}}', "S1", "unreadable"),
        (WINDOWS, b'{"judge": "toy", "domains": {}}', "S1", "minProperties"),
        (WINDOWS, b"\xff\xfe", "S1", "unreadable"),
        ("provenance/item_params.toy.json", b'{"gamma": [NaN], "beta": [0], "num_criteria": 1}', "S1", "unreadable"),
        ("provenance/item_params.toy.json", b'{"gamma": [1e999], "beta": [0], "num_criteria": 1}', "S1", "unreadable"),
        (MANIFEST, b"{" * 10_000_000, "M1", "manifest"),
        (MANIFEST, b'{"format": 1, "format": 2}', "M1", "manifest"),
        (MANIFEST, b"[]", "M1", "manifest"),
        ("provenance/releases.json", b"[" * 10_000_000, "C2", "unreadable"),
        ("provenance/releases.json", b'{"releases": [], "releases": []}', "C2", "unreadable"),
        ("README.md", b"", "C1", "front-matter"),
        ("README.md", b"---\n" + b"[" * 3_000_000 + b"\n---\n", "C1", "front-matter"),
        ("README.md", b"---\nconfigs: &a [*a, *a]\n---\n", "C1", "front-matter"),
        ("README.md", b"---\na: " + b"x" * 5_000_000 + b"\n---\n", "C1", "card"),
        ("README.md", b"\xff\xfe\xfd", "C1", "front-matter"),
    ],
)
def test_a_malformed_file_is_one_clear_failure(tree: Tree, name: str, content: bytes, proof: str, rule: str) -> None:
    """Whatever lies in a file's place: a named failure, no traceback, no hang."""
    tree.write(name, content)
    found = tree.failing()
    assert rule in {place[0] for place in found[proof]}
    assert {"README.md", name} >= {place[1] for place in found[proof] if place[0] == rule}


def test_a_truncated_parquet_file_is_named_once(tree: Tree) -> None:
    """Every cut of a Parquet file fails S1 and M1, and nothing that would need its rows."""
    content = (tree.path / QRELS).read_bytes()
    for length in (4, 12, len(content) // 2, len(content) - 8, len(content) - 1):
        tree.write(QRELS, content[:length])
        found = tree.failing()
        assert {"M1", "S1"} == set(found)
        assert [("unreadable", QRELS, None, None, None)] == found["S1"]


def test_damage_inside_a_parquet_file_is_a_failure(tree: Tree) -> None:
    """Bytes overwritten in the data pages, footer intact, never end in a traceback."""
    content = bytearray((tree.path / QRELS).read_bytes())
    content[4:200] = b"\xa5" * 196
    tree.write(QRELS, bytes(content))
    assert {"M1", "S1"} <= set(tree.failing())


def test_a_manifest_path_that_leaves_the_tree_is_refused(tree: Tree) -> None:
    """`..` in the manifest is a failure, and the file outside is not opened."""

    def leave(document: dict[str, Any]) -> None:
        document["files"]["../escape.parquet"] = {"sha256": "0" * 64, "bytes": 1}

    tree.json(MANIFEST, leave)
    assert {"M1": [("path", MANIFEST, None, None, "../escape.parquet")]} == tree.failing()


def test_a_link_that_leaves_the_tree_is_refused(tree: Tree) -> None:
    """A symbolic link out of the tree fails M1 and C1, and what it points to is not read as part of it."""
    outside = tree.path.parent / "outside.parquet"
    (tree.path / QRELS).rename(outside)
    (tree.path / QRELS).symlink_to(outside)
    found = tree.failing()
    assert ("link", QRELS, None, None, str(outside)) in found["M1"]
    assert ("link", "README.md", None, "configs", QRELS) in found["C1"]
    assert {"M1", "C1"} == set(found)


def test_a_folder_link_that_loops_does_not_hang(tree: Tree) -> None:
    """A link to the tree itself is a file that the manifest does not list."""
    (tree.path / "again").symlink_to(tree.path)
    assert ("unlisted", "again", None, None, None) in tree.failing()["M1"]


def test_large_row_groups_are_a_warning(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group above the Hub viewer's limit warns and fails only with --strict."""
    monkeypatch.setattr("builder.proofs.structure.LARGEST_ROW_GROUP", 100)
    result = tree.validate("S1")
    assert "row-group" in {warning.rule for warning in result.outcomes[0].warnings}
    assert (True, False) == (result.holds(strict=False), result.holds(strict=True))


def test_every_failure_is_kept(tree: Tree) -> None:
    """No early stop: each wrong value of a column is in the report."""
    rows = pq.read_metadata(tree.path / QRELS).num_rows
    tree.rows(QRELS, lambda rows: [row.__setitem__("gain", math.nan) for row in rows])
    finite = [place for place in tree.failing("S1")["S1"] if place[0] == "finite"]
    assert list(range(rows)) == [place[2] for place in finite]


@pytest.mark.parametrize("seed", range(30))
def test_random_damage_is_never_a_traceback(tree: Tree, seed: int) -> None:
    """Bits flipped, bytes cut, zeroed or put in, in any file: a failure is named, or the change is in a free text.

    What no proof can see of the manifest is what it records of the build: settings and digests of inputs.
    """
    chance = random.Random(seed)
    name = chance.choice([file for file in sorted(_files(tree)) if file != MANIFEST])
    content = bytearray((tree.path / name).read_bytes())
    place = chance.randrange(len(content))
    damage = seed % 4
    if damage == 0:
        content[place] ^= 1 << chance.randrange(8)
    elif damage == 1:
        del content[place:]
    elif damage == 2:
        content[place : place + 40] = b"\0" * 40
    else:
        content[place:place] = chance.randbytes(7)
    tree.write(name, bytes(content))
    assert "M1" in tree.failing()


def _files(tree: Tree) -> list[str]:
    return [path.relative_to(tree.path).as_posix() for path in tree.path.rglob("*") if path.is_file()]
