"""Surgery of graphs: cutting a model at tensors, taking layers out, putting in nodes, layers of another model, or a
whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from irexec.analysis.collection import in_order
from irexec.analysis.model import Model, Port, expected, find_port
from irexec.authoring.editing import Editing
from irexec.authoring.state import with_bodies
from irexec.authoring.tensor import LooseBuilder, Operand, Tensor, constant
from irexec.errors import InputError, UnsupportedError
from irexec.ir.dims import contradict
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import Names, find_layer, find_value, needed, topological
from irexec.messages import counted


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
        # A layer that something else needs keeps its name.
        if value.node not in alive and len(value.node.outputs) == 1:
            parameter.node.name = value.node.name


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
        if graph.results == [node]:
            raise InputError(f"layer {node.name!r} is the only Result: a model without outputs is not one")
    else:
        _bypass(editing, graph, node, through)
    editing.drop([node], graph)
    editing.drop_unneeded(before, graph)


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


VARIABLE = "variable_id"
"""The attribute of a ReadValue or Assign that names its variable."""


def embed(model: Model, inputs: Mapping[str, Operand], *, prefix: str = "") -> dict[str, Tensor]:
    """Use a model inside of another: its layers are copied, with ``inputs`` in place of its own inputs.

    Args:
        model: stays as it is.
        inputs: a tensor or an array for every input, by any of its names.
        prefix: goes before the names of layers and tensors, which must be unique in a model.

    Returns:
        The outputs of the model by their names.

    Raises:
        InputError: an input is missing, does not exist, or has another element type.
        NodeError: a layer cannot take the shapes that follow from the inputs.
        UnsupportedError: the model has variables.
    """
    if model.sinks:
        raise UnsupportedError(f"model {model.name!r} has variables, which cannot be embedded")
    return copied(model, inputs, prefix=prefix)[0]


def copied(
    model: Model, inputs: Mapping[str, Operand], *, prefix: str = "", variables: Names | None = None
) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The outputs of a copy of a model by their names, and what its variables are assigned.

    Args:
        model, inputs, prefix: as for ``embed``.
        variables: names that its variables must not have; those that have one are renamed.
    """
    made = _given(model, inputs)
    renamed = {name: variables.free(name) for name in _variables(model)} if variables is not None else {}
    for node in topological(model)[0]:
        if node.type not in ("Parameter", "Result"):
            made |= dict(zip(node.outputs, _copied(node, made, prefix, renamed), strict=False))
    outputs = {port.name: made[source] for port in model.outputs for source in port.node.inputs if source is not None}
    return outputs, [made[value] for node in model.sinks for value in node.outputs]


def _variables(model: Model) -> dict[str, None]:
    return {node.attributes[VARIABLE]: None for node in model.walk() if VARIABLE in node.attributes}


def _given(model: Model, inputs: Mapping[str, Operand]) -> dict[Value, Tensor]:
    """The tensors in place of the outputs of the Parameters."""
    ports = model.inputs
    found = {find_port(ports, name).node: value for name, value in inputs.items()}
    missing = [port for port in ports if port.node not in found]
    if missing:
        raise InputError(f"no value is given for {expected(missing)}")
    return {port.node.outputs[0]: _fitting(port, found[port.node]) for port in ports}


def _fitting(port: Port, operand: Operand) -> Tensor:
    tensor = operand if isinstance(operand, Tensor) else constant(operand, port.element)
    if port.element is not None and tensor.element is not port.element:
        raise InputError(f"input {port.name!r} is {tensor.fact}, expected {port.element}")
    return tensor


def _copied(node: Node, made: Mapping[Value, Tensor], prefix: str, variables: Mapping[str, str]) -> list[Tensor]:
    """The outputs of a copy of a node."""
    tensors = [made[value] for value in node.inputs if value is not None]
    builder = LooseBuilder(tensors)
    values = builder.clone_node(node, *(tensor.value for tensor in tensors))
    if prefix:
        values[0].node.name = prefix + node.name
    for inner in with_bodies(values[0].node):
        if inner.attributes.get(VARIABLE) in variables:
            inner.attributes[VARIABLE] = variables[inner.attributes[VARIABLE]]
    for value in values:
        value.names = [prefix + name for name in value.names]
    return [Tensor(value, builder.fact(value)) for value in values]


Function: TypeAlias = Callable[..., Tensor | Sequence[Tensor]]
"""A function of tensors, such as one of irexec.opset."""


def insert_after(editing: Editing, tensor: str, function: Function) -> None:
    """Give the readers of a tensor what a function makes of it; see Editor.insert_after."""
    value = find_value(editing.model, tensor)
    readers = editing.readers(value)
    (made,) = _called(editing, function, [value], 1)
    for node, index in readers:
        node.ports[index].source = made
    if any(node.type == "Result" for node, _ in readers) and value.node.type != "Parameter":
        editing.move_names(value, made)


def replace(editing: Editing, layer: str, replacement: Function | Model) -> None:
    """Put a function or a model in the place of a layer; see Editor.replace."""
    graph, node = find_layer(editing.model, layer)
    if graph is not editing.model:
        raise InputError(f"layer {node.name!r} is in a body: only layers outside of bodies can be replaced")
    if node.type in ("Parameter", "Result", "ReadValue", "Assign"):
        raise InputError(f"layer {node.name!r} is a {node.type}, which cannot be replaced")
    before = needed(editing.model)
    sources = [value for value in node.inputs if value is not None]
    used = [value for value in node.outputs if editing.readers(value)]
    count = 1 + max((value.index for value in used), default=0)
    if isinstance(replacement, Model):
        made = _of_model(editing, replacement, sources, node)
    else:
        made = _called(editing, replacement, sources, count)
    if len(made) < count:
        raise InputError(
            f"layer {node.name!r} has {counted(count, 'output')} that are read, the replacement {len(made)}"
        )
    for value in used:
        if made[value.index].node not in before:
            # An output of the model keeps its name, whatever the replacement calls it.
            is_output = any(reader.type == "Result" for reader, _ in editing.readers(value))
            made[value.index].names = [value.label] if is_output and not value.names else []
        editing.replace_uses(value, made[value.index])
        editing.move_names(value, made[value.index])
    editing.drop([node])
    editing.drop_unneeded(before)
    if made[0].node not in before:
        made[0].node.name = node.name


def _called(editing: Editing, function: Function, sources: Sequence[Value], count: int) -> list[Value]:
    """The values that a function makes of others; their nodes are layers of the model from now on."""
    if not callable(function):
        raise InputError(f"{function!r:.100} is not a function of tensors, such as those of irexec.opset")
    returned = function(*(Tensor(value, editing.facts[value]) for value in sources))
    tensors = list(returned) if isinstance(returned, Iterable) and not isinstance(returned, Tensor) else [returned]
    for one in tensors:
        if not isinstance(one, Tensor):
            raise InputError(f"the function returned {one!r:.100}, expected a tensor")
    if not tensors:
        raise InputError(f"the function returned no tensor, expected {count}")
    values = [tensor.value for tensor in tensors]
    _adopt(editing, values)
    return values


def _adopt(editing: Editing, values: Sequence[Value]) -> None:
    inside = set(editing.model.nodes)
    nodes = in_order([value.node for value in values], lambda node: node in inside)
    for node in nodes:
        if node.id >= 0 or node.type in ("Parameter", "Result"):
            raise InputError(f"{node.name!r} ({node.type}) belongs to another model")
    editing.adopt(nodes)


def _of_model(editing: Editing, other: Model, sources: Sequence[Value], node: Node) -> list[Value]:
    ports = other.inputs
    if len(ports) > len(sources):
        raise InputError(
            f"the model {other.name!r} has {counted(len(ports), 'input')}, layer {node.name!r} {len(sources)}"
        )
    return graft(editing, other, dict(zip([port.name for port in ports], sources, strict=False)))


def graft(editing: Editing, other: Model, sources: Mapping[str, Value]) -> list[Value]:
    """Add the layers of another model, whose inputs get values by name; the values of its outputs, in order.

    Variables whose names the model has already get others.
    """
    tensors = {name: Tensor(value, editing.facts[value]) for name, value in sources.items()}
    outputs, assigned = copied(other, tensors, variables=Names(_variables(editing.model)))
    values = [tensor.value for tensor in outputs.values()]
    _adopt(editing, [*values, *(tensor.value for tensor in assigned)])
    return values
