"""Arrays computed from compressed constants by layers such as Convert, Subtract and Multiply."""

from __future__ import annotations

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple, rounded
from irexec.dtypes.elements import element_of
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.schema.registry import resolve

_TYPES = (
    "Convert",
    "Subtract",
    "Multiply",
    "Reshape",
    "Transpose",
    "FakeQuantize",
    "FakeConvert",
    "Unsqueeze",
    "Squeeze",
)
_LARGEST = 1 << 26
"""Maximum number of elements of a constant from which an array is computed."""
_DEPTH = 12


def decompressed(value: Value | None) -> np.ndarray | None:
    """The array of a value computed from constants alone, by layers that decompress weights; None for any other value.

    Raises:
        ModelError: a constant cannot be read.
    """
    try:
        return None if value is None else _array(value, _DEPTH)
    except IrexecError:
        # Layers that do not fit each other are findings of validate, not of diff.
        return None


def _array(value: Value, depth: int) -> np.ndarray | None:
    node = value.node
    if node.constant is not None:
        return constant_value(node.constant) if node.constant.count <= _LARGEST else None
    if depth == 0 or node.type not in _TYPES or value.index:
        return None
    inputs = [None if source is None else _array(source, depth - 1) for source in node.inputs]
    arrays = [array for array in inputs if array is not None]
    return _computed(node, arrays) if arrays and len(arrays) == len(inputs) else None


def _computed(node: Node, inputs: list[np.ndarray]) -> np.ndarray:
    definition = resolve(node.type, node.version)
    array = as_tuple(definition(*inputs, **typed_attributes(node, definition).require()))[0]
    declared = node.outputs[0].fact
    return rounded(array, declared.element if declared is not None else element_of(array.dtype))
