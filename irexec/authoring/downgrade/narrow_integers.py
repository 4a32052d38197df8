"""Integers of 8 and 16 bits before 2022.1, whose CPU plugin gives a result as f32 before it is rounded or wrapped.

Source: the release 2021.4.2 itself (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

from irexec.analysis.portability.releases import Release
from irexec.authoring.downgrade.layer import FIVE, ONE, Layer, respells
from irexec.authoring.ends import constant
from irexec.authoring.tensor import Tensor
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact

_UNTIL = Release(2022, 1)

_ROUNDED = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Elu", "Erf", "Exp", "HSigmoid", "HSwish", "Log",
    "Sigmoid", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "AvgPool",
)  # fmt: skip
"""Operations that OpenVINO computes in f32 and rounds to the integers of the input."""


def _is_narrow(element: Element | None) -> bool:
    return element is not None and element.is_integer and element.bits in (8, 16)


@respells(_UNTIL, *_ROUNDED)
def _rounded(layer: Layer) -> Any:
    """Rounds to even, and saturates."""
    element = layer.element()
    if not _is_narrow(element):
        return None
    first, *rest = layer.inputs
    floats = (ONE.convert(given, destination_type="f32") for given in (first, *rest))
    exact = FIVE.round(layer.same(layer.since, *floats), mode="half_to_even")
    low, high = element.limits
    return _in_type(ONE.clamp(exact, min=low, max=high), element)


@respells(Release(2024, 6), "Convert")
def _through_a_few_bits(layer: Layer) -> Any:
    """A Convert to integers of 2 to 6 bits, followed by one of them: both wrap in i32. Plugins hold bytes, if any."""
    element, target, made = layer.element(), layer.outputs[0].element, layer.inputs[0].value.node
    source = made.inputs[0] if made.type == "Convert" else None
    if source is None or source.fact is None or target is None or not (element.is_integer and 1 < element.bits < 8):
        return None
    x = Tensor(source, Fact(source.fact.element, layer.inputs[0].shape))
    wrapped = _wrapped(ONE.convert(x, destination_type="i32"), element)
    return (
        ONE.not_equal(wrapped, constant(0, "i32"))
        if target.kind == "boolean"
        else ONE.convert(wrapped, destination_type=target)
    )


@respells(_UNTIL, "Convert", "ConvertLike")
def _convert(layer: Layer) -> Any:
    """Zero is false, other numbers are true; integers wrap."""
    source, target = layer.element(), layer.outputs[0].element
    (x, *_) = layer.inputs
    if target is None or source is target:
        return None
    if target.kind == "boolean":
        return ONE.not_equal(x, layer.number(0))
    if not _is_narrow(target) or source.kind == "boolean" or (source.is_integer and _holds(target, source)):
        return None
    return _in_type(_wrapped(ONE.convert(x, destination_type="i32"), target), target)


def _wrapped(x: Tensor, element: Element) -> Tensor:
    low, high = element.limits
    middle, count = constant(-low, "i32"), constant(high - low + 1, "i32")
    if low == 0:
        return ONE.floor_mod(x, count)
    return ONE.subtract(ONE.floor_mod(ONE.add(x, middle), count), middle)


def _in_type(x: Tensor, element: Element) -> Tensor:
    """Numbers in the range of the type, as the type."""
    return ONE.convert(ONE.convert(x, destination_type="i32"), destination_type=element)


def _holds(element: Element, other: Element) -> bool:
    (low, high), (other_low, other_high) = element.limits, other.limits
    return low <= other_low and other_high <= high
