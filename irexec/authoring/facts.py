"""Facts of a model that is edited: inferred again only where something has changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from irexec.analysis.body_facts import key_of
from irexec.analysis.model import with_blocking_constant
from irexec.analysis.shape_inference import Inference, ShapeInference
from irexec.analysis.validate import infer_unreached
from irexec.errors import IrexecError, ModelError
from irexec.ir.facts import Fact
from irexec.ir.graph import ModelGraph, Node, Value
from irexec.ir.order import topological

Saved = tuple[dict[Value, Fact], dict[Node, IrexecError]]


class Facts:
    """The facts of every value of a model.

    Args:
        model: layers that cannot be inferred have the facts that their ports declare, as in a tolerant inference.

    Attributes:
        walk: the shape inference, which knows all facts.
        inferred: number of layers outside of bodies that have been inferred so far.
    """

    def __init__(self, model: ModelGraph) -> None:
        self.model = model
        self.walk = ShapeInference(tolerant=True)
        self.walk.graph(model, {})
        infer_unreached(self.walk, model.walk())
        self.inferred = len(model.nodes)

    @property
    def inference(self) -> Inference:
        """Facts and failures."""
        return self.walk.inference

    def __getitem__(self, value: Value) -> Fact:
        return self.inference.facts.get(value, Fact(None, None))

    def saved(self) -> Saved:
        """A copy of facts and failures."""
        return dict(self.inference.facts), dict(self.inference.failures)

    def restore(self, saved: Saved) -> None:
        """Set facts and failures to what they were."""
        facts, failures = self.inference.facts, self.inference.failures
        facts.clear()
        facts.update(saved[0])
        failures.clear()
        failures.update(saved[1])

    def update(self, changed: Collection[Node]) -> None:
        """Infer the changed layers, and all layers to whose inputs the new facts spread.

        Raises:
            NodeError, UnsupportedError: a layer that could be inferred before no longer can.
            ModelError: the graph has a cycle.
        """
        order, stuck = topological(self.model)
        if stuck:
            names = ", ".join(repr(node.name) for node in stuck[:5])
            raise ModelError(f"layers {names} are on or after a cycle")
        moved: set[Value] = set()
        for node in order:
            if node in changed or any(value in moved for value in node.inputs):
                moved |= self.infer(node)

    def infer(self, node: Node) -> set[Value]:
        """Infer one layer again; the outputs that have other facts than before."""
        facts, failures = self.inference.facts, self.inference.failures
        before = [facts.get(value) for value in node.outputs]
        nodes = list(with_bodies(node))
        failed = {inner: failures.pop(inner) for inner in nodes if inner in failures}
        self.inferred += 1
        self.walk.node(node)
        infer_unreached(self.walk, nodes)
        error = next((failures[inner] for inner in nodes if inner in failures and inner not in failed), None)
        if error is not None:
            raise with_blocking_constant(node, error)
        return {value for value, old in zip(node.outputs, before, strict=True) if not _same(old, facts.get(value))}


def _same(one: Fact | None, other: Fact | None) -> bool:
    return one is other or (one is not None and other is not None and key_of([one]) == key_of([other]))


def with_bodies(node: Node) -> Iterator[Node]:
    yield node
    for body in node.bodies.values():
        yield from body.graph.walk()
