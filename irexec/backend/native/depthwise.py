"""Depthwise convolution by the C library."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_available
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import Geometry, is_channels_last
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, channel_axes, overwritten, zeros
from irexec.backend.native.panels import blocks_for, imbalance, padded, windows_of
from irexec.backend.registry import kernels
from irexec.native.structures import Parameters, declared_in

# Nanoseconds for a multiplication, for an output and for a pixel.
_TAP, _OUTPUT, _PIXEL = 0.04, 0.1, 8.0
# Pixels that are summed at once, and channels of a cache line.
_PIXELS, _LINE = 4, 16
# The largest share relative to an equal one that is not avoided.
_UNEQUAL = 1.1


@declared_in("depthwise.c", "depthwise")
class Depthwise(Parameters):
    """See irexec/native/source/depthwise.c."""


class NativeDepthwise(NativeKernel):
    """One kernel for each channel, of data and result that are channels last."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        g = self.geometry = geometry
        shape = task.output_shape()
        self.axes = channel_axes(len(shape))
        self.chain = NativeChain(task.chain, task.operands, shape, self.axes, takes_bias=True)
        self.source, self.own = task.constants[1], len(task.inputs)
        self.row_parts, self.channel_parts = parts_of(g, task.threads)
        self.overwrites = overwritten(task, self.own)
        self.reads = (0,)
        self.algorithm = "C, depthwise"
        *rows, taps = g.windows.kernel
        # Two pointers for each row of the kernel, and as many as its pixels have taps, at strides of up to 2.
        self.workspace = 8 * math.prod(rows) * (2 + max(_PIXELS * taps, 2 * (_PIXELS - 1) + taps))

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "weights are constants"
        g = self.geometry

        def make(filter: np.ndarray) -> np.ndarray:
            made = np.zeros((g.points, padded(g.groups)), np.float32)
            made[:, : g.groups] = filter.reshape(g.groups, g.points).T
            return made

        self.weights = store.get([self.source], ("native depthwise", g.groups), make)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        g, operands = self.geometry, inputs[self.own :]
        out, (image, row, _) = binding.written(outputs[0], self.axes, innermost=1)
        parameters = Depthwise(
            windows_of(binding.with_stride(inputs[0], 1), g.windows, zeros(padded(g.groups)), binding),
            binding.address(self.weights), self._bias(operands, binding), binding.address(out), image, row,
            self.chain.bind(operands, binding), g.groups, self.row_parts, self.channel_parts, *self.chain.limits,
        )  # fmt: skip
        binding.call("irx_depthwise", parameters, g.images * self.row_parts * self.channel_parts)

    def _bias(self, operands: Sequence[np.ndarray], binding: Binding) -> int:
        """The address of the bias, of whole vectors."""
        size = padded(self.geometry.groups)
        found = self.chain.bias(operands, binding)
        if found is None:
            return binding.address(zeros(size))
        if size == self.geometry.groups:
            return found
        program = self.chain.program
        assert program is not None and program.bias is not None
        binding.repeatable = binding.repeatable and not operands[program.bias].flags.writeable
        made = np.zeros(size, np.float32)
        made[: self.geometry.groups] = operands[program.bias].reshape(-1)
        return binding.address(made)


def parts_of(geometry: Geometry, threads: int) -> tuple[int, int]:
    """The parts of the rows, and of the channels, that blocks consist of."""
    g = geometry
    rows, lines = math.prod(g.windows.counts[:-1]), -(-g.groups // _LINE)
    wanted = -(-blocks_for(_nanoseconds(g), threads) // g.images)
    # Rows as long as shares of them are equal: their data is one run of memory.
    if imbalance(rows, wanted) <= max(_UNEQUAL, imbalance(lines, wanted)):
        return min(rows, wanted), 1
    return 1, min(lines, wanted)


def _nanoseconds(geometry: Geometry) -> float:
    """Estimated nanoseconds on one thread."""
    g = geometry
    return g.macs * _TAP + g.images * g.groups * g.pixels * _OUTPUT + g.images * g.pixels * _PIXEL


@kernels("GroupConvolution", since=1)
def depthwise(task: Task) -> Iterator[Candidate]:
    """Constant weights of one input and one output channel in each group, f32, up to three spatial axes."""
    if not is_available(task) or task.constants[1] is None:
        return
    g = Geometry.of(task, grouped=True)
    if g is None or g.dtype != np.float32 or len(g.sizes) > 3 or not g.inputs == g.outputs == 1:
        return
    is_last = is_channels_last(task.input_orders[0]) and is_channels_last(task.output_orders[0])
    if not (is_last or g.pixels == 1) or not fits(task, channel_axes(len(task.output_shape()))):
        return
    yield Candidate(STEP + _nanoseconds(g), functools.partial(NativeDepthwise, task, g))
