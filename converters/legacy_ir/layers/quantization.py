"""FakeQuantize, which was Quantize before version 6, and BinaryConvolution."""

from __future__ import annotations

import math

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import translates
from converters.legacy_ir.windows import windows
from irexec.dtypes.elements import F32, I64, U8
from irexec.errors import check
from irexec.ir.graph import Value
from irexec.schema.attributes import Positive


@translates("FakeQuantize", "Quantize")
def fake_quantize(
    layer: Layer,
    data: Value,
    input_low: Value,
    input_high: Value,
    output_low: Value,
    output_high: Value,
    *,
    levels: int,
) -> Value:
    """The data rounded to as many levels, and these mapped to the range of the output.

    A range of no extent, as binary networks have it, is a threshold: OpenVINO's CPU plugin gives NaN for such a
    FakeQuantize, or ends the process.
    """
    data = layer.f32(data)
    ranges = [layer.f32(value) for value in (input_low, input_high, output_low, output_high)]
    low, high = (layer.builder.constant_array(value) for value in ranges[:2])
    if low is not None and high is not None and np.array_equal(low, high):
        is_above = layer.emit("Greater", data, ranges[0], version=1)
        return layer.emit("Select", is_above, ranges[3], ranges[2], version=1)
    return layer.emit("FakeQuantize", data, *ranges, version=1, levels=levels, auto_broadcast="numpy")


@translates("BinaryConvolution")
def binary_convolution(
    layer: Layer, data: Value, *, output: Positive, pad_value: float = 0.0, mode: str = "xnor-popcount", group: int = 1
) -> Value:
    """Sum of products of 1 and -1: the signs of the data, and the bits of the weights, 1 for 1 and 0 for -1.

    The first bit of a byte is the least significant one. The border has the value ``pad_value`` itself, so that 0
    counts for nothing; BinaryConvolution of version 11 takes it for -1.
    """
    if mode != "xnor-popcount":
        raise WrongAttributeError(f"mode {mode!r} is not xnor-popcount")
    data = layer.f32(data)
    shape = layer.shape(data)
    check(group == 1, f"the layer has {group} groups, binary weights have none")
    given = windows(layer, len(shape) - 2)
    signs = layer.emit(
        "Select", layer.emit("Greater", data, layer.constant(0.0, F32), version=1), layer.constant(1.0, F32),
        layer.constant(-1.0, F32), version=1,
    )  # fmt: skip
    filters = (output, shape[1], *given.kernel)
    bits = np.unpackbits(layer.known(layer.raw_blob("weights", None, U8), "the weights"), bitorder="little")
    count = math.prod(filters)
    check(len(bits) >= count, f"the weights have {len(bits)} bits, expected {count}")
    weights = layer.constant((bits[:count].astype(np.float32) * 2 - 1).reshape(filters), F32)
    begin, end = given.pads_begin, given.pads_end
    if given.auto_pad.startswith("same"):
        total = given.total_pads(shape[2:], layer.size()[2:])
        begin = tuple(max(0, pads // 2 if given.auto_pad == "same_upper" else -(-pads // 2)) for pads in total)
        end = tuple(max(0, pads - first) for pads, first in zip(total, begin, strict=True))
    if pad_value and any((*begin, *end)):
        widths = [layer.constant([0, 0, *each], I64) for each in (begin, end)]
        signs = layer.emit("Pad", signs, *widths, layer.constant(pad_value, F32), version=1, pad_mode="constant")
        begin = end = (0,) * len(begin)
    return layer.emit(
        "Convolution", signs, weights, version=1, strides=given.strides, pads_begin=begin, pads_end=end,
        dilations=given.dilations, auto_pad="explicit",
    )  # fmt: skip
