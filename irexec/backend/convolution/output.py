"""Where blocks of a convolution's result are computed, and the chain that runs on them while they are in cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.chain import Epilogue, part, run_block
from irexec.backend.convolution.geometry import flat_pixels, is_channels_last, is_matrix, split
from irexec.backend.kernel import Task
from irexec.backend.scratch import Scratch

# Elements on which a chain runs at once: its temporary arrays stay in cache too.
_CHAINED = 3 << 14


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
        self.epilogue = Epilogue(task.chain, self.shape, ((0,), pixels, (1,)) if self.channels_last else ((0,), (1,), pixels))

    def workspace(self, channels: int, pixels: int) -> int:
        """Bytes of scratch for a block of this size, in the worst case."""
        elements, row = channels * pixels, channels if self.channels_last else pixels
        chained = min(elements, max(_CHAINED, row))
        block = elements * self.computed.itemsize
        return self.epilogue.workspace(chained) + block + 8 * chained * len(self.epilogue_operands) + 256

    @property
    def epilogue_operands(self) -> range:
        """The indexes of the chain's inputs other than the result."""
        return range(1, self.chain.inputs) if self.chain is not None else range(0)

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
        same = out.dtype == output.computed and (chain is None or chain.dtype == chain.result == out.dtype)
        self._direct = same and spread is None and is_matrix(self._flat[0])

    def block(self, scratch: Scratch, image: int, channels: slice, pixels: slice) -> np.ndarray:
        """The array to write the block to; ``finish`` gets it back."""
        if self._is_direct(channels, pixels):
            return self._flat[image, channels, pixels]
        shape = (channels.stop - channels.start, pixels.stop - pixels.start)
        if self._output.channels_last:
            return scratch.take(shape[::-1], self._output.computed).T
        return scratch.take(shape, self._output.computed)

    def _is_direct(self, channels: slice, pixels: slice) -> bool:
        """Whether a block is computed in the result itself: NumPy's functions are slow on short rows that do not follow each other."""
        if not self._direct or self._output.chain is None:
            return self._direct
        axis, within = (1, channels) if self._output.channels_last else (2, pixels)
        return within.stop - within.start == self._flat.shape[axis]

    def finish(self, scratch: Scratch, block: np.ndarray, image: int, channels: slice, pixels: slice) -> None:
        """Run the chain on a block, and see that it is in the result."""
        if self._spread is not None:
            block, channels = block[self._spread], slice(0, len(self._spread))
        out = self._flat[image : image + 1, channels, pixels]
        values, region = block[None], [slice(image, image + 1), channels, pixels]
        if self._output.channels_last:
            out, values, region = out.swapaxes(1, 2), values.swapaxes(1, 2), [region[0], pixels, channels]
        if self._output.chain is not None:
            operands = [part(operand, region) for operand in self._operands]
            for some in split(out.shape[1], max(1, _CHAINED // out.shape[2])):
                pieces = [operand[:, some] if operand.shape[1] > 1 else operand for operand in operands]
                self._chain(scratch, out[:, some], values[:, some], pieces)
        elif not self._direct:
            np.copyto(out, values, casting="unsafe")

    def _chain(self, scratch: Scratch, out: np.ndarray, values: np.ndarray, operands: Sequence[np.ndarray]) -> None:
        """Run the chain on ``values``, which may be ``out``."""
        chain = self._output.chain
        assert chain is not None
        mark = scratch.mark()
        if values.dtype != chain.dtype:
            rounded = scratch.take(values.shape, chain.dtype)
            np.copyto(rounded, values, casting="unsafe")
            values = rounded
        gathered = [_gathered(scratch, operand, out.shape) for operand in operands]
        if values.dtype == chain.result:
            run_block(chain, scratch, values, [values, *gathered], 0)
            if not np.may_share_memory(values, out):
                np.copyto(out, values, casting="unsafe")
        else:
            run_block(chain, scratch, out, [values, *gathered])
        scratch.release(mark)

    def end(self) -> None:
        """After the last block."""
        if self._copy is not None:
            np.copyto(self._out, self._copy)


def _gathered(scratch: Scratch, operand: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The operand of a chain; a whole one whose rows do not follow each other is copied, which is faster than to compute with it."""
    if operand.shape != shape or operand.flags.c_contiguous:
        return operand
    copy = scratch.take(shape, operand.dtype)
    np.copyto(copy, operand)
    return copy
