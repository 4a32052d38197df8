"""Control flow: If, Loop and TensorIterator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import (
    ANY,
    Dim,
    Size,
    high,
    join_shapes,
    low,
    span,
    widen_shapes,
)
from irexec.ir.facts import Fact, integer
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.schema.attributes import Runner
from irexec.schema.bodies import Branch, Slice, Wiring
from irexec.schema.opdef import INTEGER_OR_BOOLEAN, ONE_ELEMENT, AnyTensor, IntegerTensor, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis

# OpenVINO takes any element type for the condition of If.
Condition = Annotated[Tensor, ONE_ELEMENT]
LoopCondition = Annotated[np.ndarray, INTEGER_OR_BOOLEAN, ONE_ELEMENT]
TripCount = Annotated[IntegerTensor, ONE_ELEMENT]


def _single(x: np.ndarray, name: str) -> Any:
    """The value of an input of one element."""
    check(x.size == 1, f"{name} has {x.size} elements, expected 1")
    return x.reshape(-1)[0]


def _run_branch(runner: Runner, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of If from one of its bodies: arrays, or facts."""
    branch = runner.connected(Branch.of)
    for index in branch.sources:
        check(index < len(inputs), f"port map: input {index} does not exist")
    results = runner(*(inputs[index] for index in branch.sources))
    return [results[index] for index in branch.outputs]


@op("If", since=8, view=True)
def if_8(cond: Condition, *inputs: AnyTensor, then_body: Runner, else_body: Runner) -> tuple[np.ndarray, ...]:
    """The outputs of ``then_body`` where ``cond`` (one element) is true, else those of ``else_body``.

    Source: If-8.
    """
    return tuple(_run_branch(then_body if bool(_single(cond, "cond")) else else_body, [cond, *inputs]))


@if_8.shape_rule
def _if_8_shapes(cond: Fact, *inputs: Fact, then_body: Runner, else_body: Runner) -> tuple[Fact, ...]:
    branches = [_run_branch(runner, [cond, *inputs]) for runner in (then_body, else_body)]
    check(
        len(branches[0]) == len(branches[1]),
        f"then_body gives {counted(len(branches[0]), 'output')}, else_body {len(branches[1])}",
    )
    known = cond.known
    if known is not None and known.size == 1:
        return tuple(Fact(fact.element, fact.shape) for fact in branches[0 if bool(known.reshape(-1)[0]) else 1])
    return tuple(_either(a, b) for a, b in zip(*branches, strict=True))


def _either(a: Fact, b: Fact) -> Fact:
    return Fact(a.element if a.element is b.element else None, join_shapes(a.shape, b.shape))


def _iterate(runner: Runner, inputs: Sequence[np.ndarray], trips: int, condition: bool) -> tuple[np.ndarray, ...]:
    """Run the body ``trips`` times (without limit if negative) or until its condition is false."""
    wiring, parameters = runner.connected(Wiring.of), runner.body.graph.parameters
    merged = [None if source is None else inputs[source[0]] for source in wiring.sources]
    # Changes from one iteration to the next: counters and slices, values fed back, results to concatenate.
    varying = [
        (i, _per_iteration(source, inputs, parameters[i]))
        for i, source in enumerate(wiring.sources)
        if source is None or source[1]
    ]
    backs = [(i, back) for i, back in enumerate(wiring.backs) if back is not None]
    collected: list[list[np.ndarray]] = [[] for _ in wiring.outputs]
    pairs = zip(collected, wiring.outputs, strict=True)
    collect = [(parts.append, result) for parts, (result, cut) in pairs if cut is not None]
    arguments: list[Any] = merged.copy()
    results: list[np.ndarray] | None = None
    iteration = 0
    while condition and (trips < 0 or iteration < trips):
        for i, value in varying:
            arguments[i] = value(iteration)
        results = runner(*arguments)
        for i, back in backs:
            arguments[i] = merged[i] = results[back]
        for append, result in collect:
            append(results[result])
        condition = wiring.condition is None or bool(_single(results[wiring.condition], "the condition of the body"))
        iteration += 1
    return tuple(_output(runner, wiring, i, results, collected[i], merged) for i in range(len(wiring.outputs)))


def _per_iteration(
    source: tuple[int, Slice | None] | None, inputs: Sequence[np.ndarray], parameter: Node
) -> Callable[[int], np.ndarray]:
    """A function from the index of an iteration to the value of a Parameter that is a counter or a slice."""
    if source is None or source[1] is None:
        return lambda iteration: _counter(parameter, iteration)
    return source[1].cut(inputs[source[0]])


def _counter(parameter: Node, iteration: int) -> np.ndarray:
    """The index of the iteration, of the type and shape that its Parameter declares (a scalar or [1])."""
    carrier = np.int32 if parameter.attributes.get("element_type") == "i32" else np.int64
    shape = (1,) if parameter.attributes.get("shape", "").strip() == "1" else ()
    return np.full(shape, iteration, carrier)


def _output(
    runner: Runner,
    wiring: Wiring,
    index: int,
    results: list[np.ndarray] | None,
    parts: list[np.ndarray],
    merged: Sequence[np.ndarray | None],
) -> np.ndarray:
    """An output of the node, from the results of the last iteration, those of all, or the merged inputs."""
    result, cut = wiring.outputs[index]
    if cut is not None:
        if not parts:
            return _empty_output(runner, index, cut)
        axis = normalize_axis(cut.axis, parts[0].ndim)
        if len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) > 1:
            shapes = " and ".join(str(list(shape)) for shape in dict.fromkeys(part.shape for part in parts))
            raise OpError(f"iterations give shapes {shapes}, which cannot be concatenated along axis {axis}")
        return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis)
    if results is not None:
        return results[result]
    # Without an iteration the output is the initial value.
    for back, value in zip(wiring.backs, merged, strict=True):
        if back == result and value is not None:
            return value
    return _empty_output(runner, index, None)


def _empty_output(runner: Runner, index: int, cut: Slice | None) -> np.ndarray:
    """An output without an iteration: as inferred, with every unknown size and the size of the sliced axis 0, as in
    OpenVINO.

    Where not even the rank is inferred, it is the declared one.
    """
    inferred, declared = runner.outputs[index], runner.node.outputs[index].fact
    fact = inferred if declared is None or (inferred.shape is not None and inferred.element is not None) else declared
    check(fact.element is not None, f"the type of output {index} without an iteration is not known")
    sizes = [size if isinstance(size, int) else 0 for size in fact.shape or ()]
    if cut is not None and sizes:
        sizes[normalize_axis(cut.axis, len(sizes))] = 0
    return np.zeros(sizes, fact.dtype)


@op("Loop", since=5, view=True)
def loop_5(
    trip_count: TripCount, execution_condition: LoopCondition, *inputs: AnyTensor, body: Runner
) -> tuple[np.ndarray, ...]:
    """Runs ``body`` until its condition is false, at most ``trip_count`` times (-1: without limit).

    Merged inputs are replaced by the results of their back edges, sliced ones by the slice of the iteration; outputs
    are the last values or those of all iterations concatenated along an axis, in reverse order where the stride is
    negative. Without an iteration a merged output is its initial value. Source: Loop-5.
    """
    condition = bool(_single(execution_condition, "execution_condition"))
    return _iterate(body, [trip_count, execution_condition, *inputs], integer(trip_count, "trip_count"), condition)


@loop_5.shape_rule
def _loop_5_shapes(trip_count: Fact, execution_condition: Fact, *inputs: Fact, body: Runner) -> tuple[Fact, ...]:
    trips = trip_count.scalar("trip_count")
    condition = execution_condition.known
    limit: Size = ANY if trips is None or trips < 0 else trips
    if condition is not None and condition.size and not bool(condition.reshape(-1)[0]):
        limit = 0
    wiring = body.connected(Wiring.of)
    every = [trip_count, execution_condition, *inputs]
    results = _settle(body, wiring, every)
    again = None if wiring.condition is None else results[wiring.condition].known
    continues = wiring.condition is None or (again is not None and again.size == 1 and bool(again.reshape(-1)[0]))
    times = limit if continues and condition is not None else span(0, high(limit))
    return tuple(_output_fact(wiring, i, results, times, every) for i in range(len(wiring.outputs)))


@op("TensorIterator", since=1, view=True)
def tensor_iterator_1(*inputs: AnyTensor, body: Runner) -> tuple[np.ndarray, ...]:
    """Runs ``body`` once for each slice of its sliced inputs; see Loop. Source: TensorIterator-1."""
    wiring = body.connected(Wiring.of)
    sliced = ((inputs[index].shape, cut) for index, cut in _cuts(wiring))
    counts = {cut.iterations(shape[normalize_axis(cut.axis, len(shape))]) for shape, cut in sliced}
    check(len(counts) <= 1, f"the sliced inputs have different numbers of slices: {sorted(map(str, counts))}")
    return _iterate(body, inputs, int(counts.pop()) if counts else 1, True)


@tensor_iterator_1.shape_rule
def _tensor_iterator_1_shapes(*inputs: Fact, body: Runner) -> tuple[Fact, ...]:
    wiring = body.connected(Wiring.of)
    results = _settle(body, wiring, inputs)
    times: Size | None = None
    for index, cut in _cuts(wiring):
        check(index < len(inputs), f"port map: input {index} does not exist")
        shape = inputs[index].shape
        one = ANY if shape is None else cut.iterations(shape[normalize_axis(cut.axis, len(shape))])
        times = one if times is None or isinstance(times, Dim) else times
    return tuple(
        _output_fact(wiring, i, results, 1 if times is None else times, inputs) for i in range(len(wiring.outputs))
    )


def _cuts(wiring: Wiring) -> Iterator[tuple[int, Slice]]:
    for source in wiring.sources:
        if source is not None and source[1] is not None:
            yield source[0], source[1]


def _settle(runner: Runner, wiring: Wiring, inputs: Sequence[Fact]) -> list[Fact]:
    """The facts of the body's results that hold in every iteration: sizes that back edges change become unknown."""
    arguments = [
        _argument(source, back, p, inputs)
        for source, back, p in zip(wiring.sources, wiring.backs, runner.body.graph.parameters, strict=True)
    ]
    for attempt in range(8):
        results = runner(*arguments)
        pairs = zip(arguments, wiring.backs, strict=True)
        widened = [fact if back is None else _widen(fact, results[back], attempt) for fact, back in pairs]
        if all(a.element is b.element and a.shape == b.shape for a, b in zip(arguments, widened, strict=True)):
            return results
        arguments = widened
    pairs = zip(arguments, wiring.backs, strict=True)
    return runner(*[fact if back is None else Fact(fact.element, None) for fact, back in pairs])


def _argument(
    source: tuple[int, Slice | None] | None, back: int | None, parameter: Node, inputs: Sequence[Fact]
) -> Fact:
    if source is None:
        counter = _counter(parameter, 0)
        return Fact(Fact.of(counter).element, counter.shape)
    index, cut = source
    check(index < len(inputs), f"port map: input {index} does not exist")
    fact = inputs[index]
    if cut is None:
        return Fact(fact.element, fact.shape) if back is not None else fact
    if fact.shape is None:
        return Fact(fact.element, None)
    axis = normalize_axis(cut.axis, len(fact.shape))
    return Fact(fact.element, (*fact.shape[:axis], cut.part, *fact.shape[axis + 1 :]))


def _widen(fact: Fact, again: Fact, attempt: int) -> Fact:
    element = fact.element if fact.element is again.element or again.element is None else None
    return Fact(element, widen_shapes(fact.shape, again.shape, attempt))


def _output_fact(wiring: Wiring, index: int, results: Sequence[Fact], times: Size, inputs: Sequence[Fact]) -> Fact:
    result, cut = wiring.outputs[index]
    fact = results[result]
    if cut is not None:
        if fact.shape is None:
            return Fact(fact.element, None)
        axis = normalize_axis(cut.axis, len(fact.shape))
        return Fact(fact.element, (*fact.shape[:axis], fact.shape[axis] * times, *fact.shape[axis + 1 :]))
    if low(times) > 0:
        return Fact(fact.element, fact.shape)
    # With no iteration the output is the initial value.
    for source, back in zip(wiring.sources, wiring.backs, strict=True):
        if back == result and source is not None and source[1] is None:
            initial = inputs[source[0]]
            return Fact(initial.element, initial.shape) if times == 0 else _either(fact, initial)
    return Fact(fact.element, fact.shape)
