"""ConvertPromoteTypes: two tensors converted to a common element type."""

from __future__ import annotations

import itertools
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import BOOLEAN, ELEMENTS, Element, element
from irexec.errors import OpError, check
from irexec.ir.facts import Fact
from irexec.ops.conversion import converted
from irexec.schema.injected import ElementTypes
from irexec.schema.inputs import element_set
from irexec.schema.registry import op

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
        return _signed(signed, unsigned, unsafe, beyond)
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


def _signed(signed: Element, unsigned: Element, unsafe: bool, beyond: Element) -> Element:
    """A signed integer that holds both."""
    if unsigned.bits <= 32 and (unsafe or 2 * unsigned.bits <= signed.bits):
        return element(f"i{max(2 * unsigned.bits, signed.bits)}")
    check(unsafe, f"{unsigned} cannot safely be promoted to a signed integer")
    return beyond
