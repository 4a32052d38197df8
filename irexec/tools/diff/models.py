"""``diff``: two models are matched, and the matched layers compared."""

from __future__ import annotations

from collections.abc import Callable, Collection

from irexec.analysis.matching import match_graphs
from irexec.api import ModelLike, as_model
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import ModelGraph
from irexec.tools.diff.graphs import FoundChanges, GraphDiff
from irexec.tools.diff.ignoring import Ignored, without
from irexec.tools.diff.own import metadata_changes
from irexec.tools.diff.result import Change, Diff


def diff(
    a: ModelLike, b: ModelLike, *, ignore: Collection[str] = (), progress: Callable[[float], None] | None = None
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

    Raises:
        InputError: an argument is neither a model nor a path, or an entry of ``ignore`` is not known.
        ModelError, ConversionError: a model or a constant cannot be read.
    """
    a, b = as_model(a), as_model(b)
    ignored = Ignored.parsed(ignore)
    total = sum(node.constant.size for model in (a, b) for node in model.walk() if node.constant is not None)
    found = FoundChanges(lambda size: None if progress is None else progress(size / max(1, total)))
    with collection_paused():
        found.model += _of_model(a, b)
        GraphDiff(found, match_graphs(a, b)).run()
        found.sort()
    counts = (sum(1 for _ in a.walk()), sum(1 for _ in b.walk()))
    everything = Diff(
        _title(a),
        _title(b),
        counts,
        tuple(found.model),
        tuple(found.layers),
        tuple(found.following),
        unread=found.unread,
    )
    return without(everything, ignored)


def _of_model(a: ModelGraph, b: ModelGraph) -> list[Change]:
    changes = [Change("names", "name", a.name or None, b.name or None)] if a.name != b.name else []
    if a.version != b.version:
        changes.append(Change("versions", "IR version", str(a.version), str(b.version)))
    return [*changes, *metadata_changes(a, b)]


def _title(model: ModelGraph) -> str:
    return str(model.path) if model.path is not None else model.name
