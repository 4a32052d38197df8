"""Which TensorIterators are run as sequences, and that they give what their iterations give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from irexec.ir.graph import BackEdge, Body, PortMap

BATCH, STEPS, INNER, SIZE = 2, 5, 3, 4
FORWARD = {"start": "0", "end": "-1", "stride": "1", "part_size": "1"}
REVERSE = {"start": "-1", "end": "0", "stride": "-1", "part_size": "1"}
GATES = {"LSTMCell": (4, 2), "GRUCell": (3, 1), "RNNCell": (1, 1)}


def iterator(
    cell: str, axis: int = 1, way: dict[str, str] = FORWARD, *, out: dict[str, str] | None = None, gathered: int = 0, mix: bool = False,
    crossed: bool = False, **attributes: Any,
) -> irexec.Model:  # fmt: skip
    """A TensorIterator around one cell: the states that are last, then those of all steps."""
    gates, states = GATES[cell]
    biases = 4 if attributes.get("linear_before_reset") else gates
    rng = np.random.default_rng(0)
    weights = [
        rng.uniform(-1, 1, shape).astype(np.float32)
        for shape in ((gates * SIZE, INNER), (gates * SIZE, SIZE), (biases * SIZE,))
    ]
    inner = Builder("body")
    part = inner.parameter(F32, (1, BATCH, INNER) if axis == 0 else (BATCH, 1, INNER), "part")
    before = [inner.parameter(F32, (BATCH, SIZE), f"before{k}") for k in range(states)]
    x = inner.emit("Squeeze", part, [axis], version=1)
    after = inner.emit(cell, inner.emit("Tanh", x) if mix else x, *before, *weights, hidden_size=SIZE, **attributes)
    after = after if isinstance(after, tuple) else (after,)
    each = inner.result(inner.emit("Unsqueeze", after[gathered], [axis]))
    last = [inner.result(value) for value in after]
    cuts = [{"axis": str(axis)} | way, {"axis": str(axis)} | (out or way)]
    maps = [PortMap("input", 0, part.node.id, cuts[0])]
    maps += [PortMap("input", 1 + k, value.node.id) for k, value in enumerate(before)]
    maps += [PortMap("output", 1 + states + k, node.id) for k, node in enumerate(last)]
    maps.append(PortMap("output", 1 + 2 * states, each.id, cuts[1]))
    back = [
        BackEdge(node.id, value.node.id) for node, value in zip(last[::-1] if crossed else last, before, strict=True)
    ]
    outer = Builder("model")
    fed = [outer.parameter(F32, (STEPS, BATCH, INNER) if axis == 0 else (BATCH, STEPS, INNER), "x")]
    fed += [outer.parameter(F32, (BATCH, SIZE), f"state{k}") for k in range(states)]
    for value in outer.emit("TensorIterator", *fed, bodies={"body": Body(inner.model(), maps, back)}):
        outer.result(value)
    return outer.model()


def fed(model: irexec.Model) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [
        rng.standard_normal([int(size) for size in p.outputs[0].fact.shape or ()]).astype(np.float32)
        for p in model.parameters
    ]


def is_sequence(model: irexec.Model) -> bool:
    """Whether no body is left, and the iterations agree with what is run in their place."""
    compiled, plain = irexec.compile_model(model), irexec.compile_model(model, optimize=False)
    given = fed(model)
    for array, reference in zip(compiled(given).values(), plain(given).values(), strict=True):
        assert array.shape == reference.shape
        np.testing.assert_allclose(array, reference, rtol=1e-5, atol=1e-5)
    iterates = [
        any(step.report.type == "TensorIterator" for step in c.program.plan((), None).steps) for c in (compiled, plain)
    ]
    assert iterates[1]
    return not iterates[0]


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("way", [FORWARD, REVERSE], ids=["forward", "reverse"])
def test_a_cell_alone_is_a_sequence(cell: str, axis: int, way: dict[str, str]) -> None:
    assert is_sequence(iterator(cell, axis, way))


def test_attributes_of_the_cell_count() -> None:
    assert is_sequence(iterator("GRUCell", linear_before_reset=True))
    assert is_sequence(iterator("GRUCell", clip=0.5))
    assert is_sequence(iterator("RNNCell", activations=("relu",)))


@pytest.mark.parametrize(
    "model",
    [
        iterator("LSTMCell", mix=True),
        iterator("LSTMCell", gathered=1),
        iterator("LSTMCell", crossed=True),
        iterator("LSTMCell", way=FORWARD | {"start": "1"}),
        iterator("GRUCell", out=REVERSE),
    ],
    ids=["more than a cell", "cell states of all steps", "states crossed", "from the second step", "turned round"],
)
def test_what_a_sequence_cannot_do_is_iterated(model: irexec.Model) -> None:
    assert not is_sequence(model)
