"""Tensors of models that are being made, their operands, and the ends of such a model."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from irexec.analysis.builder import Builder
from irexec.dtypes.elements import Element, ElementLike, as_element, lowest
from irexec.errors import ModelError, OpError, check
from irexec.ir.constants import BytesInMemory, Constant, size_problem
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node, Value
from irexec.ir.shape_text import ShapeLike
from irexec.schema.opdef import OpDef
from irexec.schema.registry import newest

_LAST = np.iinfo(np.int64).max
_NOT_SHARED = {"Select": 1}
"""Number of leading inputs whose element type is another than that of the rest, by type."""


def number_elements(definition: OpDef, elements: Sequence[Element | None]) -> list[Element | None]:
    """The element type that Python's numbers take at each input of an operation; None where they have their own.

    Args:
        definition: of the operation; where its inputs have one element type, numbers take that of the first tensor.
        elements: the element types of the tensors among the inputs, None for the others.
    """
    first = _NOT_SHARED.get(definition.type, 0)
    is_shared = "auto_broadcast" in definition.by_name or definition.type in ("MatMul", "PRelu")
    shared = next((element for element in elements[first:] if element is not None), None) if is_shared else None
    return [shared if i >= first else None for i in range(len(elements))]


def check_numbers(numbers: Any, element: Element) -> None:
    """Raise OpError for a number that an integer type lacks."""
    given = np.asarray(numbers)
    if element.is_float or element.kind == "string":
        return
    high = element.limits[1] if element.is_integer else 1
    is_held = bool(np.all((given >= lowest(element)) & (given <= high) & (given == np.trunc(given))))
    check(is_held, f"{numbers!r:.100} is not of the element type {element}")


def strided_slice(shape: PartialShape, entries: Sequence[Any]) -> tuple[list[list[int]], dict[str, list[int]]]:
    """Inputs begin, end and strides, and the masks, of the StridedSlice that indices without None mean.

    Raises:
        OpError: an index is out of range, or there are two ellipses.
        TypeError: an entry is not an int, a slice or ``...``.
    """
    check(sum(entry is ... for entry in entries) <= 1, "an index can only have a single ellipsis ('...')")
    lists: list[list[int]] = [[], [], []]
    masks: dict[str, list[int]] = {name: [] for name in _MASKS}
    for axis, entry in zip(_axes(shape, entries), entries, strict=True):
        bounds = _bounds(entry)
        is_index = not isinstance(entry, slice | EllipsisType)
        if is_index and shape is not None and axis is not None:
            index = bounds[0] or 0
            size = shape[axis]
            if isinstance(size, int) and not -size <= index < size:
                raise OpError(f"index {index} is out of range for axis {axis} of size {size}")
        for values, bound, default in zip(lists, bounds, (0, 0, 1), strict=True):
            values.append(default if bound is None else bound)
        for name, bit in zip(_MASKS, (bounds[0] is None, bounds[1] is None, is_index, entry is ...), strict=True):
            masks[name].append(int(bit))
    return lists, masks


_MASKS = ("begin_mask", "end_mask", "shrink_axis_mask", "ellipsis_mask")


def new_axes(entries: Sequence[Any]) -> list[int]:
    """The axes of the indexed tensor that are made by None: from the end where they come after ``...``."""
    kept = [isinstance(entry, slice | EllipsisType) or entry is None for entry in entries]
    rest = next((i for i, entry in enumerate(entries) if entry is ...), len(entries))
    return [sum(kept[:i]) if i < rest else -sum(kept[i:]) for i, entry in enumerate(entries) if entry is None]


def _bounds(entry: Any) -> tuple[int | None, int | None, int | None]:
    """Begin, end and stride of an entry, None where it leaves one open."""
    if isinstance(entry, slice):
        begin, end, step = (
            None if bound is None else operator.index(bound) for bound in (entry.start, entry.stop, entry.step)
        )
        check(step != 0, "the step of a slice is 0")
        return begin, end, step
    if entry is ...:
        return None, None, None
    if isinstance(entry, bool) or not hasattr(entry, "__index__"):
        raise TypeError(f"{entry!r:.100} is not an index: an int, a slice, ... or None")
    index = operator.index(entry)
    return index, _LAST if index == -1 else index + 1, None


def _axes(shape: PartialShape, entries: Sequence[Any]) -> list[int | None]:
    """The axis of the tensor that each entry indexes; None for ``...`` and where the axis is not known."""
    rank = None if shape is None else len(shape)
    rest = next((i for i, entry in enumerate(entries) if entry is ...), None)
    given = len(entries) - (rest is not None)
    check(rank is None or given <= rank, f"{given} indices are given for a tensor of rank {rank}")
    return [
        i if rest is None or i < rest else None if i == rest or rank is None else rank - len(entries) + i
        for i in range(len(entries))
    ]


_SERIAL = itertools.count(1)


def _binary(type: str) -> Callable[[Tensor, Operand], Tensor]:
    """An operator that is this operation of both operands."""
    return lambda self, other: _single(type, self, other)


def _swapped(type: str) -> Callable[[Tensor, Operand], Tensor]:
    """An operator whose tensor is the second operand."""
    return lambda self, other: _single(type, other, self)


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

    __add__ = _binary("Add")
    __radd__ = _swapped("Add")
    __sub__ = _binary("Subtract")
    __rsub__ = _swapped("Subtract")
    __mul__ = _binary("Multiply")
    __rmul__ = _swapped("Multiply")
    __truediv__ = _binary("Divide")
    __rtruediv__ = _swapped("Divide")
    __mod__ = _binary("FloorMod")
    __rmod__ = _swapped("FloorMod")
    __pow__ = _binary("Power")
    __rpow__ = _swapped("Power")
    __matmul__ = _binary("MatMul")
    __rmatmul__ = _swapped("MatMul")
    __lt__ = _binary("Less")
    __le__ = _binary("LessEqual")
    __gt__ = _binary("Greater")
    __ge__ = _binary("GreaterEqual")

    # Methods, since pyright takes the type of object's otherwise.
    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return _single("Equal", self, other)

    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return _single("NotEqual", self, other)

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


def parameter(shape: ShapeLike, element: ElementLike, name: str, *, names: Sequence[str] | None = None) -> Tensor:
    """An input of a model.

    Args:
        shape: as Model.reshape takes it: [1, 3, "?"], "1,3,?,2..5", None for an unknown rank.
        element: the element type: irexec.f32, "f32", np.float32.
        name: the layer's name.
        names: the tensor names; the layer's name unless given.
    """
    builder = LooseBuilder()
    value = builder.parameter(element, shape, name, [name] if names is None else names)
    return Tensor(value, builder.fact(value))


def constant(
    array: Any, element: ElementLike | None = None, *, name: str | None = None, names: Sequence[str] = ()
) -> Tensor:
    """A constant with a copy of the values in ``array``: Python ints are i64 and floats f32 unless ``element`` says
    otherwise.

    Args:
        array: an array, or numbers, texts or lists of them.
        element: the element type.
        name: the layer's name.
        names: the tensor names.
    """
    builder = LooseBuilder()
    value = builder.constant(array, element, name, names)
    return Tensor(value, builder.fact(value))


def packed(
    data: bytes | np.ndarray, element: ElementLike, shape: Sequence[int], *, name: str | None = None,
    names: Sequence[str] = (),
) -> Tensor:  # fmt: skip
    """A constant of bytes as a .bin has them.

    Args:
        data: the bytes.
        element: the element type.
        shape: the sizes.
        name: the layer's name.
        names: the tensor names.

    Raises:
        ModelError: type and shape take another number of bytes.
    """
    raw = np.frombuffer(bytes(data), np.uint8)
    made = Constant(as_element(element), tuple(shape), BytesInMemory(raw), raw.nbytes)
    problem = size_problem(made)
    if problem is not None:
        raise ModelError(problem)
    builder = LooseBuilder()
    value = builder.raw_constant(made, name, names)
    return Tensor(value, builder.fact(value))


def result(tensor: Tensor, *, name: str | None = None) -> Tensor:
    """An output of a model, for which the Result has a name of its own; ``Model`` makes the Results of other tensors.

    Args:
        tensor: the tensor that the output gives.
        name: the layer's name; ``LAYER/sink_port_0`` unless given.
    """
    builder = LooseBuilder([tensor])
    return Tensor(Value(builder.result(tensor.value, name or "Result"), 0), tensor.fact)
