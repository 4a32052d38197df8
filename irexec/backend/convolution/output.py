"""Where blocks of a convolution's result are computed, and what follows while they are in cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.chain import Epilogue, part
from irexec.backend.convolution.geometry import flat_pixels, is_channels_last, is_matrix
from irexec.backend.kernel import Task
from irexec.backend.scratch import Scratch


class Output:
    """The result of a task (N, C, spatial...), with the chain that follows.

    Args:
        task: of any convolution.
        computed: the type that blocks are computed in.
    """

    def __init__(self, task: Task, computed: np.dtype) -> None:
        self.shape = task.output_shape()
        self.computed = computed
        self.channels_last = is_channels_last(task.output_orders[0] if task.output_orders else None)
        self.chain = task.chain
        self.operands = len(task.inputs)
        pixels = tuple(range(2, len(self.shape)))
        groups = ((0,), pixels, (1,)) if self.channels_last else ((0,), (1,), pixels)
        self.epilogue = Epilogue(task.chain, self.shape, groups)

    def workspace(self, elements: int) -> int:
        """Bytes of scratch for a block of so many elements, in the worst case."""
        return self.epilogue.workspace(elements) + 2 * (elements * 8 + 64)

    def bind(self, out: np.ndarray, inputs: Sequence[np.ndarray], spread: np.ndarray | None = None) -> BoundOutput:
        """For one run. ``inputs`` are all that the kernel was given; ``spread`` is for each channel the computed one that it equals."""
        return BoundOutput(self, out, self.epilogue.bind(inputs[self.operands :]), spread)


class BoundOutput:
    """The array of one run. Blocks are (channels, pixels)."""

    def __init__(self, output: Output, out: np.ndarray, operands: Sequence[np.ndarray], spread: np.ndarray | None) -> None:
        self._output, self._out, self._operands, self._spread = output, out, operands, spread
        flat = flat_pixels(out)
        self._copy = None if flat is not None else np.empty(out.shape, out.dtype)
        self._flat = flat if flat is not None else self._copy.reshape(*out.shape[:2], -1)  # type: ignore[union-attr]
        chain = output.chain
        whole = self._flat[0]
        same = out.dtype == output.computed and (chain is None or chain.dtype == chain.result == out.dtype)
        self._direct = same and spread is None and is_matrix(whole)

    def block(self, scratch: Scratch, image: int, channels: slice, pixels: slice) -> np.ndarray:
        """The array to write the block to; ``finish`` gets it back."""
        if self._direct:
            return self._flat[image, channels, pixels]
        shape = (channels.stop - channels.start, pixels.stop - pixels.start)
        if self._output.channels_last:
            return scratch.take(shape[::-1], self._output.computed).T
        return scratch.take(shape, self._output.computed)

    def finish(self, scratch: Scratch, block: np.ndarray, image: int, channels: slice, pixels: slice) -> None:
        """Run the chain on a block, and see that it is in the result."""
        if self._spread is not None:
            block, channels = block[self._spread], slice(0, len(self._spread))
        out = self._flat[image : image + 1, channels, pixels]
        block = block[None]
        region = [slice(image, image + 1), channels, pixels]
        if self._output.channels_last:
            out, block, region = out.swapaxes(1, 2), block.swapaxes(1, 2), [region[0], pixels, channels]
        chain = self._output.chain
        if chain is None:
            if not self._direct:
                np.copyto(out, block, casting="unsafe")
            return
        if chain.dtype != block.dtype:
            rounded = scratch.take(block.shape, chain.dtype)
            np.copyto(rounded, block, casting="unsafe")
            block = rounded
        chain.run(scratch, out, [block, *(part(operand, region) for operand in self._operands)], 0 if self._direct else -1)

    def end(self) -> None:
        """After the last block."""
        if self._copy is not None:
            np.copyto(self._out, self._copy)
