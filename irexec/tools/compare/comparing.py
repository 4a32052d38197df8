"""A comparison while it is made: both sides run, their tensors paired, paired again and judged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NoReturn

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import BF16, F32, F64, Element
from irexec.errors import InputError, IrexecError, NodeError
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.messages import counted
from irexec.tools.compare.bodies import add_inner
from irexec.tools.compare.comparison import Comparison, Uncompared
from irexec.tools.compare.constants import KnownConstants
from irexec.tools.compare.context import Facts
from irexec.tools.compare.divergence import blame_reordering, describe_first, independent
from irexec.tools.compare.feeding import feed
from irexec.tools.compare.inputs import Inputs, shapes_of_b
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.judge import Judge, judge_rows
from irexec.tools.compare.known import known_reasons
from irexec.tools.compare.notes import notes_on
from irexec.tools.compare.observe import Observed, observe
from irexec.tools.compare.options import CompareOptions, Side
from irexec.tools.compare.pairs import Pairs, TensorPair, pair_models, pair_recorded
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.repairing import Repairing
from irexec.tools.compare.results import missing_results, result_rows
from irexec.tools.compare.rows import Ancestors, Found, Rows, positions
from irexec.tools.compare.sides import AnySide, ModelSide, RecordedSide
from irexec.tools.compare.tolerances import Precision, Tolerances, computed_from_bf16
from irexec.tools.engines.runtimes import Arrays, Runtime, open_runtime
from irexec.tools.images.files import Notify
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.shapes import refused, reshape

Advance = Callable[[float], None]
"""Called with each part of the work that is done, as a fraction of it."""

_PART = 0.7
"""Fraction of the work for the tensors outside of bodies; bodies and results are the rest."""
_BUDGET = 1 << 30
"""Bytes of tensors that both sides give at once, unless there is less memory."""
_UNKNOWN = 1 << 20
"""Bytes that a tensor of unknown shape is taken for."""


class Comparing:
    """A comparison while it is made.

    Args:
        a, b: the sides.
        given: the inputs that are given for each run, and where others come from.
        options: as asked for.
        stack: closes runtimes.
        notify, advance: see ``compare``.

    Attributes:
        rows: the tensors that ``compared`` has found.
        whole: the side of which the other is a part.
    """

    rows: Rows

    def __init__(
        self,
        a: AnySide,
        b: ModelSide,
        given: GivenInputs,
        options: CompareOptions,
        stack: ExitStack,
        notify: Notify,
        advance: Advance,
    ) -> None:
        self.a, self.b, self.options, self._given, self._notify, self._advance = a, b, options, given, notify, advance
        self._errors: list[IrexecError] = []
        self.whole: Side | None = None
        _check_runtimes(a, options)
        self.pairs = _pairs(a, b, options)
        model_a = a.model if isinstance(a, ModelSide) else None
        self._reshape()
        self.run_a = None if model_a is None else stack.enter_context(self.opened(options.a_runtime, model_a))
        self.run_b = stack.enter_context(self.opened(options.b_runtime, b.model))
        self.tolerances = Tolerances(
            options, Precision(model_a), Precision(b.model) if model_a is not None else Precision(None)
        )
        self.inputs = Inputs(a if isinstance(a, ModelSide) else None, b, self.pairs)
        has_state = b.has_state or (isinstance(a, ModelSide) and a.has_state)
        self.runs = options.runs or (2 if has_state and isinstance(a, ModelSide) else 1)
        if isinstance(a, RecordedSide) and self.runs > 1:
            raise InputError("recorded tensors are of one run")

    @property
    def independent(self) -> list[Found]:
        """The tensors that differ by themselves, in the order in which they come to differ."""
        return independent(self.rows, self)

    @property
    def isolates(self) -> bool:
        """Whether each layer is run alone."""
        return self.options.isolate

    @functools.cached_property
    def unknown_constants(self) -> Mapping[Node, tuple[Node, ...]]:
        """For layers of B the constants that A has not; of two models that are paired by structure."""
        if isinstance(self.a, RecordedSide) or self.a.model is self.b.model:
            return {}
        return KnownConstants(self.a.model).unknown(self.b.model)

    def _reshape(self) -> None:
        shapes = self.options.shapes or {}
        if not shapes:
            return
        if isinstance(self.a, ModelSide) and self.a.model is not self.b.model:
            of_b = shapes_of_b(shapes, self.a, self.b, self.pairs)
            reshape(self.a.model, shapes, tolerant=True)
            reshape(self.b.model, of_b, tolerant=True)
        else:
            reshape(self.b.model, shapes, tolerant=True)

    def compared(self) -> Comparison:
        """The comparison; to be asked for once."""
        given = list(self._given.arrays)
        if len(given) > 1:
            if self.options.runs not in (None, len(given)):
                raise InputError(f"inputs are given for {counted(len(given), 'run')}, and runs is {self.options.runs}")
            self.runs = len(given)
        self._refuse_empty()
        self.whole = feed(self, given or [{}], self._given.sources, self._notify)
        a_facts = _facts(self.a.model, self.inputs.a) if isinstance(self.a, ModelSide) else {}
        b_facts = _facts(self.b.model, self.inputs.b)
        rows = self.rows = self._no_rows(a_facts, b_facts)
        uncompared = list(self.pairs.uncompared)
        tensors = self._without_random(uncompared)
        isolated = Isolated(self.b, self.sources(), self.options) if self.options.isolate else None
        tensors = isolated.chosen(tensors, uncompared) if isolated else tensors
        for batch in self.batches(tensors, b_facts):
            self.add(batch, rows, uncompared, isolated, _PART / len(tensors))
        if not rows.found:
            self._raise_nothing(uncompared)
        if not isolated:
            rows.sort()
            judge = self._judge(rows, b_facts)
            if (
                isinstance(self.a, ModelSide)
                and self.a.model is not self.b.model
                and not self.options.strict
                and not rows.agree
            ):
                uncompared = Repairing(self, self.a, rows, (a_facts, b_facts), judge).repaired(uncompared)
            if not rows.found:
                self._raise_nothing(uncompared)
            add_inner(self, rows, uncompared, a_facts, b_facts)
            if judge is not None and not rows.agree:
                judge_rows(rows, judge, self._ancestors(rows))
                blame_reordering(rows, self)
        self._advance((1 - _PART) / 2)
        rows.sort()
        return self._summary(rows, uncompared, is_isolated=isolated is not None)

    def sources(self) -> dict[Value, Value | str]:
        """For the values of B those of A that can be had, of recorded tensors and their inputs the names."""
        if self.run_a is not None:
            return {
                value: one
                for value, one in self.pairs.by_b.items()
                if value.node.type != "Constant" and (one.node.type == "Constant" or self.run_a.gives(one))
            }
        inputs: dict[Value, Value | str] = {port.node.outputs[0]: port.name for port in self.b.model.inputs}
        return inputs | {pair.b: pair.a for pair in self.pairs.tensors}

    def _no_rows(self, a_facts: Mapping[Value, Fact], b_facts: Mapping[Value, Fact]) -> Rows:
        is_rounded = "openvino" in (self.options.a_runtime, self.options.b_runtime)
        rounded = computed_from_bf16(self.b.model) if is_rounded else set()

        def b_element(value: Value) -> Element | None:
            element = b_facts[value].element if value in b_facts else None
            return BF16 if value in rounded and element in (F32, F64) else element

        return Rows(
            self.tolerances,
            lambda value: a_facts[value].element if value in a_facts else None,
            b_element,
            positions(self.b.order),
        )

    def _summary(self, rows: Rows, uncompared: Sequence[Uncompared], *, is_isolated: bool) -> Comparison:
        results = () if is_isolated else result_rows(self, rows)
        first, layers = describe_first(rows, self)
        return Comparison(
            a=self._label(self.a, self.run_a),
            b=self._label(self.b, self.run_b),
            tolerance=self.tolerances.text,
            rows=tuple(found.row for found in rows.found),
            first=first,
            independent=layers,
            results=results,
            missing_results=() if is_isolated else missing_results(self, rows),
            uncompared=tuple(uncompared),
            notes=tuple(notes_on(self.a, self.b, self.options, self.tolerances, rows, results, self.runs)),
            inputs={name: array.shape for name, array in self.inputs.b[0].items()},
            runs=self.runs,
            isolated=is_isolated,
            whole=self.whole,
            known=known_reasons(self, first, layers, results),
        )

    def opened(self, name: str, model: Model) -> Runtime:
        """A model in a runtime, with what the user gives it."""
        options = self.options
        return open_runtime(
            name,
            model,
            threads=options.threads,
            precision=options.own_precision,
            max_memory=options.max_memory,
            timeout=options.timeout,
        )

    @property
    def seeded(self) -> bool:
        """Whether layers with seeds give other values on the two sides: runtimes of ONNX have generators of their
        own."""
        runtimes = {self.options.a_runtime, self.options.b_runtime}
        return len(runtimes) > 1 and not runtimes.isdisjoint(("onnx", "onnxruntime"))

    def _refuse_empty(self) -> None:
        """Raise InputError for a B of inputs and results alone, beside an A of layers: its results are no tensors of
        A."""
        if _is_empty(self.b.model) and not (isinstance(self.a, ModelSide) and _is_empty(self.a.model)):
            raise InputError(f"{self.b.label} has no layers but inputs and results: there is nothing to compare")

    def _raise_nothing(self, uncompared: Sequence[Uncompared]) -> NoReturn:
        """Raise why there is nothing to compare."""
        error = next(iter(self._errors), None)
        if isinstance(error, NodeError) and self.options.shapes:
            raise refused(self.options.shapes, error)
        if error is not None:
            raise error
        reasons = "; ".join(dict.fromkeys(one.reason for one in uncompared)) or "they compute none"
        raise InputError(f"{self.a.label} and {self.b.label} have no tensor in common that can be compared ({reasons})")

    def _label(self, side: AnySide, runtime: Runtime | None) -> str:
        if runtime is None:
            return side.label
        return f"{side.label} ({' '.join(filter(None, (runtime.name, runtime.version.split('-')[0])))})"

    def _without_random(self, uncompared: list[Uncompared]) -> list[TensorPair]:
        found = random_layers(self.b.order, seeded=self.seeded)
        tensors = []
        for pair in self.pairs.tensors:
            source = found.get(pair.b.node)
            if source is None:
                tensors.append(pair)
            else:
                reason = (
                    "its values are random"
                    if source is pair.b.node
                    else f"it depends on {source.name!r}, whose values are random"
                )
                uncompared.append(Uncompared("B", pair.b.name, pair.b.node.type, reason))
        return tensors

    def batches(self, tensors: Sequence[TensorPair], facts: Facts) -> Iterator[list[TensorPair]]:
        """The tensors in batches that fit into the memory."""
        budget = min(_BUDGET, MemoryLimit(self.options.max_memory).left() // 6) // (2 * self.runs)
        batch: list[TensorPair] = []
        size = 0
        for pair in tensors:
            fact = facts.get(pair.b)
            own = fact.nbytes if fact is not None and fact.is_static and fact.element is not None else _UNKNOWN
            if batch and size + own > budget:
                yield batch
                batch, size = [], 0
            batch.append(pair)
            size += own
        if batch:
            yield batch

    def add(
        self,
        batch: Sequence[TensorPair],
        rows: Rows,
        uncompared: list[Uncompared],
        isolated: Isolated | None = None,
        part: float = 0.0,
    ) -> None:
        """Compare some tensors; each is ``part`` of the work."""
        of_a = self.observed_a([*(pair.a for pair in batch), *(isolated.needed(batch) if isolated else [])])
        self._advance(part * len(batch) / 2)
        if isolated:
            of_b = isolated.observed(batch, of_a, self.options.b_runtime, self.runs)
        else:
            of_b = observe(self.run_b, self.inputs.b, [pair.b for pair in batch])
        self._advance(part * len(batch) / 2)
        self._errors += [*of_a.errors, *of_b.errors]
        for pair in batch:
            if pair.a in of_a.failures:
                uncompared.append(Uncompared("A", pair.b.name, pair.b.node.type, of_a.failures[pair.a]))
            elif pair.b in of_b.failures:
                uncompared.append(Uncompared("B", pair.b.name, pair.b.node.type, of_b.failures[pair.b]))
            else:
                rows.add(pair, of_a.arrays[pair.a], of_b.arrays[pair.b])

    def _judge(self, rows: Rows, facts: Facts) -> Judge | None:
        """The judge of layers; None where tensors need not be near."""
        is_one = (
            isinstance(self.a, ModelSide)
            and self.a.model is self.b.model
            and self.options.a_runtime == self.options.b_runtime
        )
        return None if is_one or self.tolerances.metric != "max" else Judge(self, rows, facts)

    def _ancestors(self, rows: Rows) -> Ancestors:
        return Ancestors([one.value for one in rows.found], self.b.model)

    def observed_a(self, sources: Sequence[Value | str]) -> Observed:
        """Tensors of A: its values, or the names of recorded ones."""
        if isinstance(self.a, RecordedSide):
            found = Observed()
            found.arrays = {name: [self._recorded(self.a, name)] for name in sources if isinstance(name, str)}
            return found
        if self.run_a is None:
            raise AssertionError("a model has a runtime")
        position = {node: i for i, node in enumerate(self.a.order)}
        values = {value for value in sources if isinstance(value, Value)}
        computed = {value for value in values if value.node.constant is None}
        found = observe(
            self.run_a, self.inputs.a, sorted(computed, key=lambda value: (position.get(value.node, -1), value.index))
        )
        for value in values - computed:
            if value.node.constant is not None:
                found.arrays[value] = [constant_value(value.node.constant)] * self.runs
        return found

    def _recorded(self, a: RecordedSide, name: str) -> np.ndarray:
        return a.read(name) if name in a.names else self.inputs.b[0][name]


def _check_runtimes(a: AnySide, options: CompareOptions) -> None:
    if isinstance(a, RecordedSide):
        if options.a_runtime != "irexec":
            raise InputError(f"{a.label} holds recorded tensors, which nothing runs: --a-runtime is for a model")
        if options.inputs_of is not None or options.isolate:
            raise InputError(f"{a.label} holds recorded tensors: --from-inputs-of and --isolate need two models")
    if options.isolate and options.b_runtime in ("onnx", "onnxruntime"):
        raise InputError(
            f"--isolate runs each layer of B as a model of its own, and {options.b_runtime} runs whole .onnx files"
        )


def _pairs(a: AnySide, b: ModelSide, options: CompareOptions) -> Pairs:
    return pair_recorded(a, b, options.maps) if isinstance(a, RecordedSide) else pair_models(a, b, options.maps)


def _is_empty(model: Model) -> bool:
    return all(node.type in ("Parameter", "Result") for node in model.nodes)


def _facts(model: Model, runs: Sequence[Arrays]) -> dict[Value, Fact]:
    """Facts of every value with the inputs of the first run."""
    given = {}
    for port in model.inputs:
        value = port.node.outputs[0]
        if runs and port.name in runs[0] and port.element is not None:
            given[port.node] = Fact(port.element, runs[0][port.name].shape)
            if value.fact is not None and value.fact.element is not None:
                given[port.node] = Fact(value.fact.element, runs[0][port.name].shape)
    return infer_shapes(model, given, tolerant=True).facts
