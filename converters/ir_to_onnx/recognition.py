"""Layers of IR that together are one operator of ONNX: ``@recognises("Multiply")`` for the type of the last of them.

A recogniser takes the context, whose ``node`` is the last layer, and returns the Tensor of its output, or None. The
layers before it are written as well; nodes that nothing reads are left out in the end.
"""

from __future__ import annotations

from collections.abc import Callable

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.tensors import Tensor

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
