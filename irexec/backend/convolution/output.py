"""Where blocks of a convolution's result are computed, and the chain that runs on them while they are in cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from irexec.backend.chain import Epilogue, has_short_rows, merged, run_block
from irexec.backend.convolution.geometry import flat_pixels, is_channels_last
from irexec.backend.kernel import KernelContext, Task
from irexec.backend.linear import suits_blas
from irexec.backend.scratch import Scratch

# Elements on which a chain runs at once: its temporary arrays stay in cache too.
_CHAINED = 3 << 14


class Output:
    """The result of a task (N, C, spatial...), with the chain that follows.

    A block is a matrix: (channels, pixels) for the kernel, and for the chain the same or, channels last, its transpose.

    Args:
        task: of any convolution.
        computed: the type that blocks are computed in.
    """

    def __init__(self, task: Task, computed: np.dtype) -> None:
        self.shape = task.output_shape()
        self.channels, self.pixels = self.shape[1], math.prod(self.shape[2:])
        self.computed, self.chain = computed, task.chain
        self.channels_last = is_channels_last(task.output_orders[0] if task.output_orders else None)
        self.first_operand = len(task.inputs)
        spatial = tuple(range(2, len(self.shape)))
        self.groups = ((0,), spatial, (1,)) if self.channels_last else ((0,), (1,), spatial)
        self._epilogue = Epilogue(task.chain, self.shape, self.groups)
        self._ranked = [(1,) * (len(self.shape) - len(fact.shape or ())) + (fact.shape or ()) for fact in task.operands]
        dtype = np.dtype(task.outputs[0].element.carrier) if task.outputs[0].element is not None else computed
        # Whether the chain may run where the block was computed, and whether that may be the result itself.
        self.in_place = self.chain is None or self.chain.dtype == self.chain.result == computed
        self.is_same = self.in_place and dtype == computed

    def workspace(self, channels: int, pixels: int) -> int:
        """Bytes of scratch for a block of this size, in the worst case."""
        elements, row = channels * pixels, channels if self.channels_last else pixels
        chained = min(elements, max(_CHAINED, row))
        whole = sum(shape == self.shape for shape in self._ranked)
        return self._epilogue.workspace(chained) + elements * self.computed.itemsize * (1 + whole) + 8 * chained + 256

    def bind(
        self, context: KernelContext, out: np.ndarray, inputs: Sequence[np.ndarray], spread: np.ndarray | None = None
    ) -> BoundOutput:
        """The output of one run.

        ``inputs`` are all inputs of the kernel; ``spread`` is the computed channel for each channel of the
        result.
        """
        given = inputs[self.first_operand :]
        operands = [self._operand(x, shape) for x, shape in zip(given, self._ranked, strict=False)]
        bound = BoundOutput(self, out, context.views(given, operands), spread)
        if bound.copy is not None:
            context.not_repeatable()
        return bound

    def _operand(self, operand: np.ndarray, ranked: Sequence[object]) -> np.ndarray:
        """An operand of the chain as matrices: (N or 1, ...) with axes as blocks have them, each of size 1 or full."""
        if operand.size == 1:
            return operand.reshape(1, 1, 1)
        if operand.size == self.channels and ranked[1] == self.channels:
            return operand.reshape((1, 1, -1) if self.channels_last else (1, -1, 1))
        if operand.shape == self.shape:
            flat = flat_pixels(operand)
            if flat is not None:
                return flat.swapaxes(1, 2) if self.channels_last else flat
        return merged(operand, self.shape, self.groups)


class BoundOutput:
    """The array of one run."""

    def __init__(
        self, output: Output, out: np.ndarray, operands: Sequence[np.ndarray], spread: np.ndarray | None
    ) -> None:
        self._output, self._out, self._operands, self._spread = output, out, operands, spread
        flat = flat_pixels(out)
        self.copy: np.ndarray | None = None
        if flat is None:
            self.copy = np.empty(out.shape, out.dtype)
            flat = self.copy.reshape(*out.shape[:2], -1)
        self._flat = flat
        self._direct = output.is_same and spread is None and suits_blas(self._flat[0])

    def block(self, scratch: Scratch, image: int, channels: slice, pixels: slice) -> np.ndarray:
        """The array to write the block to; ``finish`` gets it back."""
        if self._is_direct(channels, pixels):
            return self._flat[image, channels, pixels]
        shape = (channels.stop - channels.start, pixels.stop - pixels.start)
        if self._output.channels_last:
            return scratch.take(shape[::-1], self._output.computed).T
        return scratch.take(shape, self._output.computed)

    def _is_direct(self, channels: slice, pixels: slice) -> bool:
        """True if a block is computed in the result itself; NumPy is slow on short rows that are not contiguous."""
        o = self._output
        if not self._direct or o.chain is None:
            return self._direct
        return (
            channels.stop - channels.start == o.channels if o.channels_last else pixels.stop - pixels.start == o.pixels
        )

    def finish(self, scratch: Scratch, block: np.ndarray, image: int, channels: slice, pixels: slice) -> None:
        """Run the chain on a block, and see that it is in the result."""
        o = self._output
        is_direct = self._is_direct(channels, pixels)
        if self._spread is not None:
            block, channels = self._spread_out(scratch, block), slice(0, o.channels)
        if o.chain is None:
            if not is_direct:
                scratch.do(np.copyto, self._flat[image, channels, pixels], block, casting="unsafe")
            return
        outer, inner = (pixels, channels) if o.channels_last else (channels, pixels)
        values = block.T if o.channels_last else block
        operands = [_part(operand, image, outer, inner) for operand in self._operands]
        if o.in_place:
            self._run_in_place(scratch, values, operands)
        if not (o.in_place and is_direct):
            out = self._flat[image, channels, pixels]
            out = out.T if o.channels_last else out
            if o.in_place:
                scratch.do(np.copyto, out, values, casting="unsafe")
            else:
                self._run_into(scratch, out, values, operands)

    def _spread_out(self, scratch: Scratch, block: np.ndarray) -> np.ndarray:
        """All channels of a block whose equal ones were computed once."""
        channels, pixels = len(self._spread) if self._spread is not None else 0, block.shape[1]
        last = self._output.channels_last
        spread = (
            scratch.take((pixels, channels), block.dtype).T if last else scratch.take((channels, pixels), block.dtype)
        )
        scratch.do(np.take, block, self._spread, 0, out=spread, mode="clip")
        return spread

    def _run_in_place(self, scratch: Scratch, values: np.ndarray, operands: Sequence[np.ndarray]) -> None:
        chain = self._output.chain
        assert chain is not None
        operands = [_gathered(scratch, operand, values.shape) for operand in operands]
        blocks = ((piece, [piece, *others]) for piece, others in _pieces(values, operands))
        if not has_short_rows(values):
            chain.run_blocks(scratch, blocks, 0)
            return
        for piece, arguments in blocks:
            run_block(chain, scratch, piece, arguments, 0)

    def _run_into(self, scratch: Scratch, out: np.ndarray, values: np.ndarray, operands: Sequence[np.ndarray]) -> None:
        """For a chain of another type than the block, or that changes it. What it begins with is rounded first."""
        chain = self._output.chain
        assert chain is not None
        for piece, (part, *others) in _pieces(out, [values, *operands]):
            mark = scratch.mark()
            rounded = part
            if part.dtype != chain.dtype:
                rounded = scratch.take(part.shape, chain.dtype)
                scratch.do(np.copyto, rounded, part, casting="unsafe")
            chain.run(scratch, piece, [rounded, *others])
            scratch.release(mark)

    def end(self) -> None:
        """After the last block."""
        if self.copy is not None:
            np.copyto(self._out, self.copy)


def _part(operand: np.ndarray, image: int, outer: slice, inner: slice) -> np.ndarray:
    """The part of an operand that a block needs; axes of size 1 are kept whole."""
    matrix = operand[image if operand.shape[0] > 1 else 0]
    rows, columns = matrix.shape
    if rows > 1 and outer.stop - outer.start < rows:
        matrix = matrix[outer]
    if columns > 1 and inner.stop - inner.start < columns:
        matrix = matrix[:, inner]
    return matrix


def _pieces(out: np.ndarray, arguments: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Rows of ``out`` and what the arguments have for them, as many as a chain runs on at once."""
    rows = max(1, _CHAINED // out.shape[1])
    for first in range(0, out.shape[0], rows):
        piece = out[first : first + rows]
        yield piece, [argument[first : first + rows] if argument.shape[0] > 1 else argument for argument in arguments]


def _gathered(scratch: Scratch, operand: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The operand of a chain; copied if it is whole and its rows are not contiguous, which is faster."""
    if operand.shape != shape or operand.flags.c_contiguous:
        return operand
    copy = scratch.take(shape, operand.dtype)
    scratch.do(np.copyto, copy, operand)
    return copy
