"""Models that differ in one layer."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model

RNG = np.random.default_rng(0)


W1, W2 = (RNG.standard_normal((6, 6)).astype(np.float32) for _ in range(2))


def chain(w1: np.ndarray = W1, w2: np.ndarray = W2, *, relu: str = "Relu", prefix: str = "", first: str = "MatMul") -> Model:
    """Two products with a Relu between them."""
    builder = Builder("m")
    x = builder.parameter("f32", (4, 6), f"{prefix}x")
    y = builder.emit(first, x, builder.constant(w1, name=f"{prefix}w1"), name=f"{prefix}one")
    y = builder.emit(relu, y, name=f"{prefix}relu")
    y = builder.emit("MatMul", y, builder.constant(w2, name=f"{prefix}w2"), name=f"{prefix}two")
    builder.result(builder.emit("Softmax", y, axis=1, name=f"{prefix}soft"))
    return builder.model()


def changed(weights: np.ndarray) -> np.ndarray:
    other = weights.copy()
    other[:, 3] += 5
    return other
