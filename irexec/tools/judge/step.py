"""One step of a model in a runtime: its tensors, irexec's, and the judgement of each tensor.

Faults that are there only while inner tensors are not observed, and the state that a step reads, are judged here too.
The effect of rounding on whole results is measured: errors of one rounding at random in every layer.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.model import Model
from irexec.bounds import Interval, arithmetic
from irexec.bounds.interval import Algebra
from irexec.errors import EngineError, IrexecError
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import ancestors, values_of_copy
from irexec.schema.shape_rules import MOVES
from irexec.tools.compare.layers import layer as compared_layer
from irexec.tools.judge.confirming import differ, judged
from irexec.tools.judge.evidence import ROUGH, Evidence, with_worst
from irexec.tools.judge.judgement import JudgedLayer, Judgement, JudgeOptions
from irexec.tools.judge.opponent import Runs, Tensors, irexec_beside
from irexec.tools.observing.sides import ModelSide

_RADII = (0, 1, 2, 4)
"""Numbers of edges around a layer that are left unobserved."""
_COARSE = 1 / 64
"""Relative difference of a state that a runtime may keep in 8 bits, which no verdict is about."""
_FOLDED = 8
"""Units of the largest value by which a layer with folded modules may be off."""
_NOISY, _AXES = 2, 3
"""Number of runs with errors, and of last axes along which these differ."""
Observe = Callable[[Sequence[Value]], Tensors]


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
        step: the step, with its evidence.
    """

    side: ModelSide
    inputs: Mapping[str, np.ndarray]
    seen: Tensors
    options: JudgeOptions
    judgement: Judgement
    is_recorded: bool
    state: Tensors
    step: Step


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
        self._require([value for value in self.runs.values if value in seen])
        return seen

    @property
    def plain(self) -> Tensors:
        """The results while no inner tensor is observed."""
        return self.runs.plain[self.index]

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
        written = runs.written(self.index, held)
        return Evidence(
            runs.opponent, runs.side, runs.facts, held, runs.known, runs.opponent.stored, runs.groups, written
        )  # fmt: skip

    @cached_property
    def judged(self) -> tuple[JudgedLayer, ...]:
        """The judgement of each tensor; of a variable beside what the step before wrote."""
        found = judged(self.evidence, self.seen, [value for value in self.runs.values if value in self.seen])
        of_tensor = {one.layer.tensor: one for one in found}
        if self.index:
            before = self.runs.seen[self.index - 1]
            for value, source in self.runs.variables.items():
                if value in self.seen and source in before:
                    of_tensor[value.name] = _kept(value, before[source], self.seen[value], self.arithmetic)
            for value in self.runs.values:
                if value.node in self.runs.unknown and value.name in of_tensor:
                    layer = of_tensor[value.name].layer
                    reason = "what earlier steps wrote to its caches is not known"
                    of_tensor[value.name] = JudgedLayer(layer, "no bound", reason=reason)
        for value in self.runs.opponent.folded:
            if value.name in of_tensor:
                of_tensor[value.name] = self._of_folded(of_tensor[value.name])
        keys = {value.name: key for value, key in self.runs.opponent.keys.items()}
        return tuple(replace(self._of_the_copy(one), recorded=keys.get(name, "")) for name, one in of_tensor.items())

    def _of_folded(self, one: JudgedLayer) -> JudgedLayer:
        """The judgement of a layer into which a normalization is folded; no accusation of a few units of its largest
        value, since a mean that the folded bias has taken away is rounded in the runtime."""
        if one.state != "outside" or one.relative is None or one.relative > _FOLDED * self.evidence.arithmetic.unit:
            return one
        return replace(one, state="unconfirmed", reason="the model computes several modules as one layer")

    def _of_the_copy(self, one: JudgedLayer) -> JudgedLayer:
        """The judgement of a tensor; no accusation where only the copy with observed tensors is known to be wrong.

        The copy is another model than the user's: it may be fused otherwise, and lose state. An accusation needs a run
        of the layer alone, or else a copy with the results of the model itself, which differ from irexec's.
        """
        if one.state != "outside" or one.alone or self.runs.opponent.runtime is None:
            return one
        if self.differing and not self.changed:
            return one
        shown = "whose results are not those of the model" if self.changed else "and the results of the model are right"
        reason = f"it is outside in a copy with observed tensors alone, {shown}"
        return replace(one, state="unconfirmed", reason=reason, visible=bool(self.differing))

    @property
    def outside(self) -> list[JudgedLayer]:
        """The tensors that are accused."""
        return [one for one in self.judged if one.state == "outside"]

    @cached_property
    def fused(self) -> tuple[JudgedLayer, ...]:
        """Tensors outside of their intervals in runs that observe less.

        Empty unless the results of the model differ from irexec's, and change with what is observed. Runtimes fuse the
        layers between tensors of levels, which are therefore observed alone first.
        """
        changed = self.changed
        inner = [value for value in self.runs.values if value in self.seen and value not in self.runs.results]
        if not changed or not self.differing or not inner:
            return ()

        def is_wrong(given: Tensors) -> bool:
            return any(self.differs(value, given, self.seen) for value in changed)

        def is_the_model(given: Tensors) -> bool:
            return not self._apart(self.plain, given)

        def observe(values: Sequence[Value]) -> Tensors:
            return self.runs.observed(values, self.index + 1)[self.index]

        levels = [value for value in inner if self.seen[value].dtype.kind in "iu" and self.seen[value].itemsize <= 2]
        try:
            return tuple(
                (levels and _fault_in(self.evidence, observe(levels), is_the_model, None))
                or _fused_fault(self.evidence, inner, observe, is_wrong, is_the_model)
            )
        except EngineError:
            # A copy that the runtime does not run, although it runs the model and the copy with all tensors.
            return ()

    @cached_property
    def changed(self) -> list[Value]:
        """The results that differ visibly as soon as inner tensors are observed."""
        return self._apart(self.plain, self.seen)

    @cached_property
    def differing(self) -> list[Value]:
        """The results that differ visibly from irexec's."""
        return self._apart(self.plain, self.ours)

    @cached_property
    def noisy(self) -> list[Tensors]:
        """All tensors of runs of irexec with an error of one rounding in each element of each layer, up or down at
        random."""
        values, size = list(dict.fromkeys([*self.runs.values, *self.runs.results])), 2 * self.evidence.arithmetic.unit
        found: list[Tensors] = []
        for seed in range(_NOISY):
            model, noisy = with_errors(self.runs.side.model, self.runs.facts, lambda value: size, seed)
            with irexec_beside(self.runs.options, model) as own:
                arrays = own.run_all(self.runs.steps[: self.index + 1], [noisy[value] for value in values])[-1]
            found.append(dict(zip(values, arrays, strict=True)))
        return found

    def _apart(self, one: Tensors, other: Tensors) -> list[Value]:
        return [value for value in self.runs.results if self.differs(value, one, other)]

    def differs(self, value: Value, one: Tensors, other: Tensors) -> bool:
        """Whether a tensor is visibly another one in two runs that both have it."""
        return value in one and value in other and differ(one[value], other[value], self.arithmetic)

    def before(self, values: Iterable[Value]) -> set[Node]:
        """The layers from which values are computed."""
        return ancestors(value.node for value in values)

    def in_irexec(self, layers: Iterable[JudgedLayer]) -> Tensors:
        """The tensors of layers in irexec, each with the inputs that it had in the runtime."""
        names = {one.layer.tensor for one in layers}
        values = [value for value in self.runs.values if value.name in names and value in self.seen]
        return self.evidence.alone(values, self.seen, "irexec")

    def require_results(self) -> None:
        """Raise IrexecError if the runtime returns a result only while inner tensors are observed, for its reason."""
        plain, errors = self.plain, self.runs.opponent.errors
        if errors and any(value in self.seen and value not in plain for value in self.runs.results):
            raise errors[-1]
        self._require([value for value in self.runs.results if value in plain])

    def _require(self, given: Sequence[Value]) -> None:
        """Raise the first error of the runs that gave these tensors, if they gave none."""
        errors: Sequence[IrexecError] = self.runs.opponent.errors
        if errors and not given:
            raise errors[0]


def _fused_fault(
    evidence: Evidence,
    inner: Sequence[Value],
    observe: Observe,
    is_wrong: Callable[[Tensors], bool],
    is_the_model: Callable[[Tensors], bool],
) -> list[JudgedLayer]:
    """The tensors outside of their intervals while the layers around them are not observed.

    A bisection finds a tensor whose observation makes the results right; then the tensors around it are left
    unobserved, further and further, and the layers between those that are left are judged as one.

    With all ``inner`` tensors observed, in topological order, the results are right, with none they are wrong, by
    ``is_wrong``. A run accuses only if it has the results of the model itself, by ``is_the_model``.
    """
    low, high = 0, len(inner)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_wrong(observe(inner[:middle])) else (low, middle)
    for radius in _RADII:
        around = _around(evidence, inner[high - 1].node, radius)
        seen = [value for value in inner if value.node not in around]
        if found := _fault_in(evidence, observe(seen), is_the_model, around):
            return found
    return []


def _fault_in(
    evidence: Evidence, given: Tensors, is_the_model: Callable[[Tensors], bool], around: set[Node] | None
) -> list[JudgedLayer]:
    """Tensors outside of their intervals in a run: of regions with layers of ``around``, or the first one of all."""
    if not is_the_model(given):
        return []
    later = [value for value in given if value.node.type not in ("Parameter", "Constant")]
    if around is not None:
        groups = [[value for value in later if around & set(evidence.region(value, given))]]
    else:
        # Tensors behind a fault may be outside, too, and each takes runs to confirm.
        groups = [[value] for value in later]
    found = ([one for one in judged(evidence, given, group) if one.state == "outside"] for group in groups)
    return next(filter(None, found), [])


def _around(evidence: Evidence, node: Node, radius: int) -> set[Node]:
    """The layers at most ``radius`` edges away from a layer."""
    found = {node}
    for _ in range(radius):
        before = {value.node for one in found for value in one.inputs if value is not None}
        after = {one for one in evidence.side.model.nodes if any(v is not None and v.node in found for v in one.inputs)}
        found |= before | after
    return found


def _kept(value: Value, written: np.ndarray, read: np.ndarray, arithmetic_name: str) -> JudgedLayer:
    """A variable that is read: a few roundings are inside, since an observed tensor may differ from the written one."""
    made = JudgedLayer(compared_layer(value), "inside", elements=read.size)
    if written.shape != read.shape:
        text = f"shape {list(read.shape)}, expected {list(written.shape)}"
        return replace(made, state="outside", outside=read.size, reason=text)
    bound = Interval.certain(written)
    if written.dtype.kind == "f":
        bound = Algebra(arithmetic(arithmetic_name)).rounded(bound, ROUGH)
    count = int(np.count_nonzero(bound.outside(read)))
    if not count:
        return made
    if written.dtype.kind == "f":
        largest = np.max(np.abs(read.astype(np.float64) - written), initial=0)
        if largest <= _COARSE * np.max(np.abs(written), initial=0):
            return replace(made, state="unconfirmed", reason="the state may be kept in 8 bits")
    return with_worst(
        replace(made, state="outside", outside=count, reason="not what the step before wrote"), bound, read
    )


def with_errors(
    model: Model, facts: Mapping[Value, Fact], size: Callable[[Value], float], seed: int
) -> tuple[Model, dict[Value, Value]]:
    """A copy of a model in which each layer's floating-point results are multiplied by 1 + or - ``size`` at random.

    Returns:
        The copy, and its values by those of the model.
    """
    made, rng = copy.copy(model), np.random.default_rng(seed)
    own, adding, count = values_of_copy(model, made), Adding(made.nodes), len(made.nodes)
    moved: dict[Value, Value] = {}
    for value in _computed(model, facts):
        fact = facts[value]
        factors = adding.constant(1 + size(value) * rng.choice((-1.0, 1.0), fact.static_shape[-_AXES:]), fact.element)
        inputs = [own[value], factors]
        moved[own[value]] = adding.layer("Multiply", {"auto_broadcast": "numpy"}, inputs, fact)
    for node in made.nodes[:count]:
        for port in node.ports:
            if port.source is not None:
                port.source = moved.get(port.source, port.source)
    return made, {value: moved.get(other, other) for value, other in own.items()}


def _computed(model: Model, facts: Mapping[Value, Fact]) -> Iterator[Value]:
    for node in model.nodes:
        if node.type in MOVES or node.type in ("Constant", "Parameter", "Result", "ReadValue", "Assign"):
            continue
        for value in node.outputs:
            fact = facts.get(value)
            if fact is not None and fact.is_static and fact.element is not None and fact.element.is_float:
                yield value
