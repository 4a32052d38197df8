"""Construction of the bodies of IR's If, Loop and TensorIterator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from converters.onnx.context import TranslationContext
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.dims import PartialShape, widen_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import BackEdge, Body, Node, PortMap, Value, slice_attributes

# Operations that never write their result over an operand.
_NEVER_IN_PLACE = {"MatMul", "Concat", "If", "Loop", "TensorIterator"}


@dataclass(frozen=True)
class IterationSlice:
    """A tensor read in slices of size 1 along an axis, one per iteration; ``reverse`` begins with the last slice."""

    axis: int
    reverse: bool = False

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a port map."""
        return slice_attributes(self.axis, reverse=self.reverse)


class BodyBuilder:
    """A body under construction, and its port maps.

    Attributes:
        inputs: the layer's inputs so far, shared by the branches of an If. The inputs that control the layer come
            first; the body does not read them.
        inner: the context of the body. Every value that the body captures becomes one input of the layer.
    """

    def __init__(self, ctx: TranslationContext, inputs: list[Value], reserved: int) -> None:
        self._outer, self.inputs, self._reserved = ctx, inputs, reserved
        self._builder = Builder(inside=ctx.builder)
        self.inner = ctx.in_body(self._builder, lambda value: self.captured(ctx.capture(value)))
        self._captured: dict[Value, Value] = {}
        self._inputs: list[tuple[Node, int, dict[str, str]]] = []
        self._results: list[tuple[Node, int | None, dict[str, str]]] = []
        self._backs: list[tuple[Node, Node]] = []

    def captured(self, value: Value) -> Value:
        """The counterpart in the body of a value of the outer graph; a constant is copied into the body."""
        if value not in self._captured:
            fact = self._outer.fact(value)
            constant = value.node.constant
            if constant is not None:
                self._captured[value] = self._builder.raw_constant(constant, value.node.name)
            else:
                self._captured[value] = self.add_input(value, fact)
        return self._captured[value]

    def add_input(self, value: Value, fact: Fact, part: IterationSlice | None = None) -> Value:
        """A Parameter for a value of the outer graph, or for its slices."""
        used = {index for _, index, _ in self._inputs}
        matching = [i for i, one in enumerate(self.inputs) if one is value and i >= self._reserved and i not in used]
        if not matching:
            matching = [len(self.inputs)]
            self.inputs.append(value)
        parameter = self._parameter(value.names[0] if value.names else value.node.name, fact)
        self._inputs.append((parameter.node, matching[0], part.attributes if part else {}))
        return parameter

    def counter(self, shape: PartialShape) -> Value:
        """A Parameter for the index of the iteration, i64.

        It must be the first Parameter: OpenVINO loses the counter when it removes a Parameter before it.
        """
        parameter = self._parameter("iteration", Fact(I64, shape))
        self._inputs.append((parameter.node, -1, {"purpose": "current_iteration"}))
        return parameter

    def _parameter(self, name: str, fact: Fact) -> Value:
        if fact.element is None:
            raise OpError(f"the element type of {name!r} is not known")
        return self._builder.parameter(fact.element, fact.shape, name, value=fact.value)

    def result(self, value: Value, output: int, part: IterationSlice | None = None) -> Node:
        """A Result for an output of the layer: the last value, or the slices of all iterations concatenated."""
        node = self._builder.result(value)
        self._results.append((node, output, part.attributes if part else {}))
        return node

    def condition(self, value: Value) -> None:
        """The Result that decides whether there is another iteration."""
        self._results.append((self._builder.result(value), None, {"purpose": "execution_condition"}))

    def safe_state(self, value: Value, parameter: Value) -> Value:
        """The next value of the state ``parameter``, copied where OpenVINO's CPU plugin would overwrite or lose it.

        The plugin may compute in place of the first operand even if that operand is a slice of an input; the next slice
        is then loaded before the state is read. The plugin also loses a state whose next value is another Parameter.
        An operation with two equal operands is neither computed in place nor removed.
        """
        kind = self.inner.element(value).kind
        passed = value.node.type == "Parameter" and value is not parameter
        if kind == "string" or not (passed or self._overwrites_slice(value)):
            return value
        return self.inner.emit("LogicalOr" if kind == "boolean" else "Maximum", value, value)

    def _overwrites_slice(self, value: Value) -> bool:
        parts = {node for node, _, more in self._inputs if "axis" in more}
        node: Node | None = value.node
        while node is not None and node not in parts:
            source = node.inputs[0] if node.inputs and node.type not in _NEVER_IN_PLACE else None
            node = None if source is None else source.node
        return node is not None

    def feed_back(self, parameter: Value, result: Node) -> None:
        """Let the Result be the value of the Parameter in the next iteration."""
        self._backs.append((result, parameter.node))

    @property
    def depends_on_slices(self) -> bool:
        """Whether every Result depends on a slice of an input, at least through earlier iterations."""
        parts = {node for node, _, more in self._inputs if "axis" in more}
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
        """The body; to be called when all inputs of the layer are known."""
        self._builder.drop_unused()
        nodes = self._builder.graph.nodes
        read = {value.node for node in nodes for value in node.inputs if value is not None}
        used = [entry for entry in self._inputs if entry[1] >= 0 or entry[0] in read]
        idle = {entry[0] for entry in self._inputs} - {entry[0] for entry in used}
        nodes[:] = [node for node in nodes if node not in idle]
        for number, node in enumerate(nodes):
            node.id = number
        maps = [PortMap("input", index, node.id, dict(more)) for node, index, more in used]
        first = len(self.inputs)
        maps += [
            PortMap("output", -1 if i is None else first + i, node.id, dict(more)) for node, i, more in self._results
        ]
        return Body(self._builder.graph, maps, [BackEdge(result.id, parameter.id) for result, parameter in self._backs])


@dataclass(frozen=True)
class IterationResult:
    """The results of one iteration.

    Attributes:
        states: the states of the next iteration.
        slices: the slices of concatenated tensors, whose size along their axis is 1.
        condition: whether there is a next iteration; None for always.
    """

    states: Sequence[Value]
    slices: Sequence[tuple[Value, IterationSlice]] = field(default_factory=tuple)
    condition: Value | None = None


BuildIteration = Callable[[BodyBuilder, list[Value], list[Value]], IterationResult]


def build_loop(
    ctx: TranslationContext, states: Sequence[Value], sliced: Sequence[tuple[Value, IterationSlice]],
    iteration: BuildIteration, *, bounds: tuple[Value, Value] | None = None, counter: PartialShape = (),
) -> tuple[Value, ...]:  # fmt: skip
    """A Loop, or without ``bounds`` a TensorIterator over slices: the last states, then the concatenated tensors.

    OpenVINO does not support nested TensorIterators, and runs a TensorIterator only once if no used output depends on
    its slices; both become Loops over slices.

    The body is built repeatedly until the shapes of its states no longer change: they then hold in every iteration.

    Args:
        ctx: the context.
        states: the initial states.
        sliced: tensors to read in slices.
        iteration: builds the body from the builder, the states and the slices.
        bounds: the trip count and the condition before the first iteration.
        counter: the shape of the iteration's index, which ``iteration`` of a Loop receives before the slices.

    Raises:
        OpError: a state changes its element type.
    """
    settled = ctx.settled.inner(ctx.node.output)
    facts = settled.joined_with([Fact(ctx.element(state), ctx.fact(state).shape) for state in states])
    for attempt in itertools.count(1 if settled.facts else 0):
        builder = BodyBuilder(ctx, list(bounds or ()), len(bounds or ()))
        builder.inner.settled = settled
        settled.begin()
        counters = [] if bounds is None else [builder.counter(counter)]
        given = [builder.add_input(state, fact) for state, fact in zip(states, facts, strict=True)]
        slices = [builder.add_input(value, _slice_fact(ctx.fact(value), part), part) for value, part in sliced]
        done = iteration(builder, given, [*counters, *slices])
        widened = [
            _widened(fact, builder.inner.fact(value), attempt) for fact, value in zip(facts, done.states, strict=True)
        ]
        if all(old.shape == new.shape for old, new in zip(facts, widened, strict=True)):
            break
        facts = widened
    settled.facts = facts
    if bounds is not None:
        builder.condition(builder.inner.constant(True) if done.condition is None else done.condition)
    for i, (parameter, value) in enumerate(zip(given, done.states, strict=True)):
        builder.feed_back(parameter, builder.result(builder.safe_state(value, parameter), i))
    for i, (value, part) in enumerate(done.slices, len(given)):
        builder.result(value, i, part)
    nested = any(node.type == "TensorIterator" for node in builder.inner.builder.graph.nodes)
    if bounds is None and (nested or not builder.depends_on_slices):
        return _loop_over_slices(ctx, states, sliced, iteration)
    body = builder.body()
    outputs: tuple[Value, ...] = ctx.emit(
        "TensorIterator" if bounds is None else "Loop", *builder.inputs, bodies={"body": body}
    )
    if bounds is None:
        return outputs
    read = {value.node for node in body.graph.nodes for value in node.inputs if value is not None}
    idle = {i for i, parameter in enumerate(given) if parameter.node not in read}
    return tuple(_unless_idle(ctx, bounds, states[i], value) if i in idle else value for i, value in enumerate(outputs))


def _unless_idle(ctx: TranslationContext, bounds: tuple[Value, Value], initial: Value, last: Value) -> Value:
    """The last value of a state that the body does not read: OpenVINO loses the initial one without an iteration."""
    trips, condition = bounds
    ran = ctx.emit("LogicalAnd", ctx.emit("NotEqual", ctx.scalar(trips), ctx.constant(0)), ctx.scalar(condition))
    known = ctx.known(ran)
    if known is not None:
        return last if bool(known) else initial
    inputs, bodies = [ran], {}
    for name, value in (("then_body", last), ("else_body", initial)):
        bodies[name] = builder = BodyBuilder(ctx, inputs, reserved=1)
        builder.result(builder.captured(value), 0)
    outputs: tuple[Value, ...] = ctx.emit(
        "If", *inputs, bodies={name: builder.body() for name, builder in bodies.items()}
    )
    return outputs[0]


def _loop_over_slices(
    ctx: TranslationContext, states: Sequence[Value], sliced: Sequence[tuple[Value, IterationSlice]],
    iteration: BuildIteration,
) -> tuple[Value, ...]:  # fmt: skip
    """A TensorIterator as a Loop. A Loop reads slices in ascending order only: tensors are reversed outside of it."""
    output_slices: list[IterationSlice] = []

    def from_first(builder: BodyBuilder, given: list[Value], parts: list[Value]) -> IterationResult:
        done = iteration(builder, given, parts[1:])
        output_slices[:] = [part for _, part in done.slices]
        return IterationResult(
            done.states, [(value, IterationSlice(part.axis)) for value, part in done.slices], done.condition
        )

    ordered = [(_reversed(ctx, value, part), IterationSlice(part.axis)) for value, part in sliced]
    outputs = build_loop(
        ctx, states, ordered, from_first, bounds=(ctx.size(sliced[0][0], sliced[0][1].axis), ctx.constant(True))
    )
    rest = zip(outputs[len(states) :], output_slices, strict=True)
    return (*outputs[: len(states)], *(_reversed(ctx, value, part) for value, part in rest))


def _reversed(ctx: TranslationContext, value: Value, part: IterationSlice) -> Value:
    if not part.reverse:
        return value
    return ctx.emit("Slice", value, [-1], [np.iinfo(np.int64).min], [-1], [part.axis])


def _slice_fact(fact: Fact, part: IterationSlice) -> Fact:
    shape = fact.shape
    return Fact(fact.element, None if shape is None else (*shape[: part.axis], 1, *shape[part.axis + 1 :]))


def _widened(fact: Fact, again: Fact, attempt: int) -> Fact:
    """The fact that holds before and after an iteration; a size that keeps changing becomes unknown."""
    if fact.element is not again.element:
        raise OpError(f"a state is {fact} before an iteration and {again} after it")
    return Fact(fact.element, widen_shapes(fact.shape, again.shape, attempt))
