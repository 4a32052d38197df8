"""Differences of models, and the ones to ignore."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from irexec.analysis.matching import match_graphs
from irexec.api import ModelLike, as_model
from irexec.errors import InputError
from irexec.ir.graph import ModelGraph
from irexec.ir.process import collection_paused
from irexec.tools.diff.changes import metadata_changes
from irexec.tools.diff.graphs import FoundChanges, GraphDiff
from irexec.tools.diff.result import KINDS, Change, Diff, LayerDiff, LayerRef


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
                known = ", ".join((*KINDS, "values=TOLERANCE"))
                raise InputError(f"{text!r} is not a kind of change; there are {known} and layer=NAME")
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
    position = {index: k for k, index in enumerate(kept)}
    following = tuple(
        replace(each, roots=tuple(position[root] for root in each.roots if root in position))
        for each in found.following
        if (not each.roots or any(root in position for root in each.roots))
        and not (ignored.change(each.change) or ignored.layer(each.layer, each.other))
    )
    texts = tuple(sorted(set(ignored.texts)))
    return replace(found, model=model, layers=tuple(kept.values()), following=following, ignored=texts)


def diff(
    a: ModelLike,
    b: ModelLike,
    *,
    ignore: Collection[str] = (),
    progress: Callable[[float], None] | None = None,
    output: str | None = None,
) -> Diff:
    """Find the changes from model ``a`` to model ``b``.

    Layers are matched by name and by structure (irexec.analysis.matching). Ids, the order of layers and edges, and the
    number of copies of equal constants make no difference.

    Args:
        a, b: any models, or what read_model takes; neither is changed, run or checked.
        ignore: changes to leave out, with the shapes and types that follow from them alone: kinds of ``KINDS``;
            "values=1e-6" for values that differ by at most this relative norm; "layer=NAME" for a layer, by name or id,
            where an asterisk matches any text.
        progress: called with the part of the constants that was compared since the last call.
        output: the .html or .svg to draw the changes to; None draws nothing.

    Raises:
        InputError: an argument is neither a model nor a path, an entry of ``ignore`` is not known, or ``output`` has
            another suffix.
        ModelError, ConversionError: a model or a constant cannot be read.
    """
    if output is not None:
        # Drawing imports the runtime, which diff alone does not.
        from irexec.tools.diff.picture import picture
        from irexec.tools.graph.beside import check_picture, write_picture

        check_picture(output, {})
    a, b = as_model(a), as_model(b)
    ignored = Ignored.parsed(ignore)
    total = sum(node.constant.size for model in (a, b) for node in model.walk() if node.constant is not None)
    found = FoundChanges(lambda size: None if progress is None else progress(size / max(1, total)))
    with collection_paused():
        found.model += [Change("names", "name", a.name or None, b.name or None)] if a.name != b.name else []
        if a.version != b.version:
            found.model.append(Change("versions", "IR version", str(a.version), str(b.version)))
        found.model += metadata_changes(a, b)
        GraphDiff(found, match_graphs(a, b)).run()
        found.sort()
    counts = (sum(1 for _ in a.walk()), sum(1 for _ in b.walk()))
    changes = tuple(found.model), tuple(found.layers), tuple(found.following)
    kept = without(Diff(_title(a), _title(b), counts, *changes, unread=found.unread), ignored)
    if output is not None:
        write_picture(output, picture(a, b, kept))
    return kept


def _title(model: ModelGraph) -> str:
    return str(model.path) if model.path is not None else model.name
