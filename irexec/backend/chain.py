"""Chains of element-wise operations, computed block by block, so that intermediate values stay in cache."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.backend.scratch import Scratch
from irexec.reference.grids import Grid

BlockFunction = Callable[..., object]
"""``function(scratch, out, *arguments)`` writes the result of one block. All arrays broadcast to ``out``."""

Groups = tuple[tuple[int, ...], ...]
"""The axes of a tensor, in any order, those that a kernel treats as one in a tuple of their own."""


@dataclass(frozen=True)
class Formula:
    """A function of one or two f32 arguments, as the C library knows it.

    Attributes:
        name: of the function; see backend/native/chains.py.
        p, q: its constants.
        table: further constants, f64 of shape (parts, ...), that broadcast to the result without their first axis; None
            where there are none. Arguments after the first are not read then.
        grid: the levels that it reads or leaves; None where it computes floats of floats.
    """

    name: str
    p: float = 0.0
    q: float = 0.0
    table: np.ndarray | None = field(default=None, compare=False, repr=False)
    grid: Grid | None = None


@dataclass(frozen=True, eq=False)
class Instruction:
    """One operation of a chain.

    Attributes:
        type: the operation's type, for reports.
        function: computes a block.
        sources: registers; 0 to ``inputs`` - 1 are the chain's inputs, then follow the instructions' results in order.
        dtype: of the result.
        in_place: whether ``out`` may be one of the arguments; it is then the same array object.
        temporaries: arrays of the block's size that the function takes from the scratch.
        passes: the cost of the function, in additions of a block.
        formula: the same function in C, for f32; None where the library has none.
    """

    type: str
    function: BlockFunction
    sources: tuple[int, ...]
    dtype: np.dtype
    in_place: bool = True
    temporaries: int = 0
    passes: float = 1
    formula: Formula | None = None


Shared = int | tuple[int, ...]
"""The input, or the inputs, whose memory the output is; -1 if it is the memory of none."""


@dataclass(frozen=True)
class _Program:
    """A chain with its results assigned to arrays.

    Attributes:
        temporaries: the types of the temporary arrays.
        steps: for each instruction the function, the array that it writes (0 is ``out``, k is temporary k - 1), the
            registers it reads.
        copies: whether the result is in a temporary array at the end.
    """

    temporaries: tuple[np.dtype, ...]
    steps: tuple[tuple[BlockFunction, int, tuple[int, ...]], ...]
    copies: bool


@dataclass(frozen=True, eq=False)
class Chain:
    """Element-wise operations, each on a block in turn; the last one computes the result.

    Attributes:
        inputs: their number.
        dtype: of input 0.
        instructions: in order; all results have the shape that the chain gives.
        last_reads: for each register the last instruction that reads it, -1 if none does.
    """

    inputs: int
    dtype: np.dtype
    instructions: tuple[Instruction, ...]
    last_reads: tuple[int, ...] = field(init=False, repr=False)
    _programs: dict[tuple[Shared, bool], _Program] = field(init=False, repr=False, default_factory=dict)

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

    @functools.cached_property
    def passes(self) -> float:
        """The cost of the chain, in additions of a block."""
        return sum(instruction.passes for instruction in self.instructions)

    @functools.cached_property
    def temporaries(self) -> int:
        """Number of block-sized arrays, of at most eight bytes an element, that a run takes from the scratch."""
        return 1 + len(self.instructions) + max(instruction.temporaries for instruction in self.instructions)

    def workspace(self, elements: int) -> int:
        """Bytes of scratch for a block of ``elements``, if ``out`` shares memory with no input but the first."""
        return self._element_bytes * elements + 64 * self.temporaries

    @functools.cached_property
    def _element_bytes(self) -> int:
        """Bytes of scratch for each element of a block."""
        # Bounds of the bytes of an element of the functions' own temporary arrays.
        sizes = (max(4, self.dtype.itemsize, instruction.dtype.itemsize) for instruction in self.instructions)
        own = max(one.temporaries * size for one, size in zip(self.instructions, sizes, strict=True))
        programs = [self._program(shared, staged) for shared in (-1, 0) for staged in (False, True)]
        return own + max(sum(dtype.itemsize for dtype in program.temporaries) for program in programs)

    def run(self, scratch: Scratch, out: np.ndarray, arguments: Sequence[np.ndarray], shared: Shared = -1) -> None:
        """Write the result for one block.

        Args:
            out: of the type ``result``.
            arguments: a block of each input, of shapes that broadcast to that of ``out``.
            shared: the input that ``out`` is the memory of, which must be the same array object; -1 if it is none's.
        """
        self.run_blocks(scratch, ((out, arguments),), shared)

    def run_blocks(
        self, scratch: Scratch, blocks: Iterable[tuple[np.ndarray, Sequence[np.ndarray]]], shared: Shared = -1
    ) -> None:
        """``run`` for the outputs and arguments of several blocks; preparation is shared by blocks of equal shape."""
        mark = scratch.mark()
        shape: tuple[int, ...] | None = None
        for out, arguments in blocks:
            if out.shape != shape:
                shape = out.shape
                # The rows of a strided block cost time in every function, so that only the first and the last one see
                # them.
                staged = self.passes > _FEW_PASSES and not out.flags.c_contiguous
                program = self._programs.get((shared, staged)) or self._program(shared, staged)
                scratch.release(mark)
                temporaries = [scratch.take(shape, dtype) for dtype in program.temporaries]
                if out.size == 0:
                    break
            arrays = [out, *temporaries]
            registers = [*arguments]
            for function, target, sources in program.steps:
                result = arrays[target]
                scratch.work(function, result, *[registers[source] for source in sources])
                registers.append(result)
            if program.copies:
                scratch.do(np.copyto, out, registers[-1])
        scratch.release(mark)

    def _program(self, shared: Shared, staged: bool) -> _Program:
        made = self._programs.get((shared, staged))
        if made is None:
            made = self._programs[shared, staged] = _Schedule(self, shared, staged).made()
        return made


_FEW_PASSES = 2.5


class _Schedule:
    """Assigns results to ``out`` and to temporary arrays, which are reused after the last read.

    Args:
        staged: ``out`` is written by the last instruction only, and only if that goes over it a few times.
    """

    def __init__(self, chain: Chain, shared: Shared, staged: bool) -> None:
        self.chain, self.staged = chain, staged
        self.temporaries: list[np.dtype] = []
        # Registers in each array; array 0 is ``out``.
        self.holds: list[tuple[int, ...]] = [shared if isinstance(shared, tuple) else (shared,)]

    def made(self) -> _Program:
        steps = []
        target = 0
        for i, instruction in enumerate(self.chain.instructions):
            target = self._target(i, instruction)
            self.holds[target] = (self.chain.inputs + i,)
            steps.append((instruction.function, target, instruction.sources))
        return _Program(tuple(self.temporaries), tuple(steps), target != 0)

    def _target(self, i: int, instruction: Instruction) -> int:
        types = [self.chain.result, *self.temporaries]
        for array, dtype in enumerate(types):
            if dtype == instruction.dtype and self._is_free(array, i, instruction):
                return array
        self.temporaries.append(instruction.dtype)
        self.holds.append(())
        return len(self.temporaries)

    def _is_free(self, array: int, i: int, instruction: Instruction) -> bool:
        if array == 0 and self.staged and (i < len(self.chain.instructions) - 1 or instruction.passes > _FEW_PASSES):
            return False
        last = max((self.chain.last_reads[held] for held in self.holds[array] if held >= 0), default=-1)
        return last < i or (last == i and instruction.in_place)


# Maximum length of rows that are put together, and the length that results. NumPy copies the operand for rows of up to
# half its buffer's length (see set_for_run): 32 elements take three times as long as in a longer row, 192 twice.
_NARROW = 255
_WIDENED = 1024
# Bytes of repeated operands.
_TILES = 1 << 16


def has_short_rows(array: np.ndarray) -> bool:
    """Whether ``run_block`` may do more than ``Chain.run`` for blocks of the array."""
    return array.ndim > 0 and 1 < array.shape[-1] <= _NARROW


def run_block(
    chain: Chain, scratch: Scratch, out: np.ndarray, arguments: Sequence[np.ndarray], shared: Shared = -1
) -> None:
    """``chain.run`` on a block whose rows may be short.

    Where a short row is combined with the same operand on every row (a bias), NumPy spends more time on beginning it
    and on copying the operand than on its elements. So several rows become one, and the operand is repeated.
    """
    if has_short_rows(out) and out.size > _WIDENED and out.flags.c_contiguous:
        width = out.shape[-1]
        rows = out.size // width
        operands = [_by_rows(argument, out, rows) for argument in arguments]
        if any(operand is not None and operand.shape == (1, width) for operand in operands):
            known = [operand for operand in operands if operand is not None]
            if len(known) == len(operands):
                _run_rows(chain, scratch, out.reshape(rows, width), known, shared)
                return
    chain.run(scratch, out, arguments, shared)


def _by_rows(operand: np.ndarray, out: np.ndarray, rows: int) -> np.ndarray | None:
    """A view of shape (rows or 1, size of the last axis or 1); None if it has none that is contiguous."""
    width = out.shape[-1]
    if operand.shape == out.shape:
        return operand.reshape(rows, width) if operand.flags.c_contiguous else None
    if operand.size == width and operand.shape[-1:] == (width,):
        return operand.reshape(1, width)
    return operand.reshape(1, 1) if operand.size == 1 else None


def _run_rows(chain: Chain, scratch: Scratch, out: np.ndarray, operands: Sequence[np.ndarray], shared: Shared) -> None:
    """The chain on a block of shape (rows, width), with several rows in one."""
    rows, width = out.shape
    together = min(rows, -(-_WIDENED // width))
    whole = rows // together * together
    own = shared if isinstance(shared, tuple) else (shared,)
    mark = scratch.mark()
    for first, last, count in ((0, whole, together), (whole, rows, 1)):
        if first < last:
            piece = out[first:last].reshape(-1, count * width)
            blocks = [
                piece if i in own else _joined(scratch, operand, slice(first, last), count, width)
                for i, operand in enumerate(operands)
            ]
            chain.run(scratch, piece, blocks, shared)
            scratch.release(mark)


def _joined(scratch: Scratch, operand: np.ndarray, rows: slice, count: int, width: int) -> np.ndarray:
    """Rows of an operand, ``count`` of them in one; a single row is repeated."""
    if operand.shape[0] > 1:
        return operand[rows].reshape(-1, count * width)
    if operand.shape[1] == 1 or count == 1:
        return operand
    tile = scratch.take((count, width), operand.dtype)
    scratch.do(np.copyto, tile, operand)
    return tile.reshape(1, -1)


class Epilogue:
    """A chain after a kernel that produces its output in blocks; every call but ``bind`` is recorded.

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
        """Apply the chain in place to ``block``, the kernel's result for ``region`` (a slice for each group)."""
        if self.chain is not None:
            run_block(self.chain, scratch, block, [block, *(part(operand, region) for operand in operands)], 0)

    def workspace(self, elements: int) -> int:
        """Bytes of scratch for blocks of ``elements`` elements."""
        return 0 if self.chain is None else self.chain.workspace(elements) + _TILES


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
