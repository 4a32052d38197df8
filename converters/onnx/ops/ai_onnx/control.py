"""Control flow: If, Loop and Scan, whose subgraphs become bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from converters.onnx.bodies import Frame, Part, Step, iterate
from converters.onnx.context import Context
from converters.onnx.registry import translates
from converters.onnx.values import LoopSequence, OnnxValue, StackedSequence, TensorSequence
from irexec.dtypes.elements import I64
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value

_WITHOUT_END = np.iinfo(np.int64).max


@translates("If")
def if_1(b: Context, cond: Value, *, then_branch: GraphProto, else_branch: GraphProto) -> tuple[OnnxValue, ...]:
    """Where the condition is known already, as one on ranks or known sizes is, the branch stands in place of the If."""
    known = b.known(cond)
    if known is not None and known.size == 1:
        return tuple(b.subgraph_values(then_branch if known.reshape(-1)[0] else else_branch))
    inputs, frames = [cond], {}
    kinds = []
    for name, graph in (("then_body", then_branch), ("else_body", else_branch)):
        frames[name] = frame = Frame(b, inputs, reserved=1)
        outputs = frame.inner.subgraph(graph)
        kinds.append([frame.inner.element(value) for value in outputs])
        for i, value in enumerate(outputs):
            frame.result(value, i)
    if kinds[0] != kinds[1]:
        texts = [", ".join(map(str, kind)) or "nothing" for kind in kinds]
        raise OpError(f"its branches give {texts[0]} and {texts[1]}")
    outputs_of_both: tuple[Value, ...] = b.emit("If", *inputs, bodies={name: frame.body() for name, frame in frames.items()})
    return outputs_of_both


@translates("Loop")
def loop(
    b: Context, trip_count: Value | None = None, condition: Value | None = None, *initial: Value | TensorSequence, body: GraphProto
) -> tuple[OnnxValue, ...]:  # fmt: skip
    """The states come first, then the tensors of which every iteration gives a part.

    Without a condition the loop still ends when the body's own fails: so do ONNX Runtime and OpenVINO, where the
    specification would ignore it. Inside the body the condition always holds. A sequence may get one tensor behind it in
    each iteration; these are put together like any other parts.
    """
    _check_body(body, 2 + len(initial), 1 + len(initial))
    if not all(isinstance(one, Value | TensorSequence) for one in initial):
        raise ConversionError("a sequence whose length is not known, or an optional, goes into it", unsupported=True)
    first = b.constant(True) if condition is None else condition
    inside = np.ones(b.shape_if_known(first) or (), np.bool_)
    counter = (1,) if len(body.input[0].type.tensor_type.shape.dim) == 1 else ()

    def step(frame: Frame, states: list[Value], number: list[Value]) -> Step:
        given = iter(states)
        entering = [next(given) if isinstance(one, Value) else LoopSequence() for one in initial]
        goes_on, *outputs = frame.inner.subgraph_values(body, [*number, frame.inner.constant(inside), *entering])
        last, parts = _leaving(outputs, initial)
        return Step(last, [_gathered(frame.inner, value, Part(0)) for value in parts], _tensor(goes_on))

    tensors = [one for one in initial if isinstance(one, Value)]
    outputs = iterate(b, tensors, [], step, bounds=(_trips(b, trip_count), first), counter=counter)
    states, parts = iter(outputs[: len(tensors)]), iter(outputs[len(tensors) :])
    last = [next(states) if isinstance(one, Value) else StackedSequence(one.items, next(parts)) for one in initial]
    return (*last, *parts)


def _leaving(outputs: Sequence[OnnxValue], initial: Sequence[Value | TensorSequence]) -> tuple[list[Value], list[Value]]:
    """What a body gives: the states that are tensors; what sequences get, and then the other parts."""
    states: list[Value] = []
    parts: list[Value] = []
    for output, one in zip(outputs, initial, strict=False):
        if isinstance(one, Value):
            states.append(_tensor(output))
        elif isinstance(output, LoopSequence) and len(output.added) == 1:
            parts += output.added
        else:
            raise ConversionError("its body does more to a sequence than put one tensor behind it", unsupported=True)
    return states, parts + [_tensor(output) for output in outputs[len(initial) :]]


def _tensor(output: OnnxValue) -> Value:
    if not isinstance(output, Value):
        raise ConversionError("its body gives a sequence where it was given a tensor", unsupported=True)
    return output


def _check_body(body: GraphProto, inputs: int, outputs: int) -> None:
    if len(body.input) != inputs or len(body.output) < outputs:
        raise OpError(f"its body takes {len(body.input)} values and gives {len(body.output)}, expected {inputs} and at least {outputs}")


def _trips(b: Context, trip_count: Value | None) -> Value:
    """IR takes a negative number for no limit, ONNX for no iteration."""
    known = None if trip_count is None else b.ints_if_known(trip_count)
    if trip_count is None or (known is not None and known[0] == _WITHOUT_END):
        return b.constant(-1)
    if known is not None and known[0] >= 0:
        return trip_count
    return b.emit("Maximum", trip_count, b.constant(0))


def _gathered(b: Context, value: Value, part: Part) -> tuple[Value, Part]:
    """What an iteration gives, as a part of the whole that has one more axis."""
    axis = b.axis(part.axis, b.rank(value, "an output of the body") + 1)
    return b.unsqueeze(value, [axis]), Part(axis, part.reverse)


@translates("Scan", since=9)
def scan_9(
    b: Context, *inputs: Value, body: GraphProto, num_scan_inputs: int, scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None, scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The states come first, then the tensors that are gone through, each along an axis and from either end."""
    states, scanned = _parted(inputs, num_scan_inputs)
    _check_body(body, len(inputs), len(states))
    given = _parts("scan_input", scan_input_axes, scan_input_directions, len(scanned))
    taken = _parts("scan_output", scan_output_axes, scan_output_directions, len(body.output) - len(states))
    cut = [(value, Part(b.axis(part.axis, value), part.reverse)) for value, part in zip(scanned, given, strict=True)]
    return _scan(b, states, cut, taken, body)


def _parted(inputs: Sequence[Value], scanned: int) -> tuple[Sequence[Value], Sequence[Value]]:
    if not 1 <= scanned <= len(inputs):
        raise OpError(f"num_scan_inputs is {scanned} of {len(inputs)} inputs")
    return inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]


def _parts(what: str, axes: Sequence[int] | None, directions: Sequence[int] | None, count: int) -> list[Part]:
    places, ways = list(axes or [0] * count), list(directions or [0] * count)
    if len(places) != count or len(ways) != count or not set(ways) <= {0, 1}:
        raise OpError(f"{what}_axes are {places} and {what}_directions {ways}, expected {count} of each, directions 0 or 1")
    return [Part(axis, bool(way)) for axis, way in zip(places, ways, strict=True)]


def _scan(
    b: Context, states: Sequence[Value], cut: Sequence[tuple[Value, Part]], taken: Sequence[Part], body: GraphProto
) -> tuple[Value, ...]:
    def step(frame: Frame, given: list[Value], parts: list[Value]) -> Step:
        inner = frame.inner
        whole = [inner.emit("Squeeze", value, [part.axis]) for value, (_, part) in zip(parts, cut, strict=True)]
        outputs = inner.subgraph(body, [*given, *whole])
        count = len(given)
        return Step(outputs[:count], [_gathered(inner, value, part) for value, part in zip(outputs[count:], taken, strict=True)])

    return iterate(b, states, cut, step)


@translates("Scan", since=8)
def scan_8(
    b: Context, sequence_lens: Value | None = None, *inputs: Value, body: GraphProto, num_scan_inputs: int,
    directions: list[int] | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The first axis is one of batches, each gone through on its own; beyond a sequence's length there are zeros."""
    initial, scanned = _parted(inputs, num_scan_inputs)
    _check_body(body, len(inputs), len(initial))
    ways = _parts("scan_input", None, directions, len(scanned))
    lengths = [] if sequence_lens is None else [b.convert(sequence_lens, I64)]
    cut = [(value, Part(0)) for value in [*initial, *scanned, *lengths]]

    def step(frame: Frame, _: list[Value], parts: list[Value]) -> Step:
        inner = frame.inner
        one = [inner.emit("Squeeze", value, [0]) for value in parts[: len(inputs)]]
        states, rows = one[: len(initial)], one[len(initial) :]
        length = parts[-1] if lengths else None
        used = [row if length is None else inner.emit("Slice", row, [0], length, [1], [0]) for row in rows]
        taken = [Part(0)] * (len(body.output) - len(states))
        outputs = _scan(inner, states, list(zip(used, ways, strict=True)), taken, body)
        gathered = [_filled(inner, value, rows[0], length) for value in outputs[len(states) :]]
        return Step([], [_gathered(inner, value, Part(0)) for value in [*outputs[: len(states)], *gathered]])

    return iterate(b, [], cut, step)


def _filled(b: Context, value: Value, row: Value, length: Value | None) -> Value:
    """Zeros put behind what a sequence of some length has given, up to the longest."""
    if length is None:
        return value
    rest = b.emit("Subtract", b.reshape(b.size(row, 0), [1]), length)
    none = b.constant([0] * (b.rank(value) - 1))
    ends = b.emit("Concat", rest, none, axis=0) if b.rank(value) > 1 else rest
    return b.emit("Pad", value, [0] * b.rank(value), ends, b.constant(0, value), pad_mode="constant")
