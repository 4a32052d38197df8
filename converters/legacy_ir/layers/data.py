"""Inputs, constants and conversions."""

from __future__ import annotations

from converters.legacy_ir.layer import Layer, computed
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F16, F32
from irexec.errors import check
from irexec.io.names import named_element
from irexec.ir.graph import Value


@translates("Input")
def input(layer: Layer) -> Value:
    """An input of f16 takes f32, as from the engines' callers."""
    return layer.builder.parameter(layer.element() or F32, layer.size(), layer.name)


@translates("Const")
def const(layer: Layer) -> Value:
    """The blob ``custom`` in the type and sizes of the output port."""
    fact = layer.node.outputs[0].fact if layer.node.outputs else None
    value = layer.raw_blob("custom", layer.size(), None if fact is None else fact.element)
    return layer.f32(value) if layer.kind(value) is F16 else value


@translates("Convert")
def convert(layer: Layer, data: Value, *, precision: str = "") -> Value:
    """Floats are truncated towards 0; the type is that of the output port, else ``precision``."""
    element = layer.element() or computed(named_element(precision))
    check(element is not None, f"precision {precision!r} is not an element type")
    return layer.emit("Convert", data, destination_type=element)
