"""What passes made of a model, and whether it still gives what the reference kernels give."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

import irexec
from tests.support.passes import optimized, types


def planned_types(model: irexec.Model, *passes: str) -> list[str]:
    """The types of the operations after these passes alone."""
    return types(optimized(model, passes)[0])


def reasons(model: irexec.Model, *passes: str) -> list[str]:
    """Why the passes left operations alone."""
    return [reason for found in optimized(model, passes)[1].report.reasons for _, reason in found]


def agrees(model: irexec.Model, tolerance: float, *, sizes: Collection[int] = (1, 7), scale: float = 3) -> None:
    """Optimised and reference results are close, relative to the largest value; unknown sizes become each of ``sizes``."""
    fast, reference = irexec.compile_model(model), irexec.compile_model(model, optimize=False)
    rng = np.random.default_rng(0)
    for size in sizes:
        given = [_array(rng, port.shape, port.element, size, scale) for port in fast.inputs]
        for ours, theirs in zip(fast(given).values(), reference(given).values(), strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            limit = tolerance * np.abs(theirs.astype(np.float64)).max(initial=1e-9)
            np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=limit)


def _array(rng: np.random.Generator, shape: Any, element: Any, size: int, scale: float) -> np.ndarray:
    sizes = [one if isinstance(one, int) else size for one in shape]
    return (scale * rng.standard_normal(sizes)).astype(element.carrier)
