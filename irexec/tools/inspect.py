"""What a model is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model, Port, output_ports
from irexec.analysis.shape_inference import UNKNOWN, infer_shapes
from irexec.errors import IrexecError, ModelError, UnsupportedError
from irexec.ir import graph as ir
from irexec.ir.constants import constant_value
from irexec.schema.registry import NEWEST_OPSET, definitions, opset_versions, resolve


@dataclass(frozen=True)
class LayerLine:
    """One layer with what inference gives for its ports; ``path`` names the bodies it is in."""

    id: int
    path: str
    name: str
    type: str
    version: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    line: int | None


@dataclass(frozen=True)
class WeightLine:
    """One constant and its statistics."""

    id: int
    name: str
    element: str
    shape: tuple[int, ...]
    bytes: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: float
    not_finite: int


@dataclass(frozen=True)
class Summary:
    """A model at a glance."""

    name: str
    version: int
    layers: int
    bodies: int
    constants: int
    weight_bytes: int
    weight_numbers: int
    inputs: list[Port]
    outputs: list[Port]
    ops: dict[str, int]
    unsupported: list[str]


def summarize(model: Model) -> Summary:
    """The model at a glance; nothing of it is run or unpacked."""
    nodes = list(model.walk())
    constants = [node.constant for node in nodes if node.constant is not None]
    facts = infer_shapes(model, tolerant=True).facts
    return Summary(
        name=model.name,
        version=model.version,
        layers=len(nodes),
        bodies=sum(len(node.bodies) for node in nodes),
        constants=len(constants),
        weight_bytes=sum(constant.size for constant in constants),
        weight_numbers=sum(constant.count for constant in constants),
        inputs=model.inputs,
        outputs=output_ports(model, facts),
        ops=histogram(model),
        unsupported=unsupported(model),
    )


def histogram(model: ir.Graph) -> dict[str, int]:
    """How many layers of each type and version, the most frequent first."""
    counts = Counter(f"{node.type}-{node.version.removeprefix('opset')}" for node in model.walk())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def unsupported(model: ir.Graph) -> list[str]:
    """One sentence for each type and version that irexec does not run."""
    found = []
    for type, version in sorted({(node.type, node.version) for node in model.walk()}):
        try:
            resolve(type, version)
        except UnsupportedError as error:
            found.append(str(error))
    return found


def layers(model: Model) -> list[LayerLine]:
    """Every layer, those of bodies after the layer that has them."""
    facts = infer_shapes(model, tolerant=True).facts
    lines: list[LayerLine] = []

    def add(graph: ir.Graph, path: str) -> None:
        for node in graph.nodes:
            inputs = tuple("-" if v is None else str(facts.get(v, UNKNOWN)) for v in node.inputs)
            outputs = tuple(str(facts.get(v, UNKNOWN)) for v in node.outputs)
            lines.append(LayerLine(node.id, path, node.name, node.type, node.version, inputs, outputs, node.line))
            for name, body in node.bodies.items():
                add(body.graph, f"{path}{node.name}/{name}/")

    add(model, "")
    return lines


def weights(model: ir.Graph) -> list[WeightLine]:
    """Statistics of every constant; each is read in turn.

    Raises:
        ModelError: a constant cannot be read; says which.
    """
    found = []
    for node in model.walk():
        if node.constant is None:
            continue
        try:
            found.append(_weight(node))
        except IrexecError as error:
            place = "" if node.line is None else f", line {node.line}"
            raise ModelError(f"layer {node.id} {node.name!r} (Constant{place}): {error}") from None
    return found


def _weight(node: ir.Node) -> WeightLine:
    constant = node.constant
    if constant is None:
        raise IrexecError(f"layer {node.name!r} is no constant")
    name, shape, size = constant.element.name, constant.shape, constant.size
    value = constant_value(constant)
    if value.dtype == object or value.size == 0:
        return WeightLine(node.id, node.name, name, shape, size, None, None, None, None, 0.0, 0)
    numbers = value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    bad = numbers.size - finite.size
    if finite.size == 0:
        return WeightLine(node.id, node.name, name, shape, size, None, None, None, None, 0.0, bad)
    zeros = float((finite == 0).mean())
    low, high, mean, std = (float(f(finite)) for f in (np.min, np.max, np.mean, np.std))
    return WeightLine(node.id, node.name, name, shape, size, low, high, mean, std, zeros, bad)


@dataclass(frozen=True)
class OpLine:
    """One supported version of an operation, from the registry."""

    type: str
    version: str
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    says: str


@dataclass(frozen=True)
class Coverage:
    """How many types and versions of OpenVINO's operations there are up to an opset, how many of these are run, and how many others."""

    opset: int
    types: int
    versions: int
    supported: int
    extensions: int


def coverage() -> Coverage:
    """Counted from the registry."""
    run = {(definition.type, definition.since) for definition in definitions()}
    known = set(opset_versions())
    return Coverage(NEWEST_OPSET, len({type for type, _ in known}), len(known), len(run & known), len(run - known))


def supported() -> list[OpLine]:
    """Every operation that irexec runs."""
    return [
        OpLine(
            definition.type,
            definition.version,
            tuple(f"*{i.name}" if i.variadic else f"{i.name}?" if i.optional else i.name for i in definition.inputs),
            tuple(attribute.name for attribute in definition.attributes),
            (definition.kernel.__doc__ or "").strip().split("\n")[0],
        )
        for definition in definitions()
    ]
