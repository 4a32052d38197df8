"""Interpolate and AdaptiveAvgPool by the C library: copies for nearest, else sums along two axes.

irexec/native/source/resize.c has the sums.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_available
from irexec.backend.kernel import Candidate, Task, has_elements
from irexec.backend.native.chains import Axes
from irexec.backend.native.convolution import STEP
from irexec.backend.native.elementwise import can_follow, followed
from irexec.backend.native.movement import offer, select
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32
from irexec.native.structures import structure
from irexec.reference.resize import Taps, float_steps, scales_of
from irexec.reference.windows import adaptive_windows
from irexec.schema.shape_rules import normalize_axes

# Nanoseconds of a tap: of a value in vectors of channels, of one alone.
_TAP, _SCALAR = 0.08, 0.5
# Multiplications of a block.
_BLOCK = 1 << 18
# Positions of the result or of the data along an axis, beyond which a table is too long.
_LONGEST = 1 << 17

Steps = Sequence[tuple[int, Taps]]

Table = structure("resize.c", "table")
CResize = structure("resize.c", "resize")


class Resize(NativeKernel):
    """Two axes, of which the second follows the first in memory, resized by their tables.

    Args:
        axes: outer axes, the one of rows, the one of columns and inner axes, in their order in memory.
    """

    def __init__(self, task: Task, axes: tuple[tuple[int, ...], ...], steps: dict[int, Taps]) -> None:
        self.axes, self.data, self.shape = axes, task.shape(0), task.output_shape()
        self.tables = [_arrays(steps.get(group[0]) if group else None, self._size(group)) for group in axes[1:3]]
        self.algorithm, self.reads = "C, resizing by weighted sums", (0,)
        taps = sum(index.shape[1] for index, _ in self.tables)
        rows, width = self._size(axes[1]), self._size(axes[2]) * self._size(axes[3])
        self.rows_each = max(1, min(rows, _BLOCK // (width * taps)))
        self.workspace = 4 * max(1, math.prod(self.data[axis] for group in axes[2:] for axis in group))

    def _size(self, group: Sequence[int]) -> int:
        return math.prod(self.shape[axis] for axis in group)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        x, strides = binding.read(inputs[0], self.axes, self.axes[3])
        out, written = binding.written(outputs[0], self.axes, innermost=self.axes[3][-1] if self.axes[3] else None)
        down, across = (
            Table(binding.address(index), binding.address(weights), index.shape[1]) for index, weights in self.tables
        )
        outers, rows, columns, inner = map(self._size, self.axes)
        data_columns = math.prod(self.data[axis] for axis in self.axes[2])
        parameters = CResize(
            binding.address(x), *strides[:3], binding.address(out), *written[:3], data_columns, inner, rows, columns,
            self.rows_each, down, across,
        )  # fmt: skip
        binding.call("irx_resize", parameters, outers * -(-rows // self.rows_each))


def _arrays(taps: Taps | None, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and weights of an axis; one of each position for an axis that stays as it is."""
    if taps is None:
        return np.arange(size, dtype=np.int64)[:, None], np.ones((size, 1), np.float32)
    index = np.ascontiguousarray(taps.index, np.int64)
    weights = np.ones(index.shape) if taps.weight is None else taps.weight
    return index, np.ascontiguousarray(weights, np.float32)


@kernels("Interpolate", since=1)
@kernels("Interpolate", since=4)
@kernels("Interpolate", since=11)
def interpolate(task: Task) -> Iterator[Candidate]:
    """nearest of any type along any axes, other modes of f32 along two axes; without padding."""
    attributes, shape, element = task.attributes["attributes"], task.shape(0), task.inputs[0].element
    if not task.native or element is None or not _is_listed(task) or any(map(any, attributes.pads(len(shape)))):
        return
    given = _inputs_of(task)
    if given is None:
        return
    axes, scales = given
    params = attributes.params(axes, len(shape)) if task.definition.since == 1 else attributes.params
    if params.mode == "area" or not (element is F32 or (params.mode == "nearest" and element.native)):
        return
    sizes = [task.output_shape()[axis] for axis in axes]
    tables = float_steps(shape, params, axes, sizes, scales_of(shape, axes, sizes) if scales is None else scales)
    steps = [(axis, taps) for axis, taps in tables if not _is_identity(taps)]
    if all(taps.weight is None for _, taps in steps):
        yield from offer(task, lambda: select("nearest positions", {axis: taps.index[:, 0] for axis, taps in steps}))
    else:
        yield from _resize(task, steps)


def _is_listed(task: Task) -> bool:
    """Whether there are elements, along axes for which a table is short enough."""
    return has_elements(task) and max((*task.shape(0), *task.output_shape()), default=0) <= _LONGEST


def _inputs_of(task: Task) -> tuple[Sequence[int], list[float] | None] | None:
    """The axes and, where coordinates go by them, the scales; None where they are not constants."""
    attributes, rank = task.attributes["attributes"], len(task.shape(0))
    if task.definition.since == 1:
        return normalize_axes(attributes.axes, rank), None
    position = 3 if task.definition.since == 4 else 2
    axes: Sequence[int] = range(rank)
    if task.has_input(position):
        source = task.constants[position]
        if source is None:
            return None
        axes = source.array().ravel().tolist()
    if not attributes.by_scales:
        return normalize_axes(axes, rank), None
    scales = task.constants[position - 1]
    return None if scales is None else (normalize_axes(axes, rank), scales.array().ravel().tolist()[: len(axes)])


def _is_identity(taps: Taps) -> bool:
    index = taps.index
    copies = taps.weight is None or (index.shape[1] == 1 and bool((taps.weight == 1).all()))
    return copies and len(index) == taps.size and bool((index[:, 0] == np.arange(taps.size)).all())


@kernels("AdaptiveAvgPool", since=8)
def adaptive_avg_pool(task: Task) -> Iterator[Candidate]:
    """f32, one or two spatial axes."""
    if not _is_listed(task) or len(task.shape(0)) > 4:
        return
    steps = []
    for axis, (size, count) in enumerate(zip(task.shape(0)[2:], task.output_shape()[2:], strict=True), 2):
        index, inside = adaptive_windows(size, count)
        steps.append((axis, Taps(index, inside / inside.sum(1, keepdims=True), size)))
    yield from _resize(task, steps)


def _resize(task: Task, steps: Steps) -> Iterator[Candidate]:
    if not is_available(task) or task.inputs[0].element is not F32 or not can_follow(task):
        return
    axes = _axes(task, [axis for axis, _ in steps])
    if axes is None:
        return
    # The data is summed along rows, then the result along columns.
    sizes, cost = list(task.shape(0)), float(STEP)
    inner = math.prod(sizes[axis] for axis in axes[3])
    for group, each in zip(axes[1:3], (_TAP, _TAP if inner >= 16 else _SCALAR), strict=True):
        for axis in group:
            sizes[axis] = task.output_shape()[axis]
            cost += each * math.prod(sizes) * next((t.index.shape[1] for a, t in steps if a == axis), 1)
    make = functools.partial(Resize, task, axes, dict(steps))
    yield Candidate(cost, lambda: followed(make(), task))


def _axes(task: Task, resized: Sequence[int]) -> Axes | tuple[tuple[int, ...], ...] | None:
    """Outer axes, rows, columns and inner axes; None where they are not so in memory."""
    shape, order = task.shape(0), task.input_orders[0]
    order = order or tuple(range(len(shape)))
    if (task.output_orders[0] or tuple(range(len(shape)))) != order or len(resized) not in (1, 2):
        return None
    at = sorted(order.index(axis) for axis in resized)
    if at[-1] - at[0] > 1:
        return None
    rows = (order[at[0]],) if len(at) == 2 else ()
    return order[: at[0]], rows, (order[at[-1]],), order[at[-1] + 1 :]
