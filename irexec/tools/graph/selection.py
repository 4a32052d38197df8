"""The part of a graph that is drawn: the surroundings of a layer, or everything between tensors."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from irexec.errors import InputError
from irexec.tools.graph.content import Content


def find_layer(content: Content, key: str) -> int:
    """The layer of a key: a tensor, a name, a name with ``:N`` or ``.N`` for an output, or an id.

    A layer of a body may have the path of the body before its name: ``loop/body/add``. Layers outside of bodies come
    first.

    Raises:
        InputError: the layer does not exist; the message offers similar names.
    """
    names = _names(content)
    found = names.get(key)
    for mark in (":", "."):
        layer, dot, number = key.rpartition(mark)
        if found is None and dot and number.isascii() and number.isdigit():
            found = names.get(layer)
            if found is not None and int(number) >= max(1, len(content.nodes[found].outputs)):
                found = None
    if found is None and key.isascii() and key.isdigit():
        found = next(
            (i for i, node in enumerate(content.nodes) if content.owners[i] is None and str(node.id) == key), None
        )
    if found is not None:
        return found
    similar = difflib.get_close_matches(key[:200], list(names)[:50_000], 3)
    offer = f"; similar names are {', '.join(map(repr, similar))}" if similar else ""
    raise InputError(f"there is no tensor or layer {key!r}{offer}")


def _names(content: Content) -> dict[str, int]:
    """Every layer by its names: tensor names precede layer names, and outer layers precede layers of bodies."""
    found: dict[str, int] = {}
    order = sorted(range(len(content.nodes)), key=lambda i: content.owners[i] is not None)
    for i in order:
        for value in content.nodes[i].outputs:
            for name in value.names:
                found.setdefault(name, i)
    for i in order:
        found.setdefault(content.nodes[i].name, i)
    for i in order:
        found.setdefault(f"{content.lines[i].path}{content.nodes[i].name}", i)
    return found


Neighbours = Mapping[int, Collection[int]]


def neighbours(content: Content, into: Mapping[int, int]) -> tuple[Neighbours, Neighbours]:
    """The layers before and after each layer with a box of its own.

    Args:
        into: the layer that represents each constant (irexec.tools.graph.content.drawn_in).
    """
    before: dict[int, dict[int, None]] = defaultdict(dict)
    after: dict[int, dict[int, None]] = defaultdict(dict)
    for edge in content.edges:
        if edge.source not in into:
            before[edge.target][edge.source] = None
            after[edge.source][edge.target] = None
    return before, after


def around(starts: Iterable[int], hops: int, *directions: Neighbours) -> set[int]:
    """The layers at most ``hops`` edges away from one of ``starts``, in any of the directions."""
    found = set(starts)
    edge = list(found)
    for _ in range(hops):
        edge = list(
            dict.fromkeys(j for i in edge for direction in directions for j in direction.get(i, ()) if j not in found)
        )
        if not edge:
            break
        found.update(edge)
    return found


def reached(starts: Iterable[int], direction: Neighbours) -> set[int]:
    """The layers and all layers that are reachable from them."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        for j in direction.get(waiting.pop(), ()):
            if j not in found:
                found.add(j)
                waiting.append(j)
    return found


def select(
    content: Content,
    into: Mapping[int, int],
    *,
    around_keys: Sequence[str],
    hops: int,
    from_keys: Sequence[str],
    to_keys: Sequence[str],
) -> set[int] | None:
    """The layers to draw, among those with a box of their own; None for all.

    ``around_keys`` selects layers at most ``hops`` edges away, ``from_keys`` dependents, ``to_keys`` dependencies; the
    last two together select layers on a path from one to the other. ``around_keys`` with another key selects the layers
    that both select. A layer in a body selects within its body alone.

    Raises:
        InputError: a layer does not exist, or no layer is left.
    """
    if not (around_keys or from_keys or to_keys):
        return None
    before, after = neighbours(content, into)
    chosen: list[set[int]] = []
    if around_keys:
        chosen.append(around(_layers(content, into, around_keys), hops, before, after))
    if from_keys:
        chosen.append(reached(_layers(content, into, from_keys), after))
    if to_keys:
        chosen.append(reached(_layers(content, into, to_keys), before))
    kept = set.intersection(*chosen)
    if not kept:
        if from_keys and to_keys and not around_keys:
            raise InputError(
                f"no path leads from {' or '.join(map(repr, from_keys))} to {' or '.join(map(repr, to_keys))}"
            )
        raise InputError("no layer is near the one and between the others")
    return kept


def _layers(content: Content, into: Mapping[int, int], keys: Sequence[str]) -> list[int]:
    """The layers of the keys; a constant that is drawn in a layer counts as that layer."""
    found = [find_layer(content, key) for key in keys]
    return [into.get(i, i) for i in found]
