"""Chains of element-wise operations, computed block by block, so that what is between them stays in cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.backend.scratch import Scratch

BlockFunction = Callable[..., object]
"""``function(scratch, out, *arguments)`` writes the result for one block. All arrays have shapes that broadcast to that of ``out``."""

Groups = tuple[tuple[int, ...], ...]
"""The axes of a tensor, in any order, those that a kernel treats as one in a tuple of their own."""


@dataclass(frozen=True, eq=False)
class Instruction:
    """One operation of a chain.

    Attributes:
        type: the operation's type, for reports.
        function: computes a block.
        sources: registers; 0 to ``inputs`` - 1 are the chain's inputs, then follow the instructions' results in order.
        dtype: of the result.
        in_place: whether ``out`` may be one of the arguments.
        temporaries: arrays of the block's size that the function takes from the scratch.
    """

    type: str
    function: BlockFunction
    sources: tuple[int, ...]
    dtype: np.dtype
    in_place: bool = True
    temporaries: int = 0


@dataclass(frozen=True, eq=False)
class Chain:
    """Element-wise operations, each on a block in turn; the last one gives the result.

    Attributes:
        inputs: how many.
        dtype: of input 0.
        instructions: in order; all results have the shape that the chain gives.
        last_reads: for each register the last instruction that reads it, -1 if none does.
    """

    inputs: int
    dtype: np.dtype
    instructions: tuple[Instruction, ...]
    last_reads: tuple[int, ...] = field(init=False, repr=False)
    _schedules: dict[int, tuple[list[np.dtype], list[int]]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        last = [-1] * (self.inputs + len(self.instructions))
        for i, instruction in enumerate(self.instructions):
            for source in instruction.sources:
                last[source] = i
        object.__setattr__(self, "last_reads", tuple(last))

    def __str__(self) -> str:
        return ", ".join(instruction.type for instruction in self.instructions)

    @property
    def result(self) -> np.dtype:
        """The type of the result."""
        return self.instructions[-1].dtype

    @property
    def temporaries(self) -> int:
        """Arrays of a block's size, of at most eight bytes an element, that a run takes from the scratch."""
        return 1 + len(self.instructions) + max(instruction.temporaries for instruction in self.instructions)

    def run(self, scratch: Scratch, out: np.ndarray, arguments: Sequence[np.ndarray], shared: int = -1) -> None:
        """Write the result for one block.

        Args:
            out: of the type ``result``.
            arguments: a block of each input, of shapes that broadcast to that of ``out``.
            shared: the input that ``out`` is the memory of; -1 if it is none's.
        """
        temporaries, targets = self._schedule(shared)
        mark = scratch.mark()
        arrays = [out, *(scratch.take(out.shape, dtype) for dtype in temporaries)]
        registers = [*arguments]
        for instruction, target in zip(self.instructions, targets, strict=True):
            result = arrays[target]
            inner = scratch.mark()
            instruction.function(scratch, result, *(registers[s] for s in instruction.sources))
            scratch.release(inner)
            registers.append(result)
        if targets[-1] != 0:
            np.copyto(out, registers[-1])
        scratch.release(mark)

    def _schedule(self, shared: int) -> tuple[list[np.dtype], list[int]]:
        """The types of the temporary arrays, and where each instruction writes: 0 is ``out``, k is temporary k - 1."""
        made = self._schedules.get(shared)
        if made is None:
            made = self._schedules[shared] = _Schedule(self, shared).made()
        return made


class _Schedule:
    """Assigns results to ``out`` and to temporary arrays; an array is taken again once what it holds is not read any more."""

    def __init__(self, chain: Chain, shared: int) -> None:
        self.chain = chain
        self.temporaries: list[np.dtype] = []
        # What each array holds; array 0 is ``out``.
        self.holds: list[int] = [shared]

    def made(self) -> tuple[list[np.dtype], list[int]]:
        targets = []
        for i, instruction in enumerate(self.chain.instructions):
            target = self._target(i, instruction)
            self.holds[target] = self.chain.inputs + i
            targets.append(target)
        return self.temporaries, targets

    def _target(self, i: int, instruction: Instruction) -> int:
        types = [self.chain.result, *self.temporaries]
        for array, dtype in enumerate(types):
            if dtype == instruction.dtype and self._is_free(array, i, instruction):
                return array
        self.temporaries.append(instruction.dtype)
        self.holds.append(-1)
        return len(self.temporaries)

    def _is_free(self, array: int, i: int, instruction: Instruction) -> bool:
        held = self.holds[array]
        last = -1 if held < 0 else self.chain.last_reads[held]
        return last < i or (last == i and instruction.in_place)


class Epilogue:
    """A chain that follows a kernel which produces its output in blocks.

    Args:
        chain: its input 0 is what the kernel produces.
        shape: of the output.
        groups: the axes that the kernel's blocks have; each group of axes is one axis of them.
    """

    def __init__(self, chain: Chain | None, shape: Sequence[int], groups: Groups) -> None:
        self.chain, self._shape, self._groups = chain, tuple(shape), groups

    def bind(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The operands (the chain's inputs from 1 on) with the axes of the blocks, each of size 1 or full."""
        return [] if self.chain is None else [merged(operand, self._shape, self._groups) for operand in operands]

    def run(self, scratch: Scratch, block: np.ndarray, operands: Sequence[np.ndarray], region: Sequence[slice]) -> None:
        """Replace ``block`` (what the kernel produced for ``region``, a slice for each group) by the result of the chain, in place."""
        if self.chain is not None:
            self.chain.run(scratch, block, [block, *(part(operand, region) for operand in operands)], 0)

    def workspace(self, elements: int) -> int:
        """Bytes of scratch for blocks of so many elements."""
        return 0 if self.chain is None else self.chain.temporaries * (elements * max(4, self.chain.dtype.itemsize) + 64)


def part(operand: np.ndarray, region: Sequence[slice]) -> np.ndarray:
    """The region of a merged operand; axes of size 1 are kept whole."""
    return operand[tuple(s if size != 1 else slice(None) for s, size in zip(region, operand.shape, strict=True))]


def merged(array: np.ndarray, shape: Sequence[int], groups: Groups) -> np.ndarray:
    """``array``, which broadcasts to ``shape``, with the axes of each group merged into one, of size 1 or full.

    It is copied only where a group is broadcast in part, or does not lie in memory in that order.
    """
    whole = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    sizes = list(whole.shape)
    for group in groups:
        if any(sizes[axis] != 1 for axis in group):
            for axis in group:
                sizes[axis] = shape[axis]
    if sizes != list(whole.shape):
        whole = np.broadcast_to(whole, sizes)
    order = [axis for group in groups for axis in group]
    return whole.transpose(order).reshape([math.prod(sizes[axis] for axis in group) for group in groups])
