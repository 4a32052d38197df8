"""Groups of layers with the same changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from irexec.tools.diff.result import Change, LayerDiff, ValueChange


def groups(layers: Sequence[LayerDiff]) -> list[list[int]]:
    """Indices of layers of the same type with the same changes, in the order of the first of each group.

    Constants with changed values are one group, whatever the differences. Names count only for layers without other
    changes.
    """
    found: dict[Hashable, list[int]] = {}
    for index, layer in enumerate(layers):
        found.setdefault(_key(layer), []).append(index)
    return list(found.values())


def _key(layer: LayerDiff) -> Hashable:
    status, type = layer.status, layer.layer.type
    if status == "renamed":
        return (status, tuple(sorted({change.kind for change in layer.changes})))
    if status == "changed":
        return (
            status,
            type,
            tuple(_change(change) for change in layer.changes if change.kind not in ("names", "tensor-names")),
        )
    return status, type, bool(layer.between), tuple(sorted(layer.attributes.items()))


def _change(change: Change) -> Hashable:
    return (
        (change.kind, change.values.transposed, "", "")
        if change.values is not None
        else (change.kind, change.what, change.a, change.b)
    )


def total(changes: Sequence[ValueChange]) -> ValueChange:
    """Several changes of values as one: sums of elements, the largest differences."""
    finite = [change.largest for change in changes if change.largest is not None]
    relative = [change.relative for change in changes if change.relative is not None]
    return ValueChange(
        elements=sum(change.elements for change in changes),
        changed=sum(change.changed for change in changes),
        largest=max(finite) if finite else None,
        relative=max(relative, key=lambda value: (math.isinf(value), value)) if relative else None,
        not_finite=sum(change.not_finite for change in changes),
        decompressed=any(change.decompressed for change in changes),
        transposed=all(change.transposed for change in changes),
    )
