"""Pooling and resizing in older operations."""

from __future__ import annotations

from typing import Any

from irexec.authoring.downgrade.layer import Inexact, Layer, rewrites
from irexec.authoring.ends import constant
from irexec.ir.dims import is_static


def _rounded_down(layer: Layer) -> dict[str, Any]:
    """Attributes in place of the rounding_type ceil_torch: rounded down, with padding at the end up to the last window.

    Other rounding types stay, with no attributes in their place.
    """
    if layer["rounding_type"] != "ceil_torch":
        return {}
    sizes, counts = layer.sizes()[2:], (layer.outputs[0].shape or ())[2:]
    if layer["auto_pad"] not in ("explicit", "valid") or not is_static(sizes) or not is_static(counts):
        raise Inexact("no older version has the rounding_type ceil_torch, and the sizes are not known")
    dilations = layer.attributes.get("dilations") or [1] * len(sizes)
    axes = zip(counts, sizes, layer["kernel"], layer["strides"], dilations, layer["pads_begin"], strict=True)
    ends = [
        max(0, (count - 1) * stride + (kernel - 1) * dilation + 1 - size - begin)
        for count, size, kernel, stride, dilation, begin in axes
    ]
    return {"rounding_type": "floor", "pads_end": ends}


@rewrites("MaxPool", 14)
def _max_pool_14(layer: Layer) -> Any:
    return layer.same(8, **_rounded_down(layer))


@rewrites("MaxPool", 8)
def _max_pool_8(layer: Layer) -> Any:
    layer.refuse_unless(1 not in layer.read, "MaxPool-1 gives no indices")
    layer.refuse_unless(all(size == 1 for size in layer["dilations"] or ()), "MaxPool-1 has no dilations")
    return layer.same(1, leave=["dilations", "index_element_type", "axis"])


@rewrites("AvgPool", 16)
def _avg_pool_16(layer: Layer) -> Any:
    layer.refuse_unless(all(size == 1 for size in layer["dilations"] or ()), "AvgPool-14 has no dilations")
    return layer.same(14, leave=["dilations"])


@rewrites("AvgPool", 14)
def _avg_pool_14(layer: Layer) -> Any:
    """Without any padding, points beyond the data do not count."""
    changed = _rounded_down(layer)
    if changed and not any((*layer["pads_begin"], *layer["pads_end"])):
        changed["exclude_pad"] = True
    return layer.same(1, **changed)


@rewrites("Interpolate", 11)
def _interpolate_11(layer: Layer) -> Any:
    layer.refuse_unless("pillow" not in layer["mode"], f"no older version has the mode {layer['mode']}")
    data, given, *axes = layer.inputs
    if not axes:
        axes = [constant(range(layer.rank()), "i64")]
    if layer["shape_calculation_mode"] == "sizes":
        count = layer.sizes(1)[0]
        layer.refuse_unless(isinstance(count, int), "the number of axes is not known")
        return layer.same(4, data, given, constant([1.0] * int(count), "f32"), *axes)
    sizes = _scaled_sizes(layer)
    return layer.same(4, data, sizes, given, *axes)


def _scaled_sizes(layer: Layer) -> Any:
    """Sizes that Interpolate-4 ignores; it has the input all the same."""
    count = layer.sizes(1)[0]
    layer.refuse_unless(isinstance(count, int), "the number of axes is not known")
    return constant([1] * int(count), "i64")


@rewrites("ROIAlign", 9)
def _roi_align_9(layer: Layer) -> Any:
    layer.refuse_unless(
        layer["aligned_mode"] == "asymmetric", f"ROIAlign-3 has no aligned_mode {layer['aligned_mode']}"
    )
    return layer.same(3, leave=["aligned_mode"])


@rewrites("DeformableConvolution", 8)
def _deformable_convolution_8(layer: Layer) -> Any:
    layer.refuse_unless(len(layer.inputs) == 3, "DeformableConvolution-1 has no mask")
    padded = layer["bilinear_interpolation_pad"]
    layer.refuse_unless(not padded, "DeformableConvolution-1 has no bilinear_interpolation_pad")
    return layer.same(1, leave=["bilinear_interpolation_pad"])
