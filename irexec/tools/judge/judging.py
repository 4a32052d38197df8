"""The judgement of one step: each layer beside its bound, and the reason for results that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from irexec.analysis.model import Model, find_port
from irexec.analysis.submodel import with_shapes
from irexec.bounds import Interval, arithmetic
from irexec.ir.graph import Node, Value
from irexec.messages import counted
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.compare.rows import layer as compared_layer
from irexec.tools.compare.sides import ModelSide
from irexec.tools.compare.tolerances import RTOL
from irexec.tools.images.files import Notify
from irexec.tools.judge.causes import amplification, condition, first_not_finite, is_finite, with_known
from irexec.tools.judge.confirming import judged
from irexec.tools.judge.fusion import fused_fault
from irexec.tools.judge.judgement import JudgedLayer, Judgement, Verdict
from irexec.tools.judge.layers import Layers
from irexec.tools.judge.opponent import Tensors
from irexec.tools.judge.options import JudgeOptions, StepOptions
from irexec.tools.judge.runs import Runs
from irexec.tools.judge.variables import kept
from irexec.tools.run.input_sources import InputSource, sample_inputs
from irexec.tools.run.shapes import reshape

Found = tuple[Verdict, str, Sequence[JudgedLayer]]


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
        state: the variables before the step, by the tensors that read them; empty before the first step.
    """

    side: ModelSide
    inputs: Mapping[str, np.ndarray]
    seen: Tensors
    options: JudgeOptions
    judgement: Judgement
    is_recorded: bool
    state: Tensors


def with_inputs(
    read: Model,
    inputs: Mapping[str, np.ndarray],
    options: StepOptions,
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


class Judging:
    """The judgement of one step.

    Args:
        runs: the steps of the model.
        step: the step, from 0.
    """

    def __init__(self, runs: Runs, step: int) -> None:
        self.runs, self.step, self.opponent = runs, step, runs.opponent
        self.values, self.results = runs.values, runs.results
        self.notes: list[str] = []

    def case(self) -> Case:
        """The judgement together with the model and its state before the step."""
        found, runs = self.judgement(), self.runs
        alone = replace(runs.options, shapes=None, weights=None, steps=1, load_state=None)
        before = runs.seen[self.step - 1] if self.step else {}
        state = {value: before[source] for value, source in runs.variables.items() if source in before}
        return Case(runs.side, runs.steps[self.step], self.seen, alone, found, self.opponent.runtime is None, state)

    def judgement(self) -> Judgement:
        """The verdict, from what the runtime gives."""
        runs = self.runs
        self.seen, options = runs.seen[self.step], runs.options
        self._require(value for value in self.values if value in self.seen)
        self.arithmetic = self.opponent.arithmetic(runs.facts, self.values)
        self.layers = Layers(self.opponent, runs.side, runs.facts, arithmetic(self.arithmetic))
        self.judged = self._judged()
        self.plain = runs.plain[self.step]
        if not any(one.state == "outside" for one in self.judged):
            self._require(value for value in self.results if value in self.plain)
        verdict, sentence, at = self._verdict()
        version = "" if self.opponent.runtime is None else self.opponent.runtime.version
        return Judgement(
            runs.side.label, options.runtime, version, self.arithmetic,
            verdict, sentence, tuple(at), tuple(self.judged), tuple(value.name for value in self.differing),
            tuple(self._notes()), step=self.step + 1, steps=len(runs.steps),
        )  # fmt: skip

    def _judged(self) -> list[JudgedLayer]:
        """The judgement of each tensor; of a variable beside what the step before wrote."""
        found = judged(self.layers, self.seen, [value for value in self.values if value in self.seen])
        if not self.step:
            return with_known(found, self.runs.known)
        before, of_tensor = self.runs.seen[self.step - 1], {one.layer.tensor: one for one in found}
        for value, source in self.runs.variables.items():
            if value in self.seen and source in before:
                of_tensor[value.name] = kept(value, before[source], self.seen[value], self.arithmetic)
        return with_known(list(of_tensor.values()), self.runs.known)

    def _require(self, given: Iterable[Value]) -> None:
        """Raise the runtime's error if it gives nothing of this: a model that does not run is not judged."""
        if self.opponent.errors and next(iter(given), None) is None:
            raise self.opponent.errors[0]

    def observed(self, values: Sequence[Value]) -> Tensors:
        """The step in a run in which the results and these values are asked for, with the inputs."""
        return self.runs.observed(values, self.step + 1)[self.step]

    @property
    def ours(self) -> Tensors:
        """The same tensors in irexec."""
        return self.runs.ours[self.step]

    @cached_property
    def differing(self) -> list[Value]:
        """The results that differ visibly from irexec's."""
        return [value for value in dict.fromkeys(self.results) if differ(value, self.plain, self.ours, self.arithmetic)]

    def _verdict(self) -> Found:
        if guilty := [one for one in self.judged if one.state == "outside"]:
            return "bug", f"bug of the runtime: {described(guilty[0], self.arithmetic)}", guilty
        if (fused := self._fused()) and fused[0].state == "outside":
            text = described(fused[0], self.arithmetic)
            return "fusion", f"bug of the runtime, only while inner tensors are not observed: {text}", fused
        if self.differing and (freed := self._freed()) is not None:
            return freed
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
        changed = [value for value in self.results if differ(value, self.plain, self.seen, self.arithmetic)]
        if not changed:
            return []
        inner = [value for value in self.values if value in self.seen and value not in self.results]

        def is_wrong(given: Tensors) -> bool:
            return any(differ(value, given, self.seen, self.arithmetic) for value in changed)

        found = fused_fault(self.layers, inner, self.observed, is_wrong) if inner else []
        if not found:
            self.notes.append("observed tensors change the results, and no bound says that either are wrong")
        return with_known(found, self.runs.known) if found else []

    def _of_the_model(self) -> str | None:
        """Where NaN or infinities of the results come from, if irexec has them as well."""
        bad = [value for value in self.results if value in self.plain and not is_finite(self.plain[value])]
        if not bad or all(is_finite(self.ours[value]) for value in bad if value in self.ours):
            return None
        first = first_not_finite(self.runs.side.order, self.ours)
        if first is None:
            return None
        if first.node.type == "Parameter":
            return f"NaN or infinity comes from the input {first.name!r}"
        kind = "constant" if first.node.constant is not None else f"{first.node.type} of finite inputs, layer"
        return f"NaN or infinity comes from {kind} {first.node.id} {first.node.name!r}"

    def _without_fault(self) -> Found:
        """The reason for visible differences, where no layer is outside."""
        unknown = [
            one for one in self.judged if one.state in ("no bound", "unconfirmed")
            and not (self.step and one.layer.type == "ReadValue")
        ]  # fmt: skip
        opened = [one for one in self.judged if one.codes]
        alone = self._of_irexec_alone([*unknown, *opened])
        apart = {value.name for value in alone if differ(value, alone, self.seen, self.arithmetic)}
        if suspects := [one for one in unknown if one.layer.tensor in apart]:
            first = suspects[0]
            text = f"no bound: {first.layer} differs from irexec with equal inputs, and {first.reason}"
            return "no-bound", text, suspects
        if opened := [one for one in opened if one.layer.tensor in apart]:
            codes = ", ".join(opened[0].codes)
            return "open", f"left open by the specification: {codes}, at {opened[0].layer}", opened
        found = amplification(self.runs.side.order, self.ours, self.seen, self._before_differing())
        if found is None:
            return "precision", f"precision: every layer within {self.arithmetic}", ()
        value, own, before, ratio = found
        estimated = condition(self.layers, value, self.seen)
        ratio = ratio if estimated is None else estimated
        text = (
            f"precision: every layer within {self.arithmetic}; amplified by {compared_layer(value)}, whose inputs "
            f"differ by {before:.1e} and whose values by {own:.1e} (condition {ratio:.0e})"
        )
        return "precision", text, [one for one in self.judged if one.layer.tensor == value.name][:1]

    def _freed(self) -> Found | None:
        """The layers that differ from irexec's with equal inputs where they may be anything; None if there are none."""
        free = [one for one in self.judged if one.free]
        alone = self._of_irexec_alone(free) if free else {}
        freed = [one for one in free if self._differs_freely(one, alone)] or self._freed_unobserved()
        if not freed:
            return None
        text = f"{freed[0].free:,} of {counted(freed[0].elements, 'value')} of {freed[0].layer}"
        return "open", f"left open: {text}, which NaN, infinity or overflow reaches, may be anything", freed

    def _freed_unobserved(self) -> list[JudgedLayer]:
        """Results that differ only while inner tensors are not observed, where NaN or infinity reaches them."""
        found = []
        for value in self.differing:
            if differ(value, self.seen, self.ours, self.arithmetic):
                continue
            given = {source: array for source, array in self.plain.items() if source is not value}
            ours, theirs = self.ours[value], self.plain[value]
            if ours.shape != theirs.shape or ours.dtype.kind != "f":
                continue
            bound, _ = self.layers.bound(value, given)
            if isinstance(bound, Interval):
                # Intervals that merely grew are no reason.
                mask = bound.is_anything & ~(np.isfinite(ours) & np.isfinite(theirs))
                if differ(value, {value: theirs[mask]}, {value: ours[mask]}, self.arithmetic):
                    found.append(self.layers.beside(value, given, theirs))
        return found

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
        return differ(value, {value: own[value][mask]}, {value: self.seen[value][mask]}, self.arithmetic)

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


def differ(value: Value, one: Tensors, other: Tensors, arithmetic_name: str) -> bool:
    """Whether a tensor is visibly another one in two runs that both have it."""
    if value not in one or value not in other:
        return False
    rtol = RTOL.get(arithmetic_name.partition("-")[0], RTOL["f32"])
    tolerance = Tolerance(rtol=rtol, atol=rtol, scaled=True)
    return not agreement_of(value.name, one[value], other[value], tolerance).agrees


def described(one: JudgedLayer, arithmetic_name: str) -> str:
    """An accusation in one sentence."""
    if one.value is None and one.reason:
        return f"{one.layer}: {one.reason}"
    why = one.reason or f"outside of {arithmetic_name}'s interval"
    values = f"{one.outside:,} of {one.elements:,} values {why}"
    position = f"[{', '.join(map(str, one.position))}]"
    worst = f"worst {one.value:.9g} at {position}, expected {one.low:.9g} to {one.high:.9g}"
    return f"{one.layer}: {values}; {worst}"
