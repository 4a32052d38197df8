"""Resize and Upsample.

A resizing that Interpolate computes exactly becomes an Interpolate. Other options (antialiasing, exclude_outside,
crops, symmetric half pixels, kept aspect ratio) become a product with a matrix of weights along each axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.resampling import Resizing, Stretch, exact_nearest, resampled
from converters.onnx.context import TranslationContext
from converters.onnx.limits import MAX_UNROLLED
from converters.onnx.registry import translates
from irexec.dtypes.elements import BOOLEAN, F32, F64, I16, I32, I64, U8, U16, U32, U64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.reference.resize import coordinates, nearest, scaled_size

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
