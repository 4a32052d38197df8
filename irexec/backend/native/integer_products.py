"""Products of rows of levels with packed integers, and their end: bias, residual, limits and levels.

irexec/native/source/integer_product.c and levels.h have the other side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, loaded
from irexec.backend.chain import Chain
from irexec.backend.constants import ConstantStore
from irexec.backend.copies import array_at, bind_copies, bordered
from irexec.backend.kernel import Task
from irexec.backend.native.chains import Axes, NativeChain
from irexec.backend.native.panels import Cut, padded, panel_of, table_bytes
from irexec.backend.scratch import aligned
from irexec.dtypes.elements import U8
from irexec.ir.facts import Fact
from irexec.native.structures import Parameters, structure
from irexec.reference.grids import Grid

Ending = structure("levels.h", "ending")


@dataclass
class Absorbed:
    """The parts of a product's chain that C computes without a program, in their order, and the program between them.

    Attributes:
        scale, bias: factors of the sums of each column, and what is added then; ones and zeros without them.
        program: the instructions that follow the bias and need a program; None without any.
        factor: factors of the program's result, one for each column; ones without them.
        first_low, first_high, first: limits, and the levels that the values are rounded to, before anything is added;
            None where they are not.
        addend: the operand of levels that is added, and its grid.
        low, high: limits.
        levels: the grid of the result; None for floats, or where the program leaves levels.
    """

    scale: np.ndarray
    bias: np.ndarray
    factor: np.ndarray
    program: Chain | None = None
    first_low: float = -math.inf
    first_high: float = math.inf
    first: Grid | None = None
    addend: tuple[int, Grid] | None = None
    low: float = -math.inf
    high: float = math.inf
    levels: Grid | None = None

    def numbers(self) -> tuple[int, np.ndarray, np.ndarray, tuple[float, float]] | None:
        """The last step from a sum to its level: round(clip(sum * unit + shift, limits)) + zero.

        Returns:
            The level ``zero`` of the value 0, the fraction ``shift`` of a level that it is off by, levels per unit of
            the result, and both limits, less ``zero``. None where a limit differs from column to column.
        """
        one = np.ones(1)
        if self.levels is None:
            return 0, 0 * one, one, (self.low, self.high)
        zero, unit = round(self.levels.origin[0]), self.levels.per_unit
        shift = self.levels.origin - zero
        bounds = -zero, self.levels.levels - 1 - zero
        limits = [np.clip(limit * unit + shift, *bounds) for limit in (self.low, self.high)]
        if not all((limit == limit[0]).all() for limit in limits):
            return None
        if unit.size > 1 and (self.first is not None or self.addend is not None):
            return None
        return zero, shift, unit, (float(limits[0][0]), float(limits[1][0]))


_ORDER = ("Quantize", "AddLevels", "Clamp", "Levels")
"""The functions of the end of a chain, each at most once; limits may also stand before the first levels."""


def absorbed(chain: Chain | None, operands: Sequence[Fact], columns: int, is_column: Sequence[bool]) -> Absorbed:
    """The chain in parts: scale and bias in front, and the longest end that needs no program.

    Args:
        is_column: for each operand whether it has one value for each column, or one for all.
    """
    if chain is None:
        return _nothing(columns)
    scale, bias, begin, count = np.ones(columns), np.zeros(columns), 0, len(chain.instructions)
    while begin < count and (found := _constants(chain, begin, operands, is_column, columns)) is not None:
        name, values = found
        if name == "Add":
            bias = bias + values
        elif _is_regular(scale * values):
            scale, bias = scale * values, bias * values
        else:
            break
        begin += 1
    made, split = _nothing(columns), count
    for start in range(begin, count):
        found_end = _end_of(chain, start, is_column, columns)
        # After a program limits are as well computed by it.
        if found_end is not None and (start == begin or found_end.first is not None or found_end.levels is not None):
            made, split = found_end, start
            break
    if split > begin + 1 and (made.first is not None or made.levels is not None):
        last = _constants(chain, split - 1, operands, is_column, columns)
        if last is not None and last[0] == "Multiply" and _is_regular(last[1]):
            made.factor, split = last[1], split - 1
    made.scale, made.bias = scale, bias

    def moved(source: int) -> int:
        return source if source < chain.inputs else 0 if source - chain.inputs < begin else source - begin

    instructions = [replace(one, sources=tuple(map(moved, one.sources))) for one in chain.instructions[begin:split]]
    made.program = Chain(chain.inputs, chain.dtype, tuple(instructions)) if instructions else None
    return made


def _nothing(columns: int) -> Absorbed:
    return Absorbed(np.ones(columns), np.zeros(columns), np.ones(columns))


def _is_regular(factors: np.ndarray) -> bool:
    """Whether factors leave products with scales of weights and levels regular f32 numbers."""
    return bool(((np.abs(factors) > 2.0**-60) & (np.abs(factors) < 2.0**60)).all())


def _constants(
    chain: Chain, at: int, operands: Sequence[Fact], is_column: Sequence[bool], columns: int
) -> tuple[str, np.ndarray] | None:
    """The name, and the known values of each column, of an instruction that adds them to the tile or multiplies it by
    them; None for anything else."""
    instruction, tile = chain.instructions[at], 0 if at == 0 else chain.inputs + at - 1
    formula, others = instruction.formula, [source for source in instruction.sources if source != tile]
    if formula is None or chain.last_reads[tile] != at or tile not in instruction.sources:
        return None
    if formula.name == "MultiplyP":
        return "Multiply", np.full(columns, formula.p)
    if formula.name not in ("Add", "Multiply") or len(others) != 1 or not 1 <= others[0] < chain.inputs:
        return None
    known = operands[others[0] - 1].known if is_column[others[0] - 1] else None
    return None if known is None else (formula.name, np.broadcast_to(known.reshape(-1), columns).astype(np.float64))


def _end_of(chain: Chain, start: int, is_column: Sequence[bool], columns: int) -> Absorbed | None:
    """The instructions from ``start`` on as parts; None if they are others."""
    made, tile, stage = _nothing(columns), 0 if start == 0 else chain.inputs + start - 1, -1
    for i in range(start, len(chain.instructions)):
        instruction = chain.instructions[i]
        formula = instruction.formula
        name = "" if formula is None else "Clamp" if formula.name == "MaximumP" else formula.name
        others = [source for source in instruction.sources if source != tile]
        if formula is None or name not in _ORDER or chain.last_reads[tile] != i or tile not in instruction.sources:
            return None
        if _ORDER.index(name) <= stage and not (name == "Quantize" and made.first is None and made.addend is None):
            return None
        if not all(1 <= other < chain.inputs for other in others):
            return None
        stage, grid = _ORDER.index(name), formula.grid
        if name == "Clamp":
            made.low, made.high = formula.p, math.inf if formula.name == "MaximumP" else formula.q
        elif name == "Levels":
            made.levels = grid
            if grid is None or (made.first is not None and not grid.is_whole):
                return None
            if not grid.is_single and not all(is_column[other - 1] for other in others):
                return None
        elif grid is None or grid.zero < 0:
            return None
        elif name == "AddLevels":
            made.addend = others[0] - 1, grid
        elif not grid.is_single or not grid.is_whole or grid.zero != round(grid.origin[0]):
            return None
        else:
            made.first, made.first_low, made.first_high = grid, made.low, made.high
            made.low, made.high = -math.inf, math.inf
        tile = chain.inputs + i
    return None if made.numbers() is None else made


IntegerProduct = structure("integer_product.c", "integer_product")
Widening = structure("integer_product.c", "widening")


@functools.cache
def unit() -> int:
    """Elements of a word of the products: 4 bytes, or two times 16 bits."""
    return loaded().integer_unit


def uses_tiles(rows: int, taps: int, depth: int) -> bool:
    """True if tiles of AMX are there, and pay: not for small products."""
    return loaded().has_tiles and rows >= 16 and depth >= 16 and taps * depth >= 48 and rows * taps * depth >= 8192


def _step_of(depth: int) -> int:
    """Bytes of a step of the depth in tiles: equal parts, of at most 64."""
    words = -(-depth // 4)
    return -(-words // -(-words // 16)) * 4


class IntegerKernel(NativeKernel):
    """Products of rows of levels with packed integers.

    Args:
        axes: of the output.
        sizes: images, groups, rows, and columns of a group.
        taps, depth: of a row; ``depth`` elements of each tap, in whole words.
    """

    def __init__(self, task: Task, axes: Axes, sizes: tuple[int, int, int, int], taps: int, depth: int) -> None:
        self.images, self.groups, self.rows, self.columns = sizes
        self.axes, self.taps, self.depth, self.own = axes, taps, depth, len(task.inputs)
        self.grid: Grid = task.attributes["grid"]
        self.step = _step_of(depth) if uses_tiles(self.rows, taps, depth) else 0
        self.shape = task.output_shape()
        self.panel = min(2, -(-self.columns // 16)) if self.step else panel_of(self.columns)
        words, images = -(-depth // unit()), self.images * self.groups
        self.cut = Cut.of(images, self.rows, max(1, taps), words, self.columns, task.threads, 32 if self.step else 8)
        self.weights_source, self.scale_source = task.constants[1], task.constants[2]
        ranked = [(1,) * (len(self.shape) - len(fact.static_shape)) + fact.static_shape for fact in task.operands]
        is_column = [
            all(size == (self.shape[axis] if axis in axes[2] else 1) or size == 1 for axis, size in enumerate(shape))
            for shape in ranked
        ]
        whole = self.groups * self.columns
        self.absorbed = absorbed(task.chain, task.operands, whole, is_column)
        program = self.absorbed.program
        self.chain = None if program is None else NativeChain(program, task.operands, self.shape, axes)
        self.is_levels = task.outputs[0].element is U8
        self.reads = (0,)
        block = self.cut.block_rows(self.rows)
        self.workspace = table_bytes(block, taps)
        if self.step:
            self.workspace += -(-block // 16) * taps * (16 + 16 * aligned(depth)) + 64

    def pack(self, store: ConstantStore) -> None:
        assert self.weights_source is not None and self.scale_source is not None, "weights are constants"
        sizes = self.groups, self.columns, self.depth, self.taps
        key = "integer panels", *sizes, unit(), self.step, self.grid.zero, *self._key()
        self.weights, self.start = store.get([self.weights_source], key, self._packed)
        self.scale = store.array(self.scale_source)

    def _key(self) -> tuple[Any, ...]:
        return ()

    def _matrices(self, integers: np.ndarray) -> np.ndarray:
        """The integers as (groups, depth of all taps, columns); here those of a matrix of that shape."""
        return integers.reshape(self.groups, -1, self.columns)

    def _packed(self, integers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Panels of words, and the sums' beginnings: minus the zero of the data times each column's sum."""
        matrices = self._matrices(integers)
        groups, _, columns = matrices.shape
        start = np.zeros((groups, padded(columns)), np.int32)
        start[:, :columns] = -self.grid.zero * matrices.sum(axis=1, dtype=np.int64)
        if self.step:
            matrices = _in_steps(matrices, self.taps, self.depth, self.step)
        return packed_words(matrices, self.panel), start.reshape(-1)

    def _multiply(self, window: Parameters, inputs: Sequence[Any], output: np.ndarray, binding: Binding) -> None:
        out, strides = binding.written(output, self.axes, innermost=self.axes[2][-1] if self.is_levels else None)
        product = IntegerProduct(
            window, binding.address(self.weights), binding.address(self.start),
            self._ending(inputs[self.own :], out, strides, binding), self.depth, unit(), self.groups, self.columns,
            self.panel, self.rows, self.cut.rows, self.cut.panels, self.step,
        )  # fmt: skip
        blocks = self.images * self.groups * self.cut.rows * self.cut.panels
        binding.call("irx_integer_product", product, blocks)

    def _ending(
        self, operands: Sequence[np.ndarray], out: np.ndarray, strides: Sequence[int], binding: Binding
    ) -> Parameters:
        a, columns = self.absorbed, self.scale.size
        first, numbers, has_program = a.first, a.numbers(), a.program is not None
        assert numbers is not None, "absorbed looks at them"
        zero, shift, unit_of_result, (low, high) = numbers
        if has_program and a.levels is None and self.is_levels:
            low, high = 0.0, 255.0
        # The factor of the sums, or of the results of the program, before the first levels.
        unit_of_levels, first_low, first_high, first_factor = unit_of_result, 0.0, 0.0, 0.0
        if first is not None:
            unit_of_levels, shift = first.per_unit, np.zeros(1)
            first_factor = float((first.step * unit_of_result)[0])
            limits = (a.first_low * unit_of_levels[0], a.first_high * unit_of_levels[0])
            first_low, first_high = (min(max(x, -first.zero), first.levels - 1 - first.zero) for x in limits)
        scale, bias, factors, shifts = self.scale.astype(np.float64) * self.grid.step * a.scale, a.bias, None, None
        if not has_program:
            scale, bias = scale * unit_of_levels, bias * unit_of_levels + shift
        elif first is not None or self.is_levels:
            factors, shifts = (
                binding.address(_padded(np.broadcast_to(part, columns))) for part in (unit_of_levels * a.factor, shift)
            )
        addend, addend_strides, addend_zero, addend_factor = None, (0, 0), 0.0, 0.0
        if a.addend is not None:
            found, (image, row, _) = binding.read(operands[a.addend[0]], self.axes, self.axes[2][-1:])
            addend_strides = image, row
            grid = a.addend[1]
            addend, addend_zero = binding.address(found), grid.zero
            addend_factor = float((grid.step * unit_of_result)[0])
        return Ending(
            binding.address(_padded(scale)), binding.address(_padded(bias)), addend, *addend_strides, addend_zero,
            addend_factor, first is not None, first_low, first_high, first_factor,
            None if self.chain is None else self.chain.bind(operands, binding), factors, shifts, low, high,
            binding.address(out), *strides, zero, binding.address(binding.unknown) if self.is_levels else None,
        )  # fmt: skip

    def channels_last(
        self,
        x: np.ndarray,
        copy: tuple[int, int, int] | None,
        pads: Sequence[tuple[int, int]],
        at: int,
        binding: Binding,
    ) -> np.ndarray:
        """The data as the products read it, channels last, widened at an address where bytes are not read.

        Args:
            copy: of a copy in the shared scratch, with borders of the zero level: groups, channels of a group, and
                those of a group in the copy. None for data that lies so.
            pads: the borders of the copy.
        """
        if copy is None:
            x = binding.with_stride(x, 1) if unit() == 4 else binding.in_order(x, (0, *range(2, x.ndim), 1))
            return self.as_words(x, at, binding)
        groups, inputs, padded = copy
        lying = np.moveaxis(x, 1, -1).reshape(*x.shape[:1], *x.shape[2:], groups, inputs)
        around = [(0, 0), *pads, (0, 0), (0, 0)]
        sizes = [size + before + after for size, (before, after) in zip(lying.shape, around, strict=True)]
        made = array_at(binding.shared, [*sizes[:-1], padded], np.dtype(np.uint8))
        # Bytes behind the channels may be anything, since their weights are 0: a last word of few is copied whole.
        channels = {lying.ndim - 1: np.minimum(np.arange(padded), inputs - 1)} if padded == 4 else {}
        target = made if channels else made[..., :inputs]
        bind_copies([*bordered(lying, target, around, np.array(self.grid.zero, np.uint8), channels)], binding)
        return self.as_words(np.moveaxis(made.reshape(*made.shape[:-2], groups * padded), -1, 1), at, binding)

    def as_words(self, x: np.ndarray, at: int, binding: Binding) -> np.ndarray:
        """The data as the products read it: bytes, or widened at an address. ``x`` is contiguous in some order."""
        if unit() == 4:
            return x
        order = np.argsort([-stride for stride in x.strides], kind="stable")
        lying = x.transpose(order)
        wide = array_at(at, lying.shape, np.dtype(np.int16))
        each = 1 << 14
        binding.call("irx_widen", Widening(binding.address(lying), at, x.size, each), -(-x.size // each))
        return wide.transpose(np.argsort(order))


def _in_steps(matrices: np.ndarray, taps: int, depth: int, step: int) -> np.ndarray:
    """The depth of each tap in whole steps. The last one ends with it: zeros where it repeats the one before."""
    groups, _, columns = matrices.shape
    last = depth // step * step
    made = np.zeros((groups, taps, -(-depth // step) * step, columns), matrices.dtype)
    made[:, :, :last] = matrices.reshape(groups, taps, depth, columns)[:, :, :last]
    if last < depth:
        made[:, :, last - depth :] = matrices.reshape(groups, taps, depth, columns)[:, :, last:]
    return made.reshape(groups, -1, columns)


def packed_words(matrices: np.ndarray, panel: int) -> np.ndarray:
    """Integers (groups, depth in whole words, columns) as panels of words, flat: bytes, or 16 bits."""
    word, (groups, depth, columns) = unit(), matrices.shape
    width, whole = panel * loaded().vector, padded(columns)
    made = np.zeros((groups, whole * depth), np.int8 if word == 4 else np.int16)
    words = matrices.reshape(groups, depth // word, word, columns).swapaxes(2, 3)
    # Words that lie together are moved as one integer.
    item = f"i{word * words.itemsize}" if words.strides[3] == words.itemsize else words.dtype
    words = words.view(item)
    for first in range(0, columns, width):
        last = min(first + width, columns)
        size = min(width, whole - first)
        part = np.zeros((groups, depth // word, size, word), matrices.dtype)
        part.view(item)[:, :, : last - first] = words[:, :, first:last]
        made[:, first * depth : (first + size) * depth] = part.reshape(groups, -1)
    return made.reshape(-1)


def _padded(values: np.ndarray) -> np.ndarray:
    """f32, with a vector of zeros behind them."""
    made = np.zeros(values.size + 16, np.float32)
    made[: values.size] = values
    return made


@functools.cache
def zero_levels(zero: int, count: int) -> np.ndarray:
    """The zero level as often as a tap reads it."""
    return np.full(count + 64, zero, np.uint8 if unit() == 4 else np.int16)
