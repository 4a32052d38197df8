"""Remove operations that return their input unchanged, Gathers of which only sizes are read, and duplicates.

Adding 0.0 is not among them: it changes -0.0. Duplicates are operations that compute the same (common subexpressions).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, computation, created
from irexec.dtypes.elements import Element
from irexec.schema.attributes import ElementTypes

IDEMPOTENT = frozenset({"Relu", "Abs", "Sign", "Ceiling", "Floor", "Round", "Clamp"})

Reason = str
Source = CompileValue | Reason | None
"""The value that an output is equal to; a reason if it is not equal; None without a reason."""
SMALL = 256
"""Constants of at most this number of bytes are compared by value, larger ones by where they come from."""


def remove_no_ops(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Operations that read the output of such an operation read its input instead."""
    for operation in graph.order():
        data = _sized_alike(graph, operation) if operation.type == "ShapeOf" else None
        if data is not None and operation.definition is not None:
            sizes = created(graph, operation.definition, [data], operation.attributes, [operation])
            rewriting.replace(graph, operation, sizes.output)
            continue
        rule = _RULES.get(operation.type)
        if rule is None or operation.chain is not None:
            continue
        source = rule(operation)
        if isinstance(source, str):
            rewriting.refused(operation, source)
        elif source is not None:
            rewriting.replace(graph, operation, source)


def _sized_alike(graph: CompileGraph, shape_of: Operation) -> CompileValue | None:
    """The data of a Gather along one axis, of which only sizes along other axes are read; None for anything else.

    A decoder asks for the length of its cache after the entries of the batch were reordered, which copies the cache.
    """
    picked, sizes = _data(shape_of).producer, shape_of.output
    if picked is None or picked.type != "Gather" or graph.is_target(sizes):
        return None
    data, indices, axis = picked.inputs
    along, rank = axis.fact.ints(), data.fact.rank
    if along is None or rank is None or indices.fact.rank != 1 or picked.attributes.get("batch_dims"):
        return None
    others = set(range(rank)) - {along[0] % rank}
    return data if all(_picks(reader, sizes, others) for reader in sizes.readers) else None


def _picks(operation: Operation, sizes: CompileValue, axes: Set[int]) -> bool:
    """Whether an operation is a Gather of the sizes of some axes."""
    if operation.type != "Gather" or operation.inputs[0] is not sizes or operation.attributes.get("batch_dims"):
        return False
    indices, axis = (value.fact.ints() for value in operation.inputs[1:])
    return indices is not None and axes >= set(indices) and axis is not None and axis[0] in (0, -1)


def _data(operation: Operation) -> CompileValue:
    return operation.inputs[0]


def _if_shape_is_kept(operation: Operation) -> Source:
    """For operations that keep the order of the elements. Inputs that are not known are checked in each run."""
    if any(value.known is None for value in operation.inputs[1:]):
        return "its inputs are not known"
    return _data(operation) if len(operation.outputs) == 1 and _same_shape(_data(operation), operation.output) else None


def _same_shape(a: CompileValue, b: CompileValue) -> bool:
    return a.fact.is_static and a.fact.shape == b.fact.shape


def _broadcast(operation: Operation) -> Source:
    if not _same_shape(_data(operation), operation.output):
        return None
    if operation.inputs[1].known is None:
        return "its target is not known"
    mapping = operation.inputs[2].fact.ints() if len(operation.inputs) > 2 else ()
    if mapping is None or list(mapping) != sorted(mapping):
        return "its axes may be permuted"
    return _data(operation)


def _slice(operation: Operation) -> Source:
    """The data of a slice of all elements in their order; None, or the reason, of any other slice."""
    if not _same_shape(_data(operation), operation.output):
        return None
    steps = operation.inputs[3].fact.ints() if len(operation.inputs) > 3 else (1,)
    if steps is None or any(step < 0 for step in steps):
        return "it may reverse axes"
    return _data(operation)


def _pad(operation: Operation) -> Source:
    pads = [value.fact.ints() for value in operation.inputs[1:3]]
    if any(found is None for found in pads):
        return "its pads are not known"
    return None if any(any(found) for found in pads if found) else _data(operation)


def _transpose(operation: Operation) -> Source:
    """One that moves no axis, or only axes of size 1 among equal sizes."""
    order, data = operation.inputs[1].fact.ints(), _data(operation)
    rank = data.fact.rank
    if order is None or rank is None:
        return "its order is not known"
    order = order or tuple(reversed(range(rank)))
    if list(order) == list(range(rank)):
        return data
    moved = [axis for axis in order if (data.fact.shape or ())[axis] != 1]
    return data if _same_shape(data, operation.output) and moved == sorted(moved) else None


def _interpolate(operation: Operation) -> Source:
    """Nearest elements at integer coordinates; other modes would multiply neighbours that may be infinite by 0."""
    data, attributes = _data(operation), operation.attributes["attributes"]
    if not _same_shape(data, operation.output):
        return None
    if any(attributes.pads_begin) or any(attributes.pads_end):
        return "it is padded"
    if (
        attributes.mode != "nearest"
        or getattr(attributes, "coordinate_transformation_mode", "") == "tf_half_pixel_for_nn"
    ):
        return "its mode is not exact where the size stays"
    if getattr(attributes, "by_scales", False):
        scales = operation.inputs[
            2 if operation.definition is not None and operation.definition.since == 4 else 1
        ].known
        if scales is None or np.any(scales != 1):
            return "its scales are not 1"
    return data


def _convert(operation: Operation) -> Source:
    data, element = _data(operation), operation.output.fact.element
    if element is None or data.fact.element is None:
        return "an element type is not known"
    if data.fact.element is element:
        return data
    before = data.producer
    if before is None or before.type not in ("Convert", "ConvertLike") or before.chain is not None:
        return None
    origin = _data(before)
    if origin.fact.element is not element:
        return None
    return (
        origin if holds(data.fact.element, element) else f"{data.fact.element} does not hold every value of {element}"
    )


def holds(wide: Element, narrow: Element) -> bool:
    """Whether ``wide`` is a type of the same kind that has every value of ``narrow``."""
    if not narrow.native or wide.bits < 8 * wide.carrier.itemsize or wide.is_float != narrow.is_float:
        return False
    return (
        wide.native
        and np.can_cast(narrow.carrier, wide.carrier, "safe")
        and wide.kind != "string"
        and narrow.kind != "string"
    )


def _neutral(number: float, *sides: int) -> Callable[[Operation], Source]:
    """The rule of a binary operation with a neutral constant at one of ``sides``."""

    def rule(operation: Operation) -> Source:
        for side in sides:
            constant, other = operation.inputs[side], operation.inputs[1 - side]
            if constant.known is not None and _all_equal(constant.known, number):
                return other if _keeps(other, constant, operation.output) else "the constant broadcasts the other input"
        return None

    return rule


def _all_equal(array: np.ndarray, number: float) -> bool:
    if array.dtype.kind not in "fiu" or not array.size:
        return False
    wanted = array.dtype.type(number)
    return bool((array == wanted).all()) and (
        array.dtype.kind != "f" or bool((np.signbit(array) == np.signbit(wanted)).all())
    )


def _keeps(other: CompileValue, constant: CompileValue, output: CompileValue) -> bool:
    """Whether the result has the shape of ``other``, whatever that will be."""
    if output.fact.element is not other.fact.element:
        return False
    if _same_shape(other, output):
        return True
    shape, rank = constant.fact.shape or (), other.fact.rank
    return rank is not None and len(shape) <= rank and all(size == 1 for size in shape)


def _add(operation: Operation) -> Source:
    element = operation.output.fact.element
    return None if element is None else _neutral(-0.0 if element.is_float else 0, 0, 1)(operation)


def _power(operation: Operation) -> Source:
    element = operation.output.fact.element
    return _neutral(1, 1)(operation) if element is not None and element.is_float else None


def _idempotent(operation: Operation) -> Source:
    before = _data(operation).producer
    if before is None or before.definition is not operation.definition or before.chain is not None:
        return None
    return (
        _data(operation)
        if before.attributes == operation.attributes
        else "it is applied twice with different attributes"
    )


_RULES: dict[str, Callable[[Operation], Source]] = {
    "Identity": _data,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Tile", "Split", "VariadicSplit"), _if_shape_is_kept),
    **dict.fromkeys(IDEMPOTENT, _idempotent),
    "Concat": lambda operation: _data(operation) if len(operation.inputs) == 1 else None,
    "Broadcast": _broadcast,
    "Slice": _slice,
    "StridedSlice": _slice,
    "Pad": _pad,
    "Transpose": _transpose,
    "Interpolate": _interpolate,
    "Convert": _convert,
    "ConvertLike": _convert,
    "Multiply": _neutral(1, 0, 1),
    "Divide": _neutral(1, 1),
    "Subtract": _neutral(0, 1),
    "Add": _add,
    "Power": _power,
}


def merge_duplicates(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Keep the first of several operations of equal definition, attributes and inputs, and redirect readers."""
    first: dict[Hashable, Operation] = {}
    for operation in graph.order():
        reason = _obstacle(operation)
        if reason is not None:
            rewriting.refused(operation, reason)
            continue
        kept = first.setdefault(_key(operation), operation)
        if kept is not operation:
            rewriting.replace(graph, operation, *kept.outputs)


def _obstacle(operation: Operation) -> str | None:
    """Why the operation must be computed anew each time; None if it need not."""
    definition = operation.definition
    if definition is None or operation.chain is not None:
        return "it is a chain already"
    if not definition.deterministic:
        return "it gives another result each time"
    if (
        definition.stateful
        or operation.bodies
        or any(kind is not ElementTypes for kind in definition.injected.values())
    ):
        return "it has state or bodies"
    return None


def _key(operation: Operation) -> Hashable:
    return computation(operation), tuple(map(_input, operation.inputs)), len(operation.outputs)


def _input(value: CompileValue) -> Hashable:
    if value.constant is None:
        return id(value)
    known = value.known
    if known is None or known.nbytes > SMALL or known.dtype == np.dtype(object):
        return id(value.constant)
    return value.fact.element, known.shape, known.dtype.str, known.tobytes()
