"""Element types that a release lacks or computes wrong: constants and weights of few bits, and bf16.

Layers of bf16 are computed in f32 by CPU plugins before 2023.0 on a processor without bf16, and where plugins before
2025.0 have a reference implementation alone, which does not know bf16. Source: the releases 2022.3.2 and 2023.3.0
themselves (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.analysis.portability.plugins import BF16_EVERYWHERE, BF16_NOT_COMPUTED, HALVES_IN_ORDER, is_constant
from irexec.analysis.portability.releases import ELEMENTS, NOT_ASKED
from irexec.authoring.downgrade.layer import ONE, Layer, Rewrite, respells
from irexec.authoring.tensor import constant
from irexec.dtypes.elements import BF16, F32, lowest
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node

_REDUCTIONS = tuple(f"Reduce{kind}" for kind in ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2"))
_IN_A_REFERENCE = ("BinaryConvolution", "GatherTree", "MatrixNms", "FakeConvert")
"""Operations that plugins do not compute in bf16; FakeConvert they compute, and round each step to bf16."""


@respells(HALVES_IN_ORDER, "Convert")
def _halves_of_bytes(layer: Layer) -> Any:
    """A constant of u4 or i4 is written in bytes: the release takes the upper half of a byte for the first element."""
    element = layer.element()
    if element.name not in ("u4", "i4") or layer.inputs[0].value.node.constant is None:
        return None
    whole = constant(layer.known(0, "the constant"), "u8" if element.kind == "unsigned" else "i8")
    return ONE.convert(whole, destination_type=layer["destination_type"])


def _converted(name: str) -> Rewrite:
    def rewrite(layer: Layer) -> Any:
        """A constant of a type that the release lacks is written in the type that a Convert gives."""
        if layer.element().name != name or layer.inputs[0].value.node.constant is None:
            return None
        return constant(layer.known(0, "the constant"), layer["destination_type"])

    return rewrite


for _name, _since in ELEMENTS.items():
    if _name != "string":
        respells(_since, "Convert")(_converted(_name))


@respells(NOT_ASKED, "MatMul")
def _uneven_groups(layer: Layer) -> Any:
    """Weights in groups of rows with scales of their own are computed where plugins from 2023.2 on take other scales.

    The plugins take 16 rows at a time. Where a group is not a multiple of 8 rows, or all groups are not one of 16, they
    give wrong products, or end the process.
    """
    node = layer.inputs[1].value.node
    while node.type in ("Convert", "Reshape") and node.inputs[0] is not None:
        node = node.inputs[0].node
    scales = None if node.type != "Multiply" or node.inputs[1] is None else node.inputs[1].node.constant
    weights = None if scales is None or len(scales.shape) != 3 else _computed(node)
    if scales is None or weights is None:
        return None
    rows = 2 if scales.shape[2] == 1 else 1
    if weights.shape[rows] % 8 == 0 and weights.shape[rows - 1] * weights.shape[rows] % 16 == 0:
        return None
    return layer.same(1, layer.inputs[0], constant(weights.reshape(layer.static(1)), layer.element(1)))


def _computed(node: Node) -> np.ndarray | None:
    """The values of (weights - zero points) * scales, in f32; None of other layers."""
    if node.constant is not None:
        return constant_value(node.constant).astype(np.float32)
    values = [_computed(value.node) for value in node.inputs if value is not None]
    known = [value for value in values if value is not None]
    if node.type not in ("Convert", "Subtract", "Multiply") or len(known) < len(values):
        return None
    if node.type == "Convert":
        return known[0]
    return known[0] - known[1] if node.type == "Subtract" else known[0] * known[1]


# Decorators apply from the bottom up.
@respells(NOT_ASKED, *_IN_A_REFERENCE, follows=True)
@respells(BF16_EVERYWHERE, "Convert", *sorted(BF16_NOT_COMPUTED), follows=True)
def _in_f32(layer: Layer) -> Any:
    """The results are rounded to bf16, as those of the layer are."""
    if all(tensor.element is not BF16 for tensor in layer.inputs):
        return None
    inputs = [ONE.convert(x, destination_type="f32") if x.element is BF16 else x for x in layer.inputs]
    if layer.definition.type == "Convert":
        target = layer.outputs[0].element
        return layer.same(1, *inputs) if target is not None and target.kind == "boolean" else None
    wide: dict[str, Any] = {name: F32 for name, value in layer.attributes.items() if value is BF16}
    found = layer.same(layer.since, *inputs, **wide)
    given = found if isinstance(found, tuple) else (found,)
    if _may_miss_the_data(layer):
        given = (ONE.maximum(given[0], constant(lowest(BF16), "f32")), *given[1:])
    return tuple(
        ONE.convert(x, destination_type="bf16") if x.element is not output.element else x
        for x, output in zip(given, layer.outputs, strict=True)
    )


@respells(NOT_ASKED, "FakeQuantize", "MVN", "NormalizeL2", *_REDUCTIONS, follows=True)
def _by_computed_lists(layer: Layer) -> Any:
    """With axes or ranges that are not constants the plugin takes its reference implementation."""
    return None if all(is_constant(x.value) for x in layer.inputs[1:]) else _in_f32(layer)


@respells(NOT_ASKED, "MaxPool", follows=True)
def _with_indices(layer: Layer) -> Any:
    """Indices come from the reference implementation; a window in the padding gives infinity without them."""
    return _in_f32(layer) if 1 in layer.read or _may_miss_the_data(layer) else None


def _may_miss_the_data(layer: Layer) -> bool:
    """Whether a window of a MaxPool may lie in the padding: its maximum is the lowest number of the type."""
    if layer.definition.type != "MaxPool":
        return False
    is_whole = layer["auto_pad"] != "explicit" or all(
        max(ends) < size for size, *ends in zip(layer["kernel"], layer["pads_begin"], layer["pads_end"], strict=True)
    )
    return not is_whole or layer["rounding_type"] != "floor" or set(layer.attributes.get("dilations", [1])) > {1}
