"""The state of a model at one moment, to which it can be taken back exactly."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from irexec.authoring.facts import with_bodies
from irexec.ir.graph import Input, ModelGraph, Node, Value, graphs

_NODE = tuple(each.name for each in fields(Node) if each.name != "typed")
_INPUT, _VALUE = (tuple(each.name for each in fields(kind)) for kind in (Input, Value))


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of an object; contents of lists and dictionaries are kept beside the object that contains them."""

    owner: Any
    values: tuple[tuple[str, Any], ...]
    contents: tuple[tuple[Any, Any], ...]

    @staticmethod
    def of(owner: Any, names: tuple[str, ...]) -> _Fields:
        values = tuple([(name, getattr(owner, name)) for name in names])
        return _Fields(owner, values, tuple([(v, v.copy()) for _, v in values if isinstance(v, list | dict)]))

    def restore(self) -> None:
        for container, content in self.contents:
            container.clear()
            container.extend(content) if isinstance(container, list) else container.update(content)
        for name, value in self.values:
            setattr(self.owner, name, value)


@dataclass(frozen=True, slots=True)
class _NodeState:
    """A node: its fields, and what shape inference depends on."""

    parts: tuple[_Fields, ...]
    key: tuple[Any, ...]

    @staticmethod
    def of(node: Node) -> _NodeState:
        parts = [_Fields.of(node, _NODE)]
        parts += [_Fields.of(port, _INPUT) for port in node.ports]
        parts += [_Fields.of(value, _VALUE) for value in node.outputs]
        parts += [_Fields.of(body, ("graph", "port_maps", "back_edges")) for body in node.bodies.values()]
        return _NodeState(tuple(parts), key_of(node))


def key_of(node: Node) -> tuple[Any, ...]:
    """Everything of a node on which its facts depend, besides the facts of its inputs; bodies are part of it."""
    bodies = tuple(
        [
            (name, body.graph, tuple(body.graph.nodes), tuple(map(_port_map, body.port_maps)), tuple(body.back_edges))
            for name, body in node.bodies.items()
        ]
    )
    own = (node.id, node.type, node.version, tuple(node.attributes.items()), node.constant)
    return (*own, node.inputs, tuple(node.outputs), bodies)


def _port_map(entry: Any) -> tuple[Any, ...]:
    return entry.kind, entry.external, entry.internal, tuple(entry.attributes.items())


class Snapshot:
    """The state of a model.

    Args:
        model: stays the same object, and so do its layers; what is taken back are their contents.
    """

    def __init__(self, model: ModelGraph) -> None:
        self._graphs = [_Fields.of(graph, tuple(vars(graph))) for graph in graphs(model)]
        self._nodes = {node: _NodeState.of(node) for node in model.walk()}

    def restore(self) -> None:
        """Take the model back."""
        for graph in self._graphs:
            graph.restore()
        for state in self._nodes.values():
            for part in state.parts:
                part.restore()

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    def changed(self, model: ModelGraph) -> set[Node]:
        """Layers outside of bodies whose facts may have changed since, other than by their inputs; new ones too."""
        return {node for node in model.nodes if any(map(self._has_changed, with_bodies(node)))}

    def _has_changed(self, node: Node) -> bool:
        state = self._nodes.get(node)
        return state is None or state.key != key_of(node)
