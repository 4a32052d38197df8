"""The changes from one model to another as a picture; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.matching import match_graphs
from irexec.ir.graph import Graph, ModelGraph, Node
from irexec.tools.diff.result import Change, Diff, LayerDiff, LayerRef
from irexec.tools.graph.beside import Beside, PairedTensor

_STATES = {
    "differs": "changed",
    "follows": "with another shape or type by other changes",
    "unsure": "renamed",
    "added": "in one model alone",
    "agrees": "unchanged",
    "unpaired": "without a partner",
}
_STATE = {"changed": "differs", "renamed": "unsure", "added": "added", "removed": "added"}


def picture(a: ModelGraph, b: ModelGraph, found: Diff) -> Beside:
    """A diff as a picture.

    Args:
        a, b: the models.
        found: their diff.
    """
    rows = list(_rows(a, b, found))
    first = next((i for i, row in enumerate(rows) if row.state in ("differs", "added")), None)
    return Beside(found.summary(), ((found.a, a), (found.b, b)), rows, _STATES, first)


def _rows(a: ModelGraph, b: ModelGraph, found: Diff) -> Iterator[PairedTensor]:
    """Every pair of layers and every layer of one model alone, in the order of the diff and then of the graphs."""
    of_a = {one.a: one for one in found.layers if one.a is not None}
    of_b = {one.b: one for one in found.layers if one.b is not None}
    following = {one.layer: one for one in found.following}
    paths_b = {node: path for path, node in _walk(b, "")}
    for path, matching in match_graphs(a, b).walk():
        for pair in matching.pairs:
            mine, theirs = LayerRef.of(pair.a, path), LayerRef.of(pair.b, paths_b[pair.b])
            change = of_a.get(mine) or of_b.get(theirs)
            follower = following.get(mine)
            if change is not None:
                yield PairedTensor(pair.a, pair.b, _STATE[change.status], _facts(change))
            elif follower is not None:
                yield PairedTensor(pair.a, pair.b, "follows", (_fact(follower.change),))
            else:
                yield PairedTensor(pair.a, pair.b, "agrees")
        for node in matching.only_a:
            change = of_a.get(LayerRef.of(node, path))
            yield PairedTensor(node, None, "added" if change else "agrees", _facts(change))
        for node in matching.only_b:
            change = of_b.get(LayerRef.of(node, paths_b[node]))
            yield PairedTensor(None, node, "added" if change else "agrees", _facts(change))


def _walk(graph: Graph, path: str) -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        yield path, node
        for name, body in node.bodies.items():
            yield from _walk(body.graph, f"{path}{node.name}/{name}/")


def _facts(change: LayerDiff | None) -> tuple[tuple[str, str], ...]:
    if change is None:
        return ()
    facts = [_fact(one) for one in change.changes]
    facts += [(name, text) for name, text in change.attributes.items()]
    facts += [("input", text) for text in change.inputs] + [("output", text) for text in change.outputs]
    facts += [("between", f"{source} and {target}") for source, target in change.between]
    return tuple(facts + ([("matched by", change.reason)] if change.reason else []))


def _fact(change: Change) -> tuple[str, str]:
    text = ", ".join(change.values.parts()) if change.values is not None else f"{change.a} → {change.b}"
    return change.what or change.kind, text
