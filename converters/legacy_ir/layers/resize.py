"""Resample and Interp: the sizes of the output are the declared ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.objections import NoEquivalentError, WrongAttributeError
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value


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
