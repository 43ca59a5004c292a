"""YAML as `datasets` reads it (safe, YAML 1.1), without what makes a reader guess, fail or never end."""

from __future__ import annotations

from typing import Any

import yaml

_MOST_VALUES = 100_000
"""As many values as anchors may unfold to; a card of ViDoRe v3 has some 2,000."""


def parse(text: str) -> Any:
    """The value of a YAML text; None where there is none.

    Raises:
        ValueError: it is no YAML, a key stands twice in a mapping, a value is none of its type (a 13th month), it nests
            too deeply, or its anchors unfold without bound.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return _construct(loader, node)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _construct(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # The constructors raise what they meet where a value is none of its type.
        raise ValueError(f"a value is none of its type ({type(error).__name__}: {error})") from error


def _measure(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a node unfolds to; `sizes` has the nodes that were measured."""
    if id(node) in sizes:
        if not sizes[id(node)]:
            raise ValueError("an anchor lies inside itself")
        return sizes[id(node)]
    sizes[id(node)] = 0
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        _refuse_repeats(node)
        children = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        children = node.value
    size = 1 + sum(_measure(child, sizes) for child in children)
    if size > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES:,} values")
    sizes[id(node)] = size
    return size


def _refuse_repeats(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                raise ValueError(f"line {key.start_mark.line + 1}: duplicated mapping key {key.value[:60]!r}")
            seen.add((key.tag, key.value))
