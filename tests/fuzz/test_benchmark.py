"""The benchmark file (TOML)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support import tiny
from support.fuzz_readers import benchmark
from support.fuzzing import mutated_bytes, mutated_lines, read, short

from builder.benchmark import Benchmark
from provenance.errors import BenchmarkError

VALUES = (
    "true",
    "6.0",
    "-1",
    "0",
    "nan",
    "inf",
    "1" * 400,
    "1" * 5000,
    "9223372036854775808",
    "1979-05-27",
    "07:32:00",
    '""',
    '"\\u0000"',
    '"../../x"',
    '"' + "x" * 3000 + '"',
    '"\u0661\u202e"',
    '"a\\nb"',
    "[]",
    "{}",
    "[1, 'a']",
    "[[[[]]]]",
    "[" * 3000,
    "{ a = 1, a = 2 }",
    '["one", "one"]',
)
LINES = (
    "[card]",
    "[[domains]]",
    "[domains]",
    "more = 1",
    "a" + ".a" * 3000 + " = 1",
    "[domains.paper]",
    "\ufeff",
    "= 1",
)


@short(250)
@given(
    st.one_of(
        mutated_lines(tiny.BENCHMARK, " = ", VALUES, LINES),
        mutated_bytes(tiny.BENCHMARK.encode()),
        st.binary(max_size=60),
    )
)
def test_any_file_is_a_benchmark_or_refused(content: bytes) -> None:
    """Values of another type, keys missing or doubled, any bytes: a checked benchmark, or a BenchmarkError."""
    assert isinstance(read(benchmark, content, "some.toml"), Benchmark | BenchmarkError)
