"""FakeQuantize: quantization simulated in floating point."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import broadcastable_to, shape_text
from irexec.ir.facts import Fact
from irexec.reference.quantization import level_values, nearest_levels
from irexec.schema.attributes import AtLeast
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.element_checks import unify_elements
from irexec.schema.elementwise import align
from irexec.schema.inputs import FloatTensor
from irexec.schema.registry import op


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
) -> np.ndarray:
    """The nearest of ``levels`` levels from input_low to input_high, mapped to output_low..output_high.

    At or below the smaller input bound it is output_low, above the larger one output_high; halves are rounded to even.
    Levels are computed in f64 and rounded once; the one that is 0 but for the rounding of the bounds is 0 (see
    ``zero_level``). Source: FakeQuantize-1 and openvino ``reference/fake_quantize.hpp``.
    """
    low, high, out_low, out_high = (
        align(data, bound, auto_broadcast, 0)[1] for bound in (input_low, input_high, output_low, output_high)
    )
    with np.errstate(all="ignore"):
        inside = level_values(nearest_levels(data, low, high, levels), out_low, out_high, levels)
    np.copyto(inside, out_low, where=data <= np.minimum(low, high))
    np.copyto(inside, out_high, where=data > np.maximum(low, high))
    return inside


@fake_quantize_1.shape_rule
def _fake_quantize_1_facts(
    data: Fact, input_low: Fact, input_high: Fact, output_low: Fact, output_high: Fact, *, auto_broadcast: Broadcasting
) -> Fact:
    kind = unify_elements(data, input_low, input_high, output_low, output_high)
    for bound in (input_low, input_high, output_low, output_high):
        if auto_broadcast != "numpy":
            broadcast([data.shape, bound.shape], auto_broadcast, 0)
        elif data.shape is not None and bound.shape is not None:
            text = f"bound {shape_text(bound.shape)} cannot be broadcast to data {shape_text(data.shape)}"
            check(broadcastable_to(bound.shape, data.shape), text)
    return Fact(kind, data.shape)
