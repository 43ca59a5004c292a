"""The front matter of cards (YAML), and the patterns in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.fuzz_readers import card
from support.fuzzing import mutated_bytes, mutated_lines, read, short

CARD = """---
license: cc-by-4.0
configs:
- config_name: english-corpus
  data_files:
  - split: test
    path: test/*
- config_name: english-qrels
  data_files:
  - split: test
    path:
    - test/a.parquet
    - test/*
  - split: dev
    path: test/a*
---

# A dataset
"""
VALUES = (
    "2020-13-45",
    "!!timestamp x",
    "!!bool x",
    '!!int ""',
    "!!python/object/apply:os.system [ls]",
    "0b_",
    "1" * 5000,
    "1:" * 300 + "1",
    ".nan",
    "no",
    "~",
    "[]",
    "{}",
    "[{}]",
    "[" * 3000,
    "&a [*a, *a]",
    "&a [1, 2]",
    "*a",
    "/etc/*",
    "../*",
    "'**/**/**/**/*'",
    "'**x'",
    ".",
    "./.",
    "''",
    "'[!'",
    '"\\0"',
    '"\\uD800"',
    "'" + "x" * 3000 + "'",
    "{a: 1, a: 2}",
)
LINES = (
    "---",
    "configs:",
    "- config_name: english-corpus",
    "  <<: *a",
    "? [a, b]",
    "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]",
    "\t- x",
    "%YAML 9.9",
    "...",
    "\x07",
)


@short(300)
@given(st.one_of(mutated_lines(CARD, ": ", VALUES, LINES), mutated_bytes(CARD.encode()), st.binary(max_size=40)))
def test_any_card_has_configs_or_is_refused(content: bytes) -> None:
    """Tags, anchors, dates, doubled keys, any bytes: configs whose files lie in the folder, or an error."""
    read(card, content, "README.md")
