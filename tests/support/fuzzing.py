"""What the properties in `tests/fuzz` share: how long they run, what they demand of a reader, hostile values.

CI runs few examples, always the same. `scripts/fuzz` sets `FUZZ_EXAMPLES`, and each run draws others.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from provenance.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

FOLDER = Path(__file__).resolve().parents[2] / ".fuzz"
LONG = int(os.environ.get("FUZZ_EXAMPLES", "0"))
_SECONDS = 60
"""After so long an example of a long run counts as one that never ends."""

examples = 0


def short(examples: int) -> settings:
    """Settings of a property: so many examples in CI; in a long run `FUZZ_EXAMPLES` for each hundred of them."""
    return settings(
        max_examples=max(1, LONG * examples // 100) if LONG else examples,
        derandomize=not LONG,
        database=DirectoryBasedExampleDatabase(FOLDER / "examples") if LONG else None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


class HangError(Exception):
    """A reader did not come to an end."""


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """In a long run, an error in place of a hang."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"no end after {_SECONDS} s")

    if not LONG:
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(reader: Callable[[Path], Any], content: bytes, name: str) -> Any:
    """What a reader gives for a file of this content, or the error of our tree that it raises.

    Anything else that it raises is a fault, and so is a message without the file's name, or a file that is left
    behind. In a long run the input of a fault is kept: the last one that hypothesis tries is the smallest.
    """
    global examples  # noqa: PLW0603 - the count that a long run prints
    examples += 1
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            with _bounded():
                found = outcome(reader, path)
            assert [path] == list(Path(folder).iterdir()), "a file was left behind"
        except BaseException:
            if LONG:
                kept = FOLDER / "faults" / name
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
            raise
    return found


def outcome(reader: Callable[[Path], Any], path: Path) -> Any:
    """What a reader gives for a file, or the error of our tree that it raises; its message must name the file."""
    try:
        return reader(path)
    except ReleaseError as error:
        refused = error
    assert path.name in str(refused) or path.parent.name in str(refused), f"the message lacks the file: {refused}"
    # A terminal must be able to show it.
    str(refused).encode("utf-8")
    return refused


HOSTILE_JSON = (
    "NaN",
    "-Infinity",
    "1e999",
    "1" * 400,
    "1" * 5000,
    "9223372036854775808",
    "-1",
    "0",
    "1.0",
    "1.5",
    "1e0",
    "true",
    "null",
    "[]",
    "{}",
    "[null]",
    '[{"a": 1}]',
    '""',
    '"x"',
    '"../x"',
    '"/x"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\u0661"',
    '"2026-02-30"',
    '"' + "a" * 64 + '"',
    '"' + "x" * 3000 + '"',
    "[" * 150 + "]" * 150,
    "[" * 5000,
    '{"a":' * 3000,
    '{"a": 1, "a": 2}',
)
"""Values, as text, that take the place of a right one."""

_HOLE = "\u0001hole\u0001"


@st.composite
def mutated_json(draw: st.DrawFn, document: Any) -> bytes:
    """A JSON document with one to three values replaced, keys taken out, put in or repeated."""
    text = document
    for _ in range(draw(st.integers(1, 3))):
        copy = json.loads(text) if isinstance(text, str) else json.loads(json.dumps(text))
        holder, key = _place(draw, copy)
        kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "move"]))
        if holder is None:
            return draw(st.sampled_from(HOSTILE_JSON)).encode()
        value = holder[key]
        if kind == "remove":
            del holder[key]
        elif kind == "move" and isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "x", "../x", "\u0661", "__proto__", "a" * 300]))] = value
            del holder[key]
        elif kind == "add" and isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "more", "tag", "format"]))] = value
        else:
            holder[key] = _HOLE
        hostile = draw(st.sampled_from(HOSTILE_JSON))
        body = json.dumps(copy, ensure_ascii=False).replace(json.dumps(_HOLE, ensure_ascii=True), hostile)
        body = body.replace(json.dumps(_HOLE, ensure_ascii=False), hostile)
        try:
            text = json.dumps(json.loads(body))
        except (ValueError, RecursionError):
            return body.encode("utf-8", "surrogatepass")
    return body.encode("utf-8", "surrogatepass")


def _place(draw: st.DrawFn, node: Any) -> tuple[Any, Any]:
    """A random place in a document: what holds it, and its key there."""
    holder: Any = None
    key: Any = None
    while isinstance(node, dict | list) and node and (holder is None or draw(st.integers(0, 4))):
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        holder, key = node, draw(st.sampled_from(keys))
        node = node[key]
    return holder, key


@st.composite
def mutated_bytes(draw: st.DrawFn, content: bytes, tokens: tuple[bytes, ...] = ()) -> bytes:
    """Bytes that were right: cut, flipped, taken out, doubled, or with something put in between."""
    pieces = st.one_of(st.binary(max_size=6), st.sampled_from((*_BYTES, *tokens)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.sampled_from([0, 1, 1, 2, 4, 8, 30])))
        kind = draw(st.sampled_from(["cut", "flip", "take out", "double", "put in", "replace"]))
        if kind == "cut":
            content = content[:at]
        elif kind == "flip" and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
        elif kind == "take out":
            content = content[:at] + content[end:]
        elif kind == "double":
            content = content[:end] + content[at:end] + content[end:]
        else:
            content = content[:at] + draw(pieces) + content[end if kind == "replace" else at :]
    return content


_BYTES = (
    b"\0",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u0661\u2028\u00a0".encode(),
    b"\x1b[2J",
    b'"',
    b"\\",
    b"{" * 3000,
    b"[" * 3000,
    b"1" * 5000,
    b"nan",
    b"inf",
    b"1e999",
    b"true",
)


@st.composite
def mutated_lines(draw: st.DrawFn, text: str, separator: str, values: tuple[str, ...], lines: tuple[str, ...]) -> bytes:
    """A text of lines `key <separator> value`: values replaced, lines taken out, doubled, moved or put in."""
    found = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(found) - 1))
        kind = draw(st.sampled_from(["value", "value", "value", "remove", "double", "move", "line"]))
        key, sign, _ = found[at].partition(separator)
        if kind == "value" and sign:
            found[at] = key + separator + draw(st.sampled_from(values))
        elif kind == "remove":
            del found[at]
        elif kind == "double":
            found.insert(at, found[at])
        elif kind == "move":
            found.insert(draw(st.integers(0, len(found) - 1)), found.pop(at))
        else:
            found.insert(at, draw(st.sampled_from(lines)))
        found = found or [""]
    return "\n".join(found).encode("utf-8", "surrogatepass")
