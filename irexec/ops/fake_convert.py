"""FakeConvert: an 8-bit float type simulated in wider ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.dtypes.bfloat16 import round_bf16
from irexec.dtypes.elements import BF16
from irexec.errors import check
from irexec.ir.dims import broadcastable_to, may_equal, meet, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.reference.fake_convert import in_e4m3, in_e5m2
from irexec.schema.element_checks import unify_elements
from irexec.schema.injected import ElementTypes
from irexec.schema.registry import op


@op("FakeConvert", since=13)
def fake_convert_13(
    data: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """data * scale - shift by way of an 8-bit float type and f16, then the way back: (x + shift) / scale.

    What the 8-bit types do at their ends is not what Convert does, see the kernel. Each step is rounded to the
    type of the data. Source: FakeConvert-13 and openvino ``reference/src/op/fake_convert.cpp``.
    """
    rounded = round_bf16 if elements and elements[0] is BF16 else np.asarray
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        there = rounded(data * scale)
        there = there if shift is None else rounded(there - shift)
        halves = there.astype(np.float16)
        back = (in_e5m2(halves) if destination_type == "f8e5m2" else in_e4m3(halves)).astype(data.dtype)
        back = back if shift is None else rounded(back + shift)
        return np.asarray(back / scale, data.dtype)


@fake_convert_13.shape_rule
def _fake_convert_13_facts(
    data: Fact,
    scale: Fact,
    shift: Fact | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
    elements: ElementTypes = ElementTypes(),
) -> Fact:
    kind = unify_elements(*(fact for fact in (data, scale, shift) if fact is not None))
    check(kind is None or kind.name in ("f16", "bf16", "f32"), f"element type {kind} is none of f16, bf16, f32")
    shape = data.shape
    if scale.shape is not None and shape is not None:
        fits = broadcastable_to(scale.shape, shape)
        check(fits, f"scale {shape_text(scale.shape)} cannot be broadcast to data {shape_text(shape)}")
        lead = len(shape) - len(scale.shape)
        ends = (size if may_equal(by, 1) else meet(size, by) for size, by in zip(shape[lead:], scale.shape, strict=True))
        shape = (*shape[:lead], *ends)
    if shift is not None and shift.shape is not None and scale.shape is not None:
        meet_shapes(scale.shape, shift.shape)
    return Fact(kind, shape)
