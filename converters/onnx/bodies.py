"""Bodies of IR's If, Loop and TensorIterator: what goes in, what comes out, and what is known of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from converters.onnx.context import Context
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.dims import PartialShape, widen_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import BackEdge, Body, Node, PortMap, Value

# What makes its result somewhere else for certain.
_ELSEWHERE = {"MatMul", "Concat", "If", "Loop", "TensorIterator"}


@dataclass(frozen=True)
class Part:
    """A tensor as parts of size 1 along an axis, one for each iteration, from the last one on if ``reverse``."""

    axis: int
    reverse: bool = False

    @property
    def attributes(self) -> dict[str, str]:
        """As a port map has it."""
        start, end, stride = ("-1", "0", "-1") if self.reverse else ("0", "-1", "1")
        return {"axis": str(self.axis), "start": start, "end": end, "stride": stride, "part_size": "1"}


class Frame:
    """A body on its way, and how it is wired to the layer that will have it.

    Attributes:
        inputs: the layer's inputs so far, which the branches of an If share; those that say whether
            and how often it runs come first and are not for bodies.
        inner: the context of the body; what it captures comes in as inputs of the layer, once each.
    """

    def __init__(self, b: Context, inputs: list[Value], reserved: int) -> None:
        self._outer, self.inputs, self._reserved = b, inputs, reserved
        self._builder = Builder()
        self.inner = b.in_body(self._builder, lambda value: self.take(b.capture(value)))
        self._taken: dict[Value, Value] = {}
        self._feeds: list[tuple[Node, int, dict[str, str]]] = []
        self._results: list[tuple[Node, int | None, dict[str, str]]] = []
        self._backs: list[tuple[Node, Node]] = []

    def take(self, value: Value) -> Value:
        """A value of the graph around as the body sees it; a constant is one in the body too."""
        if value not in self._taken:
            fact = self._outer.fact(value)
            constant = value.node.constant
            if constant is not None:
                self._taken[value] = self._builder.raw_constant(constant, value.node.name)
            else:
                self._taken[value] = self.feed(value, fact)
        return self._taken[value]

    def feed(self, value: Value, fact: Fact, part: Part | None = None) -> Value:
        """A Parameter that is given a value of the graph around, whole or in parts."""
        used = {place for _, place, _ in self._feeds}
        places = [i for i, one in enumerate(self.inputs) if one is value and i >= self._reserved and i not in used]
        if not places:
            places = [len(self.inputs)]
            self.inputs.append(value)
        parameter = self._parameter(value.names[0] if value.names else value.node.name, fact)
        self._feeds.append((parameter.node, places[0], part.attributes if part else {}))
        return parameter

    def counter(self, shape: PartialShape) -> Value:
        """A Parameter that is given the number of the iteration, i64.

        It is to be the first of all: OpenVINO does not find it again when it leaves out one before it.
        """
        parameter = self._parameter("iteration", Fact(I64, shape))
        self._feeds.append((parameter.node, -1, {"purpose": "current_iteration"}))
        return parameter

    def _parameter(self, name: str, fact: Fact) -> Value:
        if fact.element is None:
            raise OpError(f"the element type of {name!r} is not known")
        return self._builder.parameter(fact.element, fact.shape, name, value=fact.value)

    def result(self, value: Value, output: int, part: Part | None = None) -> Node:
        """A Result, which is an output of the layer: its last value, or the parts of all iterations."""
        node = self._builder.result(value)
        self._results.append((node, output, part.attributes if part else {}))
        return node

    def condition(self, value: Value) -> None:
        """The Result that says whether there is another iteration."""
        self._results.append((self._builder.result(value), None, {"purpose": "execution_condition"}))

    def kept(self, value: Value, parameter: Value) -> Value:
        """What the ``parameter`` of a state is given in the next iteration, as numbers of their own.

        OpenVINO's CPU plugin writes a result over the first operand, also where that is the part of a sliced input, and
        puts the next part there before it reads the state; and it loses a state that is given another Parameter as it is.
        An operation that has one value for both operands is not done in place, nor left out.
        """
        kind = self.inner.element(value).kind
        passed = value.node.type == "Parameter" and value is not parameter
        if kind == "string" or not (passed or self._is_over_a_part(value)):
            return value
        return self.inner.emit("LogicalOr" if kind == "boolean" else "Maximum", value, value)

    def _is_over_a_part(self, value: Value) -> bool:
        parts = {node for node, _, more in self._feeds if "axis" in more}
        node: Node | None = value.node
        while node is not None and node not in parts:
            source = node.inputs[0] if node.inputs and node.type not in _ELSEWHERE else None
            node = None if source is None else source.node
        return node is not None

    def feed_back(self, parameter: Value, result: Node) -> None:
        """What the Result gives, the Parameter is given in the next iteration."""
        self._backs.append((result, parameter.node))

    @property
    def rests_on_parts(self) -> bool:
        """Whether every Result depends on the part of a sliced input, if only by way of earlier iterations."""
        parts = {node for node, _, more in self._feeds if "axis" in more}
        sources = {target: source for source, target in self._backs}
        for result, _, _ in self._results:
            seen, waiting = {result}, [result]
            for node in waiting:
                before = [value.node for value in node.inputs if value is not None]
                before += [sources[node]] if node in sources else []
                waiting += (fresh := [one for one in dict.fromkeys(before) if one not in seen])
                seen.update(fresh)
            if not seen & parts:
                return False
        return True

    def body(self) -> Body:
        """The body; to be called when all inputs of the layer are there."""
        self._builder.drop_unused()
        nodes = self._builder.graph.nodes
        read = {value.node for node in nodes for value in node.inputs if value is not None}
        kept = [entry for entry in self._feeds if entry[1] >= 0 or entry[0] in read]
        idle = {entry[0] for entry in self._feeds} - {entry[0] for entry in kept}
        nodes[:] = [node for node in nodes if node not in idle]
        for number, node in enumerate(nodes):
            node.id = number
        maps = [PortMap("input", place, node.id, dict(more)) for node, place, more in kept]
        first = len(self.inputs)
        maps += [PortMap("output", -1 if i is None else first + i, node.id, dict(more)) for node, i, more in self._results]
        return Body(self._builder.graph, maps, [BackEdge(result.id, parameter.id) for result, parameter in self._backs])


@dataclass(frozen=True)
class Step:
    """What one iteration gives.

    Attributes:
        states: what the next one is given.
        parts: of tensors that are put together, along axes that the values have with size 1.
        goes_on: whether there is a next one; None for always.
    """

    states: Sequence[Value]
    parts: Sequence[tuple[Value, Part]] = field(default_factory=tuple)
    goes_on: Value | None = None


Iteration = Callable[[Frame, list[Value], list[Value]], Step]


def iterate(
    b: Context, states: Sequence[Value], cut: Sequence[tuple[Value, Part]], step: Iteration,
    *, bounds: tuple[Value, Value] | None = None, counter: PartialShape = (),
) -> tuple[Value, ...]:  # fmt: skip
    """A Loop, or without ``bounds`` a TensorIterator over parts: the last states, then the tensors put together.

    OpenVINO has no TensorIterator inside another, and one of which only such outputs are used as have nothing to do with
    its parts runs once there, however many they are; these are Loops over parts.

    What a state's shape is in every iteration is found by building the body again until nothing changes.

    Args:
        b: the context.
        states: the initial states.
        cut: tensors that are given part by part, each with size 1 along its axis.
        step: builds the body from the frame, the states and the parts.
        bounds: the trip count and the condition before the first iteration.
        counter: the shape of the iteration's number, which a Loop gives to ``step`` before the parts.

    Raises:
        OpError: a state becomes another element type.
    """
    facts = [Fact(b.element(state), b.fact(state).shape) for state in states]
    for attempt in itertools.count():
        frame = Frame(b, list(bounds or ()), len(bounds or ()))
        numbers = [] if bounds is None else [frame.counter(counter)]
        given = [frame.feed(state, fact) for state, fact in zip(states, facts, strict=True)]
        parts = [frame.feed(value, _part_fact(b.fact(value), part), part) for value, part in cut]
        done = step(frame, given, [*numbers, *parts])
        widened = [_widened(fact, frame.inner.fact(value), attempt) for fact, value in zip(facts, done.states, strict=True)]
        if all(old.shape == new.shape for old, new in zip(facts, widened, strict=True)):
            break
        facts = widened
    if bounds is not None:
        frame.condition(frame.inner.constant(True) if done.goes_on is None else done.goes_on)
    for i, (parameter, value) in enumerate(zip(given, done.states, strict=True)):
        frame.feed_back(parameter, frame.result(frame.kept(value, parameter), i))
    for i, (value, part) in enumerate(done.parts, len(given)):
        frame.result(value, i, part)
    nested = any(node.type == "TensorIterator" for node in frame.inner.builder.graph.nodes)
    if bounds is None and (nested or not frame.rests_on_parts):
        return _as_loop(b, states, cut, step)
    body = frame.body()
    outputs: tuple[Value, ...] = b.emit("TensorIterator" if bounds is None else "Loop", *frame.inputs, bodies={"body": body})
    if bounds is None:
        return outputs
    read = {value.node for node in body.graph.nodes for value in node.inputs if value is not None}
    idle = {i for i, parameter in enumerate(given) if parameter.node not in read}
    return tuple(_unless_idle(b, bounds, states[i], value) if i in idle else value for i, value in enumerate(outputs))


def _unless_idle(b: Context, bounds: tuple[Value, Value], initial: Value, last: Value) -> Value:
    """A state that no iteration reads: where there is no iteration, OpenVINO has forgotten its initial value."""
    trips, condition = bounds
    ran = b.emit("LogicalAnd", b.emit("NotEqual", b.scalar(trips), b.constant(0)), b.scalar(condition))
    known = b.known(ran)
    if known is not None:
        return last if bool(known) else initial
    inputs, bodies = [ran], {}
    for name, value in (("then_body", last), ("else_body", initial)):
        bodies[name] = frame = Frame(b, inputs, reserved=1)
        frame.result(frame.take(value), 0)
    outputs: tuple[Value, ...] = b.emit("If", *inputs, bodies={name: frame.body() for name, frame in bodies.items()})
    return outputs[0]


def _as_loop(b: Context, states: Sequence[Value], cut: Sequence[tuple[Value, Part]], step: Iteration) -> tuple[Value, ...]:
    """The same as a Loop, which goes through its parts from the first one on only: tensors are turned round outside."""
    turned: list[Part] = []

    def straight(frame: Frame, given: list[Value], parts: list[Value]) -> Step:
        done = step(frame, given, parts[1:])
        turned[:] = [part for _, part in done.parts]
        return Step(done.states, [(value, Part(part.axis)) for value, part in done.parts], done.goes_on)

    ordered = [(_reversed(b, value, part), Part(part.axis)) for value, part in cut]
    outputs = iterate(b, states, ordered, straight, bounds=(b.size(cut[0][0], cut[0][1].axis), b.constant(True)))
    rest = zip(outputs[len(states) :], turned, strict=True)
    return (*outputs[: len(states)], *(_reversed(b, value, part) for value, part in rest))


def _reversed(b: Context, value: Value, part: Part) -> Value:
    if not part.reverse:
        return value
    return b.emit("Slice", value, [-1], [np.iinfo(np.int64).min], [-1], [part.axis])


def _part_fact(fact: Fact, part: Part) -> Fact:
    shape = fact.shape
    return Fact(fact.element, None if shape is None else (*shape[: part.axis], 1, *shape[part.axis + 1 :]))


def _widened(fact: Fact, again: Fact, attempt: int) -> Fact:
    """What holds before and after an iteration; sizes that change again and again are not known."""
    if fact.element is not again.element:
        raise OpError(f"what goes from one iteration to the next is {fact} before and {again} after it")
    return Fact(fact.element, widen_shapes(fact.shape, again.shape, attempt))
