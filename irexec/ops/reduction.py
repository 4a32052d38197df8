"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from irexec.ir.dims import ANY, PartialShape, span
from irexec.ir.facts import Fact
from irexec.ir.integers import integers
from irexec.schema.inputs import BOOLEAN_TYPE, NUMERIC, AxesTensor, ElementSet
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axes

# ``keep`` is a boolean; NumPy's stubs only know it as True or False.
Reduction = Callable[[np.ndarray, tuple[int, ...], Any], Any]


def reduced_shape(data: Fact, axes: Fact, keep_dims: bool) -> PartialShape:
    """The shape of the result; sizes or the rank are unknown where the axes are."""
    if data.shape is None:
        return None
    known = axes.ints("axes")
    rank = len(data.shape)
    if known is None and rank > 0:
        count = 1 if axes.rank == 0 else axes.shape[0] if axes.shape else None
        if keep_dims:
            # A size is kept or becomes 1.
            return tuple(size if size == 1 else _kept_or_one(size) for size in data.shape)
        # Several axes may be the same one twice.
        return (ANY,) * (rank - count) if isinstance(count, int) and count <= min(rank, 1) else None
    reduced = set(normalize_axes(known or [], rank, scalar=True))
    if keep_dims:
        return tuple(1 if i in reduced else size for i, size in enumerate(data.shape))
    return tuple(size for i, size in enumerate(data.shape) if i not in reduced)


def _kept_or_one(size: Any) -> Any:
    low, high = (size, size) if isinstance(size, int) else (size.lo, size.hi)
    return span(min(low, 1), None if high is None else max(high, 1))


def _define(type: str, since: int, function: Reduction, doc: str, elements: ElementSet = NUMERIC, **flags: Any) -> None:
    def kernel(data: np.ndarray, axes: AxesTensor, *, keep_dims: bool = False) -> np.ndarray:
        reduced = tuple(sorted(set(normalize_axes(integers(np.asarray(axes), "axes"), data.ndim, scalar=True))))
        with np.errstate(all="ignore"):
            result = np.asarray(function(data, reduced, keep_dims))
        return result if result.dtype == data.dtype else result.astype(data.dtype)

    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    kernel.__annotations__["data"] = Annotated[np.ndarray, elements]
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def shape_rule(data: Fact, axes: Fact, *, keep_dims: bool = False) -> Fact:
        return Fact(data.element, reduced_shape(data, axes, keep_dims))


def _sum(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
    return np.sum(x, axis=axes, keepdims=keep, dtype=None if x.dtype == object else x.dtype)


def _mean(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
    """For floats in double precision; for integers the sum, which wraps, divided by the count and truncated."""
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if count == 0:
        return np.zeros_like(_sum(x, axes, keep))
    if x.dtype == np.float32:
        return np.mean(x, axis=axes, keepdims=keep, dtype=np.float64).astype(np.float32)
    total = _sum(x, axes, keep)
    if x.dtype.kind == "f":
        return total / x.dtype.type(count)
    return (np.abs(total) // count) * np.sign(total) if x.dtype.kind == "i" else total // x.dtype.type(count)


def _extreme(function: np.ufunc, ignoring_nan: np.ufunc, lowest: bool) -> Reduction:
    """``function``; for floats ``ignoring_nan``, which gives NaN only where all elements are NaN."""

    def reduce(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
        used = ignoring_nan if x.dtype.kind == "f" else function
        if x.size or x.dtype == object:
            return used.reduce(x, axis=axes, keepdims=keep)
        return used.reduce(x, axis=axes, keepdims=keep, initial=_bound(x.dtype, lowest))

    return reduce


def _bound(dtype: np.dtype, lowest: bool) -> Any:
    """The maximum (minimum) of no elements: the lowest (highest) value of the type.

    For floats an infinity, as in ONNX: IR's specification does not define it, and OpenVINO's reference gives the lowest
    finite f32 for the maximum, and infinity for the minimum.
    """
    if dtype.kind == "f":
        return dtype.type(-np.inf if lowest else np.inf)
    return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max


def _prod(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
    return np.prod(x, axis=axes, keepdims=keep, dtype=None if x.dtype == object else x.dtype)


def _l1(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
    return np.sum(np.abs(x), axis=axes, keepdims=keep, dtype=x.dtype)


def _l2(x: np.ndarray, axes: tuple[int, ...], keep: Any) -> Any:
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=keep, dtype=x.dtype))


_define("ReduceSum", 1, _sum, "The sum; integers wrap.", symbolic=True, widen=True, tolerance=4e-6)
_define("ReduceMean", 1, _mean, "The mean; 0 for no elements, as in OpenVINO.", widen=True, tolerance=4e-6)
_define("ReduceProd", 1, _prod, "The product; integers wrap.", symbolic=True, widen=True, tolerance=4e-6)
_define(
    "ReduceMax",
    1,
    _extreme(np.maximum, np.fmax, True),
    "The maximum, NaN only where all elements are NaN; for no elements the lowest value of the type.",
    symbolic=True,
)
_define(
    "ReduceMin",
    1,
    _extreme(np.minimum, np.fmin, False),
    "The minimum, NaN only where all elements are NaN; for no elements the highest value of the type.",
    symbolic=True,
)
_define("ReduceL1", 4, _l1, "The sum of absolute values.", widen=True, tolerance=4e-6)
_define("ReduceL2", 4, _l2, "The square root of the sum of squares.", widen=True, tolerance=4e-6)
_define(
    "ReduceLogicalAnd",
    1,
    lambda x, axes, keep: np.all(x, axis=axes, keepdims=keep),
    "Whether all are true.",
    BOOLEAN_TYPE,
)
_define(
    "ReduceLogicalOr",
    1,
    lambda x, axes, keep: np.any(x, axis=axes, keepdims=keep),
    "Whether any is true.",
    BOOLEAN_TYPE,
)
