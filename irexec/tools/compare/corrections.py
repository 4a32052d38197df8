"""Corrections: single changes of one layer with which a tensor of B that differs becomes A's.

Several layers may lie between the last tensors that agree and the first that differs, for example since A has other
layers there. Each of them is changed on trial, and the part of B is computed from A's tensors. A change that gives
A's tensor tells the layer at fault from the others: its inputs exchanged, another attribute, a constant of A, or a
tensor of A where B lacks a layer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from irexec.analysis.cost import LayerCosts
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.graph import Node, Value
from irexec.tools.compare.comparison import Divergence, Suspect
from irexec.tools.compare.edits import Edit, Theirs, edits, edits_of_sizes
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import MOVES, with_same_elements
from irexec.tools.compare.pairs import VALUE, TensorPair, differ_in_ones
from irexec.tools.compare.rows import Found, Rows, agreement, is_varied, tolerance_of
from irexec.tools.observing.alone import Alone, Apart, arranged
from irexec.tools.observing.observe import Observed, Tensor
from irexec.tools.observing.sides import ModelSide

_LAYERS = 80
"""Maximum number of layers of a part of B, and of tensors of a part of A."""
_TRIALS = 800
"""Maximum number of runs of a part."""
_WORK = 500_000_000_000
"""Maximum number of multiply-accumulates of all runs of a part."""
_LATER = 6
"""Number of tensors after the first divergence among which one that shows an order of axes is searched."""
_GIVEN = ("Parameter", "Constant")
_UNCHANGED, _DIFFERENT = 1e-6, 1e-4
"""Maximum change of an element that is not reached, and minimum difference of one that differs, in root mean squares
of the tensor."""


def with_corrections(
    described: Divergence, first: Found, evidence: Evidence, rows: Rows, suspect: Callable[[Node], Suspect]
) -> Divergence:
    """A divergence with the corrections of its layers, and with layers that only the corrections have found.

    ``first`` is its row, and ``suspect`` describes a layer of B.
    """
    names = {f"{path}{node.name}": node for node, path in evidence.b.paths.items()}
    nodes = [names[one.layer.name] for one in described.between]
    part = _part(first, nodes, evidence, rows)
    if part is None or part.count == 1:
        return described
    found, own = corrections(part), first.value.node
    reached = reaches(part) if not found and len(described.likely) > 1 else {}
    between = dict(zip(nodes, described.between, strict=True))
    between |= {node: suspect(node) for node in (*found, *reached) if node not in between and node is not own}
    suspects = {own: described.suspect, **between}
    told = {
        node: replace(one, correction=found.get(node, ""), reach=reached.get(node)) for node, one in suspects.items()
    }
    return replace(described, suspect=told.pop(own), between=tuple(told.values()))


def _part(first: Found, nodes: Sequence[Node], evidence: Evidence, rows: Rows) -> PartOfB | None:
    """The part of B in front of the first tensor that differs.

    If the tensor has A's values with axes in another order, the part ends in a later tensor, which shows the order.
    """
    part = part_of_b(first, set(nodes), evidence, rows)
    if part is not None or first.value not in rows.pairs.orders:
        return part
    # The layers directly in front of the layer that move elements.
    moving = (one.node for value in first.value.node.inputs for one in with_same_elements(value))
    candidates = {first.value.node, *nodes, *(node for node in moving if node.type in MOVES)}
    later = sorted((one for one in rows.found if one.order > first.order), key=lambda one: one.order)
    for one in later[:_LATER]:
        candidates.add(one.value.node)
        part = None if one.row.agreement.agrees else part_of_b(one, candidates, evidence, rows)
        if part is not None:
            return part
    return None


@dataclass(frozen=True, eq=False)
class PartOfB:
    """A part of B that ends in a tensor that differs, run on trial from A's tensors.

    Attributes:
        evidence, rows: both sides, and all rows.
        pair: the tensor and its partner.
        run: the index of the run in which it differs.
        alone: the layers of B, with the tensors that are given to the part.
    """

    evidence: Evidence
    rows: Rows
    pair: TensorPair
    run: int
    alone: Alone

    @cached_property
    def nodes(self) -> list[Node]:
        """The layers, in topological order."""
        return self.alone.nodes([self.pair.b])

    @cached_property
    def inputs(self) -> list[Value]:
        """The tensors in front of the part, which have partners in A."""
        return self.alone.inputs([self.pair.b])

    @cached_property
    def region(self) -> list[Value]:
        """The tensors of A between the partners of the inputs and that of the tensor."""
        inputs = {self.rows.pairs.by_b.get(value) for value in self.inputs}
        found: dict[Value, None] = {}
        waiting = [self.pair.a] if isinstance(self.pair.a, Value) else []
        while waiting and len(found) < _LAYERS:
            for value in waiting.pop(0).node.inputs:
                if value is not None and value not in found and value not in inputs and value.node.type != "Parameter":
                    found[value] = None
                    waiting.append(value)
        return list(found)

    @cached_property
    def limit(self) -> int:
        """Maximum number of runs."""
        return min(_TRIALS, _WORK // (LayerCosts(self.evidence.b.model, self.alone.facts).of(self.nodes).macs or 1))

    @cached_property
    def is_usable(self) -> bool:
        """Whether the part can be run from A's tensors, and differs then."""
        if self.count > _LAYERS or self.alone.refusal(self.pair.b) or self._of_a[1].failures:
            return False
        return self.own is not None and not self.agrees(self.own)

    @cached_property
    def _of_a(self) -> tuple[Observed, Observed]:
        more: list[Tensor] = [self.pair.a, *self.region]
        return self.evidence.given("A", self.inputs, self.rows.pairs, self.rows.shapes, more)

    @cached_property
    def own(self) -> np.ndarray | None:
        """The tensor as B computes it from A's tensors."""
        return self.computed()

    @property
    def count(self) -> int:
        """Number of layers without Constants."""
        return sum(node.type != "Constant" for node in self.nodes)

    @cached_property
    def expected(self) -> np.ndarray:
        """The tensor of A, in B's shape if the values differ and the shapes only in axes of size 1."""
        own, expected = self.own, self.of_a(self.pair.a)
        if own is None or self.pair.how != VALUE or self.pair.order or not differ_in_ones(own.shape, expected.shape):
            return expected
        reshaped = expected.reshape(own.shape)
        return expected if self._agree(own, reshaped) else reshaped

    def of_a(self, value: Tensor) -> np.ndarray:
        """A tensor of A: of the region, or the partner of the tensor."""
        return self._of_a[1].arrays[value][self.run]

    def given(self, value: Value) -> np.ndarray:
        """A tensor of A in place of an input of the part."""
        return self._of_a[0].arrays[value][self.run]

    def computed(
        self, changed: Mapping[Value, np.ndarray] | None = None, edit: Edit | None = None
    ) -> np.ndarray | None:
        """The tensor, computed with other values of some tensors in front of it, or with a change of a layer; None if
        it cannot be computed."""
        made = self._made(changed or {})
        model = copy.copy(made.model)
        if edit is not None:
            index = made.model.nodes.index(made.values[edit.node.outputs[0]].node)
            edit.apply(model.nodes[index], model.nodes)
        try:
            with self.evidence.opened("irexec")(model) as opened:
                result = next(value for node in model.results for value in node.inputs if value is not None)
                return opened.run(made.feeds(opened), [result])[0]
        except RunTimeoutError:
            raise
        except (IrexecError, ArithmeticError):
            return None

    def inner(
        self, values: Sequence[Value], changed: Mapping[Value, np.ndarray] | None = None
    ) -> dict[Value, np.ndarray]:
        """Tensors inside the part, computed with other values of some tensors in front of it."""
        made = self._made(changed or {})
        with self.evidence.opened("irexec")(made.model) as opened:
            arrays = opened.run(made.feeds(opened), [made.values[value] for value in values])
        return dict(zip(values, arrays, strict=True))

    def agrees(self, array: np.ndarray | None) -> bool:
        """Whether an array agrees with A's tensor."""
        return array is not None and self._agree(array, self.expected)

    def _agree(self, array: np.ndarray, expected: np.ndarray) -> bool:
        expected = arranged(expected, array.shape, self.pair.order)
        return agreement(self.evidence, self.pair, expected, array, self.rows.are_reordered).agrees

    def _made(self, changed: Mapping[Value, np.ndarray]) -> Apart:
        return self.alone.model([self.pair.b], {**{value: self.given(value) for value in self.inputs}, **changed})


def part_of_b(target: Found, candidates: set[Node], evidence: Evidence, rows: Rows) -> PartOfB | None:
    """The part in front of a tensor that differs; None if it cannot be run from A's tensors, or does not differ then.

    The layers that may be at fault, ``candidates``, belong to the part.
    """
    pair = next((one for one in rows.pairs.tensors if one.b is target.value), None)
    if target.path or pair is None or not isinstance(evidence.a, ModelSide) or evidence.is_one_model:
        return None
    if tolerance_of(evidence, pair).metric != "max" or target.value.node.bodies:
        return None
    inside = {target.value.node, *candidates}
    alone = evidence.alone(value for value in evidence.sources(rows.pairs) if value.node not in inside)
    part = PartOfB(evidence, rows, pair, target.row.run - 1, alone)
    return part if part.is_usable else None


def corrections(part: PartOfB) -> dict[Node, str]:
    """The layers with a correction in topological order, and the corrections as texts that follow "with"."""
    if not is_varied(part.expected):
        return {}
    budget, theirs = iter(range(part.limit)), _theirs(part)
    found = _edited(part, lambda node: edits(node, theirs, part.evidence.b.constant), budget)
    found |= _with_tensors_of_a(part, budget)
    if not found:
        outputs = (value for node in part.nodes if node.type != "Constant" for value in node.outputs)
        sizes = part.inner([value for value in outputs if _is_integer(value)])
        found = _edited(part, lambda node: edits_of_sizes(node, sizes), budget)
    return {node: found[node] for node in part.nodes if node in found}


def _is_integer(value: Value) -> bool:
    """Whether a value is a single integer, such as the size of a tensor."""
    fact = value.fact
    if fact is None or fact.element is None or not fact.is_static or not fact.element.is_integer:
        return False
    return math.prod(fact.static_shape) == 1


def _edited(part: PartOfB, edits_of: Callable[[Node], Iterator[Edit]], budget: Iterator[int]) -> dict[Node, str]:
    """The layers for which a change gives A's tensor; the last layers are tried first."""
    found: dict[Node, str] = {}
    for node in reversed(part.nodes):
        for edit in edits_of(node):
            if next(budget, None) is None:
                return found
            if part.agrees(part.computed(edit=edit)):
                found[node] = edit.text
                break
    return found


def _theirs(part: PartOfB) -> Theirs:
    floats: dict[float, None] = {}
    arrays: dict[str, np.ndarray] = {}
    for node in dict.fromkeys(value.node for value in (part.pair.a, *part.region) if isinstance(value, Value)):
        floats |= dict.fromkeys(_floats(node))
    for value in part.region:
        array = part.of_a(value)
        if array.dtype.kind == "f" and _is_constant(part, value):
            arrays[value.name] = array
            floats |= dict.fromkeys(array.ravel().tolist() if array.size == 1 else [])
    return Theirs(tuple(floats), tuple(arrays.items()))


def _is_constant(part: PartOfB, value: Value) -> bool:
    """Whether a tensor of A is a Constant, or computed from constants alone."""
    assert isinstance(part.evidence.a, ModelSide)
    return value.node.constant is not None or value.node in part.evidence.a.constant


def _floats(node: Node) -> Iterator[float]:
    """Floating-point attributes of a layer."""
    for text in node.attributes.values():
        for part in text.split(","):
            try:
                number = float(part)
            except ValueError:
                continue
            if not part.strip().lstrip("-").isdigit():
                yield number


def _with_tensors_of_a(part: PartOfB, budget: Iterator[int]) -> dict[Node, str]:
    """The layers that give A's tensor if they read another tensor of A: B lacks a layer of A in front of them.

    Layers that only move elements may stand on either side of the missing layer.
    """
    computed = [value for value in part.region if value.node.type not in _GIVEN and not _is_constant(part, value)]
    found: dict[Node, str] = {}
    for first in part.inputs:
        other = next((one for one in computed if _is_missing(part, one, first, budget)), None)
        waiting = [] if other is None else [first]
        for value in waiting:
            if other is not None and (value is first or _is_missing(part, other, value, budget)):
                readers = [node for node in part.nodes if value in node.inputs and node.type != "ShapeOf"]
                found |= dict.fromkeys(readers, f"A's {other.name!r} in place of {value.name!r}")
                waiting += [node.outputs[0] for node in readers if node.type in MOVES]
    return found


def _is_missing(part: PartOfB, other: Value, value: Value, budget: Iterator[int]) -> bool:
    """Whether a tensor of A in place of one of B gives A's tensor, and a layer that reads it changes its elements.

    A sum with a mask of zeros tells nothing.
    """
    array, own = part.of_a(other), part.given(value) if value in part.inputs else part.inner([value])[value]
    if array.size != own.size or array.dtype != own.dtype or next(budget, None) is None:
        return False
    changed = {value: array.reshape(own.shape)}
    if not part.agrees(part.computed(changed)):
        return False
    readers = _readers(value, part.nodes)
    outputs = part.inner([node.outputs[0] for node in readers], changed).values()
    return not readers or any(not np.array_equal(np.unique(one), np.unique(array)) for one in outputs)


def _readers(value: Value, nodes: Sequence[Node]) -> list[Node]:
    """The layers that read a value, also behind layers that only move its elements."""
    readers = [node for node in nodes if value in node.inputs and node.type != "ShapeOf"]
    behind = [one for node in readers if node.type in MOVES for one in _readers(node.outputs[0], nodes)]
    return [node for node in readers if node.type not in MOVES] + behind


def reaches(part: PartOfB) -> dict[Node, float]:
    """Fractions of the elements of the tensor, by the layers that reach these elements and all differing ones.

    A may have one Constant where B has many layers, and then no tensor tells these layers apart. But if only
    some elements differ, the fault lies in a layer that reaches these, and rather in a layer that reaches no others.
    A Constant counts for the layers that read it. Layers that only move elements are left out, and so are layers
    without floating-point tensors. Empty if all elements differ.
    """
    own = part.own
    if own is None or own.dtype.kind != "f":
        return {}
    expected = arranged(part.expected, own.shape, part.pair.order)
    if own.shape != expected.shape:
        return {}
    differ = _differ(own, expected, _DIFFERENT)
    if differ.all():
        return {}
    budget = iter(range(part.limit))
    found: dict[Node, float] = {}
    outputs = [value for node in part.nodes for value in node.outputs]
    arrays = part.inner([one for one in outputs if one.element_type is not None and one.element_type.is_float])
    for value, array in arrays.items():
        scale = float(np.abs(array).max(initial=0.0)) or 1.0
        noise = np.random.default_rng(0).uniform(0.5, 1.0, array.shape) * scale
        noisy = (array + noise).astype(array.dtype)
        nodes = [value.node] if value.node.constant is None else [one for one in part.nodes if value in one.inputs]
        for node in (one for one in nodes if one.type not in MOVES):
            changed = None if next(budget, None) is None else part.computed({value: noisy})
            if changed is None or changed.size != own.size:
                continue
            reached = _differ(changed.reshape(own.shape), own, _UNCHANGED)
            if reached[differ].all():
                found[node] = min(found.get(node, 1.0), float(reached.mean()))
    return found


def _differ(one: np.ndarray, other: np.ndarray, rtol: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(np.mean(np.square(other, dtype=np.float64)))
        same = (one == other) | (np.abs(one - other) <= rtol * (scale + np.abs(other)))
    return ~same
