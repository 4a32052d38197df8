"""Quantisation simulated in floats."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import broadcastable_to, shape_text
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import align
from irexec.ops.attributes import AtLeast
from irexec.ops.registry import op
from irexec.ops.rules import Broadcasting, broadcast, same_element


@op("FakeQuantize", since=1, widen=True, tolerance=4e-6)
def fake_quantize_1(
    data: np.ndarray,
    input_low: np.ndarray,
    input_high: np.ndarray,
    output_low: np.ndarray,
    output_high: np.ndarray,
    *,
    levels: Annotated[int, AtLeast(2)],
    auto_broadcast: Broadcasting = "numpy",
) -> np.ndarray:
    """The nearest of ``levels`` steps from input_low to input_high, mapped to output_low..output_high.

    At or below the lesser input bound it is output_low, above the greater output_high; halves are
    rounded to even. Source: FakeQuantize-1 and openvino ``reference/fake_quantize.hpp``.
    """
    low, high, out_low, out_high = (align(data, bound, auto_broadcast, 0)[1] for bound in (input_low, input_high, output_low, output_high))
    steps = data.dtype.type(levels - 1)
    with np.errstate(all="ignore"):
        level = np.rint((data - low) / (high - low) * steps)
        inside = level / steps * (out_high - out_low) + out_low
    below, above = data <= np.minimum(low, high), data > np.maximum(low, high)
    return np.where(below, out_low, np.where(above, out_high, inside)).astype(data.dtype)


@fake_quantize_1.facts
def _fake_quantize_1_facts(
    data: Fact,
    input_low: Fact,
    input_high: Fact,
    output_low: Fact,
    output_high: Fact,
    *,
    levels: int,
    auto_broadcast: Broadcasting = "numpy",
) -> Fact:
    kind = same_element(data, input_low, input_high, output_low, output_high)
    for bound in (input_low, input_high, output_low, output_high):
        if auto_broadcast == "pdpd":
            broadcast([data.shape, bound.shape], "pdpd", 0)
        elif auto_broadcast == "numpy" and data.shape is not None and bound.shape is not None:
            text = f"bound {shape_text(bound.shape)} cannot be broadcast to data {shape_text(data.shape)}"
            check(broadcastable_to(bound.shape, data.shape), text)
    check(kind is None or kind.is_float, f"element type {kind} is not a float type")
    return Fact(kind, data.shape)
