"""Operations with windows: convolutions forward, backward and deformable, pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.schema.convolution import ConvolutionAttributes
from tests.oracle.draw import FLOATS, Draw, Shape, Table, model
from tests.support.cases import Case

DRAWS = Table()
_AUTO = ("explicit", "explicit", "explicit", "same_upper", "same_lower", "valid")


def _window(d: Draw, rank: int, **most: int) -> tuple[Shape, dict[str, Any]]:
    """The kernel, and the attributes of a convolution."""
    attributes: dict[str, Any] = d.window(rank, **most)
    kernel = attributes.pop("kernel")
    return kernel, attributes | {"auto_pad": d.pick(None, *_AUTO)}


def _sizes(d: Draw, kernel: Shape, attributes: dict[str, Any], most: int) -> Shape:
    """Spatial sizes into which the kernel fits."""
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, attributes["dilations"], strict=True)]
    return [d.size(least, least + most) for least in reach]


@DRAWS.row(("Convolution", 1), ("GroupConvolution", 1))
def convolution(d: Draw, type: str, since: int) -> Case:
    rank, kind = d.pick(1, 2, 2, 3), d.pick(*FLOATS)
    kernel, attributes = _window(d, rank)
    groups, inputs, outputs = d.sizes(3, 1, 3)
    group = [groups] if type == "GroupConvolution" else []
    data = d.tensor([d.size(1, 2), inputs * (groups if group else 1), *_sizes(d, kernel, attributes, 5)], kind, -1, 1)
    return model(type, since, data, d.tensor([*group, outputs, inputs, *kernel], kind, -1, 1), **attributes)


@DRAWS.row(("ConvolutionBackpropData", 1), ("GroupConvolutionBackpropData", 1))
def backprop(d: Draw, type: str, since: int) -> Case:
    rank, kind = d.pick(1, 2, 2, 3), d.pick(*FLOATS)
    kernel, attributes = _window(d, rank)
    groups, inputs, outputs = d.sizes(3, 1, 3)
    group = [groups] if type == "GroupConvolutionBackpropData" else []
    sizes = d.sizes(rank, 2, 5)
    data = d.tensor([d.size(1, 2), inputs * (groups if group else 1), *sizes], kind, -1, 1)
    filter = d.tensor([*group, inputs, outputs, *kernel], kind, -1, 1)
    padding = [d.size(0, stride - 1) for stride in attributes["strides"]] if d.chance(0.4) else None
    target = None
    if d.chance(0.4):
        steps = zip(sizes, attributes["strides"], attributes["dilations"], kernel, strict=True)
        natural = [stride * (size - 1) + dilation * (taps - 1) + 1 for size, stride, dilation, taps in steps]
        target = d.ints([max(1, size + d.size(-2, 2)) for size in natural])
    return model(type, since, data, filter, target, **attributes, output_padding=padding)


@DRAWS.row(("BinaryConvolution", 1))
def binary_convolution(d: Draw, type: str, since: int) -> Case:
    kernel, attributes = _window(d, 2)
    # One filter of one channel of eight bits: the reference reads no other packing of filters right.
    data = d.tensor([d.size(1, 2), 1, *_sizes(d, kernel, attributes, 4)], "f32", 0, 1)
    data = d.ints(np.rint(data.array), ("f32",))
    filter = d.tensor([1, 1, *kernel], "u1", 0, 1)
    return model(type, since, data, filter, mode="xnor-popcount", pad_value=d.pick(0.0, 1.0, -1.0), **attributes)


@DRAWS.row(("DeformableConvolution", 1), ("DeformableConvolution", 8))
def deformable(d: Draw, type: str, since: int) -> Case:
    kernel, attributes = _window(d, 2)
    group, parts, kind = d.pick(1, 2), d.pick(1, 2, 4), d.pick("f32", "f32", "f16")
    sizes = _sizes(d, kernel, attributes, 4)
    windows = ConvolutionAttributes(**attributes | {"auto_pad": attributes["auto_pad"] or "explicit"})
    out = windows.output_sizes(sizes, kernel)
    batch, taps = d.size(1, 2), int(np.prod(kernel))
    offsets = [batch, 2 * parts * taps, *map(int, out)]
    inputs = [d.tensor([batch, 4, *sizes], kind), d.pick(d.tensor, d.steps)(offsets, kind, -2, 2)]
    inputs.append(d.tensor([d.pick(2, 4), 4 // group, *kernel], kind))
    extra: dict[str, Any] = {"group": group, "deformable_group": parts}
    if since == 8:
        extra["bilinear_interpolation_pad"] = d.pick(None, True, False)
        if d.chance():
            inputs.append(d.tensor([batch, parts * taps, *offsets[2:]], kind, 0, 1))
    return model(type, since, *inputs, **attributes, **extra)


_POOLED = {
    "MaxPool": ("f32", "f32", "f16", "bf16", "i32", "i64", "u8", "i8", "f64"),
    "AvgPool": ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"),
}


@DRAWS.row(("MaxPool", 1), ("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 1), ("AvgPool", 14), ("AvgPool", 16))
def pool(d: Draw, type: str, since: int) -> Case:
    rank = d.pick(1, 2, 2, 3)
    attributes: dict[str, Any] = d.window(rank)
    spread = (type, since) in (("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 16))
    if not spread or d.chance():
        attributes["dilations"] = [1] * rank
    # A pad is smaller than what the window reaches.
    reach = [dilation * (size - 1) for size, dilation in zip(attributes["kernel"], attributes["dilations"], strict=True)]
    for name in ("pads_begin", "pads_end"):
        attributes[name] = [d.size(0, most) if d.chance(0.6) else 0 for most in reach]
    sizes = [d.size(least + 1, least + 6) for least in reach]
    if not spread:
        del attributes["dilations"]
    attributes["rounding_type"] = d.pick(None, "floor", "ceil", *(("ceil_torch",) if since > 8 else ()))
    attributes["auto_pad"] = d.pick(None, *_AUTO)
    if type == "AvgPool":
        attributes["exclude_pad"] = d.chance()
    elif since > 1:
        attributes |= {"index_element_type": d.pick(None, "i32", "i64"), "axis": d.pick(None, d.axis(rank + 2))}
    return model(type, since, d.tensor([*d.sizes(2, 1, 2), *sizes], _POOLED[type]), **attributes)


@DRAWS.row(("AdaptiveAvgPool", 8), ("AdaptiveMaxPool", 8))
def adaptive(d: Draw, type: str, since: int) -> Case:
    rank = d.pick(1, 2, 2, 3)
    data = d.tensor([*d.sizes(2, 1, 3), *d.sizes(rank, 1, 8)], ("f32", "f32", "f16", "bf16", "i32", "u8", "i8"))
    # The plugin has no i64 indices.
    kind = {"index_element_type": d.pick(None, "i64", *["i32"] * 6)} if type == "AdaptiveMaxPool" else {}
    return model(type, since, data, d.ints(d.sizes(rank, 1, 8)), **kind)
