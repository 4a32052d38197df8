"""Reductions of models with planted faults, with every kind of check."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.ir.graph import BackEdge, Body, PortMap
from irexec.tools.reduce import (
    Candidate,
    Check,
    DoesNotFail,
    Failure,
    FindingCheck,
    ReduceOptions,
    Reduction,
    RuntimeCheck,
    ValuesCheck,
    recording,
    reduce,
)
from irexec.tools.reduce.checks import Files
from tests.support.paths import ROOT
from tests.support.tiers import some


class Own(Check):
    """A check that asks a function."""

    def __init__(self, fails: Callable[[Candidate], str | None]) -> None:
        self.fails, self.calls = fails, list[Candidate]()

    @property
    def identity(self) -> tuple[str]:
        return ("own",)

    def __call__(self, candidate: Candidate) -> Failure | None:
        self.calls.append(candidate)
        kind = self.fails(candidate)
        return None if kind is None else Failure(kind, kind)

    def command(self, files: Files) -> list[str]:
        return ["own", files.model]


def types(report: Reduction) -> list[str]:
    return [layer.type for layer in report.layers]


def has(*wanted: str) -> Callable[[Candidate], str | None]:
    return lambda candidate: "has" if set(wanted) <= {node.type for node in candidate.layers} else None


def chain(dynamic: bool = False) -> irexec.Model:
    """Twenty element-wise layers, a Reshape to a shape that is computed, and another ten."""
    builder = irexec.Builder("chain")
    x = start = builder.parameter("f32", ("?" if dynamic else 2, 12), "x")
    for i in range(10):
        x = builder.emit("Sigmoid", builder.emit("Multiply", x, np.float32(1.1), name=f"scale{i}"), name=f"gate{i}")
    shape = builder.emit(
        "Concat",
        builder.emit("Gather", builder.emit("ShapeOf", start), [0], 0, name="rows"),
        [3, 4],
        axis=0,
        name="shape",
    )
    x = builder.emit("Reshape", x, shape, special_zero=False, name="reshape")
    for i in range(10):
        x = builder.emit("Tanh", x, name=f"tanh{i}")
    builder.result(x, "y")
    return builder.model()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wanted", [("Reshape",), ("Concat",), ("Gather", "Tanh"), ("ShapeOf", "Sigmoid", "Tanh")])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.covering(1)
def test_the_layers_that_are_needed_are_left(wanted: tuple[str, ...], dynamic: bool) -> None:
    model = chain(dynamic)
    check = Own(has(*wanted))
    report = reduce(model, check, {"x": np.ones((2, 12), np.float32)})
    assert sorted(types(report)) == sorted(wanted)
    assert report.checks == len(check.calls) <= 60
    for candidate in [*check.calls, report.found]:
        irexec.compile_model(candidate.model)(candidate.inputs)


def test_candidates_are_static_and_shapes_are_constants() -> None:
    report = reduce(chain(dynamic=True), Own(has("Reshape")), {"x": np.ones((5, 12), np.float32)})
    assert [node.type for node in report.found.model.nodes] == ["Parameter", "Constant", "Reshape", "Result"]
    assert str(report.found.model.inputs[0].shape) == "(5, 12)"
    assert irexec.validate(report.found.model) == []


def test_shapes_are_kept_if_asked_for() -> None:
    report = reduce(
        chain(dynamic=True), Own(has("Tanh")), {"x": np.ones((5, 12), np.float32)}, ReduceOptions(keep_shapes=True)
    )
    shape = report.found.model.inputs[0].shape
    assert shape is not None and not isinstance(shape[0], int)
    assert report.found.inputs[report.found.model.inputs[0].name].shape == (5, 3, 4)


def test_shapes_are_kept_where_it_fails_only_so() -> None:
    def fails(candidate: Candidate) -> str | None:
        shape = candidate.model.inputs[0].shape if candidate.model.inputs else None
        return "open" if shape and not isinstance(shape[0], int) and has("Tanh")(candidate) else None

    report = reduce(chain(dynamic=True), Own(fails), {"x": np.ones((5, 12), np.float32)})
    assert types(report) == ["Tanh"]
    assert "sizes that the model leaves open" in report.notes[0]


def test_another_kind_of_failure_is_not_accepted() -> None:
    def fails(candidate: Candidate) -> str | None:
        kinds = {node.type for node in candidate.layers}
        return None if "Reshape" not in kinds else "both" if "Sigmoid" in kinds else "alone"

    assert sorted(types(reduce(chain(), Own(fails)))) == ["Reshape", "Sigmoid"]


def test_a_layer_is_replaced_by_its_input() -> None:
    """Between two layers that must stay connected, the others can only be bypassed."""

    def fails(candidate: Candidate) -> str | None:
        for node in candidate.layers:
            value = node.inputs[0]
            while node.type == "Reshape" and value is not None and value.node.type not in ("Parameter", "Constant"):
                if value.node.name == "gate2":
                    return "connected"
                value = value.node.inputs[0]
        return None

    report = reduce(chain(), Own(fails))
    assert [layer.name for layer in report.layers] == ["gate2", "reshape"]


def test_results_that_are_not_needed_go() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (4, 4), "x")
    for i, part in enumerate(builder.emit("Split", x, np.int64(0), num_splits=4, name="split")):
        builder.result(builder.emit("Relu", part, name=f"relu{i}"))
    report = reduce(builder.model(), Own(has("Split")))
    assert types(report) == ["Split"]
    assert len(report.found.model.outputs) == 1


def test_nothing_fails() -> None:
    with pytest.raises(DoesNotFail):
        reduce(chain(), Own(lambda candidate: None))


def test_nan_of_inputs_and_of_layers() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (3,), "x")
    y = builder.emit("Exp", builder.emit("Multiply", x, np.float32(1e4), name="large"), name="infinite")
    y = builder.emit("Subtract", y, y, name="nan")
    builder.result(builder.emit("Relu", builder.emit("Add", y, x, name="passed on"), name="after"))
    model, inputs = builder.model(), {"x": np.array([1, 2, -3], np.float32)}
    assert [layer.name for layer in reduce(model, ValuesCheck(["nan"]), inputs).layers] == ["nan"]
    assert reduce(model, ValuesCheck(["nan", "inf"]), inputs).layers[0].name == "infinite"


def loop(times: int, fault_at: int) -> irexec.Model:
    """A Loop that adds 1 to a counter, and takes the root of what becomes negative at one iteration."""
    outer = irexec.Builder("outer")
    x = outer.parameter("f32", (1,), "x")
    start = outer.emit("Abs", x, name="start")
    inner = irexec.Builder("body", inside=outer)
    state = inner.parameter("f32", (1,), "state")
    more = inner.constant(np.array([True]), name="more")
    count = inner.emit("Add", state, np.array([1], np.float32), name="count")
    room = inner.emit("Subtract", np.array([fault_at + 0.5], np.float32), count, name="room")
    root = inner.emit("Sqrt", room, name="root")
    done = [inner.result(more), inner.result(count), inner.result(root)]
    maps = [
        PortMap("input", 2, state.node.id),
        PortMap("output", -1, done[0].id, {"purpose": "execution_condition"}),
        PortMap("output", 3, done[2].id),
    ]
    body = Body(inner.graph, maps, [BackEdge(done[1].id, state.node.id)])
    (y,) = outer.emit("Loop", np.int64(times), np.array(True), start, bodies={"body": body}, name="loop")
    outer.result(outer.emit("Relu", y, name="end"))
    return outer.model()


@pytest.mark.parametrize("fault_at", [0, 3, 6])
def test_a_body_is_tried_as_a_model_of_its_own(fault_at: int) -> None:
    report = reduce(loop(7, fault_at), ValuesCheck(["nan"]), {"x": np.zeros(1, np.float32)})
    assert [layer.name for layer in report.layers] == ["root"]
    assert (report.found.inputs["room"] < 0).all()


def test_a_body_stays_whole_where_it_does_not_fail_alone() -> None:
    model = loop(3, 1)
    report = reduce(model, Own(has("Loop")), {"x": np.zeros(1, np.float32)})
    assert types(report) == ["Loop"]
    assert report.layers[0].inner == 3


def test_the_layers_of_a_variable_stay_together() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2,), "x")
    read = builder.emit(
        "ReadValue", np.zeros(2, np.float32), variable_id="v", variable_type="f32", variable_shape="2", name="read"
    )
    total = builder.emit("Add", read, builder.emit("Exp", x, name="exp"), name="total")
    builder.emit("Assign", total, variable_id="v", name="assign")
    builder.result(builder.emit("Relu", total, name="relu"))
    report = reduce(builder.model(), Own(has("ReadValue")))
    assert sorted(types(report)) == ["Assign", "ReadValue"]
    assert [finding for finding in irexec.validate(report.found.model) if finding.severity == "error"] == []


def test_what_is_assigned_after_a_fault_does_not_hide_it() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2,), "x")
    read = builder.emit(
        "ReadValue", np.zeros(2, np.float32), variable_id="v", variable_type="f32", variable_shape="2", name="read"
    )
    y = builder.emit("Sqrt", builder.emit("Add", read, x, name="total"), name="root")
    for i in range(12):
        y = builder.emit("Sigmoid", y, name=f"gate{i}")
    builder.emit("Assign", y, variable_id="v", name="assign")
    builder.result(y)
    report = reduce(builder.model(), ValuesCheck(["nan"]), {"x": np.array([1, -1], np.float32)})
    assert [layer.name for layer in report.layers] == ["root"]
    assert report.checks <= 12


def test_after_a_layer_that_cannot_be_run_declared_shapes_stand() -> None:
    model = chain()
    model.nodes[3].attributes["unknown"] = "1"
    gate = next(node for node in model.nodes if node.name == "gate4")
    gate.type = "Sigmoit"
    report = reduce(model, Own(has("Tanh", "Reshape")))
    assert sorted(types(report)) == ["Reshape", "Tanh"]
    report = reduce(model, FindingCheck("IR101"))
    assert [layer.name for layer in report.layers] == ["gate4"]


@pytest.mark.parametrize("wanted", [("Reshape",), ("ShapeOf", "Sigmoid", "Tanh")])
def test_values_that_do_not_fit_into_memory_are_recorded_when_they_are_needed(
    wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {"x": np.random.default_rng(0).random((2, 12), np.float32)}
    usual = reduce(chain(dynamic=True), Own(has(*wanted)), inputs)
    monkeypatch.setattr(recording.MemoryLimit, "left", lambda self, recently=False: 0)
    report = reduce(chain(dynamic=True), Own(has(*wanted)), inputs)
    assert report.layers == usual.layers
    assert report.found.inputs.keys() == usual.found.inputs.keys()
    for name, array in usual.found.inputs.items():
        np.testing.assert_allclose(report.found.inputs[name], array, rtol=1e-5)


def test_a_model_of_version_10() -> None:
    """Its f16 inputs are given in f32, and so are the inputs of what is cut out."""
    builder = irexec.Builder()
    x = builder.parameter("f16", (2,), "x")
    builder.result(builder.emit("Exp", builder.emit("Relu", x, name="relu"), name="exp"))
    model = builder.model()
    model.version = 10
    report = reduce(model, Own(has("Exp")), {"x": np.array([-1, 2], np.float32)})
    assert report.found.model.version == 10
    np.testing.assert_array_equal(report.found.inputs["relu"], np.array([0, 2], np.float32))
    assert irexec.compile_model(report.found.model)(report.found.inputs)[0].dtype == np.float32


def test_inputs_of_several_types(tmp_path: Path) -> None:
    builder = irexec.Builder()
    x, y = builder.parameter("bf16", (2, 3), "x"), builder.parameter("u8", (2, 3), "y")
    low = builder.emit("Convert", y, destination_type="i4", name="low")
    total = builder.emit(
        "Multiply",
        builder.emit("Relu", x, name="relu"),
        builder.emit("Convert", low, destination_type="bf16"),
        name="total",
    )
    builder.result(total)
    report = reduce(builder.model(), Own(has("Multiply")), options=ReduceOptions(output=str(tmp_path / "min.xml")))
    model = irexec.read_model(tmp_path / "min.xml")
    with np.load(tmp_path / "min.npz") as inputs:
        assert len(irexec.compile_model(model)(dict(inputs))) == 1
    assert [str(port.element) for port in model.inputs] == ["bf16", "bf16"]
    assert report.command == ("own", str(tmp_path / "min.xml"))


def test_fast_kernels_against_reference_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference kernel that is wrong for one operation."""
    from irexec.schema.registry import resolve

    definition = resolve("Tanh", "opset1")
    # Attributes and inputs are read of the kernel before it is replaced.
    assert definition.inputs and not definition.attributes
    monkeypatch.setattr(definition, "kernel", lambda x: np.tanh(x) + np.float32(0.1))
    model = chain()
    with RuntimeCheck("reference") as check:
        assert types(reduce(model, check)) == ["Tanh"]


@pytest.mark.parametrize("plant", ["nan", "nan-weight", "declared-shape", "wrong-attribute"])
@pytest.mark.parametrize("network", ["bilstm_tagger", "unet", "scripted_loop"])
@pytest.mark.sampled(8)
def test_a_planted_fault_in_a_network(network: str, plant: str, tmp_path: Path) -> None:
    from tests import reduce_sweep

    try:
        row = reduce_sweep.run(network, plant, 1, tmp_path, reproduce=False)
    except reduce_sweep.Unsuitable as error:
        pytest.skip(str(error))
    assert row.problem == ""


@pytest.mark.parametrize("plant", some(["refused", "division", "wrong-attribute-openvino"], ["refused"]))
@pytest.mark.slow
def test_a_fault_that_openvino_shows(plant: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from tests import reduce_sweep

    assert reduce_sweep.run("ssd", plant, 0, tmp_path).problem == ""


def test_onnx_runtime_gives_the_tensors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from irexec.tools.reduce.against import check_against

    model = irexec.read_model(ROOT / "samples" / "digits" / "denoiser.onnx")
    next(node for node in model.nodes if node.name == "conv2").type = "Subtract"
    with check_against("onnxruntime") as check:
        report = reduce(model, check, options=ReduceOptions(output=str(tmp_path / "min.xml")))
    # The tensor between these two has no name in ONNX.
    assert [layer.name for layer in report.layers] == ["conv2/Convolution", "conv2"]
    assert report.command[-2:] == ("--assert", str(tmp_path / "min.expected.npz"))
    from irexec.cli.main import run

    assert run(list(report.command[1:])) == 1


def test_networks_are_there() -> None:
    from tests.support.paths import NETWORKS

    assert all(
        zipfile.is_zipfile(NETWORKS / f"{name}.zip") for name in ("bilstm_tagger", "unet", "scripted_loop", "ssd")
    )
