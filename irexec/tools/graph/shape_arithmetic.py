"""Shape arithmetic: layers whose values depend on the shapes of tensors alone, such as ShapeOf, Gather, Concat before a
Reshape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irexec.tools.graph.names import SHAPE_ARITHMETIC

Scope = tuple[str, ...]


def set_apart(
    scopes: dict[int, Scope], types: Mapping[int, str], before: Mapping[int, Sequence[int]], order: Sequence[int]
) -> None:
    """Move the layers of shape arithmetic to a scope of their own within their scope.

    One scope may need several: a layer that reads the shape of a tensor cannot share a block with a layer that the
    tensor depends on.

    Args:
        scopes: the scope of each layer; changed in place.
        types: the type of each layer.
        before: the producers of each layer, constants left out.
        order: the layers, each after its producers.
    """
    members: dict[int, None] = {}
    for i in order:
        producers = before.get(i, ())
        if types[i] == "ShapeOf" or (types[i] not in _ENDS and producers and all(j in members for j in producers)):
            members[i] = None
    place = {i: k for k, i in enumerate(order)}
    newest, oldest = _newest_before(members, before, place), _oldest_after(members, before, place)
    # The newest tensor whose shape a layer of the block reads is older than the oldest layer that reads a result of the
    # block.
    current: dict[Scope, tuple[int, float]] = {}
    for i in sorted(members, key=lambda i: (newest[i], place[i])):
        number, bound = current.get(scopes[i], (0, float("inf")))
        if newest[i] >= bound:
            number, bound = number + 1, float("inf")
        current[scopes[i]] = number, min(bound, oldest[i])
        scopes[i] = (*scopes[i], f"{SHAPE_ARITHMETIC} {number}")


_ENDS = ("Result", "Assign")


def _newest_before(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, int]:
    """The last position of a tensor whose shape each member depends on; ``members`` are in order."""
    found: dict[int, int] = {}
    for i in members:
        found[i] = max((found[j] if j in members else place[j] for j in before.get(i, ())), default=-1)
    return found


def _oldest_after(
    members: Mapping[int, None], before: Mapping[int, Sequence[int]], place: Mapping[int, int]
) -> dict[int, float]:
    """The first position of a layer outside of ``members`` that depends on each member."""
    found = dict.fromkeys(members, float("inf"))
    for i in reversed(list(place)):
        at = found[i] if i in members else float(place[i])
        for j in before.get(i, ()):
            if j in found:
                found[j] = min(found[j], at)
    return found
