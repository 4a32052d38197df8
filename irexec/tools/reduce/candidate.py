"""Parts of a model and of the bodies of its layers: their layers, and the models made of them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import Precision
from irexec.analysis.model import Model
from irexec.analysis.submodel import SubModel, extract, frontier, resolved, with_shapes
from irexec.dtypes.elements import Element
from irexec.errors import InputError, IrexecError
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, ModelGraph, Node, Value
from irexec.ir.order import readers, topological
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.attributes import Runner
from irexec.schema.registry import resolve
from irexec.tools.reduce.recording import BOUNDARY, RecordedRun


@dataclass(frozen=True)
class Candidate:
    """A model for the check.

    Attributes:
        model: the model.
        inputs: an array for each of its inputs, by name.
        expected: values of another runtime for some of its results, by the names of the outputs.
    """

    model: Model
    inputs: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def layers(self) -> list[Node]:
        """The layers, without Parameters, Constants and Results."""
        return [node for node in self.model.nodes if node.type not in BOUNDARY]

    def results(self, precision: Precision, timeout: float | None) -> Mapping[str, np.ndarray]:
        """Results of irexec, by name; raises IrexecError or MemoryError if the model does not run."""
        return CompiledModel(self.model, precision=precision).session().run(self.inputs, timeout=timeout)


@dataclass(frozen=True)
class Part:
    """The layers of a candidate, as positions in a model.

    Attributes:
        units: positions among the units of ``Whole``, in order.
        bypassed: units that are left out, each with the index of the input that replaces its output.
        results: positions among the frontier of the part; None for all of it.
        loose: positions among the loose layers of ``Whole``, which are kept even if no layer reads them.
    """

    units: tuple[int, ...]
    bypassed: tuple[tuple[int, int], ...] = ()
    results: tuple[int, ...] | None = None
    loose: tuple[int, ...] = ()

    def key(self, inside: str) -> str:
        """A digest of the part; ``inside`` identifies its model."""
        text = json.dumps([inside, self.units, self.bypassed, self.results, self.loose])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Whole:
    """A model that is taken apart.

    Attributes:
        recording: its values.
        path: the names of the layers around a body; "" for the model itself.
        units: groups of layers that are kept or left out together, in topological order: one layer each, or all layers
            of a variable.
        loose: the Parameters, and the Constants without a reader.
    """

    recording: RecordedRun
    path: str
    units: tuple[tuple[Node, ...], ...]
    loose: tuple[Node, ...]

    @staticmethod
    def of(recording: RecordedRun, path: str = "") -> Whole:
        """Take a model apart."""
        model = recording.model
        read = {source.node for node in model.nodes for source in node.inputs if source is not None}
        unread = (node for node in model.nodes if node.type == "Parameter" or node not in read)
        loose = tuple(node for node in unread if node.outputs and node.type in ("Parameter", "Constant"))
        return Whole(recording, path, tuple(_units(model)), loose)

    @property
    def model(self) -> Model:
        """The model."""
        return self.recording.model

    @property
    def identity(self) -> str:
        """Identity of the model among all models of a reduction."""
        return f"{self.path} {'declared' if self.recording.keep_shapes else 'recorded'} shapes"

    @property
    def everything(self) -> Part:
        """The whole model as a part, loose layers included."""
        return Part(tuple(range(len(self.units))), loose=tuple(range(len(self.loose))))

    def part_of(self, positions: Collection[int]) -> Part:
        """The part of the layers at these positions of the model."""
        nodes = {self.model.nodes[i] for i in positions}
        return Part(tuple(i for i, unit in enumerate(self.units) if not nodes.isdisjoint(unit)))

    def candidate(self, part: Part) -> Candidate:
        """The model of a part, and its inputs.

        Raises:
            IrexecError: no such model can be made.
        """
        made = self.extracted(part)
        inputs = named_inputs(made.model, [self.recording.array(value) for value in made.feeds])
        return Candidate(made.model, inputs, named_results(made.model, made.results, self.recording.reference))

    def extracted(self, part: Part) -> SubModel:
        """The model of a part."""
        keep, bypass = self.kept(part), self.bypass(part)
        inside, read = set(keep), (resolved(value, bypass) for value in readers(keep))
        self.recording.require({one for one in read if one.node not in inside and one.node.type not in BOUNDARY})
        also = [self.loose[i] for i in part.loose]
        results = None if part.results is None else [self.frontier(part)[i] for i in part.results]
        return extract(self.model, keep, self.recording.boundary, results=results, bypass=bypass, also=also)

    def kept(self, part: Part) -> list[Node]:
        """The layers of a part."""
        return [node for i in part.units for node in self.units[i]]

    def bypass(self, part: Part) -> dict[Value, Value]:
        """Replacements of the outputs of bypassed layers."""
        pairs = [(self.units[unit][0], index) for unit, index in part.bypassed]
        sources = ((node.outputs[0], node.inputs[index]) for node, index in pairs)
        return {value: source for value, source in sources if source is not None}

    def frontier(self, part: Part) -> list[Value]:
        """Values of a part that the rest of the model reads."""
        return frontier(self.model, self.kept(part), self.bypass(part))

    def bypasses(self, part: Part, unit: int) -> list[int]:
        """Inputs of a layer that may replace its only output: they have its type and shape."""
        node, *others = self.units[unit]
        if others or node.bodies or self.recording.reference or len(node.outputs) != 1:
            return []
        bypass, values = self.bypass(part), (node.outputs[0], *node.inputs)
        kinds = [None if value is None else self._kind(resolved(value, bypass)) for value in values]
        return [i for i, kind in enumerate(kinds[1:]) if kind is not None and kind == kinds[0]]

    def _kind(self, value: Value) -> tuple[Element | None, PartialShape] | None:
        fact = self.recording.fact(value)
        return None if fact is None else (fact.element, fact.shape)

    def without(self, part: Part, unit: int, index: int) -> Part:
        """The part without a layer, whose readers read its input ``index``."""
        rest = tuple(i for i in part.units if i != unit)
        return replace(part, units=rest, bypassed=(*part.bypassed, (unit, index)))


def _units(model: Model) -> list[tuple[Node, ...]]:
    """The layers in topological order, those after a cycle last; the layers of one variable together."""
    order, stuck = topological(model)
    found: dict[object, list[Node]] = {}
    for node in [*order, *stuck]:
        if node.type in BOUNDARY:
            continue
        variable = node.attributes.get("variable_id") if node.type in ("ReadValue", "Assign") else None
        key = node if variable is None else variable
        # At the position of the last one: earlier, the assigned value would come from layers after the part.
        found[key] = [*found.pop(key, []), node]
    return [tuple(nodes) for nodes in found.values()]


def named_inputs(model: Model, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the Parameters by unambiguous names of inputs, in the carrier types of the inputs.

    Raises:
        InputError: an input has no type.
    """
    found: dict[str, np.ndarray] = {}
    for port, array in zip(model.inputs, arrays, strict=True):
        name = next((name for name in (port.name, *port.names) if name not in found), str(port.node.id))
        if port.element is None:
            raise InputError(f"the element type of input {port.name!r} is not known")
        found[name] = array if array.dtype == port.element.carrier else array.astype(port.element.carrier)
    return found


def named_results(
    model: Model, values: Sequence[Value | None], reference: Mapping[Value, np.ndarray]
) -> dict[str, np.ndarray]:
    """The reference values of ``values``, one for each Result of a model, by the names of its outputs."""
    if not reference:
        return {}
    return {
        port.name: reference[value]
        for port, value in zip(model.outputs, values, strict=True)
        if value is not None and value in reference
    }


def made(whole: Whole, part: Part) -> Candidate | None:
    """The candidate of a part; None if it is not a valid model."""
    try:
        return whole.candidate(part)
    except IrexecError:
        return None


_ITERATIONS = 8
"""Number of examined iterations: the first ones, and the last."""


def inner_wholes(whole: Whole, node: Node) -> Iterator[Whole]:
    """Each body of a layer as a model to take apart, with the inputs of the first iteration, of the last, and of the
    ones after the first."""
    calls = _calls(whole.recording, node)
    for name, body in node.bodies.items():
        numbered = list(enumerate(calls.get(name) or _unknown(whole.recording, body)))
        for number, arrays in [*numbered[:1], *numbered[1:][-1:], *numbered[1 : min(_ITERATIONS, len(numbered)) - 1]]:
            found = _whole(whole, body, arrays, f"{whole.path}{node.name}/{name}[{number}]/")
            if found is not None:
                yield found


def _whole(whole: Whole, body: Body, arrays: Sequence[np.ndarray], path: str) -> Whole | None:
    recording = whole.recording
    model = Model.of(ModelGraph(body.graph.name or recording.model.name, copy.copy(body.graph).nodes))
    if not recording.keep_shapes:
        model = with_shapes(model, {node.id: array.shape for node, array in zip(model.parameters, arrays, strict=True)})
    inputs = dict(zip(model.parameters, arrays, strict=True))
    try:
        return Whole.of(recording.of_body(model, inputs), path)
    except IrexecError:
        return None


@dataclass
class _RecordingRunner(Runner):
    """A body that keeps the inputs of its calls."""

    node: Node
    body: Body
    outputs: Sequence[Fact]
    calls: list[list[np.ndarray]]
    _compiled: CompiledModel = field(init=False)

    def __post_init__(self) -> None:
        self._compiled = CompiledModel(Model.of(ModelGraph(nodes=copy.copy(self.body.graph).nodes)))

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        if len(self.calls) >= _ITERATIONS:
            # Only the last one of the later iterations is kept.
            self.calls.pop()
        self.calls.append([array.copy() for array in inputs])
        return list(self._compiled(list(inputs)).values())


def _calls(recording: RecordedRun, node: Node) -> Mapping[str, list[list[np.ndarray]]]:
    """The inputs of each body in each iteration; empty if the layer cannot run."""
    calls: dict[str, list[list[np.ndarray]]] = {name: [] for name in node.bodies}
    try:
        definition = resolve(node.type, node.version)
        arguments: dict[str, Any] = typed_attributes(node, definition).require()
        facts = [recording.inference.facts.get(value, Fact(None, None)) for value in node.outputs]
        runners = {
            name: _RecordingRunner(node, node.bodies[name], facts, calls[name])
            for name, kind in definition.injected.items()
            if kind is Runner
        }
        inputs = [recording.array(value) for value in node.inputs if value is not None]
        definition(*inputs, **arguments, **runners)
    except IrexecError:
        return {}
    return calls


def _unknown(recording: RecordedRun, body: Body) -> list[list[np.ndarray]]:
    """Random inputs of the types and shapes inferred for a body; empty if these are unknown."""
    try:
        return [[recording.array(node.outputs[0]) for node in body.graph.parameters]]
    except InputError:
        return []
