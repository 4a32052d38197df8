"""Bodies of a layer as models of their own, with the inputs of iterations."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.model import Model
from irexec.analysis.submodel import with_shapes
from irexec.errors import InputError, IrexecError
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, ModelGraph, Node
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.attributes import Runner
from irexec.schema.registry import resolve
from irexec.tools.reduce.candidate import Whole
from irexec.tools.reduce.recording import RecordedRun

_ITERATIONS = 8
"""Number of examined iterations: the first ones, and the last."""


def inner_wholes(whole: Whole, node: Node) -> Iterator[Whole]:
    """Each body of a layer as a model to take apart, with the inputs of the first iteration, of the last, and of the
    ones after the first."""
    calls = _calls(whole.recording, node)
    for name, body in node.bodies.items():
        for number, arrays in _chosen(calls.get(name) or _unknown(whole.recording, body)):
            found = _whole(whole, body, arrays, f"{whole.path}{node.name}/{name}[{number}]/")
            if found is not None:
                yield found


def _chosen(calls: Sequence[Sequence[np.ndarray]]) -> list[tuple[int, Sequence[np.ndarray]]]:
    numbered = list(enumerate(calls))
    return [*numbered[:1], *numbered[1:][-1:], *numbered[1 : min(_ITERATIONS, len(numbered)) - 1]]


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
