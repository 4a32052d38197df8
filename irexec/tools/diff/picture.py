"""The changes from one model to another as a picture; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.matching import match_graphs
from irexec.ir.graph import ModelGraph, Node
from irexec.ir.order import walk_with_paths
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
    of_a: dict[LayerRef | None, LayerDiff] = {one.a: one for one in found.layers if one.a is not None}
    of_b: dict[LayerRef | None, LayerDiff] = {one.b: one for one in found.layers if one.b is not None}
    following = {one.layer: one for one in found.following}
    paths_b = {node: path for path, node in walk_with_paths(b)}
    for path, matching in match_graphs(a, b).walk():
        pairs: list[tuple[Node | None, Node | None]] = [(pair.a, pair.b) for pair in matching.pairs]
        pairs += [(node, None) for node in matching.only_a]
        pairs += [(None, node) for node in matching.only_b]
        for mine, theirs in pairs:
            ref_a = None if mine is None else LayerRef.of(mine, path)
            ref_b = None if theirs is None else LayerRef.of(theirs, paths_b[theirs])
            change = of_a.get(ref_a) or of_b.get(ref_b)
            if change is not None:
                state = "added" if mine is None or theirs is None else _STATE[change.status]
                yield PairedTensor(mine, theirs, state, _facts(change))
            elif ref_a in following and theirs is not None:
                yield PairedTensor(mine, theirs, "follows", (_fact(following[ref_a].change),))
            else:
                yield PairedTensor(mine, theirs, "agrees")


def _facts(change: LayerDiff) -> tuple[tuple[str, str], ...]:
    facts = [_fact(one) for one in change.changes]
    facts += [(name, text) for name, text in change.attributes.items()]
    facts += [("input", text) for text in change.inputs] + [("output", text) for text in change.outputs]
    facts += [("between", f"{source} and {target}") for source, target in change.between]
    return tuple(facts + ([("matched by", change.reason)] if change.reason else []))


def _fact(change: Change) -> tuple[str, str]:
    text = ", ".join(change.values.parts()) if change.values is not None else f"{change.a} → {change.b}"
    return change.what or change.kind, text
