"""Shape inference: a Fact for every value of a graph, from the Parameters on. Facts of bodies are remembered: no body
is inferred twice from the same facts of its Parameters.

The rule of a loop infers its body several times, and so does that of a loop inside it. Without remembering, the
innermost of nested loops would be inferred 3**depth times and more.

It is strict (the first failure raises a NodeError with its location) or tolerant (failures are collected, and
inference continues from the declared ports).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple, with_values
from irexec.errors import IrexecError, ModelError, NodeError, OpError, UnsupportedError, check
from irexec.ir.constants import Constant
from irexec.ir.facts import EveryOutput, Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import topological
from irexec.ir.process import collection_paused
from irexec.messages import counted
from irexec.schema.attributes import ElementTypes, Runner
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve

MAX_INFERENCES = 100
"""Number of different facts of its Parameters that a body is inferred from. After these, its Parameters count as
unknown."""

Key = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class _Inferred:
    """One inference of a body: the facts of the values of its own graph, and the keys of the bodies of its nodes."""

    facts: dict[Value, Fact]
    inside: tuple[tuple[Graph, Key], ...]


class BodyFacts:
    """The inferences of the bodies of one node, nested ones included.

    Args:
        facts: of every value; the values of a body have the facts of the last inference, made or recalled.
    """

    def __init__(self, facts: dict[Value, Fact]) -> None:
        self._facts = facts
        self._made: dict[Graph, dict[Key, _Inferred]] = {}
        self._current: dict[Graph, Key] = {}

    def clear(self) -> None:
        """Forget all inferences; the facts stay."""
        self._made.clear()
        self._current.clear()

    def count(self, graph: Graph) -> int:
        """Number of inferences of a body that are kept."""
        return len(self._made.get(graph, ()))

    def recall(self, graph: Graph, key: Key) -> bool:
        """Set the facts of a body to those of an earlier inference; False if there is none."""
        found = self._made.get(graph, {}).get(key)
        if found is None:
            return False
        if self._current[graph] != key:
            self._facts.update(found.facts)
            self._current[graph] = key
            for body, inner in found.inside:
                self.recall(body, inner)
        return True

    def keep(self, graph: Graph, key: Key) -> None:
        """Keep the facts that a body has now."""
        values = (value for node in graph.nodes for value in node.outputs)
        bodies = (body.graph for node in graph.nodes for body in node.bodies.values())
        inside = tuple((body, self._current[body]) for body in bodies if body in self._current)
        self._made.setdefault(graph, {})[key] = _Inferred(
            {value: self._facts[value] for value in values if value in self._facts}, inside
        )
        self._current[graph] = key


def key_of(given: Sequence[Fact]) -> Key:
    """Key that two inferences of a body from equal facts have in common."""
    return tuple(map(_key, given))


def _key(fact: Fact) -> Hashable:
    value = fact.value
    if value is None:
        return fact.element, fact.shape
    # An object array holds integers, Dims or texts: all hashable, and other for other values.
    return (
        fact.element,
        fact.shape,
        value.dtype.str,
        tuple(value.ravel().tolist()) if value.dtype == object else value.tobytes(),
    )


UNKNOWN = Fact(None, None)


@dataclass
class Inference:
    """The result of shape inference.

    Attributes:
        facts: for every value of the graph and of its bodies.
        failures: the first error of each node that could not be inferred, a NodeError or an UnsupportedError; empty
            when strict.
    """

    facts: dict[Value, Fact] = field(default_factory=dict)
    failures: dict[Node, IrexecError] = field(default_factory=dict)

    def __getitem__(self, value: Value) -> Fact:
        return self.facts[value]

    def blocked(self, graph: Graph) -> dict[Node, IrexecError]:
        """The nodes of ``graph`` that cannot be computed, each with the first failure that it depends on.

        A failure of the node itself comes last: it may follow from declared types and shapes of what has failed.
        """
        if not self.failures:
            return {}
        found: dict[Node, IrexecError] = {}
        for node in topological(graph)[0]:
            inside = (inner for body in node.bodies.values() for inner in body.graph.walk())
            errors = [found.get(value.node) for value in node.inputs if value is not None]
            errors += [self.failures.get(node), *map(self.failures.get, inside)]
            error = next((error for error in errors if error is not None), None)
            if error is not None:
                found[node] = error
        return found


def infer_shapes(graph: Graph, given: Mapping[Node, Fact] | None = None, *, tolerant: bool = False) -> Inference:
    """Infer the facts of every value.

    Args:
        graph: a graph, which is not changed.
        given: facts for Parameters in place of what their attributes say.
        tolerant: collect failures instead of raising the first.

    Raises:
        NodeError: a node's inputs or attributes are wrong.
        UnsupportedError: an operation is not implemented.
        ModelError: the graph has a cycle.
    """
    walk = ShapeInference(tolerant)
    with collection_paused():
        walk.graph(graph, given or {})
    return walk.inference


class ShapeInference:
    """Infers graphs and their bodies; knows the path of bodies it is in.

    Attributes:
        tolerant: whether failures are collected; otherwise the first is raised.
        bodies_are_final: whether bodies stay as they are once they have been inferred, so that what was inferred of
            them is kept.
    """

    def __init__(self, tolerant: bool) -> None:
        self.tolerant, self.bodies_are_final = tolerant, False
        self.inference = Inference()
        self._bodies = BodyFacts(self.inference.facts)
        self._path: list[str] = []

    def graph(self, graph: Graph, given: Mapping[Node, Fact]) -> None:
        """Infer every node of ``graph``, whose Parameters have the facts ``given``."""
        order, stuck = topological(graph)
        if stuck and not self.tolerant:
            raise ModelError(f"layers {', '.join(repr(n.name) for n in stuck[:5])} are on or after a cycle")
        for node in stuck:
            self._fall_back(node)
        for node in order:
            if node in given:
                self._set(node, (given[node],))
            else:
                self.node(node)

    def body(self, graph: Graph, step: str, inputs: Sequence[Fact]) -> None:
        """Infer a body from the facts of its Parameters, or recall what was inferred from the same ones."""
        if self._bodies.recall(graph, key_of(inputs)):
            return
        if self._bodies.count(graph) >= MAX_INFERENCES:
            inputs = (UNKNOWN,) * len(inputs)
            if self._bodies.recall(graph, key_of(inputs)):
                return
        with self.enter(step):
            self.graph(graph, dict(zip(graph.parameters, inputs, strict=True)))
        self._bodies.keep(graph, key_of(inputs))

    def node(self, node: Node) -> None:
        """Infer one node whose producers are done."""
        inputs = [UNKNOWN if v is None else self.inference.facts.get(v, UNKNOWN) for v in node.inputs]
        try:
            check(bool(node.outputs) or node.type != "Parameter", "has no output, expected 1")
            self._set(node, as_tuple(self._outputs(node, inputs)))
        except NodeError as error:
            self._failed(node, error, error)
        except OpError as error:
            self._failed(node, error, self.located(node, inputs, error))
        except UnsupportedError as error:
            self._failed(node, error, UnsupportedError(f"{self.where(node)}: {error}"))

    def infer_new_node(self, node: Node) -> Fact | tuple[Fact, ...]:
        """The facts of a node that is being built: a tuple where its rule gives a tuple; the error has its location."""
        inputs = [UNKNOWN if v is None else self.inference.facts[v] for v in node.inputs]
        try:
            return self._outputs(node, inputs)
        except NodeError:
            raise
        except OpError as error:
            raise self.located(node, inputs, error) from error

    def _outputs(self, node: Node, inputs: Sequence[Fact]) -> Fact | tuple[Fact, ...]:
        if node.bodies and not self._path and not self.bodies_are_final:
            # Bodies of other nodes are other graphs, and a graph may have changed since.
            self._bodies.clear()
        definition = resolve(node.type, node.version)
        definition.check_input_count(len(inputs))
        arguments = typed_attributes(node, definition).require() | self._injected(definition, node, inputs)
        inferred = definition.infer(inputs, arguments)
        if isinstance(inferred, EveryOutput):
            check(bool(node.outputs), "the number of outputs is not known")
            inferred = (inferred.fact,) * len(node.outputs)
        outputs = as_tuple(inferred)
        if not node.bodies and (node.constant is None or node.constant.is_readable):
            outputs = with_values(definition, inputs, arguments, outputs)
        if len(outputs) < len(node.outputs):
            raise OpError(f"has {counted(len(node.outputs), 'output')}, expected {len(outputs)}")
        return outputs if isinstance(inferred, tuple | list) else outputs[0]

    def _injected(self, definition: OpDef, node: Node, inputs: Sequence[Fact]) -> dict[str, Any]:
        injected: dict[str, Any] = {}
        for name, kind in definition.injected.items():
            if kind is Runner:
                check(name in node.bodies, f"has no {name}")
                injected[name] = FactsRunner(self, node, name)
            elif kind is Constant:
                check(node.constant is not None, "has no readable data")
                injected[name] = node.constant
            elif kind is ElementTypes:
                injected[name] = ElementTypes(fact.element for fact in inputs)
            else:
                injected[name] = {}
        return injected

    def _set(self, node: Node, facts: Sequence[Fact]) -> None:
        for value, fact in zip(node.outputs, facts, strict=False):
            self.inference.facts[value] = fact

    def _failed(self, node: Node, error: IrexecError, located: IrexecError) -> None:
        if not self.tolerant:
            raise located from error
        self.inference.failures.setdefault(node, located)
        self._fall_back(node)

    def _fall_back(self, node: Node) -> None:
        """Continue from what the ports declare; no dims may mean a scalar or an unknown rank."""
        for value in node.outputs:
            fact = value.fact or UNKNOWN
            self.inference.facts[value] = Fact(fact.element, fact.shape or None)

    def where(self, node: Node) -> str:
        """The location of a node, for a message."""
        path = "".join(f"{step} > " for step in self._path)
        line = "" if node.line is None else f", line {node.line}"
        # A node that is in no graph yet has a negative id, which is nobody's business.
        number = f"{node.id} " if node.id >= 0 else ""
        return f"layer {number}{path}{node.name!r} ({node.type} of {node.version or 'no version'}{line})"

    def located(self, node: Node, inputs: Sequence[Fact], error: OpError) -> NodeError:
        """The error with its location, its inputs and its attributes."""
        texts = [f"{name}={text}" for name, text in node.attributes.items() if len(str(text)) < 80]
        inside = f"; attributes {', '.join(texts)}" if texts else ""
        given = f"; inputs {', '.join(map(str, inputs))}" if inputs else ""
        return NodeError(
            f"{self.where(node)}: {error}{given}{inside}", node="/".join([*self._path, node.name]), reason=str(error)
        )

    @contextmanager
    def enter(self, step: str) -> Iterator[None]:
        """The walk is inside the body ``step`` while the context lasts."""
        self._path.append(step)
        try:
            yield
        finally:
            self._path.pop()


class FactsRunner(Runner):
    """A body as a facts rule calls it: Facts of its Parameters in, Facts of its Results out."""

    def __init__(self, walk: ShapeInference, node: Node, name: str) -> None:
        self.node, self.body, self.outputs = node, node.bodies[name], ()
        self._inference, self._step = walk, f"{node.name}/{name}"

    def __call__(self, *inputs: Fact) -> list[Fact]:
        graph = self.body.graph
        if len(inputs) != len(graph.parameters):
            raise OpError(f"a body of {counted(len(graph.parameters), 'parameter')} is given {len(inputs)}")
        self._inference.body(graph, self._step, inputs)
        facts, sources = self._inference.inference.facts, [(*node.inputs, None)[0] for node in graph.results]
        return [UNKNOWN if source is None else facts.get(source, UNKNOWN) for source in sources]
