"""The constants of a model that are weights, with the axes over which they are summed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from irexec.analysis.attributes import typed_attribute
from irexec.dtypes.elements import BF16, F16, F32, F64
from irexec.ir.graph import Graph, Node, Value

_FLOATS = (F16, BF16, F32, F64)
_CHANNELS = {
    "Convolution": (0,),
    "ConvolutionBackpropData": (1,),
    "GroupConvolution": (0, 1),
    "GroupConvolutionBackpropData": (0, 2),
}
"""Axes of the weights of convolutions along which the outputs lie."""


@dataclass(frozen=True)
class Weight:
    """The weights of a layer.

    Attributes:
        node: the layer.
        value: its input: the Constant's output, or that of a Convert of the Constant.
        constant: the Constant, of floats.
        axes: the axes over which the layer sums.
    """

    node: Node
    value: Value
    constant: Node
    axes: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """Whether it is a matrix of a MatMul."""
        return self.node.type == "MatMul"


def weights(graph: Graph) -> Iterator[Weight]:
    """The weights of products, convolutions and embeddings in the order of the layers, shared ones once."""
    seen: set[Node] = set()
    for node in graph.nodes:
        found = _of(node)
        if found is not None and found.constant not in seen:
            seen.add(found.constant)
            yield found


def _of(node: Node) -> Weight | None:
    if node.type == "MatMul":
        return _of_product(node)
    if node.type in _CHANNELS:
        return _weight(node, 1, lambda rank: [axis for axis in range(rank) if axis not in _CHANNELS[node.type]])
    if node.type == "Gather":
        return _weight(node, 0, lambda rank: list(range(1, rank)))
    return None


def _of_product(node: Node) -> Weight | None:
    transposed = [typed_attribute(node, name) is True for name in ("transpose_a", "transpose_b")]
    sides = [
        _weight(node, 0, lambda rank: [rank - (2 if transposed[0] else 1)]),
        _weight(node, 1, lambda rank: [rank - (1 if transposed[1] else 2)]),
    ]
    found = [side for side in sides if side is not None]
    # A product of two constants has no weights.
    return found[0] if len(found) == 1 else None


def _weight(node: Node, index: int, axes: Callable[[int], Sequence[int]]) -> Weight | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    constant = value.node
    if constant.type == "Convert" and constant.inputs and constant.inputs[0] is not None:
        constant = constant.inputs[0].node
    held = constant.constant
    if held is None or held.element not in _FLOATS or len(held.shape) < 2 or held.count == 0 or not held.is_readable:
        return None
    return Weight(node, value, constant, tuple(axes(len(held.shape))))
