"""Comparison of tensors inside bodies, iteration by iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from irexec.analysis.model import Model
from irexec.errors import EngineError, NodeError
from irexec.ir.graph import Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.exposed import Inner, Levels, expose, expose_counts
from irexec.tools.compare.observe import Facts, Observed, observe
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.options import opened_runtime
from irexec.tools.compare.pairs import inner_uncompared
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.rows import Rows
from irexec.tools.compare.sides import AnySide, RecordedSide
from irexec.tools.engines.runtimes import Arrays, Runtime


def add_inner(context: OpenSides, rows: Rows, uncompared: list[Uncompared], a_facts: Facts, b_facts: Facts) -> None:
    """Add the rows of tensors inside bodies."""
    random = random_layers(context.b.order, seeded=context.seeded)
    pairs = [pair for pair in context.pairs.inner if pair.b.levels[0][0] not in random]
    options, inputs = context.options, context.inputs
    of_a = _observed(context, options.a_runtime, context.a, [pair.a for pair in pairs], inputs.a, a_facts)
    good = [pair for pair in pairs if pair.a.value in of_a.arrays]
    of_b = _observed(context, options.b_runtime, context.b, [pair.b for pair in good], inputs.b, b_facts)
    for pair in pairs:
        a, b = of_a.arrays.get(pair.a.value), of_b.arrays.get(pair.b.value)
        if a is None or b is None:
            side, tensor, found = ("A", pair.a, of_a) if a is None else ("B", pair.b, of_b)
            reason = found.failures.get(tensor.value, "it cannot be observed inside its body")
            uncompared.append(inner_uncompared(side, tensor, reason))
        elif not rows.add_inner(pair, a, b):
            uncompared.append(inner_uncompared("B", pair.b, "its body does not run with these inputs"))


def _observed(
    context: OpenSides, name: str, side: AnySide, tensors: Sequence[Inner], runs: Sequence[Arrays], facts: Facts
) -> Observed:
    """Arrays of tensors inside bodies, with an axis for each body in front; see ``_Bodies``."""
    found = Observed()
    if name in ("onnx", "onnxruntime") or isinstance(side, RecordedSide) or not tensors:
        found.failures = {tensor.value: f"{name} gives no tensors inside bodies" for tensor in tensors}
        return found
    bodies = _Bodies(lambda model: opened_runtime(context.options, name, model), side.model, runs, facts, found)
    counted = bodies.count(tensors)
    reached = [tensor for tensor in counted if bodies.is_reached(tensor)]
    for tensor in counted:
        if tensor not in reached:
            found.arrays[tensor.value] = [np.empty((0,) * len(tensor.levels), object)] * len(runs)
    changing = [tensor for tensor in reached if tensor.value not in facts or not facts[tensor.value].is_static]
    shapes = bodies.observe(changing, shapes=True)
    lengths = {
        tensor.value: _largest(bodies.computed(tensor, shapes[tensor.value]))
        for tensor in changing
        if tensor.value in shapes and bodies.needs_vectors(tensor, shapes[tensor.value])
    }
    arrays = bodies.observe([tensor for tensor in reached if tensor.value not in found.failures], lengths=lengths)
    for tensor in reached:
        if tensor.value in arrays:
            of_value = shapes[tensor.value] if tensor.value in lengths else None
            found.arrays[tensor.value] = bodies.of_iterations(tensor, arrays[tensor.value], of_value)
    return found


@dataclass(frozen=True)
class _Bodies:
    """Runs copies of a model that return tensors of their bodies.

    Attributes:
        opened: opens a copy in the runtime.
        model, runs, facts: model, inputs and facts of the side.
        found: receives the failures.
        counts: number of iterations of each inner body in every run, with an axis for each body around it.
    """

    opened: Callable[[Model], Runtime]
    model: Model
    runs: Sequence[Arrays]
    facts: Facts
    found: Observed
    counts: dict[Levels, list[np.ndarray]] = field(default_factory=dict)

    def count(self, tensors: Sequence[Inner]) -> Sequence[Inner]:
        """Observe the counts of all inner bodies, outer bodies before their inner ones.

        Returns the tensors of bodies that can be counted.
        """
        inner = dict.fromkeys(levels for tensor in tensors for levels in tensor.inner_levels)
        failed: dict[Levels, str] = {}
        for depth in sorted({len(levels) for levels in inner}):
            bodies = [levels for levels in inner if len(levels) == depth and self._largest(levels[:-1]) != 0]
            model, values = expose_counts(self.model, bodies, self._sizes)
            found = self._run(model, values.values())
            failed |= {levels: found.failures[value] for levels, value in values.items() if value in found.failures}
            for levels in values.keys() - failed:
                self.counts[levels] = [each[..., 0] for each in found.arrays[values[levels]]]
        self.found.failures |= {
            tensor.value: failed[levels] for tensor in tensors for levels in tensor.inner_levels if levels in failed
        }
        return [tensor for tensor in tensors if tensor.value not in self.found.failures]

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
    ) -> dict[Value, list[np.ndarray]]:
        """Each tensor in every run, with a leading axis per body; ``shapes`` and ``lengths`` as for ``expose``."""
        if not tensors:
            return {}
        model, values = expose(self.model, tensors, self.facts, self._sizes, shapes=shapes, lengths=lengths)
        outer = self._run(model, values.values())
        self.found.failures |= {value: outer.failures[one] for value, one in values.items() if one in outer.failures}
        return {value: outer.arrays[one] for value, one in values.items() if one in outer.arrays}

    def _run(self, model: Model, values: Collection[Value]) -> Observed:
        try:
            with self.opened(model) as runtime:
                return observe(runtime, self.runs, values)
        except (NodeError, EngineError) as error:
            found = Observed()
            found.failures = dict.fromkeys(values, f"it cannot be observed inside its body: {error}")
            return found

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
                    each[index] = array[index] if shapes is None else _cut(array[index], shapes[run][index])
            found.append(each)
        return found


def _largest(shapes: Sequence[tuple[int, ...]]) -> int:
    """The largest number of elements of a shape."""
    return max(map(math.prod, shapes), default=0)


def _cut(vector: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """A tensor of a shape, cut from the beginning of a vector."""
    found: np.ndarray = vector[: shape.prod()].reshape(shape)
    return found
