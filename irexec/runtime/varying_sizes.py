"""Sizes of inputs that a plan need not know: the length of a mask that grows with each token of a language model.

Such sizes stay unknown, so that one plan serves all of them, instead of one for each token. Which ones they are follows
from the model and from the shapes of a run alone, never from earlier runs: kernels of another plan may give other bits.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.shape_inference import Inference
from irexec.ir.dims import Dim, PartialShape, Size, high, low
from irexec.ir.forks import new_lock
from irexec.ir.graph import Graph, Node, Value

Position = tuple[int, int]
"""An axis of an input: the index of the input, and that of the axis."""

Shapes = tuple[PartialShape, ...]

_REMEMBERED = 64
"""Patterns of shapes of which it is remembered what is unknown in their plans: those that came last."""

_FIRST, _NEXT = 64, 32
"""The sizes that stand for those of a pattern: 64, 96, 128, ..."""

_MACS_OF_ELEMENT = 10
"""Multiply-accumulates of a plan for each element that it no longer knows: such elements are computed in Python."""


class VaryingSizes:
    """The sizes of a model that plans leave unknown.

    These are the lengths of caches, which the model returns longer than it was given them, and sizes that no product
    needs. Sizes that are equal in a run are examined together. What holds of the sizes of a run must hold of all of
    their pattern, so that sizes of its own stand for them: equal ones for equal sizes; 0 and 1 stay.

    Args:
        declared: the shapes of the inputs as the model declares them.
        appended: the positions of the lengths of caches; see ``appended_lengths``.
        knows_most: whether a plan for partly known shapes knows the sizes of most products.
        are_free: whether plans for shapes without some known sizes are as good as those for all.
    """

    def __init__(
        self,
        declared: Sequence[PartialShape],
        appended: Iterable[Position],
        knows_most: Callable[[Shapes], bool],
        are_free: Callable[[Shapes, Shapes], bool],
    ) -> None:
        self._declared, self._knows_most, self._are_free = declared, knows_most, are_free
        self._appended = frozenset(appended)
        self._free: OrderedDict[Shapes, frozenset[Position]] = OrderedDict()
        self._lock = new_lock()

    def planned(self, shapes: tuple[tuple[int, ...], ...]) -> Shapes:
        """The shapes to plan for."""
        groups = self._groups(shapes)
        pattern = self._pattern(shapes, groups)
        with self._lock:
            free = self._free.get(pattern)
            if free is not None:
                self._free.move_to_end(pattern)
        if free is None:
            free = self._examined(pattern, groups)
            with self._lock:
                self._free[pattern] = free
                if len(self._free) > _REMEMBERED:
                    self._free.popitem(last=False)
        return self._without(shapes, free)

    def _examined(self, pattern: Shapes, groups: Sequence[frozenset[Position]]) -> frozenset[Position]:
        """The positions that are unknown in plans for a pattern, in which the lengths of caches are unknown."""
        free = self._appended if self._appended and self._knows_most(pattern) else frozenset()
        opened: frozenset[Position] = frozenset()
        for group in groups:
            if self._are_free(self._without(pattern, opened), self._without(pattern, opened | group)):
                opened |= group
        return free | opened

    def _groups(self, shapes: Sequence[tuple[int, ...]]) -> list[frozenset[Position]]:
        """The positions of equal sizes of more than 1 that the model leaves open, but for those of caches."""
        groups: dict[int, set[Position]] = {}
        for i, shape in enumerate(shapes):
            for axis, size in enumerate(shape):
                if size > 1 and self._is_open(i, axis) and (i, axis) not in self._appended:
                    groups.setdefault(size, set()).add((i, axis))
        return [frozenset(group) for group in groups.values()]

    def _is_open(self, index: int, axis: int) -> bool:
        declared = self._declared[index]
        return declared is None or isinstance(declared[axis], Dim)

    def _pattern(self, shapes: Shapes, groups: Sequence[frozenset[Position]]) -> Shapes:
        """The shapes with sizes that stand for those of the groups."""
        made = [list(shape or ()) for shape in shapes]
        for number, group in enumerate(groups):
            for i, axis in group:
                declared = self._declared[i]
                made[i][axis] = _within(_FIRST + number * _NEXT, 1 if declared is None else declared[axis])
        return self._without(tuple(map(tuple, made)), self._appended)

    def _without(self, shapes: Shapes, positions: Iterable[Position]) -> Shapes:
        """The shapes with the declared sizes at some positions."""
        made = [list(shape or ()) for shape in shapes]
        for i, axis in positions:
            declared = self._declared[i]
            if declared is not None:
                made[i][axis] = declared[axis]
        return tuple(map(tuple, made))


def _within(size: int, declared: Size) -> int:
    """The size, moved into the bounds of a declared one."""
    largest = high(declared) if isinstance(declared, Dim) else None
    return max(low(declared), size if largest is None else min(size, largest))


def appended_lengths(graph: Graph, declared: Sequence[PartialShape]) -> Iterator[Position]:
    """The positions of the lengths of caches: open sizes along which an input is a part of a Concat that is returned.

    There may be Converts, and Gathers along another axis, in between.
    """
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in filter(None, node.inputs):
            readers.setdefault(value, []).append(node)

    def reached(value: Value, type: str, axis: int, rank: int) -> Iterator[Node]:
        for node in readers.get(value, ()):
            if node.type == type:
                yield node
            elif node.type == "Convert" or (node.type == "Gather" and node.inputs[0] is value and _keeps(node, axis)):
                yield from reached(node.outputs[0], type, axis, rank)

    for i, node in enumerate(graph.parameters):
        shape = declared[i] or ()
        for axis, size in enumerate(shape):
            if isinstance(size, Dim) and any(
                typed_attribute(concat, "axis") in (axis, axis - len(shape))
                and any(reached(concat.outputs[0], "Result", axis, len(shape)))
                for concat in reached(node.outputs[0], "Concat", axis, len(shape))
            ):
                yield i, axis


def _keeps(gather: Node, axis: int) -> bool:
    """Whether a Gather leaves an axis of its data as it is: it picks entries of axis 0, the batch."""
    source = None if len(gather.inputs) < 3 else gather.inputs[2]
    constant = None if source is None else source.node.constant
    return axis > 0 and constant is not None and not constant.raw.any()


def knows_most_products(graph: Graph, partial: Inference) -> bool:
    """Whether an inference knows the multiply-accumulates of most products."""
    from irexec.analysis.cost import LayerCosts, has_macs

    costs = LayerCosts(graph, partial.facts)
    known = [costs.macs(node) is not None for node in costs.layers if has_macs(node.type)]
    return 2 * sum(known) > len(known)


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
