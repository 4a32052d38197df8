"""The end of a product of integers in C: bias, residual, limits and levels. irexec/native/source/levels.h has the other
side."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass, replace

import numpy as np

from irexec.backend.chain import Chain
from irexec.ir.facts import Fact
from irexec.reference.levels import Grid


class Ending(ctypes.Structure):
    """See levels.h."""

    _fields_ = (
        ("scale", c_void_p), ("bias", c_void_p), ("addend", c_void_p), ("addend_image", c_int64),
        ("addend_row", c_int64), ("addend_zero", c_double), ("addend_factor", c_double), ("is_rounded", c_int64),
        ("first_low", c_double), ("first_high", c_double), ("first_factor", c_double), ("after", c_void_p),
        ("factor", c_double), ("shift", c_double), ("low", c_double), ("high", c_double), ("out", c_void_p),
        ("out_image", c_int64), ("out_row", c_int64), ("out_column", c_int64), ("zero", c_double),
        ("unknown", c_void_p),
    )  # fmt: skip


@dataclass
class Absorbed:
    """The parts of a product's chain that C computes without a program.

    Attributes:
        bias: the bias of each column; zeros without one.
        first_low, first_high, first: limits, and the levels that the sums are rounded to, before anything is added;
            None where they are not.
        addend: the operand of levels that is added, and its grid.
        low, high: limits.
        program: the instructions between the bias and the levels, which need a program; None without any.
        levels: the grid of the result; None for floats, or where the program leaves levels.
    """

    bias: np.ndarray
    first_low: float = -math.inf
    first_high: float = math.inf
    first: Grid | None = None
    addend: tuple[int, Grid] | None = None
    low: float = -math.inf
    high: float = math.inf
    program: Chain | None = None
    levels: Grid | None = None

    def numbers(self) -> tuple[int, np.ndarray, np.ndarray, tuple[float, float]] | None:
        """The level of 0 in the result, what is left of the index of 0 beside it, units of the result, and limits in
        them; None where a limit differs from column to column.

        The nearest level is that of the distance from the lower bound; the part that is whole is added behind.
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
        if unit.size > 1 and (self.first is not None or self.addend is not None or self.program is not None):
            return None
        return zero, shift, unit, (float(limits[0][0]), float(limits[1][0]))


_ORDER = ("Add", "Quantize", "AddLevels", "Clamp", "Levels")
"""The functions of a chain that is absorbed, each at most once; limits may also stand before the first levels."""


def absorbed(chain: Chain | None, operands: Sequence[Fact], columns: int, is_column: Sequence[bool]) -> Absorbed:
    """The chain in parts: without a program if that is possible.

    Args:
        is_column: for each operand whether it has one value for each column, or one for all.
    """
    if chain is None:
        return Absorbed(np.zeros(columns))
    return _absorbed(chain, operands, columns, is_column) or _with_program(chain, operands, columns, is_column)


def _bias(
    chain: Chain, index: int, tile: int, operands: Sequence[Fact], is_column: Sequence[bool], columns: int
) -> np.ndarray | None:
    """The known values of each column that an Add adds to the tile; None for anything else."""
    instruction = chain.instructions[index]
    others = [source for source in instruction.sources if source != tile]
    if instruction.formula is None or instruction.formula.name != "Add" or chain.last_reads[tile] != index:
        return None
    if len(others) != 1 or not 1 <= others[0] < chain.inputs or not is_column[others[0] - 1]:
        return None
    known = operands[others[0] - 1].known
    return None if known is None else np.broadcast_to(known.reshape(-1), columns).astype(np.float64)


def _with_program(chain: Chain, operands: Sequence[Fact], columns: int, is_column: Sequence[bool]) -> Absorbed:
    """A bias in front and the levels of a single range at the end without a program, what is between with one."""
    bias, last, count = _bias(chain, 0, 0, operands, is_column, columns), chain.instructions[-1].formula, chain.inputs
    begin, end = int(bias is not None), len(chain.instructions)
    levels = last.grid if last is not None and last.name == "Levels" else None
    if levels is not None and levels.is_single and end - begin > 1:
        end -= 1
    else:
        levels = None

    def moved(source: int) -> int:
        return source if source < count else 0 if source - count < begin else source - begin

    instructions = [replace(one, sources=tuple(map(moved, one.sources))) for one in chain.instructions[begin:end]]
    made = Absorbed(np.zeros(columns) if bias is None else bias, levels=levels)
    made.program = Chain(count, chain.dtype, tuple(instructions)) if instructions else None
    return made


def _absorbed(chain: Chain, operands: Sequence[Fact], columns: int, is_column: Sequence[bool]) -> Absorbed | None:
    made, tile, stage = Absorbed(np.zeros(columns)), 0, -1
    for i, instruction in enumerate(chain.instructions):
        formula = instruction.formula
        name = "" if formula is None else "Clamp" if formula.name == "MaximumP" else formula.name
        others = [source for source in instruction.sources if source != tile]
        if formula is None or name not in _ORDER or chain.last_reads[tile] != i or tile not in instruction.sources:
            return None
        if _ORDER.index(name) <= stage and not (name == "Quantize" and made.first is None and made.addend is None):
            return None
        stage = _ORDER.index(name)
        if name == "Add":
            bias = _bias(chain, i, tile, operands, is_column, columns)
            if bias is None:
                return None
            made.bias = bias
        elif name == "Clamp":
            made.low, made.high = formula.p, math.inf if formula.name == "MaximumP" else formula.q
        elif name == "Levels":
            made.levels = formula.grid
            if formula.grid is None or (made.first is not None and not formula.grid.is_whole):
                return None
        elif formula.grid is None or formula.grid.zero < 0:
            return None
        elif name == "AddLevels":
            made.addend = others[0] - 1, formula.grid
        elif (
            not formula.grid.is_single
            or not formula.grid.is_whole
            or formula.grid.zero != round(formula.grid.origin[0])
        ):
            return None
        else:
            made.first, made.first_low, made.first_high = formula.grid, made.low, made.high
            made.low, made.high = -math.inf, math.inf
        tile = chain.inputs + i
    return None if made.numbers() is None else made
