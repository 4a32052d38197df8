"""Kinds of changes that are left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from irexec.tools.diff.result import Diff, LayerDiff


def without(found: Diff, ignore: Collection[str]) -> Diff:
    """The diff without changes of some kinds, and without what follows from these alone."""
    if not ignore:
        return found
    kept: dict[int, LayerDiff] = {}
    for index, layer in enumerate(found.layers):
        changes = tuple(change for change in layer.changes if change.kind not in ignore)
        if changes or (not layer.changes and layer.status not in ignore):
            kept[index] = replace(layer, changes=changes)
    position = {index: k for k, index in enumerate(kept)}
    following = [
        replace(each, roots=tuple(position[root] for root in each.roots if root in position))
        for each in found.following
        if each.change.kind not in ignore and (not each.roots or any(root in position for root in each.roots))
    ]
    model = tuple(change for change in found.model if change.kind not in ignore)
    return replace(
        found, model=model, layers=tuple(kept.values()), following=tuple(following), ignored=tuple(sorted(ignore))
    )
