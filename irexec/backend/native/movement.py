"""Kernels of the C library that move elements of any type: copies that make up an operation, and Gather at run time."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel
from irexec.backend.compressed import CompressedSource
from irexec.backend.copies import Copy, array_at, bind_copies, bordered
from irexec.backend.kernel import Candidate, Task, has_elements, is_row_major
from irexec.backend.native.elementwise import can_follow, followed
from irexec.backend.registry import kernels
from irexec.native.library import library
from irexec.native.structures import structure
from irexec.schema.shape_rules import normalize_axis, pdpd_start

# Nanoseconds: of a step, of a copy, of four bytes copied, of an element copied to another order.
_STEP, _COPY, _WORD, _REORDERED = 1_000, 100, 0.08, 0.35


Copies = Callable[..., Iterable[Copy]]
"""``copies(out, *inputs)`` makes up an output; the results of the copies do not meet."""


class Moves(NativeKernel):
    """A kernel whose result consists of copies."""

    def __init__(self, algorithm: str, copies: Copies, reads: tuple[int, ...] | None = (0,)) -> None:
        self.algorithm, self.copies, self.reads = f"C, {algorithm}", copies, reads

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        bind_copies([*self.copies(outputs[0], *inputs)], binding)


def offer(task: Task, make: Callable[[], NativeKernel], copies: int = 1, *, joins: bool = False) -> Iterator[Candidate]:
    """A candidate, if elements are of a type of NumPy and a chain, if there is one, of f32."""
    element = task.outputs[0].element
    if not task.native or library() is None or element is None or 0 in task.output_shape() or not can_follow(task):
        return
    if element.carrier.kind == "O" or element.carrier.itemsize not in (1, 2, 4, 8):
        return
    size = math.prod(task.output_shape())
    orders = {*task.input_orders[: len(task.inputs)], task.output_orders[0]}
    each = _WORD * element.carrier.itemsize / 4 if len(orders) == 1 else _REORDERED
    cost = _STEP + copies * _COPY + size * each
    yield Candidate(cost, lambda: followed(make(), task), joins=joins)


@kernels("Concat", since=1)
def concat(task: Task) -> Iterator[Candidate]:
    """Tensors of any type, one after the other; None is in its position already."""
    axis = normalize_axis(task.attributes["axis"], len(task.output_shape()))
    ends = [0, *itertools.accumulate(task.shape(i)[axis] for i in range(len(task.inputs)))]

    def copies(out: np.ndarray, *inputs: np.ndarray | None) -> Iterator[Copy]:
        for x, part in zip(inputs, itertools.starmap(slice, itertools.pairwise(ends)), strict=True):
            if x is not None:
                yield Copy(x, out[(*(slice(None),) * axis, part)])

    if len(task.wanted) == 1:
        make = functools.partial(Moves, "copies side by side", copies, None)
        yield from offer(task, make, len(task.inputs), joins=True)


@kernels("Reshape", since=1)
@kernels("Squeeze", since=1)
@kernels("Squeeze", since=15)
@kernels("Unsqueeze", since=1)
def reshape(task: Task) -> Iterator[Candidate]:
    """Shapes of which a common one can be found by splitting axes, for data in any order."""
    common = common_shape(task.shape(0), task.output_shape())
    # Axes of a scalar are refused by the reference kernel.
    if common is not None and (task.shape(0) or not task.definition.type.endswith("queeze")):

        def copies(out: np.ndarray, x: np.ndarray, *_: object) -> Iterator[Copy]:
            yield Copy(split(x, common), split(out, common))

        yield from offer(task, functools.partial(Moves, "copy to another shape", copies))


def common_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that both shapes become by splitting axes; None if there is none, or no elements."""
    if 0 in (*a, *b):
        return None
    # Elements behind each axis: the shape must have an end of an axis wherever one of the two has.
    ends = sorted({math.prod(shape[i:]) for shape in (a, b) for i in range(len(shape) + 1)}, reverse=True)
    if any(outer % inner for outer, inner in itertools.pairwise(ends)):
        return None
    return tuple(outer // inner for outer, inner in itertools.pairwise(ends))


def split(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """A view of the array with its axes split."""
    view = array.reshape(shape)
    assert np.may_share_memory(view, array), "axes are split, not merged"
    return view


@kernels("Transpose", since=1)
def transpose(task: Task) -> Iterator[Candidate]:
    """A constant order, or the reversed one."""
    source, rank = task.constants[1], len(task.shape(0))
    if source is None:
        return
    order = tuple(normalize_axis(int(axis), rank) for axis in source.array().ravel()) or tuple(reversed(range(rank)))
    if sorted(order) == list(range(rank)):
        yield from _reordered(task, task.shape(0), order)


def _reordered(task: Task, shape: Sequence[int], order: Sequence[int]) -> Iterator[Candidate]:
    """The data in a shape with more axes, transposed."""

    def copies(out: np.ndarray, x: np.ndarray, *_: object) -> Iterator[Copy]:
        data = split(x, shape).transpose(order)
        yield Copy(data, split(out, data.shape))

    yield from offer(task, functools.partial(Moves, "copy to another order", copies))


@kernels("DepthToSpace", since=1)
def depth_to_space(task: Task) -> Iterator[Candidate]:
    """Any number of spatial axes."""
    n, c, *spatial = task.shape(0)
    block, k = task.attributes.get("block_size", 1), len(spatial)
    blocks, depth = (block,) * k, c // block**k
    if task.attributes["mode"] == "blocks_first":
        shape = (n, *blocks, depth, *spatial)
        order = [0, k + 1, *(axis for i in range(k) for axis in (k + 2 + i, 1 + i))]
    else:
        shape = (n, depth, *blocks, *spatial)
        order = [0, 1, *(axis for i in range(k) for axis in (k + 2 + i, 2 + i))]
    yield from _reordered(task, shape, order)


@kernels("SpaceToDepth", since=1)
def space_to_depth(task: Task) -> Iterator[Candidate]:
    """Any number of spatial axes."""
    n, c, *spatial = task.shape(0)
    block, k = task.attributes.get("block_size", 1), len(spatial)
    shape = (n, c, *(part for size in spatial for part in (size // block, block)))
    outer, inner = [2 + 2 * i for i in range(k)], [3 + 2 * i for i in range(k)]
    order = [0, *inner, 1, *outer] if task.attributes["mode"] == "blocks_first" else [0, 1, *inner, *outer]
    yield from _reordered(task, shape, order)


@kernels("ShuffleChannels", since=1)
def shuffle_channels(task: Task) -> Iterator[Candidate]:
    """Any axis."""
    shape, group = task.shape(0), task.attributes.get("group", 1)
    along = normalize_axis(task.attributes.get("axis", 1), len(shape))
    divided = (*shape[:along], group, shape[along] // group, *shape[along + 1 :])
    order = list(range(len(divided)))
    order[along : along + 2] = along + 1, along
    yield from _reordered(task, divided, order)


@kernels("Tile", since=1)
def tile(task: Task) -> Iterator[Candidate]:
    """Constant repeats."""
    if task.constants[1] is None:
        return
    data, out = task.shape(0), task.output_shape()
    data = (1,) * (len(out) - len(data)) + data
    repeated = tuple(n for size, whole in zip(data, out, strict=True) for n in (whole // max(1, size), size))
    source = tuple(n for size in data for n in (1, size))
    yield from _repeated(task, source, repeated)


@kernels("Broadcast", since=1)
@kernels("Broadcast", since=3)
def broadcast(task: Task) -> Iterator[Candidate]:
    """Known target and axes: the reference kernel refuses a target that does not fit."""
    if task.constants[1] is None:
        return
    data, out, mode = task.shape(0), task.output_shape(), task.attributes["mode"]
    source = (1,) * (len(out) - len(data)) + data
    if mode == "pdpd":
        start = pdpd_start(len(out), len(data), task.attributes.get("mode_axis"))
        source = (1,) * start + data + (1,) * (len(out) - start - len(data))
    if mode in ("explicit", "none") and task.has_input(2):
        mapping = task.constants[2]
        if mapping is None:
            return
        axes = [normalize_axis(int(axis), len(out)) for axis in mapping.array().ravel()]
        if sorted(set(axes)) != axes:
            return
        sizes = dict(zip(axes, data, strict=True))
        source = tuple(sizes.get(axis, 1) for axis in range(len(out)))
    if all(size in (1, whole) for size, whole in zip(source, out, strict=True)):
        yield from _repeated(task, source, out)


def _repeated(task: Task, source: Sequence[int], repeated: Sequence[int]) -> Iterator[Candidate]:
    """The data repeated.

    Args:
        source: the shape of the data, with ones where it is repeated.
        repeated: the shape of the result, with as many axes.
    """

    def copies(out: np.ndarray, x: np.ndarray, *_: object) -> Iterator[Copy]:
        yield Copy(np.broadcast_to(split(x, source), repeated), split(out, repeated))

    yield from offer(task, functools.partial(Moves, "repeated copies", copies))


def select(algorithm: str, tables: Mapping[int, np.ndarray]) -> Moves:
    """Positions along some axes, each of which goes by a table."""
    return Moves(algorithm, lambda out, x, *_: [selection(x, out, tables)])


def selection(data: np.ndarray, out: np.ndarray, tables: Mapping[int, np.ndarray]) -> Copy:
    """A copy by tables, of which those with equal distances are slices."""
    left: dict[int, np.ndarray] = {}
    for axis, table in tables.items():
        part = _as_slice(table)
        if part is None:
            left[axis] = table
        else:
            data = data[(*(slice(None),) * axis, part)]
    return Copy(data, out, left)


def _as_slice(table: np.ndarray) -> slice | None:
    """The slice that selects the indices; None if their distances differ."""
    first, last = int(table[0]), int(table[-1])
    step = int(table[1]) - first if len(table) > 1 else 1
    if step == 0 or not bool((np.diff(table) == step).all()):
        return None
    stop = last + (1 if step > 0 else -1)
    return slice(first, None if stop < 0 else stop, step)


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def gather(task: Task) -> Iterator[Candidate]:
    """Constant indices that are all in range, and a constant axis."""
    indices, axis = task.constants[1], task.constants[2]
    if indices is None or axis is None or task.attributes.get("batch_dims", 0) or not has_elements(task):
        return
    along = normalize_axis(int(axis.array().reshape(-1)[0]), len(task.shape(0)))
    size, values = task.shape(0)[along], indices.array()
    if values.min() >= -size and values.max() < size:
        table = np.where(values < 0, values + size, values).astype(np.int64)

        def copies(out: np.ndarray, data: np.ndarray, *_: object) -> Iterator[Copy]:
            merged = out.reshape(*data.shape[:along], table.size, *data.shape[along + 1 :])
            if np.may_share_memory(merged, out):
                yield selection(data, merged, {along: table.reshape(-1)})
                return
            for index in np.ndindex(*table.shape[:-1]):
                yield selection(data, out[(*(slice(None),) * along, *index)], {along: table[index]})

        yield from offer(task, functools.partial(Moves, "gathered slices", copies))


@kernels("Roll", since=7)
def roll(task: Task) -> Iterator[Candidate]:
    """Constant shifts and axes."""
    shift, axes = task.constants[1], task.constants[2]
    if shift is None or axes is None or not has_elements(task):
        return
    shape = task.shape(0)
    along = [normalize_axis(int(axis), len(shape)) for axis in axes.array().ravel()]
    shifts = [int(n) for n in shift.array().ravel()]
    total: dict[int, int] = {}
    for axis, n in zip(along, shifts * len(along) if len(shifts) == 1 else shifts, strict=True):
        total[axis] = total.get(axis, 0) + n
    yield from offer(task, lambda: select("rotated copy", {a: _rolled(shape[a], n) for a, n in total.items()}))


def _rolled(size: int, shift: int) -> np.ndarray:
    return (np.arange(size) - shift % size) % size


@kernels("Pad", since=1)
@kernels("Pad", since=12)
def pad(task: Task) -> Iterator[Candidate]:
    """Constant pads, and of other modes than constant those that remove nothing."""
    begins, ends = task.constants[1], task.constants[2]
    if begins is None or ends is None or not has_elements(task):
        return
    pads = [
        (int(a), int(b)) for a, b in zip(begins.array().ravel().tolist(), ends.array().ravel().tolist(), strict=True)
    ]
    mode = task.attributes["pad_mode"]
    if mode == "constant":
        zero = np.zeros((), task.outputs[0].dtype)

        def copies(out: np.ndarray, x: np.ndarray, *others: np.ndarray | None) -> Iterator[Copy]:
            value = others[2] if len(others) > 2 else None
            return bordered(x, out, pads, zero if value is None else value.reshape(-1)[:1].reshape(()))

        reads = (0, 3) if task.has_input(3) else (0,)
        make = functools.partial(Moves, "copy and constant borders", copies, reads)
        yield from offer(task, make, 1 + 2 * sum(map(any, pads)))
    elif all(min(pair) >= 0 for pair in pads) and math.prod(task.output_shape()) > 0:
        yield from offer(task, lambda: select(f"copy and {mode} borders", _borders(task.shape(0), pads, mode)))


def _borders(shape: Sequence[int], pads: Sequence[tuple[int, int]], mode: Any) -> dict[int, np.ndarray]:
    """The index in the data of each position, along each axis that has a border."""
    return {
        axis: np.pad(np.arange(size), pair, mode)
        for axis, (size, pair) in enumerate(zip(shape, pads, strict=True))
        if any(pair)
    }


# Bytes of a block.
_BLOCK = 1 << 15

CGather = structure("movement.c", "gather")


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def gather_at_run_time(task: Task) -> Iterator[Candidate]:
    """Indices of i32 or i64 that are not constants, and a constant axis; data of any type."""
    axis = task.constants[2]
    if isinstance(task.constants[0], CompressedSource):
        # A table of words is read as it is stored, row by row.
        return
    if task.constants[1] is not None or axis is None or task.attributes.get("batch_dims", 0) or not has_elements(task):
        return
    if task.dtype(1) in (np.dtype(np.int32), np.dtype(np.int64)):
        along = normalize_axis(int(axis.array().reshape(-1)[0]), len(task.shape(0)))
        yield from offer(task, functools.partial(GatherAtRunTime, task, along))


class GatherAtRunTime(NativeKernel):
    """Slices along an axis; an index out of range gives zeros."""

    def __init__(self, task: Task, axis: int) -> None:
        self.algorithm, self.reads = "C, gathered slices", (0, 1)
        data, rank, out = len(task.shape(0)), len(task.shape(1)), len(task.output_shape())
        self.source = tuple(range(axis)), (axis,), tuple(range(axis + 1, data))
        self.target = tuple(range(axis)), tuple(range(axis, axis + rank)), tuple(range(axis + rank, out))
        self.count = math.prod(task.shape(1))
        # Gathered in C order, then copied to another one.
        self.reorders = not is_row_major(task.output_orders[0])
        self.shared_workspace = task.output_bytes if self.reorders else 0

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        data, indices = inputs[0], binding.in_order(inputs[1])
        data, strides = binding.read(data, self.source, self.source[2])
        out = array_at(binding.shared, outputs[0].shape, data.dtype) if self.reorders else outputs[0]
        out, written = binding.written(out, self.target, innermost=self.target[2][-1] if self.target[2] else None)
        sizes = [math.prod(data.shape[axis] for axis in group) for group in self.source]
        item, row = data.itemsize, sizes[2] * data.itemsize
        each = max(1, _BLOCK // row)
        parameters = CGather(
            binding.address(data), binding.address(out), binding.address(indices), strides[0] * item,
            strides[1] * item, written[0] * item, written[1] * item, indices.itemsize == 8, sizes[1], self.count, row,
            each,
        )  # fmt: skip
        binding.call("irx_gather", parameters, sizes[0] * -(-self.count // each))
        if self.reorders:
            bind_copies([Copy(out, outputs[0])], binding)
