"""Single changes of one layer, to be tried on a layer that may be at fault."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from irexec.analysis.builder import Adding
from irexec.dtypes.elements import Element, element_of
from irexec.errors import UnsupportedError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.schema.attributes import write_attribute
from irexec.schema.registry import resolve
from irexec.tools.compare.layers import COMMUTATIVE

_LISTED = 8
"""Maximum number of integers of an attribute or a constant that are changed one by one."""
_PARTS = 8
"""Maximum number of parts of one constant of A that are tried."""
_OPERANDS = 28
"""Maximum number of pairs of inputs that are exchanged: all pairs of 8 inputs, such as the pads of 4 axes."""
_SIZES = 64
"""Limit of the integers that are tried in place of a computed one."""
_ORDERS = 4
"""Maximum number of axes of a Transpose for which all orders are tried; of more axes two are exchanged."""
_GIVEN = ("Parameter", "Constant", "Result", "ReadValue", "Assign")


@dataclass(frozen=True)
class Edit:
    """A change of a layer.

    Attributes:
        node: the layer of B.
        text: the change, to be read after "with".
        apply: changes a copy of the layer in a graph, given as its layers.
    """

    node: Node
    text: str
    apply: Callable[[Node, list[Node]], None]


@dataclass(frozen=True)
class Theirs:
    """Values of A from which changes are made.

    Attributes:
        floats: attributes and single values of constants.
        arrays: tensors of floating-point constants, by their names.
    """

    floats: tuple[float, ...]
    arrays: tuple[tuple[str, np.ndarray], ...]


def edits(node: Node, theirs: Theirs, constant: set[Node]) -> Iterator[Edit]:
    """The changes of a layer of B that are tried; ``constant``: the layers that are computed from constants alone."""
    if node.type in _GIVEN or node.bodies:
        return
    yield from _with_exchanged_inputs(node)
    yield from _with_other_attributes(node, theirs)
    for i, value in enumerate(node.inputs):
        if value is not None and (value.node.constant is not None or value.node in constant):
            yield from _with_constant_of_a(node, i, value, theirs)
        if value is not None and value.node.constant is not None:
            yield from _with_other_integers(node, i, value.node)


def _with_exchanged_inputs(node: Node) -> Iterator[Edit]:
    if node.type in COMMUTATIVE:
        return
    inputs = [(i, value) for i, value in enumerate(node.inputs) if value is not None]
    pairs = [
        (i, j)
        for (i, one), (j, other) in itertools.combinations(inputs, 2)
        if one is not other and one.element_type is not None and one.element_type is other.element_type
    ]
    for i, j in pairs[:_OPERANDS]:
        yield Edit(node, f"inputs {i} and {j} exchanged", partial(_exchange, i=i, j=j))


def _exchange(node: Node, _: list[Node], *, i: int, j: int) -> None:
    one, other = node.ports[i], node.ports[j]
    one.source, other.source = other.source, one.source


def _with_other_attributes(node: Node, theirs: Theirs) -> Iterator[Edit]:
    try:
        # The spellings of the attributes that are enums.
        choices = {one.name: one.choices for one in resolve(node.type, node.version).attributes}
    except UnsupportedError:
        choices = {}
    for name, text in sorted(node.attributes.items(), key=lambda one: bool(choices.get(one[0]))):
        if name == "auto_broadcast":
            # The rule decides which shapes are allowed, hardly ever what is computed.
            continue
        for other in _other_texts(text.strip(), choices.get(name, ()), theirs):
            yield Edit(node, f"{name}={other}", partial(_set, name=name, text=other))


def _set(node: Node, _: list[Node], *, name: str, text: str) -> None:
    node.attributes[name] = text
    node.typed = None


def _other_texts(text: str, choices: Sequence[str], theirs: Theirs) -> Iterator[str]:
    """Other values of an attribute: another truth value or choice, an integer that is larger or smaller by 1, or a
    floating-point value of A."""
    if choices:
        yield from (one for one in choices if one.lower() != text.lower())
    elif text.lower() in ("true", "false"):
        yield "true" if text.lower() == "false" else "false"
    else:
        parts = [part.strip() for part in text.split(",")]
        for i, part in enumerate(parts[:_LISTED]):
            for other in _other_numbers(part, theirs):
                yield ", ".join([*parts[:i], other, *parts[i + 1 :]])


def _other_numbers(text: str, theirs: Theirs) -> Iterator[str]:
    if text.lstrip("-").isdigit():
        yield from (str(int(text) + step) for step in (-1, 1))
        return
    try:
        own = float(text)
    except ValueError:
        return
    yield from (write_attribute(value) for value in theirs.floats if value != own)


def _with_constant_of_a(node: Node, i: int, value: Value, theirs: Theirs) -> Iterator[Edit]:
    """The layer with constants of A in place of one of its own; a single value is repeated."""
    fact = value.fact
    if fact is None or not fact.is_static or fact.element is None or not fact.element.is_float:
        return
    element, shape = fact.element, fact.static_shape
    for name, array in theirs.arrays:
        for fitting in _fitting(array, shape):
            change = partial(_replace, i=i, array=fitting, element=element)
            yield Edit(node, f"A's constant {name!r} at input {i}", change)


def _fitting(array: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """An array in another shape: with as many elements, transposed, or repeated; or parts of an array.

    The parts of one constant of A may be the weights of several layers of B.
    """
    size = math.prod(shape)
    if array.size == size:
        yield array.reshape(shape)
        if array.ndim == 2 and min(array.shape) > 1 and array.T.shape == shape:
            yield array.T
    elif array.size == 1:
        yield np.full(shape, array.reshape(()), array.dtype)
    elif size < array.size <= _PARTS * size:
        for axis, length in enumerate(array.shape):
            part, left = divmod(size * length, array.size)
            for start in range(0, length - part + 1, part) if not left else ():
                yield from _fitting(array.take(range(start, start + part), axis), shape)


def _replace(node: Node, nodes: list[Node], *, i: int, array: np.ndarray, element: Element) -> None:
    """Give a layer a new Constant."""
    node.ports[i].source = Adding(nodes).constant(array, element)


def _with_other_integers(node: Node, i: int, source: Node) -> Iterator[Edit]:
    """The layer with other integers in a small constant: two exchanged, or one that is larger or smaller by 1."""
    constant = source.constant
    if constant is None or not constant.element.is_integer or not 0 < constant.count <= _LISTED:
        return
    element, values = constant.element, constant_value(constant)
    for other in _other_integers(node, i, values):
        yield Edit(node, f"{other.tolist()} at input {i}", partial(_replace, i=i, array=other, element=element))


def _other_integers(node: Node, i: int, values: np.ndarray) -> Iterator[np.ndarray]:
    flat, limits = values.ravel(), np.iinfo(values.dtype)
    is_order = node.type == "Transpose" and i == 1
    if is_order and flat.size <= _ORDERS:
        orders = itertools.permutations(range(flat.size))
        yield from (np.array(order, values.dtype) for order in orders if list(order) != flat.tolist())
        return
    for one, other in itertools.combinations(range(flat.size), 2):
        if flat[one] != flat[other]:
            moved = flat.copy()
            moved[[one, other]] = flat[[other, one]]
            yield moved.reshape(values.shape)
    for k in range(0 if is_order else flat.size):
        for value in _near(node, int(flat[k]), flat.size):
            if not limits.min <= value <= limits.max:
                # The end of a Slice is often the largest integer.
                continue
            moved = flat.copy()
            moved[k] = value
            yield moved.reshape(values.shape)


def _near(node: Node, value: int, count: int) -> list[int]:
    """Other values of an integer: its neighbours, and all axes of the first input if it is the only one."""
    fact = node.inputs[0].fact if node.inputs and node.inputs[0] is not None else None
    rank = len(fact.shape) if count == 1 and fact is not None and fact.shape is not None else 0
    return [one for one in dict.fromkeys([value - 1, value + 1, *range(rank)]) if one != value]


def edits_of_sizes(node: Node, sizes: Mapping[Value, np.ndarray]) -> Iterator[Edit]:
    """The layer with other integers in place of a computed one: B may lack a layer in front of it."""
    for i, value in enumerate(node.inputs):
        if value is not None and value in sizes:
            size = int(sizes[value].reshape(()))
            element = element_of(sizes[value].dtype)
            for other in range(min(_SIZES, 2 * size + 1)):
                if other != size:
                    change = partial(_replace, i=i, array=np.full_like(sizes[value], other), element=element)
                    yield Edit(node, f"{other} in place of {size} at input {i}", change)
