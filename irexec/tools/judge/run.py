"""The judgement of a runtime: which of the two is wrong, by bounds in place of tolerances."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model, find_port
from irexec.analysis.shape_inference import infer_shapes
from irexec.analysis.submodel import with_shapes
from irexec.api import ModelLike, as_model
from irexec.bounds import arithmetic
from irexec.ir.graph import Node, Value
from irexec.messages import counted
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.compare.observe import observe
from irexec.tools.compare.rows import layer as compared_layer
from irexec.tools.compare.sides import ModelSide, computed, is_recorded
from irexec.tools.compare.tolerances import RTOL
from irexec.tools.engines.runtimes import open_runtime, precision_beside, runtime_kind
from irexec.tools.images.files import Notify
from irexec.tools.judge.causes import amplification, first_not_finite, is_finite, known_differences, with_known
from irexec.tools.judge.confirming import judged
from irexec.tools.judge.fusion import fused_fault
from irexec.tools.judge.judgement import JudgedLayer, Judgement, Verdict
from irexec.tools.judge.layers import Layers
from irexec.tools.judge.opponent import Opponent, Tensors
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.input_sources import InputSource, sample_inputs
from irexec.tools.run.shapes import read_with_shapes, reshape

Found = tuple[Verdict, str, Sequence[JudgedLayer]]


def judge(
    model: ModelLike,
    inputs: Mapping[str, np.ndarray] | None = None,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = lambda text: None,
    **settings: Any,
) -> Judgement:
    """Judge a runtime: every layer beside the interval in which correct implementations lie.

    Args:
        model: a model, or a path that read_model accepts; it is not changed.
        inputs: arrays by the names of inputs. Other inputs come from the recording, or from ``sources``.
        options: the runtime, its properties and its arithmetic.
        sources: sources of other inputs; by default random ones.
        notify: receives unexpected facts.
        settings: single options, in place of ``options``.

    Raises:
        InputError: the options, inputs or shapes do not fit the model.
        UnsupportedError: the runtime is not installed.
        ModelError, ConversionError, EngineError: the model cannot be read, or the runtime does not run it.
        RunTimeoutError: a run takes longer than the timeout.
    """
    options = options or JudgeOptions(**settings)
    return judged_case(model, inputs, options, sources, notify).judgement


@dataclass(frozen=True)
class Case:
    """A judged model, with what it was judged by.

    Attributes:
        side: the model with static inputs.
        inputs: its inputs by name.
        seen: tensors of the runtime.
        options: how the runtime was judged; its shapes and weights are in the model.
        judgement: the judgement.
        is_recorded: whether the runtime is a recording, in which no smaller model runs.
    """

    side: ModelSide
    inputs: Mapping[str, np.ndarray]
    seen: Tensors
    options: JudgeOptions
    judgement: Judgement
    is_recorded: bool


def judged_case(
    model: ModelLike,
    inputs: Mapping[str, np.ndarray] | None,
    options: JudgeOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> Case:
    """The judgement together with its model; see ``judge``."""
    read = _read(model, inputs, options, sources)
    with ExitStack() as stack:
        opponent = Opponent(read, options, stack)
        known = opponent.inputs()
        if not sources:
            opponent.require_inputs({**known, **(inputs or {})})
        fixed, arrays = with_inputs(read, {**known, **(inputs or {})}, options, sources, notify)
        judging = _Judging(fixed, arrays, options, stack)
        found = judging.judgement()
        alone = replace(options, shapes=None, weights=None)
        return Case(judging.side, arrays, judging.seen, alone, found, judging.opponent.runtime is None)


def _read(
    model: ModelLike, inputs: Mapping[str, np.ndarray] | None, options: JudgeOptions, sources: Sequence[InputSource]
) -> Model:
    if isinstance(model, str | os.PathLike):
        given = GivenInputs(sources, [inputs] if inputs else [])
        return read_with_shapes(str(model), options.weights, options.shapes or {}, given=given)
    return as_model(model)


def with_inputs(
    read: Model,
    inputs: Mapping[str, np.ndarray],
    options: JudgeOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> tuple[Model, dict[str, np.ndarray]]:
    """The model in the shapes of its inputs, and an array for each input by name: the given ones, then the sources'."""
    if options.shapes:
        reshape(read, options.shapes)
    known = {find_port(read.inputs, name).name: np.asarray(array) for name, array in inputs.items()}
    left = [port for port in read.inputs if port.name not in known]
    sampled = sample_inputs(sources, left, options.seed, notify) if left else {}
    bound = bind_inputs(read.inputs, {**sampled, **known}, allow_cast=True)
    arrays = {port.name: array for port, array in zip(read.inputs, bound, strict=True)}
    return with_shapes(read, {port.node.id: arrays[port.name].shape for port in read.inputs}), arrays


class _Judging:
    """One judgement of a model with static inputs."""

    def __init__(self, model: Model, arrays: Mapping[str, np.ndarray], options: JudgeOptions, stack: ExitStack) -> None:
        self.model, self.arrays, self.options = model, arrays, options
        self.side = ModelSide(str(model.path or model.name or "the model"), model, options.runtime)
        inference = infer_shapes(model, tolerant=True)
        self.facts = inference.facts
        kind = options.runtime if is_recorded(Path(options.runtime)) else runtime_kind(options.runtime)
        self.known = known_differences(model, inference, kind)
        self.opponent = Opponent(model, options, stack)
        constant = constant_layers(model)
        self.values = [value for value in computed(self.side.order) if value.node not in constant]
        self.results = [value for node in model.results for value in node.inputs if value is not None]
        self.inputs = {port.node.outputs[0]: arrays[port.name] for port in model.inputs}
        self.notes: list[str] = []

    def judgement(self) -> Judgement:
        """The verdict, from what the runtime gives."""
        self.seen = self.observed(self.values)
        self._require(value for value in self.values if value in self.seen)
        self.arithmetic = self.opponent.arithmetic(self.facts, self.values)
        self.layers = Layers(self.opponent, self.side, self.facts, arithmetic(self.arithmetic))
        found = judged(self.layers, self.seen, [value for value in self.values if value in self.seen])
        self.judged = with_known(found, self.known)
        self.plain = self.seen if self.opponent.runtime is None else self.observed(self.results)
        if not any(one.state == "outside" for one in self.judged):
            self._require(value for value in self.results if value in self.plain)
        verdict, sentence, at = self._verdict()
        runtime = self.opponent.runtime
        return Judgement(
            self.side.label, self.options.runtime, "" if runtime is None else runtime.version, self.arithmetic,
            verdict, sentence, tuple(at), tuple(self.judged), tuple(value.name for value in self.differing),
            tuple(self._notes()),
        )  # fmt: skip

    def _require(self, given: Iterable[Value]) -> None:
        """Raise the runtime's error if it gives nothing of this: a model that does not run is not judged."""
        if self.opponent.errors and next(iter(given), None) is None:
            raise self.opponent.errors[0]

    def observed(self, values: Sequence[Value]) -> Tensors:
        """A run in which the results and these values are asked for, with the inputs."""
        asked = list(dict.fromkeys([*values, *self.results]))
        return self.opponent.observed(self.arrays, asked) | self.inputs

    @cached_property
    def ours(self) -> Tensors:
        """The same tensors in irexec."""
        runtime = self.options.runtime
        with open_runtime("irexec", self.model, precision=precision_beside(runtime)) as own:
            seen = observe(own, [self.arrays], [*self.values, *self.results])
        given = {value: arrays[0] for value, arrays in seen.arrays.items() if isinstance(value, Value)}
        return given | self.inputs

    @cached_property
    def differing(self) -> list[Value]:
        """The results that differ visibly from irexec's."""
        return [value for value in dict.fromkeys(self.results) if self._differ(value, self.plain, self.ours)]

    def _differ(self, value: Value, one: Tensors, other: Tensors) -> bool:
        if value not in one or value not in other:
            return False
        rtol = RTOL.get(self.arithmetic.partition("-")[0], RTOL["f32"])
        tolerance = Tolerance(rtol=rtol, atol=rtol, scaled=True)
        return not agreement_of(value.name, one[value], other[value], tolerance).agrees

    def _verdict(self) -> Found:
        if guilty := [one for one in self.judged if one.state == "outside"]:
            return "bug", f"bug of the runtime: {described(guilty[0], self.arithmetic)}", guilty
        if (fused := self._fused()) and fused[0].state == "outside":
            text = described(fused[0], self.arithmetic)
            return "fusion", f"bug of the runtime, only while inner tensors are not observed: {text}", fused
        if (own := self._of_the_model()) is not None:
            return "model", f"the model itself: {own}", ()
        if known := [one for one in self.judged if one.state == "known"]:
            codes = ", ".join(known[0].codes)
            return "open", f"left open: OpenVINO is known to differ, {codes}, at {known[0].layer}", known
        if not self.differing:
            return "agrees", f"agrees: {self._coverage()}", ()
        return self._without_fault()

    def _fused(self) -> list[JudgedLayer]:
        """Layers outside of their intervals in runs that observe less."""
        changed = [value for value in self.results if self._differ(value, self.plain, self.seen)]
        if not changed:
            return []
        inner = [value for value in self.values if value in self.seen and value not in self.results]

        def is_wrong(given: Tensors) -> bool:
            return any(self._differ(value, given, self.seen) for value in changed)

        found = fused_fault(self.layers, inner, self.observed, is_wrong) if inner else []
        if not found:
            self.notes.append("observed tensors change the results, and no bound says that either are wrong")
        return with_known(found, self.known) if found else []

    def _of_the_model(self) -> str | None:
        """Where NaN or infinities of the results come from, if irexec has them as well."""
        bad = [value for value in self.results if value in self.plain and not is_finite(self.plain[value])]
        if not bad or all(is_finite(self.ours[value]) for value in bad if value in self.ours):
            return None
        first = first_not_finite(self.side.order, self.ours)
        if first is None:
            return None
        if first.node.type == "Parameter":
            return f"NaN or infinity comes from the input {first.name!r}"
        kind = "constant" if first.node.constant is not None else f"{first.node.type} of finite inputs, layer"
        return f"NaN or infinity comes from {kind} {first.node.id} {first.node.name!r}"

    def _without_fault(self) -> Found:
        """The reason for visible differences, where no layer is outside."""
        unknown = [one for one in self.judged if one.state in ("no bound", "unconfirmed")]
        opened = [one for one in self.judged if one.codes]
        alone = self._of_irexec_alone([*unknown, *opened, *(one for one in self.judged if one.free)])
        apart = {value.name for value in alone if self._differ(value, alone, self.seen)}
        if suspects := [one for one in unknown if one.layer.tensor in apart]:
            first = suspects[0]
            text = f"no bound: {first.layer} differs from irexec with equal inputs, and {first.reason}"
            return "no-bound", text, suspects
        if opened := [one for one in opened if one.layer.tensor in apart]:
            codes = ", ".join(opened[0].codes)
            return "open", f"left open by the specification: {codes}, at {opened[0].layer}", opened
        if freed := [one for one in self.judged if one.layer.tensor in apart and self._differs_freely(one, alone)]:
            first = freed[0]
            text = f"{first.free:,} of {counted(first.elements, 'value')} of {first.layer}"
            return "open", f"left open: {text}, which NaN, infinity or overflow reaches, may be anything", freed
        found = amplification(self.side.order, self.ours, self.seen, self._before_differing())
        if found is None:
            return "precision", f"precision: every layer within {self.arithmetic}", ()
        value, own, before, ratio = found
        text = (
            f"precision: every layer within {self.arithmetic}; amplified by {compared_layer(value)}, whose inputs "
            f"differ by {before:.1e} and whose values by {own:.1e} (condition {ratio:.0e})"
        )
        return "precision", text, [one for one in self.judged if one.layer.tensor == value.name][:1]

    def _of_irexec_alone(self, layers: Sequence[JudgedLayer]) -> Tensors:
        """The tensors of layers in irexec with the inputs of the runtime."""
        names = {one.layer.tensor for one in layers}
        values = [value for value in self.values if value.name in names and value in self.seen]
        return self.layers.alone(values, self.seen, "irexec") if values else {}

    def _differs_freely(self, one: JudgedLayer, own: Tensors) -> bool:
        """Whether a layer differs visibly from irexec's in the elements that may be anything."""
        value = next((value for value in own if value.name == one.layer.tensor), None)
        if value is None or not one.free:
            return False
        mask = self.layers.free(value, self.seen)
        return self._differ(value, {value: own[value][mask]}, {value: self.seen[value][mask]})

    def _before_differing(self) -> set[Node]:
        found, waiting = set[Node](), [value.node for value in self.differing]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += [value.node for value in node.inputs if value is not None]
        return found

    def _coverage(self) -> str:
        inside = sum(one.state == "inside" for one in self.judged)
        rest = len(self.judged) - inside
        text = f"{inside} of {counted(len(self.judged), 'tensor')} inside the intervals of {self.arithmetic}"
        return f"{text}, {rest} without a bound" if rest else text

    def _notes(self) -> Sequence[str]:
        failed = len(self.opponent.failures)
        unseen = [f"{counted(failed, 'tensor')} cannot be observed, and are judged with the layers after them"]
        return [*self.notes, *(unseen if failed else [])]


def described(one: JudgedLayer, arithmetic_name: str) -> str:
    """An accusation in one sentence."""
    if one.value is None and one.reason:
        return f"{one.layer}: {one.reason}"
    values = f"{one.outside:,} of {one.elements:,} values outside of {arithmetic_name}'s interval"
    position = f"[{', '.join(map(str, one.position))}]"
    worst = f"worst {one.value:.9g} at {position}, expected {one.low:.9g} to {one.high:.9g}"
    return f"{one.layer}: {values}; {worst}"
