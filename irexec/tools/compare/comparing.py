"""The steps of a comparison: both sides run, and their tensors are paired, paired again and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NoReturn

from irexec.analysis.model import Model
from irexec.analysis.open_sizes import what_hides
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import BF16, F16, F32, F64, Element
from irexec.errors import InputError, NodeError
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.tools.compare.bodies import add_inner
from irexec.tools.compare.comparison import Comparison, Uncompared
from irexec.tools.compare.detections import detection_layers
from irexec.tools.compare.divergence import blame_reordering, describe_first, independent
from irexec.tools.compare.feeding import feed
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.judge import Judge, judge_rows
from irexec.tools.compare.known import known_reasons
from irexec.tools.compare.layouts import arrange_recorded
from irexec.tools.compare.notes import notes_on
from irexec.tools.compare.observe import Facts
from irexec.tools.compare.open_sides import Advance, OpenSides
from irexec.tools.compare.options import CompareOptions, Side
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.random_layers import random_layers
from irexec.tools.compare.repairing import Repairing
from irexec.tools.compare.results import missing_results, result_rows
from irexec.tools.compare.rows import Ancestors, Found, Rows, positions
from irexec.tools.compare.sides import AnySide, ModelSide, RecordedSide
from irexec.tools.compare.tolerances import computed_from_bf16
from irexec.tools.engines.runtimes import Arrays, Runtime, runtime_kind
from irexec.tools.images.files import Notify
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.shapes import refused

_PART = 0.7
"""Fraction of the work for the tensors outside of bodies; bodies and results are the rest."""


class Comparing(OpenSides):
    """A comparison while it is made.

    Args:
        a, b: the sides.
        given: the given inputs of each run, and the sources of others.
        options: the options.
        stack: closes the runtimes.
        notify, advance: see ``compare``.

    Attributes:
        rows: the rows of ``compared``.
        whole: the side that has the other one as a part.
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
        super().__init__(a, b, options, stack, advance)
        self._given, self._notify = given, notify
        self.whole: Side | None = None
        self._layouts: list[str] = []

    @property
    def independent(self) -> list[Found]:
        """Tensors that differ by themselves, in the order of their computation."""
        return independent(self.rows, self)

    def compared(self) -> Comparison:
        """Run both sides and compare them; called once."""
        given = list(self._given.arrays)
        if len(given) > 1:
            if self.options.runs not in (None, len(given)):
                raise InputError(f"inputs are given for {counted(len(given), 'run')}, and runs is {self.options.runs}")
            self.runs = len(given)
        self._refuse_empty()
        self.whole = feed(self, given or [{}], self._given.sources, self._notify)
        a_facts = _facts(self.a.model, self.inputs.a) if isinstance(self.a, ModelSide) else {}
        b_facts = _facts(self.b.model, self.inputs.b)
        if isinstance(self.a, RecordedSide):
            self._layouts = arrange_recorded(self.a, self.pairs.tensors, b_facts)
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
        self.advance((1 - _PART) / 2)
        rows.sort()
        return self._summary(rows, uncompared, is_isolated=isolated is not None)

    def _no_rows(self, a_facts: Mapping[Value, Fact], b_facts: Mapping[Value, Fact]) -> Rows:
        is_rounded = "openvino" in map(runtime_kind, (self.options.a_runtime, self.options.b_runtime))
        rounded = computed_from_bf16(self.b.model) if is_rounded else set()

        def b_element(value: Value) -> Element | None:
            element = b_facts[value].element if value in b_facts else None
            return BF16 if value in rounded and element in (F32, F64) else element

        def a_element(one: Value | str) -> Element | None:
            if isinstance(one, str):
                return self.a.elements.get(one) if isinstance(self.a, RecordedSide) else None
            return a_facts[one].element if one in a_facts else None

        return Rows(self.tolerances, a_element, b_element, positions(self.b.order), detection_layers(self.b.model))

    def _summary(self, rows: Rows, uncompared: Sequence[Uncompared], *, is_isolated: bool) -> Comparison:
        results = () if is_isolated else result_rows(self, rows)
        first, layers = describe_first(rows, self)
        shapes = {name: array.shape for name, array in self.inputs.b[0].items()}
        return Comparison(
            a=self._label(self.a, self.run_a),
            b=self._label(self.b, self.run_b),
            tolerance=str(self.tolerances.of(F16)) if self._are_halves else self.tolerances.text,
            rows=tuple(found.row for found in rows.found),
            first=first,
            independent=layers,
            results=results,
            missing_results=() if is_isolated else missing_results(self, rows),
            uncompared=tuple(uncompared),
            notes=(
                *self._layouts,
                *notes_on(self.a, self.b, self.options, self.tolerances, rows, results, self.runs),
            ),
            inputs=shapes,
            runs=self.runs,
            isolated=is_isolated,
            whole=self.whole,
            known=known_reasons(self, first, layers, results),
            hidden=what_hides(self.b.model, shapes, _facts(self.b.model, self.inputs.b)),
        )

    @property
    def _are_halves(self) -> bool:
        return isinstance(self.a, RecordedSide) and self.a.are_halves

    def _refuse_empty(self) -> None:
        """Raise InputError for a B of inputs and results alone beside an A with layers."""
        if _is_empty(self.b.model) and not (isinstance(self.a, ModelSide) and _is_empty(self.a.model)):
            raise InputError(f"{self.b.label} has no layers but inputs and results: there is nothing to compare")

    def _raise_nothing(self, uncompared: Sequence[Uncompared]) -> NoReturn:
        """Raise the reason for a comparison without rows."""
        error = next(iter(self.errors), None)
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

    def _judge(self, rows: Rows, facts: Facts) -> Judge | None:
        """The judge of layers; None for one model in one runtime, and for metrics of whole tensors."""
        is_one = (
            isinstance(self.a, ModelSide)
            and self.a.model is self.b.model
            and self.options.a_runtime == self.options.b_runtime
        )
        return None if is_one or self.tolerances.metric != "max" else Judge(self, rows, facts)

    def _ancestors(self, rows: Rows) -> Ancestors:
        return Ancestors([one.value for one in rows.found], self.b.model)


def _is_empty(model: Model) -> bool:
    return all(node.type in ("Parameter", "Result") for node in model.nodes)


def _facts(model: Model, runs: Sequence[Arrays]) -> dict[Value, Fact]:
    """Facts of every value for the inputs of the first run."""
    given = {}
    for port in model.inputs:
        value = port.node.outputs[0]
        if runs and port.name in runs[0] and port.element is not None:
            given[port.node] = Fact(port.element, runs[0][port.name].shape)
            if value.fact is not None and value.fact.element is not None:
                given[port.node] = Fact(value.fact.element, runs[0][port.name].shape)
    return infer_shapes(model, given, tolerant=True).facts
