"""Random weights in place of a model's own, where the verdict allows it."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.evaluate import rounded
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check

_SEEDS = 3
_SMALL = 8
"""Constants of fewer elements are scales, shapes and axes, and stay."""


def without_weights(candidate: Candidate, check: Check) -> tuple[Candidate, tuple[str, ...]]:
    """The candidate with random weights, if it fails with them.

    All weights are replaced together; if that does not fail, each for itself.

    Returns:
        The candidate, and the names of the constants that keep their values, since the failure needs them.
    """
    names = [node.name for node in candidate.model.nodes if _is_weight(node)]
    for seed in range(_SEEDS):
        made = _with_random(candidate, names, seed)
        if check(made) is not None:
            return made, ()
    replaced: list[str] = []
    for name in names:
        if check(_with_random(candidate, [*replaced, name], 0)) is not None:
            replaced.append(name)
    return _with_random(candidate, replaced, 0), tuple(name for name in names if name not in replaced)


def _is_weight(node: Node) -> bool:
    constant = node.constant
    return (
        constant is not None and constant.count >= _SMALL and (constant.element.is_float or constant.element.bits <= 8)
    )


def _with_random(candidate: Candidate, names: Sequence[str], seed: int) -> Candidate:
    model = copy.copy(candidate.model)
    rng = np.random.default_rng(seed)
    for node in model.nodes:
        if node.name in names and node.constant is not None:
            array = constant_value(node.constant)
            node.constant = packed(rounded(_random_like(array, rng), node.constant.element), node.constant.element)
    return Candidate(model, candidate.inputs, candidate.expected)


def _random_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal values of the same mean and standard deviation; integers evenly from the same range."""
    if array.dtype.kind in "iub":
        low, high = int(array.min()), int(array.max())
        return rng.integers(low, high + 1, array.shape).astype(array.dtype)
    finite = array[np.isfinite(array)].astype(np.float64)
    mean, deviation = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
    limits = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    # Variances stay positive, and scales in their range.
    values = np.clip(rng.normal(mean, deviation, array.shape), *limits)
    return np.asarray(values, array.dtype)
