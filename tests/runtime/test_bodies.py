"""Bodies that run again and again: their steps are bound once, and their results are those of every iteration."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import Model, Tensor, opset
from irexec.backend.calls import NativeKernel
from irexec.native.library import library

X = np.linspace(-2, 2, 5 * 2 * 8, dtype=np.float32).reshape(5, 2, 8)


def model() -> Model:
    """A loop whose body has an If that may return the value it was given; the sums of all iterations are collected."""
    x, start = opset.parameter([5, 2, 8], "f32", "x"), opset.parameter([2, 8], "f32", "start")

    def body(_: Tensor, total: Tensor, row: Tensor) -> opset.Iteration:
        added = total * 0.5 + opset.squeeze(row, 0)
        scaled = opset.tanh(added) * 2
        positive = opset.reduce_sum(added, [0, 1]) > 0
        kept = opset.if_(positive, lambda: added, lambda: opset.tanh(scaled) + scaled)
        return opset.Iteration([kept], slices=[opset.unsqueeze(kept, 0), opset.unsqueeze(total, 0)])

    last, kept, before = opset.loop(body, [start], sliced=[x])
    return Model([last, kept, before], [x, start])


def expected(x: np.ndarray, start: np.ndarray) -> list[np.ndarray]:
    total, kept, before = start.astype(np.float64), [], []
    for row in x:
        before.append(total)
        added = total * 0.5 + row
        scaled = np.tanh(added) * 2
        total = added if added.sum() > 0 else np.tanh(scaled) + scaled
        kept.append(total)
    return [total, np.stack(kept), np.stack(before)]


@pytest.mark.parametrize("threads", [1, 2])
def test_every_iteration_has_its_own_results(threads: int) -> None:
    compiled = irexec.compile_model(model(), threads=threads)
    held = []
    for seed in range(3):
        start = np.random.default_rng(seed).standard_normal((2, 8), np.float32)
        held.append((list(compiled([X, start]).values()), expected(X, start)))
    # Those of earlier runs stay as they are.
    for found, right in held:
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(library() is None, reason="the C kernels were not built")
def test_steps_of_bodies_are_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, start = irexec.compile_model(model(), threads=1), np.zeros((2, 8), np.float32)
    for _ in range(3):
        compiled([X, start])
    bound, bind = [], NativeKernel.bound
    monkeypatch.setattr(NativeKernel, "bound", lambda self, *given: bound.append(self) or bind(self, *given))
    compiled([X, start])
    assert bound == []
