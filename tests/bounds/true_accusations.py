"""Accusations of OpenVINO's CPU plugin by random graphs that are true: each was looked at, and has a row here.

All were seen in 2026.4, in the file itself or in the accused layer alone, beside NumPy in f64. A difference of the
portability table that is named beside the accusation is known there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from irexec.tools.judge import JudgedLayer, Judgement


def _is_shape(one: JudgedLayer) -> bool:
    return one.reason.startswith("shape [")


KNOWN: Mapping[str, tuple[str, Callable[[JudgedLayer], bool]]] = {
    "SoftPlus": ("from -4 on downwards inexact, below -10 negative (openvino#23673)", lambda one: True),
    "SparseFillEmptyRows": ("results of an empty tensor are what the memory holds", lambda one: True),
    "Transpose": ("of a tensor without elements: sizes of another axis", _is_shape),
    "GroupConvolution": ("dilated, in bf16: infinities", lambda one: one.value is not None and not math.isfinite(one.value)),
    "ReadValue": (
        "a variable of open shape does not hold what was assigned (IR992)",
        lambda one: _is_shape(one) or one.reason == "not what the step before wrote",
    ),
    "GroupNormalization": (
        "in bf16, by processors that have it: the groups after the first keep their data",
        lambda one: one.position[-1] > 0 or one.position[1:2] > (0,),
    ),
    "Concat": (
        "of a product that shares constants of nf4 with a product that decompresses them itself; of an input that a Loop "
        "has overwritten (IR995)",
        lambda one: not one.region or {"Convert", "FakeQuantize"} <= {name.partition("_")[0] for name in one.region},
    ),
    "SpaceToBatch": (
        "with a block size that is an input: elements of the padding are not 0",
        lambda one: one.low == one.high == 0,
    ),
    "Convolution": ("another shape than OpenVINO itself infers", _is_shape),
    "Add": (
        "of a Loop whose result is another in each run",
        lambda one: any(name.startswith("Loop") for name in one.region),
    ),
    "TensorIterator": (
        "another shape than OpenVINO itself infers; in bf16 the state that the first of several iterations wrote",
        lambda one: _is_shape(one) or one.outside > one.elements / 2,
    ),
    "ScaledDotProductAttention": ("of heads of one number, in one subgraph with its Transposes", lambda one: bool(one.region)),
    "Unique": ("equal slices along the last axis of several stay apart", lambda one: len(one.position) == 1 or _is_shape(one)),
    "Convert": ("a tensor of u4 holds numbers of 8 bits", lambda one: (one.high or 0) < 16 < (one.value or 0)),
    "Maximum": ("of u32 from 2^31 on: compared as i32", lambda one: (one.high or 0) >= 2**31),
    "Minimum": ("of u32 from 2^31 on: compared as i32", lambda one: (one.value or 0) >= 2**31),
}  # fmt: skip
"""By type of the layer: what the plugin does, and whether an accusation is of this kind."""


def is_known(found: Judgement) -> bool:
    """Whether all layers that a judgement accuses have a row, or a code of the portability table.

    A layer that is judged together with a GroupNormalization of bf16 in front of it shows the fault of that.
    """
    names = ("GroupNormalization",) if found.arithmetic.startswith("bf16") else ()
    return all(
        one.codes
        or (one.layer.type in KNOWN and KNOWN[one.layer.type][1](one))
        or any(name.startswith(names) for name in one.region)
        for one in found.at
    )
