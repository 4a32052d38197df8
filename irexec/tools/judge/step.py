"""One step of a model in a runtime: its tensors, irexec's, and the judgement of each tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irexec.bounds import arithmetic
from irexec.errors import IrexecError
from irexec.ir.graph import Node, Value
from irexec.tools.judge.confirming import differ, judged
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.fusion import fused_fault
from irexec.tools.judge.judgement import JudgedLayer, Judgement
from irexec.tools.judge.opponent import Tensors
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.judge.runs import Runs
from irexec.tools.judge.variables import kept
from irexec.tools.observing.sides import ModelSide


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


@dataclass(frozen=True, eq=False)
class Step:
    """One step; everything that is known of it is computed when it is first asked for.

    Attributes:
        runs: the steps of the model.
        index: the number of the step, from 0.
    """

    runs: Runs
    index: int

    @cached_property
    def seen(self) -> Tensors:
        """The tensors of the runtime.

        Raises:
            IrexecError: the runtime gives none, for this reason: a model that does not run is not judged.
        """
        seen = self.runs.seen[self.index]
        self._require(value for value in self.runs.values if value in seen)
        return seen

    @cached_property
    def plain(self) -> Tensors:
        """The results while no inner tensor is observed."""
        plain = self.runs.plain[self.index]
        if not self.outside:
            self._require(value for value in self.runs.results if value in plain)
        return plain

    @property
    def ours(self) -> Tensors:
        """The same tensors in irexec."""
        return self.runs.ours[self.index]

    @cached_property
    def arithmetic(self) -> str:
        """The name of the arithmetic that the runtime is held to, which it says after a run."""
        assert self.seen
        return self.runs.opponent.arithmetic(self.runs.facts, self.runs.values)

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence about the runtime."""
        runs = self.runs
        held = arithmetic(self.arithmetic, runs.opponent.functions)
        return Evidence(runs.opponent, runs.side, runs.facts, held, runs.known, runs.opponent.stored)

    @cached_property
    def judged(self) -> tuple[JudgedLayer, ...]:
        """The judgement of each tensor; of a variable beside what the step before wrote."""
        found = judged(self.evidence, self.seen, [value for value in self.runs.values if value in self.seen])
        if not self.index:
            return tuple(found)
        before, of_tensor = self.runs.seen[self.index - 1], {one.layer.tensor: one for one in found}
        for value, source in self.runs.variables.items():
            if value in self.seen and source in before:
                of_tensor[value.name] = kept(value, before[source], self.seen[value], self.arithmetic)
        return tuple(of_tensor.values())

    @property
    def outside(self) -> list[JudgedLayer]:
        """The tensors that are accused."""
        return [one for one in self.judged if one.state == "outside"]

    @cached_property
    def fused(self) -> tuple[JudgedLayer, ...]:
        """Tensors outside of their intervals in runs that observe less; empty unless the results then differ."""
        changed = self.changed
        inner = [value for value in self.runs.values if value in self.seen and value not in self.runs.results]
        if not changed or not inner:
            return ()

        def is_wrong(given: Tensors) -> bool:
            return any(self.differs(value, given, self.seen) for value in changed)

        def observe(values: Sequence[Value]) -> Tensors:
            return self.runs.observed(values, self.index + 1)[self.index]

        return tuple(fused_fault(self.evidence, inner, observe, is_wrong))

    @cached_property
    def changed(self) -> list[Value]:
        """The results that differ visibly as soon as inner tensors are observed."""
        return [value for value in self.runs.results if self.differs(value, self.plain, self.seen)]

    @cached_property
    def differing(self) -> list[Value]:
        """The results that differ visibly from irexec's."""
        return [value for value in dict.fromkeys(self.runs.results) if self.differs(value, self.plain, self.ours)]

    def differs(self, value: Value, one: Tensors, other: Tensors) -> bool:
        """Whether a tensor is visibly another one in two runs that both have it."""
        return value in one and value in other and differ(one[value], other[value], self.arithmetic)

    def before(self, values: Iterable[Value]) -> set[Node]:
        """The layers from which values are computed."""
        found, waiting = set[Node](), [value.node for value in values]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += [value.node for value in node.inputs if value is not None]
        return found

    def in_irexec(self, layers: Iterable[JudgedLayer]) -> Tensors:
        """The tensors of layers in irexec, each with the inputs that it had in the runtime."""
        names = {one.layer.tensor for one in layers}
        values = [value for value in self.runs.values if value.name in names and value in self.seen]
        return self.evidence.alone(values, self.seen, "irexec")

    def _require(self, given: Iterable[Value]) -> None:
        errors: Sequence[IrexecError] = self.runs.opponent.errors
        if errors and next(iter(given), None) is None:
            raise errors[0]
