"""Patterns of operations, written as arithmetic.

    x = value("x")
    GELU = 0.5 * x * (1 + call("Erf", x / math.sqrt(2)))

A pattern matches every spelling of the same arithmetic: the operands of a sum or product in any order and grouping,
numbers multiplied anywhere into a product, divisions by a number, subtractions of one. A name stands for the same value
wherever it occurs.

irexec/compile/rules.py replaces what matches.
"""

from __future__ import annotations

import itertools
import math
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

_PRODUCTS = frozenset({"Multiply", "Divide", "Negative"})
_SUMS = frozenset({"Add", "Subtract"})
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
        return _sum(self, other)

    def __radd__(self, other: float) -> Pattern:
        return _sum(self, other)

    def __mul__(self, other: Pattern | float) -> Pattern:
        return _product(self, other)

    def __rmul__(self, other: float) -> Pattern:
        return _product(self, other)

    def __sub__(self, other: Pattern | float) -> Pattern:
        return call("Subtract", self, other) if isinstance(other, Pattern) else _sum(self, -other)

    def __rsub__(self, other: float) -> Pattern:
        return call("Subtract", other, self)

    def __neg__(self) -> Pattern:
        return _product(self, -1)

    def __truediv__(self, other: Pattern | float) -> Pattern:
        return call("Divide", self, other) if isinstance(other, Pattern) else _product(self, 1 / other)

    def __rtruediv__(self, other: float) -> Pattern:
        return (
            either(call("Divide", other, self), call("Power", self, -1)) if other == 1 else call("Divide", other, self)
        )

    def __pow__(self, exponent: int) -> Pattern:
        return either(call("Power", self, exponent), Product(1, (self,) * exponent))


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
class Constant(Pattern):
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


@dataclass(frozen=True, eq=False)
class Product(Pattern):
    """A number times factors, in any order and grouping.

    Attributes:
        number: the product of all constants of one element; a name where it may be any.
    """

    number: float | str
    factors: tuple[Pattern, ...]

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """Its operations; those of its factor where that may be all."""
        return _roots(_PRODUCTS, self.number == 1 or isinstance(self.number, str), self.factors)

    def match(self, value: CompileValue, found: Match) -> Found:
        for number, factors, operations in _products(value, len(self.factors)):
            yield from _match_terms(self.number, self.factors, (number, factors, operations), found)


@dataclass(frozen=True, eq=False)
class Sum(Pattern):
    """A number and terms, in any order and grouping; see Product."""

    number: float | str
    terms: tuple[Pattern, ...]

    @cached_property
    def roots(self) -> frozenset[str] | None:
        """Its operations; those of its term where that may be all."""
        return _roots(_SUMS, self.number == 0 or isinstance(self.number, str), self.terms)

    def match(self, value: CompileValue, found: Match) -> Found:
        for number, terms, operations in _sums(value, len(self.terms)):
            yield from _match_terms(self.number, self.terms, (number, terms, operations), found)


def value(name: str, *, constant: bool = False) -> Pattern:
    """Any value; any constant, however large, if ``constant``."""
    return Named(name, constant)


def number(name: str) -> Pattern:
    """Any constant of one element.

    As a factor or a term it stands for the number of the whole product or sum: 1 or 0 where there is none.
    """
    return Constant(name=name)


def array(name: str) -> Pattern:
    """Any small constant."""
    return Constant(name=name, single=False)


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
    return operand if isinstance(operand, Pattern) else Constant(operand)


def _product(a: Pattern, b: Pattern | float) -> Pattern:
    number, factors = _terms(Product, 1.0, a, b, lambda x, y: x * y)
    return Product(number, factors)


def _sum(a: Pattern, b: Pattern | float) -> Pattern:
    number, terms = _terms(Sum, 0.0, a, b, lambda x, y: x + y)
    return Sum(number, terms)


def _terms(
    kind: type[Product] | type[Sum],
    neutral: float,
    a: Pattern,
    b: Pattern | float,
    joined: Callable[[float, float], float],
) -> tuple[float | str, tuple[Pattern, ...]]:
    """The number and the terms of two operands of a sum or product, which may be sums or products themselves."""
    total: float | str = neutral
    terms: list[Pattern] = []
    for operand in (a, b):
        own: float | str = neutral
        if isinstance(operand, kind):
            own = operand.number
            terms += operand.factors if isinstance(operand, Product) else operand.terms
        elif isinstance(operand, Constant) and operand.single:
            own = operand.name if operand.number is None else operand.number
        elif isinstance(operand, Pattern):
            terms.append(operand)
        else:
            own = operand
        if isinstance(total, str) or isinstance(own, str):
            total = own if isinstance(own, str) else total
        else:
            total = joined(total, own)
    return total, tuple(terms)


def _match_all(patterns: Sequence[Pattern], values: Sequence[CompileValue], found: Match) -> Found:
    if not patterns:
        yield found
        return
    if not all(map(_may_match, patterns, values)):
        return
    for match in patterns[0].match(values[0], found):
        yield from _match_all(patterns[1:], values[1:], match)


Terms = tuple[float, tuple[CompileValue, ...], tuple[Operation, ...]]


def _match_terms(wanted: float | str, patterns: Sequence[Pattern], terms: Terms, found: Match) -> Found:
    number, values, operations = terms
    if not isinstance(wanted, str) and not is_close(number, wanted):
        return
    orders = [order for order in itertools.permutations(values) if all(map(_may_match, patterns, order))]
    if not orders:
        return
    found = found.through(*operations)
    if isinstance(wanted, str):
        if not is_close(number, found.number(wanted) if wanted in found.constants else number):
            return
        found = replace(found, constants=found.constants | {wanted: np.array(number)})
    for order in orders:
        yield from _match_all(patterns, order, found)


def _may_match(pattern: Pattern, value: CompileValue) -> bool:
    """Whether the value is of an operation that the pattern begins with."""
    return pattern.roots is None or (value.producer is not None and value.producer.type in pattern.roots)


def _roots(own: frozenset[str], optional: bool, terms: Sequence[Pattern]) -> frozenset[str] | None:
    if not optional or len(terms) > 1:
        return own
    return None if terms[0].roots is None else own | terms[0].roots


def _products(value: CompileValue, count: int) -> Iterator[Terms]:
    """The ways to write a value as a number times ``count`` factors, and the operations between."""
    operation = _producer(value, _PRODUCTS)
    if operation is not None and operation.type == "Negative":
        for number, factors, inner in _products(operation.inputs[0], count):
            yield -number, factors, (operation, *inner)
    elif operation is not None:
        left, right = operation.inputs
        divisor = _number(right) if operation.type == "Divide" else None
        if divisor:
            yield from _with_number(operation, 1 / divisor, left, count, _products, lambda x, y: x * y)
        if operation.type == "Multiply":
            yield from _both(operation, left, right, count, _products, lambda x, y: x * y)
    if count == 1:
        yield 1.0, (value,), ()


def _sums(value: CompileValue, count: int) -> Iterator[Terms]:
    """The ways to write a value as a number and ``count`` terms, and the operations between."""
    operation = _producer(value, _SUMS)
    if operation is not None:
        left, right = operation.inputs
        subtrahend = _number(right) if operation.type == "Subtract" else None
        if subtrahend is not None:
            yield from _with_number(operation, -subtrahend, left, count, _sums, lambda x, y: x + y)
        if operation.type == "Add":
            yield from _both(operation, left, right, count, _sums, lambda x, y: x + y)
    if count == 1:
        yield 0.0, (value,), ()


Splitter = Callable[[CompileValue, int], Iterator[Terms]]
Joiner = Callable[[float, float], float]


def _with_number(
    operation: Operation, number: float, rest: CompileValue, count: int, split: Splitter, join: Joiner
) -> Iterator[Terms]:
    for other, terms, inner in split(rest, count):
        yield join(number, other), terms, (operation, *inner)


def _both(
    operation: Operation, left: CompileValue, right: CompileValue, count: int, split: Splitter, join: Joiner
) -> Iterator[Terms]:
    for constant, rest in ((left, right), (right, left)):
        number = _number(constant)
        if number is not None:
            yield from _with_number(operation, number, rest, count, split, join)
    for taken in range(1, count):
        for a, some, inner in split(left, taken):
            for b, others, more in split(right, count - taken):
                yield join(a, b), (*some, *others), (operation, *inner, *more)


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
