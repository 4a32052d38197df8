"""Sequences of tensors and optionals, whose structure must be known when the model is converted."""

from __future__ import annotations

from onnx import GraphProto, TypeProto

from converters.onnx.context import Context
from converters.onnx.registry import translates
from converters.onnx.values import EmptyOptional, LoopSequence, OnnxValue, StackedSequence, TensorSequence
from irexec.dtypes.elements import BOOLEAN
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value


@translates("SequenceConstruct", since=11)
def sequence_construct(b: Context, *inputs: Value) -> TensorSequence:
    return TensorSequence(inputs)


@translates("SequenceEmpty", since=11)
def sequence_empty(b: Context, *, dtype: int = 1) -> TensorSequence:
    return TensorSequence(())


def _place(b: Context, position: Value | None, count: int, default: int) -> int:
    """A position counted from the front."""
    place = default if position is None else b.ints(position, "the position in a sequence")[0]
    if not -count <= place < count:
        raise OpError(f"position {place} is out of range for a sequence of {count}")
    return place % count


@translates("SequenceInsert", since=11)
def sequence_insert(
    b: Context, sequence: TensorSequence | LoopSequence, tensor: Value, position: Value | None = None
) -> TensorSequence | LoopSequence:  # fmt: skip
    """Before the one at the position, or at the end."""
    if isinstance(sequence, LoopSequence) and position is None:
        return LoopSequence((*sequence.added, tensor))
    items = list(_items(sequence))
    count = len(items)
    place = count if position is None else b.ints(position, "the position in a sequence")[0]
    if not -count <= place <= count:
        raise OpError(f"position {place} is out of range for a sequence of {count}")
    items.insert(place, tensor)
    return TensorSequence(tuple(items))


@translates("SequenceErase", since=11)
def sequence_erase(b: Context, sequence: TensorSequence, position: Value | None = None) -> TensorSequence:
    items = list(_items(sequence))
    del items[_place(b, position, len(items), -1)]
    return TensorSequence(tuple(items))


@translates("SequenceAt", since=11)
def sequence_at(b: Context, sequence: TensorSequence | StackedSequence, position: Value) -> Value:
    """Where the position is known only later, tensors of one shape are put together and one is taken."""
    if isinstance(sequence, StackedSequence) and not sequence.first:
        return b.emit("Gather", sequence.rest, b.scalar(position), b.constant(0))
    items = _items(sequence)
    if b.ints_if_known(position) is not None:
        return items[_place(b, position, len(items), 0)]
    if not items or len({(b.element(item), b.shape_if_known(item)) for item in items}) != 1 or b.shape_if_known(items[0]) is None:
        raise ConversionError("a position that is not known, in a sequence of several shapes, cannot be converted", unsupported=True)
    return b.emit("Gather", _joined(b, items, 0, True), b.scalar(position), b.constant(0))


@translates("SequenceLength", since=11)
def sequence_length(b: Context, sequence: TensorSequence | StackedSequence) -> Value:
    if isinstance(sequence, StackedSequence):
        return b.emit("Add", b.size(sequence.rest, 0), b.constant(len(sequence.first)))
    return b.constant(len(_items(sequence)))


@translates("ConcatFromSequence", since=11)
def concat_from_sequence(b: Context, sequence: TensorSequence | StackedSequence, *, axis: int, new_axis: int = 0) -> Value:
    if isinstance(sequence, StackedSequence):
        rest = _side_by_side(b, sequence.rest, axis, bool(new_axis))
        return b.emit("Concat", _joined(b, sequence.first, axis, bool(new_axis)), rest, axis=axis) if sequence.first else rest
    items = _items(sequence)
    if not items:
        raise OpError("a sequence of no tensors cannot be joined")
    return _joined(b, items, axis, bool(new_axis))


def _side_by_side(b: Context, rows: Value, axis: int, stacked: bool) -> Value:
    """The rows along an axis: a new one, or one that they have, which then is longer."""
    rank = b.rank(rows) - 1
    place = b.axis(axis, rank + stacked)
    order = [*range(1, rank + 1)]
    moved = b.transpose(rows, [*order[:place], 0, *order[place:]])
    if stacked:
        return moved
    shape = b.shape_of(moved)
    before, after = (b.emit("Slice", shape, [start], [stop], [1], [0]) for start, stop in ((0, place), (place + 2, rank + 1)))
    return b.emit("Reshape", moved, b.emit("Concat", before, b.constant([-1]), after, axis=0), special_zero=False)


def _joined(b: Context, items: tuple[Value, ...], axis: int, stacked: bool) -> Value:
    if not stacked:
        return b.emit("Concat", *items, axis=axis)
    place = b.axis(axis, b.rank(items[0]) + 1)
    return b.emit("Concat", *(b.unsqueeze(item, [place]) for item in items), axis=place)


@translates("SplitToSequence", since=11)
def split_to_sequence(b: Context, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1) -> TensorSequence:
    """Into parts of the lengths given, or of one length, the last of which may be shorter, or of 1; then keepdims counts."""
    place = b.axis(axis, x)
    lengths = split if split is not None and b.rank(split, "split") else _lengths(b, x, split, place)
    if b.sizes(lengths)[0] == 0:
        return TensorSequence(())
    if not isinstance(b.sizes(lengths)[0], int):
        raise ConversionError(f"into how many tensors {b.fact(x)} is split is not known", unsupported=True)
    parts = b.emit("VariadicSplit", x, b.constant(place), lengths)
    if split is None and not keepdims:
        parts = [b.emit("Squeeze", part, [place]) for part in parts]
    return TensorSequence(tuple(parts))


def _lengths(b: Context, x: Value, split: Value | None, place: int) -> Value:
    """Of parts of one length, which the axis has room for, and of what is left."""
    size = b.sizes(x)[place]
    length = 1 if split is None else b.ints(split, "split")[0]
    if not isinstance(size, int) or length < 1:
        raise ConversionError(f"into how many tensors {b.fact(x)} is split is not known", unsupported=True)
    whole, rest = divmod(size, length)
    return b.constant([length] * whole + [rest] * (rest > 0))


@translates("SequenceMap", since=17)
def sequence_map(b: Context, sequence: TensorSequence, *inputs: TensorSequence | Value, body: GraphProto) -> tuple[TensorSequence, ...]:
    """The body once for each tensor; other sequences go along, other tensors are the same each time."""
    items = _items(sequence)
    if any(isinstance(value, TensorSequence) and len(value.items) != len(items) for value in inputs):
        raise OpError("its sequences are of several lengths")
    results = []
    for i, item in enumerate(items):
        given = [value.items[i] if isinstance(value, TensorSequence) else value for value in inputs]
        results.append(b.subgraph(body, [item, *given]))
    return tuple(TensorSequence(tuple(result[i] for result in results)) for i in range(len(body.output)))


@translates("Optional", since=15)
def optional(b: Context, element: Value | TensorSequence | None = None, *, type: TypeProto | None = None) -> OnnxValue:
    return EmptyOptional() if element is None else element


@translates("OptionalHasElement", since=15)
def optional_has_element(b: Context, element: Value | TensorSequence | EmptyOptional | None = None) -> Value:
    """A tensor or a sequence is there itself."""
    return b.constant(not (element is None or isinstance(element, EmptyOptional)), BOOLEAN)


@translates("OptionalGetElement", since=15)
def optional_get_element(b: Context, element: Value | TensorSequence | EmptyOptional) -> Value | TensorSequence:
    if isinstance(element, EmptyOptional):
        raise OpError("the optional has no element")
    return element


def _items(sequence: object) -> tuple[Value, ...]:
    if isinstance(sequence, LoopSequence | StackedSequence):
        raise ConversionError("a loop makes its sequence longer, which cannot be converted here", unsupported=True)
    if not isinstance(sequence, TensorSequence):
        raise OpError("its input is no sequence of tensors")
    return sequence.items
