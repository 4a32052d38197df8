"""Constants and weights of few bits in forms that a release reads and multiplies right.

Source: the releases 2022.3.2, 2023.1.0, 2023.2.0, 2023.3.0, 2024.0.0, 2024.2.0 and 2024.6.0 themselves
(tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.analysis.portability.plugins import HALVES_IN_ORDER
from irexec.analysis.portability.releases import ELEMENTS, NOT_ASKED
from irexec.authoring.downgrade.layer import ONE, Layer, Rewrite, respells
from irexec.authoring.tensor import constant
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node


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
