"""Control flow: If, Loop and TensorIterator. A body is run by the injected Runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, PartialShape, Size, high, join, join_shapes, low, span
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node, PortMap
from irexec.schema.injected import Runner
from irexec.schema.registry import op
from irexec.schema.rules import normalize_axis


def _outputs(runner: Runner) -> dict[int, int]:
    """Which result of the body each output of the node is."""
    place = {result.id: i for i, result in enumerate(runner.body.graph.results)}
    found = {}
    for entry in runner.body.port_maps:
        index = runner.node.output_index(entry.external)
        if entry.kind == "output" and index is not None:
            check(entry.internal in place, f"port map: layer {entry.internal} is no Result of the body")
            found[index] = place[entry.internal]
    for index in range(len(runner.node.outputs)):
        check(index in found, f"port map: no Result of the body gives output {index}")
    return found


def _operands(runner: Runner, operands: Sequence[Any]) -> list[Any]:
    """What each Parameter of the body is given, in their order."""
    given = {}
    for entry in runner.body.port_maps:
        index = runner.node.input_index(entry.external)
        if entry.kind == "input" and index is not None:
            check(index < len(operands), f"port map: there is no input {index}")
            given[entry.internal] = operands[index]
    for parameter in runner.body.graph.parameters:
        check(parameter.id in given, f"Parameter {parameter.name!r} of the body is fed by no port map")
    return [given[parameter.id] for parameter in runner.body.graph.parameters]


@op("If", since=8, view=True)
def if_8(cond: np.ndarray, *inputs: np.ndarray, then_body: Runner, else_body: Runner) -> tuple[np.ndarray, ...]:
    """The outputs of ``then_body`` where ``cond`` (one boolean) holds, else those of ``else_body``.

    Source: If-8.
    """
    runner = then_body if bool(np.asarray(cond).reshape(-1)[0]) else else_body
    results = runner(*_operands(runner, [cond, *inputs]))
    found = _outputs(runner)
    return tuple(results[found[index]] for index in sorted(found))


@if_8.shape_rule
def _if_8_facts(cond: Fact, *inputs: Fact, then_body: Any, else_body: Any) -> tuple[Fact, ...]:
    count = None if cond.shape is None else [size for size in cond.shape if size != 1]
    check(not count or any(isinstance(size, Dim) for size in count), f"cond has shape {cond}, expected one element")
    branches = []
    for runner in (then_body, else_body):
        results = runner(*_operands(runner, [cond, *inputs]))
        found = _outputs(runner)
        branches.append([results[found[index]] for index in sorted(found)])
    check(len(branches[0]) == len(branches[1]), f"then_body gives {len(branches[0])} outputs, else_body {len(branches[1])}")
    known = cond.known
    if known is not None and known.size == 1:
        return tuple(Fact(fact.element, fact.shape) for fact in branches[0 if bool(known.reshape(-1)[0]) else 1])
    return tuple(_either(a, b) for a, b in zip(*branches, strict=True))


def _either(a: Fact, b: Fact) -> Fact:
    return Fact(a.element if a.element is b.element else None, join_shapes(a.shape, b.shape))


@dataclass(frozen=True)
class Slice:
    """An axis cut into parts, one for each iteration; as OpenVINO has it both borders are included."""

    axis: int
    start: int
    end: int
    stride: int
    part: int

    @staticmethod
    def of(entry: PortMap) -> Slice | None:
        """The slice that a port map entry asks for; None if it passes the whole tensor."""
        if "axis" not in entry.attributes:
            return None
        numbers = [_whole(key, entry.attributes.get(key, default)) for key, default in _SLICE_DEFAULTS]
        axis, start, end, stride, part = numbers
        check(stride != 0 and part > 0, f"port map: stride {stride} and part_size {part} make no parts")
        return Slice(axis, start, end, stride, part)

    def iterations(self, size: Size) -> Size:
        """How many parts an axis of this size has: none of an empty one, which OpenVINO's plugin refuses."""
        if size == 0:
            return 0
        if isinstance(size, Dim):
            if (self.start, self.end) in ((0, -1), (-1, 0)):
                return size // self.part
            return ANY
        start, end = (value + size if value < 0 else value for value in (self.start, self.end))
        return (abs(end - start) + 1) // self.part

    def cut(self, array: np.ndarray) -> Callable[[int], np.ndarray]:
        """What gives the part that an iteration sees."""
        axis = normalize_axis(self.axis, array.ndim)
        start = self.start + array.shape[axis] if self.start < 0 else self.start
        if self.stride < 0:
            start -= self.part - 1
        before, stride, part, size = (slice(None),) * axis, self.stride, self.part, array.shape[axis]

        def at(iteration: int) -> np.ndarray:
            first = start + iteration * stride
            if first < 0 or first + part > size:
                raise OpError(f"port map: iteration {iteration} takes {first}..{first + part} of axis {axis}, whose size is {size}")
            return array[(*before, slice(first, first + part))]

        return at


def _whole(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OpError(f"port map: {key} {text!r} is not an integer") from None


_SLICE_DEFAULTS = (("axis", "0"), ("start", "0"), ("end", "-1"), ("stride", "1"), ("part_size", "1"))


@dataclass(frozen=True)
class Wiring:
    """How a body is wired to its node, read once from its port maps.

    Attributes:
        sources: for each Parameter the node's input and how it is cut; None for the iteration counter.
        backs: for each Parameter the Result that feeds it in the next iteration, or None.
        outputs: for each output of the node the Result, and how parts are put together.
        condition: the Result that says whether to go on; None if there is none.
    """

    sources: list[tuple[int, Slice | None] | None]
    backs: list[int | None]
    outputs: list[tuple[int, Slice | None]]
    condition: int | None

    @staticmethod
    def of(node: Node, body: Body) -> Wiring:
        """Read the port maps and back edges of a body."""
        results = {result.id: i for i, result in enumerate(body.graph.results)}
        entries = {entry.internal: entry for entry in body.port_maps if entry.kind == "input"}
        parameters = {parameter.id for parameter in body.graph.parameters}
        for edge in body.back_edges:
            check(edge.source in results, f"back edge: layer {edge.source} is no Result of the body")
            check(edge.target in parameters, f"back edge: layer {edge.target} is no Parameter of the body")
        backs = {edge.target: results[edge.source] for edge in body.back_edges}
        condition = [e.internal for e in body.port_maps if e.kind == "output" and e.attributes.get("purpose") == "execution_condition"]
        return Wiring(
            sources=[_source(parameter, entries.get(parameter.id), node) for parameter in body.graph.parameters],
            backs=[backs.get(parameter.id) for parameter in body.graph.parameters],
            outputs=list(_node_outputs(body, node, results)),
            condition=results[condition[0]] if condition and condition[0] in results else None,
        )


def _source(parameter: Node, entry: PortMap | None, node: Node) -> tuple[int, Slice | None] | None:
    check(entry is not None, f"Parameter {parameter.name!r} of the body is fed by no port map")
    if entry is None or entry.attributes.get("purpose") == "current_iteration":
        return None
    index = node.input_index(entry.external)
    check(index is not None, f"port map: external_port_id {entry.external} is no input")
    return index or 0, Slice.of(entry)


def _node_outputs(body: Body, node: Node, results: dict[int, int]) -> Iterator[tuple[int, Slice | None]]:
    entries = {node.output_index(e.external): e for e in body.port_maps if e.kind == "output" and e.external >= 0}
    for index in range(len(node.outputs)):
        entry = entries.get(index)
        check(entry is not None and entry.internal in results, f"port map: no Result of the body gives output {index}")
        if entry is not None:
            yield results[entry.internal], Slice.of(entry)


def _iterate(runner: Runner, inputs: Sequence[np.ndarray], trips: int, goes_on: bool) -> tuple[np.ndarray, ...]:
    """Run the body ``trips`` times (without end if negative) or until its condition fails."""
    wiring = Wiring.of(runner.node, runner.body)
    fed = [None if source is None else inputs[source[0]] for source in wiring.sources]
    # What changes from one iteration to the next: counters and parts, what is fed back, what is put together.
    parameters = runner.body.graph.parameters
    made = [(i, _made(source, inputs, parameters[i])) for i, source in enumerate(wiring.sources) if source is None or source[1] is not None]
    backs = [(i, back) for i, back in enumerate(wiring.backs) if back is not None]
    collected: list[list[np.ndarray]] = [[] for _ in wiring.outputs]
    gathered = [(parts.append, result) for parts, (result, cut) in zip(collected, wiring.outputs, strict=True) if cut is not None]
    condition = wiring.condition
    operands: list[Any] = fed.copy()
    results: list[np.ndarray] | None = None
    done = 0
    while goes_on and (trips < 0 or done < trips):
        for i, make in made:
            operands[i] = make(done)
        results = runner(*operands)
        for i, back in backs:
            operands[i] = fed[i] = results[back]
        for append, result in gathered:
            append(results[result])
        goes_on = condition is None or bool(results[condition].reshape(-1)[0])
        done += 1
    return tuple(_output(runner, wiring, i, results, collected[i], fed) for i in range(len(wiring.outputs)))


def _made(source: tuple[int, Slice | None] | None, inputs: Sequence[np.ndarray], parameter: Node) -> Callable[[int], np.ndarray]:
    """What a Parameter is given in an iteration that counts or sees a part."""
    if source is None or source[1] is None:
        return lambda iteration: _counter(parameter, iteration)
    return source[1].cut(inputs[source[0]])


def _counter(parameter: Node, iteration: int) -> np.ndarray:
    """The number of the iteration, of the type and shape that its Parameter declares (a scalar or [1])."""
    carrier = np.int32 if parameter.attributes.get("element_type") == "i32" else np.int64
    shape = (1,) if parameter.attributes.get("shape", "").strip() == "1" else ()
    return np.full(shape, iteration, carrier)


def _output(
    runner: Runner, wiring: Wiring, index: int, results: list[np.ndarray] | None, parts: list[np.ndarray], fed: Sequence[np.ndarray | None]
) -> np.ndarray:
    result, cut = wiring.outputs[index]
    if cut is not None:
        if not parts:
            return _nothing(runner, index, cut)
        axis = normalize_axis(cut.axis, parts[0].ndim)
        others = {part.shape[:axis] + part.shape[axis + 1 :] for part in parts}
        shapes = " and ".join(str(list(shape)) for shape in dict.fromkeys(part.shape for part in parts)) if len(others) > 1 else ""
        check(len(others) == 1, f"iterations give shapes {shapes}, which cannot be put together along axis {axis}")
        return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis)
    if results is not None:
        return results[result]
    # No iteration at all: what the first one would have been given.
    for back, value in zip(wiring.backs, fed, strict=True):
        if back == result and value is not None:
            return value
    return _nothing(runner, index, None)


def _nothing(runner: Runner, index: int, cut: Slice | None) -> np.ndarray:
    """An output of no iteration: as declared, with every unknown size and the size of the cut axis 0."""
    fact = runner.node.outputs[index].fact
    check(fact is not None and fact.element is not None, f"output {index} of no iteration is not known")
    shape: PartialShape = () if fact is None else fact.shape
    sizes = [size if isinstance(size, int) else 0 for size in shape or ()]
    if cut is not None and sizes:
        sizes[normalize_axis(cut.axis, len(sizes))] = 0
    return np.zeros(sizes, None if fact is None or fact.element is None else fact.element.carrier)


@op("Loop", since=5, view=True)
def loop_5(trip_count: np.ndarray, execution_condition: np.ndarray, *inputs: np.ndarray, body: Runner) -> tuple[np.ndarray, ...]:
    """Runs ``body`` until its condition fails, at most ``trip_count`` times (-1: without limit).

    Merged inputs are fed from back edges, sliced ones part by part; outputs are the last values or
    all of them put together along an axis, in reverse where the stride is negative. After no
    iteration a merged output is its initial value. Source: Loop-5.
    """
    trips = int(np.asarray(trip_count).reshape(-1)[0])
    goes_on = bool(np.asarray(execution_condition).reshape(-1)[0])
    return _iterate(body, [trip_count, execution_condition, *inputs], trips, goes_on)


@loop_5.shape_rule
def _loop_5_facts(trip_count: Fact, execution_condition: Fact, *inputs: Fact, body: Any) -> tuple[Fact, ...]:
    trips = trip_count.scalar("trip_count")
    condition = execution_condition.known
    limit: Size = ANY if trips is None or trips < 0 else trips
    if condition is not None and condition.size and not bool(condition.reshape(-1)[0]):
        limit = 0
    wiring = Wiring.of(body.node, body.body)
    results = _settle(body, wiring, [trip_count, execution_condition, *inputs])
    going = wiring.condition is None or _is_true(results[wiring.condition])
    exact = going and condition is not None
    times = limit if exact else span(0, high(limit))
    return tuple(_output_fact(wiring, i, results, times, [trip_count, execution_condition, *inputs]) for i in range(len(wiring.outputs)))


def _is_true(fact: Fact) -> bool:
    return fact.known is not None and fact.known.size == 1 and bool(fact.known.reshape(-1)[0])


@op("TensorIterator", since=1, view=True)
def tensor_iterator_1(*inputs: np.ndarray, body: Runner) -> tuple[np.ndarray, ...]:
    """Runs ``body`` once for each part of its sliced inputs; see Loop. Source: TensorIterator-1."""
    wiring = Wiring.of(body.node, body.body)
    counts = {cut.iterations(inputs[index].shape[normalize_axis(cut.axis, inputs[index].ndim)]) for index, cut in _cuts(wiring)}
    check(len(counts) <= 1, f"the sliced inputs have different numbers of parts: {sorted(map(str, counts))}")
    return _iterate(body, inputs, int(counts.pop()) if counts else 1, True)


@tensor_iterator_1.shape_rule
def _tensor_iterator_1_facts(*inputs: Fact, body: Any) -> tuple[Fact, ...]:
    wiring = Wiring.of(body.node, body.body)
    results = _settle(body, wiring, inputs)
    times: Size | None = None
    for index, cut in _cuts(wiring):
        check(index < len(inputs), f"port map: there is no input {index}")
        shape = inputs[index].shape
        one = ANY if shape is None else cut.iterations(shape[normalize_axis(cut.axis, len(shape))])
        times = one if times is None or isinstance(times, Dim) else times
    return tuple(_output_fact(wiring, i, results, 1 if times is None else times, inputs) for i in range(len(wiring.outputs)))


def _cuts(wiring: Wiring) -> Iterator[tuple[int, Slice]]:
    for source in wiring.sources:
        if source is not None and source[1] is not None:
            yield source[0], source[1]


def _settle(runner: Runner, wiring: Wiring, inputs: Sequence[Fact]) -> list[Fact]:
    """The body's facts that hold in every iteration: sizes that back edges change become unknown."""
    given = [
        _given(source, back, p, inputs) for source, back, p in zip(wiring.sources, wiring.backs, runner.body.graph.parameters, strict=True)
    ]
    for attempt in range(8):
        results = runner(*given)
        widened = [fact if back is None else _widen(fact, results[back], attempt) for fact, back in zip(given, wiring.backs, strict=True)]
        if all(a.element is b.element and a.shape == b.shape for a, b in zip(given, widened, strict=True)):
            return results
        given = widened
    return runner(*[fact if back is None else Fact(fact.element, None) for fact, back in zip(given, wiring.backs, strict=True)])


def _given(source: tuple[int, Slice | None] | None, back: int | None, parameter: Node, inputs: Sequence[Fact]) -> Fact:
    if source is None:
        return _shape_of_counter(parameter)
    index, cut = source
    check(index < len(inputs), f"port map: there is no input {index}")
    fact = inputs[index]
    if cut is None:
        return Fact(fact.element, fact.shape) if back is not None else fact
    if fact.shape is None:
        return Fact(fact.element, None)
    axis = normalize_axis(cut.axis, len(fact.shape))
    return Fact(fact.element, (*fact.shape[:axis], cut.part, *fact.shape[axis + 1 :]))


def _shape_of_counter(parameter: Node) -> Fact:
    counter = _counter(parameter, 0)
    return Fact(Fact.of(counter).element, counter.shape)


def _widen(fact: Fact, again: Fact, attempt: int) -> Fact:
    shape = join_shapes(fact.shape, again.shape)
    if shape is not None and fact.shape is not None:
        shape = tuple(new if new == old else ANY if attempt else join(old, new) for old, new in zip(fact.shape, shape, strict=True))
    return Fact(fact.element if fact.element is again.element or again.element is None else None, shape)


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
