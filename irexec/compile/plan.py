"""From a graph to a plan: steps in order, on numbered slots, each freed at its last use.

A plan is immutable and knows no state, so that threads can share it. With ``optimize`` what can be
computed now is (constants folded), and fast kernels are selected; without, every step is the
reference kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple, rounded
from irexec.analysis.shape_inference import Inference
from irexec.backend.registry import find_fast_kernel
from irexec.compile.errors import located
from irexec.compile.sequences import as_sequence
from irexec.compile.steps import BodyPlan, Plan, Step
from irexec.dtypes.elements import F16, Element
from irexec.errors import ModelError, NodeError, OpError, UnsupportedError
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import topological
from irexec.schema.injected import ElementTypes, Runner, Variables
from irexec.schema.inputs import check_inputs
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve


def plan(graph: Graph, inference: Inference, targets: Sequence[Value] | None = None, *, optimize: bool = True) -> Plan:
    """Plan the computation of ``targets`` (by default the Results) and of everything that has an effect.

    What tolerant inference could not infer is left out: an Assign behind it has no effect.

    Raises:
        NodeError, UnsupportedError, ModelError: a target depends on what cannot be computed.
    """
    wanted = [_source(node) for node in graph.results] if targets is None else list(targets)
    return _Planner(graph, inference, wanted, optimize).plan()


def _source(result: Node) -> Value:
    if not result.inputs or result.inputs[0] is None:
        raise ModelError(f"layer {result.id} {result.name!r} (Result) has no input")
    return result.inputs[0]


class _Planner:
    def __init__(self, graph: Graph, inference: Inference, targets: Sequence[Value], optimize: bool) -> None:
        self.graph, self.inference, self.targets, self.optimize = graph, inference, targets, optimize
        self.known: dict[Value, np.ndarray] = {}
        self.slots: dict[Value, int] = {}
        self.roots: dict[Value, frozenset[Any]] = {}

    def plan(self) -> Plan:
        order = self._needed()
        live = [node for node in order if not self._fold(node)]
        for value in self._read_by(live):
            self.slots.setdefault(value, len(self.slots))
        last = self._last_uses(live)
        steps = tuple(self._step(node, last.get(node, ())) for node in live if node.type != "Parameter")
        constants = tuple((slot, self.known[value]) for value, slot in self.slots.items() if value in self.known)
        parameters = tuple(self.slots.get(node.outputs[0], -1) if node.outputs else -1 for node in self.graph.parameters)
        copied = self._copied(order)
        return Plan(steps, len(self.slots), constants, parameters, tuple(self.slots[v] for v in self.targets), copied)

    def _needed(self) -> list[Node]:
        order, stuck = topological(self.graph)
        blocked = self.inference.blocked(self.graph)
        for value in self.targets:
            if value.node in blocked:
                raise blocked[value.node]
        wanted = {value.node for value in self.targets} | (set(self.graph.sinks) - set(blocked))
        if stuck and wanted & set(stuck):
            raise ModelError(f"layers {', '.join(repr(n.name) for n in stuck[:5])} are on or behind a cycle")
        for node in reversed(order):
            if node in wanted:
                wanted.update(value.node for value in node.inputs if value is not None)
        return [node for node in order if node in wanted]

    def _definition(self, node: Node) -> OpDef:
        try:
            return resolve(node.type, node.version)
        except UnsupportedError as error:
            raise UnsupportedError(f"layer {node.id} {node.name!r}: {error}") from None

    def _fold(self, node: Node) -> bool:
        """Whether the node's outputs are known now."""
        if node.type == "Parameter":
            return False
        definition = self._definition(node)
        if node.type != "Constant":
            if not self.optimize or not definition.deterministic or definition.stateful or node.bodies:
                return False
            if any(value is None or value not in self.known for value in node.inputs):
                return self._fold_from_facts(node)
        attributes = self._attributes(node, definition, [self._input_fact(value) for value in node.inputs])
        if node.type == "Constant":
            attributes |= dict.fromkeys(definition.injected, node.constant)
        inputs = [self.known[value] for value in node.inputs if value is not None]
        outputs = as_tuple(located(node, definition, inputs, attributes))
        for value, array in zip(node.outputs, outputs, strict=False):
            array = rounded(array, self._fact(value).element)
            array.flags.writeable = False
            self.known[value] = array
        return True

    def _fold_from_facts(self, node: Node) -> bool:
        values = [self._fact(value).known for value in node.outputs]
        if not values or any(value is None for value in values):
            return False
        for value, array in zip(node.outputs, values, strict=True):
            if array is not None:
                self.known[value] = array
        return True

    def _fact(self, value: Value) -> Fact:
        return self.inference.facts[value]

    def _read_by(self, live: Sequence[Node]) -> list[Value]:
        read = [value for node in live for value in node.inputs if value is not None]
        return list(dict.fromkeys([*read, *self.targets]))

    def _last_uses(self, live: Sequence[Node]) -> dict[Node, tuple[int, ...]]:
        kept = set(self.targets) | set(self.known)
        last: dict[Value, Node] = {}
        for node in live:
            for value in (*node.outputs, *node.inputs):
                if value is not None and value in self.slots and value not in kept:
                    last[value] = node
        frees: dict[Node, list[int]] = {}
        for value, node in last.items():
            frees.setdefault(node, []).append(self.slots[value])
        return {node: tuple(slots) for node, slots in frees.items()}

    def _step(self, node: Node, frees: tuple[int, ...]) -> Step:
        definition = self._definition(node)
        facts = [self._input_fact(value) for value in node.inputs]
        try:
            definition.check_input_count(len(facts))
            attributes = self._attributes(node, definition, facts)
        except OpError as error:
            raise NodeError(f"layer {node.id} {node.name!r} ({node.type}): {error}", node=node.name, reason=str(error)) from error
        bodies = {name: self._body(node, node.bodies[name]) for name, kind in definition.injected.items() if kind is Runner}
        state = next((name for name, kind in definition.injected.items() if kind is Variables), None)
        sequence = None
        if bodies and self.optimize:
            sequence = as_sequence(next(iter(bodies.values())), facts, [self._fact(value) for value in node.outputs])
        injected = bool(bodies) or state is not None
        call = sequence or (_with(definition, attributes) if injected else self._call(node, definition, facts, attributes))
        static = all(fact.is_static and fact.element is not None for fact in facts)
        static = static and all(fact.known is not None for fact in facts[1:] if _is_shape_like(fact))
        check = None if static else functools.partial(_check_declared if injected else _check, definition, attributes)
        elements = tuple(_rounding(self._fact(value).element) for value in node.outputs)
        outputs = tuple(self.slots.get(value, -1) for value in node.outputs)
        inputs = tuple(self.slots[value] for value in node.inputs if value is not None)
        types = tuple(fact.element for fact in facts)
        rounds = any(elements) and not definition.view
        return Step(node, call, inputs, outputs, frees, elements if rounds else None, check, types, {} if sequence else bodies, state)

    @staticmethod
    def _attributes(node: Node, definition: OpDef, inputs: Sequence[Fact]) -> dict[str, Any]:
        """The typed attributes, with the element types of the inputs where the operation asks for them."""
        values = typed_attributes(node, definition).require()
        if definition.elements_parameter is not None:
            values[definition.elements_parameter] = ElementTypes(fact.element for fact in inputs)
        return values

    def _input_fact(self, value: Value | None) -> Fact:
        if value is None:
            return Fact(None, None)
        fact = self._fact(value)
        array = self.known.get(value)
        return fact if array is None else Fact(fact.element, array.shape, array)

    def _call(self, node: Node, definition: OpDef, facts: Sequence[Fact], attributes: dict[str, Any]) -> Callable[..., Any]:
        if self.optimize and definition.first_output_kernel is not None and not any(value in self.slots for value in node.outputs[1:]):
            return _with(definition.first_output_kernel, attributes)
        fast = find_fast_kernel(definition, facts, attributes) if self.optimize else None
        if fast is not None:
            return fast
        if definition.widen and any(fact.element is None or fact.element is F16 for fact in facts):
            return _with(definition, attributes)
        # A run ignores floating-point errors as a whole, so that no step has to.
        return functools.partial(definition.kernel, **attributes) if attributes else definition.kernel

    def _body(self, node: Node, body: Body) -> BodyPlan:
        return BodyPlan(node, body, plan(body.graph, self.inference, optimize=self.optimize))

    def _copied(self, order: Sequence[Node]) -> tuple[bool, ...]:
        """Which targets may share memory with what is not theirs, following operations that return views."""
        for node in order:
            passes = node.type != "Constant" and (self._definition(node).view or bool(node.bodies) or self._definition(node).stateful)
            through = frozenset[Any]().union(*(self.roots[v] for v in node.inputs if v is not None)) if passes else frozenset()
            fixed = node.type == "Parameter" or any(value in self.known for value in node.outputs) or self._has_state(node)
            for value in node.outputs:
                self.roots[value] = through | {"fixed"} if fixed else through or frozenset([value])
        seen: set[Any] = {"fixed"}
        copied = []
        for value in self.targets:
            copied.append(bool(self.roots[value] & seen))
            seen |= self.roots[value]
        return tuple(copied)

    def _has_state(self, node: Node) -> bool:
        return node.type not in ("Parameter", "Constant") and (self._definition(node).stateful or bool(node.bodies))


def _check(definition: OpDef, attributes: dict[str, Any], *inputs: Fact) -> None:
    """Raise OpError unless the inputs of a run, which were not known before, are what the operation takes."""
    definition.infer(inputs, attributes)


def _check_declared(definition: OpDef, attributes: dict[str, Any], *inputs: Fact) -> None:
    """Raise OpError unless the inputs of a run have the declared types and ranks: all that can be checked without inferring bodies."""
    check_inputs(definition.inputs, inputs)


def _with(function: Callable[..., Any], attributes: dict[str, Any]) -> Callable[..., Any]:
    def call(*inputs: Any, **injected: Any) -> Any:
        return function(*inputs, **attributes, **injected)

    return call


def _is_shape_like(fact: Fact) -> bool:
    return fact.element is not None and fact.element.is_integer


def _rounding(element: Element | None) -> Element | None:
    return None if element is None or element.native else element
