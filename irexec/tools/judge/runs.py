"""The steps of a model in a runtime that is judged, and in irexec: each runs once for the verdicts about all steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.ir.graph import Value
from irexec.tools.engines.runtimes import Arrays, open_runtime, precision_beside
from irexec.tools.judge.causes import known_differences
from irexec.tools.judge.opponent import Opponent, Tensors
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.observing.observe import observe
from irexec.tools.observing.sides import ModelSide, computed


class Runs:
    """The steps of a model, with state from step to step.

    Args:
        model: the model, with static inputs unless their shapes change.
        steps: the inputs of each step.
        options: the runtime.
        stack: closes the runtime.

    Attributes:
        values: the tensors that are asked for.
        results: the tensors of the results of the model.
        layouts: sentences about recorded tensors in another layout.
        known: codes of known differences by layer, if the runtime is OpenVINO.
        variables: for each ReadValue the tensor that is written to its variable.
    """

    def __init__(self, model: Model, steps: Sequence[Arrays], options: JudgeOptions, stack: ExitStack) -> None:
        self.model, self.steps, self.options = model, steps, options
        self.side = ModelSide(str(model.path or model.name or "the model"), model, options.runtime)
        inference = infer_shapes(model, tolerant=True)
        self.facts = inference.facts
        self.opponent = Opponent(model, options, stack)
        self.layouts = self.opponent.arranged(self.facts)
        self.known = known_differences(model, inference) if self.opponent.is_openvino else {}
        constant = constant_layers(model)
        self.values = [value for value in computed(self.side.order) if value.node not in constant]
        self.results = [value for node in model.results for value in node.inputs if value is not None]
        self.variables = dict(_variables(model))

    def observed(self, values: Sequence[Value], count: int | None = None) -> list[Tensors]:
        """A run of the first steps in which the results and these values are asked for, with the inputs of each."""
        asked = list(dict.fromkeys([*values, *self.results]))
        steps = self.steps[:count]
        return self._with_inputs(self.opponent.observed(steps, asked))

    @cached_property
    def seen(self) -> list[Tensors]:
        """All tensors of each step in the runtime."""
        return self.observed([*self.values, *self.variables.values()])

    @cached_property
    def plain(self) -> list[Tensors]:
        """The results of each step in the runtime, while no inner tensor is observed."""
        return self.seen if self.opponent.runtime is None else self.observed(self.results)

    @cached_property
    def ours(self) -> list[Tensors]:
        """All tensors of each step in irexec."""
        with open_runtime("irexec", self.model, precision=precision_beside(self.options.runtime)) as own:
            found = observe(own, self.steps, [*self.values, *self.results])
        arrays = {value: given for value, given in found.arrays.items() if isinstance(value, Value)}
        return self._with_inputs([{value: of[i] for value, of in arrays.items()} for i in range(len(self.steps))])

    def _with_inputs(self, steps: Sequence[Tensors]) -> list[Tensors]:
        ports = [(port.node.outputs[0], port.name) for port in self.model.inputs]
        given = [{value: arrays[name] for value, name in ports} for arrays in self.steps]
        return [{**one, **own} for one, own in zip(steps, given, strict=False)]


def _variables(model: Model) -> Iterator[tuple[Value, Value]]:
    """Each ReadValue's tensor and what is written to its variable."""
    name = "variable_id"
    written = {node.attributes.get(name): node.inputs[0] for node in model.nodes if node.type == "Assign"}
    for node in model.nodes:
        source = written.get(node.attributes.get(name)) if node.type == "ReadValue" else None
        if source is not None:
            yield node.outputs[0], source
