"""Models that differ in one layer."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model
from irexec.ir.graph import BackEdge, Body, PortMap

RNG = np.random.default_rng(0)


W1, W2 = (RNG.standard_normal((6, 6)).astype(np.float32) for _ in range(2))


def chain(
    w1: np.ndarray = W1, w2: np.ndarray = W2, *, relu: str = "Relu", prefix: str = "", first: str = "MatMul"
) -> Model:
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


def growing(limit: float = 100, trips: int = 4) -> Model:
    """A loop whose state x f32[1, 3] gets a row of ones in each iteration, is doubled and clipped at ``limit``."""
    inner = Builder("body")
    state = inner.parameter("f32", (-1, 3), "state")
    longer = inner.emit("Concat", state, inner.constant(np.ones((1, 3), np.float32)), axis=0, name="longer")
    doubled = inner.emit("Multiply", longer, inner.constant(np.float32(2)), name="doubled")
    result = inner.result(inner.emit("Clamp", doubled, min=-100.0, max=limit, name="clipped"), "next")
    condition = inner.result(inner.constant(np.array(True), "boolean"), "condition")
    maps = [
        PortMap("input", 2, state.node.id),
        PortMap("output", 3, result.id),
        PortMap("output", -1, condition.id, {"purpose": "execution_condition"}),
    ]
    outer = Builder("growing")
    x = outer.parameter("f32", (1, 3), "x")
    given = [outer.constant(np.array(trips, np.int64)), outer.constant(np.array(True), "boolean"), x]
    bodies = {"body": Body(inner.graph, maps, [BackEdge(result.id, state.node.id)])}
    outer.result(outer.emit("Loop", *given, version=5, name="loop", bodies=bodies)[0], "y")
    return outer.model()
