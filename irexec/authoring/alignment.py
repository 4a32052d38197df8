"""Axes of a layer's inputs that have the same size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irexec.analysis.attributes import typed_attribute
from irexec.authoring.facts import Facts
from irexec.errors import UnsupportedError
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Node
from irexec.schema.registry import resolve

LENGTHS: Mapping[str, int] = {"LSTMSequence": 3, "GRUSequence": 2, "RNNSequence": 2}
"""The input of a recurrent sequence that has the length of each sequence."""
_BATCHES: Mapping[str, tuple[int, ...]] = {
    "LSTMSequence": (1, 2, 3), "GRUSequence": (1, 2), "RNNSequence": (1, 2),
    "LSTMCell": (1, 2), "GRUCell": (1,), "RNNCell": (1,),
    "GridSample": (1,), "DeformableConvolution": (1, 3),
}  # fmt: skip
"""The inputs whose first axis is the batch, as that of the first input is."""
_PRODUCTS = ("MatMul", "ScaledDotProductAttention")


@dataclass(frozen=True)
class Aligned:
    """An axis of an input.

    Attributes:
        index: of the input.
        axis: the axis.
        broadcasts: whether a size of 1 is as good as that of the other input.
    """

    index: int
    axis: int
    broadcasts: bool


def aligned_inputs(node: Node, index: int, axis: int, facts: Facts) -> Iterator[Aligned]:
    """The axes of other inputs of a layer that must have the size of an axis of the input at ``index``."""
    shapes = [None if value is None else facts[value].shape for value in node.inputs]
    if node.type == "Gather":
        yield from _selected_states(node, index, shapes[0], facts)
        return
    rank = len(shapes[index] or ())
    broadcasts = _broadcasts(node, axis - rank)
    for other, shape in enumerate(shapes):
        if other == index or shape is None:
            continue
        if broadcasts and axis + len(shape) >= rank:
            yield Aligned(other, axis + len(shape) - rank, True)
        elif (
            node.type in ("Concat", "GatherElements")
            and len(shape) == rank
            and axis != typed_attribute(node, "axis") % rank
        ):
            yield Aligned(other, axis, False)
        elif index == axis == 0 and other in _BATCHES.get(node.type, ()):
            yield Aligned(other, 0, False)


def _selected_states(node: Node, index: int, shape: PartialShape, facts: Facts) -> Iterator[Aligned]:
    """The axis along which a Gather selects rows of a variable, such as those of beams; there are as many."""
    variable, axis = node.inputs[0], node.inputs[2]
    if index != 1 or variable is None or variable.node.type != "ReadValue" or axis is None or shape is None:
        return
    known = facts[axis].known
    if known is not None and known.size == 1:
        yield Aligned(0, int(known.item()) % len(shape), False)


def _broadcasts(node: Node, axis: int) -> bool:
    """Whether inputs are aligned at their last axes and broadcast along an axis, which is counted from the end."""
    if node.type in _PRODUCTS:
        return axis < -2
    try:
        has_mode = "auto_broadcast" in resolve(node.type, node.version).by_name
    except UnsupportedError:
        return False
    return has_mode and typed_attribute(node, "auto_broadcast") == "numpy"
