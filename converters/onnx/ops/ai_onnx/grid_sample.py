"""Sampling at points between the pixels, and the grids of such points."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Annotated

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank

# The modes had other names before opset 20.
_MODES = {"linear": "linear", "bilinear": "linear", "nearest": "nearest", "cubic": "cubic", "bicubic": "cubic"}
_OF_IR = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
_CUBIC = -0.75


@translates("GridSample", since=16)
def grid_sample_16(
    b: Context, x: Value, grid: Value, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: int = 0
) -> Value:
    return grid_sample_20(b, x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


@translates("GridSample", since=20)
def grid_sample_20(
    b: Context, x: Value, grid: Value, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> Value:
    """IR's operation for images; for volumes, which it does not support, a sum over taps."""
    if mode not in _MODES:
        raise OpError(f"mode is {mode!r}, expected {', '.join(_MODES)}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise OpError(f"padding_mode is {padding_mode!r}, expected zeros, border or reflection")
    if b.rank(x) == 4:
        attributes = {"align_corners": bool(align_corners), "mode": _OF_IR[_MODES[mode]], "padding_mode": padding_mode}
        return b.emit("GridSample", x, b.convert(grid, b.element(x)), **attributes)
    return _Sampling(b, x, b.convert(grid, b.element(x)), padding_mode, bool(align_corners)).read(_MODES[mode])


class _Sampling:
    """Samples of (N, C, sizes...) at a grid of (N, points..., axes), whose coordinates are in reverse order of the axes.

    Source: ONNX GridSample-20.
    """

    def __init__(self, b: Context, x: Value, grid: Value, padding: str, corners: bool) -> None:
        self.b, self.padding, self.corners = b, padding, corners
        self.axes = b.rank(x) - 2
        coordinates = b.sizes(grid)[-1]
        if b.rank(grid) != b.rank(x) or (isinstance(coordinates, int) and coordinates != self.axes):
            raise OpError(
                f"the grid {b.fact(grid)} does not have a coordinate for each spatial axis of the data {b.fact(x)}"
            )
        self.sizes = [Expression(b, b.size(x, axis + 2)) for axis in range(self.axes)]
        self.data = b.emit("Reshape", x, [0, 0, -1], special_zero=True)
        self.shape = b.emit(
            "Concat",
            b.emit("Slice", b.shape_of(x), [0], [2], [1], [0]),
            b.emit("Slice", b.shape_of(grid), [1], [-1], [1], [0]),
            axis=0,
        )
        points = b.emit("Reshape", grid, [0, -1, self.axes], special_zero=True)
        self.points = [self._denormalised(points, axis) for axis in range(self.axes)]

    def read(self, mode: str) -> Value:
        """The samples, (N, C, points...)."""
        if mode == "nearest":
            samples = self._tap(
                [self._inside(point.round_half_to_even(), axis) for axis, point in enumerate(self.points)]
            )
        else:
            taps_of = _linear if mode == "linear" else _cubic
            taps = [taps_of(self._inside(point, axis)) for axis, point in enumerate(self.points)]
            parts = []
            for chosen in itertools.product(*taps):
                weight = reduce(Expression.__mul__, [weight for _, weight in chosen])
                parts.append(self._tap([position for position, _ in chosen]) * weight.unsqueeze(1))
            samples = reduce(Expression.__add__, parts)
        return self.b.emit("Reshape", samples.value, self.shape, special_zero=False)

    def _denormalised(self, points: Value, axis: int) -> Expression:
        """Coordinates in -1..1 as positions along an axis, (N, points)."""
        point = Expression(
            self.b, self.b.emit("Gather", points, self.b.constant(self.axes - 1 - axis), self.b.constant(2))
        )
        size = self.sizes[axis].to(self.b.element(points))
        return (point + 1) * (size - 1) / 2 if self.corners else ((point + 1) * size - 1) / 2

    def _inside(self, position: Expression, axis: int) -> Expression:
        """Positions outside the data moved inside by the padding mode; unchanged for zeros."""
        size = self.sizes[axis].to(self.b.element(position.value))
        if self.padding == "border":
            return position.minimum(size - 1).maximum(0)
        if self.padding == "reflection":
            low, span = (0.0, (size - 1).maximum(1)) if self.corners else (-0.5, size)
            folded = abs(position - low).modulo(span * 2)
            return folded.minimum(span * 2 - folded) + low
        return position

    def _tap(self, positions: list[Expression]) -> Expression:
        """The data at integer positions, 0 outside: (N, C, points)."""
        kind, flat, inside = self.b.element(self.data), None, None
        for axis, position in enumerate(positions):
            end = self.sizes[axis]
            index = self._inside(position, axis).to(I64)
            within = (index >= 0) & (index < end)
            inside = within if inside is None else inside & within
            index = index.minimum(end - 1).maximum(0)
            flat = index if flat is None else flat * end + index
        if flat is None or inside is None:
            raise OpError("the data have no spatial axis")
        found = self.b.emit("Gather", self.data, flat.value, self.b.constant(2), batch_dims=1)
        # With one batch axis the indices replace axis 2: N, C, points.
        samples = Expression(self.b, found)
        if self.padding != "zeros":
            return samples
        return inside.unsqueeze(1).select(samples, Expression(self.b, self.b.constant(0, kind)))


def _linear(position: Expression) -> list[tuple[Expression, Expression]]:
    """The taps around a position and their weights."""
    low = position.floor()
    fraction = position - low
    return [(low, 1 - fraction), (low + 1, fraction)]


def _cubic(position: Expression) -> list[tuple[Expression, Expression]]:
    low = position.floor()
    fraction = position - low
    a = _CUBIC

    def far(d: Expression) -> Expression:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a

    def near(d: Expression) -> Expression:
        return (d * (a + 2) - (a + 3)) * d * d + 1

    return [
        (low - 1, far(fraction + 1)),
        (low, near(fraction)),
        (low + 1, near(1 - fraction)),
        (low + 2, far(2 - fraction)),
    ]


@translates("AffineGrid", since=20)
def affine_grid(
    b: Context, theta: Annotated[Value, Rank(3)], size: Annotated[Value, Rank(1)], *, align_corners: int = 0
) -> Value:
    """The points of a regular grid over (N, C, sizes...), transformed by matrices: (N, sizes..., axes), last axis first."""
    axes, kind = b.sizes(theta, "theta")[-2], b.element(theta)
    if axes not in (2, 3):
        axes = _axes_of(b, size)
    sizes = [
        Expression(b, b.emit("Gather", b.convert(size, I64), b.constant(axis + 2), b.constant(0)))
        for axis in range(int(axes))
    ]
    spatial = b.emit("Slice", b.convert(size, I64), [2], [2 + int(axes)], [1], [0])
    columns = []
    for axis in reversed(range(int(axes))):
        positions = arange(b, 0, sizes[axis], kind)
        whole = sizes[axis].to(kind)
        along = (positions * 2 - (whole - 1)) / ((whole - 1).maximum(1) if align_corners else whole)
        shaped = b.unsqueeze(along.value, [i for i in range(int(axes)) if i != axis])
        columns.append(b.unsqueeze(b.full(shaped, spatial), [int(axes)]))
    columns.append(b.unsqueeze(b.full(b.constant(1, kind), spatial), [int(axes)]))
    points = b.emit("Reshape", b.emit("Concat", *columns, axis=int(axes)), [1, -1, int(axes) + 1], special_zero=False)
    moved = b.emit("MatMul", points, theta, transpose_a=False, transpose_b=True)
    batch = b.unsqueeze(b.size(theta, 0), [0])
    return b.emit(
        "Reshape", moved, b.emit("Concat", batch, spatial, b.constant([int(axes)]), axis=0), special_zero=False
    )


def _axes_of(b: Context, size: Value) -> int:
    length = b.sizes(size, "size")[0]
    if length not in (4, 5):
        raise OpError(f"size {b.fact(size)} is neither that of images nor of volumes")
    return int(length) - 2
