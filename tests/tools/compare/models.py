"""Models that differ in one layer, and a stand-in for another runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from irexec import Builder, Model, opset
from irexec.authoring.tensor import Tensor
from irexec.ir.graph import BackEdge, Body, PortMap, Value
from irexec.tools.compare import options, run
from irexec.tools.engines.runtimes import Arrays, Runtime, open_runtime

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


def nested(limit: float = 1000, first: int = 1, *, grows: bool = False) -> Model:
    """A loop of three iterations around one of ``first``, ``first`` + 1 and ``first`` + 2 iterations.

    The state x f32[2, 3] is incremented by the outer loop; the inner one doubles it and clips it at ``limit``, and adds
    a row of ones if ``grows``.
    """
    x = opset.parameter([-1 if grows else 2, 3], "f32", "x")

    def inner(_: Tensor, state: Tensor) -> opset.Iteration:
        longer = opset.concat(state, np.ones((1, 3), np.float32), axis=0) if grows else state
        return opset.Iteration(
            [opset.clamp(opset.multiply(longer, 2.0, name="doubled"), min=-1000.0, max=limit, name="clipped")]
        )

    def outer(i: Tensor, state: Tensor) -> opset.Iteration:
        more = opset.add(state, 1.0, name="more")
        return opset.Iteration(opset.loop(inner, [more], trip_count=i + np.int64(first), name="inner"))

    (last,) = opset.loop(outer, [x], trip_count=3, name="outer")
    return Model([opset.result(last, name="y")], [x])


def nested_deeper(limit: float = 1000) -> Model:
    """Loops of 3, i + 1 and j iterations: the innermost one multiplies by 1.5 and clips at ``limit``."""
    x = opset.parameter([2, 3], "f32", "x")

    def innermost(_: Tensor, state: Tensor) -> opset.Iteration:
        return opset.Iteration(
            [opset.clamp(opset.multiply(state, 1.5, name="scaled"), min=-1000.0, max=limit, name="clipped")]
        )

    def inner(j: Tensor, state: Tensor) -> opset.Iteration:
        return opset.Iteration(opset.loop(innermost, [state], trip_count=j + np.int64(0), name="innermost"))

    def outer(i: Tensor, state: Tensor) -> opset.Iteration:
        return opset.Iteration(opset.loop(inner, [state + 1.0], trip_count=i + np.int64(1), name="inner"))

    (last,) = opset.loop(outer, [x], trip_count=3, name="outer")
    return Model([opset.result(last, name="y")], [x])


def branching(taken: int, limit: float = 1000) -> Model:
    """A loop of three iterations, whose iteration ``taken`` doubles x f32[2, 3] and clips it, and the others add 1."""
    x = opset.parameter([2, 3], "f32", "x")

    def outer(i: Tensor, state: Tensor) -> opset.Iteration:
        chosen = opset.if_(
            opset.equal(i, np.int64(taken)),
            lambda: opset.clamp(state * 2.0, min=-1000.0, max=limit, name="clipped"),
            lambda: opset.add(state, 1.0, name="more"),
            name="choice",
        )
        return opset.Iteration([chosen])

    (last,) = opset.loop(outer, [x], trip_count=3, name="outer")
    return Model([opset.result(last, name="y")], [x])


# A stand-in of another runtime, so that a test depends neither on its release nor on the processor.


Compute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Recorded(Runtime):
    """A runtime that gives what a function computes, by the names of tensors.

    Args:
        name: of the runtime.
        model: the graph; the shapes of its inputs are static.
        compute: the function.
    """

    def __init__(self, name: str, model: Model, compute: Compute) -> None:
        super().__init__(name, model)
        self._compute = compute
        zeros = {port.name: np.zeros(port.shape, port.element.carrier) for port in model.inputs}  # type: ignore[arg-type, union-attr]
        self._names = set(compute(zeros))

    def gives(self, value: Value) -> bool:
        return value.name in self._names

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        return [[arrays[value.name] for value in values] for arrays in map(self._compute, runs)]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, compute: Compute) -> None:
    """Let the function stand for the runtime of that name in comparisons."""

    def opened(asked: str, model: Model, **rest: object) -> Runtime:
        return Recorded(name, model, compute) if asked == name else open_runtime(asked, model, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(options, "open_runtime", opened)
    monkeypatch.setattr(run, "require_runtime", lambda name: None)
