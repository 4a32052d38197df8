"""Comparison of tensors inside bodies, iteration by iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from irexec.analysis.model import Model
from irexec.errors import EngineError, NodeError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement
from irexec.tools.compare.comparison import TensorRow
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import layer
from irexec.tools.compare.options import Side
from irexec.tools.compare.pairs import GUESSES, InnerPair, TensorPair, differ_in_ones, inner_uncompared
from irexec.tools.compare.rows import Found, Rows, agreement, type_name, worst
from irexec.tools.engines.runtimes import Arrays, Runtime
from irexec.tools.observing.exposed import Inner, Levels, expose, expose_counts
from irexec.tools.observing.observe import Observed, Tensor, observe
from irexec.tools.observing.sides import Facts, ModelSide


def with_bodies(evidence: Evidence, rows: Rows) -> Rows:
    """The rows with those of tensors inside bodies."""
    pairs = [] if evidence.options.isolate else rows.pairs.inner
    pairs = [pair for pair in pairs if pair.b.levels[0][0] not in evidence.random]
    of_a = _observed(evidence, "A", [pair.a for pair in pairs])
    good = [pair.b for pair in pairs if pair.a.value in of_a.arrays]
    of_b = _observed(evidence, "B", good)
    found, uncompared = list(rows.found), []
    for pair in pairs:
        sides: tuple[tuple[Side, Inner, Observed], ...] = (("A", pair.a, of_a), ("B", pair.b, of_b))
        missing = next((one for one in sides if one[1].value not in one[2].arrays), None)
        if missing is not None:
            side, tensor, seen = missing
            reason = seen.failures.get(tensor.value, "it cannot be observed inside its body")
            uncompared.append(inner_uncompared(side, tensor, reason))
            continue
        row = _row(evidence, pair, of_a.arrays[pair.a.value], of_b.arrays[pair.b.value])
        if row is None:
            uncompared.append(inner_uncompared("B", pair.b, "its body does not run with these inputs"))
        else:
            found.append(row)
    return rows.with_found(found, uncompared)


def _row(evidence: Evidence, pair: InnerPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> Found | None:
    """The row of a tensor inside bodies; None if no iteration computed it.

    The arrays have one axis for each body in front. Their elements are arrays if shapes or numbers of iterations
    change, None without an iteration.
    """
    depth, outer = len(pair.b.levels), TensorPair(pair.a.value, pair.b.value, pair.how)
    found: list[tuple[int, tuple[int, ...], Agreement, np.ndarray]] = []
    for run, (one, other) in enumerate(zip(a, b, strict=True)):
        for index in np.ndindex(*map(max, one.shape[:depth], other.shape[:depth])):
            of_a, of_b = _at(one, index), _at(other, index)
            if of_a is not None and of_b is not None:
                if pair.how in GUESSES and differ_in_ones(np.shape(of_a), np.shape(of_b)):
                    # Exporters add and remove such axes, as those of a condition.
                    of_b = np.reshape(of_b, np.shape(of_a))
                found.append((run, index, agreement(evidence, outer, of_a, of_b), of_b))
            elif of_a is not None or of_b is not None:
                text = f"B computes it {_times(other, depth)}, A {_times(one, depth)}"
                example = np.asarray(of_a if of_b is None else of_b)
                found.append((run, index, Agreement(pair.b.value.name, False, None, text), example))
            if found and not found[-1][2].agrees:
                break
        if found and not found[-1][2].agrees:
            break
    if not found:
        return None
    chosen, agreed = worst([one[2] for one in found])
    run, index, _, array = found[chosen]
    loops = tuple(i for i, (node, _) in zip(index, pair.b.levels, strict=True) if len(node.bodies) == 1)
    a_layer, b_layer = layer(pair.a.value, pair.a.path), layer(pair.b.value, pair.b.path)
    row = TensorRow(a_layer, b_layer, pair.how, type_name(array), array.shape, agreed, run + 1, loops)
    nodes = (*(node for node, _ in pair.b.levels), pair.b.value.node)
    return Found(row, pair.b.value, tuple(evidence.b.positions[node] for node in nodes), pair.b.path)


def _at(array: np.ndarray, index: tuple[int, ...]) -> np.ndarray | None:
    """The tensor of an iteration; None if the iteration does not exist."""
    if any(i >= size for i, size in zip(index, array.shape, strict=False)):
        return None
    found: np.ndarray | None = array[index]
    return found


def _times(array: np.ndarray, depth: int) -> str:
    """The number of iterations that compute a tensor, whose array has ``depth`` axes for the bodies."""
    return counted(sum(_at(array, index) is not None for index in np.ndindex(array.shape[:depth])), "time")


def _observed(evidence: Evidence, side: Side, tensors: Sequence[Inner]) -> Observed:
    """Arrays of tensors inside bodies, with an axis for each body in front; see ``_Bodies``."""
    options = evidence.options
    name, of_side = (options.a_runtime, evidence.a) if side == "A" else (options.b_runtime, evidence.b)
    if name in ("onnx", "onnxruntime") or not isinstance(of_side, ModelSide) or not tensors:
        return Observed(failures={tensor.value: f"{name} gives no tensors inside bodies" for tensor in tensors})
    runs, facts = (evidence.inputs.a, evidence.facts_a) if side == "A" else (evidence.inputs.b, evidence.facts_b)
    bodies, uncounted = _Bodies(evidence.opened(name), of_side.model, runs, facts).counted(tensors)
    tensors = [tensor for tensor in tensors if tensor.value not in uncounted]
    reached = [tensor for tensor in tensors if bodies.is_reached(tensor)]
    arrays: dict[Tensor, Sequence[np.ndarray]] = {
        tensor.value: [np.empty((0,) * len(tensor.levels), object)] * len(runs)
        for tensor in tensors
        if tensor not in reached
    }
    changing = [tensor for tensor in reached if tensor.value not in facts or not facts[tensor.value].is_static]
    shapes = bodies.observe(changing, shapes=True)
    lengths = {
        tensor.value: max(map(math.prod, bodies.computed(tensor, shapes.arrays[tensor.value])), default=0)
        for tensor in changing
        if tensor.value in shapes.arrays and bodies.needs_vectors(tensor, shapes.arrays[tensor.value])
    }
    seen = bodies.observe([tensor for tensor in reached if tensor.value not in shapes.failures], lengths=lengths)
    for tensor in reached:
        if tensor.value in seen.arrays:
            of_value = shapes.arrays[tensor.value] if tensor.value in lengths else None
            arrays[tensor.value] = bodies.of_iterations(tensor, seen.arrays[tensor.value], of_value)
    return Observed(arrays, {**uncounted, **shapes.failures, **seen.failures})


@dataclass(frozen=True)
class _Bodies:
    """Runs copies of a model that return tensors of their bodies.

    Attributes:
        opened: opens a copy in the runtime.
        model, runs, facts: model, inputs and facts of the side.
        counts: number of iterations of each inner body in every run, with an axis for each body around it.
    """

    opened: Callable[[Model], Runtime]
    model: Model
    runs: Sequence[Arrays]
    facts: Facts
    counts: Mapping[Levels, list[np.ndarray]] = field(default_factory=dict)

    def counted(self, tensors: Sequence[Inner]) -> tuple[_Bodies, dict[Tensor, str]]:
        """The bodies with the counts of all inner ones, and reasons for the tensors of those that cannot be counted.

        Outer bodies are counted before their inner ones.
        """
        inner = dict.fromkeys(levels for tensor in tensors for levels in tensor.inner_levels)
        made, failed = self, dict[Levels, str]()
        for depth in sorted({len(levels) for levels in inner}):
            bodies = [levels for levels in inner if len(levels) == depth and made._largest(levels[:-1]) != 0]
            model, values = expose_counts(self.model, bodies, made._sizes)
            found = self._run(model, values.values())
            failed |= {levels: found.failures[value] for levels, value in values.items() if value in found.failures}
            new = {
                levels: [each[..., 0] for each in found.arrays[values[levels]]]
                for levels in values
                if levels not in failed
            }
            made = replace(made, counts={**made.counts, **new})
        reasons: dict[Tensor, str] = {
            one.value: failed[levels] for one in tensors for levels in one.inner_levels if levels in failed
        }
        return made, reasons

    def _largest(self, levels: Levels) -> int:
        """The maximum number of iterations of a body, 1 for the outermost one; 0 for a body that is never reached."""
        if len(levels) < 2:
            return 1
        return max(int(each.max(initial=0)) for each in self.counts[levels]) if levels in self.counts else 0

    @property
    def _sizes(self) -> dict[Levels, int]:
        """The size of the axis of each inner body whose count changes."""
        return {
            levels: self._largest(levels)
            for levels, runs in self.counts.items()
            if any(int(each.min(initial=self._largest(levels))) != self._largest(levels) for each in runs)
        }

    def is_reached(self, tensor: Inner) -> bool:
        """Whether every body around a tensor has an iteration in some run."""
        return all(self._largest(levels) for levels in tensor.inner_levels)

    def is_ragged(self, tensor: Inner) -> bool:
        """Whether the number of iterations of a body around a tensor changes with an outer iteration."""
        return any(levels in self._sizes for levels in tensor.inner_levels)

    def observe(
        self, tensors: Sequence[Inner], *, shapes: bool = False, lengths: Mapping[Value, int] | None = None
    ) -> Observed:
        """Each tensor in every run, with a leading axis per body; ``shapes`` and ``lengths`` as for ``expose``."""
        if not tensors:
            return Observed()
        model, values = expose(self.model, tensors, self.facts, self._sizes, shapes=shapes, lengths=lengths)
        outer = self._run(model, values.values())
        return Observed(
            {value: outer.arrays[one] for value, one in values.items() if one in outer.arrays},
            {value: outer.failures[one] for value, one in values.items() if one in outer.failures},
        )

    def _run(self, model: Model, values: Collection[Value]) -> Observed:
        try:
            with self.opened(model) as runtime:
                return observe(runtime, self.runs, values)
        except (NodeError, EngineError) as error:
            return Observed(failures=dict.fromkeys(values, f"it cannot be observed inside its body: {error}"))

    def is_computed(self, tensor: Inner, run: int, index: tuple[int, ...]) -> bool:
        """Whether an iteration of the bodies takes place, and does not only fill up an axis."""
        return all(
            index[len(levels) - 1] < self.counts[levels][run][index[: len(levels) - 1]]
            for levels in tensor.inner_levels
        )

    def computed(self, tensor: Inner, shapes: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
        """The shapes of a tensor in all iterations of all runs."""
        return [
            tuple(int(size) for size in each[index])
            for run, each in enumerate(shapes)
            for index in np.ndindex(each.shape[:-1])
            if self.is_computed(tensor, run, index)
        ]

    def needs_vectors(self, tensor: Inner, shapes: Sequence[np.ndarray]) -> bool:
        """Whether iterations of a tensor can be concatenated only as vectors of one length."""
        return self.is_ragged(tensor) or any(
            len({tuple(one) for one in each.reshape(-1, each.shape[-1]).tolist()}) > 1 for each in shapes
        )

    def of_iterations(
        self, tensor: Inner, arrays: Sequence[np.ndarray], shapes: Sequence[np.ndarray] | None
    ) -> list[np.ndarray]:
        """The tensor of each iteration of each run, cut from vectors if ``shapes`` are given.

        They are elements of arrays of objects, None for no iteration, unless one array represents all iterations.
        """
        if shapes is None and not self.is_ragged(tensor):
            return list(arrays)
        found = []
        for run, array in enumerate(arrays):
            each = np.empty(array.shape[: len(tensor.levels)], object)
            for index in np.ndindex(each.shape):
                if self.is_computed(tensor, run, index):
                    shape = None if shapes is None else shapes[run][index]
                    each[index] = array[index] if shape is None else array[index][: shape.prod()].reshape(shape)
            found.append(each)
        return found
