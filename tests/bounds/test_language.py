"""Bounds of operations of language models exclude the faults that people make; tests.bounds.test_soundness has what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval
from irexec.testing import Case, Typed
from irexec.testing.laws import kernel, read_only
from tests.bounds.rows import row_bounds
from tests.support.cases import families

Change = Callable[[np.ndarray], np.ndarray]
_ROWS = {
    f"{row.type} {row.name}": row
    for family in ("language", "recurrences")
    for row in families()[family]
    if isinstance(row, Case)
}
_PAGED = "PagedAttentionExtension"


def later(x: np.ndarray) -> np.ndarray:
    """The table one position late."""
    return np.roll(x, 1, -2)


def times(factor: float) -> Change:
    return lambda x: (x * factor).astype(x.dtype)


# A row, its outputs, and a fault: changed inputs by their index, or attributes.
FAULTS: list[tuple[str, Mapping[int, Change], Mapping[str, str]]] = [
    ("RMS scale", {}, {"epsilon": "1.1e-5"}),
    ("RMS scale", {1: lambda x: x + np.float32(1e-5)}, {}),
    ("RoPE halves", {1: later, 2: later}, {}),
    ("RoPE halves", {2: np.negative}, {}),
    ("RoPE positions", {3: lambda x: (x + 1) % 9}, {}),
    ("RoPE neighbours", {1: lambda x: np.roll(x, 4, -1)}, {}),
    (f"{_PAGED} limited context", {12: lambda x: x + 1}, {}),
    (f"{_PAGED} two sequences", {9: times(1.0001)}, {}),
    (f"{_PAGED} two sequences", {1: later}, {}),
    (f"{_PAGED} sliding window", {10: lambda x: x - 1}, {}),
    (f"{_PAGED} slopes", {11: times(1.001)}, {}),
    (f"{_PAGED} sinks", {20: np.zeros_like}, {}),
    (f"{_PAGED} tree of tokens", {26: np.ones_like}, {}),
    (f"{_PAGED} images", {25: np.zeros_like}, {}),
    ("GatedDeltaNet plain", {4: times(0.9999)}, {}),
    ("GatedDeltaNet plain", {5: times(1.0001)}, {}),
    ("GatedDeltaNet plain", {3: later}, {}),
    ("GatedDeltaNet normalized", {}, {"k_l2_norm_eps": "0.2001"}),
    ("SelectiveSSM plain", {0: times(1.0001)}, {}),
    ("SelectiveSSM plain", {4: later}, {}),
    ("AUGRUCell plain", {5: lambda x: 1 - x}, {}),
    ("AUGRUSequence plain", {6: lambda x: np.roll(x, 1, 1)}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes"), FAULTS)
def test_a_fault_is_outside(name: str, inputs: Mapping[int, Change], attributes: dict[str, Any]) -> None:
    row = _ROWS[name]
    bound = row_bounds(row, ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    changed = tuple(
        Typed(x.element, np.asarray(inputs[i](x.array))) if i in inputs else x for i, x in enumerate(row.inputs)
    )
    wrong = replace(row, inputs=changed, attributes=row.attributes | attributes)
    assert bound.outside(kernel(wrong, read_only(wrong))[0]).any()


@pytest.mark.parametrize("tokens", [200])
def test_the_bound_of_a_long_delta_rule_does_not_grow(tokens: int) -> None:
    """With normalized keys an error decays with the state."""
    rng = np.random.default_rng(2)
    row = _ROWS["GatedDeltaNet normalized"]
    shapes = [(1, tokens, *x.array.shape[2:]) if i != 3 else (1, *x.array.shape[1:]) for i, x in enumerate(row.inputs)]
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    arrays[4], arrays[5] = -np.abs(arrays[4]), np.abs(arrays[5])
    long = replace(row, inputs=tuple(Typed(x.element, a) for x, a in zip(row.inputs, arrays, strict=True)))
    bound = row_bounds(long, ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    assert not bound.outside(kernel(long, read_only(long))[0]).any()
    assert bound.radius[:, -1].max() < 3 * bound.radius[:, 20].max() < 1e-4
