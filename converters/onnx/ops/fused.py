"""com.microsoft: products, activations and sums that ONNX Runtime's optimiser joins into one operator.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.expression import Expression
from converters.onnx.ops.activation import activated
from converters.onnx.ops.gather import gather_nd
from converters.onnx.ops.generation import range_11
from converters.onnx.ops.matmul import gemm_7
from converters.onnx.ops.movement import pad_11
from converters.onnx.ops.scatter import trilu
from converters.onnx.ops.searching import unique
from converters.onnx.ops.spatial import grid_sample_16
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value

_DOMAIN = "com.microsoft"


@translates("FusedMatMul", "TransposeMatMul", domain=_DOMAIN)
def fused_matmul(
    b: Context, x: Value, y: Value, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0
) -> Value:
    """transBatch: the axis of rows (or with trans that of columns) stands before those of the batch."""
    sides = [_batch_first(b, side) if batch else side for side, batch in ((x, transBatchA), (y, transBatchB))]
    # Vectors are not transposed.
    turned = [bool(trans) and b.rank(side) > 1 for side, trans in zip(sides, (transA, transB), strict=True)]
    product = b.emit("MatMul", *sides, transpose_a=turned[0], transpose_b=turned[1])
    return product if alpha == 1.0 else b.emit("Multiply", product, b.constant(alpha, product))


def _batch_first(b: Context, x: Value) -> Value:
    """(rows, batch..., columns) as (batch..., rows, columns)."""
    rank = b.rank(x)
    return b.transpose(x, [*range(1, rank - 1), 0, rank - 1]) if rank > 2 else x


@translates("FusedMatMulActivation", domain=_DOMAIN)
def fused_matmul_activation(
    b: Context, x: Value, y: Value, *, activation: str, activation_alpha: float = 0.0, activation_beta: float = 0.0,
    activation_gamma: float = 0.0, activation_axis: int = -1, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:  # fmt: skip
    product = fused_matmul(b, x, y, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA, transBatchB=transBatchB)
    if activation == "Softmax":
        return b.emit("Softmax", product, axis=b.axis(activation_axis, product))
    return _activated(b, product, activation, activation_alpha, activation_beta)


@translates("FusedGemm", domain=_DOMAIN)
def fused_gemm(
    b: Context, x: Value, y: Value, z: Value | None = None, *, activation: str = "", activation_alpha: float = 0.0,
    activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    sums = gemm_7(b, x, y, z, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activated(b, sums, activation, activation_alpha, activation_beta)


def _activated(b: Context, x: Value, name: str, alpha: float, beta: float) -> Value:
    parameters = {"LeakyRelu": [alpha], "HardSigmoid": [alpha, beta], "Clip": [alpha, beta]}
    return activated(b, x, name, parameters.get(name))


@translates("Gelu", domain=_DOMAIN)
def gelu(b: Context, x: Value) -> Value:
    return b.emit("Gelu", x, approximation_mode="erf")


@translates("BiasGelu", domain=_DOMAIN)
def bias_gelu(b: Context, x: Value, bias: Value) -> Value:
    return gelu(b, b.emit("Add", x, bias))


@translates("FastGelu", domain=_DOMAIN)
def fast_gelu(b: Context, x: Value, bias: Value | None = None) -> Value:
    return b.emit("Gelu", x if bias is None else b.emit("Add", x, bias), approximation_mode="tanh")


@translates("GemmFastGelu", domain=_DOMAIN)
def gemm_fast_gelu(b: Context, x: Value, w: Value, bias: Value | None = None) -> Value:
    return fast_gelu(b, b.emit("MatMul", x, w), bias)


@translates("QuickGelu", domain=_DOMAIN)
def quick_gelu(b: Context, x: Value, *, alpha: float = 1.702) -> Value:
    """x * sigmoid(alpha * x)."""
    return b.emit("Swish", x, b.constant(alpha, x))


@translates("BiasSplitGelu", domain=_DOMAIN)
def bias_split_gelu(b: Context, x: Value, bias: Value) -> Value:
    """Of the last axis the first half times the Gelu of the second."""
    halves = b.emit("Split", b.emit("Add", x, bias), b.constant(b.rank(x) - 1), num_splits=2)
    return b.emit("Multiply", halves[0], gelu(b, halves[1]))


@translates("BiasAdd", domain=_DOMAIN)
def bias_add(b: Context, x: Value, bias: Value, skip: Value) -> Value:
    return b.emit("Add", b.emit("Add", x, bias), skip)


@translates("BiasSoftmax", domain=_DOMAIN)
def bias_softmax(b: Context, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int) -> Value:
    """Softmax over everything from ``axis`` on. The bias stretches over the axes before it: the first of them, or the last."""
    rank, place = b.rank(data), b.axis(axis, data)
    spare = rank - b.rank(bias)
    if spare > 0 and is_inner_broadcast:
        # The axes of the bias are the outer ones of the batch and those of the softmax.
        bias = b.unsqueeze(bias, list(range(place - spare, place)))
    summed = b.emit("Add", data, bias)
    if place == rank - 1:
        return b.emit("Softmax", summed, axis=place)
    flat = b.emit("Reshape", summed, [*[0] * place, -1], special_zero=True)
    return b.emit("Reshape", b.emit("Softmax", flat, axis=place), b.shape_of(summed), special_zero=False)


@translates("ExpandDims", domain=_DOMAIN)
def expand_dims(b: Context, x: Value, axis: Value) -> Value:
    return b.unsqueeze(x, list(b.ints(axis, "axis")))


@translates("Inverse", domain=_DOMAIN)
def inverse(b: Context, x: Value) -> Value:
    return b.emit("Inverse", x, adjoint=False)


@translates("Trilu", domain=_DOMAIN)
def contrib_trilu(b: Context, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    return trilu(b, x, k, upper=upper)


@translates("ComplexMul", domain=_DOMAIN)
def complex_mul(b: Context, x: Value, y: Value) -> Value:
    return _complex_product(b, x, y, conjugate=False)


@translates("ComplexMulConj", domain=_DOMAIN)
def complex_mul_conj(b: Context, x: Value, y: Value) -> Value:
    return _complex_product(b, x, y, conjugate=True)


def _complex_product(b: Context, x: Value, y: Value, *, conjugate: bool) -> Value:
    """Pairs on the last axis; the second factor conjugated if ``conjugate``."""
    parts: list[Expression] = []
    for side in (x, y):
        last = b.rank(side) - 1
        if b.sizes(side)[last] != 2:
            raise OpError(f"the last axis of {b.fact(side)} does not hold pairs")
        parts += [Expression(b, part) for part in b.emit("Split", side, b.constant(last), num_splits=2)]
    real, imaginary, again, turned = parts
    turned = -turned if conjugate else turned
    product = [real * again - imaginary * turned, real * turned + imaginary * again]
    return b.emit("Concat", *(part.value for part in product), axis=-1)


@translates("Rfft", domain=_DOMAIN)
def rfft(b: Context, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Value:
    """Over the last axes."""
    return b.emit("RDFT", x, _last_axes(b, x, signal_ndim, 0, normalized, onesided))


@translates("Irfft", domain=_DOMAIN)
def irfft(b: Context, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Value:
    return b.emit("IRDFT", x, _last_axes(b, x, signal_ndim, 1, normalized, onesided))


def _last_axes(b: Context, x: Value, count: int, parts: int, normalized: int, onesided: int) -> Value:
    if normalized or not onesided:
        raise OpError(f"normalized is {normalized} and onesided {onesided}, expected 0 and 1")
    end = b.rank(x) - parts
    if not 1 <= count <= end:
        raise OpError(f"signal_ndim is {count} for {b.fact(x)}")
    return b.constant(list(range(end - count, end)))


@translates("Range", domain=_DOMAIN)
def contrib_range(b: Context, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(b, start, limit, b.constant(1, start) if delta is None else delta)


@translates("GatherND", domain=_DOMAIN)
def contrib_gather_nd(b: Context, data: Value, indices: Value) -> Value:
    return gather_nd(b, data, indices)


@translates("Unique", domain=_DOMAIN)
def contrib_unique(b: Context, x: Value) -> tuple[Value, ...]:
    """In the order in which they are met: the numbers, which of them each is, and how many."""
    values, _, which, counts = unique(b, x, sorted=0)
    return values, which, counts


@translates("Pad", domain=_DOMAIN)
def contrib_pad(b: Context, x: Value, pads: Value, value: Value | None = None, *, mode: str = "constant") -> Value:
    """The pads may have an axis of size 1 in front."""
    return pad_11(b, x, b.emit("Reshape", pads, [-1], special_zero=False), value, mode=mode)


@translates("GridSample", domain=_DOMAIN)
def contrib_grid_sample(
    b: Context, x: Value, grid: Value, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Value:
    return grid_sample_16(b, x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


@translates("IsAllFinite", domain=_DOMAIN)
def is_all_finite(b: Context, *inputs: Value, isinf_only: int = 0, isnan_only: int = 0) -> Value:
    """Whether no number of all inputs is infinite or NaN, or only one of both."""
    if isinf_only and isnan_only:
        raise OpError("isinf_only and isnan_only exclude each other")
    kinds = ["IsInf"] * (not isnan_only) + ["IsNaN"] * (not isinf_only)
    odd: Expression | None = None
    for x in inputs:
        for kind in kinds:
            found = b.emit("ReduceLogicalOr", b.emit(kind, x), list(range(b.rank(x))), keep_dims=False)
            odd = Expression(b, found) if odd is None else odd | Expression(b, found)
    if odd is None:
        raise OpError("it has no inputs")
    return (~odd).value


@translates("CDist", domain=_DOMAIN)
def cdist(b: Context, x: Value, y: Value, *, metric: str = "sqeuclidean") -> Value:
    """The distances of all rows of one matrix from all of another."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise OpError(f"metric is {metric!r}, expected sqeuclidean or euclidean")
    apart = Expression(b, x).unsqueezed(1) - Expression(b, y).unsqueezed(0)
    squares = Expression(b, b.emit("ReduceSum", (apart * apart).value, [2], keep_dims=False))
    return squares.value if metric == "sqeuclidean" else squares.sqrt().value
