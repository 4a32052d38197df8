"""Why results differ where no layer is at fault: amplified rounding, NaN and infinities of the model itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import readers
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.opponent import Tensors

_PERTURBED = 2
_STEP = 2.0**-12
"""Relative perturbation: large beside the rounding of f32, and small enough for a layer to be nearly linear."""


def is_finite(array: np.ndarray) -> bool:
    """Whether an array has neither NaN nor infinities."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def first_not_finite(order: Sequence[Node], tensors: Tensors) -> Value | None:
    """The first tensor with NaN or infinities all of whose known inputs are finite; a Constant counts as well."""
    for node in order:
        for source in node.inputs:
            constant = None if source is None else source.node.constant
            if constant is not None and not is_finite(constant_value(constant)):
                return source
        for value in node.outputs:
            if value in tensors and not is_finite(tensors[value]):
                return value
    return None


def amplification(order: Sequence[Node], ours: Tensors, theirs: Tensors, before: Iterable[Node]) -> tuple[
    Value, float, float, float
] | None:  # fmt: skip
    """The layer that enlarges the relative difference most among those before a result.

    Returns:
        Its tensor, the relative difference of it and of its inputs, and their ratio.
    """
    wanted, found = set(before), None
    for node in order:
        if node not in wanted:
            continue
        sources = [value for value in node.inputs if value is not None and value in ours and value in theirs]
        difference = max((_relative(ours[value], theirs[value]) for value in sources), default=0.0)
        for value in node.outputs:
            if value in ours and value in theirs and 0 < difference < math.inf:
                own = _relative(ours[value], theirs[value])
                if own < math.inf and (found is None or own / difference > found[3]):
                    found = value, own, difference, own / difference
    return found


def condition(evidence: Evidence, value: Value, given: Tensors) -> float | None:
    """An estimate of the condition number of a layer, from two runs of irexec with perturbed inputs.

    Each element is moved up or down at random. The estimate is the largest ratio of the relative changes of the layer's
    tensor and of its inputs; None if the layer does not run alone.
    """
    exact = evidence.alone([value], given, "irexec").get(value)
    read = readers(evidence.region(value, given))
    moved = [source for source in read if source in given and given[source].dtype.kind == "f"]
    if exact is None or not moved:
        return None
    rng, found = np.random.default_rng(0), 0.0
    for _ in range(_PERTURBED):
        other = {one: given[one] * (1 + _STEP * rng.choice((-1, 1), given[one].shape)) for one in moved}
        cast = {one: array.astype(given[one].dtype) for one, array in other.items()}
        made = evidence.alone([value], {**given, **cast}, "irexec").get(value)
        found = max(found, math.inf if made is None else _relative(exact, made) / _STEP)
    return found if found < math.inf else None


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Root mean square of the difference divided by that of our tensor."""
    if ours.shape != theirs.shape or ours.dtype.kind not in "fiub":
        return math.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    size = float(np.sqrt(np.mean(a * a))) if a.size else 0.0
    with np.errstate(invalid="ignore"):  # equal infinities have no difference that is a number
        difference = float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0
    return difference / size if size else (math.inf if difference else 0.0)
