"""Random models of windows and images: convolutions, pooling, colours, grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.schema.convolution import ConvolutionAttributes
from irexec.testing import Case, Typed
from irexec.testing.case_generator import FLOATS, CaseGenerator, Shape, Table, model

RANDOM_CASES = Table()
_AUTO = ("explicit", "explicit", "explicit", "same_upper", "same_lower", "valid")


def _window(gen: CaseGenerator, rank: int, **maximum: int) -> tuple[Shape, dict[str, Any]]:
    """The kernel, and the attributes of a convolution."""
    attributes: dict[str, Any] = gen.window(rank, **maximum)
    kernel = attributes.pop("kernel")
    return kernel, attributes | {"auto_pad": gen.pick(None, *_AUTO)}


def _sizes(gen: CaseGenerator, kernel: Shape, attributes: dict[str, Any], maximum: int) -> Shape:
    """Spatial sizes into which the kernel fits."""
    effective = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, attributes["dilations"], strict=True)]
    return [gen.size(minimum, minimum + maximum) for minimum in effective]


@RANDOM_CASES.row(("Convolution", 1), ("GroupConvolution", 1))
def convolution(gen: CaseGenerator, type: str, since: int) -> Case:
    rank, kind = gen.pick(1, 2, 2, 3), gen.pick(*FLOATS)
    kernel, attributes = _window(gen, rank)
    groups, inputs, outputs = gen.sizes(3, 1, 3)
    group = [groups] if type == "GroupConvolution" else []
    data = gen.tensor(
        [gen.size(1, 2), inputs * (groups if group else 1), *_sizes(gen, kernel, attributes, 5)], kind, -1, 1
    )
    return model(type, since, data, gen.tensor([*group, outputs, inputs, *kernel], kind, -1, 1), **attributes)


@RANDOM_CASES.row(("ConvolutionBackpropData", 1), ("GroupConvolutionBackpropData", 1))
def backprop(gen: CaseGenerator, type: str, since: int) -> Case:
    rank, kind = gen.pick(1, 2, 2, 3), gen.pick(*FLOATS)
    kernel, attributes = _window(gen, rank)
    groups, inputs, outputs = gen.sizes(3, 1, 3)
    group = [groups] if type == "GroupConvolutionBackpropData" else []
    sizes = gen.sizes(rank, 2, 5)
    data = gen.tensor([gen.size(1, 2), inputs * (groups if group else 1), *sizes], kind, -1, 1)
    filter = gen.tensor([*group, inputs, outputs, *kernel], kind, -1, 1)
    padding = [gen.size(0, stride - 1) for stride in attributes["strides"]] if gen.chance(0.4) else None
    target = None
    if gen.chance(0.4):
        steps = zip(sizes, attributes["strides"], attributes["dilations"], kernel, strict=True)
        natural = [stride * (size - 1) + dilation * (taps - 1) + 1 for size, stride, dilation, taps in steps]
        target = gen.ints([max(1, size + gen.size(-2, 2)) for size in natural])
    return model(type, since, data, filter, target, **attributes, output_padding=padding)


@RANDOM_CASES.row(("BinaryConvolution", 1))
def binary_convolution(gen: CaseGenerator, type: str, since: int) -> Case:
    kernel, attributes = _window(gen, 2)
    # One filter of one channel of eight bits: the reference reads no other packing of filters right.
    data = gen.tensor([gen.size(1, 2), 1, *_sizes(gen, kernel, attributes, 4)], "f32", 0, 1)
    data = gen.ints(np.rint(data.array), ("f32",))
    filter = gen.tensor([1, 1, *kernel], "u1", 0, 1)
    return model(type, since, data, filter, mode="xnor-popcount", pad_value=gen.pick(0.0, 1.0, -1.0), **attributes)


@RANDOM_CASES.row(("DeformableConvolution", 1), ("DeformableConvolution", 8))
def deformable(gen: CaseGenerator, type: str, since: int) -> Case:
    kernel, attributes = _window(gen, 2)
    group, parts, kind = gen.pick(1, 2), gen.pick(1, 2, 4), gen.pick("f32", "f32", "f16")
    sizes = _sizes(gen, kernel, attributes, 4)
    windows = ConvolutionAttributes(**attributes | {"auto_pad": attributes["auto_pad"] or "explicit"})
    out = windows.output_sizes(sizes, kernel)
    batch, taps = gen.size(1, 2), int(np.prod(kernel))
    offsets = [batch, 2 * parts * taps, *map(int, out)]
    inputs = [gen.tensor([batch, 4, *sizes], kind), gen.pick(gen.tensor, gen.steps)(offsets, kind, -2, 2)]
    inputs.append(gen.tensor([gen.pick(2, 4), 4 // group, *kernel], kind))
    extra: dict[str, Any] = {"group": group, "deformable_group": parts}
    if since == 8:
        extra["bilinear_interpolation_pad"] = gen.pick(None, True, False)
        if gen.chance():
            inputs.append(gen.tensor([batch, parts * taps, *offsets[2:]], kind, 0, 1))
    return model(type, since, *inputs, **attributes, **extra)


_POOLED = {
    "MaxPool": ("f32", "f32", "f16", "bf16", "i32", "i64", "u8", "i8", "f64"),
    "AvgPool": ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"),
}


@RANDOM_CASES.row(("MaxPool", 1), ("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 1), ("AvgPool", 14), ("AvgPool", 16))
def pool(gen: CaseGenerator, type: str, since: int) -> Case:
    rank = gen.pick(1, 2, 2, 3)
    attributes: dict[str, Any] = gen.window(rank)
    spread = (type, since) in (("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 16))
    if not spread or gen.chance():
        attributes["dilations"] = [1] * rank
    # A pad is smaller than what the window reaches.
    effective = [
        dilation * (size - 1) for size, dilation in zip(attributes["kernel"], attributes["dilations"], strict=True)
    ]
    for name in ("pads_begin", "pads_end"):
        attributes[name] = [gen.size(0, maximum) if gen.chance(0.6) else 0 for maximum in effective]
    sizes = [gen.size(minimum + 1, minimum + 6) for minimum in effective]
    if not spread:
        del attributes["dilations"]
    attributes["rounding_type"] = gen.pick(None, "floor", "ceil", *(("ceil_torch",) if since > 8 else ()))
    attributes["auto_pad"] = gen.pick(None, *_AUTO)
    if type == "AvgPool":
        attributes["exclude_pad"] = gen.chance()
    elif since > 1:
        attributes |= {"index_element_type": gen.pick(None, "i32", "i64"), "axis": gen.pick(None, gen.axis(rank + 2))}
    return model(type, since, gen.tensor([*gen.sizes(2, 1, 2), *sizes], _POOLED[type]), **attributes)


@RANDOM_CASES.row(("AdaptiveAvgPool", 8), ("AdaptiveMaxPool", 8))
def adaptive(gen: CaseGenerator, type: str, since: int) -> Case:
    rank = gen.pick(1, 2, 2, 3)
    data = gen.tensor([*gen.sizes(2, 1, 3), *gen.sizes(rank, 1, 8)], ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"))
    # The plugin has no i64 indices.
    kind = {"index_element_type": gen.pick(None, "i64", *["i32"] * 6)} if type == "AdaptiveMaxPool" else {}
    return model(type, since, data, gen.ints(gen.sizes(rank, 1, 8)), **kind)


def _image(gen: CaseGenerator, kind: str, *shape: int) -> Typed:
    return gen.tensor(shape, kind, 0, 255)


@RANDOM_CASES.row(("NV12toRGB", 8), ("NV12toBGR", 8), ("I420toRGB", 8), ("I420toBGR", 8))
def from_video(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, batch, height, width = gen.pick("u8", "u8", "f32", "f16"), gen.size(1, 3), gen.size(1, 5), gen.size(1, 5)
    if gen.chance():
        return model(type, since, _image(gen, kind, batch, 3 * height, 2 * width, 1))
    parts = [2] if type.startswith("NV12") else [1, 1]
    chroma = [_image(gen, kind, batch, height, width, channels) for channels in parts]
    return model(type, since, _image(gen, kind, batch, 2 * height, 2 * width, 1), *chroma)


@RANDOM_CASES.row(("RGBtoNV12", 17), ("BGRtoNV12", 17))
def to_video(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = (gen.size(1, 3), 2 * gen.size(1, 5), 2 * gen.size(1, 5), 3)
    return model(
        type, since, _image(gen, gen.pick("u8", "f32", "f16"), *shape), single_plane=gen.pick(None, True, False)
    )


@RANDOM_CASES.row(("GridSample", 9))
def grid_sample(gen: CaseGenerator, type: str, since: int) -> Case:
    n, c, h, w, high, wide = gen.sizes(6, 1, 5)
    data = gen.tensor([n, c, h, w], ("f32", "f32", "f16", "bf16", "i32", "i64"), -50, 50)
    grid = gen.tensor([n, high, wide, 2], "f32", -2, 2)
    if gen.chance(0.2):
        grid = gen.steps([n, high, wide, 2], "f32", -2, 2)
    return model(
        type,
        since,
        data,
        grid,
        align_corners=gen.pick(None, True, False),
        mode=gen.pick(None, "bilinear", "nearest", "bicubic"),
        padding_mode=gen.pick(None, "zeros", "border", "reflection"),
    )
