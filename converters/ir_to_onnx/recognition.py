"""Layers of IR that together are one operator of ONNX: ``@recognises("Multiply")`` for the type of the last of them.

A recogniser takes the context, whose ``node`` is the last layer, and returns the Tensor of its output, or None. The
layers before it are written as well; nodes that nothing reads are left out in the end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.tensors import Tensor
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value

Recogniser = Callable[[ExportContext], Tensor | None]
_RECOGNISERS: dict[str, list[Recogniser]] = {}


def recognises(*types: str) -> Callable[[Recogniser], Recogniser]:
    """Decorator: the function is asked for every layer of these types."""

    def register(function: Recogniser) -> Recogniser:
        for type in types:
            _RECOGNISERS.setdefault(type, []).append(function)
        return function

    return register


def recognised(ctx: ExportContext) -> Tensor | None:
    """The output of the layer as that of an operator that several layers are; None if they are none."""
    for recogniser in _RECOGNISERS.get(ctx.node.type, ()):
        found = recogniser(ctx)
        if found is not None:
            return found
    return None


def constant_of(value: Value | None) -> np.ndarray | None:
    """The elements of a constant, also of one that is converted; None of another value."""
    node = None if value is None else value.node
    if node is not None and node.type == "Convert" and node.inputs[0] is not None:
        node = node.inputs[0].node
    return None if node is None or node.constant is None else constant_value(node.constant)


def producer(node: Node | None, index: int, type: str) -> Node | None:
    """The layer of that type that produces an input of a layer; None if another does."""
    return producer_of(None if node is None or index >= len(node.inputs) else node.inputs[index], type)


def producer_of(value: Value | None, type: str) -> Node | None:
    """The layer of that type that produces a value; None if another does."""
    return value.node if value is not None and value.node.type == type else None


def has_flag(node: Node, attribute: str) -> bool:
    """Whether a boolean attribute is given and true."""
    return node.attributes.get(attribute, "").lower() in ("true", "1")
