"""Products of matrices, Einsum, inverses, Fourier transforms, and constants that are added to a product."""

from __future__ import annotations

import string

import numpy as np
from onnx import NodeProto, helper

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.convolution import known_sizes
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.registry import composed, exact, recognises
from irexec.dtypes.elements import F32, F64, I64, Element
from irexec.errors import check
from irexec.ir.graph import Value


def transposed(ctx: ExportContext, matrices: Tensor) -> Tensor:
    """The last two axes swapped."""
    rank = matrices.require_rank("a matrix that is transposed")
    return ctx.transpose(matrices, [*range(rank - 2), rank - 1, rank - 2])


@exact("MatMul")
def matmul(ctx: ExportContext, a: Tensor, b: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    """MatMul; transposed matrices by Gemm, a product with a vector in the other order, others after a Transpose."""
    flags = transpose_a and a.rank != 1, transpose_b and b.rank != 1
    if any(flags) and a.rank == b.rank == 2 and a.element.is_float:
        return ctx.emit("Gemm", a, b, transA=int(flags[0]), transB=int(flags[1]))
    if flags[0] and b.rank == 1:
        # ONNX Runtime 1.32 fuses a Transpose into a product with a vector, and computes other values.
        return ctx.emit("MatMul", b, a)
    a, b = (transposed(ctx, x) if flag else x for x, flag in zip((a, b), flags, strict=True))
    return ctx.emit("MatMul", a, b)


@exact("Einsum")
def einsum(ctx: ExportContext, *inputs: Tensor, equation: str) -> Tensor:
    """Einsum, with an explicit output in lower case, and ellipses of the same rank."""
    terms, output = explicit_equation(equation.replace(" ", ""))
    if "..." in ",".join(terms):
        ranks = [
            x.require_rank("an input") - len(term.replace("...", "")) for x, term in zip(inputs, terms, strict=True)
        ]
        most = max(rank for rank, term in zip(ranks, terms, strict=True) if "..." in term)
        if "..." in output:
            inputs = tuple(
                ctx.unsqueeze(x, *range(term.index("..."), term.index("...") + most - rank))
                if "..." in term and rank < most else x
                for x, term, rank in zip(inputs, terms, ranks, strict=True)
            )  # fmt: skip
        else:
            # An ellipsis that is summed: its axes get letters.
            letters = [x for x in string.ascii_lowercase if x not in "".join(terms)][:most]
            terms = [
                term.replace("...", "".join(letters[most - rank :])) for term, rank in zip(terms, ranks, strict=True)
            ]
    return ctx.emit("Einsum", *inputs, equation=f"{','.join(terms)}->{output}")


def explicit_equation(equation: str) -> tuple[list[str], str]:
    """The terms of the inputs and of the output, in lower case.

    The output that is not written has the letters that occur once, in the order of the alphabet.
    """
    left, arrow, output = equation.partition("->")
    letters = sorted(set(left) - set(".,"))
    if not arrow:
        output = ("..." if "..." in left else "") + "".join(x for x in letters if left.count(x) == 1)
    lower = str.maketrans(dict(zip(letters, string.ascii_lowercase, strict=False)))
    return left.translate(lower).split(","), output.translate(lower)


@composed("GroupedMatMul")
def grouped_matmul(ctx: ExportContext, mat_a: Tensor, mat_b: Tensor, offsets: Tensor | None = None) -> Tensor:
    """MatMul; of groups of rows the product with each matrix, masked by the group of the row, and the sum."""
    if mat_b.require_rank("the matrices") == 2:
        return _summed_groups(ctx, mat_a, mat_b, offsets)
    b = transposed(ctx, mat_b)
    if mat_a.rank == 3 or offsets is None:
        return ctx.emit("MatMul", mat_a, b)
    inside = _group_of_row(ctx, mat_a, offsets)
    products = ctx.emit("MatMul", ctx.unsqueeze(mat_a, 0), b)
    masked = ctx.where(ctx.unsqueeze(inside, 2), products, ctx.scalar(0, products))
    return ctx.reduce("ReduceSum", masked, [0])


def _group_of_row(ctx: ExportContext, rows: Tensor, offsets: Tensor) -> Tensor:
    """Whether each row is in each group: [groups, rows]."""
    count = ctx.squeeze(ctx.slice(ctx.shape_of(rows), 0, 1, 0), 0)
    index = ctx.unsqueeze(ctx.emit("Range", ctx.constant(0), count, ctx.constant(1)), 0)
    stops = ctx.cast(offsets, I64)
    starts = ctx.concat(ctx.ints(0), ctx.slice(stops, 0, -1, 0))
    after = ctx.emit("GreaterOrEqual", index, ctx.unsqueeze(starts, 1))
    return ctx.emit("And", after, ctx.emit("Less", index, ctx.unsqueeze(stops, 1)))


def _summed_groups(ctx: ExportContext, a: Tensor, b: Tensor, offsets: Tensor | None) -> Tensor:
    if offsets is None:
        return ctx.emit("MatMul", a, b)
    inside = ctx.unsqueeze(_group_of_row(ctx, b, offsets), 1)
    columns = ctx.where(inside, ctx.unsqueeze(a, 0), ctx.scalar(0, a))
    return ctx.emit("MatMul", columns, ctx.unsqueeze(b, 0))


@composed("Inverse")
def inverse(ctx: ExportContext, data: Tensor, *, adjoint: bool) -> Tensor:
    """Gauss-Jordan elimination with pivots, unrolled: the size of the matrices is known."""
    size = data.require_shape("the matrices")[-1]
    check(isinstance(size, int) and size <= 64, "matrices of an unknown size, or larger than 64, are not unrolled")
    assert isinstance(size, int)
    kind = data.element
    if data.is_known_empty():
        return ctx.emit("Identity", data)
    work = ctx.cast(data, F64 if kind is F64 else F32)
    unit = ctx.emit("EyeLike", ctx.constant([[0.0] * size] * size, work.element), element=work.element)
    right = ctx.emit("Expand", unit, ctx.emit("Shape", data))
    both = ctx.emit("Concat", work, right, axis=-1)
    for column in range(size):
        both = _eliminated(ctx, both, column, size)
    result = ctx.slice(both, size, None, -1)
    if adjoint:
        rank = data.require_rank("the matrices")
        result = ctx.transpose(result, [*range(rank - 2), rank - 1, rank - 2])
    return ctx.cast(result, kind)


def _eliminated(ctx: ExportContext, both: Tensor, column: int, size: int) -> Tensor:
    """One step: the row with the largest pivot is swapped to its place, scaled, and subtracted from all others."""
    values = ctx.slice(both, column, column + 1, -1)
    below = ctx.emit("Abs", ctx.slice(values, column, None, -2))
    best = ctx.emit("Add", ctx.emit("ArgMax", below, axis=-2, keepdims=1), ctx.constant(column))
    index = ctx.constant([[row] for row in range(size)])
    is_best, is_column = ctx.emit("Equal", index, best), ctx.emit("Equal", index, ctx.constant(column))
    zero = ctx.scalar(0, both)
    pivot_row = ctx.reduce("ReduceSum", ctx.where(is_best, both, zero), [-2], keep=True)
    swapped = ctx.where(is_best, ctx.slice(both, column, column + 1, -2), both)
    scaled = ctx.emit("Div", pivot_row, ctx.slice(pivot_row, column, column + 1, -1))
    factors = ctx.slice(swapped, column, column + 1, -1)
    cleared = ctx.emit("Sub", swapped, ctx.emit("Mul", factors, scaled))
    return ctx.where(is_column, scaled, cleared)


def _work(kind: Element) -> Element:
    return F64 if kind is F64 else F32


def _dft(
    ctx: ExportContext, x: Tensor, axis: int | Tensor, size: int | None, inverse: bool = False, half: bool = False
) -> Tensor:
    """DFT along one axis, of data with pairs or single numbers along the last."""
    length = None if size is None else ctx.constant(size)
    if ctx.opset >= 20:
        along = axis if isinstance(axis, Tensor) else ctx.constant(axis)
        return ctx.emit("DFT", x, length, along, inverse=int(inverse), onesided=int(half))
    check(not isinstance(axis, Tensor), "ONNX has no computed axes of DFT before opset 20")
    return ctx.emit("DFT", x, length, axis=axis, inverse=int(inverse), onesided=int(half))


def _plan(
    ctx: ExportContext, axes: Tensor, signal_size: Tensor | None, rank: int
) -> list[tuple[int | Tensor, int | None]]:
    """Each transformed axis with its size; None keeps that of the data."""
    count = known_sizes(axes.shape, 0)
    check(count is not None, "the number of axes is not known")
    number = (count or (0,))[0]
    given = [-1] * number if signal_size is None else list(signal_size.require_ints("signal_size"))
    sizes = [None if size == -1 else size for size in given]
    if axes.value is not None:
        return list(zip([axis % rank for axis in axes.require_ints("the axes")], sizes, strict=True))
    vector = as_i64(ctx, axes)
    wrapped = ctx.where(ctx.emit("Less", vector, ctx.ints(0)), ctx.emit("Add", vector, ctx.ints(rank)), vector)
    return [(ctx.emit("Gather", wrapped, ctx.constant(i)), size) for i, size in enumerate(sizes)]


@composed("DFT", "IDFT")
def dft(ctx: ExportContext, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """DFT of each axis, from opset 17 on."""
    x = ctx.cast(data, _work(data.element))
    for axis, size in _plan(ctx, axes, signal_size, data.require_rank("the data") - 1):
        x = _dft(ctx, x, axis, size, inverse=ctx.node.type == "IDFT")
    return ctx.cast(x, data.element)


@composed("RDFT")
def rdft(ctx: ExportContext, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """DFT of the last axis, one-sided, then of the others, from opset 17 on."""
    *others, (last, size) = _plan(ctx, axes, signal_size, data.require_rank("the data"))
    x = ctx.unsqueeze(ctx.cast(data, _work(data.element)), -1)
    x = _dft(ctx, x, last, size, half=True)
    for axis, other in others:
        x = _dft(ctx, x, axis, other)
    return ctx.cast(x, data.element)


@composed("IRDFT")
def irdft(ctx: ExportContext, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """The redundant half, conjugates of the other in reverse; then inverse DFT of each axis, and the real part."""
    rank = data.require_rank("the data") - 1
    *others, (last, size) = _plan(ctx, axes, signal_size, rank)
    check(isinstance(last, int), "the axes are computed when the model runs")
    assert isinstance(last, int)
    sizes = known_sizes(data.shape, 0)
    check(sizes is not None, "the sizes of the data are not known")
    assert sizes is not None
    whole = max(2 * (sizes[last] - 1), 0) if size is None else size
    check(whole > 0, "a transform of no points")
    x = ctx.cast(data, _work(data.element))
    for axis, other in others:
        x = _dft(ctx, x, axis, other, inverse=True)
    x = _whole_spectrum(ctx, x, last, whole, sizes[last], rank)
    x = _dft(ctx, x, last, whole, inverse=True)
    return ctx.cast(ctx.squeeze(ctx.slice(x, 0, 1, -1), -1), data.element)


def _whole_spectrum(ctx: ExportContext, x: Tensor, axis: int, size: int, given: int, rank: int) -> Tensor:
    """The points 0 to size // 2 of real data, cut or padded with zeros, and the conjugates that follow from them."""
    half = size // 2 + 1
    if given > half:
        x = ctx.slice(x, 0, half, axis)
    elif given < half:
        pads = [0] * (2 * rank + 2)
        pads[rank + 1 + axis] = half - given
        x = ctx.emit("Pad", x, ctx.ints(*pads))
    if size <= 2:
        return x
    mirrored = ctx.emit("Slice", x, ctx.ints(size - half), ctx.ints(0), ctx.ints(axis), ctx.ints(-1))
    sign = ctx.constant(np.array([1.0, -1.0]), x.element)
    return ctx.concat(x, ctx.emit("Mul", mirrored, sign), axis=axis)


def _frame_window(ctx: ExportContext, window: Tensor, size: Tensor, kind: Element) -> Tensor:
    """The window in the middle of a frame."""
    missing = ctx.emit("Sub", ctx.reshape(size, [1]), ctx.shape_of(window))
    before = ctx.emit("Div", missing, ctx.ints(2))
    return ctx.emit("Pad", ctx.cast(window, kind), ctx.concat(before, ctx.emit("Sub", missing, before)))


@composed("STFT")
def stft(
    ctx: ExportContext, signal: Tensor, window: Tensor, frame_size: Tensor, frame_step: Tensor, *,
    transpose_frames: bool,
) -> Tensor:  # fmt: skip
    """STFT, one-sided, of a window that is padded to the frame."""
    kind, rank = _work(signal.element), signal.require_rank("the signal")
    size, step = (ctx.reshape(as_i64(ctx, x), []) for x in (frame_size, frame_step))
    x = ctx.unsqueeze(ctx.cast(signal, kind), *((0, -1) if rank == 1 else (-1,)))
    points = ctx.emit("STFT", x, step, _frame_window(ctx, window, size, kind), size, onesided=1)
    if transpose_frames:
        points = ctx.transpose(points, [0, 2, 1, 3])
    return ctx.cast(ctx.squeeze(points, 0) if rank == 1 else points, signal.element)


@composed("ISTFT")
def istft(
    ctx: ExportContext, data: Tensor, window: Tensor, frame_size: Tensor, frame_step: Tensor,
    signal_length: Tensor | None = None, *, center: bool, normalized: bool,
) -> Tensor:  # fmt: skip
    """The redundant half of each frame, inverse DFT, Mul by the window, ScatterND that adds, Div by the sum of squares
    of windows, from opset 17 on."""
    kind, rank = _work(data.element), data.require_rank("the data")
    size, step = (x.require_ints(name)[0] for x, name in ((frame_size, "frame_size"), (frame_step, "frame_step")))
    x = ctx.unsqueeze(ctx.cast(data, kind), 0) if rank == 3 else ctx.cast(data, kind)
    x = _whole_spectrum(ctx, ctx.transpose(x, [0, 2, 1, 3]), 2, size, size // 2 + 1, 3)
    frames = ctx.squeeze(ctx.slice(_dft(ctx, x, 2, size, inverse=True), 0, 1, -1), -1)
    shape = _frame_window(ctx, window, ctx.constant(size), kind)
    squares = ctx.emit("Expand", ctx.emit("Mul", shape, shape), ctx.concat(
        ctx.ints(1), ctx.slice(ctx.emit("Shape", frames), 1, 2, 0), ctx.ints(size)))  # fmt: skip
    total = _overlap_added(ctx, ctx.emit("Mul", frames, shape), size, step)
    weight = _overlap_added(ctx, squares, size, step)
    if normalized:
        total = ctx.emit("Mul", total, ctx.scalar(float(np.sqrt(np.float32(size))), total))
    zero = ctx.scalar(0, weight)
    is_zero = ctx.emit("Equal", weight, zero)
    signal = ctx.where(is_zero, zero, ctx.emit("Div", total, ctx.where(is_zero, ctx.scalar(1, weight), weight)))
    signal = _with_length(ctx, signal, size // 2 if center else 0, signal_length)
    return ctx.cast(ctx.squeeze(signal, 0) if rank == 3 else signal, data.element)


def _overlap_added(ctx: ExportContext, frames: Tensor, size: int, step: int) -> Tensor:
    """The sum of frames (batch, frames, size) at a distance of ``step``: (batch, length)."""
    check(ctx.opset >= 16, f"ONNX's ScatterND of opset {ctx.opset} does not add")
    sizes = ctx.emit("Shape", frames)
    batch, count = ctx.slice(sizes, 0, 1, 0), ctx.slice(sizes, 1, 2, 0)
    number = ctx.emit("Range", ctx.constant(0), ctx.reshape(count, []), ctx.constant(1))
    starts = ctx.unsqueeze(ctx.emit("Mul", number, ctx.constant(step)), 1)
    places = ctx.reshape(ctx.emit("Add", starts, ctx.constant(np.arange(size))), [-1, 1])
    steps = ctx.emit("Mul", ctx.emit("Sub", count, ctx.ints(1)), ctx.ints(step))
    length = ctx.emit("Max", ctx.emit("Add", steps, ctx.ints(size)), ctx.ints(0))
    empty = ctx.emit("Expand", ctx.scalar(0, frames), ctx.concat(length, batch))
    values = ctx.emit("Reshape", ctx.transpose(frames, [1, 2, 0]),
                      ctx.concat(ctx.emit("Mul", count, ctx.ints(size)), batch), allowzero=1)  # fmt: skip
    return ctx.transpose(ctx.emit("ScatterND", empty, places, values, reduction="add"), [1, 0])


def _with_length(ctx: ExportContext, signal: Tensor, margin: int, length: Tensor | None) -> Tensor:
    """The signal (batch, length) without its first ``margin`` elements, cut or padded with zeros to a length; without
    as many at its end if none is given."""
    if length is None:
        return ctx.slice(signal, margin, -margin or None, 1)
    wanted = ctx.reshape(as_i64(ctx, length), [1])
    rest = ctx.slice(signal, margin, None, 1)
    missing = ctx.emit("Sub", wanted, ctx.slice(ctx.emit("Shape", rest), 1, 2, 0))
    pads = ctx.concat(ctx.ints(0, 0, 0), ctx.emit("Max", missing, ctx.ints(0)))
    return ctx.emit("Slice", ctx.emit("Pad", rest, pads), ctx.ints(0), wanted, ctx.ints(1))


_PRODUCTS = {
    "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MatMul",
}  # fmt: skip


@recognises("Add")
def biased(ctx: ExportContext) -> Tensor | None:
    """Add(product, bias), where nothing else reads the product: the product's node with the bias."""
    for product, bias in (ctx.node.inputs, ctx.node.inputs[::-1]):
        if product is not None and product.node.type in _PRODUCTS and ctx.writer.state.used[product] == 1:
            return None if bias is None else _with_bias(ctx, product, ctx.writer.tensor(bias))
    return None


def _with_bias(ctx: ExportContext, product: Value, bias: Tensor) -> Tensor | None:
    result = ctx.writer.tensor(product)
    node = next((node for node in reversed(ctx.graph.nodes) if result.name in node.output), None)
    # Integers and types without a kernel are converted after the product.
    if node is None or len(node.input) != 2 or not result.element.is_float or bias.constant is None:
        return None
    type, shape = _biased_operator(ctx, node, product), bias.require_shape("the bias")
    rank = result.rank
    if type is None or rank is None or result.shape is None or len(shape) > rank:
        return None
    # Conv adds a number to each channel, Gemm to each column.
    axis = 1 if type != "Gemm" else rank - 1
    sizes = [1] * (rank - len(shape)) + [size if isinstance(size, int) else 0 for size in shape]
    if sizes != [result.shape[axis] if i == axis else 1 for i in range(rank)] or result.is_known_empty():
        return None
    inputs = [Tensor(name, result.element) for name in node.input]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    return ctx.emit(type, *inputs, ctx.reshape(bias, [sizes[axis]]), **attributes)


def _biased_operator(ctx: ExportContext, node: NodeProto, product: Value) -> str | None:
    """The operator that takes a bias, in place of the node; None if there is none."""
    if node.op_type in ("Conv", "ConvTranspose", "Gemm"):
        return node.op_type
    if node.op_type != "MatMul":
        return None
    matrices = [None if value is None else ctx.writer.tensor(value).rank for value in product.node.inputs]
    return "Gemm" if matrices == [2, 2] else None
