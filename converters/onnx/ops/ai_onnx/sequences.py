"""Sequences of tensors, and optionals. Their structure must be known when the model is converted."""

from __future__ import annotations

from onnx import GraphProto, TypeProto

from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.onnx_values import EmptyOptional, LoopSequence, OnnxValue, StackedSequence, TensorSequence
from converters.onnx.registry import translates
from irexec.dtypes.elements import BOOLEAN
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value


@translates("SequenceConstruct", since=11)
def sequence_construct(ctx: TranslationContext, *inputs: Value) -> TensorSequence:
    return TensorSequence(inputs)


@translates("SequenceEmpty", since=11)
def sequence_empty(ctx: TranslationContext, *, dtype: int = 1) -> TensorSequence:
    return TensorSequence(())


def _index(ctx: TranslationContext, position: Value | None, count: int, default: int) -> int:
    """The position, counted from the front."""
    index = default if position is None else ctx.integer(position, "the position in a sequence")
    if not -count <= index < count:
        raise OpError(f"position {index} is out of range for a sequence of {count}")
    return index % count


@translates("SequenceInsert", since=11)
def sequence_insert(
    ctx: TranslationContext, sequence: TensorSequence | LoopSequence, tensor: Value, position: Value | None = None,
) -> TensorSequence | LoopSequence:  # fmt: skip
    """Insertion before the tensor at the position, or at the end."""
    if isinstance(sequence, LoopSequence) and position is None:
        return LoopSequence((*sequence.added, tensor))
    items = list(_items(sequence))
    count = len(items)
    index = count if position is None else ctx.integer(position, "the position in a sequence")
    if not -count <= index <= count:
        raise OpError(f"position {index} is out of range for a sequence of {count}")
    items.insert(index, tensor)
    return TensorSequence(tuple(items))


@translates("SequenceErase", since=11)
def sequence_erase(ctx: TranslationContext, sequence: TensorSequence, position: Value | None = None) -> TensorSequence:
    items = list(_items(sequence))
    del items[_index(ctx, position, len(items), -1)]
    return TensorSequence(tuple(items))


@translates("SequenceAt", since=11)
def sequence_at(ctx: TranslationContext, sequence: TensorSequence | StackedSequence, position: Value) -> Value:
    """The tensor at a position. For a position of run time, tensors of equal shape are stacked and indexed."""
    if isinstance(sequence, StackedSequence) and not sequence.first:
        return ctx.emit("Gather", sequence.rest, ctx.scalar(position), ctx.constant(0))
    items = _items(sequence)
    if ctx.ints_if_known(position) is not None:
        return items[_index(ctx, position, len(items), 0)]
    if (
        not items
        or len({(ctx.element(item), ctx.shape_if_known(item)) for item in items}) != 1
        or ctx.shape_if_known(items[0]) is None
    ):
        raise ConversionError(
            "a position that is not known, in a sequence of different shapes, cannot be converted", unsupported=True
        )
    return ctx.emit("Gather", _concatenated(ctx, items, 0, True), ctx.scalar(position), ctx.constant(0))


@translates("SequenceLength", since=11)
def sequence_length(ctx: TranslationContext, sequence: TensorSequence | StackedSequence) -> Value:
    if isinstance(sequence, StackedSequence):
        return ctx.emit("Add", ctx.size(sequence.rest, 0), ctx.constant(len(sequence.first)))
    return ctx.constant(len(_items(sequence)))


@translates("ConcatFromSequence", since=11)
def concat_from_sequence(
    ctx: TranslationContext, sequence: TensorSequence | StackedSequence, *, axis: int, new_axis: int = 0
) -> Value:
    if isinstance(sequence, StackedSequence):
        rest = _concatenated_rows(ctx, sequence.rest, axis, bool(new_axis))
        return (
            ctx.emit("Concat", _concatenated(ctx, sequence.first, axis, bool(new_axis)), rest, axis=axis)
            if sequence.first
            else rest
        )
    items = _items(sequence)
    if not items:
        raise OpError("an empty sequence cannot be concatenated")
    return _concatenated(ctx, items, axis, bool(new_axis))


def _concatenated_rows(ctx: TranslationContext, rows: Value, axis: int, stacked: bool) -> Value:
    """The rows stacked along a new axis, or concatenated along an existing one."""
    rank = ctx.rank(rows) - 1
    normal_axis = ctx.axis(axis, rank + stacked)
    order = [*range(1, rank + 1)]
    moved = ctx.transpose(rows, [*order[:normal_axis], 0, *order[normal_axis:]])
    if stacked:
        return moved
    shape = ctx.shape_of(moved)
    before, after = (
        ctx.emit("Slice", shape, [start], [stop], [1], [0])
        for start, stop in ((0, normal_axis), (normal_axis + 2, rank + 1))
    )
    return ctx.emit("Reshape", moved, ctx.emit("Concat", before, ctx.constant([-1]), after, axis=0), special_zero=False)


def _concatenated(ctx: TranslationContext, items: tuple[Value, ...], axis: int, stacked: bool) -> Value:
    if not stacked:
        return ctx.emit("Concat", *items, axis=axis)
    normal_axis = ctx.axis(axis, ctx.rank(items[0]) + 1)
    return ctx.emit("Concat", *(ctx.unsqueeze(item, [normal_axis]) for item in items), axis=normal_axis)


@translates("SplitToSequence", since=11)
def split_to_sequence(
    ctx: TranslationContext, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> TensorSequence:
    """Parts of the given lengths; or of one length, where the last may be shorter; or of length 1, with keepdims."""
    normal_axis = ctx.axis(axis, x)
    lengths = split if split is not None and ctx.rank(split, "split") else _lengths(ctx, x, split, normal_axis)
    if ctx.sizes(lengths)[0] == 0:
        return TensorSequence(())
    if not isinstance(ctx.sizes(lengths)[0], int):
        raise ConversionError(f"the number of tensors that {ctx.fact(x)} is split into is not known", unsupported=True)
    parts = ctx.emit("VariadicSplit", x, ctx.constant(normal_axis), lengths)
    if split is None and not keepdims:
        parts = [ctx.emit("Squeeze", part, [normal_axis]) for part in parts]
    return TensorSequence(tuple(parts))


def _lengths(ctx: TranslationContext, x: Value, split: Value | None, normal_axis: int) -> Value:
    """Lengths of parts of one length that cover the axis; the last may be shorter."""
    size = ctx.sizes(x)[normal_axis]
    length = 1 if split is None else ctx.integer(split, "split")
    if not isinstance(size, int) or length < 1:
        raise ConversionError(f"the number of tensors that {ctx.fact(x)} is split into is not known", unsupported=True)
    whole, rest = divmod(size, length)
    check_unrolled(whole, "the tensors of the sequence")
    return ctx.constant([length] * whole + [rest] * (rest > 0))


@translates("SequenceMap", since=17)
def sequence_map(
    ctx: TranslationContext, sequence: TensorSequence, *inputs: TensorSequence | Value, body: GraphProto
) -> tuple[TensorSequence, ...]:
    """The body for each tensor, with the tensors of other sequences at the same position, and other inputs."""
    items = _items(sequence)
    if any(isinstance(value, TensorSequence) and len(value.items) != len(items) for value in inputs):
        raise OpError("its sequences have different lengths")
    results = []
    for i, item in enumerate(items):
        arguments = [value.items[i] if isinstance(value, TensorSequence) else value for value in inputs]
        results.append(ctx.subgraph(body, [item, *arguments]))
    return tuple(TensorSequence(tuple(result[i] for result in results)) for i in range(len(body.output)))


@translates("Optional", since=15)
def optional(
    ctx: TranslationContext, element: Value | TensorSequence | None = None, *, type: TypeProto | None = None
) -> OnnxValue:
    return EmptyOptional() if element is None else element


@translates("OptionalHasElement", since=15)
def optional_has_element(
    ctx: TranslationContext, element: Value | TensorSequence | EmptyOptional | None = None
) -> Value:
    """True for a tensor and for a sequence."""
    return ctx.constant(not (element is None or isinstance(element, EmptyOptional)), BOOLEAN)


@translates("OptionalGetElement", since=15)
def optional_get_element(
    ctx: TranslationContext, element: Value | TensorSequence | EmptyOptional
) -> Value | TensorSequence:
    if isinstance(element, EmptyOptional):
        raise OpError("the optional has no element")
    return element


def _items(sequence: object) -> tuple[Value, ...]:
    if isinstance(sequence, LoopSequence | StackedSequence):
        raise ConversionError("a sequence that a loop appends to cannot be converted here", unsupported=True)
    if not isinstance(sequence, TensorSequence):
        raise OpError("its input is not a sequence of tensors")
    return sequence.items
