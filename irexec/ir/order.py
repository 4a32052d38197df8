"""Orders and names of a graph: topological order, readers, unique names, layers found by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from irexec.errors import InputError
from irexec.messages import counted

if TYPE_CHECKING:
    from irexec.ir.graph import Graph, Node, Value

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


def topological(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes with every producer before its consumers, and the nodes on or after a cycle.

    Nodes that do not depend on each other keep the order in which they are written. Producers that are not nodes of the
    graph do not count.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}
    producers = [
        {position[v.node] for v in node.inputs if v is not None and v.node in position} for node in graph.nodes
    ]
    order, stuck = sort_by_producers(producers)
    return [graph.nodes[i] for i in order], [graph.nodes[i] for i in stuck]


def sort_by_producers(producers: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """The indices 0, 1, ... sorted so that all of ``producers[i]``, which are distinct, come before i.

    Returns:
        The sorted indices, and those on or after a cycle. Time is linear in nodes and edges, and nothing recurses.
    """
    waiting = [len(needed) for needed in producers]
    consumers: list[list[int]] = [[] for _ in producers]
    for i, needed in enumerate(producers):
        for producer in needed:
            consumers[producer].append(i)
    order = [i for i, count in enumerate(waiting) if count == 0]
    for i in order:
        for consumer in consumers[i]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                order.append(consumer)
    return order, [i for i, count in enumerate(waiting) if count > 0]


def walk_with_paths(graph: Graph, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every layer in the order of ``Graph.walk``, with the names of the bodies that it is in, each followed by a slash.

    Args:
        graph: a model, or a body.
        path: of the graph.
    """
    for node in graph.nodes:
        yield path, node
        for name, body in node.bodies.items():
            yield from walk_with_paths(body.graph, f"{path}{node.name}/{name}/")


def grouped(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """The second members of pairs by the first ones, both in the order of the pairs."""
    found: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def values_of_copy(graph: Graph, copy: Graph) -> dict[Value, Value]:
    """The values of a copy, which has the nodes of a graph in the same order, by those of the graph."""
    pairs = zip(graph.nodes, copy.nodes, strict=True)
    return {value: own for node, twin in pairs for value, own in zip(node.outputs, twin.outputs, strict=True)}


def readers(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    """The layers that read each value; a layer that reads it twice is there twice."""
    return grouped((value, node) for node in nodes for value in node.inputs if value is not None)


def upstream(
    nodes: Iterable[Node], followed: Callable[[Node], Iterable[Value | None]] = lambda node: node.inputs
) -> Iterator[Node]:
    """The nodes on which some nodes depend, these included, each once.

    Args:
        nodes: to begin with, from the last on.
        followed: the inputs of a node that count, followed from the last on; all unless given.
    """
    seen: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting += [value.node for value in followed(node) if value is not None]


def ancestors(nodes: Iterable[Node], is_known: Callable[[Value], bool] = lambda value: False) -> set[Node]:
    """The nodes on which some nodes depend, these included; ``is_known`` says for which values no node is needed."""

    def followed(node: Node) -> list[Value]:
        return [value for value in node.inputs if value is not None and not is_known(value)]

    return set(upstream(nodes, followed))


def in_front(value: Value | None, types: Collection[str]) -> Value | None:
    """The value in front of a chain of layers of these types, along their first inputs; None if the chain has no
    beginning: an input is not connected, or the layers are a cycle."""
    seen: set[Value] = set()
    while value is not None and value.node.type in types:
        if value in seen:
            return None
        seen.add(value)
        value = value.node.inputs[0] if value.node.inputs else None
    return value


def needed(graph: Graph, *, sinks: bool = True) -> set[Node]:
    """The nodes on which a Result or an Assign depends, these included.

    Args:
        graph: the graph.
        sinks: whether every Assign counts; otherwise one counts only if a needed node reads its variable.
    """
    found: set[Node] = set()
    waiting = [*graph.results, *(graph.sinks if sinks else ())]
    while waiting:
        found = ancestors([*found, *waiting])
        read = {node.attributes.get("variable_id") for node in found if node.type == "ReadValue"}
        waiting = [sink for sink in graph.sinks if sink not in found and sink.attributes.get("variable_id") in read]
    return found


class Names:
    """The names that are taken.

    Args:
        taken: names that are taken already.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        # The last number that was given to each name: thousands of layers may want the same one.
        self._counts: dict[str, int] = {}

    def free(self, wanted: str) -> str:
        """``wanted`` or, where that is taken, ``wanted_1``, ``wanted_2`` and so on; from then on it is taken."""
        name = wanted
        if wanted in self._taken:
            count = self._counts.get(wanted, 0) + 1
            while (name := f"{wanted}_{count}") in self._taken:
                count += 1
            self._counts[wanted] = count
        self._taken.add(name)
        return name

    def give_back(self, name: str) -> None:
        """The name may be given again."""
        self._taken.discard(name)
        wanted, _, number = name.rpartition("_")
        if number.isdecimal() and int(number) <= self._counts.get(wanted, 0):
            self._counts[wanted] = int(number) - 1


def unique_names(values: Iterable[Value]) -> dict[str, Value]:
    """Values by names, no two of them the same: the first tensor name, else ``layer`` or ``layer:index``, else
    ``id:index``."""
    found: dict[str, Value] = {}
    for value in values:
        name = next((name for name in (value.name, value.label) if name not in found), f"{value.node.id}:{value.index}")
        found[name] = value
    return found


def find_value(graph: Graph, key: str) -> Value:
    """The value that ``key`` names: a tensor name, a layer's name or id, or either of these with ``:N`` or ``.N``.

    N counts the outputs from 0. A Result means its input.

    Raises:
        InputError: there is none; the message offers similar names.
    """
    for node in graph.nodes:
        for value in node.outputs:
            if key in value.names:
                return value
    for layer, index in ((key, "0"), key.rpartition(":")[::2], key.rpartition(".")[::2]):
        owner = _node(graph, layer)
        if owner is not None and index.isascii() and index.isdigit():
            return _output(owner, int(index), key)
    inside = _inside(graph, key)
    if inside:
        raise InputError(f"{key!r} is in {inside}: only tensors outside of bodies can be given")
    raise InputError(f"there is no tensor or layer {key!r}{similar(key, all_names(graph))}")


def find_node(graph: Graph, name: str) -> Node:
    """The layer of a name or id, else the layer that computes the tensor of this name; outside of bodies.

    Raises:
        InputError: there is none; the message offers similar names.
    """
    return _node(graph, name) or find_value(graph, name).node


def similar(name: str, names: list[str]) -> str:
    """The similar names of a message; "" without any."""
    import difflib

    found = difflib.get_close_matches(name, list(dict.fromkeys(names)), 3)
    return f"; similar names are {', '.join(map(repr, found))}" if found else ""


def values_by_name(graph: Graph) -> dict[str, Value]:
    """Every value by all of its names: tensor names come first, then layers, then ``layer:port``.

    A name of several values means the first of them; a Result stands for its input.
    """
    found: dict[str, Value] = {}
    for node in graph.nodes:
        for value in node.outputs:
            for name in value.names:
                found.setdefault(name, value)
    for node in graph.nodes:
        source = node.outputs[0] if node.outputs else node.inputs[0] if node.type == "Result" and node.inputs else None
        if source is not None:
            found.setdefault(node.name, source)
    for node in graph.nodes:
        for value in node.outputs:
            found.setdefault(f"{node.name}:{value.index}", value)
    return found


def all_names(graph: Graph) -> list[str]:
    """Every name by which a tensor of the graph can be found."""
    return [name for node in graph.nodes for name in (node.name, *(n for value in node.outputs for n in value.names))]


def _inside(graph: Graph, key: str) -> str:
    """The body with a layer or tensor of this name, with or without the path of the body before it; "" if there is
    none."""
    for node in graph.nodes:
        for name, body in node.bodies.items():
            if key.removeprefix(f"{node.name}/{name}/") in all_names(body.graph):
                return f"{name} of layer {node.name!r}"
            deeper = _inside(body.graph, key.removeprefix(f"{node.name}/{name}/"))
            if deeper:
                return deeper
    return ""


def _node(graph: Graph, name: str) -> Node | None:
    if not name:
        return None
    for node in graph.nodes:
        if node.name == name:
            return node
    return next((node for node in graph.nodes if str(node.id) == name), None)


def _output(node: Node, index: int, key: str) -> Value:
    if node.type == "Result" and node.inputs and node.inputs[0] is not None:
        return node.inputs[0]
    if index >= len(node.outputs):
        raise InputError(f"there is no tensor {key!r}: layer {node.name!r} has {counted(len(node.outputs), 'output')}")
    return node.outputs[index]


def find_layer(graph: Graph, key: str) -> tuple[Graph, Node]:
    """The layer that ``key`` names and the graph that it is in: a name or id, or the path of a layer in a body, such as
    ``loop/body/add``.

    Raises:
        InputError: there is none; the message offers similar names.
    """
    found = _layer(graph, key)
    if found is None:
        raise InputError(f"there is no layer {key!r}{similar(key, [node.name for node in graph.walk()])}")
    return found


def _layer(graph: Graph, key: str) -> tuple[Graph, Node] | None:
    node = _node(graph, key)
    if node is not None:
        return graph, node
    for owner in graph.nodes:
        for name, body in owner.bodies.items():
            prefix = f"{owner.name}/{name}/"
            found = _layer(body.graph, key.removeprefix(prefix)) if key.startswith(prefix) else None
            if found is not None:
                return found
    return None
