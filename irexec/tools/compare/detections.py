"""Results of detectors: rows in the order of their scores, where rows of equal scores have no order of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irexec.analysis.model import Model
from irexec.ir.graph import Node
from irexec.ir.order import topological
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance

_DETECTIONS = frozenset({
    "DetectionOutput", "NonMaxSuppression", "NMSRotated", "MulticlassNms", "MatrixNms", "Proposal",
    "GenerateProposals", "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronTopKROIs",
    "ExperimentalDetectronGenerateProposalsSingleImage",
})  # fmt: skip
"""Layers that return rows in the order of scores."""
_SCORE = 2
"""The column of the score in rows of DetectionOutput and of selected_scores."""
_MOST = 1 << 13
"""Maximum number of rows that are paired one by one."""


def detection_layers(model: Model) -> set[Node]:
    """The layers that return rows of detections, and all layers behind them."""
    found: set[Node] = set()
    for node in topological(model)[0]:
        if node.type in _DETECTIONS or any(value is not None and value.node in found for value in node.inputs):
            found.add(node)
    return found


def returns_detections(node: Node) -> bool:
    """True if a layer itself orders rows by their scores."""
    return node.type in _DETECTIONS


def as_rows(found: Agreement, a: np.ndarray, b: np.ndarray, tolerance: Tolerance) -> Agreement:
    """The agreement of two tensors as sets of rows, if that of their elements is a difference; else the same.

    Each row has a partner within the tolerance. Rows without a partner have equal scores: one of two rows is kept, and
    either may be.
    """
    if found.agrees or tolerance.metric != "max" or a.shape != b.shape or a.ndim == 0 or a.dtype.kind not in "fiub":
        return found
    one, other = (
        np.asarray(array, np.float64).reshape(-1, array.shape[-1] if array.ndim > 1 else 1) for array in (a, b)
    )
    with np.errstate(invalid="ignore"):
        scale = float(np.sqrt(np.mean(np.square(one)))) if tolerance.scaled and one.size else 1.0
        limits = tolerance.atol * scale + tolerance.rtol * np.abs(one)
        left = np.flatnonzero(~(np.abs(one - other) <= limits).all(axis=1))
        if left.size > _MOST:
            return found
        free = list(left)
        lonely = []
        for i in left:
            gaps = np.abs(other[free] - one[i])
            fitting = np.flatnonzero((gaps <= limits[i]).all(axis=1))
            if fitting.size:
                del free[int(fitting[0])]
            else:
                lonely.append(int(i))
    if lonely:
        if one.shape[1] <= _SCORE or len(lonely) * 2 > len(left):
            return found
        scores, others = np.sort(one[lonely, _SCORE]), np.sort(other[free, _SCORE])
        if not np.allclose(scores, others, rtol=tolerance.rtol, atol=tolerance.atol):
            return found
    text = f"{counted(len(left), 'row')} of {len(one)} in another order, with equal scores"
    return replace(found, agrees=True, message=text, differing=0)
