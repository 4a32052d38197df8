"""The effect of rounding on whole results, measured: levels next to each other, and errors at random in every layer.

Where a value lies on the edge between two levels of a FakeQuantize, two runtimes may choose different ones, and both
are right. Two measurements say whether that explains results. With the runtime's own levels in place of irexec's, the
results are the same; or, where its levels cannot be observed, errors of one rounding at random move results as far.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.model import Model
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.ir.order import values_of_copy
from irexec.messages import counted
from irexec.schema.shape_rules import MOVES
from irexec.tools.compare.layers import levels_apart
from irexec.tools.judge.opponent import Tensors, irexec_beside
from irexec.tools.judge.step import Step

_RUNS = 2
_ENOUGH = 4.0
"""Times that the measured effect may be smaller than the difference that it explains."""
_AXES = 3
"""Number of last axes along which errors differ."""
_LEVELS = "FakeQuantize"


def at_edges(step: Step) -> str | None:
    """A sentence about values that lie on an edge, if they explain the results that differ; None if not."""
    before = step.before(step.differing)
    levels = [value for value in step.runs.values if value.node.type == _LEVELS and value.node in before]
    if not levels:
        return None
    observed = [value for value in levels if value in step.seen]
    total = sum(step.ours[value].size for value in levels if value in step.ours)
    if len(observed) == len(levels) and not step.changed:
        count = sum(_moved(value, step.seen[value], step.ours[value]) for value in observed)
        inputs = {value: array for value, array in step.ours.items() if value.node.type == "Parameter"}
        made = step.evidence.alone(step.differing, {**inputs, **{v: step.seen[v] for v in observed}}, "irexec")
        explained = all(value in made and not step.differs(value, made, step.plain) for value in step.differing)
        if not (count and explained):
            return None
        return (
            f"{count:,} of {counted(total, 'value')} of {counted(len(levels), f'{_LEVELS} layer')} on another level, "
            "where either is right; with these levels irexec gives the same results"
        )
    noise = Noise(step)
    count = max(sum(_moved(v, run[v], step.ours[v]) for v in levels if v in run) for run in noise.runs)
    if not (count and noise.explains):
        return None
    return (
        f"errors of one rounding bring {count:,} of {counted(total, 'value')} of "
        f"{counted(len(levels), f'{_LEVELS} layer')} to another level, where either is right, and move the results as "
        f"far ({noise.effect})"
    )


def _moved(value: Value, one: np.ndarray, other: np.ndarray) -> int:
    """The number of elements on another level; where no constants say the steps, they are parts of the range."""
    apart = levels_apart(value, one, other)
    if apart is None and one.shape == other.shape:
        apart = np.rint(np.abs(one.astype(np.float64) - other) * 256 / (np.ptp(other) or 1))
    return 0 if apart is None else int(np.count_nonzero(apart))


@dataclass(frozen=True, eq=False)
class Noise:
    """Runs of irexec with an error of one rounding in each element of each layer, up or down at random.

    Attributes:
        step: the step whose inputs they have.
    """

    step: Step

    @cached_property
    def runs(self) -> list[Tensors]:
        """All tensors of each run."""
        step, values = self.step, list(dict.fromkeys([*self.step.runs.values, *self.step.runs.results]))
        found: list[Tensors] = []
        size = 2 * step.evidence.arithmetic.unit
        for seed in range(_RUNS):
            model, noisy = with_errors(step.runs.side.model, step.runs.facts, lambda value: size, seed)
            with irexec_beside(step.runs.options, model) as own:
                arrays = own.run_all(step.runs.steps[: step.index + 1], [noisy[value] for value in values])[-1]
            found.append(dict(zip(values, arrays, strict=True)))
        return found

    @cached_property
    def _sizes(self) -> list[tuple[float, float]]:
        """Root mean square of the difference of each result that differs, and the largest one of these runs."""
        plain, ours = self.step.plain, self.step.ours
        return [
            (_rms(plain[value], ours[value]), max(_rms(run[value], ours[value]) for run in self.runs))
            for value in self.step.differing
        ]

    @property
    def explains(self) -> bool:
        """Whether the results move about as far as those of the runtime differ."""
        return all(own <= _ENOUGH * made for own, made in self._sizes)

    @property
    def effect(self) -> str:
        """Both distances of the result that differs most."""
        own, made = (f"{size:.1e}" if np.isfinite(size) else "another shape" for size in max(self._sizes))
        return f"{made}, and {own} in the runtime"


def _rms(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape or one.dtype.kind not in "fiub":
        return np.inf
    with np.errstate(invalid="ignore"):
        return float(np.sqrt(np.nanmean((one.astype(np.float64) - other) ** 2))) if one.size else 0.0


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
