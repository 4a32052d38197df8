"""Numbers read at points between the pixels."""

from __future__ import annotations

import itertools
from functools import reduce

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

# Other names were in use before opset 20.
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
    """Images by IR's operation; volumes, for which it has none, tap by tap."""
    if mode not in _MODES:
        raise OpError(f"mode is {mode!r}, expected {', '.join(_MODES)}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise OpError(f"padding_mode is {padding_mode!r}, expected zeros, border or reflection")
    if b.rank(x) == 4:
        kept = {"align_corners": bool(align_corners), "mode": _OF_IR[_MODES[mode]], "padding_mode": padding_mode}
        return b.emit("GridSample", x, b.convert(grid, b.element(x)), **kept)
    return _Sampling(b, x, b.convert(grid, b.element(x)), padding_mode, bool(align_corners)).read(_MODES[mode])


class _Sampling:
    """Points (N, places..., axes) read from (N, C, sizes...); the last axis is named first in a point. Source: ONNX GridSample-20."""

    def __init__(self, b: Context, x: Value, grid: Value, padding: str, corners: bool) -> None:
        self.b, self.padding, self.corners = b, padding, corners
        self.axes = b.rank(x) - 2
        named = b.sizes(grid)[-1]
        if b.rank(grid) != b.rank(x) or (isinstance(named, int) and named != self.axes):
            raise OpError(f"the grid {b.fact(grid)} has no points for the data {b.fact(x)}")
        self.sizes = [Expression(b, b.size(x, axis + 2)) for axis in range(self.axes)]
        self.data = b.emit("Reshape", x, [0, 0, -1], special_zero=True)
        self.shape = b.emit(
            "Concat", b.emit("Slice", b.shape_of(x), [0], [2], [1], [0]), b.emit("Slice", b.shape_of(grid), [1], [-1], [1], [0]), axis=0
        )
        points = b.emit("Reshape", grid, [0, -1, self.axes], special_zero=True)
        self.points = [self._denormalised(points, axis) for axis in range(self.axes)]

    def read(self, mode: str) -> Value:
        """The numbers at all points, (N, C, places...)."""
        if mode == "nearest":
            read = self._tap([self._inside(point.round_half_to_even(), axis) for axis, point in enumerate(self.points)])
        else:
            weigh = _linear if mode == "linear" else _cubic
            taps = [weigh(self._inside(point, axis)) for axis, point in enumerate(self.points)]
            parts = []
            for chosen in itertools.product(*taps):
                weight = reduce(Expression.__mul__, [weight for _, weight in chosen])
                parts.append(self._tap([place for place, _ in chosen]) * weight.unsqueeze(1))
            read = reduce(Expression.__add__, parts)
        return self.b.emit("Reshape", read.value, self.shape, special_zero=False)

    def _denormalised(self, points: Value, axis: int) -> Expression:
        """From -1..1 to places along an axis, (N, places)."""
        point = Expression(self.b, self.b.emit("Gather", points, self.b.constant(self.axes - 1 - axis), self.b.constant(2)))
        size = self.sizes[axis].to(self.b.element(points))
        return (point + 1) * (size - 1) / 2 if self.corners else ((point + 1) * size - 1) / 2

    def _inside(self, place: Expression, axis: int) -> Expression:
        """A place beyond the border brought back, if the padding says so."""
        size = self.sizes[axis].to(self.b.element(place.value))
        if self.padding == "border":
            return place.minimum(size - 1).maximum(0)
        if self.padding == "reflection":
            low, span = (0.0, (size - 1).maximum(1)) if self.corners else (-0.5, size)
            folded = abs(place - low).modulo(span * 2)
            return folded.minimum(span * 2 - folded) + low
        return place

    def _tap(self, places: list[Expression]) -> Expression:
        """The data at whole places, 0 where there are none: (N, C, places)."""
        kind, flat, there = self.b.element(self.data), None, None
        for axis, place in enumerate(places):
            end = self.sizes[axis]
            index = self._inside(place, axis).to(I64)
            ok = (index >= 0) & (index < end)
            there = ok if there is None else there & ok
            index = index.minimum(end - 1).maximum(0)
            flat = index if flat is None else flat * end + index
        if flat is None or there is None:
            raise OpError("the data have no spatial axis")
        found = self.b.emit("Gather", self.data, flat.value, self.b.constant(2), batch_dims=1)
        # With one batch axis the places take the position of axis 2: N, C, places.
        read = Expression(self.b, found)
        if self.padding != "zeros":
            return read
        return there.unsqueeze(1).select(read, Expression(self.b, self.b.constant(0, kind)))


def _linear(place: Expression) -> list[tuple[Expression, Expression]]:
    """The taps around a place and their weights."""
    low = place.floor()
    part = place - low
    return [(low, 1 - part), (low + 1, part)]


def _cubic(place: Expression) -> list[tuple[Expression, Expression]]:
    low = place.floor()
    part = place - low
    a = _CUBIC

    def far(d: Expression) -> Expression:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a

    def near(d: Expression) -> Expression:
        return (d * (a + 2) - (a + 3)) * d * d + 1

    return [(low - 1, far(part + 1)), (low, near(part)), (low + 1, near(1 - part)), (low + 2, far(2 - part))]


@translates("AffineGrid", since=20)
def affine_grid(b: Context, theta: Value, size: Value, *, align_corners: int = 0) -> Value:
    """The points of a grid over the image (N, C, sizes...) moved by matrices: (N, sizes..., axes), the last axis first."""
    axes, kind = b.sizes(theta, "theta")[-2], b.element(theta)
    if axes not in (2, 3):
        axes = _axes_of(b, size)
    sizes = [Expression(b, b.emit("Gather", b.convert(size, I64), b.constant(axis + 2), b.constant(0))) for axis in range(int(axes))]
    spatial = b.emit("Slice", b.convert(size, I64), [2], [2 + int(axes)], [1], [0])
    columns = []
    for axis in reversed(range(int(axes))):
        places = arange(b, 0, sizes[axis], kind)
        whole = sizes[axis].to(kind)
        along = (places * 2 - (whole - 1)) / ((whole - 1).maximum(1) if align_corners else whole)
        shaped = b.unsqueeze(along.value, [i for i in range(int(axes)) if i != axis])
        columns.append(b.unsqueeze(b.full(shaped, spatial), [int(axes)]))
    columns.append(b.unsqueeze(b.full(b.constant(1, kind), spatial), [int(axes)]))
    points = b.emit("Reshape", b.emit("Concat", *columns, axis=int(axes)), [1, -1, int(axes) + 1], special_zero=False)
    moved = b.emit("MatMul", points, theta, transpose_a=False, transpose_b=True)
    batch = b.unsqueeze(b.size(theta, 0), [0])
    return b.emit("Reshape", moved, b.emit("Concat", batch, spatial, b.constant([int(axes)]), axis=0), special_zero=False)


def _axes_of(b: Context, size: Value) -> int:
    length = b.sizes(size, "size")[0]
    if length not in (4, 5):
        raise OpError(f"size {b.fact(size)} is for neither images nor volumes")
    return int(length) - 2
