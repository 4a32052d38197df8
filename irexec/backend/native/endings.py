"""The end of a product of integers in C: bias, residual, limits and levels. irexec/native/source/levels.h has the other
side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.backend.chain import Chain
from irexec.ir.facts import Fact
from irexec.native.structures import Parameters, declared_in
from irexec.reference.integers import Grid


@declared_in("levels.h", "ending")
class Ending(Parameters):
    """See irexec/native/source/levels.h."""


@dataclass
class Absorbed:
    """The parts of a product's chain that C computes without a program, in their order, and the program between them.

    Attributes:
        bias: the bias of each column; zeros without one.
        program: the instructions that follow the bias and need a program; None without any.
        first_low, first_high, first: limits, and the levels that the values are rounded to, before anything is added;
            None where they are not.
        addend: the operand of levels that is added, and its grid.
        low, high: limits.
        levels: the grid of the result; None for floats, or where the program leaves levels.
    """

    bias: np.ndarray
    program: Chain | None = None
    first_low: float = -math.inf
    first_high: float = math.inf
    first: Grid | None = None
    addend: tuple[int, Grid] | None = None
    low: float = -math.inf
    high: float = math.inf
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
        if unit.size > 1 and (self.first is not None or self.addend is not None):
            return None
        return zero, shift, unit, (float(limits[0][0]), float(limits[1][0]))


_ORDER = ("Quantize", "AddLevels", "Clamp", "Levels")
"""The functions of the end of a chain, each at most once; limits may also stand before the first levels."""


def absorbed(chain: Chain | None, operands: Sequence[Fact], columns: int, is_column: Sequence[bool]) -> Absorbed:
    """The chain in parts: the bias in front, and the longest end that needs no program.

    Args:
        is_column: for each operand whether it has one value for each column, or one for all.
    """
    if chain is None:
        return Absorbed(np.zeros(columns))
    bias, count = _bias(chain, operands, is_column, columns), len(chain.instructions)
    begin = int(bias is not None)
    made, split = Absorbed(np.zeros(columns)), count
    for start in range(begin, count):
        found = _end_of(chain, start, is_column, columns)
        # After a program limits are as well computed by it.
        if found is not None and (start == begin or found.first is not None or found.levels is not None):
            made, split = found, start
            break
    if bias is not None:
        made.bias = bias

    def moved(source: int) -> int:
        return source if source < chain.inputs else 0 if source - chain.inputs < begin else source - begin

    instructions = [replace(one, sources=tuple(map(moved, one.sources))) for one in chain.instructions[begin:split]]
    made.program = Chain(chain.inputs, chain.dtype, tuple(instructions)) if instructions else None
    return made


def _bias(chain: Chain, operands: Sequence[Fact], is_column: Sequence[bool], columns: int) -> np.ndarray | None:
    """The known values of each column that the first instruction adds to the tile; None for anything else."""
    instruction = chain.instructions[0]
    others = [source for source in instruction.sources if source != 0]
    if instruction.formula is None or instruction.formula.name != "Add" or chain.last_reads[0] != 0:
        return None
    if len(others) != 1 or not 1 <= others[0] < chain.inputs or not is_column[others[0] - 1]:
        return None
    known = operands[others[0] - 1].known
    return None if known is None else np.broadcast_to(known.reshape(-1), columns).astype(np.float64)


def _end_of(chain: Chain, start: int, is_column: Sequence[bool], columns: int) -> Absorbed | None:
    """The instructions from ``start`` on as parts; None if they are others."""
    made, tile, stage = Absorbed(np.zeros(columns)), 0 if start == 0 else chain.inputs + start - 1, -1
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
