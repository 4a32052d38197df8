"""Copies between arrays of any strides as the C library has them, see irexec/native/source/movement.c; and Concat."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task, chain_keeps_type, has_elements
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.native.structures import Parameters, structure
from irexec.schema.shape_rules import normalize_axis

AXES = 8
"""Axes of a copy in C, the last two of which are the plane."""

# Bytes of a block.
_BLOCK = 1 << 16
_F32 = np.dtype(np.float32)
_ZERO = np.zeros((), _F32)
# Nanoseconds: of a call of a NumPy function, of a copied element, of one copied in another order.
_CALL, _COPY, _REORDERED = 1500.0, 0.3, 1.0

CCopy = structure("movement.c", "copy")
Movement = structure("movement.c", "movement")


class Calls(Protocol):
    """The calls that copies are added to; see Binding."""

    def address(self, array: np.ndarray) -> int: ...

    def pointer(self, structure: ctypes.Structure | ctypes.Array) -> int: ...

    def call(self, function: str, parameters: ctypes.Structure, blocks: int) -> None: ...


@dataclass(frozen=True, eq=False)
class Copy:
    """The elements of ``out`` from those of ``data``, which has its shape but for the axes in ``tables``.

    Attributes:
        tables: for an axis of the result the index in the data of each position.
    """

    data: np.ndarray
    out: np.ndarray
    tables: Mapping[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class _Axis:
    """An axis of a copy; strides in bytes."""

    size: int
    source: int
    target: int
    table: np.ndarray | None = None

    def joins(self, inner: _Axis) -> bool:
        """Whether this axis and the next inner one are one run on both sides."""
        if self.table is not None or inner.table is not None:
            return False
        return self.source == inner.source * inner.size and self.target == inner.target * inner.size


def bind_copies(copies: Sequence[Copy], binding: Calls) -> None:
    """Add one call for copies whose results do not meet."""
    parts = [part for copy in copies if copy.out.size for part in _parts(copy)]
    bound, last = (CCopy * max(1, len(parts)))(), 0
    for i, (data, out, axes) in enumerate(parts):
        bound[i] = _c_copy(data, out, axes, last, binding)
        last = bound[i].last
    binding.call("irx_move", Movement(binding.pointer(bound)), last)


def array_at(address: int, shape: Sequence[int], dtype: np.dtype = _F32) -> np.ndarray:
    """The array at an address, a part of the scratch."""
    size = math.prod(shape) * dtype.itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)).view(dtype).reshape(shape)


def bordered(
    data: np.ndarray,
    out: np.ndarray,
    pads: Sequence[tuple[int, int]],
    value: np.ndarray = _ZERO,
    tables: Mapping[int, np.ndarray] | None = None,
) -> Iterator[Copy]:
    """The data with borders of one value, or a part of it where pads are negative.

    Args:
        pads: for each axis the sizes of its borders.
        tables: of the copy of the data, for axes without borders.
    """
    kept = [slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pads, data.shape, strict=True)]
    inner = [slice(max(a, 0), size - max(b, 0)) for (a, b), size in zip(pads, out.shape, strict=True)]
    if all(part.start < part.stop for part in kept):
        yield Copy(data[tuple(kept)], out[tuple(inner)], tables or {})
    for axis, size in enumerate(out.shape):
        start = min(max(inner[axis].start, 0), size)
        for border in (slice(0, start), slice(max(inner[axis].stop, start), size)):
            if border.start < border.stop:
                target = out[(*inner[:axis], border, *inner[axis + 1 :])]
                yield Copy(np.broadcast_to(value, target.shape), target)
        inner[axis] = slice(None)


def channels_last(
    x: np.ndarray, address: int, binding: Calls, pads: Sequence[tuple[int, int]] | None = None
) -> np.ndarray:
    """Add a copy of images (N, C, spatial...) to an address, where channels follow each other. Returns the copy, whose
    axes are those of the images.

    Args:
        pads: the borders of zeros of each spatial axis.
    """
    last = np.moveaxis(x, 1, -1)
    around = [(0, 0), *(pads or [(0, 0)] * (x.ndim - 2)), (0, 0)]
    copied = array_at(
        address, [size + before + after for size, (before, after) in zip(last.shape, around, strict=True)]
    )
    bind_copies([*bordered(last, copied, around)], binding)
    return np.moveaxis(copied, -1, 1)


def _parts(copy: Copy) -> list[tuple[np.ndarray, np.ndarray, list[_Axis]]]:
    """The copy in parts of as many axes as C has."""
    axes = _merged(
        [
            _Axis(size, 0 if i in copy.tables else source, target, _offsets(copy.tables.get(i), source))
            for i, (size, source, target) in enumerate(
                zip(copy.out.shape, copy.data.strides, copy.out.strides, strict=True)
            )
            if size != 1 or i in copy.tables
        ]
    )
    if len(axes) <= AXES:
        return [(copy.data, copy.out, axes)]
    # The axis of the fewest positions, since each of them is a copy of its own.
    axis = min(
        (i for i, size in enumerate(copy.out.shape) if size != 1 and i not in copy.tables),
        key=lambda i: copy.out.shape[i],
    )
    lead = (slice(None),) * axis
    return [
        part
        for i in range(copy.out.shape[axis])
        for part in _parts(
            replace(copy, data=copy.data[(*lead, slice(i, i + 1))], out=copy.out[(*lead, slice(i, i + 1))])
        )
    ]


def _offsets(table: np.ndarray | None, stride: int) -> np.ndarray | None:
    return None if table is None else np.ascontiguousarray(table, np.int64) * stride


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """The axes from the outermost to the innermost of the result, as few as possible."""
    merged: list[_Axis] = []
    for axis in sorted(axes, key=lambda axis: -abs(axis.target)):
        if merged and merged[-1].joins(axis):
            axis = _Axis(merged.pop().size * axis.size, axis.source, axis.target)
        merged.append(axis)
    return merged


def _c_copy(data: np.ndarray, out: np.ndarray, axes: list[_Axis], before: int, binding: Calls) -> Parameters:
    axes, item = _with_plane(axes, out.itemsize), out.itemsize
    *outer, rows, columns = axes
    outers, plane = math.prod(axis.size for axis in outer), rows.size * columns.size * item
    parts = min(rows.size, max(1, plane // _BLOCK))
    # Rows are cut at cache lines of the data.
    rows_each = min(rows.size, -(-rows.size // parts // 16) * 16)
    outers_each = min(outers, max(1, _BLOCK // plane)) if rows_each == rows.size else 1
    blocks = -(-rows.size // rows_each) * -(-outers // outers_each)
    made = CCopy(
        binding.address(data), binding.address(out), item=item, outers=outers, outers_each=outers_each,
        rows_each=rows_each, last=before + blocks,
    )  # fmt: skip
    for i, axis in enumerate(axes):
        made.sizes[i], made.source[i], made.target[i] = axis.size, axis.source, axis.target
        if axis.table is not None:
            made.tables[i] = binding.address(axis.table)
    return made


def _with_plane(axes: list[_Axis], item: int) -> list[_Axis]:
    """The axes of a copy in C: ones in front, the rows of the plane last but one."""
    if not axes:
        axes = [_Axis(1, item, item)]
    *outer, columns = axes
    if columns.table is None and columns.source == columns.target == item and columns.size * item > 2 * _BLOCK:
        outer, columns = _cut_run(outer, columns, item)
    elif columns.source != item or columns.table is not None:
        # Rows that follow each other in the data, if there are.
        rows = next((axis for axis in outer if axis.source == item and axis.table is None), None)
        if rows is not None:
            outer = [*(axis for axis in outer if axis is not rows), rows]
    return [_Axis(1, 0, 0)] * (AXES - 1 - len(outer)) + [*outer, columns]


def _cut_run(outer: list[_Axis], columns: _Axis, item: int) -> tuple[list[_Axis], _Axis]:
    """A long run as rows, if its size has a factor for it: threads share rows."""
    if len(outer) + 1 >= AXES or math.prod(axis.size for axis in outer) > 8:
        return outer, columns
    for count in range(min(64, columns.size * item // _BLOCK), 1, -1):
        if columns.size % count == 0:
            size = columns.size // count
            return [*outer, _Axis(count, size * item, size * item)], _Axis(size, item, item)
    return outer, columns


@kernels("Concat", since=1)
def concat(task: Task) -> Iterator[Candidate]:
    """Tensors of any type that NumPy has."""
    element = task.outputs[0].element
    if element is None or element.carrier.kind == "O" or not has_elements(task) or not chain_keeps_type(task):
        return
    orders = {*task.input_orders[: len(task.inputs)], task.output_orders[0]}
    copies = math.prod(task.output_shape()) * (_COPY if len(orders) == 1 else _REORDERED)
    yield Candidate(len(task.inputs) * _CALL + copies, partial(Concat, task), joins=True)


class Concat(Kernel):
    """Tensors one after the other, each followed by the chain on it; None is in its position already."""

    def __init__(self, task: Task) -> None:
        own, shape = len(task.inputs), task.output_shape()
        super().__init__("copies side by side", splits=own > 1, records=True)
        axis = normalize_axis(task.attributes["axis"], len(shape))
        sizes, start = [task.shape(i)[axis] for i in range(own)], 0
        self._regions: list[tuple[slice, ...]] = []
        for size in sizes:
            whole = [slice(0, every) for every in shape]
            whole[axis] = slice(start, start + size)
            self._regions.append(tuple(whole))
            start += size
        self._epilogue = Epilogue(task.chain, shape, tuple((axis,) for axis in range(len(shape))))
        self.workspace = self._epilogue.workspace(math.prod(shape) // shape[axis] * max(sizes)) + 256

    def run(self, inputs: Sequence[Any], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        out, count = outputs[0], len(self._regions)
        operands = context.bind(self._epilogue, inputs[count:])

        def block(index: int, scratch: Scratch) -> None:
            region = self._regions[index]
            if inputs[index] is not None:
                scratch.do(np.copyto, out[region], inputs[index])
            self._epilogue.run(scratch, out[region], operands, region)

        context.parallel(count, block)
