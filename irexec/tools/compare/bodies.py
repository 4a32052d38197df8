"""Comparing the tensors inside bodies, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from irexec.analysis.model import Model
from irexec.errors import EngineError, NodeError
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.exposed import Inner, expose
from irexec.tools.compare.inputs import Inputs
from irexec.tools.compare.observe import Observed, observe
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.pairs import Pairs, inner_uncompared
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.rows import Rows
from irexec.tools.compare.sides import AnySide, ModelSide, RecordedSide
from irexec.tools.runtimes import Arrays, Runtime

Facts = Mapping[Value, Fact]


class Context(Protocol):
    """What is compared, and how it is run."""

    a: AnySide
    b: ModelSide
    options: CompareOptions
    pairs: Pairs
    inputs: Inputs

    @property
    def seeded(self) -> bool: ...

    def opened(self, name: str, model: Model) -> Runtime: ...


def add_inner(context: Context, rows: Rows, uncompared: list[Uncompared], a_facts: Facts, b_facts: Facts) -> None:
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


def _observed(context: Context, name: str, side: AnySide, tensors: Sequence[Inner], runs: Sequence[Arrays], facts: Facts) -> Observed:
    """The arrays of tensors inside bodies, with an axis for each body in front."""
    found = Observed()
    if name in ("onnx", "onnxruntime") or isinstance(side, RecordedSide) or not tensors:
        found.failures = {tensor.value: f"{name} gives no tensors inside bodies" for tensor in tensors}
        return found
    # Where iterations give several shapes their concatenation fails, and with it the whole layer.
    for varying in (False, True):
        group = [tensor for tensor in tensors if tensor.may_vary is varying]
        model, values = expose(side.model, group, facts)
        try:
            with context.opened(name, model) as runtime:
                outer = observe(runtime, runs, values.values())
        except (NodeError, EngineError) as error:
            found.failures |= {tensor.value: f"it cannot be observed inside its body: {error}" for tensor in group}
            continue
        for tensor in group:
            value = values.get(tensor.value)
            if value is not None and value in outer.arrays:
                found.arrays[tensor.value] = outer.arrays[value]
            elif value is not None:
                found.failures[tensor.value] = outer.failures[value]
    return found
