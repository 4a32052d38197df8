"""Weights in few bits and their ranges: overflowing scales, channels of zeros, ranges narrower than the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.dtypes.elements import F16
from irexec.errors import ModelError
from irexec.ir import codes
from irexec.ir.constants import constant_value
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node, Value

_LARGEST_F16 = np.float64(np.finfo(np.float16).max)
_CLIPPED_STEPS = 0.5
_BLOCK = 1 << 20
"""Elements that are computed at once."""


def stored_weight_findings(model: ModelGraph) -> Iterator[Finding]:
    """Findings of weights that are computed from integers, and of weights behind a FakeQuantize.

    Stored weights are a Constant, a Convert, perhaps a Subtract of a zero point, and a Multiply by a scale, as NNCF and
    OpenVINO write them.
    """
    for node in model.walk():
        if node.type == "Multiply":
            yield from _of_scale(node)
        elif node.type == "FakeQuantize":
            yield from _of_range(node)


def _of_scale(node: Node) -> Iterator[Finding]:
    """Findings of a Multiply by the scale of stored weights."""
    stored = _stored(node.inputs[0]) if len(node.inputs) > 1 else None
    scale = _array(node.inputs[1]) if stored is not None else None
    if stored is None or scale is None:
        return
    fact = node.outputs[0].fact if node.outputs else None
    beyond = dead = channels = count = 0
    for integers, zero, factor in _blocks(stored[0], stored[1], scale):
        with np.errstate(all="ignore"):
            weights = (integers - zero) * factor
        beyond += int(np.count_nonzero(np.abs(weights) > _LARGEST_F16))
        channels, count = channels + len(weights), count + weights.size
        dead += int(np.count_nonzero(~weights.reshape(len(weights), -1).any(axis=1)))
    if beyond and fact is not None and fact.element is F16:
        text = f"{beyond} of {count} weights are infinite: integers times scales are beyond f16"
        yield node.finding(codes.SCALE_OVERFLOW, text)
    if dead and stored[0].ndim > 1:
        yield node.finding(codes.DEAD_CHANNELS, f"{dead} of {channels} channels of weights are 0 throughout")


def _of_range(node: Node) -> Iterator[Finding]:
    """Findings of a FakeQuantize of constant weights."""
    levels = node.attributes.get("levels", "")
    arrays = [_array(value) for value in node.inputs[:3]]
    if len(arrays) < 3 or any(array is None for array in arrays) or not levels.isdigit() or int(levels) < 2:
        return
    clipped = count = 0
    for weights, low, high in _blocks(*arrays):
        margin = _CLIPPED_STEPS * np.abs(high - low) / (int(levels) - 1)
        outside = (weights < np.minimum(low, high) - margin) | (weights > np.maximum(low, high) + margin)
        clipped, count = clipped + int(np.count_nonzero(outside)), count + weights.size
    if clipped:
        text = f"{clipped} of {count} weights are outside of the range by more than half a step"
        yield node.finding(codes.CLIPPED_WEIGHTS, text)


def _blocks(weights: np.ndarray | None, *others: np.ndarray | None) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows of weights as f64, and what is broadcast to them; none where the shapes do not go together, which is a
    finding of the shapes."""
    assert weights is not None
    arrays = [np.zeros(()) if array is None else array for array in others]
    if not weights.ndim or any(not _is_broadcast(array.shape, weights.shape) for array in arrays):
        return
    rows = max(1, _BLOCK * len(weights) // max(weights.size, 1))
    for first in range(0, len(weights), rows):
        part = slice(first, first + rows)
        with_rows = [array.ndim == weights.ndim and len(array) > 1 for array in arrays]
        cut = [array[part] if rowed else array for array, rowed in zip(arrays, with_rows, strict=True)]
        yield tuple(array.astype(np.float64) for array in (weights[part], *cut))


def _is_broadcast(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(whole), strict=False))


def _stored(value: Value | None) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The integers of weights and their zero point, by the layers that compute the weights from them."""
    if value is None:
        return None
    node, zero = value.node, None
    if node.type == "Subtract":
        zero = _array(node.inputs[1]) if len(node.inputs) > 1 else None
        if zero is None or node.inputs[0] is None:
            return None
        node = node.inputs[0].node
    if node.type != "Convert" or not node.inputs or (source := node.inputs[0]) is None:
        return None
    constant = source.node.constant
    if constant is None or not constant.is_readable or constant.element.bits > 8:
        return None
    integers = _array(source)
    return None if integers is None else (integers, zero)


def _array(value: Value | None) -> np.ndarray | None:
    """The values of a constant, or of a Convert of one; None if they cannot be read."""
    if value is None:
        return None
    node = value.node
    if node.type == "Convert" and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].node
    if node.constant is None or not node.constant.is_readable or node.constant.element.bits == 0:
        return None
    try:
        return constant_value(node.constant)
    except ModelError:
        return None
