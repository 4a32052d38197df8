"""The base of the kernels of transposed convolutions: weights, and blocks of rows and output channels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.filter_weights import FilterWeights
from irexec.backend.convolution.geometry import longest
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import TransposedGeometry


@dataclass(frozen=True)
class Blocks(ABC):
    """How a transposed convolution is cut, and its estimated cost.

    Args:
        channels_last: whether columns are (pixels, taps, channels), or (channels, taps, pixels).
    """

    geometry: TransposedGeometry
    channels_last: bool = False

    @property
    @abstractmethod
    def rows(self) -> list[slice]:
        """Ranges of the first spatial axis, each of which gives as many rows times the stride."""

    @property
    @abstractmethod
    def channels(self) -> list[slice]:
        """Ranges of the output channels of all groups."""

    @property
    @abstractmethod
    def scratch(self) -> int:
        """Bytes of scratch of a block without the chain."""

    @abstractmethod
    def cost(self, data_last: bool, result_last: bool) -> float:
        """Estimated nanoseconds for data and a result in C order or channels last."""

    def workspace(self, output: Output) -> int:
        """Bytes of scratch of a block."""
        g, rows = self.geometry, longest(self.rows)
        pixels = min(rows * g.windows.strides[0], g.windows.counts[0]) * math.prod(g.windows.counts[1:])
        return self.scratch + output.workspace(longest(self.channels), pixels) + 512


class RowBlocks(Kernel):
    """A subclass computes a block."""

    def __init__(self, task: Task, blocks: Blocks, algorithm: str, weights: FilterWeights) -> None:
        super().__init__(algorithm, splits=True, records=weights.is_constant)
        self.reads = (0,) if weights.is_constant else None
        self.geometry, self.weights, self.rows, self.channels = blocks.geometry, weights, blocks.rows, blocks.channels
        self.output = Output(task, blocks.geometry.computed)
        self.workspace = blocks.workspace(self.output)

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g, x = self.geometry, inputs[0]
        matrices = self.weights.packed(inputs[1]).array
        out = self.output.bind(context, outputs[0], inputs)
        stride, counts = g.windows.strides[0], g.windows.counts
        inner = math.prod(counts[1:])
        blocks = [(n, r, c) for n in range(g.images) for r in self.rows for c in self.channels]

        def block(index: int, scratch: Scratch) -> None:
            image, rows, channels = blocks[index]
            first, last = rows.start * stride, min(rows.stop * stride, counts[0])
            if first >= last:
                return
            pixels = slice(first * inner, last * inner)
            result = out.block(scratch, image, channels, pixels)
            mark = scratch.mark()
            self.compute(scratch, x[image], matrices, rows, channels, result)
            scratch.release(mark)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(len(blocks), block)
        out.end()

    @abstractmethod
    def compute(
        self, scratch: Scratch, image: np.ndarray, matrices: Any, rows: slice, channels: slice, result: np.ndarray
    ) -> None:
        """Write a block to ``result`` (channels, pixels).

        ``image`` is (inputs of all groups, sizes...).
        """

    def with_sizes(self, result: np.ndarray) -> np.ndarray:
        """The result of a block as (channels, rows, other sizes...)."""
        return result.reshape(len(result), -1, *self.geometry.windows.counts[1:])
