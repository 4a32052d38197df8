"""FakeQuantize by blocks: two linear functions in f64, equal to the reference kernel bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.backend.block_types import block_function
from irexec.backend.chain import BlockFunction, Formula
from irexec.backend.kernel import NanHasNoLevelError, Task
from irexec.backend.numpy_ufuncs import clip
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.reference.grids import MOST, Grid
from irexec.reference.integers import level_values, nearest_levels, zero_level

_F64 = np.dtype(np.float64)
_CHECKED = 1 << 19
"""Levels of all ranges together up to which they are checked."""
_KEPT = 64
"""Blocks of ranges whose levels are kept."""
_FACTORS = range(1, 32, 2)


@block_function("FakeQuantize", since=1)
def _fake_quantize_1(task: Task) -> BlockOperation | None:
    """The function for constant, finite f32 or f16 bounds with input_low < input_high and exact levels."""
    dtype, levels = task.dtype(0), task.attributes["levels"]
    sources = [source for source in task.constants[1:5] if source is not None]
    if (
        dtype not in (np.float32, np.float16)
        or len(sources) < 4
        or task.attributes.get("auto_broadcast", "numpy") == "pdpd"
    ):
        return None
    bounds = tuple(np.asarray(source.array()) for source in sources)
    if not all(np.isfinite(values).all() for values in bounds) or not (bounds[0] < bounds[1]).all():
        return None
    ranges = np.broadcast_shapes(*(values.shape for values in bounds))
    if np.prod(ranges, dtype=np.int64) * levels > _CHECKED:
        return None
    found = _Levels.of(bounds, levels)
    if found is None:
        return None
    if found.scale.size != 1:
        function, formula = _by_ranges(levels, _Levels.quantize), Formula("Quantize", table=found.table())
        return BlockOperation(function, (0, 1, 2, 3, 4), (None,) * 5, temporaries=3, passes=14, formula=formula)
    one = found.reshaped(())
    grid = Grid(levels, *((float(bound.reshape(-1)[0]),) for bound in bounds)) if levels <= MOST else None
    formula = Formula("Quantize", table=one.table(), grid=grid)
    return BlockOperation(one.quantize, temporaries=3, passes=9, formula=formula)


@block_function("Quantize", since="irexec")
def _quantize(task: Task) -> BlockOperation | None:
    found = levels_of(task.attributes["grid"], len(task.shape(0)))
    if found is None:
        return None
    formula = Formula("Levels", table=found.table(), grid=task.attributes["grid"])
    if task.attributes["grid"].is_single:
        return BlockOperation(found.index, in_place=False, temporaries=3, passes=7, formula=formula)
    function = _by_ranges(task.attributes["grid"].levels, _Levels.index)
    return BlockOperation(function, (0, 1, 2, 3, 4), in_place=False, temporaries=3, passes=12, formula=formula)


@block_function("Dequantize", since="irexec", kinds="u")
def _dequantize(task: Task) -> BlockOperation:
    grid: Grid = task.attributes["grid"]

    def dequantize(scratch: Scratch, out: np.ndarray, levels: np.ndarray) -> None:
        np.take(grid.values, levels, out=out, mode="clip")

    return BlockOperation(dequantize, in_place=False, passes=4, formula=Formula("Dequantize", grid=grid))


@block_function("AddLevels", since="irexec")
def _add_levels(task: Task) -> BlockOperation:
    grid: Grid = task.attributes["grid"]

    def add(scratch: Scratch, out: np.ndarray, x: np.ndarray, levels: np.ndarray) -> None:
        np.add(x, grid.values[levels], out=out)

    return BlockOperation(add, (0, 1), passes=5, formula=Formula("AddLevels", grid=grid))


def refuse_nan(data: np.ndarray) -> None:
    """Raise NanHasNoLevelError for a NaN."""
    if np.isnan(np.min(data, initial=np.inf)):
        raise NanHasNoLevelError


def levels_of(grid: Grid, rank: int) -> _Levels | None:
    """The indices of levels of a grid for data of a rank; None if one would differ from the reference kernel."""
    return _Levels.of([np.asarray(grid.along(bound, rank)) for bound in grid.ranges], grid.levels, values=False)


def _by_ranges(levels: int, method: Callable[..., None]) -> BlockFunction:
    """A method of levels for bounds that are arguments.

    Levels are cached by the bytes of the bounds, because blocks are requested in every run.
    """
    known: dict[object, _Levels] = {}

    def run(scratch: Scratch, out: np.ndarray, x: np.ndarray, *bounds: np.ndarray) -> None:
        key = *(values.shape for values in bounds), *(values.tobytes() for values in bounds)
        of_block = known.get(key)
        if of_block is None:
            if len(known) == _KEPT:
                known.clear()
            of_block = _Levels.of(bounds, levels, values=method is _Levels.quantize)
            if of_block is None:
                raise AssertionError("the levels of all ranges have been checked")
            known[key] = of_block
        method(of_block, scratch, out, x)

    return run


@dataclass(frozen=True, eq=False)
class _Levels:
    """The levels of one range, or of several, as arrays that broadcast to a block.

    Attributes:
        low, high: the bounds of the data, in its type.
        begin, factor, scale: the index of a level is ``(data - begin) * factor * scale``, rounded. No factor is 1 for
            all ranges.
        step, offset: the value of a level is ``index * step + offset``.
        zero: the index of the level that is meant to be 0; -1 where there is none.
        is_exact: whether that level is 0 as computed, for all ranges.
    """

    low: np.ndarray
    high: np.ndarray
    begin: np.ndarray
    factor: np.ndarray | None
    scale: np.ndarray
    step: np.ndarray
    offset: np.ndarray
    zero: np.ndarray
    is_exact: bool

    @staticmethod
    def of(bounds: Sequence[np.ndarray], levels: int, *, values: bool = True) -> _Levels | None:
        """The levels of finite bounds; None if a value of the data would differ from the reference kernel.

        Args:
            values: whether the values of levels are asked for, and not their indices alone.
        """
        ranges = np.broadcast_arrays(*bounds)
        # Copies, since bounds of a block may lie in the scratch of the thread that asks first.
        low, high, out_low, out_high = (values.flatten().reshape(-1, 1) for values in ranges)
        begin, step = low.astype(_F64), np.subtract(out_high, out_low, dtype=_F64) / (levels - 1)
        offset, index = out_low.astype(_F64), np.arange(levels, dtype=_F64)
        zero = zero_level(out_low, out_high, levels)
        linear = np.where(index == zero, 0, (index * step + offset).astype(low.dtype))
        factor = _factors(low, high, levels)
        if not factor.all() or (values and not np.array_equal(linear, level_values(index, out_low, out_high, levels))):
            return None
        scale = (levels - 1) / (np.subtract(high, low, dtype=_F64) * factor)
        several = factor if (factor != 1).any() else None
        is_exact = bool(((zero * step + offset == 0) | (zero < 0)).all())
        return _Levels(low, high, begin, several, scale, step, offset, zero, is_exact).reshaped(ranges[0].shape)

    def reshaped(self, shape: tuple[int, ...]) -> _Levels:
        """The same with arrays of another shape."""
        arrays: dict[str, Any] = {
            name: values.reshape(shape) for name, values in vars(self).items() if isinstance(values, np.ndarray)
        }
        return replace(self, **arrays)

    def table(self) -> np.ndarray:
        """The parts that C reads, f64 of shape (7, *ranges): low, high, factor, scale, step, offset and zero."""
        factor = 1.0 if self.factor is None else self.factor
        parts = np.broadcast_arrays(self.low, self.high, factor, self.scale, self.step, self.offset, self.zero)
        return np.stack(parts).astype(_F64)

    def index(self, scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        """Write the indices of the levels nearest to ``x``, as integers.

        Raises:
            NanHasNoLevelError: a value is NaN.
        """
        level = scratch.take(out.shape, _F64)
        np.copyto(level, x)
        refuse_nan(level)
        clip(level, self.low, self.high, out=level)
        self._round(level)
        np.copyto(out, level, casting="unsafe")

    def _round(self, level: np.ndarray) -> None:
        """Turn values within the bounds into indices, in place."""
        np.subtract(level, self.begin, out=level)
        if self.factor is not None:
            np.multiply(level, self.factor, out=level)
        np.multiply(level, self.scale, out=level)
        np.rint(level, out=level)

    def quantize(self, scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        """Write the values of the levels nearest to ``x``, which may be ``out``."""
        level = scratch.take(out.shape, _F64)
        if x.dtype == np.float32:
            clip(x, self.low, self.high, out=out)
            np.copyto(level, out)
        else:
            # NumPy takes long to clip f16.
            np.copyto(level, x)
            clip(level, self.low, self.high, out=level)
        self._round(level)
        others = None if self.is_exact else np.not_equal(level, self.zero, out=scratch.take(out.shape, np.dtype(bool)))
        np.multiply(level, self.step, out=level)
        np.add(level, self.offset, out=level)
        np.copyto(out, level, casting="same_kind")
        if others is not None:
            # NumPy takes long to write through a mask. The sum makes 0 of -0.
            np.multiply(out, others, out=out)
            np.add(out, 0, out=out)


def _factors(low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray:
    """A factor per range (row) with which ``quantize`` returns the reference kernel's indices; 0 without one.

    A value halfway between two levels is only seen as such if its product is exact, which the rounding of the scale
    decides. Indices rise with the data: they are right everywhere if they are next to each threshold between two
    levels.
    """
    span = np.subtract(high, low, dtype=_F64)
    thresholds = (low + (np.arange(levels - 1) + 0.5) * span / (levels - 1)).astype(low.dtype)
    data = np.concatenate([thresholds, np.nextafter(thresholds, -np.inf), np.nextafter(thresholds, np.inf)], axis=1)
    data = np.clip(data, low, high)
    expected, distance = nearest_levels(data, low, high, levels), np.subtract(data, low, dtype=_F64)
    factor = np.zeros(span.shape)
    for candidate in _FACTORS:
        is_right = (np.rint(distance * candidate * ((levels - 1) / (span * candidate))) == expected).all(
            axis=1, keepdims=True
        )
        factor[(factor == 0) & is_right] = candidate
        if factor.all():
            break
    return factor
