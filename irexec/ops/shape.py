"""Operations that read or change the shape: ShapeOf, Reshape, Squeeze, Unsqueeze."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.dtypes.elements import I64, Element, element
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, PartialShape, Shape, Size, count, high, join, low, may_equal, shape_text, span
from irexec.ir.facts import Fact, integers
from irexec.schema.opdef import AnyTensor, AxesTensor, IntegerVector
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axes, open_shape, vector_length

IndexType = Literal["i64", "i32"]


def _shape_value(data: Fact, kind: Element) -> Fact:
    if data.shape is None:
        return Fact(kind, (ANY,))
    value = np.empty(len(data.shape), object)
    value[:] = data.shape
    if not any(isinstance(size, Dim) or size > np.iinfo(kind.carrier).max for size in data.shape):
        value = value.astype(kind.carrier)
    return Fact(kind, (len(data.shape),), value)


@op("ShapeOf", since=1, ignores=("output_type",))
def shape_of_1(data: AnyTensor) -> np.ndarray:
    """The sizes of ``data`` as i64. Source: ShapeOf-1."""
    return np.array(data.shape, np.int64)


@shape_of_1.shape_rule
def _shape_of_1_facts(data: Fact) -> Fact:
    return _shape_value(data, I64)


@op("ShapeOf", since=3)
def shape_of_3(data: AnyTensor, *, output_type: IndexType = "i64") -> np.ndarray:
    """The sizes of ``data``. Source: ShapeOf-3."""
    return np.array(data.shape, element(output_type).carrier)


@shape_of_3.shape_rule
def _shape_of_3_facts(data: Fact, *, output_type: IndexType) -> Fact:
    return _shape_value(data, element(output_type))


@op("Reshape", since=1, symbolic=True, view=True)
def reshape_1(data: AnyTensor, shape: IntegerVector, *, special_zero: bool) -> np.ndarray:
    """``data`` in another shape: -1 is the size that the number of elements gives, with ``special_zero`` 0 keeps the
    size of ``data``.

    Beside a 0 that is not copied, -1 is known only for data with a size of 0: OpenVINO refuses it unless such a size is
    known. Source: Reshape-1 and openvino ``reshape_shape_inference.hpp``.
    """
    sizes = integers(shape, "shape")
    target = [data.shape[i] if size == 0 and special_zero and i < data.ndim else size for i, size in enumerate(sizes)]
    if data.size == 0:
        # NumPy refuses -1 where another size is 0.
        copied = {i for i, size in enumerate(sizes) if size == 0 and special_zero}
        rest = [size for i, size in enumerate(data.shape) if i not in copied]
        known = [size for i, size in enumerate(target) if i not in copied and size != -1]
        target = [
            _inferred_size(list(rest), list(known), f"{data.shape} cannot be reshaped to {sizes}")
            if size == -1
            else size
            for size in target
        ]
    return data.reshape(target)


@reshape_1.shape_rule
def _reshape_1_facts(data: Fact, shape: Fact, *, special_zero: bool) -> Fact:
    pattern = shape.sizes("shape")
    if pattern is None:
        return Fact(data.element, open_shape(vector_length(shape)))
    return Fact(data.element, _reshaped(data.shape, pattern, special_zero))


def _reshaped(data: PartialShape, pattern: tuple[Size, ...], special_zero: bool) -> Shape:
    check(sum(size == -1 for size in pattern) <= 1, f"pattern {list(pattern)} has more than one -1")
    check(
        all(low(size) >= -1 for size in pattern if isinstance(size, int)),
        f"pattern {list(pattern)} has a size below -1",
    )
    target, copied = _copied(data, pattern, special_zero)
    known = [size for i, size in enumerate(target) if pattern[i] != -1 and i not in copied]
    rest = None if data is None else [size for i, size in enumerate(data) if i not in copied]
    _check_count(data, target, rest, known, pattern)
    if -1 in pattern and 0 in known and 0 not in (data or ()):
        raise OpError(f"pattern {list(pattern)} has -1 beside 0, but no size of {shape_text(data)} is known to be 0")
    if -1 not in pattern:
        return tuple(_sole_unknown(target, rest, known, copied))
    inferred = _inferred_size(rest, known, f"{shape_text(data)} cannot be reshaped to {list(pattern)}")
    return tuple(inferred if size == -1 else target[i] for i, size in enumerate(pattern))


def _copied(data: PartialShape, pattern: tuple[Size, ...], special_zero: bool) -> tuple[list[Size], set[int]]:
    """The sizes in the pattern, and the indices of sizes copied from the data."""
    target: list[Size] = []
    copied: set[int] = set()
    for i, size in enumerate(pattern):
        if size == 0 and special_zero and isinstance(size, int):
            check(
                data is None or i < len(data),
                f"pattern {list(pattern)} copies size {i}, which data {shape_text(data)} does not have",
            )
            target.append(ANY if data is None else data[i])
            copied.add(i)
        elif isinstance(size, Dim) and size.lo < 1:
            # It may be 0 or -1.
            wide: Size = ANY if size.lo < 0 else size
            target.append(
                join(wide, data[i])
                if special_zero and data is not None and i < len(data)
                else ANY
                if special_zero
                else wide
            )
        else:
            target.append(size)
    return target, copied


def _check_count(
    data: PartialShape, target: list[Size], rest: list[Size] | None, known: list[Size], pattern: tuple[Size, ...]
) -> None:
    if data is None or rest is None or -1 in pattern:
        return
    total, expected = count(rest), count(known)
    if isinstance(total, int) and isinstance(expected, int):
        check(total == expected, f"{shape_text(data)} cannot be reshaped to {list(pattern)}")


def _sole_unknown(target: list[Size], rest: list[Size] | None, known: list[Size], copied: set[int]) -> list[Size]:
    """The sizes, where a single unknown one is computed from the number of elements if that is known."""
    unknown = [i for i, size in enumerate(target) if isinstance(size, Dim) and i not in copied]
    total = None if rest is None else count(rest)
    others = count(size for size in known if isinstance(size, int))
    if len(unknown) != 1 or not isinstance(total, int) or not isinstance(others, int) or others == 0 or total % others:
        return target
    return [total // others if i == unknown[0] else size for i, size in enumerate(target)]


def _inferred_size(rest: list[Size] | None, known: list[Size], message: str) -> Size:
    """The size of -1: the number of elements of the sizes not copied, over that of the other sizes in the pattern."""
    if rest is None:
        return ANY
    rest, known = list(rest), list(known)
    for size in list(known):
        # A symbol, or a size other than 0, that is on both sides cancels.
        if size in rest and size != 0 and (isinstance(size, int) or size.name):
            rest.remove(size)
            known.remove(size)
    total, others = count(rest), count(known)
    if others == 0:
        # Any size fits; OpenVINO uses 1.
        check(low(total) <= 0, message)
        return 1
    if isinstance(total, int) and isinstance(others, int):
        check(total % others == 0, message)
        return total // others
    if others == 1:
        return total
    # The quotient is an integer, so it is between the bounds rounded inwards; where there are elements it is at least
    # 1.
    divisor, max_total = high(others), high(total)
    minimum = min(low(total), 1) if divisor is None else -(-low(total) // max(divisor, 1))
    maximum = None if max_total is None else max(max_total, 1) if low(others) < 1 else max_total // low(others)
    check(maximum is None or minimum <= maximum, message)
    return span(minimum, maximum)


@op("Squeeze", since=1, symbolic=True, view=True)
def squeeze_1(data: AnyTensor, axes: AxesTensor | None = None) -> np.ndarray:
    """``data`` without the given axes of size 1, or without all of them; given axes of another size are kept.

    A size that is not known is assumed to be 1 if it may be. Source: Squeeze-1, since OpenVINO 2024.3 (an error
    before).
    """
    return data.reshape(_squeezed(data.shape, None if axes is None else integers(axes, "axes"), skip=False) or ())


def _squeezed(shape: PartialShape, axes: tuple[int, ...] | None, *, skip: bool) -> PartialShape:
    if shape is None:
        return None
    if not axes:
        # No axes given, or an empty list: every axis of size 1 is removed.
        unknown = any(isinstance(size, Dim) and may_equal(size, 1) for size in shape)
        return None if unknown else tuple(size for size in shape if size != 1)
    removed = {axis for axis in normalize_axes(axes, len(shape), scalar=True) if may_equal(shape[axis], 1)}
    if skip and any(isinstance(shape[axis], Dim) for axis in removed):
        return None
    return tuple(size for i, size in enumerate(shape) if i not in removed)


def _squeeze_facts(data: Fact, axes: Fact | None, *, skip: bool, assume_squeezed: bool) -> Fact:
    """``assume_squeezed``: a single axis that is not known is assumed to be removed."""
    if axes is None:
        return Fact(data.element, _squeezed(data.shape, None, skip=skip))
    known = axes.ints("axes")
    if known is not None:
        return Fact(data.element, _squeezed(data.shape, known, skip=skip))
    if data.shape is None or not any(may_equal(size, 1) for size in data.shape):
        return Fact(data.element, data.shape)
    # Several axes may be the same one twice.
    return Fact(data.element, open_shape(len(data.shape) - 1) if assume_squeezed and vector_length(axes) == 1 else None)


@squeeze_1.shape_rule
def _squeeze_1_facts(data: Fact, axes: Fact | None = None) -> Fact:
    return _squeeze_facts(data, axes, skip=False, assume_squeezed=True)


@op("Squeeze", since=15, symbolic=True, view=True)
def squeeze_15(data: AnyTensor, axes: AxesTensor | None = None, *, allow_axis_skip: bool = False) -> np.ndarray:
    """Same as Squeeze-1; with ``allow_axis_skip`` sizes that are not known are not assumed to be 1. Source:
    Squeeze-15."""
    return data.reshape(
        _squeezed(data.shape, None if axes is None else integers(axes, "axes"), skip=allow_axis_skip) or ()
    )


@squeeze_15.shape_rule
def _squeeze_15_facts(data: Fact, axes: Fact | None = None, *, allow_axis_skip: bool) -> Fact:
    return _squeeze_facts(data, axes, skip=allow_axis_skip, assume_squeezed=False)


@op("Unsqueeze", since=1, symbolic=True, view=True)
def unsqueeze_1(data: AnyTensor, axes: AxesTensor) -> np.ndarray:
    """``data`` with new axes of size 1 at the given positions of the result. Source: Unsqueeze-1."""
    return data.reshape(_unsqueezed(data.shape, integers(axes, "axes")))


def _unsqueezed(shape: Shape, axes: tuple[int, ...]) -> Shape:
    rank = len(shape) + len(axes)
    new = normalize_axes(axes, rank)
    check(len(set(new)) == len(new), f"axes {list(axes)} has an axis twice")
    rest = iter(shape)
    return tuple(1 if i in new else next(rest) for i in range(rank))


@unsqueeze_1.shape_rule
def _unsqueeze_1_facts(data: Fact, axes: Fact) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    known, added = axes.ints("axes"), vector_length(axes)
    if known is None:
        return Fact(data.element, open_shape(None if added is None else len(data.shape) + added))
    return Fact(data.element, _unsqueezed(data.shape, known))
