"""Layers of windows and images: Convolution, Deconvolution, BinaryConvolution, Pooling, Resample, Interp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from converters.legacy_ir.layer import Layer, Windows, windows
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.registry import NoEquivalentError, WrongAttributeError, translates
from irexec.dtypes.elements import F32, I64, U8
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.schema.attributes import AtLeast, Positive

Group = Annotated[int, AtLeast(1)]


@translates("Convolution")
def convolution(
    layer: Layer,
    data: Value,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    output: int,
    group: Group = 1,
) -> Value:
    """Weights [O, I/group, (Z,) Y, X], groups outermost."""
    data = layer.f32(data)
    shape = _images(layer, data, output, group)
    given = windows(layer, len(shape) - 2)
    grouped = (group, output // group) if group > 1 else (output,)
    matrix = filters(layer, weights, (*grouped, shape[1] // group, *given.kernel))
    type = "GroupConvolution" if group > 1 else "Convolution"
    product = layer.emit(type, data, matrix, version=1, auto_pad=given.auto_pad, **given.explicit)
    return with_biases(layer, product, biases, output)


@translates("Deconvolution")
def deconvolution(
    layer: Layer,
    data: Value,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    output: int,
    group: Group = 1,
) -> Value:
    """Weights [I, O/group, (Z,) Y, X], groups outermost; the sizes of the output are those that are declared."""
    data = layer.f32(data)
    shape = _images(layer, data, output, group)
    given = windows(layer, len(shape) - 2)
    grouped = (group, shape[1] // group) if group > 1 else (shape[1],)
    matrix = filters(layer, weights, (*grouped, output // group, *given.kernel))
    declared = layer.size()
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    pads = _transposed_pads(given, shape[2:], declared[2:])
    type = "GroupConvolutionBackpropData" if group > 1 else "ConvolutionBackpropData"
    product = layer.emit(type, data, matrix, version=1, **given.explicit | pads)
    return with_biases(layer, product, biases, output)


def _images(layer: Layer, data: Value, output: int, group: int) -> tuple[int, ...]:
    """The shape of the data; OpError if ``group`` groups do not divide its channels and those of the output."""
    shape = layer.shape(data)
    check(len(shape) in (3, 4, 5), f"the input has rank {len(shape)}, expected 3 to 5")
    check(
        shape[1] % group == 0 and output % group == 0, f"{group} groups do not divide {shape[1]} and {output} channels"
    )
    return shape


def _transposed_pads(given: Windows, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Pads with which the operation gives the declared sizes; ``pads_begin`` is as given unless auto_pad says it."""
    total = given.total_pads(outputs, inputs)
    begin = given.pads_begin
    if given.auto_pad == "same_upper":
        begin = tuple(max(0, pads // 2) for pads in total)
    elif given.auto_pad == "same_lower":
        begin = tuple(max(0, -(-pads // 2)) for pads in total)
    rest = [pads - first for pads, first in zip(total, begin, strict=True)]
    return {
        "pads_begin": begin,
        "pads_end": tuple(max(0, pads) for pads in rest),
        "output_padding": tuple(max(0, -pads) for pads in rest),
    }


def filters(layer: Layer, weights: Value | None, shape: tuple[int, ...]) -> Value:
    """The weights in this shape: an input, or the blob."""
    if weights is None:
        return layer.blob("weights", shape)
    return layer.reshaped(layer.f32(weights), shape)


def with_biases(layer: Layer, product: Value, biases: Value | None, channels: int) -> Value:
    """The product plus one bias for each channel, axis 1: an input or a blob, if there is one."""
    if biases is None and not layer.has_blob("biases"):
        return product
    shape = (1, channels, *[1] * (layer.rank(product) - 2))
    if biases is None:
        addend = layer.blob("biases", shape)
    else:
        addend = layer.reshaped(layer.f32(biases), shape)
    total: Value = layer.emit("Add", product, addend, version=1)
    return total


Ints = tuple[int, ...]


@translates("Pooling")
def pooling(
    layer: Layer, data: Value, *, pool_method: Literal["max", "avg"] = "max", exclude_pad: bool = False,
    rounding_type: str = "floor",
) -> Value:  # fmt: skip
    """Maximum or mean of each window.

    A mean counts the pixels of the image or, without ``exclude_pad``, those of the padded image: a window that hangs
    over, because the number of windows is rounded up, counts those to the end of the padding (2020.4).
    """
    data = layer.f32(data)
    shape, declared = layer.shape(data), layer.size()
    check(len(shape) in (3, 4, 5), f"the input has rank {len(shape)}, expected 3 to 5")
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    given, zeros = windows(layer, len(shape) - 2), (0,) * (len(shape) - 2)
    if pool_method == "avg" and not exclude_pad and _hangs_over(given, shape[2:], declared[2:]):
        data, given, exclude_pad = _padded(layer, data, given), replace(given, pads_begin=zeros, pads_end=zeros), True
        shape = layer.shape(data)
    arguments = _arguments(given, shape[2:], declared[2:])
    if pool_method == "max":
        return layer.emit("MaxPool", data, version=1, **arguments)
    if len(shape) == 5 and not exclude_pad and any((*given.pads_begin, *given.pads_end)):
        layer.note(
            legacy_codes.AGAINST_DESCRIPTION,
            "the engines leave out the padding of a mean of 3 axes; here it is included",
        )
    return layer.emit("AvgPool", data, version=1, exclude_pad=exclude_pad, **arguments)


def _hangs_over(given: Windows, inputs: Ints, outputs: Ints) -> bool:
    """Whether a window ends behind the padding."""
    ends = zip(given.total_pads(inputs, outputs), given.pads_begin, given.pads_end, strict=True)
    return given.auto_pad == "explicit" and any(total > begin + end for total, begin, end in ends)


def _padded(layer: Layer, data: Value, given: Windows) -> Value:
    """The image with its padding."""
    if not any((*given.pads_begin, *given.pads_end)):
        return data
    pads = [layer.constant([0, 0, *side], I64) for side in (given.pads_begin, given.pads_end)]
    return layer.emit("Pad", data, *pads, layer.constant(0.0, F32), version=1, pad_mode="constant")


def _arguments(given: Windows, inputs: Ints, outputs: Ints) -> dict[str, object]:
    """The arguments with which there are as many windows as the file declares."""
    arguments: dict[str, object] = {
        "kernel": given.kernel, "strides": given.strides, "pads_begin": given.pads_begin, "pads_end": given.pads_end,
    }  # fmt: skip
    total = given.total_pads(inputs, outputs)
    if given.auto_pad in ("same_upper", "same_lower"):
        if all(there == -(-here // stride) for here, there, stride in zip(inputs, outputs, given.strides, strict=True)):
            return arguments | {"auto_pad": given.auto_pad}
        begin = tuple(max(0, pads // 2 if given.auto_pad == "same_upper" else -(-pads // 2)) for pads in total)
        return arguments | _pads(replace(given, pads_begin=begin), total)
    for rounding in ("floor", "ceil"):
        if outputs == _counts(given, inputs, ceil=rounding == "ceil"):
            return arguments | {"rounding_type": rounding}
    # Some axes are rounded up and others down, as where a last window would start behind the image: pads at the end are
    # moved instead. A mean that counts them has none here.
    return arguments | _pads(given, total)


def _counts(given: Windows, inputs: Ints, *, ceil: bool) -> Ints:
    rows = zip(inputs, given.pads_begin, given.pads_end, given.kernel, given.strides, strict=True)
    room = [(here + begin + end - kernel, stride) for here, begin, end, kernel, stride in rows]
    return tuple((-(-free // stride) if ceil else free // stride) + 1 for free, stride in room)


def _pads(given: Windows, total: Ints) -> dict[str, object]:
    """Pads with which rounding down gives the declared sizes; pixels at the end may belong to no window."""
    rest = [pads - begin for pads, begin in zip(total, given.pads_begin, strict=True)]
    for left, stride in zip(rest, given.strides, strict=True):
        check(-left < stride, f"the declared sizes leave out the last {-left} pixels of the input")
    return {"pads_begin": given.pads_begin, "pads_end": tuple(max(0, left) for left in rest)}


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


@translates("Resample")
def resample(layer: Layer, data: Value, sizes: Value | None = None, *, type: str, antialias: bool = False) -> Value:
    """Nearest pixels, or means weighted by a triangle around the centre, which antialias makes wider."""
    kind = type.rpartition(".")[2].upper()
    if kind not in ("NEAREST", "LINEAR"):
        raise WrongAttributeError(f"type {type!r} is neither NEAREST nor LINEAR")
    inputs, outputs = _sizes(layer, data)
    if kind == "LINEAR":
        return interpolated(layer, data, outputs, mode="linear", coordinates="half_pixel", antialias=antialias)
    if any(there % here for here, there in zip(inputs, outputs, strict=True)):
        layer.note(
            legacy_codes.ENGINES_DIFFER,
            "release 2020.1 takes pixel (o + 0.5) * in / out, release 2020.4 pixel o * in / out, rounded down; here as "
            "the latter",
        )
    return interpolated(layer, data, outputs, mode="nearest", coordinates="asymmetric")


@translates("Interp")
def interp(
    layer: Layer,
    data: Value,
    sizes: Value | None = None,
    *,
    align_corners: bool = True,
    pad_beg: int = 0,
    pad_end: int = 0,
) -> Value:
    """Linear between pixels: the corners meet, or else the first pixels; negative pads leave out borders before."""
    if pad_beg > 0 or pad_end > 0:
        raise NoEquivalentError("Interp with pads above 0 reads beyond the image")
    inputs, outputs = _sizes(layer, data)
    if pad_beg or pad_end:
        axes = range(2, 2 + len(inputs))
        begin = [-pad_beg if axis in axes else 0 for axis in range(layer.rank(data))]
        end = [size + pad_end if axis in axes else size for axis, size in enumerate(layer.shape(data))]
        data = strided_slice(layer, data, begin, end)
    return interpolated(
        layer, data, outputs, mode="linear", coordinates="align_corners" if align_corners else "asymmetric"
    )


def _sizes(layer: Layer, data: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The spatial sizes of the input and of the declared output."""
    shape, declared = layer.shape(data), layer.size()
    check(len(shape) > 2, f"the input has rank {len(shape)}, expected 3 or more")
    check(min((*shape, *declared)) > 0, f"{shape} or {declared} has an axis of size 0")
    check(shape[:2] == declared[:2] and len(shape) == len(declared), f"an output {declared} is declared for {shape}")
    return shape[2:], declared[2:]


def interpolated(
    layer: Layer, data: Value, outputs: Sequence[int], *, mode: str, coordinates: str, antialias: bool = False
) -> Value:
    """The data with other spatial sizes."""
    data = layer.f32(data)
    inputs = layer.shape(data)[2:]
    scales = np.array(outputs, np.float32) / np.array(inputs, np.float32)
    axes = list(range(2, 2 + len(outputs)))
    return layer.emit(
        "Interpolate", data, layer.constant(list(outputs), I64), layer.constant(scales, F32), layer.constant(axes, I64),
        version=4, mode=mode, shape_calculation_mode="sizes", coordinate_transformation_mode=coordinates,
        nearest_mode="floor", antialias=antialias, pads_begin=(0,), pads_end=(0,), cube_coeff=-0.75,
    )  # fmt: skip
