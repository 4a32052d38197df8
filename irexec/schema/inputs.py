"""Inputs of an operation: which element types and ranks each takes, declared in the annotation of the kernel's
parameter.

    def gather_8(data: Tensor, indices: IntegerTensor, axis: Annotated[IntegerTensor, Rank(0, 1)], *, batch_dims: int =
    0)

The aliases below name the usual sets of element types; ``Annotated[..., Rank(3, 5)]`` adds the ranks. One generic check
refuses an input that breaks its declaration: before the shape rule where its fact is known, else before the kernel.
Rules and kernels therefore see declared inputs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

from irexec.dtypes.elements import ELEMENTS, I32, I64, Element
from irexec.errors import OpError
from irexec.ir.dims import may_equal
from irexec.ir.facts import Fact
from irexec.messages import alternatives


@dataclass(frozen=True)
class ElementSet:
    """Element types that an input takes.

    Attributes:
        text: the name of the set in messages and documentation, with its article: "an integer type".
        elements: its members.
    """

    text: str
    elements: frozenset[Element]

    def __contains__(self, element: Element) -> bool:
        return element in self.elements


@dataclass(frozen=True)
class Rank:
    """The ranks that an input takes: ``Rank(4)`` exactly 4, ``Rank(3, 5)`` 3 to 5, ``Rank(1, None)`` 1 or more.

    With ``single_element`` an input of rank 1 has one element: ``ONE_ELEMENT`` is a scalar, or a vector of one element
    where OpenVINO accepts it. ``SCALAR`` is for inputs whose vectors OpenVINO refuses.
    """

    minimum: int
    maximum: int | None = -1
    single_element: bool = False

    @property
    def text(self) -> str:
        """For messages: "4", "0 or 1", "3 to 5", "1 or more" or "0, or 1 with a single element"."""
        if self.single_element:
            return "0, or 1 with a single element"
        if self.maximum is None:
            return f"{self.minimum} or more"
        ranks = [str(rank) for rank in range(self.minimum, self._last + 1)]
        return alternatives(ranks) if len(ranks) < 4 else f"{ranks[0]} to {ranks[-1]}"

    @property
    def _last(self) -> int:
        return self.minimum if self.maximum == -1 else self.maximum or 0

    def __contains__(self, rank: int) -> bool:
        return rank >= self.minimum and (self.maximum is None or rank <= self._last)


SCALAR = Rank(0)
ONE_ELEMENT = Rank(0, 1, single_element=True)
VECTOR = Rank(1)


def element_set(text: str, *elements: Element) -> ElementSet:
    """A set of a few element types; ``text`` is what messages call it."""
    return ElementSet(text, frozenset(elements))


ANY_TYPE = element_set("any element type", *ELEMENTS)
NOT_STRING = element_set("any element type but string", *(e for e in ELEMENTS if e.kind != "string"))
NUMERIC = element_set("a numeric type", *(e for e in ELEMENTS if e.is_float or e.is_integer))
FLOAT = element_set("a floating-point type", *(e for e in ELEMENTS if e.is_float))
INTEGER = element_set("an integer type", *(e for e in ELEMENTS if e.is_integer))
INTEGER_OR_BOOLEAN = element_set(
    "an integer type or boolean", *(e for e in ELEMENTS if e.is_integer or e.kind == "boolean")
)
BOOLEAN_TYPE = element_set("boolean", *(e for e in ELEMENTS if e.kind == "boolean"))
STRING_TYPE = element_set("string", *(e for e in ELEMENTS if e.kind == "string"))
INDEX = element_set("i32 or i64", I32, I64)

AnyTensor = Annotated[np.ndarray, ANY_TYPE]
Tensor = Annotated[np.ndarray, NOT_STRING]
NumericTensor = Annotated[np.ndarray, NUMERIC]
FloatTensor = Annotated[np.ndarray, FLOAT]
IntegerTensor = Annotated[np.ndarray, INTEGER]
BooleanTensor = Annotated[np.ndarray, BOOLEAN_TYPE]
StringTensor = Annotated[np.ndarray, STRING_TYPE]
IndexTensor = Annotated[np.ndarray, INDEX]
IndexScalar = Annotated[np.ndarray, INDEX, SCALAR]
IndexElement = Annotated[np.ndarray, INDEX, ONE_ELEMENT]
IndexVector = Annotated[np.ndarray, INDEX, VECTOR]
IntegerScalar = Annotated[np.ndarray, INTEGER, SCALAR]
IntegerElement = Annotated[np.ndarray, INTEGER, ONE_ELEMENT]
IntegerVector = Annotated[np.ndarray, INTEGER, VECTOR]
AxesTensor = Annotated[np.ndarray, INTEGER, Rank(0, 1)]


@dataclass(frozen=True)
class InputSpec:
    """One input of the schema.

    Attributes:
        name: the specification's.
        optional: whether it may be absent.
        variadic: whether it stands for any number of inputs.
        elements: the element types it takes; None if its annotation does not say.
        ranks: the ranks it takes; None for any.
    """

    name: str
    optional: bool = False
    variadic: bool = False
    elements: ElementSet | None = None
    ranks: Rank | None = None

    def check(self, fact: Fact) -> None:
        """Raise OpError if what is known of the input breaks its declaration."""
        # Messages are made where they are needed: growing states have every input checked in every run.
        elements, ranks = self.elements, self.ranks
        if elements is not None and fact.element is not None and fact.element not in elements:
            raise OpError(f"{self.name} has element type {fact.element}, expected {elements.text}")
        if ranks is not None and fact.shape is not None:
            if len(fact.shape) not in ranks:
                raise OpError(f"{self.name} has rank {fact.rank}, expected {ranks.text}")
            if ranks.single_element and fact.shape and not may_equal(fact.shape[0], 1):
                raise OpError(f"{self.name} has {fact.shape[0]} elements, expected 1")


def input_spec(name: str, hint: Any, *, optional: bool = False, variadic: bool = False) -> InputSpec:
    """The declaration of an input by its annotation, which may be ``... | None`` where it is optional."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    # The outermost mark counts, so that an alias can be narrowed.
    elements = next((mark for mark in reversed(marks) if isinstance(mark, ElementSet)), None)
    ranks = next((mark for mark in reversed(marks) if isinstance(mark, Rank)), None)
    return InputSpec(name, optional, variadic, elements, ranks)


def check_inputs(specs: Sequence[InputSpec], facts: Sequence[Fact]) -> None:
    """Raise OpError for the first input that breaks its declaration; the last spec counts on if it is variadic."""
    for i, fact in enumerate(facts):
        specs[min(i, len(specs) - 1)].check(fact)
