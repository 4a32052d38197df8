"""Costs of layers, from the facts of their inputs and outputs alone: multiply-accumulates, parameters and bytes.

A multiply-accumulate (MAC) is one product and one sum of a convolution, a matrix product, a recurrent cell or an
attention; all other operations count 0. That is how published figures count: 4.1 GMACs for ResNet-50 at 224 x 224.
Details:

- products with padding count, as in published figures;
- a transposed convolution counts the products of every input element with the filter;
- Einsum counts the product of the sizes of all labels once for each operand after the first;
- sequences count every step up to the longest sequence;
- attention to blocks of a cache counts the tokens of the run, as if each attended to all of them;
- TensorIterator and Loop count their bodies times the number of iterations, If the larger of its branches.

Parameters are the elements of the constants that a layer reads, of floating-point types or of at most 8 bits; indices,
axes and shapes are not parameters, nor are single values, such as the factor of a scale. A constant that several layers
read counts for the first of them. Bytes are those of packed tensors, as in the .bin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irexec.analysis.attributes import typed_attributes
from irexec.errors import IrexecError
from irexec.ir.dims import is_static, plus, product
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import readers
from irexec.ops.linear_algebra import ELLIPSIS, parse_equation
from irexec.records import Record
from irexec.reference.convolution import filter_order
from irexec.schema.bodies import Wiring
from irexec.schema.registry import resolve

Sizes = tuple[int, ...]
Shapes = Sequence[Sizes]

NO_COMPUTATION = ("Parameter", "Constant", "Result")
"""Types of layers that compute nothing."""

_COMPRESSED_BITS = 8


@dataclass(frozen=True)
class Cost(Record):
    """Cost of one layer, or of several.

    Attributes:
        macs: multiply-accumulates; None if they depend on a shape that is not known.
        parameters: elements of constants.
        read: bytes of all inputs, constants included; None if a type or shape is not known.
        written: bytes of all outputs that anything reads, likewise.
    """

    macs: int | None
    parameters: int
    read: int | None
    written: int | None

    @property
    def bytes(self) -> int | None:
        """Bytes read and written."""
        return plus(self.read, self.written)

    def __add__(self, other: Cost) -> Cost:
        """The cost of both together; what is not known of one is not known of the sum."""
        return Cost(
            plus(self.macs, other.macs),
            self.parameters + other.parameters,
            plus(self.read, other.read),
            plus(self.written, other.written),
        )


NOTHING = Cost(0, 0, 0, 0)
"""The cost of no layer."""


class LayerCosts:
    """The costs of the layers of a model.

    Args:
        graph: the model.
        facts: of its values and those of its bodies. Where they do not say a type or shape, it is as the port declares.
    """

    def __init__(self, graph: Graph, facts: Mapping[Value, Fact]) -> None:
        self._graph, self._facts = graph, facts
        self._counted: dict[Node, int | None] = {}
        self._readers = readers(graph.walk())

    @property
    def layers(self) -> list[Node]:
        """The layers that compute something, those of bodies left out: they belong to the layer that has them."""
        return [node for node in self._graph.nodes if node.type not in NO_COMPUTATION]

    def of(self, layers: Iterable[Node], *, bodies: bool = True) -> Cost:
        """The cost of layers that are computed together: tensors between them are neither read nor written.

        Args:
            bodies: count what is in the bodies of the layers too.
        """
        together = dict.fromkeys(layers)
        read = dict.fromkeys(
            value for node in together for value in node.inputs if value is not None and value.node not in together
        )
        outputs = [value for node in together for value in node.outputs]
        # A Result reads those of the model.
        written = [value for value in outputs if any(reader not in together for reader in self.readers(value))]
        counted = [node for node in together if bodies or not node.bodies]
        return Cost(
            macs=total(self.macs(node) for node in counted),
            parameters=sum(self._parameters(node) if bodies else self._own_parameters(node) for node in together),
            read=total(self.size(value) for value in read),
            written=total(self.size(value) for value in written),
        )

    def macs(self, node: Node) -> int | None:
        """Multiply-accumulates of one layer; None if they depend on a shape that is not known."""
        # Bodies in bodies would be counted again and again.
        if node not in self._counted:
            self._counted[node] = self._of_bodies(node) if node.bodies else self._of_one(node)
        return self._counted[node]

    def _of_one(self, node: Node) -> int | None:
        rule = _MACS.get(node.type)
        if rule is None:
            return 0
        needed = [self._shape(value) for value in node.inputs[: rule.inputs]]
        shapes = [shape for shape in needed if shape is not None]
        result = self._shape(node.outputs[0]) if node.outputs else None
        if result is None or len(shapes) < (len(node.inputs) if rule.inputs is None else rule.inputs):
            return None
        try:
            return rule.count(shapes, result, typed_attributes(node, resolve(node.type, node.version)).require())
        except (IrexecError, IndexError):
            # An attribute or rank is wrong, which validate reports.
            return None

    def runs(self, node: Node) -> dict[str, int | None]:
        """Maximum number of runs of each body of a layer; None if unknown. The branch of an If with more MACs runs."""
        if node.type != "If":
            return {name: self._iterations(node, body) for name, body in node.bodies.items()}
        costs = {name: self._of_body(body) for name, body in node.bodies.items()}
        known = {name: macs for name, macs in costs.items() if macs is not None}
        if len(known) < len(costs):
            return dict.fromkeys(costs)
        larger = max(known, key=lambda name: known[name])
        return {name: int(name == larger) for name in costs}

    def readers(self, value: Value) -> list[Node]:
        """The layers that read a value, one of them several times if it reads it so."""
        return self._readers.get(value, [])

    def fact(self, value: Value) -> Fact:
        """The inferred fact of a value, or else the declared one."""
        found = self._facts.get(value)
        if found is not None and found.is_static and found.element is not None:
            return found
        return value.fact if value.fact is not None and value.fact.is_static else found or Fact(None, None)

    def size(self, value: Value) -> int | None:
        """Packed bytes of a value; None if its type or shape is not known."""
        if value.node.constant is not None:
            return value.node.constant.size
        return packed_bytes(self.fact(value))

    def _shape(self, value: Value | None) -> Sizes | None:
        if value is None:
            return None
        shape = self.fact(value).shape
        return shape if is_static(shape) else None

    def _parameters(self, node: Node) -> int:
        return self._own_parameters(node) + sum(
            self._parameters(inner) for body in node.bodies.values() for inner in body.graph.nodes
        )

    def _own_parameters(self, node: Node) -> int:
        constants = {value.node for value in node.inputs if value is not None and self._readers[value][0] is node}
        return sum(_parameter_count(constant) for constant in constants)

    def _of_body(self, body: Body) -> int | None:
        return total(self.macs(inner) for inner in body.graph.nodes)

    def _of_bodies(self, node: Node) -> int | None:
        runs = self.runs(node)
        return total(product(self._of_body(body), runs[name]) for name, body in node.bodies.items())

    def _iterations(self, node: Node, body: Body) -> int | None:
        """Maximum number of runs of a body; None if unknown."""
        if node.type == "Loop":
            trips = None if node.inputs[0] is None else self._facts.get(node.inputs[0], Fact(None, None)).ints()
            return trips[0] if trips and trips[0] >= 0 else None
        for source in Wiring.of(node, body).sources:
            if source is not None and source[1] is not None:
                shape, axis = self._shape(node.inputs[source[0]]), source[1].axis
                if shape is None or not -len(shape) <= axis < len(shape):
                    return None
                count = source[1].iterations(shape[axis])
                return count if isinstance(count, int) else None
        return 1


def packed_bytes(fact: Fact) -> int | None:
    """Bytes of a tensor of this fact as it is stored; None if its type or shape is not known, and for strings."""
    if fact.element is None or fact.element.kind == "string" or not fact.is_static:
        return None
    return -(-math.prod(fact.static_shape) * fact.element.bits // 8)


def _parameter_count(node: Node) -> int:
    constant = node.constant
    if constant is None or not (constant.element.is_float or constant.element.bits <= _COMPRESSED_BITS):
        return 0
    return 0 if constant.element.kind in ("boolean", "string") or constant.count == 1 else constant.count


def total(counts: Iterable[int | None]) -> int | None:
    """A sum; None if one of the counts is not known."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def has_macs(type: str) -> bool:
    """Whether operations of the type have multiply-accumulates."""
    return type in _MACS


Count = Callable[[Shapes, Sizes, Any], int]


def _per_output(weights: int, first: int, times: int = 1) -> Count:
    """The elements of the output, times the sizes of an input from an axis on.

    They are the input channels and the kernel of a filter (output channels, input channels, *kernel), with groups in
    front or without, or the keys of a state, which is read several times.
    """
    return lambda inputs, output, attributes: times * math.prod(output) * math.prod(inputs[weights][first:])


def _per_input(first: int) -> Count:
    """The elements of the data, times the output channels and the kernel of a filter (input channels, output channels,
    *kernel), with groups in front or without."""
    return lambda inputs, output, attributes: math.prod(inputs[0]) * math.prod(inputs[1][first:])


def _conv_transpose(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    """The filter's axes in the order that the attribute names; O counts the output channels of a group."""
    order = filter_order(len(inputs[0]) - 2, attributes["filter_format"] or attributes["weights_format"] or "XIO")
    return math.prod(inputs[0]) * math.prod(inputs[1][axis] for axis in order[1:])


def _matmul(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    a = inputs[0]
    return math.prod(output) * a[-2 if attributes["transpose_a"] and len(a) > 1 else -1]


def _grouped_matmul(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    a, b = inputs[:2]
    return math.prod(a) * b[1]


def _attention(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    """Query (..., L, E), key (..., S, E), value (..., S, Ev)."""
    query, key, value = inputs[:3]
    return math.prod(output[:-1]) * key[-2] * (query[-1] + value[-1])


def _paged_attention(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    """Every token attends to all new ones: those in the blocks are not known from shapes."""
    query, key_cache, value_cache = inputs[0], inputs[3], inputs[4]
    return query[0] * query[0] * (query[1] + query[1] // max(key_cache[3], 1) * value_cache[3])


def _einsum(inputs: Shapes, output: Sizes, attributes: Any) -> int:
    sizes: dict[str, int] = {}
    for labels, shape in zip(parse_equation(attributes["equation"]).operands, inputs, strict=True):
        before = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
        after = len(labels) - before - 1
        named = [*zip(labels[:before], shape, strict=False), *zip(labels[:before:-1], shape[::-1], strict=False)]
        if ELLIPSIS in labels:
            named.append((ELLIPSIS, math.prod(shape[before : len(shape) - after])))
        for label, size in named:
            # Labels and ellipses of size 1 broadcast.
            sizes[label] = max(sizes.get(label, 1), size)
    return math.prod(sizes.values()) * (len(inputs) - 1)


def _cell(states: int) -> Count:
    """X (B, I), the states, W and R."""
    return lambda inputs, output, attributes: inputs[0][0] * sum(math.prod(inputs[1 + states + i]) for i in range(2))


def _sequence(states: int) -> Count:
    """X (B, T, I), the states, lengths, W and R, both with an axis of directions."""
    return lambda inputs, output, attributes: (
        math.prod(inputs[0][:2]) * sum(math.prod(inputs[2 + states + i]) for i in range(2))
    )


@dataclass(frozen=True)
class _Rule:
    """How MACs are counted: from the shapes of the first ``inputs`` inputs (all if None), of the first output, and
    attributes."""

    inputs: int | None
    count: Count


# A delta rule reads the state for what it holds, for what is added and for the output; a scan does not need the first.
_MACS: dict[str, _Rule] = {
    "AUGRUCell": _Rule(4, _cell(1)),
    "AUGRUSequence": _Rule(5, _sequence(1)),
    "BinaryConvolution": _Rule(2, _per_output(1, 1)),
    "ConvTranspose": _Rule(2, _conv_transpose),
    "Convolution": _Rule(2, _per_output(1, 1)),
    "ConvolutionBackpropData": _Rule(2, _per_input(1)),
    "DeformableConvolution": _Rule(3, _per_output(2, 1)),
    "Einsum": _Rule(None, _einsum),
    "GatedDeltaNet": _Rule(3, _per_output(1, -1, times=3)),
    "GRUCell": _Rule(4, _cell(1)),
    "GRUSequence": _Rule(5, _sequence(1)),
    "GroupConvolution": _Rule(2, _per_output(1, 2)),
    "GroupConvolutionBackpropData": _Rule(2, _per_input(2)),
    "GroupedMatMul": _Rule(2, _grouped_matmul),
    "LSTMCell": _Rule(5, _cell(2)),
    "LSTMSequence": _Rule(6, _sequence(2)),
    "MatMul": _Rule(2, _matmul),
    "PagedAttentionExtension": _Rule(6, _paged_attention),
    "PagedCausalConv1D": _Rule(3, _per_output(2, 1)),
    "PagedGatedDeltaNet": _Rule(3, _per_output(1, -1, times=3)),
    "PagedSelectiveSSM": _Rule(4, _per_output(2, -1, times=2)),
    "RNNCell": _Rule(4, _cell(1)),
    "RNNSequence": _Rule(5, _sequence(1)),
    "ScaledDotProductAttention": _Rule(3, _attention),
    "SelectiveSSM": _Rule(4, _per_output(2, -1, times=2)),
}
