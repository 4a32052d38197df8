"""Expressions and blocks of a script."""

from __future__ import annotations

import heapq
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from irexec.ir.graph import Node, Value
from irexec.ir.order import grouped


@dataclass(frozen=True)
class Text:
    """A string."""

    text: str


@dataclass(frozen=True)
class Source:
    """Any other literal, as it is written."""

    source: str


@dataclass(frozen=True)
class TensorNames:
    """Tensor names, an argument that is left out where there are none."""

    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ref:
    """A tensor."""

    value: Value


Leaf: TypeAlias = "Text | Source | TensorNames | Ref"
Expression: TypeAlias = "Leaf | Call | Many"


@dataclass(frozen=True, eq=False)
class Many:
    """A list."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, eq=False)
class Statement:
    """A layer: the call that makes it, and the tensor names of its outputs but the first.

    Attributes:
        node: the layer.
        call: the call, constants that only this layer reads included.
        more: the tensor names of the outputs after the first.
        is_tuple: whether the call returns a tuple.
    """

    node: Node
    call: Call
    more: tuple[TensorNames, ...] = ()
    is_tuple: bool = False


def leaves(expression: Expression) -> Iterator[Leaf]:
    """The leaves of an expression, in the order in which they are written."""
    if isinstance(expression, Call):
        for part in (*expression.arguments, *(value for _, value in expression.keywords)):
            yield from leaves(part)
    elif isinstance(expression, Many):
        for part in expression.items:
            yield from leaves(part)
    else:
        yield expression


def shape_of(expression: Expression) -> Hashable:
    """A key that two expressions have in common if they differ in nothing but their leaves."""
    if isinstance(expression, Call):
        return (
            expression.function,
            tuple(map(shape_of, expression.arguments)),
            tuple((name, shape_of(value)) for name, value in expression.keywords),
        )
    if isinstance(expression, Many):
        return tuple(map(shape_of, expression.items))
    return type(expression).__name__


def written(expression: Expression, texts: Mapping[int, str], refs: Mapping[Value, str]) -> str:
    """The source of an expression.

    Args:
        expression: the expression.
        texts: the sources of leaves that are parameters, by the ids of the leaves.
        refs: the variables of tensors.
    """
    if id(expression) in texts:
        return texts[id(expression)]
    if isinstance(expression, Call):
        parts = [written(part, texts, refs) for part in expression.arguments]
        for name, value in expression.keywords:
            if not isinstance(value, TensorNames) or value.names or id(value) in texts:
                parts.append(f"{name}={written(value, texts, refs)}")
        return f"{expression.function}({', '.join(parts)})"
    if isinstance(expression, Many):
        return f"[{', '.join(written(item, texts, refs) for item in expression.items)}]"
    if isinstance(expression, Ref):
        return refs[expression.value]
    return literal(expression)


def literal(leaf: Leaf) -> str:
    """The source of a leaf that is not a tensor."""
    if isinstance(leaf, Text):
        return quoted(leaf.text)
    if isinstance(leaf, TensorNames):
        return f"[{', '.join(map(quoted, leaf.names))}]"
    assert isinstance(leaf, Source)
    return leaf.source


def quoted(text: str) -> str:
    """A string as source, in double quotes where it has none; characters that cannot be seen are escaped."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain


_SHORTEST, _MOST_BLOCKS, _LEAST_SAVING, _LINES = 3, 8, 6, 1.5
"""The minimum number of statements of a block, the maximum number of blocks, the lines that a block must save, and the
lines of a statement."""
_CANDIDATES, _MOST_RUNS = 200, 600_000
"""Number of runs that are examined closely, and of runs that are looked at to find them."""
_MODULUS, _BASE = (1 << 61) - 1, 1_000_003


@dataclass(frozen=True)
class Row:
    """One occurrence of a block.

    Attributes:
        start: the index of its first statement.
        inputs: the tensors from outside, in the order in which they are first read.
        outputs: the tensors that are read outside.
        arguments: the sources of what is particular to it.
    """

    start: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A run of statements that occurs several times.

    Attributes:
        statements: the statements of the first occurrence.
        rows: the occurrences.
        parameters: the names of the parameters after the inputs.
        texts: the sources of the leaves that depend on the parameters, by their ids.
    """

    statements: Sequence[Statement]
    rows: Sequence[Row]
    parameters: Sequence[str]
    texts: Mapping[int, str]

    @property
    def length(self) -> int:
        """The number of statements."""
        return len(self.statements)

    @property
    def saving(self) -> float:
        """An estimate of the lines that the block saves."""
        rows = len(self.rows)
        crossing = len(self.rows[0].inputs) + len(self.rows[0].outputs)
        return _LINES * (rows - 1) * self.length - rows * (0.5 + 0.08 * len(self.parameters)) - 0.3 * crossing


def find_blocks(statements: Sequence[Statement], kept: frozenset[Value]) -> list[Block]:
    """The repeated blocks of a graph, which do not overlap; the one that saves most first.

    Args:
        statements: the statements.
        kept: tensors that are read after the last of them.
    """
    search = _Search(statements, kept)
    found: list[Block] = []
    while len(found) < _MOST_BLOCKS and (block := search.best()) is not None:
        found.append(block)
        for row in block.rows:
            search.free[row.start : row.start + block.length] = [False] * block.length
    return found


@dataclass
class _Search:
    statements: Sequence[Statement]
    kept: frozenset[Value]
    free: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.free = [True] * len(self.statements)
        self._index = {statement.node: i for i, statement in enumerate(self.statements)}
        self._leaves = [list(leaves(statement.call)) + list(statement.more) for statement in self.statements]
        self._readers = grouped(
            (leaf.value, i) for i, found in enumerate(self._leaves) for leaf in found if isinstance(leaf, Ref)
        )
        self._hashes = _prefix_hashes(self.statements)

    def best(self) -> Block | None:
        """The block that saves most lines; None if none saves enough."""
        best: Block | None = None
        for bound, length, starts in heapq.nlargest(_CANDIDATES, self._repeated()):
            if bound <= (_LEAST_SAVING if best is None else best.saving):
                break
            # Starts are alike if the statements of the run are connected alike.
            for same in grouped((self._connections(start, length), start) for start in starts).values():
                if len(same) == 1:
                    continue
                block = self._block(same, length)
                if block.saving > (_LEAST_SAVING if best is None else best.saving):
                    best = block
        return best

    def _repeated(self) -> Iterator[tuple[float, int, list[int]]]:
        """Runs that occur several times: a bound of what they save, their length, and their starts, which do not
        overlap."""
        count = len(self.statements)
        for length in range(_SHORTEST, min(count // 2, _MOST_RUNS // max(1, count)) + 1):
            found: dict[int, list[int]] = {}
            power, run = pow(_BASE, length, _MODULUS), 0
            for end in range(count):
                run = run + 1 if self.free[end] else 0
                if run >= length:
                    start = end - length + 1
                    key = (self._hashes[end + 1] - self._hashes[start] * power) % _MODULUS
                    starts = found.setdefault(key, [])
                    if not starts or starts[-1] + length <= start:
                        starts.append(start)
            yield from (
                (_LINES * (len(starts) - 1) * length, length, starts) for starts in found.values() if len(starts) > 1
            )

    def _connections(self, start: int, length: int) -> Hashable:
        outside: dict[Value, int] = {}
        found = []
        for value in self._refs(start, length):
            at = self._index.get(value.node, -1)
            if start <= at < start + length:
                found.append((at - start, value.index))
            else:
                found.append((-1, outside.setdefault(value, len(outside))))
        return tuple(found)

    def _refs(self, start: int, length: int) -> Iterator[Value]:
        for found in self._leaves[start : start + length]:
            yield from (leaf.value for leaf in found if isinstance(leaf, Ref))

    def _block(self, starts: Sequence[int], length: int) -> Block:
        leaves = (chain.from_iterable(self._leaves[start : start + length]) for start in starts)
        sites = list(zip(*([leaf for leaf in run if not isinstance(leaf, Ref)] for run in leaves), strict=True))
        parameters = _Parameters()
        made = {id(site[0]): parameters.text(site) for site in sites}
        texts = {leaf: text for leaf, text in made.items() if text is not None}
        columns = list(parameters.columns.values())
        used = sorted({place for start in starts for place in self._outputs(start, length)})
        rows = []
        for i, start in enumerate(starts):
            inside = {statement.node for statement in self.statements[start : start + length]}
            inputs = dict.fromkeys(value for value in self._refs(start, length) if value.node not in inside)
            outputs = tuple(self.statements[start + offset].node.outputs[index] for offset, index in used)
            rows.append(Row(start, tuple(inputs), outputs, tuple(column[i] for column in columns)))
        return Block(self.statements[starts[0] : starts[0] + length], rows, list(parameters.columns), texts)

    def _outputs(self, start: int, length: int) -> Iterator[tuple[int, int]]:
        """The outputs, as offset and index, that are read outside of an occurrence."""
        for offset, statement in enumerate(self.statements[start : start + length]):
            for value in statement.node.outputs:
                readers = self._readers.get(value, ())
                if value in self.kept or any(not start <= reader < start + length for reader in readers):
                    yield offset, value.index


def _prefix_hashes(statements: Sequence[Statement]) -> list[int]:
    """Hashes of the first 0, 1, 2, ... statements by their shapes, from which those of all runs follow."""
    numbers: dict[Hashable, int] = {}
    hashes = [0]
    for statement in statements:
        key = (shape_of(statement.call), len(statement.node.outputs))
        token = numbers.setdefault(key, len(numbers) + 1)
        hashes.append((hashes[-1] * _BASE + token) % _MODULUS)
    return hashes


class _Parameters:
    """The parameters for the leaves that differ between occurrences.

    Attributes:
        columns: the arguments of each parameter in all occurrences, by its name.
    """

    def __init__(self) -> None:
        self.columns: dict[str, tuple[str, ...]] = {}
        self._texts: dict[tuple[str, ...], str] = {}
        self._numbers: dict[tuple[int, ...], tuple[str, int]] = {}

    def text(self, site: Sequence[Leaf]) -> str | None:
        """The source that stands for a leaf in the function; None if all occurrences have the same leaf."""
        sources = tuple(map(literal, site))
        if len(set(sources)) == 1:
            return None
        if all(isinstance(leaf, Text) for leaf in site):
            return self._string([leaf.text for leaf in site if isinstance(leaf, Text)])
        names = [leaf.names for leaf in site if isinstance(leaf, TensorNames)]
        if len(names) == len(site) and len({len(one) for one in names}) == 1:
            return f"[{', '.join(self._string(column) for column in zip(*names, strict=True))}]"
        return self._source(sources)

    def _string(self, texts: Sequence[str]) -> str:
        """The source of a string: an f-string where the texts differ in whole numbers alone."""
        if len(set(texts)) == 1:
            return quoted(texts[0])
        rows = [_NUMBER.split(text) for text in texts]
        numbers = [number for row in rows for number in row[1::2]]
        alike = len({(len(row), *row[::2]) for row in rows}) == 1
        if not alike or any(len(number) > _DIGITS or str(int(number)) != number for number in numbers):
            return self._source(tuple(map(quoted, texts)))
        made = []
        for i, column in enumerate(zip(*rows, strict=True)):
            is_number = i % 2 == 1 and len(set(column)) > 1
            doubled = column[0].replace("{", "{{").replace("}", "}}")
            made.append(f"{{{self._number([*map(int, column)])}}}" if is_number else doubled)
        return f"f{quoted(''.join(made))}"

    def _number(self, column: Sequence[int]) -> str:
        """The source of a number: a parameter, or one that another number is always as far from."""
        key = tuple(number - column[0] for number in column)
        if key not in self._numbers:
            name = f"n{len(self.columns)}"
            self._numbers[key] = name, column[0]
            self.columns[name] = tuple(map(str, column))
        name, first = self._numbers[key]
        offset = column[0] - first
        return name if offset == 0 else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"

    def _source(self, sources: tuple[str, ...]) -> str:
        if sources not in self._texts:
            self._texts[sources] = name = f"a{len(self.columns)}"
            self.columns[name] = sources
        return self._texts[sources]


_NUMBER = re.compile(r"([0-9]+)")
_DIGITS = 15
"""The maximum number of digits of a number in a name that is counted with."""
