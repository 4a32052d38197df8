"""The nodes of a model that is made from its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

from irexec.errors import InputError
from irexec.ir.graph import Input, Node, Value
from irexec.ir.order import Names


class HasValue(Protocol):
    """Something that stands for a value, such as a Tensor."""

    @property
    def value(self) -> Value: ...


Outlet: TypeAlias = Value | HasValue
"""An output of a node, or what stands for one."""


def collected(results: Sequence[Outlet], inputs: Sequence[Outlet], sinks: Sequence[Outlet] = ()) -> list[Node]:
    """Copies of the nodes that the results and sinks need; the nodes themselves stay as they are.

    Args:
        results: values, or outlets of Results, in the order of the outputs.
        inputs: the outputs of the Parameters, in order.
        sinks: values to be kept, such as those of Assigns, on which no result needs to depend.

    Raises:
        InputError: a Parameter is needed that ``inputs`` lacks; an input is not of a Parameter, or is given twice.
    """
    parameters = [_parameter(_value(outlet), i) for i, outlet in enumerate(inputs)]
    endings = [_ending(_value(outlet)) for outlet in results]
    _check_distinct("input", parameters)
    _check_distinct("result", endings)
    order = in_order([*parameters, *endings, *(_value(outlet).node for outlet in sinks)])
    missing = {node: None for node in order if node.type == "Parameter"}.keys() - set(parameters)
    if missing:
        names = ", ".join(sorted(repr(node.name) for node in missing))
        raise InputError(f"the results depend on {names}, which the inputs do not list")
    nodes = arranged(order, parameters, endings)
    copies = connected_copies(nodes)
    name_nodes(copies)
    _name_tensors(copies, [copy for node, copy in zip(nodes, copies, strict=True) if node.id == _NEW])
    return copies


def in_order(ends: Iterable[Node], is_outside: Callable[[Node], bool] = lambda node: False) -> list[Node]:
    """The nodes that ``ends`` need, themselves included, each after its producers.

    Nodes that are in no graph yet come last, in the order in which they were made.

    Args:
        ends: nodes of any graphs.
        is_outside: whether a node is left out, with all that it needs.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    for end in ends:
        waiting: list[tuple[Node, Iterator[Node]]] = []
        fresh: Node | None = end
        while fresh is not None or waiting:
            if fresh is not None and fresh not in seen and not is_outside(fresh):
                seen.add(fresh)
                waiting.append((fresh, (value.node for value in fresh.inputs if value is not None)))
            if not waiting:
                break
            fresh = next(waiting[-1][1], None)
            if fresh is None:
                order.append(waiting.pop()[0])
    return [node for node in order if node.id >= 0] + sorted(
        (node for node in order if node.id < 0), key=lambda node: -node.id
    )


_NEW = -(1 << 62)
"""Id of a Result that is made for a value."""


def _value(outlet: Outlet) -> Value:
    return outlet if isinstance(outlet, Value) else outlet.value


def _parameter(value: Value, index: int) -> Node:
    if value.node.type != "Parameter":
        raise InputError(f"input {index} is {value.node.name!r} ({value.node.type}), expected a Parameter")
    return value.node


def _check_distinct(kind: str, nodes: Sequence[Node]) -> None:
    seen: set[Node] = set()
    for node in nodes:
        if node in seen:
            raise InputError(f"{kind} {node.name!r} is given twice")
        seen.add(node)


def arranged(order: Sequence[Node], parameters: Sequence[Node], endings: Sequence[Node]) -> Sequence[Node]:
    """The nodes with Parameters and Results in the order of the inputs and outputs: at the beginning and the end unless
    they have that order already."""
    ends = [[node for node in order if node.type == type] for type in ("Parameter", "Result")]
    if ends == [list(parameters), list(endings)]:
        return order
    inner = [node for node in order if node.type not in ("Parameter", "Result")]
    return [*parameters, *inner, *endings]


def _ending(value: Value) -> Node:
    """The Result of an output of the model."""
    if value.node.type == "Result":
        return value.node
    return Node(_NEW, "Result", "Result", "opset1", ports=[Input(value, value.fact)])


def connected_copies(nodes: Sequence[Node], instead: Mapping[Value, Value] = MappingProxyType({})) -> list[Node]:
    """Copies of nodes that are connected as the nodes are, with ids that count from 0.

    Args:
        nodes: each of them once.
        instead: outputs of the nodes that take the place of the values of other nodes.
    """
    copies = [node.detached() for node in nodes]
    values = {
        value: copied
        for node, copy in zip(nodes, copies, strict=True)
        for value, copied in zip(node.outputs, copy.outputs, strict=True)
    }
    for number, (node, copy) in enumerate(zip(nodes, copies, strict=True)):
        copy.id = number
        for port, fresh in zip(node.ports, copy.ports, strict=True):
            fresh.source = None if port.source is None else values[instead.get(port.source, port.source)]
    return copies


def name_nodes(nodes: Sequence[Node]) -> None:
    """Make the names of the nodes unique; a node with the name of its type has got none yet, and gives way."""
    names = Names()
    for node in sorted(nodes, key=lambda node: (node.name == node.type, node.type == "Result")):
        source = node.inputs[0] if node.type == "Result" and node.name == node.type else None
        node.name = names.free(node.name if source is None else f"{source.node.name}/sink_port_{source.index}")


def _name_tensors(nodes: Sequence[Node], made: Sequence[Node]) -> None:
    """Give the values of the Results that were made for them a tensor name, by which OpenVINO finds outputs."""
    taken = {name for node in nodes for value in node.outputs for name in value.names}
    for node in made:
        value = node.inputs[0]
        if value is not None and not value.names and value.label not in taken:
            value.names.append(value.label)
            taken.add(value.label)
