"""Faults that are there only while inner tensors are not observed: layers that the runtime fuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irexec.ir.graph import Node, Value
from irexec.tools.judge.confirming import judged
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.judgement import JudgedLayer
from irexec.tools.judge.opponent import Tensors

_RADII = (0, 1, 2, 4)
Observe = Callable[[Sequence[Value]], Tensors]


def fused_fault(
    evidence: Evidence, inner: Sequence[Value], observe: Observe, is_wrong: Callable[[Tensors], bool]
) -> list[JudgedLayer]:
    """The tensors outside of their intervals while the layers around them are not observed.

    A bisection finds a tensor whose observation makes the results right; then the tensors around it are left
    unobserved, further and further, and the layers between those that are left are judged as one.

    Args:
        evidence: about the runtime.
        inner: tensors that can be observed, in topological order; with all of them the results are right, with none
            they are wrong.
        observe: runs the model with these tensors observed.
        is_wrong: whether a run has other results than the one with all tensors observed.
    """
    low, high = 0, len(inner)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_wrong(observe(inner[:middle])) else (low, middle)
    for radius in _RADII:
        around = _around(evidence, inner[high - 1].node, radius)
        seen = [value for value in inner if value.node not in around]
        given = observe(seen)
        later = [value for value in given if value.node.type not in ("Parameter", "Constant")]
        wide = [value for value in later if around & set(evidence.region(value, given))]
        if found := [one for one in judged(evidence, given, wide) if one.state == "outside"]:
            return found
    return []


def _around(evidence: Evidence, node: Node, radius: int) -> set[Node]:
    """The layers at most so many edges away from a layer."""
    found = {node}
    for _ in range(radius):
        before = {value.node for one in found for value in one.inputs if value is not None}
        after = {one for one in evidence.side.model.nodes if any(v is not None and v.node in found for v in one.inputs)}
        found |= before | after
    return found
