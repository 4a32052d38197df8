"""Comparison of tensors inside bodies, iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.errors import EngineError, NodeError
from irexec.ir.graph import Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.exposed import Inner, expose
from irexec.tools.compare.observe import Facts, Observed, observe
from irexec.tools.compare.open_sides import OpenSides
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
    bodies = _Bodies(lambda model: context.opened(name, model), side.model, runs, facts, found)
    # An inner loop with a changing number of iterations fails, and so does the whole layer.
    for is_in_inner_loop in (False, True):
        group = [tensor for tensor in tensors if tensor.is_in_inner_loop is is_in_inner_loop]
        changing = [tensor for tensor in group if tensor.value not in facts or not facts[tensor.value].is_static]
        shapes = bodies.observe(changing, shapes=True)
        lengths = {value: _largest(arrays) for value, arrays in shapes.items() if _differ(arrays)}
        arrays = bodies.observe([tensor for tensor in group if tensor.value not in found.failures], lengths=lengths)
        found.arrays |= {
            value: _cut(given, shapes[value]) if value in lengths else given for value, given in arrays.items()
        }
    return found


@dataclass(frozen=True)
class _Bodies:
    """Runs copies of a model that return tensors of their bodies.

    Attributes:
        opened: opens a copy in the runtime.
        model, runs, facts: model, inputs and facts of the side.
        found: receives the failures.
    """

    opened: Callable[[Model], Runtime]
    model: Model
    runs: Sequence[Arrays]
    facts: Facts
    found: Observed

    def observe(
        self, tensors: Sequence[Inner], *, shapes: bool = False, lengths: Mapping[Value, int] | None = None
    ) -> dict[Value, list[np.ndarray]]:
        """Each tensor in every run, with a leading axis per body; ``shapes`` and ``lengths`` as for ``expose``."""
        if not tensors:
            return {}
        model, values = expose(self.model, tensors, self.facts, shapes=shapes, lengths=lengths)
        try:
            with self.opened(model) as runtime:
                outer = observe(runtime, self.runs, values.values())
        except (NodeError, EngineError) as error:
            self.found.failures |= {
                tensor.value: f"it cannot be observed inside its body: {error}" for tensor in tensors
            }
            return {}
        self.found.failures |= {value: outer.failures[one] for value, one in values.items() if one in outer.failures}
        return {value: outer.arrays[one] for value, one in values.items() if one in outer.arrays}


def _differ(shapes: Sequence[np.ndarray]) -> bool:
    """Whether the shapes of iterations differ; a shape is along the last axis."""
    return any(len(np.unique(each.reshape(-1, each.shape[-1]), axis=0)) > 1 for each in shapes)


def _largest(shapes: Sequence[np.ndarray]) -> int:
    return max(int(each.prod(axis=-1).max(initial=0)) for each in shapes)


def _cut(vectors: Sequence[np.ndarray], shapes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The tensors of the iterations of each run, cut from the beginnings of vectors, as an array of objects."""
    found = []
    for run, shape in zip(vectors, shapes, strict=True):
        arrays = np.empty(run.shape[:-1], object)
        for index in np.ndindex(arrays.shape):
            arrays[index] = run[index][: shape[index].prod()].reshape(shape[index])
        found.append(arrays)
    return found
