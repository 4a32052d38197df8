"""Quantisation simulated in floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import broadcastable_to, shape_text
from irexec.ir.facts import Fact
from irexec.schema.attributes import AtLeast
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.element_checks import unify_elements
from irexec.schema.elementwise import align
from irexec.schema.registry import op


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


@fake_quantize_1.bind
def _fake_quantize_1_bind(
    data: Fact,
    input_low: Fact,
    input_high: Fact,
    output_low: Fact,
    output_high: Fact,
    *,
    levels: int,
    auto_broadcast: Broadcasting = "numpy",
) -> Callable[..., np.ndarray] | None:
    """Between known bounds that are the right way round: cut to them, then all in one piece of memory."""
    bounds = [fact.known for fact in (input_low, input_high, output_low, output_high)]
    if data.element is not F32 or auto_broadcast == "pdpd":
        return None
    known = [bound for bound in bounds if bound is not None and np.isfinite(bound).all()]
    if len(known) < 4 or not (known[0] < known[1]).all():
        return None
    low, high, out_low, out_high = known
    span, out_span, steps = high - low, out_high - out_low, np.float32(levels - 1)
    if not (np.isfinite(span).all() and np.isfinite(out_span).all()):
        return None

    def quantise(data: np.ndarray, *_: np.ndarray) -> np.ndarray:
        out = np.asarray(np.maximum(data, low))
        with np.errstate(all="ignore"):
            np.minimum(out, high, out=out)
            out -= low
            out /= span
            out *= steps
            np.rint(out, out=out)
            out /= steps
            out *= out_span
            out += out_low
        return out

    return quantise


@fake_quantize_1.shape_rule
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
    kind = unify_elements(data, input_low, input_high, output_low, output_high)
    for bound in (input_low, input_high, output_low, output_high):
        if auto_broadcast == "pdpd":
            broadcast([data.shape, bound.shape], "pdpd", 0)
        elif auto_broadcast == "numpy" and data.shape is not None and bound.shape is not None:
            text = f"bound {shape_text(bound.shape)} cannot be broadcast to data {shape_text(data.shape)}"
            check(broadcastable_to(bound.shape, data.shape), text)
    check(kind is None or kind.is_float, f"element type {kind} is not a float type")
    return Fact(kind, data.shape)
