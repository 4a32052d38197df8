"""Taking layers out of a model."""

from __future__ import annotations

from irexec.authoring.editing import Editing
from irexec.errors import InputError
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.find import find_layer
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import needed


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
