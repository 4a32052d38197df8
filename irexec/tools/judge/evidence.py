"""The evidence about a runtime: each tensor beside the interval that follows from tensors of the runtime itself.

Every answer is a function of its arguments: the tensor, the arrays it is computed from, the runtime and the arithmetic.
Nothing is kept between two questions, so nothing has to be forgotten.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.analysis.f32_arithmetic import HALVES
from irexec.bounds import ARITHMETICS, EDGES, Arithmetic, Interval, Unbounded, graph_bounds, stored_in, unrounded
from irexec.bounds.evaluate import known_inputs
from irexec.bounds.interval import Algebra, floats
from irexec.dtypes.elements import BF16, F16, F32, F64, Element
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import ancestors, readers
from irexec.schema.shape_rules import MOVES
from irexec.tools.compare.layers import layer as compared_layer
from irexec.tools.compare.options import opened_runtime
from irexec.tools.judge.judgement import JudgedLayer, State
from irexec.tools.judge.opponent import Opponent, Tensors
from irexec.tools.observing.alone import Alone
from irexec.tools.observing.observe import Observed
from irexec.tools.observing.sides import ModelSide

ROUGH = 4
"""Further roundings of fused layers, and the difference from observed tensors that they make."""
_NARROW, _FEW_ROUNDINGS, _MANY_ROUNDINGS = 2.0**-12, 4.0, 2.0**12
"""Largest radius of an interval that acquits, as a part of the tensor's spread, where that is between these numbers of
units of roundoff."""
_DECOMPRESSING = MOVES | {"Constant", "Convert", "Subtract", "Multiply", "Add", "Divide"}
"""Types of the layers that make weights from their stored codes."""
AT_EDGES = 1 / 64
"""Share of the elements of a tensor that may be wider, where an edge decides in their region."""
_ONE_OF_TWO = 1 / 2
"""Likewise, of integers that are one of two neighbours."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A tensor of the runtime beside its interval.

    Attributes:
        value: the tensor.
        actual: the array of the runtime.
        bound: the interval that follows from the given tensors, or why there is none.
        nodes: the layers between the given tensors and this one, in topological order.
        arithmetic: the arithmetic of the runtime.
        is_static: whether inference knows the shape, so that no other one is right.
        finer: whether of tensors of 16 bits only this one is rounded to its type.
    """

    value: Value
    actual: np.ndarray
    bound: Interval | Unbounded
    nodes: tuple[Node, ...]
    arithmetic: Arithmetic
    is_static: bool
    finer: bool = False

    @cached_property
    def outside(self) -> np.ndarray:
        """Mask of the elements outside of the interval; all where the shape is another one, none without a bound."""
        if isinstance(self.bound, Unbounded):
            return np.zeros(self.actual.shape, bool)
        if self.bound.exact.shape != self.actual.shape:
            return np.ones(self.actual.shape, bool)
        return self.bound.outside(self.actual)

    @property
    def has_edges(self) -> bool:
        """Whether a layer in front of the tensor jumps: from rounded numbers, not from constants, sizes or integers."""
        own, varying = set(self.nodes), set[Node]()
        for node in self.nodes:
            sources = [one for one in node.inputs if one is not None and one.node.constant is None]
            observed = [one for one in sources if one.node not in own and not _is_integer(one)]
            if node.type != "ShapeOf" and (observed or any(one.node in varying for one in sources)):
                varying.add(node)
        before = varying - {self.value.node}
        return any(node.type in EDGES or _truncates(node) for node in before)

    @property
    def limit(self) -> float:
        """Largest radius of a narrow interval."""
        exact = np.zeros(0) if isinstance(self.bound, Unbounded) else self.bound.exact
        unit, element = self.arithmetic.unit, self.value.element_type
        if self.finer and element in HALVES:
            unit = max(unit, ARITHMETICS[element.name].unit)
        return min(max(_NARROW, _FEW_ROUNDINGS * unit), _MANY_ROUNDINGS * unit) * spread(exact)

    def is_narrow(self, mask: np.ndarray, by_edges: bool = True) -> bool:
        """Whether the interval says something about the elements of a mask: its radius is small beside their spread.

        With ``by_edges`` few elements may be wider, where an edge decides. Of integers that an edge leaves two of, half
        may be: each of the others has one value, so that a fault shows there.
        """
        if isinstance(self.bound, Unbounded) or self.bound.exact.dtype.kind not in "fiub":
            return False
        is_wide = self.bound.radius[mask] > self.limit
        if not (by_edges and self.has_edges):
            return not is_wide.any()
        width = (floats(self.bound.high) - floats(self.bound.low))[mask]
        is_one_of_two = self.bound.exact.dtype.kind in "iu" and bool((width[is_wide] <= 1).all())
        return int(np.count_nonzero(is_wide)) <= (_ONE_OF_TWO if is_one_of_two else AT_EDGES) * self.actual.size

    def judged(self) -> JudgedLayer:
        """The judgement by this interval alone."""
        layer = compared_layer(self.value)
        names = tuple(node.name for node in self.nodes if node is not self.value.node)
        if isinstance(self.bound, Unbounded):
            return JudgedLayer(layer, "no bound", elements=self.actual.size, reason=self.bound.reason, region=names)
        if self.bound.exact.shape != self.actual.shape:
            # A shape that follows from values is not judged.
            text = f"shape {list(self.actual.shape)}, expected {list(self.bound.exact.shape)}"
            state: State = "outside" if self.is_static else "no bound"
            return JudgedLayer(layer, state, self.actual.size, self.actual.size, reason=text, region=names)
        count = int(np.count_nonzero(self.outside))
        made = JudgedLayer(
            layer, "outside" if count else "inside", count, self.actual.size, region=names, codes=self.bound.codes,
            free=int(np.count_nonzero(self.bound.is_anything)),
        )  # fmt: skip
        return with_worst(made, self.bound, self.actual) if count else made


@dataclass(frozen=True, eq=False)
class Evidence:
    """The basis of verdicts about one model in one runtime.

    Attributes:
        opponent: the runtime.
        side: the model.
        facts: of its values.
        arithmetic: the arithmetic of the runtime.
        readings: codes of known differences by layer, if the runtime is OpenVINO.
        stored: the type in which a recording holds all floating-point tensors; None for their own.
        groups: for products whose rows the runtime may quantise, the size of the groups.
        written: the intervals of inputs that layers have written in earlier steps, and that nobody observes.
    """

    opponent: Opponent
    side: ModelSide
    facts: Mapping[Value, Fact]
    arithmetic: Arithmetic
    readings: Mapping[Node, tuple[str, ...]] = field(default_factory=dict)
    stored: Element | None = None
    groups: Mapping[Node, int] = field(default_factory=dict)
    written: Mapping[Value, Interval] = field(default_factory=dict)

    def region(self, value: Value, given: Container[Value]) -> list[Node]:
        """The layers from which a value is computed, up to observed tensors, in topological order."""
        nodes = ancestors([value.node], lambda source: source in given or source.node.constant is not None)
        return [node for node in self.side.order if node in nodes]

    def beside(
        self, value: Value, given: Tensors, actual: np.ndarray, *, rough: bool = False, known: bool = False,
        finer: bool = False,
    ) -> Beside:  # fmt: skip
        """A tensor beside the interval of its layer, which is computed from the given tensors.

        Args:
            value: the tensor.
            given: the tensors that its region reads.
            actual: the array that the runtime gives for it.
            rough: whether the given tensors have the error of a few roundings, since fused layers have others.
            known: whether layers of ``readings`` are read as OpenVINO is known to do.
            finer: whether of tensors of 16 bits only the last one is rounded to its type, as in fused layers.
        """
        bound, nodes = self.bound(value, given, rough=rough, known=known, finer=finer)
        element = self._stored(value, actual)
        if isinstance(bound, Interval) and element is not None:
            bound = stored_in(bound, element)
        fact = self.facts.get(value)
        is_static = fact is not None and fact.is_static and not isinstance(bound, Unbounded) and (
            tuple(fact.static_shape) == bound.exact.shape
        )  # fmt: skip
        made = Beside(value, actual, bound, tuple(nodes), self.arithmetic, is_static, finer)
        if self.groups.keys().isdisjoint(nodes) or not made.outside.any():
            return made
        # A processor without instructions for it quantises nothing.
        plain = replace(self, groups={}).beside(value, given, actual, rough=rough, known=known, finer=finer)
        return made if plain.outside.any() else plain

    def bound(
        self, value: Value, given: Tensors, *, rough: bool = False, known: bool = False, finer: bool = False
    ) -> tuple[Interval | Unbounded, list[Node]]:
        """The interval of a value, or why there is none, and its region; see ``beside``."""
        nodes = self.region(value, given)
        # Inner tensors of the region may be known: other outputs of its layers.
        sources = {
            one: self._held(one, array, rough, finer) if one.node.constant is None else Interval.certain(array)
            for one, array in known_inputs(nodes, given).items()
        }
        computed = [node for node in nodes if node.type not in MOVES and node.constant is None]
        roundings = ROUGH if len(computed) > 1 else 0
        readings, facts = self.readings if known else {}, self.facts
        if finer:
            halves = {
                one for node in nodes for one in (*node.inputs, *node.outputs) if one is not None and self.is_half(one)
            }
            facts = {**facts, **{one: replace(facts[one], element=F32) for one in halves}}
        bound = graph_bounds(nodes, sources, facts, self.arithmetic, roundings, readings, self.groups)[value]
        if finer and self.is_half(value) and isinstance(bound, Interval):
            bound = stored_in(bound, self.facts[value].element)
        return bound, nodes

    def is_half(self, value: Value) -> bool:
        """Whether a value is declared in 16 bits."""
        return value in self.facts and self.facts[value].element in HALVES

    def moved(self, value: Value, given: Tensors, runs: int) -> list[np.ndarray]:
        """Exact results of a value while each tensor that its region reads or computes is off by up to one rounding.

        The errors are uniform at random, equal for equal elements of a tensor, and the same in each process. Runtimes
        with finer inner tensors, and with constants rounded to the arithmetic, have such errors. Empty where a layer
        has no exact result.
        """
        nodes, rng = self.region(value, given), np.random.default_rng(0)
        sources = known_inputs(nodes, given)
        ordered = sorted(sources, key=lambda one: (one.node.id, one.index))
        kinds = {one: np.unique(sources[one], return_inverse=True)[1] for one in ordered}

        def off(array: np.ndarray, kind: np.ndarray | None = None) -> np.ndarray:
            if array.dtype.kind != "f" or not array.size:
                return array
            errors = rng.uniform(-1, 1, array.size if kind is None else int(kind.max()) + 1)
            of = errors if kind is None else errors[kind.reshape(-1)]
            return array.astype(np.float64) * (1 + self.arithmetic.unit * of.reshape(array.shape))

        found: list[np.ndarray] = []
        for _ in range(runs):
            known = {one: off(sources[one], kinds[one]) for one in ordered}
            for node in nodes:
                for made, bound in graph_bounds([node], known, self.facts, self.arithmetic).items():
                    if isinstance(bound, Unbounded):
                        return []
                    known.setdefault(made, bound.exact if made is value else off(bound.exact))
            found.append(known[value])
        return found

    def weights(self, value: Value, given: Container[Value]) -> list[Tensors]:
        """Readings of the weights that the region of a value computes from constants, each another one.

        Runtimes decompress weights in the types that the model states, in f32, or convert them to these types and
        multiply in f32, as OpenVINO does with nf4. Empty without such weights, or where other layers make them,
        such as products, whose factors a runtime may round.
        """
        nodes = self.region(value, given)
        constant = [node for node in nodes if node in self.side.constant]
        if any(node.type not in _DECOMPRESSING or _truncates(node) for node in constant):
            return []
        read = readers(node for node in nodes if node not in constant)
        found: list[Tensors] = []
        for written in (frozenset[str](), frozenset({"Convert"}), frozenset(node.type for node in constant)):
            known = self._decompressed(constant, written)
            one = {source: known[source] for source in read if source in known}
            if one and not any(all(np.array_equal(array, other[v]) for v, array in one.items()) for other in found):
                found.append(one)
        return found

    def _decompressed(self, constant: Sequence[Node], written: Container[str]) -> dict[Value, np.ndarray]:
        """The outputs of constant layers, exact but for those of types that are rounded as the model states."""
        known: dict[Value, np.ndarray] = {}
        for node in constant:
            sources = known_inputs([node], known)
            for made, bound in graph_bounds([node], sources, self.facts, self.arithmetic).items():
                element = self.facts[made].element
                if isinstance(bound, Interval) and element is not None:
                    is_written = node.type in written
                    known[made] = rounded(bound.exact.astype(element.carrier), element) if is_written else bound.exact
        return known

    def earlier(self, values: Sequence[Value], given: Tensors) -> dict[Value, np.ndarray] | None:
        """The tensors without those that the regions of values read; None if these are all inputs of the model."""
        read = readers(node for value in values for node in self.region(value, given))
        dropped = {one for one in read if one in given and one.node.type not in ("Parameter", "ReadValue")}
        if not dropped:
            return None
        return {other: array for other, array in given.items() if other not in dropped}

    def alone(self, values: Sequence[Value], given: Tensors, runtime: str | None = None) -> dict[Value, np.ndarray]:
        """The values of layers that run alone in the runtime with the given tensors; those that it runs."""
        name = runtime or self.opponent.options.runtime
        if not values or (runtime is None and self.opponent.runtime is None):
            return {}
        alone = Alone(self.side, given, self.facts)
        seen = Observed({source: [array] for source, array in given.items()})
        running = self.opponent.options.running
        beside = self.opponent.runtime if runtime is None else None
        chosen = [value for value in values if not alone.refusal(value)]
        found = alone.observed_each(chosen, seen, 1, lambda model: opened_runtime(running, name, model, beside)).arrays
        return {value: found[value][0] for value in values if value in found}

    def _held(self, value: Value, array: np.ndarray, rough: bool, finer: bool) -> Interval:
        """The interval of an observed tensor: integers are exact, and so are inputs that are given."""
        if value in self.written:
            return self.written[value]
        is_before = finer and self.is_half(value) and value.node.type != "Parameter"
        element = self.facts[value].element if is_before else self._stored(value, array)
        # An arithmetic of this type reads what it stores.
        if element is None or element.name == self.arithmetic.name:
            one = Interval.certain(array)
        else:
            one = unrounded(array, element)
        if not rough or value.node.type == "Parameter" or one.exact.dtype.kind != "f":
            return one
        return Algebra(self.arithmetic).rounded(one, ROUGH)

    def _stored(self, value: Value, array: np.ndarray) -> Element | None:
        """The type of fewer bits in which a tensor was stored; None where it has its own."""
        fact = self.facts.get(value)
        if fact is None or fact.element not in (F32, F64):
            return None
        if array.dtype == np.float16:
            return F16
        # Numbers of bf16 are cut as well as rounded.
        of = BF16 if self.arithmetic.name == "bf16" and self.opponent.runtime is None else self.stored
        return of if array.dtype.kind == "f" and value.node.type != "Parameter" else None


def with_worst(one: JudgedLayer, bound: Interval, actual: np.ndarray) -> JudgedLayer:
    """A judgement with the element that is farthest outside of its interval, and with how far it is outside."""
    excess = bound.excess(actual)
    position = np.unravel_index(int(np.argmax(excess)), actual.shape)
    # An element as a number; None for a string.
    low, high, value = (
        None if array.dtype.kind in "OSU" else float(array[position]) for array in (bound.low, bound.high, actual)
    )
    made = replace(one, value=value, low=low, high=high, position=tuple(map(int, position)))
    at = ", ".join(map(str, made.position))
    if bound.admits is not None and low is not None and high is not None and value is not None and low <= value <= high:
        # The ends are those of all right results together, and would not show the fault.
        text = f"{one.outside:,} of {one.elements:,} values, from [{at}] on, are in no right result"
        return replace(made, value=None, low=None, high=None, reason=text)
    if low is None or high is None or value is None:
        strings = f"{str(actual[position])!r} at [{at}], expected {str(bound.exact[position])!r}"
        return replace(made, reason=f"{one.outside:,} of {one.elements:,} strings are wrong; the first is {strings}")
    distance = max(low - value, value - high)
    largest = np.abs(np.asarray(bound.exact, np.float64))
    size = float(largest[np.isfinite(largest)].max(initial=0))
    return replace(
        made, excess=float(excess[position]), relative=distance / size if size and np.isfinite(distance) else np.inf
    )


def spread(array: np.ndarray) -> float:
    """The distance between the 5th and the 95th percentile of a tensor; the whole one, or the size, where it is 0."""
    values = np.asarray(array, np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0
    low, high = np.percentile(values, (5, 95))
    return float(high - low) or float(np.ptp(values)) or float(np.abs(values).max())


def _is_integer(value: Value) -> bool:
    """Whether a value is declared as integers, which no rounding changes."""
    return value.element_type is not None and not value.element_type.is_float


def _truncates(node: Node) -> bool:
    """Whether a layer converts floating-point numbers to integers; True where a type is not known."""
    before, after = (None if fact is None else fact.element for fact in (node.ports[0].fact, node.outputs[0].fact))
    is_from = before is None or before.is_float
    return node.type == "Convert" and is_from and (after is None or not after.is_float)
