"""Groups that can be drawn as one box: no path leaves such a group and returns to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from irexec.tools.graph.names import Group, dissolve

Pairs = Collection[tuple[int, int]]


def make_acyclic(group: Group, pairs: Pairs) -> None:
    """Change the groups of ``group``, at every level, until none is on a cycle.

    A group on a cycle with layers alone absorbs them, unless it is shape arithmetic. Of several groups on a cycle the
    smallest is dissolved; shape arithmetic is always dissolved.

    Args:
        group: the outermost group, with all layers.
        pairs: the edges between the layers; a cycle of layers stays.
    """
    waiting = [(group, list(pairs))]
    while waiting:
        outer, inside = waiting.pop()
        _one_level(outer, inside)
        owner = {i: k for k, inner in enumerate(outer.groups) for i in inner.all_layers()}
        per_group: list[list[tuple[int, int]]] = [[] for _ in outer.groups]
        for a, b in inside:
            if a in owner and owner.get(b) == owner[a]:
                per_group[owner[a]].append((a, b))
        waiting += zip(outer.groups, per_group, strict=True)


def _one_level(outer: Group, pairs: Pairs) -> None:
    while outer.groups:
        box = {i: ~k for k, inner in enumerate(outer.groups) for i in inner.all_layers()}
        between = {(box.get(a, a), box.get(b, b)) for a, b in pairs}
        cycles = strong_components({(a, b) for a, b in between if a != b})
        with_groups = [(members, [i for i in members if i < 0]) for members in cycles]
        wrong = [(members, groups) for members, groups in with_groups if groups]
        if not wrong:
            return
        chosen = [_mended(outer, members, groups) for members, groups in wrong]
        for inner in [inner for inner in chosen if inner is not None]:
            dissolve(outer, inner)


def _mended(outer: Group, members: Sequence[int], groups: Sequence[int]) -> Group | None:
    """Move the layers of a cycle into its only group; otherwise returns the group to dissolve."""
    if len(groups) > 1:
        return min((outer.groups[~k] for k in groups), key=lambda inner: inner.size)
    inner = outer.groups[~groups[0]]
    if inner.is_shape_arithmetic:
        return inner
    taken = {i for i in members if i >= 0}
    inner.layers += sorted(taken)
    outer.layers = [i for i in outer.layers if i not in taken]
    return None


def strong_components(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Sets of two and more vertices that lie on common cycles. Source: Tarjan 1972, without recursion."""
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
        after.setdefault(b, [])
    numbers: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for start in after:
        if start not in numbers:
            _visit(start, after, numbers, low, stack, on_stack, found)
    return found


def _visit(
    start: int, after: Mapping[int, Sequence[int]], numbers: dict[int, int], low: dict[int, int], stack: list[int],
    on_stack: set[int],
    found: list[list[int]],
) -> None:  # fmt: skip
    """Number the vertices that are reachable from ``start``, and add their components to ``found``."""
    path = [(start, iter(after[start]))]
    numbers[start] = low[start] = len(numbers)
    stack.append(start)
    on_stack.add(start)
    while path:
        vertex, rest = path[-1]
        for other in rest:
            if other not in numbers:
                numbers[other] = low[other] = len(numbers)
                stack.append(other)
                on_stack.add(other)
                path.append((other, iter(after[other])))
                break
            if other in on_stack:
                low[vertex] = min(low[vertex], numbers[other])
        else:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[vertex])
            if low[vertex] == numbers[vertex]:
                found += _component(vertex, stack, on_stack)


def _component(root: int, stack: list[int], on_stack: set[int]) -> list[list[int]]:
    """Take the component of ``root`` off the stack; none for a single vertex."""
    members: list[int] = []
    while not members or members[-1] != root:
        members.append(stack.pop())
        on_stack.discard(members[-1])
    return [members] if len(members) > 1 else []
