"""Changes that are left out of a diff: by kind, by the name of the layer, and small changes of values."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from irexec.errors import InputError
from irexec.tools.diff.result import KINDS, Change, Diff, Following, LayerDiff, LayerRef


@dataclass(frozen=True)
class Ignored:
    """The changes to leave out.

    Attributes:
        texts: the entries as given.
        kinds: kinds of changes, of ``KINDS``.
        tolerance: the relative norm up to which changes of values are left out; None leaves out none of them.
        names: patterns of names and ids of layers.
    """

    texts: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    tolerance: float | None = None
    names: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parsed(cls, texts: Collection[str]) -> Ignored:
        """The entries: a kind, ``values=TOLERANCE`` or ``layer=NAME``, where an asterisk matches any text.

        Raises:
            InputError: an entry is none of these.
        """
        kinds, names, tolerance = set(), [], None
        for text in texts:
            key, equals, value = text.partition("=")
            if not equals and text in KINDS:
                kinds.add(text)
            elif equals and key == "values":
                tolerance = max(_tolerance(value), tolerance or 0.0)
            elif equals and key == "layer" and value:
                names.append(re.compile(".*".join(map(re.escape, value.split("*"))), re.DOTALL))
            else:
                kinds_text = ", ".join(KINDS)
                raise InputError(
                    f"{text!r} is not a kind of change; there are {kinds_text}, values=TOLERANCE and layer=NAME"
                )
        return cls(tuple(texts), frozenset(kinds), tolerance, tuple(names))

    def change(self, change: Change) -> bool:
        """True if a change is left out."""
        values = change.values
        if change.kind in self.kinds:
            return True
        if self.tolerance is None or values is None or values.not_finite:
            return False
        return not values.changed or (values.relative is not None and values.relative <= self.tolerance)

    def layer(self, *layers: LayerRef | None) -> bool:
        """True if all changes of a layer, which are given as in A and in B, are left out."""
        texts = {text for one in layers if one is not None for text in (one.name, f"{one.path}{one.name}", str(one.id))}
        return any(pattern.fullmatch(text) for pattern in self.names for text in texts)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"values={text} has no tolerance, expected a relative norm such as values=1e-6")
    return value


def without(found: Diff, ignored: Ignored) -> Diff:
    """The diff without what is ignored, and without the shapes and types that follow from it alone."""
    if not ignored.texts:
        return found
    kept: dict[int, LayerDiff] = {}
    for index, layer in enumerate(found.layers):
        changes = tuple(change for change in layer.changes if not ignored.change(change))
        remains = changes or (not layer.changes and layer.status not in ignored.kinds)
        if remains and not ignored.layer(layer.a, layer.b):
            kept[index] = replace(layer, changes=changes)
    model = tuple(change for change in found.model if not ignored.change(change))
    following = tuple(_following(found.following, ignored, list(kept)))
    texts = tuple(sorted(set(ignored.texts)))
    return replace(found, model=model, layers=tuple(kept.values()), following=following, ignored=texts)


def _following(following: Iterable[Following], ignored: Ignored, kept: list[int]) -> Iterable[Following]:
    """The remaining consequences, with the new indices of their roots.

    ``kept`` has the old indices of the remaining layers.
    """
    position = {index: k for k, index in enumerate(kept)}
    for each in following:
        is_caused = not each.roots or any(root in position for root in each.roots)
        if is_caused and not ignored.change(each.change) and not ignored.layer(each.layer, each.other):
            yield replace(each, roots=tuple(position[root] for root in each.roots if root in position))
