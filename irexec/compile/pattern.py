"""Patterns of operations, written as arithmetic.

    x = value("x")
    GELU = 0.5 * x * (1 + call("Erf", x / math.sqrt(2)))

A pattern matches every spelling of the same arithmetic: the operands of a sum or product in any order and grouping,
numbers multiplied anywhere into a product, divisions by a number, subtractions of one. A name stands for the same value
wherever it occurs.

irexec/compile/rewriting.py replaces what matches.
"""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from irexec.compile.graph import CompileValue, Operation

TOLERANCE = 2e-6
"""The relative error of a constant: float32 and the digits that frameworks write."""


@dataclass(frozen=True, eq=False)
class Match:
    """The values and operations that a pattern matched.

    Attributes:
        values: the values by name.
        constants: the constants by name.
        operations: the operations, the root among them; none for a value that is only named.
    """

    values: dict[str, CompileValue] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    operations: tuple[Operation, ...] = ()

    def __getitem__(self, name: str) -> CompileValue:
        return self.values[name]

    def number(self, name: str) -> float:
        """A constant of one element."""
        return float(self.constants[name].reshape(-1)[0])

    def through(self, *operations: Operation) -> Match:
        """The same with more operations."""
        return replace(self, operations=(*self.operations, *operations))


Found = Iterator[Match]

_SYMMETRIC = frozenset({"Add", "Multiply", "Maximum", "Minimum", "SquaredDifference"})


class Pattern(ABC):
    """A pattern of values."""

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """The types of the operations that may produce the matched value; None for any value."""
        return None

    @abstractmethod
    def match(self, value: CompileValue, found: Match) -> Found:
        """Each match of the value that agrees with the matches found so far."""

    def __add__(self, other: Pattern | float) -> Pattern:
        return _terms(_SUM, self, other)

    def __radd__(self, other: float) -> Pattern:
        return _terms(_SUM, self, other)

    def __mul__(self, other: Pattern | float) -> Pattern:
        return product(self, other)

    def __rmul__(self, other: float) -> Pattern:
        return product(self, other)

    def __sub__(self, other: Pattern | float) -> Pattern:
        return call("Subtract", self, other) if isinstance(other, Pattern) else _terms(_SUM, self, -other)

    def __rsub__(self, other: float) -> Pattern:
        return call("Subtract", other, self)

    def __neg__(self) -> Pattern:
        return product(self, -1)

    def __truediv__(self, other: Pattern | float) -> Pattern:
        return call("Divide", self, other) if isinstance(other, Pattern) else product(self, 1 / other)

    def __rtruediv__(self, other: float) -> Pattern:
        return (
            either(call("Divide", other, self), call("Power", self, -1)) if other == 1 else call("Divide", other, self)
        )

    def __pow__(self, exponent: int) -> Pattern:
        return either(call("Power", self, exponent), product(*(self,) * exponent))


@dataclass(frozen=True, eq=False)
class Named(Pattern):
    """Any value, or any constant, the same wherever the name occurs."""

    name: str
    constant: bool = False

    def match(self, value: CompileValue, found: Match) -> Found:
        bound = found.values.get(self.name)
        if self.constant and value.constant is None:
            return
        if bound is None:
            yield replace(found, values=found.values | {self.name: value})
        elif bound is value:
            yield found


@dataclass(frozen=True, eq=False)
class SmallConstant(Pattern):
    """A small constant: of one element and a given number, or any, equal wherever the name occurs.

    Attributes:
        number: the required value; None for any.
        name: the name that it is bound to; empty for none.
        single: whether it has one element.
    """

    number: float | None = None
    name: str = ""
    single: bool = True

    def match(self, value: CompileValue, found: Match) -> Found:
        array = value.known if value.constant is not None else None
        if array is None or array.dtype == object or (self.single and array.size != 1):
            return
        if self.number is not None and not is_close(float(array.reshape(-1)[0]), self.number):
            return
        bound = found.constants.get(self.name)
        if not self.name:
            yield found
        elif bound is None or np.array_equal(bound, array):
            yield replace(found, constants=found.constants | {self.name: array})


@dataclass(frozen=True, eq=False)
class Call(Pattern):
    """The first output of an operation; its operands in the given order, or any where that does not matter."""

    types: frozenset[str]
    operands: tuple[Pattern, ...]
    attributes: dict[str, Any]

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """Its types."""
        return self.types

    def match(self, value: CompileValue, found: Match) -> Found:
        operation = _producer(value, self.types)
        if operation is None or len(operation.inputs) < len(self.operands):
            return
        if all(operation.attributes.get(name) == wanted for name, wanted in self.attributes.items()):
            yield from _match_all(self.operands, operation.inputs, found.through(operation))
            if operation.type in _SYMMETRIC:
                yield from _match_all(self.operands, operation.inputs[::-1], found.through(operation))


@dataclass(frozen=True, eq=False)
class Either(Pattern):
    """Any of several patterns."""

    options: tuple[Pattern, ...]

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """The operands of the options."""
        found = [option.roots for option in self.options]
        return None if None in found else frozenset().union(*(types for types in found if types is not None))

    def match(self, value: CompileValue, found: Match) -> Found:
        for option in self.options:
            if _may_match(option, value):
                yield from option.match(value, found)


@dataclass(frozen=True)
class Arithmetic:
    """Multiplication or addition.

    Attributes:
        both, inverse: the operation that joins two terms, and the one that takes the second away again.
        types: the operations that a product or sum consists of.
        neutral: the number that changes nothing.
        join: the product or sum of two numbers.
        invert: the number that joined does what ``inverse`` does with a number; None where there is none.
    """

    both: str
    inverse: str
    types: frozenset[str]
    neutral: float
    join: Callable[[float, float], float]
    invert: Callable[[float], float | None]


_PRODUCT = Arithmetic(
    "Multiply",
    "Divide",
    frozenset({"Multiply", "Divide", "Negative"}),
    1.0,
    operator.mul,
    lambda number: 1 / number if number else None,
)
_SUM = Arithmetic("Add", "Subtract", frozenset({"Add", "Subtract"}), 0.0, operator.add, operator.neg)


@dataclass(frozen=True, eq=False)
class Terms(Pattern):
    """A number and the terms of a sum, or the factors of a product, in any order and grouping.

    Attributes:
        number: the sum or product of all constants of one element; a name where it may be any.
    """

    kind: Arithmetic
    number: float | str
    terms: tuple[Pattern, ...]

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """Its operations; those of its term where that may be all."""
        may_be_one = isinstance(self.number, str) or self.number == self.kind.neutral
        if not may_be_one or len(self.terms) > 1:
            return self.kind.types
        own = self.terms[0].roots
        return None if own is None else self.kind.types | own

    def match(self, value: CompileValue, found: Match) -> Found:
        for number, values, operations in _split(self.kind, value, len(self.terms)):
            yield from self._match_parts(number, values, found.through(*operations))

    def _match_parts(self, number: float, values: tuple[CompileValue, ...], found: Match) -> Found:
        wanted = self.number
        if isinstance(wanted, str):
            wanted = found.number(wanted) if wanted in found.constants else number
        if not is_close(number, wanted):
            return
        if isinstance(self.number, str):
            found = replace(found, constants=found.constants | {self.number: np.array(number)})
        for order in itertools.permutations(values):
            if all(map(_may_match, self.terms, order)):
                yield from _match_all(self.terms, order, found)


def value(name: str, *, constant: bool = False) -> Pattern:
    """Any value; any constant, however large, if ``constant``."""
    return Named(name, constant)


def number(name: str) -> Pattern:
    """Any constant of one element.

    As a factor or a term it stands for the number of the whole product or sum: 1 or 0 where there is none.
    """
    return SmallConstant(name=name)


def array(name: str) -> Pattern:
    """Any small constant."""
    return SmallConstant(name=name, single=False)


def call(types: str, *operands: Pattern | float, **attributes: Any) -> Pattern:
    """An operation of a type, or of one of several with "|" between them, with these attributes."""
    return Call(frozenset(types.split("|")), tuple(map(_pattern, operands)), attributes)


def either(*options: Pattern) -> Pattern:
    """Any of several patterns."""
    return Either(options)


def root(x: Pattern) -> Pattern:
    """The square root."""
    return either(call("Sqrt", x), call("Power", x, 0.5))


def is_close(number: float, wanted: float) -> bool:
    """Whether a constant is the number of a pattern."""
    return math.isclose(number, wanted, rel_tol=TOLERANCE)


def _pattern(operand: Pattern | float) -> Pattern:
    return operand if isinstance(operand, Pattern) else SmallConstant(operand)


def product(*factors: Pattern | float) -> Pattern:
    """The product of factors, in any order and grouping."""
    return _terms(_PRODUCT, *factors)


def _terms(kind: Arithmetic, *operands: Pattern | float) -> Pattern:
    """The sum or product of operands, which may be sums or products themselves."""
    total: float | str = kind.neutral
    terms: list[Pattern] = []
    for operand in operands:
        own: float | str = kind.neutral
        if isinstance(operand, Terms) and operand.kind is kind:
            own = operand.number
            terms += operand.terms
        elif isinstance(operand, SmallConstant) and operand.single:
            own = operand.name if operand.number is None else operand.number
        elif isinstance(operand, Pattern):
            terms.append(operand)
        else:
            own = operand
        if isinstance(total, str) or isinstance(own, str):
            total = own if isinstance(own, str) else total
        else:
            total = kind.join(total, own)
    return Terms(kind, total, tuple(terms))


def _match_all(patterns: Sequence[Pattern], values: Sequence[CompileValue], found: Match) -> Found:
    if not patterns:
        yield found
        return
    if not all(map(_may_match, patterns, values)):
        return
    for match in patterns[0].match(values[0], found):
        yield from _match_all(patterns[1:], values[1:], match)


def _may_match(pattern: Pattern, value: CompileValue) -> bool:
    """Whether the value is of an operation that the pattern begins with."""
    return pattern.roots is None or (value.producer is not None and value.producer.type in pattern.roots)


Parts = tuple[float, tuple[CompileValue, ...], tuple[Operation, ...]]


def _split(kind: Arithmetic, value: CompileValue, count: int) -> Iterator[Parts]:
    """The ways to write a value as a number and ``count`` terms, and the operations between."""
    operation = _producer(value, kind.types)
    if operation is not None:
        for number, rest in _numbers(kind, operation):
            for other, terms, inner in _split(kind, rest, count):
                yield kind.join(number, other), terms, (operation, *inner)
        if operation.type == kind.both:
            left, right = operation.inputs
            for taken in range(1, count):
                for a, some, inner in _split(kind, left, taken):
                    for b, others, more in _split(kind, right, count - taken):
                        yield kind.join(a, b), (*some, *others), (operation, *inner, *more)
    if count == 1:
        yield kind.neutral, (value,), ()


def _numbers(kind: Arithmetic, operation: Operation) -> Iterator[tuple[float, CompileValue]]:
    """The number that an operation joins to the rest of a sum or product, and the rest."""
    if operation.type == "Negative":
        yield -1, operation.inputs[0]
        return
    left, right = operation.inputs
    for constant, rest in ((left, right), (right, left)) if operation.type == kind.both else ((right, left),):
        number = _number(constant)
        joined = number if number is None or operation.type == kind.both else kind.invert(number)
        if joined is not None:
            yield joined, rest


def _number(value: CompileValue) -> float | None:
    """A constant of one element."""
    known = value.known if value.constant is not None else None
    if known is None or known.size != 1 or known.dtype.kind not in "fiu":
        return None
    return float(known.reshape(-1)[0])


def _producer(value: CompileValue, types: frozenset[str]) -> Operation | None:
    """The producer of the value, if it has one of the types and computes on floats with NumPy's broadcasting."""
    operation = value.producer
    if operation is None or operation.type not in types or value.index or operation.chain is not None:
        return None
    return operation if operation.attributes.get("auto_broadcast", "numpy") == "numpy" else None
