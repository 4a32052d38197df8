"""Rounding to bytes, as the layers of IR that QuantizeLinear and the products of bytes are."""

from __future__ import annotations

from converters.ir_to_onnx.recognition import producer
from irexec.dtypes.elements import I8, Element
from irexec.ir.graph import Node, Value


def rounded_levels(convert: Node, kind: Element | None) -> tuple[Node, Value | None] | None:
    """The Divide of Convert(Clamp(Round(x / scale) + zero point)), and the zero point; None of other layers."""
    clamp = producer(convert, 0, "Clamp")
    limits = None if clamp is None else (float(clamp.attributes["min"]), float(clamp.attributes["max"]))
    if limits != ((-128.0, 127.0) if kind is I8 else (0.0, 255.0)):
        return None
    add = producer(clamp, 0, "Add")
    rounded = producer(clamp if add is None else add, 0, "Round")
    divide = producer(rounded, 0, "Divide")
    if rounded is None or divide is None or rounded.attributes.get("mode", "half_to_even").lower() != "half_to_even":
        return None
    return divide, None if add is None else add.inputs[1]
