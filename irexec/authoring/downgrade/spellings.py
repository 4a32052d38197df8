"""Layers that a release has, written so that its reader and its CPU plugin take them.

Each of these forms means the same, and older releases refuse or crash on one of them. Source: the releases 2021.4.2,
2022.3.2 and 2023.3.0 themselves (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.analysis.portability.releases import Release
from irexec.authoring.downgrade.layer import ONE, Layer, respells
from irexec.authoring.downgrade.normalization import attention
from irexec.authoring.ends import constant

_EVERY = Release(2024, 0)
"""The first release that has not been asked."""

_PDPD = (
    "Add", "Subtract", "Multiply", "Divide", "Power", "Mod", "FloorMod", "Maximum", "Minimum", "SquaredDifference",
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Xor",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip


@respells(_EVERY, *_PDPD)
def _aligned_at_the_start(layer: Layer) -> Any:
    """With axes of size 1 at its end, the second input is aligned from the first axis on."""
    if layer["auto_broadcast"] != "pdpd":
        return None
    a, b = layer.inputs
    missing = layer.rank(0) - layer.rank(1)
    if missing < 0:
        return None
    if missing and layer.rank(1):
        b = ONE.unsqueeze(b, list(range(layer.rank(1), layer.rank(0))))
    return layer.same(layer.since, a, b, auto_broadcast="numpy")


_ACTIVATIONS = {"LSTMCell": ("sigmoid", "tanh", "tanh"), "GRUCell": ("sigmoid", "tanh"), "RNNCell": ("tanh",)}
_GATES = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}


@respells(_EVERY, *_ACTIVATIONS)
def _cell(layer: Layer) -> Any:
    """The reader has no default for activations, and none for the biases."""
    type = layer.definition.type
    bias = 5 if type == "LSTMCell" else 4
    is_complete = len(layer.inputs) > bias
    if layer["activations"] and is_complete:
        return None
    inputs = list(layer.inputs)
    if not is_complete:
        gates = _GATES[type] + int(type == "GRUCell" and layer["linear_before_reset"])
        inputs.append(constant(np.zeros(gates * layer["hidden_size"]), layer.element()))
    names = layer["activations"] or _ACTIVATIONS[type]
    return layer.same(layer.since, *inputs, activations=names)


@respells(_EVERY, "CumSum")
def _cum_sum(layer: Layer) -> Any:
    """The reader needs the axis."""
    return layer.same(3, *layer.inputs, constant(0, "i64")) if len(layer.inputs) == 1 else None


@respells(_EVERY, "DetectionOutput")
def _detection_output(layer: Layer) -> Any:
    """The reader takes the whole name of a code_type alone."""
    kind, prefix = layer["code_type"], "caffe.PriorBoxParameter."
    return None if kind.startswith(prefix) else layer.same(layer.since, code_type=prefix + kind)


@respells(_EVERY, "MatrixNms", "MulticlassNms")
def _sorted_by_class(layer: Layer) -> Any:
    """The order by class is called classid."""
    if layer["sort_result_type"] != "class":
        return None
    return layer.same(layer.since, sort_result_type="classid")


@respells(_EVERY, "Interpolate")
def _axes_from_the_front(layer: Layer) -> Any:
    """Shape inference takes no axes that are counted from the end."""
    index = {4: 3, 11: 2}.get(layer.since)
    if index is None or len(layer.inputs) <= index or not layer.is_known(index):
        return None
    axes = layer.ints(index, "axes")
    if min(axes, default=0) >= 0:
        return None
    front = constant([axis % layer.rank() for axis in axes], "i64")
    return layer.same(layer.since, *layer.inputs[:index], front)


@respells(_EVERY, "AdaptiveMaxPool")
def _indices_of_32_bits(layer: Layer) -> Any:
    """The plugin gives indices of i32."""
    if layer["index_element_type"] != "i64":
        return None
    values, indices = layer.same(8, index_element_type="i32")
    return values, ONE.convert(indices, destination_type="i64")


@respells(_EVERY, "ScaledDotProductAttention")
def _attention(layer: Layer) -> Any:
    """The plugin of 2023.3 refuses boolean masks, and gives NaN for some others."""
    return attention(layer)


@respells(Release(2022, 1), "Interpolate")
def _last_axes(layer: Layer) -> Any:
    """The plugin resizes no axis of the first two: they are moved to the end."""
    index = {4: 3, 11: 2}.get(layer.since)
    if index is None or len(layer.inputs) <= index or not layer.is_known(index):
        return None
    rank, axes = layer.rank(), [layer.axis(axis) for axis in layer.ints(index, "axes")]
    if min(axes) > 1 or len(axes) > rank - 2 or any(layer["pads_begin"]) or any(layer["pads_end"]):
        return None
    order = [axis for axis in range(rank) if axis not in axes] + axes
    moved = ONE.transpose(layer.inputs[0], order)
    last = constant(range(rank - len(axes), rank), "i64")
    return ONE.transpose(layer.same(layer.since, moved, *layer.inputs[1:index], last), np.argsort(order).tolist())


@respells(_EVERY, "HardSigmoid")
def _hard_sigmoid(layer: Layer) -> Any:
    """The plugin takes constants for alpha and beta."""
    if layer.is_known(1) and layer.is_known(2):
        return None
    x, alpha, beta = layer.inputs
    line = ONE.add(ONE.multiply(x, alpha), beta)
    return ONE.minimum(ONE.maximum(line, layer.number(0)), layer.number(1))


@respells(_EVERY, "Selu")
def _selu(layer: Layer) -> Any:
    """The plugin takes constants for alpha and lambda."""
    if layer.is_known(1) and layer.is_known(2):
        return None
    x, alpha, scale = layer.inputs
    low = ONE.subtract(ONE.exp(ONE.minimum(x, layer.number(0))), layer.number(1))
    return ONE.multiply(scale, ONE.add(ONE.relu(x), ONE.multiply(alpha, low)))


@respells(Release(2022, 1), "ConvertLike")
def _convert_like(layer: Layer) -> Any:
    """The plugin has no ConvertLike."""
    return ONE.convert(layer.inputs[0], destination_type=layer.element(1))


@respells(Release(2022, 1), "Xor")
def _xor(layer: Layer) -> Any:
    """The plugin has LogicalXor alone, which is the same."""
    return ONE.logical_xor(*layer.inputs, auto_broadcast=layer["auto_broadcast"])


@respells(Release(2022, 1), "Reverse")
def _reverse(layer: Layer) -> Any:
    """The plugin takes neither masks nor axes that are counted from the end."""
    if not layer.is_known(1):
        return None
    given = layer.ints(1, "axes")
    masked = [axis for axis, on in enumerate(given) if on]
    axes = masked if layer["mode"] == "mask" else sorted({axis % layer.rank() for axis in given})
    if not axes:
        return layer.inputs[0]
    return None if axes == given else ONE.reverse(layer.inputs[0], axes, mode="index")
