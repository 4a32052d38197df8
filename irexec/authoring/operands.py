"""Numbers and indices of Python as inputs of operations."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from irexec.dtypes.elements import Element
from irexec.dtypes.limits import lowest
from irexec.errors import OpError, check
from irexec.ir.dims import PartialShape
from irexec.schema.opdef import OpDef

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
            _check_index(bounds[0] or 0, shape, axis)
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


def _check_index(index: int, shape: Sequence[Any], axis: int) -> None:
    size = shape[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise OpError(f"index {index} is out of range for axis {axis} of size {size}")
