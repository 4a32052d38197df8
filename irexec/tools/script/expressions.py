"""Expressions of a script: calls, whose leaves may differ between two that are otherwise the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from irexec.ir.graph import Node, Value


@dataclass(frozen=True)
class Text:
    """A string."""

    text: str


@dataclass(frozen=True)
class Source:
    """Any other literal, as it is written."""

    source: str


@dataclass(frozen=True)
class TensorNames:
    """Tensor names, an argument that is left out where there are none."""

    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ref:
    """A tensor."""

    value: Value


Leaf: TypeAlias = "Text | Source | TensorNames | Ref"
Expression: TypeAlias = "Leaf | Call | Many"


@dataclass(frozen=True, eq=False)
class Many:
    """A list."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, eq=False)
class Statement:
    """A layer: the call that makes it, and the tensor names of its outputs but the first.

    Attributes:
        node: the layer.
        call: the call, constants that only this layer reads included.
        more: the tensor names of the outputs after the first.
        is_tuple: whether the call returns a tuple.
    """

    node: Node
    call: Call
    more: tuple[TensorNames, ...] = ()
    is_tuple: bool = False


def leaves(expression: Expression) -> Iterator[Leaf]:
    """The leaves of an expression, in the order in which they are written."""
    if isinstance(expression, Call):
        for part in (*expression.arguments, *(value for _, value in expression.keywords)):
            yield from leaves(part)
    elif isinstance(expression, Many):
        for part in expression.items:
            yield from leaves(part)
    else:
        yield expression


def shape_of(expression: Expression) -> Hashable:
    """A key that two expressions have in common if they differ in nothing but their leaves."""
    if isinstance(expression, Call):
        return (
            expression.function,
            tuple(map(shape_of, expression.arguments)),
            tuple((name, shape_of(value)) for name, value in expression.keywords),
        )
    if isinstance(expression, Many):
        return tuple(map(shape_of, expression.items))
    return type(expression).__name__


def written(expression: Expression, texts: Mapping[int, str], refs: Mapping[Value, str]) -> str:
    """The source of an expression.

    Args:
        expression: the expression.
        texts: the sources of leaves that are parameters, by the ids of the leaves.
        refs: the variables of tensors.
    """
    if id(expression) in texts:
        return texts[id(expression)]
    if isinstance(expression, Call):
        parts = [written(part, texts, refs) for part in expression.arguments]
        for name, value in expression.keywords:
            if not isinstance(value, TensorNames) or value.names or id(value) in texts:
                parts.append(f"{name}={written(value, texts, refs)}")
        return f"{expression.function}({', '.join(parts)})"
    if isinstance(expression, Many):
        return f"[{', '.join(written(item, texts, refs) for item in expression.items)}]"
    if isinstance(expression, Ref):
        return refs[expression.value]
    return literal(expression)


def literal(leaf: Leaf) -> str:
    """The source of a leaf that is not a tensor."""
    if isinstance(leaf, Text):
        return quoted(leaf.text)
    if isinstance(leaf, TensorNames):
        return f"[{', '.join(map(quoted, leaf.names))}]"
    assert isinstance(leaf, Source)
    return leaf.source


def quoted(text: str) -> str:
    """A string as source, in double quotes where it has none; characters that cannot be seen are escaped."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain
