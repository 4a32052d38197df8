"""Inputs, constants and conversions."""

from __future__ import annotations

import math

from converters.legacy_ir.layer import Layer, computed
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F16, F32, I32, I64
from irexec.errors import check
from irexec.io.names import named_element
from irexec.ir.graph import Value


@translates("Input")
def input(layer: Layer) -> Value:
    """An input of f16 takes f32, as from the engines' callers."""
    return layer.builder.parameter(layer.element() or F32, layer.size(), layer.name)


@translates("Const")
def const(layer: Layer) -> Value:
    """The blob ``custom`` in the type and sizes of the output port.

    Model Optimizer wrote some integers that it declared as I64 in 4 bytes each.
    """
    fact = layer.node.outputs[0].fact if layer.node.outputs else None
    element = None if fact is None else fact.element
    if element is I64 and layer.blob_size("custom") == 4 * math.prod(layer.size()):
        return layer.cast(layer.raw_blob("custom", layer.size(), I32), I64)
    value = layer.raw_blob("custom", layer.size(), element)
    return layer.f32(value) if layer.kind(value) is F16 else value


@translates("Convert")
def convert(layer: Layer, data: Value, *, precision: str = "") -> Value:
    """Floats are truncated towards 0; the type is that of the output port, else ``precision``."""
    element = layer.element() or computed(named_element(precision))
    check(element is not None, f"precision {precision!r} is not an element type")
    return layer.emit("Convert", data, destination_type=element)
