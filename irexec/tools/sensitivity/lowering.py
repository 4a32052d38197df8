"""A model in which some layers have fewer bits: as a device computes them, or as ``irexec edit`` stores weights."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Collection, Mapping

from irexec.analysis.builder import Adding
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
    _round_ports(made, chosen, COMPUTED[type])
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


def _round_ports(model: Model, nodes: Collection[Node], element: Element) -> None:
    """Round the f32 inputs and outputs of layers to a type."""
    adding = Adding(model.nodes)
    readers = defaultdict[Value, list[Input]](list)
    for node in model.nodes:
        for port in node.ports:
            if port.source is not None:
                readers[port.source].append(port)

    def rounded(value: Value) -> Value:
        for kind in (element, F32):
            fact = Fact(kind, None if value.fact is None else value.fact.shape)
            value = adding.layer("Convert", {"destination_type": kind.name}, [value], fact)
        return value

    for node in nodes:
        for port in node.ports:
            if port.source is not None and _is_f32(port.source):
                port.source = rounded(port.source)
        for value in node.outputs:
            if _is_f32(value):
                less = rounded(value)
                for port in readers[value]:
                    # A reader that rounds its inputs itself reads another value by now.
                    if port.source is value:
                        port.source = less


def _is_f32(value: Value) -> bool:
    return value.fact is not None and value.fact.element is F32
