"""Shape rules of element-wise operations; one row of a table registers an operation on two broadcast tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from irexec.dtypes.elements import BOOLEAN, Element
from irexec.ir.facts import Fact
from irexec.schema.broadcasting import Broadcasting, broadcast, pdpd_start
from irexec.schema.inputs import NUMERIC, ElementSet
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements


def unchanged(data: Fact) -> Fact:
    """The shape rule where the result has the element type and the shape of ``data``."""
    return Fact(data.element, data.shape)


def tested(data: Fact) -> Fact:
    """The shape rule where the result says of each element of ``data`` whether something holds."""
    return Fact(BOOLEAN, data.shape)


def align(a: np.ndarray, b: np.ndarray, mode: str, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays reshaped so that NumPy's broadcasting does what ``auto_broadcast`` and its axis ask."""
    if mode != "pdpd" or b.ndim == 0:
        return a, b
    start = pdpd_start(a.ndim, b.ndim, axis)
    sizes = b.shape[: a.ndim - start]
    return a, b.reshape(sizes + (1,) * (a.ndim - start - len(sizes)))


def alignment(attributes: Mapping[str, Any]) -> tuple[str, int | None]:
    """``auto_broadcast`` and the axis of pdpd among the attributes of a layer: the last arguments of ``align``."""
    return attributes.get("auto_broadcast", "numpy"), attributes.get("auto_broadcast_axis")


def define(
    type: str,
    since: int,
    function: Callable[..., Any],
    doc: str,
    *,
    elements: ElementSet = NUMERIC,
    result: Element | None = None,
    **flags: Any,
) -> None:
    """Register version ``since`` of operation ``type``: ``function`` of two broadcast tensors.

    Args:
        doc: the first sentence of the docstring.
        elements: the element types of the inputs, which must be the same.
        result: the element type of the result; None for the type of the inputs.
    """

    def kernel(
        a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy", auto_broadcast_axis: int | None = None
    ) -> np.ndarray:
        a, b = align(a, b, auto_broadcast, auto_broadcast_axis)
        return np.asarray(function(a, b))

    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    kernel.__annotations__ |= dict.fromkeys(("a", "b"), Annotated[np.ndarray, elements])
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def shape_rule(a: Fact, b: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None) -> Fact:
        shared = unify_elements(a, b)
        return Fact(result or shared, broadcast([a.shape, b.shape], auto_broadcast, auto_broadcast_axis))
