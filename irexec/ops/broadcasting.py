"""Tensors repeated or extended: Broadcast, Tile, Pad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import (
    ANY,
    Dim,
    PartialShape,
    Shape,
    Size,
    at_least,
    broadcastable_to,
    low,
    may_equal,
    meet,
    shape_text,
)
from irexec.ir.facts import Fact, integers
from irexec.reference.limits import check_memory
from irexec.reference.windows import Mode as PadMode
from irexec.reference.windows import padded
from irexec.schema.opdef import SCALAR, AnyTensor, IntegerTensor, IntegerVector
from irexec.schema.registry import op
from irexec.schema.shape_rules import broadcast, open_shape, pdpd_start, unify_elements, vector_length


def _explicit(data: np.ndarray, axes: tuple[int, ...], rank: int) -> np.ndarray:
    """The data reshaped to ``rank``, its axes at the given positions and sizes 1 elsewhere."""
    sizes = [1] * rank
    for axis, size in zip(axes, data.shape, strict=True):
        sizes[axis] = size
    return data.transpose(np.argsort(axes)).reshape(sizes) if axes else data.reshape(sizes)


def _target_shape(target: Fact) -> PartialShape:
    sizes = target.sizes("target_shape")
    if sizes is None:
        return open_shape(vector_length(target))
    check(
        all(low(size) >= 0 for size in sizes if isinstance(size, int)),
        f"target_shape {list(sizes)} has a negative size",
    )
    return tuple(at_least(size, 0) for size in sizes)


def _narrowed(shape: Shape, target: Shape) -> Shape:
    """The target; an unknown size of it is the size of the data if the latter is known and not 1."""
    lead = len(target) - len(shape)
    return tuple(target[:lead]) + tuple(
        size if isinstance(size, int) and size != 1 and isinstance(given, Dim) else given
        for size, given in zip(shape, target[lead:], strict=True)
    )


def _check_explicit(shape: Shape, target: Shape, axes: tuple[int, ...] | None) -> None:
    if axes is None:
        return
    check(
        len(axes) == len(shape),
        f"axes_mapping {list(axes)} does not have one axis for each of data {shape_text(shape)}",
    )
    check(len(set(axes)) == len(axes), f"axes_mapping {list(axes)} has an axis twice")
    for axis, size in zip(axes, shape, strict=True):
        check(0 <= axis < len(target), f"axes_mapping {list(axes)} is out of range for {shape_text(target)}")
        if size != 1:
            try:
                meet(size, target[axis])
            except OpError:
                check(
                    not isinstance(size, int),
                    f"data {shape_text(shape)} does not fit {shape_text(target)} at axis {axis}",
                )


@op("Broadcast", since=1, symbolic=True)
def broadcast_1(
    data: AnyTensor,
    target_shape: IntegerVector,
    axes_mapping: IntegerTensor | None = None,
    *,
    mode: Literal["numpy", "explicit", "pdpd", "none"] = "numpy",
    mode_axis: int | None = None,
) -> np.ndarray:
    """``data`` repeated to ``target_shape``; ``axes_mapping`` has the positions of its axes if mode is explicit.

    pdpd: its axes are aligned with those of the target from ``mode_axis`` on. Source: Broadcast-1, and OpenVINO, which
    writes explicit as "none", for pdpd, which is not in the specification. In the other modes OpenVINO writes a scalar
    for ``axes_mapping``.
    """
    target = integers(target_shape, "target_shape")
    if mode == "pdpd":
        start = pdpd_start(len(target), data.ndim, mode_axis)
        data = data.reshape(data.shape + (1,) * (len(target) - start - data.ndim))
    if mode in ("explicit", "none") and axes_mapping is not None:
        data = _explicit(data, integers(axes_mapping, "axes_mapping"), len(target))
    return np.broadcast_to(data, target).copy()


@op("Broadcast", since=3, symbolic=True)
def broadcast_3(
    data: AnyTensor,
    target_shape: IntegerVector,
    axes_mapping: IntegerVector | None = None,
    *,
    mode: Literal["numpy", "explicit", "bidirectional"] = "numpy",
) -> np.ndarray:
    """``data`` repeated to ``target_shape``; bidirectional broadcasts each to the other.

    Source: Broadcast-3.
    """
    target = integers(target_shape, "target_shape")
    if mode == "explicit" and axes_mapping is not None:
        data = _explicit(data, integers(axes_mapping, "axes_mapping"), len(target))
    elif mode == "bidirectional":
        target = np.broadcast_shapes(data.shape, target)
    return np.broadcast_to(data, target).copy()


@broadcast_1.shape_rule
@broadcast_3.shape_rule
def _broadcast_facts(
    data: Fact, target_shape: Fact, axes_mapping: Fact | None = None, *, mode: str, mode_axis: int | None = None
) -> Fact:
    target = _target_shape(target_shape)
    if mode == "bidirectional":
        return Fact(data.element, broadcast([data.shape, target]))
    if target is None or data.shape is None:
        return Fact(data.element, target)
    if mode in ("explicit", "none"):
        if axes_mapping is None:
            raise OpError("mode explicit needs axes_mapping")
        rank = 1 if axes_mapping.shape is None else len(axes_mapping.shape)
        check(rank == 1, f"axes_mapping has rank {rank}, expected 1")
        _check_explicit(data.shape, target, axes_mapping.ints("axes_mapping"))
    elif mode == "pdpd":
        check(len(data.shape) <= len(target), f"data {shape_text(data.shape)} has more axes than {shape_text(target)}")
        start = pdpd_start(len(target), len(data.shape), mode_axis)
        _check_explicit(data.shape, target, tuple(range(start, start + len(data.shape))))
    elif mode == "numpy":
        check(
            broadcastable_to(data.shape, target),
            f"data {shape_text(data.shape)} cannot be broadcast to {shape_text(target)}",
        )
        return Fact(data.element, _narrowed(data.shape, target))
    return Fact(data.element, target)


@op("Tile", since=1, symbolic=True)
def tile_1(data: AnyTensor, repeats: IntegerVector) -> np.ndarray:
    """``data`` repeated along its axes; ones are prepended to the shorter of shape and repeats. Source: Tile-1."""
    return np.tile(data, [max(n, 0) for n in integers(repeats, "repeats")])


@tile_1.shape_rule
def _tile_1_facts(data: Fact, repeats: Fact) -> Fact:
    times = repeats.sizes("repeats")
    if data.shape is None:
        return Fact(data.element, None)
    if times is None:
        count = vector_length(repeats)
        return Fact(data.element, open_shape(None if count is None else max(len(data.shape), count)))
    rank = max(len(data.shape), len(times))
    sizes, counts = ((1,) * (rank - len(one)) + tuple(one) for one in (data.shape, times))
    return Fact(data.element, tuple(size * at_least(n, 0) for size, n in zip(sizes, counts, strict=True)))


PadValue = Annotated[AnyTensor, SCALAR]


def _pad(data: np.ndarray, begin: np.ndarray, end: np.ndarray, value: np.ndarray | None, mode: PadMode) -> np.ndarray:
    pairs = list(zip(integers(begin, "pads_begin"), integers(end, "pads_end"), strict=True))
    largest = max((max(pair) for pair in pairs), default=0)
    check(largest <= np.iinfo(np.intp).max, f"a pad of {largest} is more than an axis can have")
    added = [(max(a, 0), max(b, 0)) for a, b in pairs]
    check_memory(
        [size + sum(pair) for size, pair in zip(data.shape, added, strict=True)], data.dtype, "the uncropped data"
    )
    default = "" if data.dtype == object else np.zeros((), data.dtype)
    result = padded(data, added, mode, default if value is None else value.reshape(-1)[0])
    # A copy, so that this is not a view of the data.
    return result[tuple(slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pairs, result.shape, strict=True))]


def _pad_rule(*, negative: bool) -> Callable[..., Fact]:
    def rule(data: Fact, pads_begin: Fact, pads_end: Fact, pad_value: Fact | None = None, *, pad_mode: str) -> Fact:
        unify_elements(data, pad_value)
        if data.shape is None:
            return Fact(data.element, None)
        for pads, what in ((pads_begin, "pads_begin"), (pads_end, "pads_end")):
            count = pads.shape[0] if pads.shape else ANY
            check(may_equal(count, len(data.shape)), f"{what} has {count} elements for data {data}")
        begins, ends = pads_begin.sizes("pads_begin"), pads_end.sizes("pads_end")
        if begins is None or ends is None:
            return Fact(data.element, (ANY,) * len(data.shape))
        axes = zip(data.shape, begins, ends, strict=True)
        return Fact(data.element, tuple(_padded(*axis, pad_mode, negative) for axis in axes))

    return rule


def _padded(size: Size, begin: Size, end: Size, mode: str, negative: bool) -> Size:
    if not isinstance(begin, int) or not isinstance(end, int):
        return at_least(size + begin + end, 0)
    check(negative or (begin >= 0 and end >= 0), f"pads {begin} and {end}: Pad-1 does not allow negative ones")
    if isinstance(size, int):
        check(size + begin + end >= 0, f"pads {begin} and {end} remove more than an axis of {size} has")
        if mode in ("reflect", "symmetric"):
            most = max(size - (mode == "reflect"), 0)
            text = f"mode {mode} can add at most {most} to an axis of {size}, pads are {begin} and {end}"
            check(max(begin, end) <= most, text)
        check(mode != "edge" or size > 0 or max(begin, end) <= 0, "mode edge cannot add to an empty axis")
        return size + begin + end
    return at_least(size + (begin + end), 0)


@op("Pad", since=1)
def pad_1(
    data: AnyTensor,
    pads_begin: IntegerVector,
    pads_end: IntegerVector,
    pad_value: PadValue | None = None,
    *,
    pad_mode: PadMode,
) -> np.ndarray:
    """``data`` padded by a constant, by its edge elements, or by its reflection. Source: Pad-1."""
    return _pad(data, pads_begin, pads_end, pad_value, pad_mode)


pad_1.shape_rule(_pad_rule(negative=False))


@op("Pad", since=12)
def pad_12(
    data: AnyTensor,
    pads_begin: IntegerVector,
    pads_end: IntegerVector,
    pad_value: PadValue | None = None,
    *,
    pad_mode: PadMode,
) -> np.ndarray:
    """Same as Pad-1; negative pads remove elements, after the positive pads are added.

    So elements that are removed at one end can still be reflected at the other, as in OpenVINO. Source: Pad-12.
    """
    return _pad(data, pads_begin, pads_end, pad_value, pad_mode)


pad_12.shape_rule(_pad_rule(negative=True))
