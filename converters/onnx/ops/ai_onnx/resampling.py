"""Images resampled: Resize and Upsample, sampling on grids, pooling and suppression of regions.

A resizing that Interpolate computes exactly becomes an Interpolate. Other options (antialiasing, exclude_outside,
crops, symmetric half pixels, kept aspect ratio) become a product with a matrix of weights along each axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.algorithms.resampling import Resizing, Stretch, exact_nearest, resampled
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import MAX_UNROLLED
from converters.onnx.registry import translates
from irexec.dtypes.elements import BOOLEAN, F32, F64, I16, I32, I64, U8, U16, U32, U64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.reference.resize import coordinates, nearest, scaled_size
from irexec.schema.opdef import Rank

_NATIVE = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")
# Types that Interpolate does not take, and larger ones that it does.
_CARRIERS = {BOOLEAN: U8, I16: I32, U16: I32, U32: I64, U64: I64}
Policy = Literal["stretch", "not_larger", "not_smaller"]


class _Request:
    """The new sizes or scales of some axes."""

    def __init__(
        self, ctx: TranslationContext, x: Value, axes: Sequence[int], sizes: Value | None, scales: Value | None,
        policy: Policy = "stretch",
    ) -> None:  # fmt: skip
        given = sizes if scales is None else scales
        if given is None or (scales is not None and sizes is not None):
            raise OpError("either scales or sizes must be given")
        self.ctx, self.x, self.axes, self.policy = ctx, x, list(axes), policy if sizes is not None else "stretch"
        self.by_scale = scales is not None
        self.given = given
        known = ctx.known(given)
        self.known = None if known is None else known.ravel().tolist()
        if self.known is not None and len(self.known) != len(self.axes):
            what = "scales" if self.by_scale else "sizes"
            raise OpError(f"there are {len(self.known)} {what} for {counted(len(self.axes), 'axis')}")
        if self.by_scale and not all(0 < scale < math.inf for scale in self.known or ()):
            raise OpError(f"the scales are {self.known}, expected positive and finite ones")
        self.changing = [i for i in range(len(self.axes)) if not self._stays(i)]

    def _stays(self, i: int) -> bool:
        if self.known is None or self.policy != "stretch":
            return False
        return self.known[i] == (1 if self.by_scale else self.ctx.sizes(self.x)[self.axes[i]])

    def is_native(self, how: Resizing) -> bool:
        """Whether Interpolate computes the same result."""
        special = how.antialias or how.exclude_outside or self.policy != "stretch"
        if special or how.transformation not in _NATIVE or how.mode not in ("nearest", "linear", "cubic"):
            return False
        if how.mode == "linear" and self.known is not None and len(self.changing) > 3:
            return False
        return not self.by_scale or all(self._is_consistent(i, how) for i in self.changing)

    def _is_consistent(self, i: int, how: Resizing) -> bool:
        """Whether scale and resulting size agree: coordinates are then the same from either of them.

        Only align_corners computes coordinates from the size: other modes agree for unknown sizes too. Interpolate adds
        a little to the scale for the resulting size, so that a product just below an integer may become the integer.
        """
        size = self.ctx.sizes(self.x)[self.axes[i]]
        if self.known is None or not isinstance(size, int):
            return how.transformation != "align_corners"
        resized = size * self.known[i]
        if how.transformation == "align_corners":
            return abs(resized - round(resized)) < 1e-4
        out = int(np.float32(size) * np.float32(self.known[i]))
        return out != size and out == scaled_size(size, self.known[i])

    def interpolate(self, how: Resizing) -> Value:
        """An Interpolate along the axes whose size changes, and a Gather where its arithmetic picks other pixels."""
        ctx, given, x, changing = self.ctx, self.given, self.x, list[int]()
        for i in self.changing:
            indices = self._other_pixels(i, how)
            if indices is None:
                changing.append(i)
            else:
                x = ctx.emit("Gather", x, indices, ctx.constant(self.axes[i]))
        if not changing:
            return x
        if len(changing) < len(self.axes):
            values = np.asarray(ctx.known(given)).ravel()[changing]
            given = ctx.constant(values, given)
        mode = "linear_onnx" if how.mode == "linear" else how.mode
        element = ctx.element(self.x)
        resized = ctx.emit(
            "Interpolate", ctx.convert(x, _CARRIERS.get(element, element)), given,
            [self.axes[i] for i in changing], version=11, mode=mode,
            shape_calculation_mode="scales" if self.by_scale else "sizes", nearest_mode=how.nearest,
            coordinate_transformation_mode=how.transformation, cube_coeff=how.cubic,
        )  # fmt: skip
        return ctx.convert(resized, element)

    def _other_pixels(self, i: int, how: Resizing) -> Value | None:
        """The indices of the nearest pixels along an axis, where Interpolate would pick others; None if it does not.

        Interpolate divides by the scale rounded to f32, which decides ties. ONNX Runtime 1.32 and onnx.reference
        compute them exactly. A scale that is the quotient of the sizes, rounded to f32, stands for the quotient.
        """
        ctx, size = self.ctx, self.ctx.sizes(self.x)[self.axes[i]]
        if self.known is None or not isinstance(size, int) or size < 1:
            return None
        scale = self.known[i] if self.by_scale else float(np.float32(self.known[i]) / np.float32(size))
        out = int(np.float32(scale) * np.float32(size)) if self.by_scale else int(self.known[i])
        if not 0 < out <= MAX_UNROLLED or np.float32(out) / np.float32(size) != np.float32(scale):
            return None
        before, after = self._sizes(i)
        common = math.gcd(out, size)
        numerator, denominator = (Expression(ctx, ctx.constant(each // common, F64)) for each in (out, size))
        ratio = (numerator, denominator) if self.by_scale else (after, before)
        exact = exact_nearest(ctx, how, before, after, ratio)
        if exact is None:
            return None
        rounded = nearest(coordinates(how.transformation, size, out, scale), how.nearest, size, scale)
        known = ctx.known(exact.value)
        return None if known is None or np.array_equal(known, rounded.index[:, 0]) else exact.to(I64).value

    def _sizes(self, i: int) -> tuple[Expression, Expression]:
        """The sizes of an axis before and after, as scalars of f64. Runtimes multiply sizes by scales in f32."""
        ctx = self.ctx
        given = Expression(ctx, ctx.emit("Gather", self.given, ctx.constant(i), ctx.constant(0)))
        size = Expression(ctx, ctx.size(self.x, self.axes[i]))
        after = (given.to(F32) * size.to(F32)).floor() if self.by_scale else given
        return size.to(F64), after.to(F64)

    def stretches(self, roi: Value | None) -> list[Stretch]:
        """The axes whose size changes; all axes if there is a region."""
        ctx = self.ctx
        chosen = list(range(len(self.axes))) if roi is not None else self.changing
        both = [self._sizes(i) for i in range(len(self.axes))]
        sizes, outs = [size for size, _ in both], [out for _, out in both]
        if self.by_scale:
            scales = [
                Expression(ctx, ctx.emit("Gather", self.given, ctx.constant(i), ctx.constant(0))).to(F64)
                for i in range(len(self.axes))
            ]
        else:
            scales = [out / size for out, size in zip(outs, sizes, strict=True)]
        if self.policy != "stretch":
            common = scales[0]
            for scale in scales[1:]:
                common = common.minimum(scale) if self.policy == "not_larger" else common.maximum(scale)
            outs, scales = [(common * size + 0.5).floor() for size in sizes], [common] * len(sizes)
        return [
            Stretch(self.axes[i], sizes[i], outs[i], scales[i], None if roi is None else self._region(roi, i))
            for i in chosen
        ]

    def _region(self, roi: Value, i: int) -> tuple[Expression, Expression]:
        """Start and end along an axis; roi has entries for the given axes, or for all axes of the data."""
        ctx, shape = self.ctx, self.ctx.static(roi, "roi")
        length = shape[0] if len(shape) == 1 else 0
        if length not in (2 * len(self.axes), 2 * ctx.rank(self.x)):
            raise OpError(f"roi has the shape {list(shape)} for {counted(len(self.axes), 'axis')}")
        entry = i if length == 2 * len(self.axes) else self.axes[i]
        start, end = (
            Expression(ctx, ctx.emit("Gather", roi, ctx.constant(p), ctx.constant(0))).to(F64)
            for p in (entry, length // 2 + entry)
        )
        return start, end


def _resize(how: Resizing, request: _Request, roi: Value | None = None) -> Value:
    if request.is_native(how):
        return request.interpolate(how)
    return resampled(
        request.ctx, request.x, how, request.stretches(roi if how.transformation == "tf_crop_and_resize" else None)
    )


@translates("Upsample", since=9)
@translates("Resize", since=10)
def resize_10(ctx: TranslationContext, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """Asymmetric coordinates. Nearest is rounded up along axes that shrink: the example of ONNX 1.5, ONNX Runtime."""
    return _resize(Resizing(mode, "asymmetric", "simple"), _Request(ctx, x, range(ctx.rank(x)), None, scales))


@translates("Resize", since=11)
def resize_11(
    ctx: TranslationContext, x: Value, roi: Value | None = None, scales: Value | None = None,
    sizes: Value | None = None, *, mode: str = "nearest", coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
    extrapolation_value: float = 0.0, antialias: int = 0, axes: list[int] | None = None,
    keep_aspect_ratio_policy: Policy = "stretch",
) -> Value:  # fmt: skip
    """An empty tensor is an absent input."""
    scales, sizes = (None if v is None or ctx.sizes(v) == (0,) else v for v in (scales, sizes))
    how = Resizing(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), extrapolation_value,
        bool(antialias),
    )  # fmt: skip
    resized_axes = [ctx.axis(axis, x) for axis in axes] if axes else range(ctx.rank(x))
    wide = None if sizes is None else ctx.convert(sizes, I64)
    return _resize(how, _Request(ctx, x, resized_axes, wide, scales, keep_aspect_ratio_policy), roi)


@translates("Upsample")
def upsample_1(
    ctx: TranslationContext, x: Value, *, height_scale: float, width_scale: float, mode: str = "nearest"
) -> Value:
    """Images only; the mode linear had the name bilinear."""
    scales = ctx.constant(np.array([1, 1, height_scale, width_scale], np.float32))
    return resize_10(ctx, x, scales, mode="linear" if mode == "bilinear" else mode)


@translates("Upsample", since=7)
def upsample_7(ctx: TranslationContext, x: Value, *, scales: list[float], mode: str = "nearest") -> Value:
    return resize_10(ctx, x, ctx.constant(np.asarray(scales, np.float32)), mode=mode)


# Opset 20 renamed the modes bilinear and bicubic, which IR has.
_MODES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}
_CUBIC = -0.75


@translates("GridSample", since=16)
def grid_sample(
    ctx: TranslationContext, x: Value, grid: Value, *,
    mode: Literal["linear", "bilinear", "nearest", "cubic", "bicubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: int = 0,
) -> Value:  # fmt: skip
    """IR's operation for images; a sum over taps for volumes, which IR does not support. Integers are truncated."""
    kind = ctx.element(x)
    if kind.is_float:
        grid = ctx.convert(grid, kind)
    if ctx.rank(x) == 4:
        attributes = {"align_corners": bool(align_corners), "mode": _MODES[mode], "padding_mode": padding_mode}
        return ctx.emit("GridSample", x, grid, **attributes)
    data = x if kind.is_float else ctx.convert(x, ctx.element(grid))
    return ctx.convert(_Sampling(ctx, data, grid, padding_mode, bool(align_corners)).read(_MODES[mode]), kind)


class _Sampling:
    """Samples of (N, C, sizes...) at a grid of (N, points..., axes); coordinates are in reverse order of the axes.

    Source: ONNX GridSample-20.
    """

    def __init__(self, ctx: TranslationContext, x: Value, grid: Value, padding: str, corners: bool) -> None:
        self.ctx, self.padding, self.corners = ctx, padding, corners
        self.axes = ctx.rank(x) - 2
        coordinates = ctx.sizes(grid)[-1]
        if ctx.rank(grid) != ctx.rank(x) or (isinstance(coordinates, int) and coordinates != self.axes):
            raise OpError(
                f"the grid {ctx.fact(grid)} does not have a coordinate for each spatial axis of the data {ctx.fact(x)}"
            )
        self.sizes = [Expression(ctx, ctx.size(x, axis + 2)) for axis in range(self.axes)]
        self.data = ctx.emit("Reshape", x, [0, 0, -1], special_zero=True)
        lead, points = ((x, 0, 2), (grid, 1, -1))
        parts = [ctx.emit("Slice", ctx.shape_of(of), [start], [stop], [1], [0]) for of, start, stop in (lead, points)]
        self.shape = ctx.emit("Concat", *parts, axis=0)
        points = ctx.emit("Reshape", grid, [0, -1, self.axes], special_zero=True)
        self.points = [self._denormalised(points, axis) for axis in range(self.axes)]

    def read(self, mode: str) -> Value:
        """The samples, (N, C, points...)."""
        if mode == "nearest":
            samples = self._tap(
                [self._inside(point.round_half_to_even(), axis) for axis, point in enumerate(self.points)]
            )
        else:
            taps_of = _linear if mode == "bilinear" else _cubic
            taps = [taps_of(self._inside(point, axis)) for axis, point in enumerate(self.points)]
            parts = []
            for chosen in itertools.product(*taps):
                weight = reduce(Expression.__mul__, [weight for _, weight in chosen])
                parts.append(self._tap([position for position, _ in chosen]) * weight.unsqueeze(1))
            samples = reduce(Expression.__add__, parts)
        return self.ctx.emit("Reshape", samples.value, self.shape, special_zero=False)

    def _denormalised(self, points: Value, axis: int) -> Expression:
        """Coordinates in -1..1 as positions along an axis, (N, points)."""
        point = Expression(
            self.ctx, self.ctx.emit("Gather", points, self.ctx.constant(self.axes - 1 - axis), self.ctx.constant(2))
        )
        size = self.sizes[axis].to(self.ctx.element(points))
        return (point + 1) * (size - 1) / 2 if self.corners else ((point + 1) * size - 1) / 2

    def _inside(self, position: Expression, axis: int) -> Expression:
        """Positions outside the data moved inside by the padding mode; the mode zeros leaves them."""
        size = self.sizes[axis].to(self.ctx.element(position.value))
        if self.padding == "border":
            return position.minimum(size - 1).maximum(0)
        if self.padding == "reflection":
            low, span = (0.0, (size - 1).maximum(1)) if self.corners else (-0.5, size)
            folded = abs(position - low).modulo(span * 2)
            return folded.minimum(span * 2 - folded) + low
        return position

    def _tap(self, positions: list[Expression]) -> Expression:
        """The data at integer positions, 0 outside: (N, C, points)."""
        kind, flat, inside = self.ctx.element(self.data), None, None
        for axis, position in enumerate(positions):
            end = self.sizes[axis]
            index = self._inside(position, axis).to(I64)
            within = (index >= 0) & (index < end)
            inside = within if inside is None else inside & within
            index = index.minimum(end - 1).maximum(0)
            flat = index if flat is None else flat * end + index
        if flat is None or inside is None:
            raise OpError("the data have no spatial axis")
        found = self.ctx.emit("Gather", self.data, flat.value, self.ctx.constant(2), batch_dims=1)
        # With one batch axis the indices replace axis 2: N, C, points.
        samples = Expression(self.ctx, found)
        if self.padding != "zeros":
            return samples
        return inside.unsqueeze(1).select(samples, Expression(self.ctx, self.ctx.constant(0, kind)))


def _linear(position: Expression) -> list[tuple[Expression, Expression]]:
    """The taps around a position and their weights."""
    low = position.floor()
    fraction = position - low
    return [(low, 1 - fraction), (low + 1, fraction)]


def _cubic(position: Expression) -> list[tuple[Expression, Expression]]:
    low = position.floor()
    fraction, a = position - low, _CUBIC

    def far(d: Expression) -> Expression:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a

    def near(d: Expression) -> Expression:
        return (d * (a + 2) - (a + 3)) * d * d + 1

    weights = far(fraction + 1), near(fraction), near(1 - fraction), far(2 - fraction)
    return [(low + i, weight) for i, weight in enumerate(weights, -1)]


@translates("AffineGrid", since=20)
def affine_grid(
    ctx: TranslationContext, theta: Annotated[Value, Rank(3)], size: Annotated[Value, Rank(1)], *,
    align_corners: int = 0
) -> Value:  # fmt: skip
    """Points of a regular grid over (N, C, sizes...) transformed by matrices: (N, sizes..., axes), last axis first."""
    axes, kind = ctx.sizes(theta, "theta")[-2], ctx.element(theta)
    if axes not in (2, 3):
        length = ctx.sizes(size, "size")[0]
        if length not in (4, 5):
            raise OpError(f"size {ctx.fact(size)} is neither that of images nor of volumes")
        axes = int(length) - 2
    sizes = [
        Expression(ctx, ctx.emit("Gather", ctx.convert(size, I64), ctx.constant(axis + 2), ctx.constant(0)))
        for axis in range(int(axes))
    ]
    spatial = ctx.emit("Slice", ctx.convert(size, I64), [2], [2 + int(axes)], [1], [0])
    columns = []
    for axis in reversed(range(int(axes))):
        positions = arange(ctx, 0, sizes[axis], kind)
        whole = sizes[axis].to(kind)
        along = (positions * 2 - (whole - 1)) / ((whole - 1).maximum(1) if align_corners else whole)
        shaped = ctx.unsqueeze(along.value, [i for i in range(int(axes)) if i != axis])
        columns.append(ctx.unsqueeze(ctx.full(shaped, spatial), [int(axes)]))
    columns.append(ctx.unsqueeze(ctx.full(ctx.constant(1, kind), spatial), [int(axes)]))
    points = ctx.emit(
        "Reshape", ctx.emit("Concat", *columns, axis=int(axes)), [1, -1, int(axes) + 1], special_zero=False
    )
    moved = ctx.emit("MatMul", points, theta, transpose_a=False, transpose_b=True)
    batch = ctx.unsqueeze(ctx.size(theta, 0), [0])
    return ctx.emit(
        "Reshape", moved, ctx.emit("Concat", batch, spatial, ctx.constant([int(axes)]), axis=0), special_zero=False
    )


Mode = Literal["avg", "max"]


@translates("RoiAlign", since=10)
def roi_align_10(
    ctx: TranslationContext, x: Value, rois: Value, batch_indices: Value, *, mode: Mode = "avg", output_height: int = 1,
    output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    return _align(
        ctx, x, rois, batch_indices, mode, (output_height, output_width), sampling_ratio, spatial_scale, False
    )


@translates("RoiAlign", since=16)
def roi_align_16(
    ctx: TranslationContext, x: Value, rois: Value, batch_indices: Value, *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel", mode: Mode = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    half = coordinate_transformation_mode == "half_pixel"
    return _align(ctx, x, rois, batch_indices, mode, (output_height, output_width), sampling_ratio, spatial_scale, half)


def _align(
    ctx: TranslationContext, x: Value, rois: Value, batch: Value, mode: str, bins: tuple[int, int], ratio: int,
    scale: float, half: bool,
) -> Value:  # fmt: skip
    if min(bins) < 1 or ratio < 0:
        found = f"the output is {bins[0]} x {bins[1]} and sampling_ratio {ratio}"
        raise OpError(f"{found}, expected sizes of 1 or more and no negative ratio")
    if mode == "max":
        return _max_align(ctx, x, rois, batch, bins, ratio, scale, half)
    return ctx.emit(
        "ROIAlign", x, rois, batch, pooled_h=bins[0], pooled_w=bins[1], sampling_ratio=ratio, spatial_scale=scale,
        mode="avg", aligned_mode="half_pixel_for_nn" if half else "asymmetric",
    )  # fmt: skip


def _max_align(
    ctx: TranslationContext, x: Value, rois: Value, batch: Value, bins: tuple[int, int], ratio: int, scale: float,
    half: bool,
) -> Value:  # fmt: skip
    """The maximum over all weighted corners of the samples of a bin; IR computes the maximum over the samples.

    The samples of both axes form a table of rows and columns; each box uses a part of it. Source: ONNX RoiAlign and its
    reference.
    """
    rows, columns = (_samples(ctx, x, rois, axis, bins[axis], ratio, scale, half) for axis in (0, 1))
    images = ctx.emit("Gather", x, ctx.convert(batch, I64), ctx.constant(0))
    result: Expression | None = None
    for (y, y_weight), (z, z_weight) in itertools.product(rows[0], columns[0]):
        # (boxes, C, H, W) to (boxes, C, bins and samples, W), then likewise the columns.
        lines = ctx.emit("Gather", images, y.value, ctx.constant(2), batch_dims=1)
        found = Expression(ctx, ctx.emit("Gather", lines, z.value, ctx.constant(3), batch_dims=1))
        value = found * (y_weight.unsqueeze(1, 3) * z_weight.unsqueeze(1, 2))
        result = value if result is None else result.maximum(value)
    if result is None:
        raise OpError("the bins have no samples")
    used = rows[1].unsqueeze(1, 3) & columns[1].unsqueeze(1, 2)
    low = Expression(ctx, ctx.constant(float("-inf"), x))
    counted = used.select(result, low).value
    # The samples of a bin are adjacent: rows are (bins, samples).
    per_bin = [
        ctx.emit("Divide", ctx.unsqueeze(ctx.size(counted, axis), [0]), ctx.constant([bins[axis - 2]]))
        for axis in (2, 3)
    ]
    parts = [ctx.constant([0, 0, bins[0]]), per_bin[0], ctx.constant([bins[1]]), per_bin[1]]
    split = ctx.emit("Reshape", counted, ctx.emit("Concat", *parts, axis=0), special_zero=True)
    maxima = Expression(ctx, ctx.emit("ReduceMax", split, [3, 5], keep_dims=False))
    return maxima.equals(float("-inf")).select(0, maxima).value


def _samples(
    ctx: TranslationContext, x: Value, rois: Value, axis: int, bins: int, ratio: int, scale: float, half: bool
) -> tuple[list[tuple[Expression, Expression]], Expression]:
    """Two pixels with their weights, and whether the sample is used, for each box and sample of a bin along an axis."""
    kind = ctx.element(rois)
    size = Expression(ctx, ctx.size(x, axis + 2))
    shift = 0.5 if half else 0.0
    start, end = (Expression(ctx, _column(ctx, rois, side * 2 + 1 - axis)) * scale - shift for side in (0, 1))
    length = end - start if half else (end - start).maximum(1)
    per_bin = (length / bins).ceil() if not ratio else length * 0 + ratio
    max_samples = Expression(ctx, ctx.emit("ReduceMax", per_bin.value, [0], keep_dims=False)).to(I64).maximum(1)
    number = arange(ctx, 0, max_samples * bins, I64)
    inner = number.modulo(max_samples)
    which = Expression(ctx, ctx.emit("Divide", number.value, max_samples.value)).to(kind)
    counted = inner.to(kind).unsqueeze(0) < per_bin.column()
    part = (inner.to(kind) + 0.5).unsqueeze(0) / per_bin.maximum(1).column()
    position = start.column() + (which.unsqueeze(0) + part) * (length / bins).column()
    outside = (position < -1) | (position > size.to(kind))
    position = position.maximum(0).minimum((size - 1).to(kind))
    low = position.floor()
    fraction = position - low
    pixels = [(low.to(I64), 1 - fraction), (low.to(I64) + 1, fraction)]
    return [(pixel.minimum(size - 1), outside.select(0, weight)) for pixel, weight in pixels], counted


def _column(ctx: TranslationContext, rois: Value, index: int) -> Value:
    return ctx.emit("Gather", rois, ctx.constant(index), ctx.constant(1))


@translates("MaxRoiPool")
def max_roi_pool(
    ctx: TranslationContext, x: Value, rois: Value, *, pooled_shape: list[int], spatial_scale: float = 1.0
) -> Value:
    if len(pooled_shape) != 2:
        raise OpError(f"pooled_shape is {list(pooled_shape)}, expected a height and a width")
    height, width = pooled_shape
    return ctx.emit("ROIPooling", x, rois, pooled_h=height, pooled_w=width, spatial_scale=spatial_scale, method="max")


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    ctx: TranslationContext, boxes: Value, scores: Value, max_output_boxes_per_class: Value | None = None,
    iou_threshold: Value | None = None, score_threshold: Value | None = None, *, center_point_box: int = 0,
) -> Value:  # fmt: skip
    """Without score_threshold every score is high enough; without max_output_boxes_per_class no box is selected."""
    max_boxes = ctx.constant(0)
    if max_output_boxes_per_class is not None:
        max_boxes = ctx.scalar(ctx.convert(max_output_boxes_per_class, I64))
    max_overlap = ctx.constant(0, boxes) if iou_threshold is None else ctx.scalar(iou_threshold)
    min_score = ctx.constant(float("-inf"), boxes) if score_threshold is None else ctx.scalar(score_threshold)
    results: tuple[Value, ...] = ctx.emit(
        "NonMaxSuppression", boxes, scores, max_boxes, max_overlap, min_score, sort_result_descending=False,
        box_encoding="center" if center_point_box else "corner", output_type="i64",
    )  # fmt: skip
    return results[0]
