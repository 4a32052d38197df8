"""The evidence of a comparison: both sides with their runtimes and inputs, and the tensors that they compute.

Nothing here changes once it is made. Tensors are observed when they are first asked for; a tensor that was observed
before is the same array. Rows and trials of layers are kept by all that they rest on, so that none has to be forgotten.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import BF16, F32, F64, Element
from irexec.errors import IrexecError
from irexec.ir.graph import Node, Value
from irexec.messages import silent
from irexec.tools.compare.inputs import Inputs, facts_of
from irexec.tools.compare.layers import KnownConstants, detection_layers, has_values, random_layers
from irexec.tools.compare.options import CompareOptions, Side, Tolerances, computed_from_bf16, opened_runtime
from irexec.tools.compare.pairs import Pairs
from irexec.tools.engines.runtimes import Arrays, Runtime, runtime_kind
from irexec.tools.observing.alone import Alone, arranged
from irexec.tools.observing.observe import Observed, Tensor, observe
from irexec.tools.observing.sides import AnySide, Facts, ModelSide, RecordedSide

Advance = Callable[[float], None]
"""Called with each finished part of the work, as a fraction of it."""

_BUDGET = 1 << 30
"""Maximum number of bytes of the tensors of one batch, unless less memory is left."""
_UNKNOWN = 1 << 20
"""Assumed number of bytes of a tensor of unknown shape."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Both sides of a comparison.

    Attributes:
        a, b: the sides.
        options: the options of the comparison.
        run_a, run_b: their runtimes; None for recorded tensors.
        inputs: the inputs of all runs.
        tolerances: the tolerances of pairs.
        advance: receives the progress.
        rows, trials, prints: rows, trials of single layers and fingerprints of a side that were made before, by all
            that they rest on.
    """

    a: AnySide
    b: ModelSide
    options: CompareOptions
    run_a: Runtime | None
    run_b: Runtime
    inputs: Inputs
    tolerances: Tolerances
    advance: Advance = silent
    rows: dict[Any, Any] = field(default_factory=dict, repr=False)
    trials: dict[Any, Any] = field(default_factory=dict, repr=False)
    prints: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.inputs.b)

    @property
    def is_one_model(self) -> bool:
        """Whether both sides are the same model."""
        return isinstance(self.a, ModelSide) and self.a.model is self.b.model

    @functools.cached_property
    def facts_a(self) -> Facts:
        """Facts of the values of A with the inputs of the first run; none for recorded tensors."""
        return facts_of(self.a.model, self.inputs.a) if isinstance(self.a, ModelSide) else {}

    @functools.cached_property
    def facts_b(self) -> Facts:
        """Facts of the values of B with the inputs of the first run."""
        return self.facts_a if self.is_one_model else facts_of(self.b.model, self.inputs.b)

    @functools.cached_property
    def detections(self) -> set[Node]:
        """Layers of B that return rows of detections, and the layers behind them."""
        return detection_layers(self.b.model)

    @functools.cached_property
    def random(self) -> dict[Node, Node]:
        """The layers of B with random values, each with the layer that generates them.

        Layers with seeds have other values on the two sides too, if one of these is a runtime of ONNX.
        """
        runtimes = set(map(runtime_kind, (self.options.a_runtime, self.options.b_runtime)))
        seeded = len(runtimes) > 1 and not runtimes.isdisjoint(("onnx", "onnxruntime"))
        return random_layers(self.b.order, seeded=seeded)

    @functools.cached_property
    def _rounded(self) -> set[Value]:
        """The values of B that OpenVINO computes from bf16, or all, if irexec is asked to round to it."""
        is_all = self.options.own_precision == "bf16"
        is_rounded = "openvino" in map(runtime_kind, (self.options.a_runtime, self.options.b_runtime))
        return computed_from_bf16(self.b.model, is_all=is_all) if is_rounded or is_all else set()

    def elements(self, a: Tensor, b: Value) -> tuple[Element | None, Element | None]:
        """The element types of a pair, which decide about its tolerance."""
        of_b = self.facts_b[b].element if b in self.facts_b else None
        of_b = BF16 if b in self._rounded and of_b in (F32, F64) else of_b
        if isinstance(a, str):
            return (self.a.elements.get(a) if isinstance(self.a, RecordedSide) else None), of_b
        return (self.facts_a[a].element if a in self.facts_a else None), of_b

    def tensors(self, side: Side, wanted: Iterable[Tensor]) -> Observed:
        """Tensors of a side, by value or by recorded name; those that are asked for first are observed together."""
        if side == "A" and isinstance(self.a, RecordedSide):
            given = self.inputs.b[0]
            names = [name for name in dict.fromkeys(wanted) if isinstance(name, str)]
            return Observed({name: [self.a.read(name) if name in self.a.names else given[name]] for name in names})
        of_side, runtime, runs = (
            (self.a, self.run_a, self.inputs.a) if side == "A" else (self.b, self.run_b, self.inputs.b)
        )
        assert runtime is not None and isinstance(of_side, ModelSide)
        return self._kept[side].observed(runtime, runs, of_side, wanted)

    @functools.cached_property
    def _kept(self) -> Mapping[Side, _Kept]:
        limit = min(_BUDGET, MemoryLimit(self.options.max_memory).left() // 6)
        return {"A": _Kept(limit), "B": _Kept(limit)}

    @property
    def errors(self) -> list[IrexecError]:
        """The errors of tensors that could not be observed."""
        return [error for side in self._kept.values() for error in side.errors]

    def unobserved(self, of_a: Sequence[Tensor], of_b: Sequence[Value]) -> tuple[Observed, Observed]:
        """Results of A and of B from runs in which nothing else is observed: layers are fused as usual."""
        values = [value for value in of_a if isinstance(value, Value)]
        one = self.tensors("A", of_a) if self.run_a is None else observe(self.run_a, self.inputs.a, values)
        return one, observe(self.run_b, self.inputs.b, of_b)

    def alone(self, sources: Iterable[Value]) -> Alone:
        """The layers of B, each to be run with these tensors given."""
        return Alone(self.b, frozenset(sources), self.facts_b)

    def opened(self, runtime: str) -> Callable[[Model], Runtime]:
        """Opens a model in a runtime with the options of the comparison."""
        beside = next((one for one in (self.run_b, self.run_a) if one is not None and one.name == runtime), None)
        return lambda model: opened_runtime(self.options, runtime, model, beside)

    def sources(self, pairs: Pairs) -> dict[Value, Tensor]:
        """The observable tensor of A for each value of B, or the name of a recorded tensor."""
        if self.run_a is not None:
            return {
                value: one
                for value, one in pairs.by_b.items()
                if value.node.type != "Constant" and (one.node.type == "Constant" or self.run_a.gives(one))
            }
        inputs: dict[Value, Tensor] = {port.node.outputs[0]: port.name for port in self.b.model.inputs}
        return inputs | {pair.b: pair.a for pair in pairs.tensors}

    def given(
        self,
        side: Side,
        values: Sequence[Value],
        pairs: Pairs,
        shapes: Mapping[Value, tuple[int, ...]],
        more: Sequence[Tensor] = (),
    ) -> tuple[Observed, Observed]:
        """The tensors of a side in place of values of B, and further tensors of the side, observed together.

        Args:
            side: A or B.
            values: the values of B.
            pairs: the pairs.
            shapes: shapes of B's tensors; those of A are brought into them where only axes differ.
            more: the further tensors.
        """
        sources: Mapping[Value, Tensor] = self.sources(pairs) if side == "A" else {value: value for value in values}
        wanted = {value: sources[value] for value in values if value in sources}
        seen = self.tensors(side, [*wanted.values(), *more])
        if side == "B":
            return seen, seen
        arrays: dict[Tensor, Sequence[np.ndarray]] = {
            value: [
                arranged(one, shapes.get(value, one.shape), pairs.orders.get(value, ())) for one in seen.arrays[source]
            ]
            for value, source in wanted.items()
            if source in seen.arrays
        }
        failures: dict[Tensor, str] = {
            value: seen.failures[source] for value, source in wanted.items() if source in seen.failures
        }
        return Observed(arrays, failures), seen

    def batches(self, values: Sequence[Value], facts: Facts) -> Iterator[list[Value]]:
        """Values in batches whose tensors of both sides fit into the memory."""
        budget = min(_BUDGET, MemoryLimit(self.options.max_memory).left() // 6) // (2 * self.runs)
        batch: list[Value] = []
        size = 0
        for value in values:
            fact = facts.get(value)
            own = fact.nbytes if fact is not None and fact.is_static and fact.element is not None else _UNKNOWN
            if batch and size + own > budget:
                yield batch
                batch, size = [], 0
            batch.append(value)
            size += own
        if batch:
            yield batch

    @functools.cached_property
    def unknown_constants(self) -> Mapping[Node, tuple[Node, ...]]:
        """Constants without a counterpart in A, by the layers of B that read them; empty for one model or recorded
        tensors."""
        if isinstance(self.a, RecordedSide) or self.is_one_model:
            return {}
        found = KnownConstants(self.a.model).unknown(self.b.model)
        sizes = {one.constant.count for leaves in found.values() for one in leaves if one.constant is not None}
        values = [
            value
            for node in self.a.constant
            for value in node.outputs
            if (fact := value.fact) is not None and fact.is_static and math.prod(fact.static_shape) in sizes
            if fact.element is not None and fact.element.is_float
        ]
        computed = [arrays[0] for arrays in self.tensors("A", values).arrays.values()]
        left = {node: tuple(one for one in leaves if not has_values(one, computed)) for node, leaves in found.items()}
        return {node: leaves for node, leaves in left.items() if leaves}


class _Kept:
    """The tensors of one side that were observed so far: each new set of tensors is another plan of the whole model.

    Args:
        limit: maximum number of bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._arrays: dict[Tensor, Sequence[np.ndarray]] = {}
        self._failures: dict[Tensor, str] = {}
        self.errors: list[IrexecError] = []

    def observed(self, runtime: Runtime, runs: Sequence[Arrays], side: ModelSide, wanted: Iterable[Tensor]) -> Observed:
        """The tensors that are values; names are left out."""
        values = [value for value in dict.fromkeys(wanted) if isinstance(value, Value)]
        fresh = [value for value in values if value not in self._arrays and value not in self._failures]
        fresh.sort(key=lambda value: (side.positions.get(value.node, -1), value.index))
        made = observe(runtime, runs, fresh) if fresh else Observed()
        self._failures |= made.failures
        self.errors += made.errors
        arrays: dict[Tensor, Sequence[np.ndarray]] = {
            **{value: self._arrays[value] for value in values if value in self._arrays},
            **made.arrays,
        }
        for value, own in made.arrays.items():
            size = sum(array.nbytes for array in own)
            if size <= self._left:
                self._arrays[value] = own
                self._left -= size
        return Observed(
            arrays, {value: self._failures[value] for value in values if value in self._failures}, made.errors
        )
