"""Element-wise arithmetic on two tensors: a table of one-liners over one broadcasting kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.ir.facts import Fact
from irexec.ops.registry import op
from irexec.ops.rules import Broadcasting, broadcast, same_element


def align(a: np.ndarray, b: np.ndarray, mode: str, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays reshaped so that NumPy's broadcasting does what ``auto_broadcast`` asks."""
    if mode != "pdpd" or b.ndim == 0:
        return a, b
    start = a.ndim - b.ndim if axis == -1 else axis
    sizes = b.shape[: a.ndim - start]
    return a, b.reshape(sizes + (1,) * (a.ndim - start - len(sizes)))


def _define(type: str, since: int, function: Callable[..., Any], says: str, **flags: Any) -> None:
    def kernel(a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy") -> np.ndarray:
        a, b = align(a, b, auto_broadcast, 0)
        with np.errstate(all="ignore"):
            return np.asarray(function(a, b))

    kernel.__doc__ = says
    definition = op(type, since, **flags)(kernel)

    @definition.facts
    def facts(a: Fact, b: Fact, *, auto_broadcast: Broadcasting = "numpy") -> Fact:
        return Fact(same_element(a, b), broadcast([a.shape, b.shape], auto_broadcast, 0))


_define("Add", 1, np.add, "a + b; integers wrap.", symbolic=True, inplace=True)
_define("Subtract", 1, np.subtract, "a - b; integers wrap.", symbolic=True, inplace=True)
_define("Multiply", 1, np.multiply, "a * b; integers wrap.", symbolic=True, inplace=True)
