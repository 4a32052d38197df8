"""Tensors of models that are being made: the arguments and results of the functions of irexec.opset."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from irexec.analysis.builder import Builder
from irexec.authoring.operands import check_numbers, new_axes, number_elements, strided_slice
from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node, Value
from irexec.schema.opdef import OpDef
from irexec.schema.registry import newest

_SERIAL = itertools.count(1)


class Tensor:
    """One tensor of a model that is being made: an output of a node, with its fact.

    Arithmetic, comparisons and indices make nodes: ``x * 2 + 1``, ``a @ b``, ``x > 0``, ``x[..., 1:3]``. A number takes
    the element type of the tensor that it is combined with.

    Attributes:
        value: the output of the node.
        fact: the element type, the shape and, where they are known, the contents.
        scope: the body that is being made around the tensor; None outside of bodies.
    """

    __slots__ = ("fact", "scope", "value")
    # NumPy leaves arithmetic of an array and a tensor to the tensor.
    __array_ufunc__ = None
    __iter__ = None

    def __init__(self, value: Value, fact: Fact) -> None:
        self.value, self.fact, self.scope = value, fact, None if value.node.id >= 0 else current_scope()

    @property
    def element(self) -> Element | None:
        """The element type; None if it is not known."""
        return self.fact.element

    @property
    def shape(self) -> PartialShape:
        """The sizes, ints and Dims; None if the rank is not known."""
        return self.fact.shape

    @property
    def name(self) -> str:
        """The first tensor name, else the name of the layer."""
        return self.value.name

    @property
    def names(self) -> tuple[str, ...]:
        """The tensor names."""
        return tuple(self.value.names)

    def named(self, *names: str) -> Tensor:
        """Give the tensor these names in place of its tensor names; the tensor itself."""
        self.value.names[:] = names
        return self

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r}: {self.fact}>"

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value before the model runs: use irexec.opset.select or if_")

    def __hash__(self) -> int:
        return id(self)

    def __add__(self, other: Operand) -> Tensor:
        return _single("Add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return _single("Add", other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return _single("Subtract", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return _single("Subtract", other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return _single("Multiply", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return _single("Multiply", other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return _single("Divide", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return _single("Divide", other, self)

    def __mod__(self, other: Operand) -> Tensor:
        return _single("FloorMod", self, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return _single("FloorMod", other, self)

    def __pow__(self, other: Operand) -> Tensor:
        return _single("Power", self, other)

    def __rpow__(self, other: Operand) -> Tensor:
        return _single("Power", other, self)

    def __matmul__(self, other: Operand) -> Tensor:
        return _single("MatMul", self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return _single("MatMul", other, self)

    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return _single("Equal", self, other)

    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return _single("NotEqual", self, other)

    def __lt__(self, other: Operand) -> Tensor:
        return _single("Less", self, other)

    def __le__(self, other: Operand) -> Tensor:
        return _single("LessEqual", self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return _single("Greater", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return _single("GreaterEqual", self, other)

    def __neg__(self) -> Tensor:
        return _single("Negative", self)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        """The part that NumPy's indices of ints, slices, ``...`` and None select; or, by an integer tensor, the slices
        along the first axis."""
        if isinstance(index, Tensor):
            return _single("Gather", self, index, 0)
        entries = index if isinstance(index, tuple) else (index,)
        kept = [entry for entry in entries if entry is not None]
        lists, masks = strided_slice(self.shape, kept)
        part = _single("StridedSlice", self, *lists, **masks) if any(entry is not ... for entry in kept) else self
        axes = new_axes(entries)
        return _single("Unsqueeze", part, axes) if axes else part


Operand: TypeAlias = Tensor | np.ndarray | np.generic | int | float | bool | str | Sequence[Any]
"""An input of an operation: a tensor, or values that become a constant. A Python int is i64 and a float f32, unless the
operation has all its inputs in one element type and another input is a tensor."""

Index: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | None


def apply(
    definition: OpDef,
    operands: Sequence[Operand | None],
    attributes: Mapping[str, Any],
    *,
    name: str | None = None,
    names: Sequence[str] = (),
    bodies: Mapping[str, Body] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Make a node of an operation: its output, or a tuple of outputs where its shape rule gives a tuple.

    Args:
        definition: of the operation.
        operands: the inputs.
        attributes: by the kernel's parameter.
        name: the layer's name; the type unless given. Names are made unique in the model.
        names: tensor names of the first output.
        bodies: as Builder.emit takes them.

    Raises:
        NodeError, OpError, ModelError: as Builder.emit raises them.
    """
    builder = LooseBuilder(operand for operand in operands if isinstance(operand, Tensor))
    elements = [operand.element if isinstance(operand, Tensor) else None for operand in operands]
    inputs = [
        operand.value if isinstance(operand, Tensor) else builder.number(operand, element)
        for operand, element in zip(operands, number_elements(definition, elements), strict=True)
    ]
    made = builder.emit(
        definition.type, *inputs, version=definition.version, name=name, names=names, bodies=bodies, **attributes
    )
    tensors = tuple(Tensor(value, builder.fact(value)) for value in (made if isinstance(made, tuple) else (made,)))
    return tensors if isinstance(made, tuple) else tensors[0]


def _single(type: str, *operands: Operand, **attributes: Any) -> Tensor:
    """The output of an operation that has one."""
    made = apply(newest(type), operands, attributes)
    assert isinstance(made, Tensor)
    return made


class LooseBuilder(Builder):
    """Makes nodes that are in no graph yet.

    Their ids are negative and fall in the order in which they are made; the graph of the builder is given up.

    Args:
        tensors: the tensors, of any graph, that may be inputs.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        super().__init__()
        for tensor in tensors:
            use(tensor)
            check(tensor.value.node.type != "Result", f"{tensor.value.node.name!r} is a Result, which has no output")
            self._made.add(tensor.value.node)
            self._inference.inference.facts[tensor.value] = tensor.fact

    def number(self, operand: Any, element: Element | None) -> Any:
        """The constant of an element type for Python's numbers; any other operand as it is."""
        if element is None or not isinstance(operand, int | float | list | tuple):
            return operand
        constant = self.constant(operand, element)
        check_numbers(operand, element)
        return constant

    def layer(self, type: str, version: str, name: str, attributes: dict[str, str]) -> Node:
        """A node without inputs and outputs."""
        return self._node(type, version, name, attributes)

    def _node(self, type: str, version: str, name: str, attributes: dict[str, str]) -> Node:
        node = super()._node(type, version, name, attributes)
        node.id, node.name = -next(_SERIAL), name
        scope = current_scope()
        if scope is not None:
            scope.nodes.add(node)
        return node


class BodyScope:
    """A body that is being made by a function of Python.

    Attributes:
        outer: the body around it; None if there is none.
        nodes: the nodes that were made in it, those of bodies inside it apart.
        captured: the tensors made outside of it that its nodes read, by their values.
    """

    def __init__(self) -> None:
        self.outer = current_scope()
        self.nodes: set[Node] = set()
        self.captured: dict[Value, Tensor] = {}

    def __enter__(self) -> BodyScope:
        self._token = _SCOPE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPE.reset(self._token)

    def surrounds(self, scope: BodyScope | None) -> bool:
        """Whether a body is this one or inside it."""
        while scope is not None and scope is not self:
            scope = scope.outer
        return scope is self


_SCOPE: ContextVar[BodyScope | None] = ContextVar("scope", default=None)


def current_scope() -> BodyScope | None:
    """The body that is being made; None outside of bodies."""
    return _SCOPE.get()


def use(tensor: Tensor) -> None:
    """Note that the body that is being made reads a tensor.

    Raises:
        OpError: the tensor is one of another body.
    """
    scope = current_scope()
    is_outer = tensor.scope is None or tensor.scope.surrounds(scope)
    check(is_outer, f"{tensor!r} was made inside of another body: only what a body returns can be used outside of it")
    if scope is not None and tensor.value.node not in scope.nodes:
        scope.captured[tensor.value] = tensor
