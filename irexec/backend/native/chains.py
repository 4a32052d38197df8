"""Chains of element-wise operations as programs of the C library; irexec/native/source/chain.c runs them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, grouped_order, merged_strides
from irexec.backend.chain import Chain
from irexec.backend.kernel import Task
from irexec.ir.facts import Fact
from irexec.native.structures import Parameters, structure
from irexec.reference.grids import MOST, Grid

CODES = (
    "Load", "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference",
    "MultiplyP", "DividePBy", "MaximumP",
    "Clamp", "Sigmoid", "Swish", "HardSigmoid", "HSwish", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Negative",
    "Erf", "Gelu", "GeluTanh", "Elu", "Mish", "SoftPlus", "SoftSign", "PRelu", "Floor",
    "Ceiling", "Round", "Square", "Copy", "Cube", "Root", "InverseRoot", "Quantize",
    "Levels", "LoadLevels",
)  # fmt: skip
"""The functions of chain.c, in its order."""

REGISTERS = 8
"""Arrays of a tile that a program works on, the tile itself included."""

LANES = 16
"""Elements of the longest vector."""

Axes = tuple[tuple[int, ...], ...]
"""The axes of a tensor that are images, rows and columns of its tiles."""

Operand = structure("chain.h", "operand")
"""A tensor that a chain reads; strides in elements."""
CInstruction = structure("chain.h", "instruction")
CChain = structure("chain.h", "chain")


@dataclass(frozen=True)
class _Line:
    code: str
    target: int
    a: int
    b: int
    p: float = 0.0
    q: float = 0.0
    operand: int = 0
    table: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Program:
    """A chain as instructions on registers; register 0 is the tile.

    Attributes:
        bias: the operand that begins the sums of a product, or None; one value for each column.
        addend: a further operand that begins the sums, or None; of any shape.
        low, high: limits of the tile before the first instruction.
        lines: the instructions.
    """

    bias: int | None
    addend: int | None
    low: float
    high: float
    lines: tuple[_Line, ...]


class NativeChain:
    """The chain of a task, on tiles of its first output.

    Args:
        chain: None for no chain.
        operands: facts of its inputs; without input 0, which is the tile, unless the chain stands ``alone``.
        shape: of the output.
        axes: of the output.
        takes_bias: whether the kernel adds a bias and clamps by itself.
        takes_addend: whether it adds a tensor, too.
    """

    def __init__(
        self,
        chain: Chain | None,
        operands: Sequence[Fact],
        shape: Sequence[int],
        axes: Axes,
        *,
        takes_bias: bool = False,
        takes_addend: bool = False,
        alone: bool = False,
    ) -> None:
        self._shape, self._axes, self._operands = tuple(shape), axes, operands
        columns = {i for i, fact in enumerate(operands) if takes_bias and self._is_bias(fact)}
        self.program = (
            None
            if chain is None
            else program_of(chain, frozenset(columns), takes_bias=takes_bias, takes_addend=takes_addend, alone=alone)
        )

    def _is_bias(self, fact: Fact) -> bool:
        ranked = (1,) * (len(self._shape) - len(fact.static_shape)) + fact.static_shape
        return all(
            size == (self._shape[axis] if axis in self._axes[2] else 1)
            for axis, size in enumerate(ranked)
            if self._shape[axis] != 1
        )

    @property
    def limits(self) -> tuple[float, float]:
        """The lower and upper limit to which the kernel clamps its sums."""
        return (-np.inf, np.inf) if self.program is None else (self.program.low, self.program.high)

    def bias(self, operands: Sequence[np.ndarray], binding: Binding) -> int | None:
        """The address of the bias; None where the sums begin with zero."""
        if self.program is None or self.program.bias is None:
            return None
        operand = operands[self.program.bias]
        flat = binding.in_order(operand).reshape(-1)
        return binding.address(flat)

    def addend(self, operands: Sequence[np.ndarray], binding: Binding) -> int | None:
        """The address of the addend as C has it; None where there is none."""
        if self.program is None or self.program.addend is None:
            return None
        return binding.pointer(self._operand(operands[self.program.addend], binding))

    def bind(self, operands: Sequence[np.ndarray], binding: Binding) -> int | None:
        """The address of the chain as C has it; None where nothing is left for it to do.

        An operand that is None is known in each run only: a contiguous array.
        """
        if self.program is None or not self.program.lines:
            return None
        late = [i for i, array in enumerate(operands) if array is None]
        bound = [
            self._late(fact) if array is None else self._operand(array, binding)
            for fact, array in zip(self._operands, operands, strict=True)
        ]
        instructions = (CInstruction * len(self.program.lines))()
        for i, line in enumerate(self.program.lines):
            operand, p, q = line.operand, line.p, line.q
            if line.code == "LoadLevels":
                assert line.table is not None
                q = len(bound)
                bound.append(Operand(binding.address(line.table), 0, 0, 0))
            elif line.table is not None:
                operand, p = len(bound), line.table[0].size
                bound.append(self._table(line.table, binding))
            instructions[i] = CInstruction(CODES.index(line.code), line.target, line.a, line.b, operand, p, q)
        table = (Operand * max(1, len(bound)))(*bound)
        for i in late:
            held: list[np.ndarray] = []
            binding.kept.append(held)
            binding.late.append(functools.partial(_complete, table[i], i, held))
        made = CChain(
            binding.pointer(table),
            binding.pointer(instructions),
            len(self.program.lines),
        )
        return binding.pointer(made)

    def _table(self, table: np.ndarray, binding: Binding) -> Parameters:
        """A table as an operand whose columns follow each other; a vector may be read behind the last part."""
        ranked = table.reshape(len(table), *(1,) * (len(self._shape) - table.ndim + 1), *table.shape[1:])
        order = grouped_order(ranked.ndim - 1, self._axes)
        memory = np.zeros(table.size + LANES)
        memory[: table.size] = ranked.transpose(0, *(1 + axis for axis in order)).reshape(-1)
        sizes = [ranked.shape[1 + axis] for axis in order]
        lying = memory[: table[0].size].reshape(sizes).transpose(np.argsort(order))
        strides = merged_strides(lying, self._axes)
        assert strides is not None, "a table varies along whole groups of axes, as the operands it is made of"
        return Operand(binding.address(memory), *strides)

    def _late(self, fact: Fact) -> Parameters:
        """An operand whose address follows."""
        shape = (1,) * (len(self._shape) - len(fact.static_shape)) + fact.static_shape
        strides = merged_strides(np.empty(shape, fact.dtype), self._axes)
        assert strides is not None, "a contiguous array has each group of axes as one run"
        return Operand(0, *strides)

    def _operand(self, array: np.ndarray, binding: Binding) -> Parameters:
        ranked = array.reshape((1,) * (len(self._shape) - array.ndim) + array.shape)
        ranked, strides = binding.read(ranked, self._axes)
        return Operand(binding.address(ranked), *strides)


def _complete(operand: Parameters, index: int, held: list[np.ndarray], inputs: Sequence[Any]) -> None:
    """Let the calls of a run read an input where it lies, or a contiguous copy, which is held until the next run."""
    array = inputs[index]
    held.clear()
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")
        held.append(array)
    operand.base = array.ctypes.data


def fits(task: Task, axes: Axes) -> bool:
    """Whether the task's chain can run in C on tiles of these axes: all functions are known, all values are f32 but
    for levels."""
    chain = task.chain
    if chain is None:
        return True
    is_translated = chain.dtype == np.float32 and is_of_floats(chain) and program_of(chain) is not None
    return is_translated and all(_is_regular(fact, task.output_shape(), axes) for fact in task.operands)


def _is_regular(fact: Fact, shape: tuple[int, ...], axes: Axes) -> bool:
    """Whether an operand has, or repeats, each group of axes as a whole."""
    own = fact.static_shape
    if len(own) > len(shape) or 0 in own:
        return False
    ranked = (1,) * (len(shape) - len(own)) + own
    return all(len({ranked[axis] == 1 for axis in group if shape[axis] != 1}) <= 1 for group in axes)


def is_of_floats(chain: Chain) -> bool:
    """Whether every instruction gives f32, but for the last one, which may give levels."""
    *others, last = chain.instructions
    is_last = last.dtype == np.float32 or (last.formula is not None and last.formula.name == "Levels")
    return is_last and all(instruction.dtype == np.float32 for instruction in others)


def reads_levels(chain: Chain) -> frozenset[int]:
    """The inputs of a chain that are levels."""
    return frozenset(
        instruction.sources[-1]
        for instruction in chain.instructions
        if instruction.formula is not None and instruction.formula.name in ("Dequantize", "AddLevels")
    )


@functools.lru_cache(maxsize=4096)
def program_of(
    chain: Chain,
    columns: frozenset[int] = frozenset(),
    *,
    takes_bias: bool = False,
    takes_addend: bool = False,
    alone: bool = False,
) -> Program | None:
    """The program of a chain; None if a function has no formula or there are not enough registers.

    Args:
        columns: operands that could be a bias.
        takes_bias, takes_addend: see NativeChain.
        alone: all inputs of the chain are operands; otherwise the first one is in the tile.
    """
    if any(instruction.formula is None for instruction in chain.instructions):
        return None
    return _Translation(chain, columns, takes_bias, takes_addend, alone).made()


class _Translation:
    """Assigns the values of a chain to registers."""

    def __init__(
        self, chain: Chain, columns: frozenset[int], takes_bias: bool, takes_addend: bool, alone: bool
    ) -> None:
        self.chain, self.columns, self.takes_bias, self.takes_addend = chain, columns, takes_bias, takes_addend
        self.first = 0 if alone else 1
        self.place: dict[int, int] = {} if alone else {0: 0}
        self.free = list(range(REGISTERS - 1, -1 if alone else 0, -1))
        self.lines: list[_Line] = []

    def made(self) -> Program | None:
        start, program = self._absorbed()
        for i in range(start, len(self.chain.instructions)):
            if not self._translate(i):
                return None
        return replace(program, lines=tuple(self.lines))

    def _absorbed(self) -> tuple[int, Program]:
        """The first instruction that is left, and what the kernel itself does before it: bias, addend, limits."""
        start, bias, addend, unlimited = 0, None, None, (-np.inf, np.inf)
        low, high = unlimited
        while self.takes_bias and start < len(self.chain.instructions):
            instruction = self.chain.instructions[start]
            formula, tile = instruction.formula, self._tile(start)
            others = [source for source in instruction.sources if source != tile]
            if formula is None or self.chain.last_reads[tile] != start or tile not in instruction.sources:
                break
            if formula.name == "Add" and start == 0 and len(others) == 1 and others[0] - 1 in self.columns:
                bias = others[0] - 1
            elif self._is_addend(formula.name, others) and addend is None and (low, high) == unlimited:
                addend = others[0] - 1
            elif formula.name in ("Clamp", "MaximumP") and (low, high) == unlimited:
                low, high = formula.p, formula.q if formula.name == "Clamp" else np.inf
            else:
                break
            start += 1
        if start:
            self.place = {self._tile(start): 0}
        return start, Program(bias, addend, low, high, ())

    def _is_addend(self, name: str, others: Sequence[int]) -> bool:
        """Whether a function adds one operand to the tile."""
        return self.takes_addend and name == "Add" and len(others) == 1 and 1 <= others[0] < self.chain.inputs

    def _tile(self, instruction: int) -> int:
        """The value that is in the tile before an instruction, if all before it were absorbed."""
        return 0 if instruction == 0 else self.chain.inputs + instruction - 1

    def _translate(self, i: int) -> bool:
        instruction = self.chain.instructions[i]
        formula = instruction.formula
        assert formula is not None
        if formula.name in ("Dequantize", "AddLevels"):
            return self._translate_levels(i, formula.grid)
        # The other arguments are in the table.
        sources = instruction.sources if formula.table is None else instruction.sources[:1]
        before = len(self.lines)
        for source in sources:
            if source not in self.place and not self._load(source):
                return False
        # An operand that no other instruction reads is not copied.
        if formula.name in ("Add", "Multiply") and len(self.lines) == before + 1 and len({*sources}) == 2:
            operand = self.lines[-1].operand + self.first
            if self.chain.last_reads[operand] == i:
                self.lines[-1] = replace(self.lines[-1], p=1.0)
        registers = [self.place[source] for source in sources]
        for source in set(instruction.sources) & self.place.keys():
            if self.chain.last_reads[source] == i:
                self.free.append(self.place.pop(source))
        if not self.free:
            return False
        is_last = i == len(self.chain.instructions) - 1
        target = 0 if is_last else self.free.pop()
        self.place[self.chain.inputs + i] = target
        a, b = registers[0], registers[1] if len(registers) > 1 else registers[0]
        self.lines.append(_Line(formula.name, target, a, b, formula.p, formula.q, table=formula.table))
        return True

    def _translate_levels(self, i: int, grid: Grid | None) -> bool:
        """Levels of an operand as floats, and what is added to them."""
        *others, levels = self.chain.instructions[i].sources
        is_operand = self.first <= levels < self.chain.inputs
        if (
            grid is None
            or not grid.is_single
            or not is_operand
            or not self.free
            or not all(o in self.place or self._load(o) for o in others)
        ):
            return False
        if not self.free:
            return False
        target = self.free.pop()
        table = np.zeros(MOST, np.float32)
        table[: grid.levels] = grid.values
        self.lines.append(_Line("LoadLevels", target, 0, 0, operand=levels - self.first, table=table))
        for other in others:
            self.lines.append(_Line("Add", target, self.place[other], target))
            if self.chain.last_reads[other] == i:
                self.free.append(self.place.pop(other))
        if i == len(self.chain.instructions) - 1:
            self.lines[-1] = replace(self.lines[-1], target=0)
        self.place[self.chain.inputs + i] = target
        return True

    def _load(self, operand: int) -> bool:
        if not self.free:
            return False
        register = self.place[operand] = self.free.pop()
        self.lines.append(_Line("Load", register, 0, 0, operand=operand - self.first))
        return True
