"""``diff``: two models, matched, and what differs between what was matched."""

from __future__ import annotations

from collections.abc import Callable, Collection

from irexec.analysis.matching import match_graphs
from irexec.api import ModelLike, as_model
from irexec.errors import InputError
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import ModelGraph
from irexec.tools.diff.graphs import Found, GraphDiff
from irexec.tools.diff.ignoring import without
from irexec.tools.diff.own import metadata_changes
from irexec.tools.diff.result import KINDS, Change, Diff


def diff(
    a: ModelLike, b: ModelLike, *, ignore: Collection[str] = (), progress: Callable[[float], None] | None = None
) -> Diff:
    """What changed from model ``a`` to model ``b``.

    Layers are matched by name and by structure (irexec.analysis.matching), so that ids, the order of layers and edges, and equal
    constants that are stored once or several times make no difference.

    Args:
        a, b: any models, or what read_model takes; neither is changed, run or checked.
        ignore: kinds of changes to leave out, of ``KINDS``; so is what follows from them alone.
        progress: is called with the part of the constants that was compared since the last call.

    Raises:
        InputError: an argument is neither a model nor what one is read from, or there is no such kind.
        ModelError, ConversionError: a model or a constant cannot be read.
    """
    a, b = as_model(a), as_model(b)
    unknown = sorted(set(ignore) - KINDS.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is not a kind of change; there are {', '.join(KINDS)}")
    total = sum(node.constant.size for model in (a, b) for node in model.walk() if node.constant is not None)
    found = Found(lambda size: None if progress is None else progress(size / max(1, total)))
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
    return without(everything, ignore)


def _of_model(a: ModelGraph, b: ModelGraph) -> list[Change]:
    changes = [Change("names", "name", a.name or None, b.name or None)] if a.name != b.name else []
    if a.version != b.version:
        changes.append(Change("versions", "IR version", str(a.version), str(b.version)))
    return [*changes, *metadata_changes(a, b)]


def _title(model: ModelGraph) -> str:
    return str(model.path) if model.path is not None else model.name
