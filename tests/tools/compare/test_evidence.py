"""Pairs by values, by what follows from a tensor, and up to factors and orders of axes."""

from __future__ import annotations

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.analysis.builder import packed
from irexec.dtypes.elements import F32
from irexec.ir.graph import Node, Value
from irexec.tools.arrays.agreement import Agreement
from irexec.tools.compare import Comparison, compare, summary
from irexec.tools.compare.comparison import ComparedLayer, Divergence, TensorRow
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import KnownConstants, layer
from irexec.tools.compare.pairing import order_of_axes, wrong_pairs
from irexec.tools.compare.pairs import Pairs
from irexec.tools.compare.rows import Found, Rows

RNG = np.random.default_rng(3)
KERNELS = [RNG.normal(size=size).astype(np.float32) for size in ((6, 3, 3, 3), (5, 6, 3, 3))]
SCALES = [RNG.uniform(0.5, 2, (1, len(kernel), 1, 1)).astype(np.float32) for kernel in KERNELS]
SHIFTS = [RNG.normal(size=(1, len(kernel), 1, 1)).astype(np.float32) for kernel in KERNELS]


def convolution(b: Builder, x: Value, weights: np.ndarray, name: str, pad: int = 1) -> Value:
    pads = {"pads_begin": (1, pad), "pads_end": (1, 1)}
    return b.emit("Convolution", x, weights, name=name, strides=(1, 1), dilations=(1, 1), **pads)


def scaled() -> Model:
    """Two convolutions with scale and shift after each."""
    b = Builder("a")
    x = b.parameter("f32", (1, 3, 8, 8), "x")
    for i, (kernel, scale, shift) in enumerate(zip(KERNELS, SCALES, SHIFTS, strict=True)):
        x = b.emit("Multiply", convolution(b, x, kernel, f"conv{i}"), scale, name=f"scale{i}")
        x = b.emit("Relu", b.emit("Add", x, shift, name=f"shift{i}"), name=f"relu{i}")
    b.result(b.emit("ReduceMean", x, np.array([2, 3]), keep_dims=False, name="mean"))
    return b.model()


def folded(fault: str = "") -> Model:
    """The same with the scales folded into the weights, under other names, with a fault."""
    b = Builder("b")
    x = b.parameter("f32", (1, 3, 8, 8), "x")
    for i, (kernel, scale, shift) in enumerate(zip(KERNELS, SCALES, SHIFTS, strict=True)):
        weights = kernel * scale.reshape(-1, 1, 1, 1)
        weights[0, 0, 0, 0] += 3.0 * (fault == f"weight{i}")
        moved = shift + np.float32(0.5) * (fault == f"shift{i}")
        x = convolution(b, x, weights, f"B{i}", pad=2 if fault == f"pad{i}" else 1)
        x = b.emit("Add", x, moved, name=f"S{i}")
        x = x if fault == f"relu{i}" else b.emit("Relu", x, name=f"R{i}")
    b.result(b.emit("ReduceMean", x, np.array([2, 3]), keep_dims=False, name="M"))
    return b.model()


def likely(found: Comparison) -> list[str]:
    assert found.first is not None
    return [layer.name for layer in found.first.likely]


def test_a_scale_that_is_folded_into_weights_is_not_a_fault() -> None:
    assert compare(scaled(), folded()).agrees


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        ("weight0", {"S0", "B0"}), ("weight1", {"S1", "B1"}), ("shift0", {"S0", "B0"}), ("shift1", {"S1", "B1"}),
        ("pad0", {"S0", "B0"}), ("pad1", {"S1", "B1"}),
    ],
)  # fmt: skip
def test_a_fault_beside_folded_scales_is_traced(fault: str, names: set[str]) -> None:
    """The tensors after the fault are paired from the result backwards: no value of theirs is that of A."""
    named = likely(compare(scaled(), folded(fault)))
    own = fault.replace("weight", "B").replace("pad", "B").replace("shift", "S")
    assert own in named and set(named) <= names


def test_constants_that_were_folded_are_not_unknown() -> None:
    a, b = scaled(), folded()
    assert not any(node.type == "Convolution" for node in KnownConstants(a).unknown(b))


def constant(array: np.ndarray) -> Node:
    return Node(0, "c", "Constant", "opset1", constant=packed(array, F32))


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 1, 0, 2), (1, 0, 2, 3)])
def test_the_order_of_axes_is_found(order: tuple[int, ...]) -> None:
    array = RNG.normal(size=(2, 3, 2, 4)).astype(np.float32)
    assert order_of_axes(array, array.transpose(order)) == order
    assert order_of_axes(array, array.transpose(order) + 1) is None
    assert order_of_axes(array, array) is None


def channels(*, last: bool, fault: bool = False) -> Model:
    """A chain between two convolutions, with channels last or second."""
    b = Builder("m")
    x = convolution(b, b.parameter("f32", (1, 3, 8, 8), "x"), KERNELS[0], "first")
    factor, shift = (array.reshape(6) if last else array.reshape(6, 1, 1) for array in (SCALES[0], SHIFTS[0]))
    if last:
        x = b.emit("Transpose", x, np.array([0, 2, 3, 1]), name="to")
    names = ("n1", "n2", "n3") if last else ("times", "plus", "tanh")
    x = b.emit("Multiply", x, factor, name=names[0])
    x = b.emit("Add", x, shift + np.float32(0.1) * fault, name=names[1])
    x = b.emit("Tanh", x, name=names[2])
    if last:
        x = b.emit("Transpose", x, np.array([0, 3, 1, 2]), name="back")
    b.result(convolution(b, x, KERNELS[1], "second"))
    return b.model()


def test_tensors_with_channels_last_are_pairs() -> None:
    assert compare(channels(last=False), channels(last=True)).agrees
    found = compare(channels(last=False), channels(last=True, fault=True))
    paired = {row.b.name: (row.a.name, row.state) for row in found.rows if row.a is not None}
    assert paired["n1"] == ("times", "agrees")
    assert likely(found)[0] in ("n2", "n3") and "n2" in likely(found)


def test_a_transpose_that_moves_an_axis_of_size_1_is_named() -> None:
    """The elements keep their order, so that values alone do not show the fault."""

    def model(axes: list[int]) -> Model:
        b = Builder("m")
        x = b.emit("Relu", b.parameter("f32", (1, 6, 4), "x"), name="relu")
        x = b.emit("Transpose", x, np.array(axes), name="move")
        b.result(b.emit("MatMul", x, RNG_MATRIX, name="product"))
        return b.model()

    assert "move" in likely(compare(model([0, 1, 2]), model([1, 0, 2])))


def test_a_transpose_to_another_order_is_named() -> None:
    """Its tensor has all values of that of A, so that the next layer is the first that differs in more than the order."""

    def model(axes: list[int]) -> Model:
        b = Builder("m")
        x = b.emit("Tanh", b.parameter("f32", (1, 6, 6, 4), "x"), name="tanh")
        x = b.emit("Transpose", x, np.array(axes), name="move")
        x = b.emit("Reshape", x, np.array([4, 36]), special_zero=False, name="flat")
        b.result(b.emit("Softmax", x, axis=1, name="y"))
        return b.model()

    assert "move" in likely(compare(model([0, 3, 1, 2]), model([0, 3, 2, 1])))
    assert "move" in likely(compare(model([0, 3, 1, 2]), model([3, 0, 2, 1])))


RNG_MATRIX = RNG.normal(size=(4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "largest", "results_agree", "is_wrong"),
    [
        ("float32", None, False, False), ("int64", None, False, True), ("int64", 1.0, False, False),
        ("float32", None, True, True), ("float32", 1.0, True, False),
    ],
)  # fmt: skip
def test_another_shape_is_evidence_of_floats_alone_and_only_where_results_differ(
    kind: str, largest: float | None, results_agree: bool, is_wrong: bool
) -> None:
    """Exporters compute sizes in layers of their own, and place axes of size 1 differently.

    Both layers read the same, and the one of B reads a constant that A does not have.
    """

    def model() -> Model:
        b = Builder("m")
        b.result(b.emit("Relu", b.parameter("f32", (8,), "x"), name="y"))
        return b.model()

    a, b = model(), model()
    (one, x), (other, y) = (
        [node.outputs[0] for node in m.nodes if node.type in ("Relu", "Parameter")][::-1] for m in (a, b)
    )
    agreement = Agreement("y", False, largest, "differs")
    found = Found(TensorRow(layer(one), layer(other), "order", kind, (8,), agreement), other, (1,))
    rows = Rows(Pairs(by_b={other: one, y: x}), b, (found,))
    wrong = wrong_pairs(rows, {}, lambda one, other: False, lambda value: True, results_agree=results_agree)
    assert (other in wrong) is is_wrong


@pytest.mark.parametrize("index", [0, 2])
def test_another_size_of_a_tensor_is_not_a_pair(index: int) -> None:
    """One exporter reads the height where the other reads the size of the batch."""

    def model(index: int) -> Model:
        b = Builder("m")
        b.result(b.emit("Gather", b.parameter("i64", (3,), "x"), np.array(index), np.array(0), name="size"))
        return b.model()

    a, b = model(0), model(index)
    (one, x), (other, y) = (
        [node.outputs[0] for node in m.nodes if node.type in ("Gather", "Parameter")][::-1] for m in (a, b)
    )
    row = TensorRow(layer(one), layer(other), "neighbours", "int64", (), Agreement("size", False, 1.0, "differs"))
    rows = Rows(Pairs(by_b={other: one, y: x}), b, (Found(row, other, (1,)),))
    wrong = wrong_pairs(rows, {}, lambda one, other: False, lambda value: False, results_agree=False)
    assert (other in wrong) is (index != 0)


def test_a_guess_of_another_shape_confirms_no_size() -> None:
    """A Broadcast to A's size gives A's shape, whatever the layer of the size computes: one exporter joins the states of
    two recurrent layers, and splits them behind the Broadcast."""

    def model(count: int) -> Model:
        b = Builder("m")
        size = b.emit("Concat", np.array([count]), b.parameter("i64", (1,), "x"), axis=0, name="size")
        b.result(b.emit("Broadcast", np.float32(0), size, name="zeros"))
        return b.model()

    a, b = model(1), model(2)
    values = [{node.name: node.outputs[0] for node in m.nodes if node.name in ("x", "size", "zeros")} for m in (a, b)]
    partners = {values[1][name]: values[0][name] for name in values[1]}

    def row(name: str, kind: str, largest: float | None, position: int) -> Found:
        agreement = Agreement(name, False, largest, "differs")
        one, other = values[0][name], values[1][name]
        return Found(TensorRow(layer(one), layer(other), "neighbours", kind, (2,), agreement), other, (position,))

    rows = Rows(Pairs(by_b=partners), b, (row("size", "int64", 1.0, 1), row("zeros", "float32", None, 2)))
    follows = {values[1]["size"]: False, values[1]["zeros"]: True}
    wrong = wrong_pairs(rows, follows, lambda one, other: False, lambda value: False, results_agree=False)
    assert values[1]["size"] in wrong
    again = (row("size", "int64", 1.0, 1), row("zeros", "float32", 1.0, 2))
    kept = wrong_pairs(
        Rows(Pairs(by_b=partners), b, again),
        follows,
        lambda one, other: False,
        lambda value: False,
        results_agree=False,
    )
    assert values[1]["size"] not in kept


def test_constants_that_a_has_in_several_layers_are_known() -> None:
    """(x + b) * s - t is x * s + (b * s - t)."""
    b_, s_, t_ = (RNG.normal(size=9).astype(np.float32) for _ in range(3))
    left = RNG.normal(size=9).astype(np.float32)

    def model(shift: np.ndarray) -> Model:
        b = Builder("m")
        x = b.parameter("f32", (4, 9), "x")
        b.result(b.emit("Add", b.emit("Multiply", x, s_), shift, name="shift"))
        return b.model()

    a = Builder("a")
    x = a.parameter("f32", (4, 9), "x")
    y = a.emit("Subtract", a.emit("Multiply", a.emit("Add", x, b_), s_), t_)
    a.result(a.emit("MatMul", y, a.emit("Unsqueeze", left, np.array(1))))
    known = KnownConstants(a.model())
    assert not known.unknown(model(b_ * s_ - t_))
    assert [node.name for node in known.unknown(model(b_ * s_ + t_))] == ["shift"]


def test_a_constant_that_layers_of_a_compute_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bias of B has the values of a Sigmoid of A; only the changed weights are unknown."""
    table, weights = (RNG.normal(size=(6, 6)).astype(np.float32) for _ in range(2))
    described, seen = summary.first_divergence, []

    def spy(evidence: Evidence, rows: Rows) -> tuple[Divergence | None, tuple[ComparedLayer, ...]]:
        seen.append({node.name for node in evidence.unknown_constants})
        return described(evidence, rows)

    def model(name: str) -> Model:
        b = Builder(name)
        x = b.emit("Multiply", b.parameter("f32", (6, 6), "x"), table, name="table")
        y = b.emit("MatMul", b.emit("Add", x, table + 1), weights + (name == "B"), name="product")
        bias = b.emit("Sigmoid", b.constant(table - 1)) if name == "A" else b.constant(1 / (1 + np.exp(1 - table)))
        b.result(b.emit("Add", y, bias, name="bias"))
        return b.model()

    monkeypatch.setattr(summary, "first_divergence", spy)
    compare(model("A"), model("B"))
    assert seen == [{"product"}]
