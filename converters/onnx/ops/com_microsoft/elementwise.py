"""com.microsoft: activations, other element-wise operators, and operators of ai.onnx or IR with other inputs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, TranslationContext
from converters.onnx.graphs import check_unrolled
from converters.onnx.ops.ai_onnx.elementwise import clip_1, hard_sigmoid, leaky_relu
from converters.onnx.ops.ai_onnx.generation import range_11
from converters.onnx.ops.ai_onnx.indexing import gather_nd, trilu, unique
from converters.onnx.ops.ai_onnx.movement import PadMode, pad_11
from converters.onnx.ops.ai_onnx.resampling import grid_sample
from converters.onnx.ops.ai_onnx.text import strings
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.messages import counted

_PARAMETERS = {
    "Relu": 0, "Tanh": 0, "Sigmoid": 0, "Silu": 0, "HardSwish": 0, "LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2
}  # fmt: skip
_NAMES_IN_IR = {"Silu": "Swish", "HardSwish": "HSwish"}


def fused_activation(ctx: TranslationContext, x: Value, name: str, parameters: Sequence[float] | None) -> Value:
    """The activation of this name, which ONNX Runtime has fused into an operator; "" means none.

    Raises:
        OpError: the name is unknown, or the number of parameters is wrong.
    """
    values = list(parameters or ())
    if not name:
        return x
    check(name in _PARAMETERS, f"activation {name!r} is not one of {', '.join(_PARAMETERS)}")
    if len(values) != _PARAMETERS[name]:
        raise OpError(f"activation {name} has {counted(len(values), 'parameter')}, expected {_PARAMETERS[name]}")
    if name == "LeakyRelu":
        return leaky_relu(ctx, x, alpha=values[0])
    if name == "Clip":
        return clip_1(ctx, x, min=values[0], max=values[1])
    if name == "HardSigmoid":
        return hard_sigmoid(ctx, x, alpha=values[0], beta=values[1])
    return ctx.emit(_NAMES_IN_IR.get(name, name), x)


@translates("SampleOp", domain=COM_MICROSOFT)
def sample_op(ctx: TranslationContext, x: Value) -> Value:
    """The input."""
    return x


@translates("Gelu", domain=COM_MICROSOFT)
def gelu(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Gelu", x, approximation_mode="erf")


@translates("BiasGelu", domain=COM_MICROSOFT)
def bias_gelu(ctx: TranslationContext, x: Value, bias: Value) -> Value:
    return gelu(ctx, ctx.added(x, bias))


@translates("FastGelu", domain=COM_MICROSOFT)
def fast_gelu(ctx: TranslationContext, x: Value, bias: Value | None = None) -> Value:
    return ctx.emit("Gelu", ctx.added(x, bias), approximation_mode="tanh")


@translates("QuickGelu", domain=COM_MICROSOFT)
def quick_gelu(ctx: TranslationContext, x: Value, *, alpha: float = 1.702) -> Value:
    """x * sigmoid(alpha * x)."""
    return ctx.emit("Swish", x, ctx.constant(alpha, x))


@translates("BiasSplitGelu", domain=COM_MICROSOFT)
def bias_split_gelu(ctx: TranslationContext, x: Value, bias: Value) -> Value:
    """The first half of the last axis times the Gelu of the second half."""
    halves = ctx.split(ctx.emit("Add", x, bias), ctx.rank(x) - 1, 2)
    return ctx.emit("Multiply", halves[0], gelu(ctx, halves[1]))


@translates("BiasSoftmax", domain=COM_MICROSOFT)
def bias_softmax(ctx: TranslationContext, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int) -> Value:
    """Softmax over the flattened axes from ``axis`` on, of data plus bias.

    The bias lacks the first axes of the data, or with is_inner_broadcast the last axes before ``axis``.
    """
    rank, first = ctx.rank(data), ctx.axis(axis, data)
    missing = rank - ctx.rank(bias)
    if missing > 0 and is_inner_broadcast:
        # The axes of the bias are the outer axes of the batch and those of the softmax.
        bias = ctx.unsqueeze(bias, list(range(first - missing, first)))
    summed = ctx.emit("Add", data, bias)
    if first == rank - 1:
        return ctx.emit("Softmax", summed, axis=first)
    flat = ctx.emit("Reshape", summed, [*[0] * first, -1], special_zero=True)
    return ctx.reshape_as(ctx.emit("Softmax", flat, axis=first), summed)


@translates("BiasAdd", domain=COM_MICROSOFT)
def bias_add(ctx: TranslationContext, x: Value, bias: Value, skip: Value) -> Value:
    return ctx.added(x, bias, skip)


@translates("ComplexMul", "ComplexMulConj", domain=COM_MICROSOFT)
def complex_mul(ctx: TranslationContext, x: Value, y: Value) -> Value:
    """The product of complex values, whose parts are on the last axis; that of ComplexMulConj with the conjugate."""
    parts: list[Expression] = []
    for side in (x, y):
        last = ctx.rank(side) - 1
        check(ctx.sizes(side)[last] == 2, f"the last axis of {ctx.fact(side)} does not have size 2")
        parts += [Expression(ctx, part) for part in ctx.split(side, last, 2)]
    real, imaginary, other_real, other_imaginary = parts
    other_imaginary = -other_imaginary if ctx.node.op_type == "ComplexMulConj" else other_imaginary
    product = [real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real]
    return ctx.emit("Concat", *(part.value for part in product), axis=-1)


@translates("CDist", domain=COM_MICROSOFT)
def cdist(
    ctx: TranslationContext, x: Value, y: Value, *, metric: Literal["sqeuclidean", "euclidean"] = "sqeuclidean"
) -> Value:
    """Distances between all rows of one matrix and all rows of another."""
    difference = Expression(ctx, x).unsqueeze(1) - Expression(ctx, y).unsqueeze(0)
    squares = (difference * difference).sum(2, keep=False)
    return squares.value if metric == "sqeuclidean" else squares.sqrt().value


@translates("IsAllFinite", domain=COM_MICROSOFT)
def is_all_finite(ctx: TranslationContext, *inputs: Value, isinf_only: int = 0, isnan_only: int = 0) -> Value:
    """True if all values are finite; with isinf_only, if none is infinite; with isnan_only, if none is NaN."""
    check(not isinf_only or not isnan_only, "isinf_only and isnan_only exclude each other")
    kinds = ["IsInf"] * (not isnan_only) + ["IsNaN"] * (not isinf_only)
    check(len(inputs) > 0, "it has no inputs")
    found = [
        Expression(ctx, ctx.emit("ReduceLogicalOr", ctx.emit(kind, x), list(range(ctx.rank(x))), keep_dims=False))
        for x in inputs for kind in kinds
    ]  # fmt: skip
    return (~functools.reduce(operator.or_, found)).value


@translates("Rfft", "Irfft", domain=COM_MICROSOFT)
def rfft(ctx: TranslationContext, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Value:
    """The transform over the last axes; that of Irfft is of complex values, whose parts are on one more axis."""
    if normalized or not onesided:
        raise OpError(f"normalized is {normalized} and onesided {onesided}, expected 0 and 1")
    inverse = ctx.node.op_type == "Irfft"
    end = ctx.rank(x) - inverse
    check(1 <= signal_ndim <= end, f"signal_ndim is {signal_ndim} for {ctx.fact(x)}")
    return ctx.emit("IRDFT" if inverse else "RDFT", x, ctx.constant(list(range(end - signal_ndim, end))))


translates("GatherND", domain=COM_MICROSOFT, without=["batch_dims"])(gather_nd)
translates("Trilu", domain=COM_MICROSOFT)(trilu)
translates("GridSample", domain=COM_MICROSOFT)(grid_sample)


@translates("TorchEmbedding", domain=COM_MICROSOFT)
def torch_embedding(
    ctx: TranslationContext, weight: Value, indices: Value, padding_idx: Value | None = None,
    scale_grad_by_freq: Value | None = None,
) -> Value:  # fmt: skip
    """Rows of a table; the other inputs matter to training."""
    return ctx.gather(weight, indices, 0)


@translates("ExpandDims", domain=COM_MICROSOFT)
def expand_dims(ctx: TranslationContext, x: Value, axis: Value) -> Value:
    return ctx.unsqueeze(x, list(ctx.ints(axis, "axis")))


@translates("Unique", domain=COM_MICROSOFT)
def contrib_unique(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """Distinct values in the order of first occurrence, the index of each element in them, and the counts."""
    values, _, which, counts = unique(ctx, x, sorted=0)
    return values, which, counts


@translates("Range", domain=COM_MICROSOFT)
def contrib_range(ctx: TranslationContext, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(ctx, start, limit, ctx.constant(1, start) if delta is None else delta)


@translates("Pad", domain=COM_MICROSOFT)
def contrib_pad(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, *, mode: PadMode = "constant"
) -> Value:
    """The pads may have a leading axis of size 1."""
    return pad_11(ctx, x, ctx.reshape(pads, [-1]), value, mode=mode)


@translates("Inverse", domain=COM_MICROSOFT)
def inverse(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Inverse", x, adjoint=False)


@translates("NGramRepeatBlock", domain=COM_MICROSOFT)
def n_gram_repeat_block(ctx: TranslationContext, input_ids: Matrix, scores: Matrix, *, ngram_size: int) -> Value:
    """-inf as the score of each token that would repeat ``ngram_size`` tokens of the text, (batch, length)."""
    check(ngram_size >= 1, f"ngram_size is {ngram_size}, expected 1 or more")
    check_unrolled(ngram_size, "the tokens to compare")
    length = Expression(ctx, ctx.size(input_ids, 1)).unsqueeze(0)
    count = (length - (ngram_size - 1)).maximum(0)

    def tokens(first: Expression | int, number: Expression) -> Expression:
        start = first if isinstance(first, Expression) else Expression(ctx, ctx.constant([first]))
        return Expression(ctx, ctx.slice(input_ids, start.value, (start + number).value, 1))

    banned, low = tokens(ngram_size - 1, count).value, Expression(ctx, ctx.constant(-np.inf, scores))
    same = [
        tokens(i, count).equals(tokens((length - (ngram_size - 1 - i)).maximum(0), count.minimum(1)))
        for i in range(ngram_size - 1)
    ]
    if same:
        updates = functools.reduce(operator.and_, same).select(low, np.inf).value
    else:
        updates = ctx.full(low.value, ctx.shape_of(banned))
    return ctx.emit(
        "ScatterElementsUpdate", scores, banned, updates, ctx.constant(1), reduction="min", use_init_val=True
    )


@translates("Tokenizer", domain=COM_MICROSOFT)
def tokenizer(
    ctx: TranslationContext, x: Value, *, mark: int, mincharnum: int, pad_value: str,
    separators: list[str] | None = None, tokenexp: str | None = None,
) -> Value:  # fmt: skip
    """Tokens between separators, or those that match an expression; an empty separator cuts between all characters."""
    if (separators is None) == (tokenexp is None):
        raise OpError("either separators or tokenexp must be given")
    check(mincharnum >= 1, f"mincharnum is {mincharnum}, expected 1 or more")
    mode, patterns = "separators", separators or []
    if tokenexp is not None:
        mode, patterns = "tokens", [tokenexp]
    elif patterns == [""]:
        mode, patterns = "characters", []
    return ctx.emit(
        "StringTokenizer", x, strings(ctx, patterns), strings(ctx, pad_value), mode=mode, mark=bool(mark),
        min_length=mincharnum,
    )  # fmt: skip
