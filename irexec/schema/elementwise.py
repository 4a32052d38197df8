"""What operations on two tensors, number by number, have in common: a row of a table makes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.registry import op


def align(a: np.ndarray, b: np.ndarray, mode: str, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays reshaped so that NumPy's broadcasting does what ``auto_broadcast`` asks."""
    if mode != "pdpd" or b.ndim == 0:
        return a, b
    start = a.ndim - b.ndim if axis == -1 else axis
    sizes = b.shape[: a.ndim - start]
    return a, b.reshape(sizes + (1,) * (a.ndim - start - len(sizes)))


def define(
    type: str, since: int, function: Callable[..., Any], says: str, result: Callable[[Fact, Fact], Element | None], **flags: Any
) -> None:
    """Register the version of ``type`` of ``since``: ``function`` of the two tensors, broadcast.

    ``result`` gives the element type of the result, and raises OpError for element types that do not go together.
    """

    def kernel(a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy") -> np.ndarray:
        a, b = align(a, b, auto_broadcast, 0)
        return np.asarray(function(a, b))

    kernel.__doc__ = f"{says} Source: {type}-{since}."
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def facts(a: Fact, b: Fact, *, auto_broadcast: Broadcasting = "numpy") -> Fact:
        return Fact(result(a, b), broadcast([a.shape, b.shape], auto_broadcast, 0))
