"""A model in which some layers have fewer bits: as a device computes them, or as ``irexec edit`` stores weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping

from irexec.analysis.model import Model
from irexec.authoring.compression import weights
from irexec.dtypes.elements import BF16, F16, F32, Element
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value

COMPUTED = {"f16": F16, "bf16": BF16}
"""Types in which a layer is computed: its inputs and outputs are rounded, its sums are not."""
STORED = ("int8", "int4")
"""Types in which weights are stored; see Editor.compress."""
TYPES = (*COMPUTED, *STORED)

_LARGEST_GROUP = 128
_MOVING = frozenset(
    (
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Slice", "StridedSlice",
        "Gather", "Pad", "Broadcast", "Tile", "Convert", "ShapeOf", "ReadValue", "Assign", "Result", "Parameter",
        "Constant", "DepthToSpace", "SpaceToDepth", "ShuffleChannels", "Roll", "Reverse",
    )
)  # fmt: skip
"""Operations that move elements: the layers beside them round."""


def candidates(model: Model, facts: Mapping[Value, Fact], type: str) -> list[Node]:
    """The layers that can have fewer bits: layers that compute with f32 by the facts, or layers with weights."""
    if type in STORED:
        return list(dict.fromkeys(weight.node for weight in weights(model)))
    found = []
    for node in model.nodes:
        elements = {fact.element for value in node.outputs if (fact := facts.get(value)) is not None}
        if F32 in elements and node.type not in _MOVING and not node.bodies and _is_computed(node):
            found.append(node)
    return found


def _is_computed(node: Node) -> bool:
    return any(value is not None and value.node.type != "Constant" for value in node.inputs)


def lowered(model: Model, layers: Collection[Node], type: str, group: int) -> Model:
    """A copy of a model in which these layers have fewer bits."""
    made = copy.copy(model)
    position = {node: i for i, node in enumerate(model.nodes)}
    chosen = [made.nodes[position[node]] for node in layers]
    if type in STORED:
        kept = [weight.node.name for weight in weights(made) if weight.node not in chosen]
        if chosen:
            with made.edit() as editor:
                editor.compress(type, group=group, keep=kept)
        return made
    adding = _Adding(made, COMPUTED[type])
    for node in chosen:
        adding.round_ports(node)
    return made


def group_of(model: Model) -> int:
    """The largest power of two, of at most 128, that divides the summed axes of all products.

    Raises:
        InputError: such an axis has an odd size.
    """
    held = ((weight.constant.constant, weight.axes[0]) for weight in weights(model) if weight.is_product)
    sizes = [constant.shape[axis] for constant, axis in held if constant is not None]
    group = math.gcd(_LARGEST_GROUP, *sizes)
    if group == 1:
        raise InputError("int4 needs groups of weights, and a product has an odd number of inputs")
    return group


class _Adding:
    """Adds roundings to a graph."""

    def __init__(self, model: Model, element: Element) -> None:
        self._model, self._element = model, element
        self._next = max((node.id for node in model.nodes), default=0) + 1
        self._readers: dict[Value, list[Input]] = {}
        for node in model.nodes:
            for port in node.ports:
                if port.source is not None:
                    self._readers.setdefault(port.source, []).append(port)

    def round_ports(self, node: Node) -> None:
        """Round the f32 inputs and outputs of a layer."""
        for port in node.ports:
            if port.source is not None and _is_f32(port.source):
                port.source = self._rounded(port.source)
        for value in node.outputs:
            if _is_f32(value):
                rounded = self._rounded(value)
                for port in self._readers.get(value, ()):
                    # A reader that rounds its inputs itself reads another value by now.
                    if port.source is value:
                        port.source = rounded

    def _rounded(self, value: Value) -> Value:
        return self._converted(self._converted(value, self._element), F32)

    def _converted(self, value: Value, element: Element) -> Value:
        number, self._next = self._next, self._next + 1
        attributes = {"destination_type": element.name}
        node = Node(
            number, f"rounding {number}", "Convert", "opset1", [Input(value, value.fact)], attributes=attributes
        )
        node.outputs.append(Value(node, 0, Fact(element, None if value.fact is None else value.fact.shape)))
        self._model.nodes.append(node)
        return node.outputs[0]


def _is_f32(value: Value) -> bool:
    return value.fact is not None and value.fact.element is F32
