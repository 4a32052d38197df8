"""Cutting a model at tensors, and taking layers out."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.authoring.editing import Editing
from irexec.errors import InputError
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import find_layer, find_value, needed


def cut_from(editing: Editing, tensors: Sequence[str]) -> None:
    """Make tensors inputs of the model; see Editor.cut_from."""
    values = _values(editing, tensors, "input")
    for value in values:
        if value.node.type == "Parameter":
            raise InputError(f"{value.name!r} is an input of the model already")
    before = needed(editing.model)
    made = [_parameter(editing, value) for value in values]
    for value, parameter in zip(values, made, strict=True):
        editing.replace_uses(value, parameter)
    if not any(editing.readers(parameter) for parameter in made):
        raise InputError(f"nothing reads {values[0].name!r}")
    _drop_unneeded(editing, before)
    alive = set(editing.model.nodes)
    for value, parameter in zip(values, made, strict=True):
        if value.node in alive:
            # The layer is needed by something else, and keeps its name.
            continue
        parameter.node.name = value.node.name if len(value.node.outputs) == 1 else parameter.node.name


def _parameter(editing: Editing, value: Value) -> Value:
    """A Parameter for a value, whose tensor names it gets."""
    fact = editing.facts[value]
    if fact.element is None:
        raise InputError(f"the element type of {value.label!r} is not known, so that it cannot be an input")
    made = editing.add.parameter(fact.element, fact.shape, value.name)
    editing.move_names(value, made)
    if not made.names:
        made.names = [editing.free_tensor_name(value.label)]
    return made


def cut_to(editing: Editing, tensors: Sequence[str]) -> None:
    """Make tensors the only outputs of the model; see Editor.cut_to."""
    values = _values(editing, tensors, "output")
    before = needed(editing.model)
    kept = {value: _result_of(editing, value) for value in values}
    editing.drop([result for result in editing.model.results if result not in kept.values()])
    for value, result in kept.items():
        if result is None:
            add_result(editing, value)
    rest = [node for node in editing.model.nodes if node.type != "Result"]
    results = {node.inputs[0]: node for node in editing.model.results}
    editing.model.nodes = [*rest, *(results[value] for value in values)]
    _drop_unneeded(editing, before)


def add_output(editing: Editing, tensor: str, name: str | None) -> None:
    """Make a tensor a further output of the model; see Editor.add_output."""
    value = find_value(editing.model, tensor)
    if _result_of(editing, value) is not None:
        raise InputError(f"{value.name!r} is an output of the model already")
    add_result(editing, value)
    if name is not None:
        if any(name in other.names for node in editing.model.nodes for other in node.outputs if other is not value):
            raise InputError(f"the output cannot be called {name!r}: a tensor has that name")
        value.names = [name, *(other for other in value.names if other != name)]


def add_result(editing: Editing, value: Value) -> Node:
    """A Result of a value, which gets a tensor name if it has none."""
    if not value.names:
        value.names = [editing.free_tensor_name(value.label)]
    return editing.add.result(value)


def _values(editing: Editing, tensors: Sequence[str], kind: str) -> list[Value]:
    if not tensors:
        raise InputError(f"no tensor is named to become an {kind}")
    values = [find_value(editing.model, tensor) for tensor in tensors]
    for index, value in enumerate(values):
        if value in values[:index]:
            raise InputError(f"{tensors[index]!r} is named twice: it is the tensor {value.name!r}")
    return values


def _result_of(editing: Editing, value: Value) -> Node | None:
    return next((node for node in editing.model.results if node.inputs and node.inputs[0] is value), None)


def _drop_unneeded(editing: Editing, before: set[Node]) -> None:
    """Take out what is no longer needed, also Parameters and variables that nothing reads."""
    now = needed(editing.model, sinks=False)
    editing.drop([node for node in editing.model.nodes if node in before and node not in now])


def remove(editing: Editing, layer: str, through: int | None) -> None:
    """Take a layer out, so that its readers read one of its inputs; see Editor.remove."""
    graph, node = find_layer(editing.model, layer)
    before = needed(graph)
    if node.type in ("ReadValue", "Assign"):
        variable = node.attributes.get("variable_id")
        raise InputError(
            f"layer {node.name!r} cannot be removed: {node.type} of the variable {variable!r} has a counterpart"
        )
    if node.type == "Result":
        _check_other_results(graph, node)
    else:
        _bypass(editing, graph, node, through)
    editing.drop([node], graph)
    editing.drop_unneeded(before, graph)


def _check_other_results(graph: Graph, node: Node) -> None:
    if graph.results == [node]:
        raise InputError(f"layer {node.name!r} is the only Result: a model without outputs is not one")


def _bypass(editing: Editing, graph: Graph, node: Node, through: int | None) -> None:
    """Make the readers of a layer read its input."""
    read = [value for value in node.outputs if editing.readers(value, graph)]
    if not read:
        return
    if len(read) > 1 or not node.inputs:
        why = "it has no input" if not node.inputs else f"{len(read)} of its outputs are read"
        raise InputError(f"layer {node.name!r} ({node.type}) cannot be bypassed: {why}")
    source = _input(editing, node, read[0], through)
    editing.replace_uses(read[0], source, graph=graph)
    if any(result.inputs[0] is source for result in graph.results):
        # Outputs of the model keep the names by which they are found.
        editing.move_names(read[0], source)


def _input(editing: Editing, node: Node, output: Value, through: int | None) -> Value:
    """The input that stands for an output; raises InputError where none fits, or several do."""
    given = editing.facts[output]
    fitting = {i: v for i, v in enumerate(node.inputs) if v is not None and _fits(editing.facts[v], given)}
    if through is not None:
        if through not in fitting:
            raise InputError(
                f"layer {node.name!r} ({node.type}) cannot be bypassed through input {through}: {_sizes(editing, node)}"
            )
        return fitting[through]
    computed = {i: value for i, value in fitting.items() if value.node.constant is None} or fitting
    if not computed:
        raise InputError(f"layer {node.name!r} ({node.type}) cannot be bypassed: {_sizes(editing, node)}")
    if len(computed) > 1:
        raise InputError(
            f"layer {node.name!r} ({node.type}) cannot be bypassed: inputs {', '.join(map(str, computed))} fit, "
            "and one of them must be named"
        )
    return next(iter(computed.values()))


def _fits(one: Fact, other: Fact) -> bool:
    return one.element is other.element and one.element is not None and not contradict(one.shape, other.shape)


def _sizes(editing: Editing, node: Node) -> str:
    inputs = ", ".join(str(editing.facts[value]) for value in node.inputs if value is not None)
    return f"no input fits the output {', '.join(str(editing.facts[v]) for v in node.outputs)}, the inputs are {inputs}"
