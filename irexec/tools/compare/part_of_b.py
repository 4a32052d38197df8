"""The layers of B between the last tensors that agree and one that differs, run on trial from A's tensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from irexec.analysis.cost import LayerCosts
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.graph import Node, Value
from irexec.tools.compare.edits import Edit
from irexec.tools.compare.isolate import Apart, Isolated
from irexec.tools.compare.observe import Observed
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.options import opened_runtime
from irexec.tools.compare.pairs import VALUES, TensorPair
from irexec.tools.compare.rows import Found, Rows, fitted
from irexec.tools.compare.sides import ModelSide

_LAYERS = 80
"""Maximum number of layers of a part of B, and of tensors of a part of A."""
_TRIALS = 800
"""Maximum number of runs of a part."""
_WORK = 500_000_000_000
"""Maximum number of multiply-accumulates of all runs of a part."""


class PartOfB:
    """A part of B that ends in a tensor that differs.

    Args:
        pair: the tensor and its partner.
        run: the run in which it differs.
        candidates: layers that may be at fault, which belong to the part.
        rows: all rows.
        context: the comparison.

    Attributes:
        nodes: the layers, in topological order.
        inputs: the tensors in front of the part, which have partners in A.
        region: the tensors of A between the partners of the inputs and that of the tensor.
        left: number of runs that are left.
    """

    def __init__(self, pair: TensorPair, run: int, candidates: set[Node], rows: Rows, context: OpenSides) -> None:
        self.pair, self._run, self._rows, self._context = pair, run, rows, context
        unreadable = rows.unreadable
        sources = {
            value: one
            for value, one in context.sources().items()
            if value.node not in candidates and value not in unreadable
        }
        shapes = {one.value: one.row.shape for one in rows.found}
        self._isolated = Isolated(context.b, sources, context.options, shapes, context.pairs.orders)
        self.nodes: list[Node] = list(self._isolated.nodes([pair]))
        self.inputs = self._isolated.inputs([pair])
        self.region = self._region({context.pairs.by_b.get(value) for value in self.inputs})
        macs = LayerCosts(context.b.model, self._isolated.facts).of(self.nodes).macs or 1
        self.left = min(_TRIALS, _WORK // macs)

    @classmethod
    def of(cls, target: Found, candidates: set[Node], rows: Rows, context: OpenSides) -> PartOfB | None:
        """The part in front of a tensor that differs; None if it cannot be run from A's tensors, or does not differ
        then."""
        pair = next((one for one in context.pairs.tensors if one.b is target.value), None)
        if target.path or pair is None or not isinstance(context.a, ModelSide) or context.a.model is context.b.model:
            return None
        if rows.tolerance(pair.a, pair.b).metric != "max" or target.value.node.bodies:
            return None
        part = cls(pair, target.row.run - 1, {target.value.node, *candidates}, rows, context)
        return part if part._is_usable() else None

    def _is_usable(self) -> bool:
        if self._count > _LAYERS or not self._isolated.chosen([self.pair], []) or self._given.failures:
            return False
        return self.own is not None and not self.agrees(self.own)

    @cached_property
    def _given(self) -> Observed:
        return self._context.observed_a([*self._isolated.needed([self.pair]), self.pair.a, *self.region])

    @cached_property
    def own(self) -> np.ndarray | None:
        """The tensor as B computes it from A's tensors."""
        return self.computed()

    @property
    def is_one_layer(self) -> bool:
        """Whether the part has one layer beside Constants."""
        return self._count == 1

    @property
    def _count(self) -> int:
        """Number of layers without Constants."""
        return sum(node.type != "Constant" for node in self.nodes)

    @cached_property
    def expected(self) -> np.ndarray:
        """The tensor of A, in B's shape if the values differ and the shapes only in axes of size 1."""
        own, expected = self.own, self.of_a(self.pair.a)
        if own is None or self.pair.how not in VALUES or self.pair.order:
            return expected
        if not _differ_in_ones(own.shape, expected.shape):
            return expected
        arranged = expected.reshape(own.shape)
        return expected if self._agree(own, arranged) else arranged

    def of_a(self, value: Value | str) -> np.ndarray:
        """A tensor of A: of the region, or the partner of the tensor."""
        return self._given.arrays[value][self._run]

    def given(self, value: Value) -> np.ndarray:
        """A tensor of A in place of an input of the part."""
        return self._isolated.given(value, self._given, self._run)

    def computed(
        self, changed: Mapping[Value, np.ndarray] | None = None, edit: Edit | None = None
    ) -> np.ndarray | None:
        """The tensor, computed with other values of some tensors in front of it, or with a change of a layer; None if
        it cannot be computed."""
        self.left -= 1
        made = self._made(changed or {})
        model = copy.copy(made.model)
        if edit is not None:
            index = made.model.nodes.index(made.values[edit.node.outputs[0]].node)
            edit.apply(model.nodes[index], model.nodes)
        try:
            with opened_runtime(self._context.options, "irexec", model) as opened:
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
        with opened_runtime(self._context.options, "irexec", made.model) as opened:
            arrays = opened.run(made.feeds(opened), [made.values[value] for value in values])
        return dict(zip(values, arrays, strict=True))

    def agrees(self, array: np.ndarray | None) -> bool:
        """Whether an array agrees with A's tensor."""
        return array is not None and self._agree(array, self.expected)

    def _agree(self, array: np.ndarray, expected: np.ndarray) -> bool:
        return self._rows.agreement(self.pair.a, self.pair.b, *fitted(self.pair, expected, array)).agrees

    def _made(self, changed: Mapping[Value, np.ndarray]) -> Apart:
        given = {value: self.given(value) for value in self.inputs}
        return Apart([self.pair], {**given, **changed}, self._isolated)

    def _region(self, inputs: set[Value | None]) -> list[Value]:
        found: dict[Value, None] = {}
        waiting = [self.pair.a] if isinstance(self.pair.a, Value) else []
        while waiting and len(found) < _LAYERS:
            for value in waiting.pop(0).node.inputs:
                if value is not None and value not in found and value not in inputs and value.node.type != "Parameter":
                    found[value] = None
                    waiting.append(value)
        return list(found)


def _differ_in_ones(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes differ, and only in axes of size 1."""
    return one != other and [size for size in one if size != 1] == [size for size in other if size != 1]
