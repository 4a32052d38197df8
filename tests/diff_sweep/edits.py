"""Random edits of a graph, and what a list of changes must say of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

import irexec
from irexec.errors import IrexecError
from irexec.ir.constants import Constant, constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.order import topological
from irexec.schema.registry import resolve

Entry = tuple[Node | None, Node | None, str, str]
"""A layer of the copy as it was, as it is now (None for added and removed), the kind of the change, and what changed."""


@dataclass
class Editing:
    """A graph that is edited.

    Attributes:
        graph: the graph.
        rng: decides.
        expected: what must be listed.
        allowed: what may be listed too.
        touched: layers that no other edit may touch.
    """

    graph: Graph
    rng: random.Random
    expected: set[Entry] = field(default_factory=set)
    allowed: set[Entry] = field(default_factory=set)
    touched: set[Node] = field(default_factory=set)

    def free(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that no edit has touched, nor their neighbours."""
        return [node for node in nodes if node not in self.touched]

    def touch(self, *nodes: Node | None) -> None:
        """These layers, and what an edge connects them to, are not to be edited again."""
        for node in filter(None, nodes):
            self.touched.add(node)
            self.touched |= {value.node for value in node.inputs if value is not None}
            self.touched |= {user for value in node.outputs for user, _ in readers(self.graph, value)}

    def changed(self, node: Node, kind: str, what: str) -> bool:
        """A change is expected; True."""
        self.expected.add((node, node, kind, what))
        self.touch(node)
        return True


Edit = Callable[[Editing], bool]
"""Edits a graph and says whether it could."""


def readers(graph: Graph, value: Value) -> list[tuple[Node, int]]:
    """The layers that read a value, and with which input."""
    return [(node, port) for node in graph.nodes for port, source in enumerate(node.inputs) if source is value]


def _computed(graph: Graph) -> Iterator[tuple[Node, int, Value]]:
    """Edges from layers other than constants."""
    for node in graph.nodes:
        for port, value in enumerate(node.inputs):
            if value is not None and value.node.constant is None:
                yield node, port, value


def _new_id(graph: Graph) -> int:
    return max((node.id for node in graph.nodes), default=0) + 1


def _unary(editing: Editing, value: Value) -> Node:
    kind = None if value.fact is None or value.fact.element is None else value.fact.element.kind
    type = editing.rng.choice(("Relu", "Sigmoid", "Tanh", "Exp") if kind == "float" else ("Abs", "Negative", "Sign"))
    number = _new_id(editing.graph)
    node = Node(number, f"inserted {number}", type, "opset1", ports=[Input(value, value.fact)])
    node.outputs = [Value(node, 0, value.fact)]
    editing.graph.nodes.append(node)
    return node


def add_on_edge(editing: Editing) -> bool:
    """A layer on one edge."""
    edges = [
        (n, p, v) for n, p, v in _computed(editing.graph) if n not in editing.touched and v.node not in editing.touched
    ]
    if not edges:
        return False
    reader, port, value = editing.rng.choice(edges)
    node = _unary(editing, value)
    reader.ports[port].source = node.outputs[0]
    editing.expected.add((None, node, "added", ""))
    editing.touch(node)
    editing.touched |= {reader, value.node}
    return True


def add_after(editing: Editing) -> bool:
    """A layer between another and all that read it."""
    values = [value for node in editing.free(editing.graph.nodes) for value in node.outputs if node.constant is None]
    values = [
        value
        for value in values
        if (users := readers(editing.graph, value)) and not {u for u, _ in users} & editing.touched
    ]
    if not values:
        return False
    value = editing.rng.choice(values)
    users = readers(editing.graph, value)
    node = _unary(editing, value)
    for user, port in users:
        user.ports[port].source = node.outputs[0]
    editing.expected.add((None, node, "added", ""))
    editing.touch(node)
    editing.touched |= {value.node, *(user for user, _ in users)}
    return True


def remove(editing: Editing) -> bool:
    """A layer, whose readers read its first computed input instead; constants that nothing else reads go with it."""
    found = []
    for node in editing.free(editing.graph.nodes):
        sources = [value for value in node.inputs if value is not None and value.node.constant is None]
        is_inner = (
            len(node.outputs) == 1
            and node.type not in ("Parameter", "Result", "ReadValue", "Assign")
            and node.constant is None
        )
        if is_inner and sources and not node.bodies and readers(editing.graph, node.outputs[0]):
            found.append((node, sources[0]))
    if not found:
        return False
    node, source = editing.rng.choice(found)
    editing.touch(node)
    for user, port in readers(editing.graph, node.outputs[0]):
        user.ports[port].source = source
    read = [value.node for value in node.inputs if value is not None and value.node.constant is not None]
    gone = [
        node,
        *(
            each
            for each in dict.fromkeys(read)
            if {user for user, _ in readers(editing.graph, each.outputs[0])} == {node}
        ),
    ]
    editing.graph.nodes[:] = [each for each in editing.graph.nodes if each not in gone]
    editing.expected |= {(each, None, "removed", "") for each in gone}
    return True


def change_attribute(editing: Editing) -> bool:
    """One attribute, to another valid text."""
    found = []
    for node in editing.free(editing.graph.nodes):
        if node.constant is None and node.type not in ("Parameter", "Result", "ReadValue", "Assign"):
            found += [(node, name, text) for name in node.attributes for text in _other_texts(node, name)]
    if not found:
        return False
    node, name, text = editing.rng.choice(found)
    node.attributes[name] = text
    return editing.changed(node, "attributes", name)


def _other_texts(node: Node, name: str) -> list[str]:
    """Texts of the attribute that mean something else."""
    try:
        attribute = resolve(node.type, node.version).by_name.get(name)
    except IrexecError:
        return []
    if attribute is None:
        return []
    text = node.attributes[name]
    words = [word.strip() for word in text.split(",")]
    other = [choice for choice in attribute.choices if choice != text]
    if text.lower() in ("true", "false"):
        other.append("false" if text.lower() == "true" else "true")
    elif all(word.lstrip("-").isdigit() for word in words):
        other.append(", ".join([*words[:-1], str(int(words[-1]) + 1)]))
    return [each for each in other if _parses(attribute.parse, each) != _parses(attribute.parse, text)]


def _parses(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except IrexecError:
        return None


def _constants(editing: Editing) -> list[tuple[Node, Constant]]:
    """Those that something reads, with the elements of their own."""
    return [
        (node, node.constant)
        for node in editing.free(editing.graph.nodes)
        if node.constant is not None and node.constant.count and readers(editing.graph, node.outputs[0])
    ]


def _set(node: Node, array: np.ndarray, element: str) -> None:
    """Another constant in the same layer."""
    made = irexec.Builder("edit").constant(array, element).node.constant
    node.constant = made
    node.outputs[0].fact = Fact(made.element, made.shape)


def change_value(editing: Editing) -> bool:
    """One element of a constant."""
    found = [(node, constant) for node, constant in _constants(editing) if constant.element.kind in ("float", "signed")]
    if not found:
        return False
    node, constant = editing.rng.choice(found)
    array = constant_value(constant).copy()
    position = editing.rng.randrange(array.size)
    # A value that every type has and that is not the one there.
    array.reshape(-1)[position] = 0 if array.reshape(-1)[position] == 1 else 1
    _set(node, array, constant.element.name)
    return editing.changed(node, "values", "values")


def change_type(editing: Editing) -> bool:
    """The element type of a constant."""
    other = {"f32": "f16", "f16": "f32", "i64": "i32", "i32": "i64"}
    found = [(node, constant) for node, constant in _constants(editing) if constant.element.name in other]
    if not found:
        return False
    node, constant = editing.rng.choice(found)
    element = other[constant.element.name]
    with np.errstate(over="ignore"):
        array = constant_value(constant).astype(
            {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}[element]
        )
    _set(node, array, element)
    editing.allowed.add((node, node, "values", "values"))
    return editing.changed(node, "types", "type")


def change_shape(editing: Editing) -> bool:
    """The shape of a constant: one more axis."""
    found = _constants(editing)
    if not found:
        return False
    node, constant = editing.rng.choice(found)
    _set(node, constant_value(constant)[None], constant.element.name)
    return editing.changed(node, "shapes", "shape")


def rewire(editing: Editing) -> bool:
    """One input reads another value of the same type, computed before it."""
    order = {node: index for index, node in enumerate(topological(editing.graph)[0])}
    edges = [
        (n, p, v) for n, p, v in _computed(editing.graph) if n not in editing.touched and v.node not in editing.touched
    ]
    editing.rng.shuffle(edges)
    for reader, port, value in edges[:20]:
        element = None if value.fact is None else value.fact.element
        others = [
            other
            for node in editing.free(order)
            for other in node.outputs
            if order[node] < order[reader] and node.constant is None and other is not value and other.fact is not None
            and other.fact.element == element and _definition(node) != _definition(value.node)
        ]  # fmt: skip
        if others:
            new = editing.rng.choice(others)
            reader.ports[port].source = new
            editing.touched |= {value.node, new.node}
            return editing.changed(reader, "wiring", f"input {port}")
    return False


def _definition(node: Node) -> object:
    """Layers with the same one may compute the same, so that reading another would not be a change."""
    return node.type, sorted(node.attributes.items()), [value and value.node for value in node.inputs]


def change_version(editing: Editing) -> bool:
    """The version of an operation, to another that means the same definition where there is one."""
    found = [
        node for node in editing.free(editing.graph.nodes) if node.version.startswith("opset") and node.constant is None
    ]
    if not found:
        return False
    node = editing.rng.choice(found)
    node.version = f"opset{int(node.version.removeprefix('opset')) + 1}"
    return editing.changed(node, "versions", "version")


def rename(editing: Editing) -> bool:
    """A layer."""
    found = editing.free(editing.graph.nodes)
    if not found:
        return False
    node = editing.rng.choice(found)
    node.name = f"{node.name} renamed"
    return editing.changed(node, "names", "name")


def swap_names(editing: Editing) -> bool:
    """Two layers of the same type that are not neighbours have each other's names."""
    by_type: dict[str, list[Node]] = {}
    for node in editing.free(editing.graph.nodes):
        by_type.setdefault(node.type, []).append(node)
    found = [nodes for type, nodes in by_type.items() if len(nodes) > 1 and type != "Constant"]
    if not found:
        return False
    a, b = editing.rng.sample(editing.rng.choice(found), 2)
    if (
        a.name == b.name
        or {v and v.node for v in a.inputs} & {v and v.node for v in b.inputs}
        or _adjacent(editing.graph, a, b)
    ):
        return False
    a.name, b.name = b.name, a.name
    editing.changed(a, "names", "name")
    return editing.changed(b, "names", "name")


def _adjacent(graph: Graph, a: Node, b: Node) -> bool:
    return any(value is not None and value.node in (a, b) for node in (a, b) for value in node.inputs)


def rename_tensor(editing: Editing) -> bool:
    """A tensor name."""
    found = [value for node in editing.free(editing.graph.nodes) for value in node.outputs]
    if not found:
        return False
    value = editing.rng.choice(found)
    value.names = [f"tensor {editing.rng.random()}"]
    return editing.changed(value.node, "tensor-names", f"tensor names of output {value.index}")


def change_input_shape(editing: Editing) -> bool:
    """The shape of a Parameter: one more along its first axis, or any."""
    found = [node for node in editing.free(editing.graph.parameters) if node.attributes.get("shape")]
    if not found:
        return False
    node = editing.rng.choice(found)
    first, *rest = node.attributes["shape"].split(",")
    node.attributes["shape"] = ",".join([str(int(first) + 1) if first.isdigit() else "7", *rest])
    return editing.changed(node, "shapes", "shape")


def add_output(editing: Editing) -> bool:
    """A Result of any value."""
    found = [value for node in editing.free(editing.graph.nodes) for value in node.outputs if node.constant is None]
    if not found:
        return False
    value = editing.rng.choice(found)
    number = _new_id(editing.graph)
    node = Node(number, f"result {number}", "Result", "opset1", ports=[Input(value, value.fact)])
    editing.graph.nodes.append(node)
    editing.expected.add((None, node, "added", ""))
    editing.touch(node)
    return True


def remove_output(editing: Editing) -> bool:
    """A Result; what it read is left."""
    found = editing.free(editing.graph.results)
    if len(found) < 2:
        return False
    node = editing.rng.choice(found)
    editing.touch(node)
    editing.graph.nodes.remove(node)
    editing.expected.add((node, None, "removed", ""))
    return True


def swap_inputs(editing: Editing) -> bool:
    """Two inputs of a layer read each other's values."""
    found = []
    for node in editing.free(editing.graph.nodes):
        values = [
            (port, value)
            for port, value in enumerate(node.inputs)
            if value is not None and value.node not in editing.touched
        ]
        pairs = [
            (p, q)
            for p, a in values
            for q, b in values
            if p < q and a is not b and _definition(a.node) != _definition(b.node)
        ]
        found += [(node, p, q) for p, q in pairs]
    if not found:
        return False
    node, p, q = editing.rng.choice(found)
    node.ports[p].source, node.ports[q].source = node.ports[q].source, node.ports[p].source
    return editing.changed(node, "wiring", f"inputs {p}, {q}")


EDITS: dict[str, Edit] = {
    edit.__name__: edit
    for edit in (
        add_on_edge, add_after, remove, change_attribute, change_value, change_type, change_shape, rewire, change_version, rename,
        swap_names, rename_tensor, change_input_shape, add_output, remove_output, swap_inputs,
    )
}  # fmt: skip


IN_BODIES = tuple(name for name in EDITS if name not in ("change_input_shape", "add_output", "remove_output"))
"""Inputs and outputs of a body belong to its layer."""
