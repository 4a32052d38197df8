"""Control flow: If, Loop and Scan, whose subgraphs become bodies; sequences of tensors, and optionals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, TypeProto

from converters.onnx.body_builder import BodyBuilder, IterationResult, IterationSlice, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_unrolled
from converters.onnx.registry import translates
from converters.onnx.tensors import EmptyOptional, LoopSequence, OnnxValue, StackedSequence, TensorSequence
from irexec.dtypes.elements import BOOLEAN, I64
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.messages import counted

_NO_LIMIT = np.iinfo(np.int64).max


@translates("If")
def if_1(
    ctx: TranslationContext, cond: Value, *, then_branch: GraphProto, else_branch: GraphProto
) -> tuple[OnnxValue, ...]:
    """A branch replaces the If where the condition is known, such as a condition on ranks or known sizes."""
    known = ctx.known(cond)
    if known is not None and known.size == 1:
        return tuple(ctx.subgraph_values(then_branch if known.reshape(-1)[0] else else_branch))
    # IR allows ranks 0 and 1, ONNX any rank with a single element.
    inputs, builders = [ctx.scalar(cond) if (ctx.fact(cond).rank or 0) > 1 else cond], {}
    kinds = []
    for name, graph in (("then_body", then_branch), ("else_body", else_branch)):
        builders[name] = builder = BodyBuilder(ctx, inputs, reserved=1)
        outputs = builder.inner.subgraph(graph)
        kinds.append([builder.inner.element(value) for value in outputs])
        for i, value in enumerate(outputs):
            builder.result(value, i)
    if kinds[0] != kinds[1]:
        types = [", ".join(map(str, kind)) or "nothing" for kind in kinds]
        raise OpError(f"its branches return {types[0]} and {types[1]}")
    outputs_of_both: tuple[Value, ...] = ctx.emit(
        "If", *inputs, bodies={name: builder.body() for name, builder in builders.items()}
    )
    return outputs_of_both


@translates("Loop")
def loop(
    ctx: TranslationContext, trip_count: Value | None = None, condition: Value | None = None,
    *initial: Value | TensorSequence, body: GraphProto,
) -> tuple[OnnxValue, ...]:  # fmt: skip
    """The last states, then the scan outputs, to which every iteration adds a slice.

    Without a condition input the loop also stops when the condition of the body becomes false, as in ONNX Runtime and
    OpenVINO; the specification would ignore that condition. The body's condition input is always true. A sequence to
    which the body appends one tensor per iteration is a scan output too.
    """
    _check_body(body, 2 + len(initial), 1 + len(initial))
    if not all(isinstance(one, Value | TensorSequence) for one in initial):
        raise ConversionError("a sequence of unknown length, or an optional, is an input of the loop", unsupported=True)
    first = ctx.constant(True) if condition is None else condition
    if any(size != 1 for size in ctx.shape_if_known(first) or ()):
        raise OpError(f"the condition {ctx.fact(first)} does not have one element")
    inside = np.ones(ctx.shape_if_known(first) or (), np.bool_)
    counter = (1,) if len(body.input[0].type.tensor_type.shape.dim) == 1 else ()

    def iteration(builder: BodyBuilder, states: list[Value], iteration_index: list[Value]) -> IterationResult:
        given = iter(states)
        initial_values = [next(given) if isinstance(one, Value) else LoopSequence() for one in initial]
        condition_out, *outputs = builder.inner.subgraph_values(
            body, [*iteration_index, builder.inner.constant(inside), *initial_values]
        )
        last, parts = _body_outputs(outputs, initial)
        return IterationResult(
            last, [_as_slice(builder.inner, value, IterationSlice(0)) for value in parts], _tensor(condition_out)
        )

    tensors = [one for one in initial if isinstance(one, Value)]
    outputs = build_loop(ctx, tensors, [], iteration, bounds=(_trip_limit(ctx, trip_count), first), counter=counter)
    states, parts = iter(outputs[: len(tensors)]), iter(outputs[len(tensors) :])
    last = [next(states) if isinstance(one, Value) else StackedSequence(one.items, next(parts)) for one in initial]
    return (*last, *parts)


def _body_outputs(
    outputs: Sequence[OnnxValue], initial: Sequence[Value | TensorSequence]
) -> tuple[list[Value], list[Value]]:
    """The outputs of a body: the tensor states; then the tensors appended to sequences, with the scan outputs."""
    states: list[Value] = []
    parts: list[Value] = []
    for output, one in zip(outputs, initial, strict=False):
        if isinstance(one, Value):
            states.append(_tensor(output))
        elif isinstance(output, LoopSequence) and len(output.added) == 1:
            parts += output.added
        else:
            raise ConversionError("its body does more to a sequence than append one tensor", unsupported=True)
    return states, parts + [_tensor(output) for output in outputs[len(initial) :]]


def _tensor(output: OnnxValue) -> Value:
    if not isinstance(output, Value):
        raise ConversionError("its body returns a sequence in place of a tensor", unsupported=True)
    return output


def _check_body(body: GraphProto, inputs: int, outputs: int) -> None:
    if len(body.input) != inputs or len(body.output) < outputs:
        found = f"{counted(len(body.input), 'input')} and {counted(len(body.output), 'output')}"
        raise OpError(f"its body has {found}, expected {inputs} and at least {outputs}")


def _trip_limit(ctx: TranslationContext, trip_count: Value | None) -> Value:
    """The trip count of IR: a negative one means unlimited in IR, and no iteration in ONNX."""
    if trip_count is None:
        return ctx.constant(-1)
    known = None if ctx.ints_if_known(trip_count) is None else ctx.integer(trip_count, "the trip count")
    if known == _NO_LIMIT:
        return ctx.constant(-1)
    if known is not None and known >= 0:
        return trip_count
    return ctx.emit("Maximum", trip_count, ctx.constant(0))


def _as_slice(ctx: TranslationContext, value: Value, part: IterationSlice) -> tuple[Value, IterationSlice]:
    """The value of one iteration as a slice of a scan output: with one more axis."""
    axis = ctx.axis(part.axis, ctx.rank(value, "an output of the body") + 1)
    return ctx.unsqueeze(value, [axis]), IterationSlice(axis, part.reverse)


@translates("Scan", since=9)
def scan_9(
    ctx: TranslationContext, *inputs: Value, body: GraphProto, num_scan_inputs: int,
    scan_input_axes: list[int] | None = None, scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None, scan_output_directions: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """A scan of tensors along any axis in either direction; the states are the first inputs."""
    states, scanned = _states_and_scanned(inputs, num_scan_inputs)
    _check_body(body, len(inputs), len(states))
    given = _slices("scan_input", scan_input_axes, scan_input_directions, len(scanned))
    output_slices = _slices("scan_output", scan_output_axes, scan_output_directions, len(body.output) - len(states))
    sliced = [
        (value, IterationSlice(ctx.axis(part.axis, value), part.reverse))
        for value, part in zip(scanned, given, strict=True)
    ]
    return _scan(ctx, states, sliced, output_slices, body)


def _states_and_scanned(inputs: Sequence[Value], scanned: int) -> tuple[Sequence[Value], Sequence[Value]]:
    if not 1 <= scanned <= len(inputs):
        raise OpError(f"num_scan_inputs is {scanned} of {len(inputs)} inputs")
    return inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]


def _slices(
    name: str, axes: Sequence[int] | None, directions: Sequence[int] | None, count: int
) -> list[IterationSlice]:
    """The attributes ``name``_axes and ``name``_directions; 0 unless given."""
    chosen, order = list(axes or [0] * count), list(directions or [0] * count)
    if len(chosen) != count or len(order) != count or not set(order) <= {0, 1}:
        raise OpError(
            f"{name}_axes are {chosen} and {name}_directions {order}, expected {count} of each, directions 0 or 1"
        )
    return [IterationSlice(axis, bool(reverse)) for axis, reverse in zip(chosen, order, strict=True)]


def _scan(
    ctx: TranslationContext, states: Sequence[Value], sliced: Sequence[tuple[Value, IterationSlice]],
    output_slices: Sequence[IterationSlice], body: GraphProto,
) -> tuple[Value, ...]:  # fmt: skip
    def iteration(builder: BodyBuilder, given: list[Value], parts: list[Value]) -> IterationResult:
        inner = builder.inner
        whole = [inner.emit("Squeeze", value, [part.axis]) for value, (_, part) in zip(parts, sliced, strict=True)]
        outputs = inner.subgraph(body, [*given, *whole])
        count = len(given)
        return IterationResult(
            outputs[:count],
            [_as_slice(inner, value, part) for value, part in zip(outputs[count:], output_slices, strict=True)],
        )

    return build_loop(ctx, states, sliced, iteration)


@translates("Scan", since=8)
def scan_8(
    ctx: TranslationContext, sequence_lens: Value | None = None, *inputs: Value, body: GraphProto, num_scan_inputs: int,
    directions: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """A scan of each sample of the batch, axis 0; results after the end of a sequence are 0."""
    initial, scanned = _states_and_scanned(inputs, num_scan_inputs)
    _check_body(body, len(inputs), len(initial))
    reversals = _slices("scan_input", None, directions, len(scanned))
    lengths = [] if sequence_lens is None else [ctx.convert(sequence_lens, I64)]
    sliced = [(value, IterationSlice(0)) for value in [*initial, *scanned, *lengths]]

    def iteration(builder: BodyBuilder, _: list[Value], parts: list[Value]) -> IterationResult:
        inner = builder.inner
        one = [inner.emit("Squeeze", value, [0]) for value in parts[: len(inputs)]]
        states, rows = one[: len(initial)], one[len(initial) :]
        length = parts[-1] if lengths else None
        used = [row if length is None else inner.emit("Slice", row, [0], length, [1], [0]) for row in rows]
        output_slices = [IterationSlice(0)] * (len(body.output) - len(states))
        outputs = _scan(inner, states, list(zip(used, reversals, strict=True)), output_slices, body)
        padded = [_zero_padded(inner, value, rows[0], length) for value in outputs[len(states) :]]
        return IterationResult(
            [], [_as_slice(inner, value, IterationSlice(0)) for value in [*outputs[: len(states)], *padded]]
        )

    return build_loop(ctx, [], sliced, iteration)


def _zero_padded(ctx: TranslationContext, value: Value, row: Value, length: Value | None) -> Value:
    """The results of a sequence, padded with zeros to the longest sequence."""
    if length is None:
        return value
    rest = ctx.emit("Subtract", ctx.reshape(ctx.size(row, 0), [1]), length)
    none = ctx.constant([0] * (ctx.rank(value) - 1))
    pads_end = ctx.emit("Concat", rest, none, axis=0) if ctx.rank(value) > 1 else rest
    return ctx.emit("Pad", value, [0] * ctx.rank(value), pads_end, ctx.constant(0, value), pad_mode="constant")


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
