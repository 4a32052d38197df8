"""Resize and Upsample.

What Interpolate says exactly becomes one; the rest (antialiasing, exclude_outside, crops, symmetric
half pixels) becomes, axis by axis, a product with the matrix of weights that ONNX defines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.elements import F32
from irexec.ir.graph import Value

_NATIVE = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")


@dataclass(frozen=True)
class Resizing:
    """The attributes of Resize."""

    mode: str = "nearest"
    transformation: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False

    @property
    def is_native(self) -> bool:
        """Whether Interpolate defines the same."""
        if self.transformation not in _NATIVE or self.antialias or self.exclude_outside:
            return False
        return self.mode in ("nearest", "linear", "cubic")


def _interpolate(b: Context, x: Value, how: Resizing, axes: list[int], sizes: Value | None, scales: Value | None) -> Value:
    mode = {"linear": "linear_onnx"}.get(how.mode, how.mode)
    wanted = sizes if scales is None else scales
    return b.emit(
        "Interpolate", x, wanted, axes, version=11, mode=mode, shape_calculation_mode="scales" if sizes is None else "sizes",
        coordinate_transformation_mode=how.transformation, nearest_mode=how.nearest, antialias=False, pads_begin=[0], pads_end=[0],
        cube_coeff=how.cubic,
    )  # fmt: skip


def _coordinates(how: Resizing, size: int, out: int, scale: float, roi: tuple[float, float] | None) -> np.ndarray:
    """Where in the data each place of the result lies. Source: ONNX Resize-19."""
    x = np.arange(out, dtype=np.float64)
    resized = scale * size
    kind = how.transformation
    if kind == "align_corners":
        return np.zeros(out) if resized == 1 else x * (size - 1) / (resized - 1)
    if kind == "asymmetric":
        return x / scale
    if kind == "tf_crop_and_resize" and roi is not None:
        start, end = roi
        if out == 1:
            return np.full(1, 0.5 * (start + end) * (size - 1))
        return start * (size - 1) + x * (end - start) * (size - 1) / (out - 1)
    if kind == "pytorch_half_pixel" and out <= 1:
        return np.full(out, -0.5)
    if kind == "half_pixel_symmetric":
        adjusted = out / resized
        centre = size / 2
        return centre * (1 - adjusted) + (x + 0.5) / scale - 0.5
    if kind == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    return (x + 0.5) / scale - 0.5


def weights(how: Resizing, size: int, out: int, scale: float, roi: tuple[float, float] | None) -> np.ndarray:
    """The matrix (out, size) that resizes one axis."""
    where = _coordinates(how, size, out, scale, roi)
    matrix = np.zeros((out, size))
    if how.mode == "nearest":
        rounding = {
            "round_prefer_floor": lambda v: np.ceil(v - 0.5), "round_prefer_ceil": lambda v: np.floor(v + 0.5), "floor": np.floor, "ceil": np.ceil,
        }  # fmt: skip
        matrix[np.arange(out), np.clip(rounding[how.nearest](where), 0, size - 1).astype(int)] = 1
        return matrix
    stretch = max(1.0, 1.0 / scale) if how.antialias else 1.0
    reach = math.ceil(stretch * (2 if how.mode == "cubic" else 1)) + 1
    base = np.floor(where).astype(int)
    taps = base[:, None] + np.arange(-reach, reach + 2)
    distance = np.abs(where[:, None] - taps) / stretch
    curve = _cubic(distance, how.cubic) if how.mode == "cubic" else np.maximum(0.0, 1.0 - distance)
    inside = (taps >= 0) & (taps < size)
    if how.exclude_outside:
        curve = np.where(inside, curve, 0)
    if how.exclude_outside or how.antialias:
        curve = curve / curve.sum(1, keepdims=True)
    np.add.at(matrix, (np.arange(out)[:, None], np.clip(taps, 0, size - 1)), curve)
    return matrix


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _by_products(
    b: Context, x: Value, how: Resizing, axes: list[int], sizes: list[int], scales: list[float], roi: list[tuple[float, float]] | None
) -> Value:
    kind = b.element(x)
    result = x if kind is F32 else b.emit("Convert", x, destination_type=F32)
    shape = b.static(x, "the data")
    outside: Value | None = None
    for i, axis in enumerate(axes):
        bounds = None if roi is None else roi[i]
        matrix = weights(how, shape[axis], sizes[i], scales[i], bounds).astype(np.float32)
        result = _along(b, result, axis, matrix)
        if how.transformation == "tf_crop_and_resize":
            where = _coordinates(how, shape[axis], sizes[i], scales[i], bounds)
            beyond = (where < 0) | (where > shape[axis] - 1)
            mask = b.constant(beyond.reshape([-1 if j == axis else 1 for j in range(len(shape))]))
            outside = mask if outside is None else b.emit("LogicalOr", outside, mask)
    if outside is not None:
        result = b.emit("Select", outside, b.constant(np.float32(how.extrapolation)), result)
    return result if kind is F32 else b.emit("Convert", result, destination_type=kind)


def _along(b: Context, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """The product of the matrix with one axis."""
    rank = b.rank(x)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = list(np.argsort(order))
    turned = b.emit("Transpose", x, order) if axis != rank - 1 else x
    product = b.emit("MatMul", turned, b.constant(matrix), transpose_b=True)
    return b.emit("Transpose", product, [int(i) for i in back]) if axis != rank - 1 else product


def _resize(
    b: Context, x: Value, how: Resizing, axes: list[int], sizes: Value | None, scales: Value | None, roi: Value | None, policy: str
) -> Value:
    given = b.known(sizes if sizes is not None else scales)
    if how.is_native and policy == "stretch":
        if sizes is not None and b.element(sizes).name not in ("i32", "i64"):
            raise OpError("sizes are no integers")
        keep = _changing(b, x, axes, given, scales is not None)
        return _interpolate(b, x, how, *_subset(b, axes, keep, sizes, scales)) if keep else x
    if given is None:
        raise OpError("sizes or scales must be known when the model is converted")
    shape = b.static(x, "the data")
    numbers = [float(v) for v in given.ravel().tolist()]
    if scales is not None:
        outs = [math.floor(shape[axis] * scale) for axis, scale in zip(axes, numbers, strict=True)]
        factors = numbers
    else:
        outs, factors = _fitted([int(v) for v in numbers], [shape[axis] for axis in axes], policy)
    bounds = None
    if roi is not None and how.transformation == "tf_crop_and_resize":
        corners = [float(v) for v in np.asarray(b.known(roi)).ravel().tolist()]
        bounds = list(zip(corners[: len(corners) // 2], corners[len(corners) // 2 :], strict=True))
        if len(bounds) > len(axes):
            bounds = [bounds[axis] for axis in axes]
    return _by_products(b, x, how, axes, outs, factors, bounds)


def _fitted(wanted: list[int], shape: list[int], policy: str) -> tuple[list[int], list[float]]:
    ratios = [out / size for out, size in zip(wanted, shape, strict=True)]
    if policy == "stretch":
        return wanted, ratios
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [int(scale * size + 0.5) for size in shape], [scale] * len(shape)


def _changing(b: Context, x: Value, axes: list[int], given: np.ndarray | None, by_scale: bool) -> list[int]:
    """The axes that are not left as they are, as far as that is known."""
    if given is None:
        return list(range(len(axes)))
    sizes = b.sizes(x)
    numbers = given.ravel().tolist()
    return [i for i, axis in enumerate(axes) if (numbers[i] != 1 if by_scale else numbers[i] != sizes[axis])]


def _subset(
    b: Context, axes: list[int], keep: list[int], sizes: Value | None, scales: Value | None
) -> tuple[list[int], Value | None, Value | None]:
    if len(keep) == len(axes):
        return axes, sizes, scales
    places = b.constant(keep)
    picked = [None if v is None else b.emit("Gather", v, places, 0) for v in (sizes, scales)]
    return [axes[i] for i in keep], picked[0], picked[1]


@translates("Resize", since=10)
def resize_10(b: Context, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """Coordinates asymmetric, nearest by floor."""
    how = Resizing(mode, "asymmetric", "floor")
    return _resize(b, x, how, list(range(b.rank(x))), None, scales, None, "stretch")


@translates("Resize", since=11)
def resize_11(
    b: Context, x: Value, roi: Value | None = None, scales: Value | None = None, sizes: Value | None = None, *, mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel", nearest_mode: str = "round_prefer_floor", cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0, extrapolation_value: float = 0.0, antialias: int = 0, axes: list[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Value:  # fmt: skip
    """An empty tensor stands for an input that is not given."""
    if scales is not None and b.sizes(scales) == (0,):
        scales = None
    if sizes is not None and b.sizes(sizes) == (0,):
        sizes = None
    if (scales is None) == (sizes is None):
        raise OpError("either scales or sizes must be given")
    how = Resizing(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), extrapolation_value, bool(antialias)
    )
    rank = b.rank(x)
    places = [axis % rank for axis in axes] if axes else list(range(rank))
    return _resize(b, x, how, places, sizes, scales, roi, keep_aspect_ratio_policy)


@translates("Upsample", since=7)
def upsample_7(b: Context, x: Value, *, scales: list[float], mode: str = "nearest") -> Value:
    return resize_10(b, x, b.constant(np.asarray(scales, np.float32)), mode=mode)


@translates("Upsample", since=9)
def upsample_9(b: Context, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    return resize_10(b, x, scales, mode=mode)
