"""Element types converted, promoted and simulated: Convert, ConvertPromoteTypes, FakeQuantize, FakeConvert."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BF16, BOOLEAN, ELEMENTS, F16, F32, Element, element, element_of, round_to
from irexec.dtypes.layouts import round_bf16
from irexec.errors import OpError, check
from irexec.ir.dims import broadcastable_to, may_equal, meet, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.reference.integers import level_values, nearest_levels, round_e4m3, round_e5m2, truncated
from irexec.schema.attributes import AtLeast, ElementTypes
from irexec.schema.opdef import AnyTensor, FloatTensor, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import Broadcasting, align, broadcast, unify_elements


def converted(data: np.ndarray, to: Element) -> np.ndarray:
    """The values of ``data`` converted to another element type, in its carrier.

    As OpenVINO's reference does: floats are truncated to integers, integers keep the low bits
    of the type; every value but 0 becomes true, NaN included. A float beyond the range of 64 bits
    becomes the minimum of i64 first. f64 becomes f16 by way of f32, so rounded twice.
    """
    if data.dtype == object:
        return data
    if to.kind == "boolean":
        return data != 0
    if to.is_integer:
        whole = truncated(data, to.carrier) if data.dtype.kind == "f" else data
        values = whole.astype(to.carrier, copy=False)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            through = data.astype(np.float32) if data.dtype == np.float64 and to.name == "f16" else data
            values = through.astype(to.carrier)
    return values if to.native else round_to(to, values)


def _check_kinds(data: Fact, to: Element | None) -> None:
    if data.element is not None and to is not None:
        has_string = "string" in (data.element.kind, to.kind)
        check(not has_string or data.element is to, f"{data.element} cannot be converted to {to}")


@op("Convert", since=1, symbolic=True, view=True)
def convert_1(data: AnyTensor, *, destination_type: Element) -> np.ndarray:
    """``data`` converted to the element type ``destination_type``. Source: Convert-1."""
    return converted(data, destination_type) if data.dtype != object else data.copy()


@convert_1.shape_rule
def _convert_1_facts(data: Fact, *, destination_type: Element) -> Fact:
    _check_kinds(data, destination_type)
    return Fact(destination_type, data.shape)


@op("ConvertLike", since=1)
def convert_like_1(data: AnyTensor, like: AnyTensor) -> np.ndarray:
    """``data`` converted to the element type of ``like``. Source: ConvertLike-1."""
    result = data if data.dtype == object else converted(data, element_of(like.dtype))
    return result.copy() if result is data else result


@convert_like_1.shape_rule
def _convert_like_1_facts(data: Fact, like: Fact) -> Fact:
    _check_kinds(data, like.element)
    return Fact(like.element, data.shape)


PROMOTED = element_set(
    "a type that can be promoted (not string, u2, u3, u6, nf4, f8e8m0 or f4e2m1)",
    *(e for e in ELEMENTS if e.name not in ("string", "u2", "u3", "u6", "nf4", "f8e8m0", "f4e2m1")),
)
PromotedTensor = Annotated[np.ndarray, PROMOTED]
# The type that two different floating-point types of the same width are promoted to.
_SAME_WIDTH = {frozenset(["f8e4m3", "f8e5m2"]): "f16", frozenset(["bf16", "f16"]): "f32"}


@op("ConvertPromoteTypes", since=14, view=True)
def convert_promote_types_14(
    input_0: PromotedTensor,
    input_1: PromotedTensor,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: Element = element("f32"),
    elements: ElementTypes,
) -> tuple[np.ndarray, np.ndarray]:
    """Both tensors converted to one type that can hold the values of either.

    Without ``promote_unsafe`` an integer becomes a float, and an unsigned integer a signed one, only where all of its
    values fit. With ``pytorch_scalar_promotion`` a scalar is converted to the type of the tensor. u64 and a signed
    integer become ``u64_integer_promotion_target``. Source: ConvertPromoteTypes-14.
    """
    first, second = elements
    if first is None or second is None:
        raise OpError("the element types are not known")
    scalars = (input_0.ndim == 0, input_1.ndim == 0)
    common = _common(first, second, scalars, promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target)
    return converted(input_0, common), converted(input_1, common)


@convert_promote_types_14.shape_rule
def _convert_promote_types_14_facts(
    input_0: Fact,
    input_1: Fact,
    *,
    promote_unsafe: bool,
    pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: Element,
) -> tuple[Fact, Fact]:
    rules = (promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target)
    common = None
    if input_0.element is not None and input_1.element is not None:
        common = _common_of_any_rank(input_0, input_1, input_0.element, input_1.element, rules)
    return Fact(common, input_0.shape), Fact(common, input_1.shape)


def _common_of_any_rank(
    a: Fact, b: Fact, first: Element, second: Element, rules: tuple[bool, bool, Element]
) -> Element | None:
    """The common type; None if it depends on ranks that are not known. OpError if no ranks are allowed."""
    found: set[Element] = set()
    refused: OpError | None = None
    for ranks in itertools.product(*([0, 1] if fact.rank is None else [fact.rank] for fact in (a, b))):
        try:
            found.add(_common(first, second, (ranks[0] == 0, ranks[1] == 0), *rules))
        except OpError as error:
            refused = error
    if not found and refused is not None:
        raise refused
    return found.pop() if len(found) == 1 else None


def _common(
    first: Element, second: Element, scalars: tuple[bool, bool], unsafe: bool, pytorch: bool, beyond: Element
) -> Element:
    if first is second or BOOLEAN in (first, second):
        return second if first is BOOLEAN else first
    if first.is_float != second.is_float:
        real, integer = (first, second) if first.is_float else (second, first)
        check(unsafe or real.bits >= 2 * integer.bits, f"{integer} cannot safely be promoted to {real}")
        return real
    if pytorch and scalars[0] != scalars[1]:
        tensor, scalar = (second, first) if scalars[0] else (first, second)
        check(unsafe or _fits(tensor, scalar), f"a scalar of {scalar} cannot safely be promoted to {tensor}")
        return tensor
    if first.kind != second.kind:
        signed, unsigned = (first, second) if first.kind == "signed" else (second, first)
        # A signed integer that holds both.
        if unsigned.bits <= 32 and (unsafe or 2 * unsigned.bits <= signed.bits):
            return element(f"i{max(2 * unsigned.bits, signed.bits)}")
        check(unsafe, f"{unsigned} cannot safely be promoted to a signed integer")
        return beyond
    if first.bits != second.bits:
        return max(first, second, key=lambda one: one.bits)
    wider = _SAME_WIDTH.get(frozenset([first.name, second.name]))
    check(unsafe and wider is not None, f"{first} and {second} have no common type")
    return element(wider or "f32")


def _fits(to: Element, small: Element) -> bool:
    """Whether a scalar type fits a tensor's type by OpenVINO's rule: an unsigned scalar in a signed type of at least
    half its width."""
    signed, sign = (one.kind != "unsigned" for one in (to, small))
    return (signed == sign and to.bits >= small.bits) or (signed and not sign and to.bits * 2 >= small.bits)


@op("FakeQuantize", since=1)
def fake_quantize_1(
    data: FloatTensor,
    input_low: FloatTensor,
    input_high: FloatTensor,
    output_low: FloatTensor,
    output_high: FloatTensor,
    *,
    levels: Annotated[int, AtLeast(2)],
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """The nearest of ``levels`` levels from input_low to input_high, mapped to output_low..output_high.

    At or below the smaller input bound it is output_low, above the larger one output_high; halves are rounded to even.
    Levels are computed in f64 and rounded once; the one that is 0 but for the rounding of the bounds is 0 (see
    ``zero_level``). Source: FakeQuantize-1 and openvino ``reference/fake_quantize.hpp``.
    """
    low, high, out_low, out_high = (
        align(data, bound, auto_broadcast, auto_broadcast_axis)[1]
        for bound in (input_low, input_high, output_low, output_high)
    )
    with np.errstate(all="ignore"):
        inside = level_values(nearest_levels(data, low, high, levels), out_low, out_high, levels)
    np.copyto(inside, out_low, where=data <= np.minimum(low, high))
    np.copyto(inside, out_high, where=data > np.maximum(low, high))
    return inside


@fake_quantize_1.shape_rule
def _fake_quantize_1_facts(
    data: Fact,
    input_low: Fact,
    input_high: Fact,
    output_low: Fact,
    output_high: Fact,
    *,
    auto_broadcast: Broadcasting,
    auto_broadcast_axis: int | None,
) -> Fact:
    kind = unify_elements(data, input_low, input_high, output_low, output_high)
    for bound in (input_low, input_high, output_low, output_high):
        if auto_broadcast != "numpy":
            broadcast([data.shape, bound.shape], auto_broadcast, auto_broadcast_axis)
        elif data.shape is not None and bound.shape is not None:
            text = f"bound {shape_text(bound.shape)} cannot be broadcast to data {shape_text(data.shape)}"
            check(broadcastable_to(bound.shape, data.shape), text)
    return Fact(kind, data.shape)


ConvertedTensor = Annotated[np.ndarray, element_set("f16, bf16 or f32", F16, BF16, F32)]


@op("FakeConvert", since=13)
def fake_convert_13(
    data: ConvertedTensor,
    scale: ConvertedTensor,
    shift: ConvertedTensor | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """data * scale - shift rounded to f16 and then to an 8-bit float type, and converted back: (x + shift) / scale.

    The 8-bit types are rounded and saturated differently than by Convert, see irexec.reference.integers. Each step
    is rounded to the type of the data. Source: FakeConvert-13 and openvino ``reference/src/op/fake_convert.cpp``.
    """
    rounded = round_bf16 if elements and elements[0] is BF16 else np.asarray
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = rounded(data * scale)
        scaled = scaled if shift is None else rounded(scaled - shift)
        halves = scaled.astype(np.float16)
        result = (round_e5m2(halves) if destination_type == "f8e5m2" else round_e4m3(halves)).astype(data.dtype)
        result = result if shift is None else rounded(result + shift)
        return np.asarray(result / scale, data.dtype)


@fake_convert_13.shape_rule
def _fake_convert_13_facts(data: Fact, scale: Fact, shift: Fact | None = None) -> Fact:
    kind = unify_elements(data, scale, shift)
    shape = data.shape
    if scale.shape is not None and shape is not None:
        fits = broadcastable_to(scale.shape, shape)
        check(fits, f"scale {shape_text(scale.shape)} cannot be broadcast to data {shape_text(shape)}")
        lead = len(shape) - len(scale.shape)
        pairs = zip(shape[lead:], scale.shape, strict=True)
        shape = (*shape[:lead], *(size if may_equal(by, 1) else meet(size, by) for size, by in pairs))
    if shift is not None and shift.shape is not None and scale.shape is not None:
        meet_shapes(scale.shape, shift.shape)
    return Fact(kind, shape)
