"""Sizes of inputs that a plan need not know: the length of a mask that grows with each token of a language model.

Such sizes stay unknown, so that one plan serves all of them, instead of one for each token.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from irexec.analysis.shape_inference import Inference
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Graph

Position = tuple[int, int]
"""An axis of an input: the index of the input, and that of the axis."""

Shapes = tuple[PartialShape, ...]

_REMEMBERED = 64
"""Sets of shapes of which it is remembered what was planned for them: those that came last."""

_MACS_OF_ELEMENT = 10
"""Multiply-accumulates of a plan for each element that it no longer knows: such elements are computed in Python."""


class VaryingSizes:
    """The sizes of a model that plans leave unknown.

    Args:
        declared: the shapes of the inputs as the model declares them.
        are_free: whether plans for shapes without some known sizes are as good as those for all.
    """

    def __init__(self, declared: Sequence[PartialShape], are_free: Callable[[Shapes, Shapes], bool]) -> None:
        self._declared, self._are_free = declared, are_free
        self._last: tuple[tuple[int, ...], ...] = ()
        self._free: set[Position] = set()
        self._tried: set[frozenset[Position]] = set()
        self._planned: OrderedDict[Shapes, Shapes] = OrderedDict()
        self._lock = threading.Lock()

    def planned(self, shapes: tuple[tuple[int, ...], ...]) -> Shapes:
        """The shapes to plan for. Sizes that changed since the last call are examined, those with the same change
        together.

        Shapes that come back have the plan that they had, although more sizes are left unknown by now: kernels of
        another plan may give other bits.
        """
        with self._lock:
            if (known := self._planned.get(shapes)) is not None:
                self._planned.move_to_end(shapes)
                return known
            groups = [group for group in _changes(self._last, shapes, self._free) if group not in self._tried]
            self._last = shapes
            self._tried.update(groups)
        free = [group for group in groups if self._are_free(shapes, self._without(shapes, group))]
        with self._lock:
            self._free.update(*free)
            # Another thread may have planned for the same shapes.
            made = self._planned.setdefault(shapes, self._without(shapes, self._free))
            if len(self._planned) > _REMEMBERED:
                self._planned.popitem(last=False)
            return made

    def _without(self, shapes: Shapes, positions: Iterable[Position]) -> Shapes:
        """The shapes with the declared sizes at some positions."""
        made = [list(shape or ()) for shape in shapes]
        for i, axis in positions:
            declared = self._declared[i]
            if declared is not None:
                made[i][axis] = declared[axis]
        return tuple(map(tuple, made))


def _changes(
    last: Sequence[tuple[int, ...]], shapes: Sequence[tuple[int, ...]], known: set[Position]
) -> list[frozenset[Position]]:
    """The positions of sizes that differ, grouped by the old and the new size."""
    groups: dict[tuple[int, int], set[Position]] = {}
    for i, (before, now) in enumerate(zip(last, shapes, strict=False)):
        if len(before) == len(now):
            for axis, change in enumerate(zip(before, now, strict=True)):
                if change[0] != change[1] and (i, axis) not in known:
                    groups.setdefault(change, set()).add((i, axis))
    return [frozenset(group) for group in groups.values()]


def keeps_products(graph: Graph, known: Inference, partial: Inference) -> bool:
    """Whether every multiply-accumulate that one inference knows is known to another one, and few other elements are
    not."""
    # Most runs do not need it, and would begin later.
    from irexec.analysis.cost import LayerCosts

    before, after = LayerCosts(graph, known.facts), LayerCosts(graph, partial.facts)
    macs = lost = 0
    for node in before.layers:
        count = before.macs(node)
        if count and after.macs(node) is None:
            return False
        macs += count or 0
        for value in node.outputs:
            if known[value].is_static and not partial[value].is_static:
                lost += math.prod(known[value].static_shape)
    return lost * _MACS_OF_ELEMENT <= macs
