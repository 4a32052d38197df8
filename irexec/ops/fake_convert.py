"""FakeConvert: an 8-bit floating-point type simulated in wider ones."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.bfloat16 import round_bf16
from irexec.dtypes.elements import BF16, F16, F32
from irexec.errors import check
from irexec.ir.dims import broadcastable_to, may_equal, meet, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.reference.fake_convert import round_e4m3, round_e5m2
from irexec.schema.element_checks import unify_elements
from irexec.schema.injected import ElementTypes
from irexec.schema.inputs import element_set
from irexec.schema.registry import op

FloatTensor = Annotated[np.ndarray, element_set("f16, bf16 or f32", F16, BF16, F32)]


@op("FakeConvert", since=13)
def fake_convert_13(
    data: FloatTensor,
    scale: FloatTensor,
    shift: FloatTensor | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
    elements: ElementTypes = ElementTypes(),
) -> np.ndarray:
    """data * scale - shift rounded to f16 and then to an 8-bit float type, and converted back: (x + shift) / scale.

    The 8-bit types are rounded and saturated differently than by Convert, see irexec.reference.fake_convert. Each step
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
    kind = unify_elements(*(fact for fact in (data, scale, shift) if fact is not None))
    shape = data.shape
    if scale.shape is not None and shape is not None:
        fits = broadcastable_to(scale.shape, shape)
        check(fits, f"scale {shape_text(scale.shape)} cannot be broadcast to data {shape_text(shape)}")
        lead = len(shape) - len(scale.shape)
        sizes = (
            size if may_equal(by, 1) else meet(size, by) for size, by in zip(shape[lead:], scale.shape, strict=True)
        )
        shape = (*shape[:lead], *sizes)
    if shift is not None and shift.shape is not None and scale.shape is not None:
        meet_shapes(scale.shape, shift.shape)
    return Fact(kind, shape)
