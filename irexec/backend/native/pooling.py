"""MaxPool and AvgPool by the C library; see pooling.c, and integer_depthwise.c for levels, in irexec/native/source."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides
from irexec.backend.convolution.geometry import is_channels_last
from irexec.backend.copies import channels_last
from irexec.backend.kernel import Candidate, Task, has_elements
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, channel_axes
from irexec.backend.native.panels import row_block, table_bytes, three, windows_of
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32, U8
from irexec.native.library import library
from irexec.native.structures import Parameters, structure
from irexec.reference.windows import SlidingWindows, lowest, window_populations

# Nanoseconds: of a tap of an output, of an entry of the table, of an output, of a value copied to channels last.
_TAP, _ENTRY, _OUTPUT, _COPY = 0.04, 2.0, 0.1, 0.35
# Taps, for which the table of a few pixels stays small.
_MOST = 1 << 11

Pooling = structure("pooling.c", "pooling")


class NativePool(NativeKernel):
    """Windows of data that is channels last, or is copied so.

    Args:
        factors: of the sums of windows, one or one for each; None for maxima.
        copies: whether the data is copied.
    """

    def __init__(self, task: Task, windows: SlidingWindows, factors: np.ndarray | None, copies: bool) -> None:
        self.windows, self.copies, self.own = windows, copies, len(task.inputs)
        self.factors = None if factors is None else np.ascontiguousarray(factors).reshape(-1)
        self.images, self.channels, *self.sizes = task.shape(0)
        shape = task.output_shape()
        self.chain = NativeChain(task.chain, task.operands, shape, channel_axes(len(shape)))
        self.padding = np.full(self.channels, 0 if factors is not None else lowest(np.dtype(np.float32)), np.float32)
        self.pixels, taps = math.prod(windows.counts), math.prod(windows.kernel)
        work = self.pixels * taps * self.channels
        self.row_block = row_block(self.pixels, taps, taps * self.channels, max(1, min(8 * task.threads, work >> 18)))
        self.reads, self.algorithm = (0,), "C, pooling"
        copied = 4 * self.images * self.channels * math.prod(self.sizes) if copies else 0
        self.workspace, self.shared_workspace = table_bytes(self.row_block, taps), copied

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        image, channel, *spatial = element_strides(outputs[0])
        factors = None if self.factors is None else binding.address(self.factors)
        step = 0 if self.factors is None or self.factors.size == 1 else 1
        parameters = Pooling(
            self._windows(inputs[0], binding), binding.address(outputs[0]), image, three(spatial, 0), channel,
            self.chain.bind(inputs[self.own :], binding), factors, step, self.channels, self.pixels, self.row_block,
        )  # fmt: skip
        binding.call("irx_pool", parameters, self.images * -(-self.pixels // self.row_block))

    def _windows(self, x: np.ndarray, binding: Binding) -> Parameters:
        x = channels_last(x, binding.shared, binding) if self.copies else binding.with_stride(x, 1)
        return windows_of(x, self.windows, self.padding, binding)


LevelMaximaParameters = structure("integer_depthwise.c", "level_maxima")


class LevelMaxima(NativeKernel):
    """The largest level of each window of levels that are channels last."""

    def __init__(self, task: Task, windows: SlidingWindows) -> None:
        self.windows, self.images, self.channels = windows, *task.shape(0)[:2]
        self.pixels, taps = math.prod(windows.counts), math.prod(windows.kernel)
        self.block = row_block(self.pixels, taps, self.channels // 4, task.threads)
        self.workspace, self.reads = table_bytes(self.block + 8, taps), (0,)
        self.algorithm = "C, maxima of levels"

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        out, (image, row, _) = binding.written(outputs[0], channel_axes(inputs[0].ndim), innermost=1)
        zeros = np.zeros(self.channels, np.uint8)
        parameters = LevelMaximaParameters(
            windows_of(binding.with_stride(inputs[0], 1), self.windows, zeros, binding), binding.address(out), image,
            row, self.channels, self.pixels, -(-self.pixels // self.block),
        )  # fmt: skip
        binding.call("irx_level_maxima", parameters, self.images * parameters.row_parts)


@kernels("MaxPool", since=1)
@kernels("MaxPool", since=8)
@kernels("MaxPool", since=14)
def max_pool(task: Task) -> Iterator[Candidate]:
    """f32 and levels, if nothing reads the indices."""
    if not any(task.wanted[1:]):
        yield from _maxima_of_levels(task) if task.inputs[0].element is U8 else _candidates(task, lambda windows: None)


@kernels("AvgPool", since=1)
@kernels("AvgPool", since=14)
@kernels("AvgPool", since=16)
def avg_pool(task: Task) -> Iterator[Candidate]:
    """f32."""
    yield from _candidates(task, lambda windows: factors(task, windows))


def factors(task: Task, windows: SlidingWindows) -> np.ndarray:
    """Factors of the sums of windows (counts...), or one factor for all: one over the number of points that count."""
    if not task.attributes["attributes"].exclude_pad and any(map(any, windows.pads)):
        return np.array(1 / math.prod(windows.kernel), np.float32)
    counts = window_populations(task.shape(0)[2:], windows)
    found = np.where(counts > 0, 1 / np.maximum(counts, 1), 0).astype(np.float32)
    return found if np.ptp(found) else found.reshape(-1)[0]


def _candidates(task: Task, factors: Any) -> Iterator[Candidate]:
    shape = task.shape(0)
    facts = (task.inputs[0], task.outputs[0], *task.operands)
    if not task.native or library() is None or any(fact.element is not F32 for fact in facts):
        return
    if not has_elements(task) or not 3 <= len(shape) <= 5 or not fits(task, channel_axes(len(shape))):
        return
    windows = task.attributes["attributes"].windows(shape[2:])
    taps, pixels = math.prod(windows.kernel), math.prod(windows.counts)
    if taps > _MOST:
        return
    cost = STEP + shape[0] * pixels * (taps * (_ENTRY + shape[1] * _TAP) + shape[1] * _OUTPUT)
    copies = not is_channels_last(task.input_orders[0]) and math.prod(shape[2:]) > 1
    if copies:
        cost += STEP + _COPY * math.prod(shape)
    if not is_channels_last(task.output_orders[0]) and pixels > 1:
        cost += 0.4 * math.prod(task.output_shape())

    def make() -> NativePool:
        return NativePool(task, windows, factors(windows), copies)

    yield Candidate(cost, make)


def _maxima_of_levels(task: Task) -> Iterator[Candidate]:
    """Levels that are channels last, if no chain follows."""
    shape, orders = task.shape(0), (task.input_orders[0], task.output_orders[0])
    if not task.native or library() is None or task.chain is not None or not has_elements(task):
        return
    if 3 <= len(shape) <= 5 and all(is_channels_last(order) for order in orders):
        windows = task.attributes["attributes"].windows(shape[2:])
        taps, pixels = math.prod(windows.kernel), math.prod(windows.counts)
        cost = STEP + math.prod(task.output_shape()) * (taps * 0.03 + 0.1) + pixels * taps * 2
        yield Candidate(cost, functools.partial(LevelMaxima, task, windows))
