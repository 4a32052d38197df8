"""Fast kernels that move elements of any type: Concat, Pad and Gather, written straight into the output."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.eligibility import chain_keeps_type, has_elements
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.reference.indexing import as_indices
from irexec.schema.shape_rules import normalize_axis

# Nanoseconds: of a call of a NumPy function, of a copied element, of one copied in another order.
_CALL, _COPY, _REORDERED = 1500.0, 0.3, 1.0
# Elements of the blocks on which threads work.
_BLOCK = 1 << 17
# Elements of a block that take a hundredth of a second or so, after which the time of the run is to be looked at.
_LONG = 1 << 22

Index = tuple[slice, ...]


def _moves(task: Task) -> bool:
    """Whether the elements are of a type that NumPy has, there are any, and a chain keeps their type."""
    element = task.outputs[0].element
    return element is not None and element.carrier.kind != "O" and has_elements(task) and chain_keeps_type(task)


def _candidate(task: Task, regions: int, make: Callable[[], Kernel], *, joins: bool = False) -> Candidate:
    """A kernel that fills so many regions."""
    orders = {*task.input_orders[: len(task.inputs)], task.output_orders[0]}
    copies = math.prod(task.output_shape()) * (_COPY if len(orders) == 1 else _REORDERED)
    return Candidate(regions * _CALL + copies, make, joins=joins)


class _Movement(Kernel):
    """A kernel that fills regions of the output, each followed by the chain on it."""

    def __init__(
        self, task: Task, algorithm: str, regions: Sequence[Index], reads: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(algorithm, reads=reads, splits=len(regions) > 1, records=True)
        shape = task.output_shape()
        self._own, self._regions = len(task.inputs), list(regions)
        self._epilogue = Epilogue(task.chain, shape, tuple((axis,) for axis in range(len(shape))))
        largest = max((math.prod(part.stop - part.start for part in region) for region in regions), default=0)
        self.workspace = self._epilogue.workspace(largest) + 256

    def run(self, inputs: Sequence[Any], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        out = outputs[0]
        operands = context.bind(self._epilogue, inputs[self._own :])

        def block(index: int, scratch: Scratch) -> None:
            region = self._regions[index]
            # The ellipsis keeps a result of rank 0 an array.
            whole: Any = (*region, ...)
            target = out[whole]
            scratch.work(self._fill, index, inputs, target)
            self._epilogue.run(scratch, target, operands, region)

        context.parallel(len(self._regions), block)

    @abstractmethod
    def _fill(self, scratch: Scratch, index: int, inputs: Sequence[Any], target: np.ndarray) -> None:
        """Write the values of one region."""


@kernels("Concat", since=1)
def concat(task: Task) -> Iterator[Candidate]:
    """Tensors of any type, each copied to its position."""
    if _moves(task):
        yield _candidate(task, len(task.inputs), partial(Concat, task), joins=True)


class Concat(_Movement):
    """Tensors one after the other."""

    def __init__(self, task: Task) -> None:
        shape = task.output_shape()
        self._axis = normalize_axis(task.attributes["axis"], len(shape))
        regions, start = [], 0
        for i in range(len(task.inputs)):
            stop = start + task.shape(i)[self._axis]
            regions.append(
                tuple(slice(start, stop) if axis == self._axis else slice(0, size) for axis, size in enumerate(shape))
            )
            start = stop
        super().__init__(task, "copies side by side", regions)

    def _fill(self, scratch: Scratch, index: int, inputs: Sequence[Any], target: np.ndarray) -> None:
        if inputs[index] is not None:
            np.copyto(target, inputs[index])


@kernels("Pad", since=1)
@kernels("Pad", since=12)
def pad(task: Task) -> Iterator[Candidate]:
    """Constant pads that remove nothing, or a constant mode."""
    begins, ends = task.constants[1], task.constants[2]
    if begins is None or ends is None or not _moves(task):
        return
    pairs = list(zip(begins.array().ravel().tolist(), ends.array().ravel().tolist(), strict=True))
    mode = task.attributes["pad_mode"]
    # The reference kernel cuts what takes long into blocks along any axis.
    has_blocks = math.prod(task.output_shape()) <= _LONG or (0, 0) in pairs
    if mode == "constant" or (has_blocks and all(min(pair) >= 0 for pair in pairs)):
        pads = [(int(a), int(b)) for a, b in pairs]
        axis = _cut_axis(task.output_shape(), pads, mode)
        parts = 1 if axis is None else len(_parts(task.output_shape(), axis))
        yield _candidate(task, parts, partial(Pad, task, pads, mode, axis))


def _cut_axis(shape: Sequence[int], pads: Sequence[tuple[int, int]], mode: str) -> int | None:
    """The first axis without pads; for what takes long another one, if that makes smaller blocks."""
    free = [axis for axis, pair in enumerate(pads) if pair == (0, 0) and shape[axis] > 1]
    # The values of a border come from other blocks, unless they are constant.
    possible = range(len(shape)) if mode == "constant" else free
    if math.prod(shape) <= _LONG * (shape[free[0]] if free else 1):
        return free[0] if free else None
    return max(possible, key=lambda axis: shape[axis], default=None)


def _parts(shape: Sequence[int], axis: int) -> range:
    """The beginnings of the blocks along an axis."""
    return range(0, shape[axis], -(-shape[axis] // max(1, math.prod(shape) // _BLOCK)))


class Pad(_Movement):
    """The data with borders, in blocks along one axis."""

    def __init__(self, task: Task, pads: Sequence[tuple[int, int]], mode: str, axis: int | None) -> None:
        shape = task.output_shape()
        self._pads, self._mode, self._axis = pads, mode, axis
        whole = tuple(slice(0, size) for size in shape)
        regions = [whole]
        if axis is not None:
            parts = _parts(shape, axis)
            regions = [
                (*whole[:axis], slice(start, min(start + parts.step, shape[axis])), *whole[axis + 1 :])
                for start in parts
            ]
        super().__init__(task, f"copy and {mode} borders", regions)

    def _fill(self, scratch: Scratch, index: int, inputs: Sequence[Any], target: np.ndarray) -> None:
        data, pads = self._part(index, inputs[0])
        kept = [slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pads, data.shape, strict=True)]
        inner = [slice(max(a, 0), size - max(b, 0)) for (a, b), size in zip(pads, target.shape, strict=True)]
        if all(part.start < part.stop for part in kept):
            np.copyto(target[tuple(inner)], data[tuple(kept)])
        value = inputs[3] if len(inputs) > 3 and self._own > 3 else None
        for axis in range(target.ndim):
            self._border(target, axis, inner, value)
            inner[axis] = slice(None)

    def _part(self, index: int, data: np.ndarray) -> tuple[np.ndarray, Sequence[tuple[int, int]]]:
        """The data of a region, and its pads."""
        if self._axis is None:
            return data, self._pads
        region, before = self._regions[index][self._axis], self._pads[self._axis][0]
        start, stop = (min(max(at - before, 0), data.shape[self._axis]) for at in (region.start, region.stop))
        own = (max(min(before, region.stop) - region.start, 0), 0)
        own = (own[0], region.stop - region.start - own[0] - (stop - start))
        part = data[(slice(None),) * self._axis + (slice(start, stop),)]
        return part, [*self._pads[: self._axis], own, *self._pads[self._axis + 1 :]]

    def _border(self, target: np.ndarray, axis: int, inner: Sequence[slice], value: np.ndarray | None) -> None:
        """Fill both borders along an axis from the values inside; the axes before are complete."""
        start, stop = inner[axis].start, inner[axis].stop
        size = target.shape[axis]
        lead, rest = inner[:axis], inner[axis + 1 :]

        def part(begin: int, end: int) -> np.ndarray:
            piece: np.ndarray = target[(*lead, slice(begin, end), *rest)]
            return piece

        if self._mode == "constant":
            fill = 0 if value is None else value.reshape(-1)[0]
            for border in (part(0, max(start, 0)), part(max(stop, start), size)):
                border[...] = fill
            return
        if self._mode == "edge":
            part(0, start)[...] = part(start, start + 1)
            part(stop, size)[...] = part(stop - 1, stop)
            return
        skip = 1 if self._mode == "reflect" else 0
        flip = (slice(None),) * axis + (slice(None, None, -1),)
        part(0, start)[...] = part(start + skip, start + skip + start)[flip]
        after = size - stop
        part(stop, size)[...] = part(stop - skip - after, stop - skip)[flip]


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def gather(task: Task) -> Iterator[Candidate]:
    """Constant indices that are all in range, and a constant axis."""
    found = gathered(task) if _moves(task) else None
    if found is not None:
        yield _candidate(task, 1, partial(Gather, task, *found))


def gathered(task: Task) -> tuple[int, np.ndarray] | None:
    """The axis of a Gather and its indices from 0 on; None unless both are constants, and all indices in range."""
    indices, axis = task.constants[1], task.constants[2]
    if indices is None or axis is None or task.attributes.get("batch_dims", 0):
        return None
    along = normalize_axis(int(axis.array().reshape(-1)[0]), len(task.shape(0)))
    size, values = task.shape(0)[along], indices.array()
    if values.min() < -size or values.max() >= size:
        return None
    return along, np.where(values < 0, values + size, values).astype(np.int64)


class Gather(_Movement):
    """Slices along an axis."""

    def __init__(self, task: Task, axis: int, indices: np.ndarray) -> None:
        self._axis, self._indices = axis, as_indices(indices)
        super().__init__(task, "gathered slices", [tuple(slice(0, size) for size in task.output_shape())], (0,))

    def _fill(self, scratch: Scratch, index: int, inputs: Sequence[Any], target: np.ndarray) -> None:
        # "clip" writes straight into the output; the indices are in range.
        if target.flags.c_contiguous:
            np.take(inputs[0], self._indices, self._axis, out=target, mode="clip")
        else:
            np.copyto(target, np.take(inputs[0], self._indices, self._axis, mode="clip"))
