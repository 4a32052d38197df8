"""Sampling at points between pixels, and grids of such points."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Annotated, Literal

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank

# Opset 20 renamed the modes bilinear and bicubic, which IR has.
_MODES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}
_CUBIC = -0.75


@translates("GridSample", since=16)
def grid_sample(
    ctx: TranslationContext, x: Value, grid: Value, *,
    mode: Literal["linear", "bilinear", "nearest", "cubic", "bicubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: int = 0,
) -> Value:  # fmt: skip
    """IR's operation for images; a sum over taps for volumes, which IR does not support."""
    grid = ctx.convert(grid, ctx.element(x))
    if ctx.rank(x) == 4:
        attributes = {"align_corners": bool(align_corners), "mode": _MODES[mode], "padding_mode": padding_mode}
        return ctx.emit("GridSample", x, grid, **attributes)
    return _Sampling(ctx, x, grid, padding_mode, bool(align_corners)).read(_MODES[mode])


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
        axes = _axes_of(ctx, size)
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


def _axes_of(ctx: TranslationContext, size: Value) -> int:
    length = ctx.sizes(size, "size")[0]
    if length not in (4, 5):
        raise OpError(f"size {ctx.fact(size)} is neither that of images nor of volumes")
    return int(length) - 2
