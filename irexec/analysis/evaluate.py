"""One operation on known inputs: the kernel, the precision, and the rounding that the element types ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from irexec.dtypes.elements import Element, round_to
from irexec.errors import InputError, OpError
from irexec.ir.dims import Dim, Size, at_least, count, high, is_static, low
from irexec.ir.facts import Fact
from irexec.reference.limits import limited
from irexec.schema.opdef import OpDef

LARGEST_VALUE = 1024
"""The maximum number of elements of a tensor whose value is propagated through a graph before it runs."""


class _TooLarge(OpError):
    """A kernel would make a large array on the way to a small result."""


class _SmallArrays:
    """The limits of a kernel whose value is propagated."""

    def check_memory(self, size: int, what: str) -> None:
        """Kernels ask before they make arrays that are not small."""
        raise _TooLarge(f"{what} takes {size} bytes")

    def check_time(self, layer: str = "") -> None:
        """Small arrays take no time."""


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Results of a kernel or rule, one entry per output."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def rounded(array: np.ndarray, element: Element | None) -> np.ndarray:
    """The array with every value rounded to the element type: a no-op where NumPy has the type itself."""
    # Some NumPy functions return a scalar in place of an array of rank 0, of an array of text the text itself.
    whole = np.asarray(array, object if isinstance(array, str) else None)
    return whole if element is None or element.native else round_to(element, whole)


def without_elements(facts: Sequence[Fact]) -> tuple[np.ndarray, ...] | None:
    """The outputs where none of them has elements, else None: what would be computed on the way may be larger than any
    array.

    OpenVINO does not execute a node with empty outputs either.
    """
    if not facts or not all(fact.is_static and 0 in fact.static_shape and fact.element is not None for fact in facts):
        return None
    return tuple(np.empty(fact.static_shape, fact.dtype) for fact in facts)


def evaluate(
    definition: OpDef, inputs: Sequence[np.ndarray], attributes: dict[str, Any], facts: Sequence[Fact]
) -> tuple[np.ndarray, ...]:
    """The outputs of the reference kernel, rounded to the element types of ``facts``."""
    # Constants have no inputs, and their data is to be read.
    empty = without_elements(facts) if inputs else None
    outputs = as_tuple(definition(*inputs, **attributes)) if empty is None else empty
    return tuple(rounded(out, fact.element) for out, fact in zip(outputs, facts, strict=True))


def with_values(
    definition: OpDef, inputs: Sequence[Fact], attributes: dict[str, Any], outputs: Sequence[Fact]
) -> tuple[Fact, ...]:
    """``outputs`` with the values that follow from those of ``inputs``, found by the kernel itself.

    Nothing is computed that is large, random or depends on state, or takes large arrays on the way; what bounds leave
    undecided is left out.
    """
    if (
        not definition.deterministic
        or not definition.propagate_value
        or definition.stateful
        or any(fact.value is not None for fact in outputs)
    ):
        return tuple(outputs)
    if not all(_is_small(fact) for fact in outputs) or any(fact.value is None for fact in inputs):
        return tuple(outputs)
    if all(fact.known is not None for fact in inputs):
        arrays = [fact.value for fact in inputs if fact.value is not None]
        try:
            with limited(_SmallArrays()):
                values = evaluate(definition, arrays, attributes, outputs)
        except (_TooLarge, MemoryError, OverflowError):
            # A run says so, if it comes to that.
            return tuple(outputs)
        return tuple(Fact(fact.element, value.shape, value) for fact, value in zip(outputs, values, strict=True))
    if definition.symbolic and all(is_static(fact.shape) for fact in outputs):
        return _symbolic(definition, inputs, attributes, outputs)
    return tuple(outputs)


def _is_small(fact: Fact) -> bool:
    """Whether the tensor has few elements however large it turns out to be, and no long axis beside one of size 0."""
    if fact.element is None or fact.shape is None:
        return False
    maximum = high(count(at_least(size, 1) for size in fact.shape))
    return maximum is not None and maximum <= LARGEST_VALUE


def _symbolic(
    definition: OpDef, inputs: Sequence[Fact], attributes: dict[str, Any], outputs: Sequence[Fact]
) -> tuple[Fact, ...]:
    if not all(fact.element is not None and fact.element.is_integer for fact in inputs if fact.known is None):
        return tuple(outputs)
    arrays = [_as_objects(fact) for fact in inputs]
    try:
        values = as_tuple(definition(*arrays, **attributes))
    except OpError:
        return tuple(outputs)
    return tuple(_settled(fact, np.asarray(value)) for fact, value in zip(outputs, values, strict=True))


def _as_objects(fact: Fact) -> np.ndarray:
    value = fact.value
    if value is None:
        raise OpError("the value is not known")
    return (
        value if value.dtype == object or fact.element is None or not fact.element.is_integer else value.astype(object)
    )


def _settled(fact: Fact, value: np.ndarray) -> Fact:
    """``fact`` with a value of int | Dim, as a plain array where every value is known."""
    if fact.element is None or fact.shape != value.shape:
        return fact
    if fact.element.is_integer and not all(_holds(fact.element, item) for item in value.ravel().tolist()):
        return fact
    if any(isinstance(v, Dim) for v in value.ravel().tolist()):
        return Fact(fact.element, fact.shape, value) if fact.element.is_integer else fact
    try:
        return Fact(fact.element, fact.shape, value.astype(fact.element.carrier))
    except OverflowError:
        return fact


def _holds(element: Element, value: Size) -> bool:
    """Whether an integer cannot wrap: objects do not, the kernel's own integers do.

    A size without an upper bound is taken to fit 32 bits, as no array is larger, but nothing narrower.
    """
    signed = element.kind == "signed"
    minimum, maximum = -(1 << (element.bits - 1)) if signed else 0, (1 << (element.bits - signed)) - 1
    top = high(value)
    return minimum <= low(value) <= maximum and (element.bits >= 32 if top is None else top <= maximum)


Precision = Literal["as-written", "f32", "bf16"]
"""Arithmetic as the model is written, each result rounded to its element type; or f16 and bf16 computed in f32; or as
that, with the operands of products by constants rounded to bf16."""

DEFAULT_PRECISION: Precision = "f32"


def check_precision(precision: str) -> None:
    """Raise InputError for what is not a Precision."""
    if precision not in get_args(Precision):
        raise InputError(f"precision is {precision!r}, expected 'as-written', 'f32' or 'bf16'")


def precision_argument(precision: Precision) -> list[str]:
    """The option of a command that computes so, if that is not its default."""
    return [] if precision == DEFAULT_PRECISION else [f"--precision={precision}"]
