"""Inputs and outputs of a run, and the sizes of inputs that a plan need not know.

Such a size is the length of a mask that grows with each token of a language model. It stays unknown, so that one plan
serves all lengths, instead of one for each token. Which sizes these are follows from the model and from the shapes of
a run alone, never from earlier runs: kernels of another plan may give other bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.evaluate import rounded
from irexec.analysis.model import Port, expected, find_port
from irexec.analysis.shape_inference import Inference
from irexec.dtypes.codecs import check_code_points, encoded
from irexec.dtypes.elements import Element
from irexec.errors import InputError, OpError
from irexec.ir.dims import Dim, PartialShape, Size, admits, high, is_static, low, shape_text
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import readers
from irexec.ir.process import LastUsed
from irexec.messages import counted
from irexec.ops.conversion import converted
from irexec.records import Shown

Inputs = Mapping[Any, Any] | Sequence[Any] | np.ndarray | None


def bind_inputs(ports: Sequence[Port], given: Inputs, *, allow_cast: bool = False) -> list[np.ndarray]:
    """One array per input of the model, in order.

    Args:
        ports: the model's inputs.
        given: a mapping by tensor name, layer name, id, position or Port; a sequence in order; or one array
            for a model of one input. Python numbers and lists are taken as the input's type.
        allow_cast: convert arrays of another element type even where values change.

    Raises:
        InputError: a name, a shape, a type or the number of inputs is wrong, or an input is missing.
    """
    found: dict[int, Any] = {}
    for key, value in _pairs(ports, given):
        node = find_port(ports, key).node
        position = next(i for i, port in enumerate(ports) if port.node is node)
        if position in found:
            raise InputError(f"input {ports[position].name!r} is given twice, the second time as {key!r}")
        found[position] = value
    missing = [port.name for i, port in enumerate(ports) if i not in found]
    if missing:
        raise InputError(f"no value is given for {', '.join(map(repr, missing))}: the model has {expected(ports)}")
    return [checked(ports[i], found[i], allow_cast=allow_cast) for i in range(len(ports))]


def _pairs(ports: Sequence[Port], given: Inputs) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if isinstance(given, np.ndarray | np.generic | str | bytes | int | float):
        given = [given]
    if not isinstance(given, list | tuple):  # for which no abstract class has to be asked, in every run
        if isinstance(given, dict | Mapping):
            return list(given.items())
        if not isinstance(given, Sequence):
            raise InputError(
                f"inputs are a {type(given).__name__}, expected a mapping, a sequence or one array: "
                f"the model has {expected(ports)}"
            )
    if len(given) > len(ports):
        raise InputError(f"{counted(len(given), 'input')} given, the model has {len(ports)}: {expected(ports)}")
    return list(enumerate(given))


def bind_shapes(
    ports: Sequence[Port], given: Mapping[Any, Sequence[int]] | Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """One shape per input of the model, in order.

    Args:
        ports: the model's inputs.
        given: shapes by name or position, or one shape for a model of one input. Inputs of static shape may be left
            out.

    Raises:
        InputError: the input does not exist, a shape does not fit it, or one is missing.
    """
    if not isinstance(given, Mapping):
        if len(ports) != 1:
            raise InputError(f"one shape is given, but the model has {counted(len(ports), 'input')}: {expected(ports)}")
        given = {0: given}
    by_port = {find_port(ports, key).name: tuple(shape) for key, shape in given.items()}
    shapes = []
    for port in ports:
        shape = by_port.get(port.name, port.shape)
        if not is_static(shape):
            raise InputError(f"no shape is given for input {port}")
        if not admits(port.shape, shape):
            raise InputError(f"shape {shape_text(shape)} does not fit input {port}")
        shapes.append(shape)
    return tuple(shapes)


def checked(port: Port, value: Any, kind: str = "input", *, allow_cast: bool = False) -> np.ndarray:
    """The value as an array of the port's type, whose shape the port admits; ``kind`` is what messages call it.

    Raises:
        InputError: the type or the shape does not fit.
    """
    what = f"{kind} {port.name!r}"
    array = _array(what, port, value, allow_cast)
    if array.shape != port.shape and not admits(port.shape, array.shape):
        hint = _other_layout(port, array)
        raise InputError(f"{what} has shape {shape_text(array.shape)}, the model expects {port}{hint}")
    return array


def channel_orders(rank: int) -> list[tuple[int, ...]]:
    """The orders of axes that bring channels from the last axis to the second, and from the second to the last."""
    return [(0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)] if rank in (3, 4, 5) else []


def _other_layout(port: Port, array: np.ndarray) -> str:
    """A hint for an array with channels at another axis than the model's; "" for others."""
    for order, layout in zip(channel_orders(array.ndim), ("NHWC", "NCHW"), strict=False):
        if array.ndim == 4 and admits(port.shape, tuple(array.shape[axis] for axis in order)):
            return (
                f"; it looks like {layout}: transpose it by {order}, or let the model take it so: "
                f"irexec edit --layout {port.name}={layout}"
            )
    return ""


def _array(what: str, port: Port, value: Any, allow_cast: bool) -> np.ndarray:
    element = port.element
    if element is None:
        return np.asarray(value)
    if element.kind == "string":
        return _strings(what, port, value)
    if not isinstance(value, np.ndarray | np.generic):
        return _from_python(what, port, element, value, allow_cast)
    array = np.asarray(value)
    if array.dtype == element.carrier or array.dtype.name == element.extension:
        return _representable(what, element, array.astype(element.carrier, copy=False), allow_cast)
    return _converted(what, port, element, array, allow_cast)


def _strings(what: str, port: Port, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{what} is bytes that are not UTF-8: {error.reason} ({port})") from None
    try:
        if array.dtype.kind == "U":
            check_code_points(array)
        elif array.dtype != object or not all(isinstance(v, str) for v in array.ravel().tolist()):
            raise InputError(f"{what} is {array.dtype}, the model expects text ({port})")
        else:
            encoded(array)
    except OpError as error:
        raise InputError(f"{what} is not text: {error} ({port})") from None
    return array.astype(object)


def _from_python(what: str, port: Port, element: Element, value: Any, allow_cast: bool) -> np.ndarray:
    """Numbers and lists of them: floats have no type of their own and are rounded, all else must be exact."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} is not an array of {element}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{what} is not an array of {element}: "
            f"it holds {array.dtype if array.dtype != object else 'objects'} ({port})"
        )
    if array.size == 0 or (element.is_float and array.dtype.kind == "f"):
        return _representable(what, element, array.astype(element.carrier), allow_cast)
    return _converted(what, port, element, array, allow_cast)


def _converted(what: str, port: Port, element: Element, array: np.ndarray, allow_cast: bool) -> np.ndarray:
    """The array in another element type: by Convert's rules where allowed, else only if no value changes."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} is {array.dtype}, the model expects {element.carrier} ({port})")
    if allow_cast:
        return converted(array, element)
    with np.errstate(all="ignore"):
        typed = rounded(array.astype(element.carrier), element)
    same = _same_values(array, typed)
    if same.all():
        return typed
    first = array[~same].ravel()[0]
    raise InputError(
        f"{what} is {array.dtype}, the model expects {element.carrier} ({port}), which cannot hold {first}: "
        "convert it, or pass allow_cast=True"
    )


def _same_values(array: np.ndarray, typed: np.ndarray) -> np.ndarray:
    """Where the values of an array and of its conversion are the same."""
    with np.errstate(all="ignore"):
        same = np.asarray(typed.astype(array.dtype) == array)
    for floats, others in ((array, typed), (typed, array)):
        if floats.dtype.kind == "f":
            # Machines differ in the conversion of floats beyond 64 bits.
            same &= (np.abs(floats.astype(np.float64)) < 2.0**63) | (others.dtype.kind == "f")
    if array.dtype.kind == typed.dtype.kind == "f":
        return same | (np.isnan(array) & np.isnan(typed))
    return same if "b" in array.dtype.kind + typed.dtype.kind else same & ((array < 0) == (typed < 0))


def _representable(what: str, element: Element, array: np.ndarray, allow_cast: bool) -> np.ndarray:
    """An array of the carrier rounded to a float type that NumPy lacks; integers must fit their bits."""
    if element.native:
        return array
    typed = rounded(array, element)
    if element.is_integer and not allow_cast and not np.array_equal(typed, array):
        low, high = element.limits
        raise InputError(f"{what} holds values outside {low}..{high}, which {element} cannot hold")
    return typed


NamedArrays = Iterable[tuple[str, np.ndarray | None]]


def arrays_text(arrays: NamedArrays) -> str:
    """The type and shape of each: "'a': float32[1, 3], 'b': int64[]"."""
    return ", ".join(f"{name!r}: {type_and_shape(array)}" for name, array in arrays)


def type_and_shape(array: np.ndarray | None) -> str:
    """NumPy's name of the type, and the shape: "float32[1, 3]"; "nothing" for None."""
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"


class UnknownOutputError(InputError, KeyError):
    """No output has that name or position; also a KeyError, as mappings raise."""

    # KeyError quotes its message as if it were a key.
    __str__ = Exception.__str__


class Outputs(Shown, Mapping[str, np.ndarray]):
    """The results of one run, in the order of the model's Results, none of them left out; or the tensors asked for.

    It is a mapping by name; ``[]`` also takes any other name of a Result, a position, and a Port such as
    ``compiled.output(0)``.
    """

    def __init__(self, ports: Sequence[Port], arrays: Sequence[np.ndarray]) -> None:
        self._ports = list(ports)
        self._arrays = list(arrays)
        self._by_name = {port.name: array for port, array in zip(ports, arrays, strict=True)}

    def __getitem__(self, key: str | int | Port) -> np.ndarray:
        if isinstance(key, Port):
            key = key.name
        if isinstance(key, int):
            if not -len(self._arrays) <= key < len(self._arrays):
                raise UnknownOutputError(
                    f"there is no output {key}: the model has {len(self._arrays)} ({expected(self._ports)})"
                )
            return self._arrays[key]
        if key in self._by_name:
            return self._by_name[key]
        for port, array in zip(self._ports, self._arrays, strict=True):
            if key in port.names:
                return array
        raise UnknownOutputError(f"there is no output {key!r}: the model has {expected(self._ports)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Outputs({arrays_text(self.items())})"


Position = tuple[int, int]
"""An axis of an input: the index of the input, and that of the axis."""

Shapes = tuple[PartialShape, ...]

_REMEMBERED = 64
"""Patterns of shapes of which it is remembered what is unknown in their plans: those that came last."""

_FIRST, _NEXT = 64, 32
"""The sizes that stand for those of a pattern: 64, 96, 128, ..."""

_MACS_OF_ELEMENT = 10
"""Multiply-accumulates of a plan for each element that it no longer knows: such elements are computed in Python."""


class VaryingSizes:
    """The sizes of a model that plans leave unknown.

    These are the lengths of caches, which the model returns longer than it was given them, and sizes that no product
    needs. Sizes that are equal in a run are examined together. What holds of the sizes of a run must hold of all of
    their pattern, so that sizes of its own stand for them: equal ones for equal sizes; 0 and 1 stay.

    Args:
        declared: the shapes of the inputs as the model declares them.
        appended: the positions of the lengths of caches; see ``appended_lengths``.
        knows_most: whether a plan for partly known shapes knows the sizes of most products.
        are_free: whether plans for shapes without some known sizes are as good as those for all.
    """

    def __init__(
        self,
        declared: Sequence[PartialShape],
        appended: Iterable[Position],
        knows_most: Callable[[Shapes], bool],
        are_free: Callable[[Shapes, Shapes], bool],
    ) -> None:
        self._declared, self._knows_most, self._are_free = declared, knows_most, are_free
        self._appended = frozenset(appended)
        self._free = LastUsed[Shapes, frozenset[Position]](_REMEMBERED)

    def planned(self, shapes: tuple[tuple[int, ...], ...]) -> Shapes:
        """The shapes to plan for."""
        groups = self._groups(shapes)
        pattern = self._pattern(shapes, groups)
        free = self._free.get(pattern, lambda: self._examined(pattern, groups))
        return self._without(shapes, free)

    def _examined(self, pattern: Shapes, groups: Sequence[frozenset[Position]]) -> frozenset[Position]:
        """The positions that are unknown in plans for a pattern, in which the lengths of caches are unknown."""
        free = self._appended if self._appended and self._knows_most(pattern) else frozenset()
        opened: frozenset[Position] = frozenset()
        for group in groups:
            if self._are_free(self._without(pattern, opened), self._without(pattern, opened | group)):
                opened |= group
        return free | opened

    def _groups(self, shapes: Sequence[tuple[int, ...]]) -> list[frozenset[Position]]:
        """The positions of equal sizes of more than 1 that the model leaves open, but for those of caches."""
        groups: dict[int, set[Position]] = {}
        for i, shape in enumerate(shapes):
            for axis, size in enumerate(shape):
                if size > 1 and self._is_open(i, axis) and (i, axis) not in self._appended:
                    groups.setdefault(size, set()).add((i, axis))
        return [frozenset(group) for group in groups.values()]

    def _is_open(self, index: int, axis: int) -> bool:
        declared = self._declared[index]
        return declared is None or isinstance(declared[axis], Dim)

    def _pattern(self, shapes: Shapes, groups: Sequence[frozenset[Position]]) -> Shapes:
        """The shapes with sizes that stand for those of the groups."""
        made = [list(shape or ()) for shape in shapes]
        for number, group in enumerate(groups):
            for i, axis in group:
                declared = self._declared[i]
                made[i][axis] = _within(_FIRST + number * _NEXT, 1 if declared is None else declared[axis])
        return self._without(tuple(map(tuple, made)), self._appended)

    def _without(self, shapes: Shapes, positions: Iterable[Position]) -> Shapes:
        """The shapes with the declared sizes at some positions."""
        made = [list(shape or ()) for shape in shapes]
        for i, axis in positions:
            declared = self._declared[i]
            if declared is not None:
                made[i][axis] = declared[axis]
        return tuple(map(tuple, made))


def _within(size: int, declared: Size) -> int:
    """The size, moved into the bounds of a declared one."""
    largest = high(declared) if isinstance(declared, Dim) else None
    return max(low(declared), size if largest is None else min(size, largest))


def appended_lengths(graph: Graph, declared: Sequence[PartialShape]) -> Iterator[Position]:
    """The positions of the lengths of caches: open sizes along which an input is a part of a Concat that is returned.

    There may be Converts, and Gathers along another axis, in between.
    """
    reading = readers(graph.nodes)

    def reached(value: Value, type: str, axis: int, rank: int) -> Iterator[Node]:
        for node in reading.get(value, ()):
            if node.type == type:
                yield node
            elif node.type == "Convert" or (node.type == "Gather" and node.inputs[0] is value and _keeps(node, axis)):
                yield from reached(node.outputs[0], type, axis, rank)

    for i, node in enumerate(graph.parameters):
        shape = declared[i] or ()
        for axis, size in enumerate(shape):
            if isinstance(size, Dim) and any(
                typed_attribute(concat, "axis") in (axis, axis - len(shape))
                and any(reached(concat.outputs[0], "Result", axis, len(shape)))
                for concat in reached(node.outputs[0], "Concat", axis, len(shape))
            ):
                yield i, axis


def _keeps(gather: Node, axis: int) -> bool:
    """Whether a Gather leaves an axis of its data as it is: it picks entries of axis 0, the batch."""
    source = None if len(gather.inputs) < 3 else gather.inputs[2]
    constant = None if source is None else source.node.constant
    return axis > 0 and constant is not None and not constant.raw.any()


def knows_most_products(graph: Graph, partial: Inference) -> bool:
    """Whether an inference knows the multiply-accumulates of most products."""
    from irexec.analysis.cost import LayerCosts, has_macs

    costs = LayerCosts(graph, partial.facts)
    known = [costs.macs(node) is not None for node in costs.layers if has_macs(node.type)]
    return 2 * sum(known) > len(known)


def keeps_products(graph: Graph, known: Inference, partial: Inference) -> bool:
    """Whether every multiply-accumulate that one inference knows is known to another one, and few other elements are
    not."""
    # Most runs do not need it, and would begin later.
    from irexec.analysis.cost import LayerCosts

    before, after = LayerCosts(graph, known.facts), LayerCosts(graph, partial.facts)
    macs = lost = 0
    for node in before.layers:
        count = before.macs(node)
        if count and after.macs(node) is None:
            return False
        macs += count or 0
        for value in node.outputs:
            if known[value].is_static and not partial[value].is_static:
                lost += math.prod(known[value].static_shape)
    return lost * _MACS_OF_ELEMENT <= macs
