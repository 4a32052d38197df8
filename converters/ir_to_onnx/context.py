"""The context of a translator: the layer, the opset, and functions that add nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import GraphProto
from onnx.defs import OpSchema

from converters.ir_to_onnx.graph import OnnxGraph, Tensor
from converters.ir_to_onnx.opsets import (
    accepted,
    computed_types,
    has_operator,
    input_variable,
    loses_bits,
    only_element,
    output_variable,
    schema_of,
    wider,
)
from irexec.analysis.builder import packed
from irexec.dtypes.elements import BOOLEAN, I64, Element, round_to
from irexec.errors import OpError, check
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value

_DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1}
"""The versions of other domains whose operators are written."""


class ExportContext:
    """One for each graph; ``node`` is the layer that is being translated.

    Attributes:
        opset: of ai.onnx in the model.
        graph: the graph that nodes are added to.
        node: the layer.
        facts: of the outputs of the layer.
        writer: the GraphWriter of the graph, which writes bodies.
    """

    def __init__(self, opset: int, graph: OnnxGraph, writer: Any) -> None:
        self.opset, self.graph, self.writer = opset, graph, writer
        self.node: Node
        self.facts: tuple[Fact, ...] = ()
        self._constants: dict[tuple[Element, tuple[int, ...], bytes], Tensor] = {}

    def has(self, type: str) -> bool:
        """Whether the opset has an operator of ai.onnx, and ONNX Runtime a kernel for it there or in an older one."""
        return has_operator(type, self.opset)

    def remark(self, text: str) -> None:
        """Say in which way the nodes of the layer may give other values; ``strict`` refuses such a layer."""
        self.writer.state.remark(self.node, text)

    def element_of(self, value: Value) -> Element | None:
        """The element type of a value of the IR, if it is known."""
        fact = self.writer.state.facts.get(value)
        return None if fact is None else fact.element

    def is_used(self, index: int) -> bool:
        """Whether anything reads an output of the layer."""
        outputs = self.node.outputs
        return index < len(outputs) and outputs[index] in self.writer.state.used

    def emit(
        self, type: str, *inputs: Tensor | None, shape: PartialShape = None, element: Element | None = None,
        domain: str = "", **attributes: Any,
    ) -> Tensor:  # fmt: skip
        """Add a node of one output; see ``emit_all``, of whose arguments ``shape`` is that of the output."""
        made = self.emit_all(type, 1, *inputs, element=element, domain=domain, **attributes)[0]
        made.shape = shape
        return made

    def emit_all(
        self, type: str, outputs: int, *inputs: Tensor | None, element: Element | None = None, domain: str = "",
        **attributes: Any,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Add a node.

        Inputs of an element type that the operator, or its kernel in ONNX Runtime, does not take are cast to a wider
        one, and results back.

        Args:
            type: the operator.
            outputs: the number of outputs.
            inputs: None for one that is absent.
            element: of outputs to which the schema does not give a type, as of Cast.
            domain: of the operator.
            attributes: by name; those that are None are left out.

        Raises:
            OpError: the opset lacks the operator, or no type of its inputs has every value of what is given.
        """
        if domain:
            self.writer.state.domains[domain] = _DOMAINS[domain]
            return self._added(type, inputs, [element or self._first(inputs)] * outputs, domain, attributes)
        schema, chosen = schema_of(type, self.opset, domain), self._chosen(type, inputs, domain)
        for name, value in attributes.items():
            known = value is None or name in schema.attributes
            check(known, f"ONNX's {type} of opset {self.opset} has no attribute {name}")
        original = {input_variable(schema, i): t.element for i, t in enumerate(inputs) if t is not None}
        given = [None if t is None else self.cast(t, chosen[input_variable(schema, i)]) for i, t in enumerate(inputs)]
        variables = [output_variable(schema, i) for i in range(outputs)]
        elements = [
            element or chosen.get(v) or only_element(type, self.opset, domain, v) or self._other(schema, v, inputs)
            for v in variables
        ]
        made = self._added(type, given, elements, domain, attributes)
        if element is not None:
            return made
        return tuple(self.cast(t, original.get(v, t.element)) for t, v in zip(made, variables, strict=True))

    def emit_bodies(
        self, type: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], **bodies: GraphProto
    ) -> tuple[Tensor, ...]:
        """Add a node with bodies; its outputs have the element types and shapes of ``outputs``."""
        made = self._added(type, inputs, [tensor.element for tensor in outputs], "", bodies)
        for tensor, like in zip(made, outputs, strict=True):
            tensor.shape = like.shape
        return made

    def _chosen(self, type: str, inputs: Sequence[Tensor | None], domain: str) -> dict[str, Element]:
        """The element type of each type variable of an operator."""
        schema = schema_of(type, self.opset, domain)
        check(len(inputs) <= len(schema.inputs) or schema.inputs[-1].option == schema.inputs[-1].option.Variadic,
              f"ONNX's {type} of opset {self.opset} takes {len(schema.inputs)} inputs, not {len(inputs)}")  # fmt: skip
        found: dict[str, Element] = {}
        for i, tensor in enumerate(inputs):
            if tensor is None:
                continue
            variable = input_variable(schema, i)
            allowed = accepted(type, self.opset, domain, variable)
            try:
                kind = tensor.element if tensor.element in allowed else wider(tensor.element, allowed)
            except OpError as error:
                raise OpError(f"ONNX's {type} of opset {self.opset} {error}") from None
            found.setdefault(variable, kind)
        self.writer.state.operators.add(type)
        computed = computed_types(type, self.opset, found)
        for name, kind in computed.items():
            if loses_bits(found[name], kind):
                self.remark(f"ONNX Runtime has no {type} of {found[name]}, so that it is computed in {kind}")
        return computed

    def _other(self, schema: OpSchema, variable: str, inputs: Sequence[Tensor | None]) -> Element:
        """The element type of an output whose type no input has: a list of inputs has a type of its own for each."""
        assert any(formal.type_str == variable for formal in schema.inputs), f"{schema.name} needs an element type"
        return self._first(inputs)

    def _first(self, inputs: Sequence[Tensor | None]) -> Element:
        return next(tensor.element for tensor in inputs if tensor is not None)

    def _added(
        self, type: str, inputs: Sequence[Tensor | None], elements: Sequence[Element], domain: str,
        attributes: dict[str, Any],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        name = self.graph.names.unique(f"{self.node.name}/{type}")
        names = [name] if len(elements) == 1 else [self.graph.names.unique(f"{name}:{i}") for i in range(len(elements))]
        node_name = self.writer.state.node_names.unique(name)
        self.graph.node(type, inputs, names, node_name, domain, attributes)
        return tuple(Tensor(name, kind) for name, kind in zip(names, elements, strict=True))

    def cast(self, tensor: Tensor, element: Element) -> Tensor:
        """The tensor in another element type; itself if that is its own."""
        if tensor.element is element:
            return tensor
        for kind, variable in ((tensor.element, "T1"), (element, "T2")):
            known = kind in accepted("Cast", self.opset, "", variable)
            check(known, f"ONNX of opset {self.opset} does not cast {'from' if variable == 'T1' else 'to'} {kind}")
        assert element.onnx is not None
        made = self._added("Cast", [tensor], [element], "", {"to": element.onnx.number})[0]
        made.shape = tensor.shape
        return made

    def constant(self, values: Any, element: Element = I64, shared: bool = True) -> Tensor:
        """A constant; equal ones are one initializer if they are to be shared."""
        array = np.asarray(values)
        array = array.astype(element.carrier) if element.native else round_to(element, array.astype(element.carrier))
        key = (element, array.shape, array.tobytes())
        if not shared or element.kind == "string" or key not in self._constants:
            name = self.graph.names.unique(f"{self.node.name}/constant")
            made = Tensor(name, element, array.shape, array, packed(array, element))
            if not shared or element.kind == "string":
                return made
            self._constants[key] = made
        return self._constants[key]

    def scalar(self, value: float, like: Tensor) -> Tensor:
        """A scalar of the element type of another tensor."""
        return self.constant(value, like.element)

    def ints(self, *values: int) -> Tensor:
        """A vector of 64-bit integers."""
        return self.constant(np.array(values, np.int64))

    # Operators that most compositions need.

    def reshape(self, tensor: Tensor, sizes: Sequence[int]) -> Tensor:
        """The tensor in another shape; 0 copies a size, -1 is inferred."""
        shape = tuple(sizes) if all(size > 0 for size in sizes) else None
        if tensor.constant is not None and shape is not None:
            return self._reshaped_constant(tensor, shape)
        return self.emit("Reshape", tensor, self.ints(*sizes), shape=shape)

    def _reshaped_constant(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """An initializer of another shape, which shares the bytes."""
        assert tensor.constant is not None
        value = None if tensor.value is None else tensor.value.reshape(shape)
        name = self.graph.names.unique(f"{tensor.name}/reshaped")
        return Tensor(name, tensor.element, shape, value, replace(tensor.constant, shape=shape))

    def unsqueeze(self, tensor: Tensor, *axes: int) -> Tensor:
        """The tensor with new axes of size 1, by their positions in the result."""
        shape: PartialShape = None
        if tensor.shape is not None:
            rest, rank = iter(tensor.shape), len(tensor.shape) + len(axes)
            new = {axis % rank for axis in axes}
            shape = tuple(1 if i in new else next(rest) for i in range(rank))
        return self.emit("Unsqueeze", tensor, self.ints(*axes), shape=shape)

    def squeeze(self, tensor: Tensor, *axes: int) -> Tensor:
        """The tensor without axes of size 1."""
        shape: PartialShape = None
        if tensor.shape is not None:
            gone = {axis % len(tensor.shape) for axis in axes}
            shape = tuple(size for i, size in enumerate(tensor.shape) if i not in gone)
        return self.emit("Squeeze", tensor, self.ints(*axes), shape=shape)

    def transpose(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """The tensor with its axes in another order."""
        shape = None if tensor.shape is None else tuple(tensor.shape[axis] for axis in order)
        return self.emit("Transpose", tensor, shape=shape, perm=tuple(order))

    def concat(self, *tensors: Tensor, axis: int = 0) -> Tensor:
        """The tensors one after the other."""
        return tensors[0] if len(tensors) == 1 else self.emit("Concat", *tensors, axis=axis)

    def shape_of(self, tensor: Tensor) -> Tensor:
        """The sizes of a tensor, as a constant where they are known."""
        if tensor.shape is not None and all(isinstance(size, int) for size in tensor.shape):
            return self.ints(*(int(size) for size in tensor.shape if isinstance(size, int)))
        return self.emit("Shape", tensor, shape=None if tensor.shape is None else (len(tensor.shape),))

    def slice(self, tensor: Tensor, start: int, end: int | None, axis: int, step: int = 1) -> Tensor:
        """Part of a tensor along one axis, as Python slices; ``end`` None is the end of the axis."""
        last = end if end is not None else (np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min)
        return self.emit("Slice", tensor, self.ints(start), self.ints(int(last)), self.ints(axis), self.ints(step))

    def reduce(self, type: str, tensor: Tensor, axes: Sequence[int], keep: bool = False) -> Tensor:
        """A reduction over constant axes, at least one: an attribute before the opset that has them as an input."""
        as_input = self.opset >= (13 if type == "ReduceSum" else 18)
        if as_input:
            made: Tensor = self.emit(type, tensor, self.ints(*axes), keepdims=int(keep))
        else:
            made = self.emit(type, tensor, axes=tuple(axes), keepdims=int(keep))
        return made

    def where(self, condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
        """``then`` where the condition is true, ``otherwise`` elsewhere."""
        return self.emit("Where", self.cast(condition, BOOLEAN), then, otherwise)

    def count(self, tensor: Tensor) -> int | None:
        """The number of elements; None if it is not known."""
        if tensor.shape is None or not all(isinstance(size, int) for size in tensor.shape):
            return None
        return math.prod(size for size in tensor.shape if isinstance(size, int))
