"""Pooling and resizing in older operations."""

from __future__ import annotations

from typing import Any

from irexec.authoring.downgrade.layer import Layer, rewrites
from irexec.authoring.ends import constant


@rewrites("MaxPool", 14)
def _max_pool_14(layer: Layer) -> Any:
    layer.refuse_unless(layer["rounding_type"] != "ceil_torch", "no older version has the rounding_type ceil_torch")
    return layer.same(8)


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
    layer.refuse_unless(layer["rounding_type"] != "ceil_torch", "AvgPool-1 has no rounding_type ceil_torch")
    return layer.same(1)


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
