"""Shape inference for validation: where a wrong attribute makes all that is behind it wrong, only its layer is to be reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irexec.analysis.shape_inference import ShapeInference
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value


class SettlingInference(ShapeInference):
    """Tolerant shape inference that goes on from what an output declares, if that is not what its layer gives and all its consumers agree.

    What the layer gives is then in ``inference.overruled``. Bodies are inferred as they are: their Parameters have no
    declared shape of their own.
    """

    def __init__(self) -> None:
        super().__init__(tolerant=True)
        self._graph: Graph | None = None
        self._consumers: dict[Value, list[tuple[Node, Input]]] | None = None

    def graph(self, graph: Graph, given: Mapping[Node, Fact]) -> None:
        if self._graph is None:
            self._graph = graph
        super().graph(graph, given)

    def _set(self, node: Node, facts: Sequence[Fact]) -> None:
        super()._set(node, facts)
        if self._path:
            return
        for value, fact in zip(node.outputs, facts, strict=False):
            declared = value.fact
            if declared is None or (declared.shape == fact.shape and declared.element is fact.element):
                continue
            settled = self._settled(value, declared, fact)
            if settled is not None:
                self.inference.overruled[value] = fact
                self.inference.facts[value] = settled

    def _settled(self, value: Value, declared: Fact, fact: Fact) -> Fact | None:
        # No dims are those of a scalar or of an unknown rank.
        other_shape = declared.shape != () and contradict(declared.shape, fact.shape)
        other_element = None not in (declared.element, fact.element) and declared.element is not fact.element
        if not other_shape and not other_element:
            return None
        consumers = self._consumers_of(value)
        ports = [port.fact for _, port in consumers]
        # Results of old versions of IR declare the type in which they are given out.
        element = other_element and any(node.type != "Result" for node, _ in consumers)
        if other_shape and not all(port is not None and port.shape == declared.shape for port in ports):
            other_shape = False
        if element and not all(port is not None and port.element is declared.element for port in ports):
            element = False
        if not ports or not (other_shape or element):
            return None
        return Fact(declared.element if element else fact.element, declared.shape if other_shape else fact.shape)

    def _consumers_of(self, value: Value) -> list[tuple[Node, Input]]:
        if self._consumers is None:
            self._consumers = {}
            for node in self._graph.nodes if self._graph is not None else ():
                for port in node.ports:
                    if port.source is not None:
                        self._consumers.setdefault(port.source, []).append((node, port))
        return self._consumers.get(value, [])
