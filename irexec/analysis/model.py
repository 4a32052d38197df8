"""The model as its users see it: inputs, outputs and reshape, which need shape inference."""

from __future__ import annotations

import copy
import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irexec import records
from irexec.analysis import version_10
from irexec.analysis.collection import Outlet, collected
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.dtypes.elements import Element
from irexec.errors import InputError, IrexecError, ModelError, NodeError, OpError
from irexec.ir import graph as ir
from irexec.ir.constants import constant_value
from irexec.ir.dims import PartialShape, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import find_node, in_front
from irexec.ir.shape_text import ShapeLike, as_shape, write_shape
from irexec.messages import counted, listed
from irexec.records import Record


@dataclass(frozen=True)
class Port(Record):
    """One input or output of a model.

    Attributes:
        name: its first tensor name, else its layer's name.
        names: every name by which it can be given: tensor names, layer name.
        element: the element type; None if it cannot be inferred.
        shape: the partial shape; None if its rank is not known.
        node: the Parameter or Result.
        selects: number of rows of the smallest table that its values select from; 0 if it is not known, as that of
            beams, which are as many as there are values; None if they select none.
    """

    name: str
    names: tuple[str, ...]
    element: Element | None
    shape: PartialShape
    node: Node
    selects: int | None = None

    @property
    def any_name(self) -> str:
        """The name, as OpenVINO's Python calls it."""
        return self.name

    def __str__(self) -> str:
        return f"{self.name}: {self.element or '?'}{shape_text(self.shape)}"

    def as_dict(self) -> dict[str, Any]:
        """The port for JSON, its type and shape as text."""
        element = None if self.element is None else str(self.element)
        return {"name": self.name, "names": list(self.names), "type": element, "shape": shape_text(self.shape)}

    def __getstate__(self) -> dict[str, Any]:
        """The state that is copied and pickled: the node goes without the graph around it."""
        return vars(self) | {"node": self.node.detached()}

    def __repr__(self) -> str:
        return f"<Port {self}>"


class Model(ir.ModelGraph):
    """An IR: the layer graph, with what shape inference says of its inputs and outputs.

    ``Model([y], [x])`` is a model that computes the tensor y from x, which functions of ``irexec.opset`` have made. It
    has copies of the nodes that the results need.

    Args:
        results: tensors, or what ``irexec.opset.result`` returns, in the order of the outputs. A tensor without a
            tensor name gets that of its layer.
        inputs: results of ``irexec.opset.parameter``, in the order of the inputs.
        sinks: tensors to be kept although no result depends on them, such as the output of ``irexec.opset.assign``.
        name: of the model.

    Raises:
        InputError: a Parameter is needed that ``inputs`` lacks, or an input is not a Parameter.
    """

    def __init__(
        self, results: Sequence[Outlet], inputs: Sequence[Outlet], *, sinks: Sequence[Outlet] = (), name: str = ""
    ) -> None:
        super().__init__(name, collected(results, inputs, sinks))

    @classmethod
    def of(cls, model: ir.ModelGraph) -> Model:
        """The same graph (nodes are shared) as a Model that can infer."""
        made = cls.__new__(cls)
        vars(made).update(vars(model))
        return made

    def __getitem__(self, name: str) -> Node:
        """The layer of a name or id, else the layer that computes the tensor of this name; outside of bodies.

        Raises:
            InputError: there is none; the message offers similar names.
        """
        return find_node(self, name)

    def find(self, name: str = "*", *, type: str | None = None) -> list[Node]:
        """The layers with a name and a type, in the order of the file; those of bodies after the layer that has them.

        Args:
            name: a name, in which ``*`` stands for any text and ``?`` for any character.
            type: an operation type, such as "Convolution"; by default any.
        """
        pattern = re.compile(fnmatch.translate(name))
        return [node for node in self.walk() if type in (None, node.type) and pattern.match(node.name)]

    def clone(self) -> Model:
        """A copy with layers of its own, which shares the bytes of constants."""
        return copy.copy(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as an IR: ``path`` and the .bin beside it, both or neither; the same as ``save_model``.

        Raises:
            ModelError: the model or the files cannot be written.
            InputError: the path does not end in .xml, or the .bin would overwrite a file with constants of the model,
                or one that belongs to no .xml and ``overwrite`` is false.
        """
        records.writer()(self, path, overwrite=overwrite)

    def edit(self) -> records.Editor:
        """An ``irexec.Editor`` of the model: ``with model.edit() as g:`` makes all of the steps in the block or none.

        Raises:
            ModelError: the model is damaged.
        """
        return records.editor()(self)

    @property
    def inputs(self) -> list[Port]:
        """The Parameters, in order."""
        return input_ports(self, infer_shapes(Graph(nodes=self.parameters), tolerant=True).facts)

    @property
    def outputs(self) -> list[Port]:
        """The Results, in order; what cannot be inferred is as declared."""
        facts = infer_shapes(self, tolerant=True).facts
        return output_ports(self, facts)

    def input(self, key: str | int = 0) -> Port:
        """The input of a name or position; InputError if there is none."""
        return find_port(self.inputs, key)

    def output(self, key: str | int = 0) -> Port:
        """The output of a name or position; InputError if there is none."""
        return find_port(self.outputs, key, "output")

    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike, *, tolerant: bool = False) -> None:
        """Give Parameters new shapes and declare on every port what follows from them.

        Args:
            shapes: by tensor name, layer name or position; or one shape for a model of one input.
                A shape is text such as "1,3,?,2..5" or a sequence of sizes: ints (-1: any), None (any), Dims, text such
                as "2..5", or bounds such as (2, 5). None in place of a shape means an unknown rank.
            tolerant: leave layers that cannot take the shapes, or are not known, as they are declared.

        Raises:
            InputError: the input does not exist, or what is given is not a shape.
            NodeError: the graph cannot take the shapes; the model is as it was.
        """
        new_shapes = self.shapes_of_inputs(shapes)
        old = {node: node.attributes.get("shape") for node in new_shapes}
        for node, shape in new_shapes.items():
            node.attributes["shape"] = write_shape(shape)
        try:
            inference = infer_shapes(self, tolerant=tolerant)
        except IrexecError as error:
            for node, text in old.items():
                if text is None:
                    del node.attributes["shape"]
                else:
                    node.attributes["shape"] = text
            name = error.node if isinstance(error, NodeError) else None
            failed = next((node for node in self.nodes if node.name == name), None)
            raise with_blocking_constant(failed, error) from error.__cause__
        declare(self, inference)

    def shapes_of_inputs(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> dict[Node, PartialShape]:
        """The Parameters that ``reshape`` would change, with their new shapes; errors are those of ``reshape``."""
        inputs = self.inputs
        if not isinstance(shapes, Mapping):
            if len(inputs) != 1:
                raise InputError(
                    f"one shape is given, but the model has {counted(len(inputs), 'input')}: {expected(inputs)}"
                )
            return {inputs[0].node: partial_shape(inputs[0].name, shapes)}
        ports = [(find_port(inputs, key), shape) for key, shape in shapes.items()]
        return {port.node: partial_shape(port.name, shape) for port, shape in ports}


def blocking_constant(node: Node | None) -> str:
    """The remark on a layer that refuses a shape: the constant that is the pattern of a Reshape; empty for others."""
    pattern = node.inputs[1] if node is not None and node.type == "Reshape" and len(node.inputs) > 1 else None
    if pattern is None or pattern.node.constant is None:
        return ""
    return f"; its pattern is the constant {pattern.node.name!r}, which unfreeze may repair"


def with_blocking_constant(node: Node | None, error: IrexecError) -> IrexecError:
    """The error of a layer that refuses a shape, with the remark on its constant."""
    remark = blocking_constant(node)
    if not remark or not isinstance(error, NodeError):
        return error
    return NodeError(f"{error}{remark}", node=error.node, reason=error.reason)


def input_ports(model: ir.ModelGraph, facts: Mapping[Value, Fact]) -> list[Port]:
    """The Parameters of a model whose values have the facts given."""
    selected = _selected_rows(model)
    ports = [
        replace(_port(node, value, facts[value], node.name), selects=selected.get(value))
        for node in model.parameters for value in node.outputs[:1]
    ]  # fmt: skip
    if model.version != version_10.VERSION:
        return ports
    return [replace(port, element=version_10.input_element(port.element)) for port in ports]


def _selected_rows(model: ir.ModelGraph) -> dict[Value, int]:
    """See Port.selects, by the values of Parameters, which may be converted and get other axes on the way."""
    found: dict[Value, int] = {}
    for node in model.nodes:
        if len(node.inputs) < 2 or not node.type.startswith(_SELECTING):
            continue
        table, rows = node.inputs[0], in_front(node.inputs[1], _SAME_NUMBERS)
        if table is None or table.fact is None or rows is None:
            continue
        sizes, axis = table.fact.shape or (), (*node.inputs[_AXES.get(node.type, len(node.inputs)) :], None)[0]
        if axis is not None and axis.node.constant is not None:
            try:
                sizes = (sizes[int(constant_value(axis.node.constant).item())],)
            except (ModelError, ValueError, IndexError):
                # validate reports it.
                continue
        known = [size for size in (*sizes, found.get(rows)) if isinstance(size, int) and size]
        found[rows] = min(known, default=0)
    return found


def output_ports(model: ir.ModelGraph, facts: Mapping[Value, Fact]) -> list[Port]:
    """The Results of a model whose values have the facts given, under names that are unique."""
    ports: list[Port] = []
    taken: set[str] = set()
    for node in model.results:
        source = node.inputs[0] if node.inputs else None
        fact = Fact(None, None) if source is None else facts.get(source, Fact(None, None))
        layer = node.name if source is None else source.node.name
        if model.version == version_10.VERSION and source is not None:
            layer, fact = version_10.output_name(source), Fact(version_10.output_element(fact.element), fact.shape)
        port = _port(node, source, fact, layer)
        name = next((n for n in (port.name, *port.names, node.name) if n not in taken), f"{port.name}#{len(ports)}")
        taken.add(name)
        ports.append(Port(name, port.names, port.element, port.shape, node))
    return ports


def result_values(ports: Sequence[Port]) -> dict[str, Value]:
    """The values that the outputs of a model give, by the names of these.

    Raises:
        ModelError: a Result has no input.
    """
    found = {}
    for port in ports:
        source = port.node.inputs[0] if port.node.inputs else None
        if source is None:
            raise ModelError(f"layer {port.node.id} {port.node.name!r} (Result) has no input")
        found[port.name] = source
    return found


def _port(node: Node, value: Value | None, fact: Fact, layer: str) -> Port:
    names = list(value.names) if value is not None else []
    extra = [n for n in (layer, node.name) if n not in names]
    return Port(names[0] if names else layer, tuple(names + list(dict.fromkeys(extra))), fact.element, fact.shape, node)


def expected(ports: Sequence[Port]) -> str:
    """The ports in one line, for a message."""
    return "; ".join(map(str, ports)) or "none"


def brief(ports: Sequence[Port]) -> str:
    """The first few ports in one short line, for a repr."""
    return listed(list(map(str, ports)), _SHOWN) or "none"


_SHOWN = 3
_SELECTING, _AXES = ("Gather", "Scatter", "Embedding"), {"Gather": 2, "ScatterUpdate": 3, "ScatterElementsUpdate": 3}
"""Beginnings of the types that select rows by their second input, and the inputs that name the axis of these."""
_SAME_NUMBERS = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze", "Transpose"})


def check_model(model: object) -> None:
    """Raise InputError for what is not a model, such as the path of one."""
    if not isinstance(model, ir.ModelGraph):
        raise InputError(f"{model!r:.100} is a {type(model).__name__}, expected a model as read_model gives it")


def find_port(ports: Sequence[Port], key: str | int | Port, kind: str = "input") -> Port:
    """The port of a name or position, or that of the same name; ``kind`` is what messages call it.

    Raises:
        InputError: there is none; the message lists what there is.
    """
    if isinstance(key, Port):
        key = key.name
    if isinstance(key, int) and not isinstance(key, bool):
        if -len(ports) <= key < len(ports):
            return ports[key]
        raise InputError(f"there is no {kind} {key}: the model has {len(ports)} ({expected(ports)})")
    for port in ports:
        if key == port.name or key in port.names:
            return port
    by_id = [port for port in ports if isinstance(key, str) and key == str(port.node.id)]
    if by_id:
        return by_id[0]
    raise InputError(f"there is no {kind} {key!r}: the model has {expected(ports)}")


def declare(graph: Graph, inference: Inference) -> None:
    """Write the inferred facts on every port of the graph and of its bodies."""
    for node in graph.walk():
        for value in node.outputs:
            fact = inference.facts.get(value)
            if fact is not None:
                value.fact = Fact(fact.element, fact.shape)
    for node in graph.walk():
        for port in node.ports:
            if port.source is not None:
                port.fact = port.source.fact


def partial_shape(key: str | int, shape: ShapeLike) -> PartialShape:
    """A partial shape from what users give as one; raises InputError, with the input's name, for anything else."""
    try:
        return as_shape(shape)
    except OpError as error:
        raise InputError(f"shape of input {key!r}: {error}") from None
