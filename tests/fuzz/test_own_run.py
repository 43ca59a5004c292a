"""A run of one's own as text: CSV, JSON Lines, TREC, and each of them zipped."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import own_run
from support.fuzzing import HOSTILE_JSON, mutated_bytes, mutated_json, read, short

from provenance.errors import ReleaseError

RUNS = {
    "csv": b'query-id,corpus-id,score,subset\nq1,"a,b",0.5,x\nq1,c,,x\nq2,a,-1e-7,x\n',
    "jsonl": b'{"query-id": "q1", "corpus-id": "a", "score": 0.5}\n'
    b'{"query-id": "q1", "corpus-id": "b", "score": null}\n',
    "trec": b"q1 Q0 a 1 0.5 run\nq1 Q0 b 2 -3 run\n",
}
_TOKENS = (b",", b"q1,c,1,x\n", b'"', b"1_0", b"0x1p3", b" 1 ", b"+1", b"1e5", b"-0.0", b"Infinity", b"\xe2\x80\xa8")
_ROW = {"query-id": "q1", "corpus-id": "z", "score": 1.5, "subset": "x"}


@pytest.mark.parametrize("suffix", RUNS)
def test_valid_runs_are_read(suffix: str) -> None:
    """What the others mangle is good, zipped too."""
    for name, content in ((f"a.{suffix}", RUNS[suffix]), (f"a.{suffix}.gz", gzip.compress(RUNS[suffix], mtime=0))):
        assert not isinstance(read(own_run, content, name), ReleaseError)


@short(250)
@given(data=st.data(), suffix=st.sampled_from(sorted(RUNS)), zipped=st.booleans())
def test_any_text_is_a_run_or_refused(data: st.DataObject, suffix: str, *, zipped: bool) -> None:
    """Cells of another kind, rows cut or doubled, any bytes: a run of finite scores, or an error."""
    content = data.draw(st.one_of(mutated_bytes(RUNS[suffix], _TOKENS), st.binary(max_size=60)))
    read(own_run, gzip.compress(content, mtime=0) if zipped else content, f"a.{suffix}" + (".gz" if zipped else ""))


@short(60)
@given(mutated_bytes(gzip.compress(RUNS["trec"], mtime=0)))
def test_damaged_archives(content: bytes) -> None:
    """A zipped run whose archive is damaged is refused, or is what it was."""
    read(own_run, content, "a.trec.gz")


@short(100)
@given(mutated_json(_ROW))
def test_any_object_is_a_row_or_refused(row: bytes) -> None:
    """A JSON row with a value replaced, a key removed or repeated."""
    read(own_run, row + b"\n", "a.jsonl")


@short(60)
@given(st.sampled_from(HOSTILE_JSON), st.sampled_from(["1_0", "\u0661", "nan", "1e999", " 2 ", "0x1", "", "1,5"]))
def test_a_score_is_a_finite_number(value: str, text: str) -> None:
    """A row whose score is a hostile value is read as that finite number, or refused."""
    head = b'{"query-id": "q", "corpus-id": "c", "score": '
    found = read(own_run, head + value.encode() + b"}\n", "a.jsonl")
    if not isinstance(found, ReleaseError):
        assert json.loads(value) == found["score"][0]
    found = read(own_run, f"q Q0 c 1 {text} run\n".encode(), "a.trec")
    assert isinstance(found, ReleaseError) == (text != " 2 ")
