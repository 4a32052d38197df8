"""Verdicts about runtimes with a planted fault, and about such without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.bounds import evaluate
from irexec.bounds.registry import rule_of
from irexec.errors import EngineError, InputError, ModelError
from irexec.ir.dims import ANY
from irexec.ir.graph import Value
from irexec.ir.order import find_value
from irexec.tools.judge import judge
from tests.support.paths import ROOT
from tests.tools.judge.faulty import Faulty, plant

IMAGE = np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype(np.float32)


def network() -> Model:
    """Convolution, bias, MVN, Relu, MatMul, Softmax."""
    rng = np.random.default_rng(1)
    b = irexec.Builder("network")
    x = b.parameter("f32", (1, 2, 6, 6), "x")
    w = b.constant(rng.standard_normal((3, 2, 3, 3)).astype(np.float32), name="w")
    windows = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    y = b.emit("Convolution", x, w, name="conv", **windows)
    y = b.emit("Add", y, b.constant(np.ones((1, 3, 1, 1), np.float32), name="bias"), name="biased")
    y = b.emit("Relu", y, name="relu")
    y = b.emit("Reshape", y, b.constant(np.array([3, 36])), special_zero=False, name="rows")
    m = b.constant(rng.standard_normal((36, 36)).astype(np.float32), name="m")
    y = b.emit("MatMul", y, m, name="product")
    b.result(b.emit("Softmax", y, axis=1, name="probabilities"))
    return b.model()


def setting(layer: str, **attributes: str) -> Callable[[Model, Sequence[Value]], None]:
    def damage(model: Model, values: Sequence[Value]) -> None:
        for node in model.nodes:
            if node.name == layer:
                node.attributes |= attributes

    return damage


def without_bias(model: Model, values: Sequence[Value]) -> None:
    for node in model.nodes:
        if node.name == "biased" and node.type == "Add":
            for user in model.nodes:
                for port in user.ports:
                    if port.source is node.outputs[0]:
                        port.source = node.inputs[0]
            for i, value in enumerate(values):
                if value is node.outputs[0]:
                    values[i] = node.inputs[0]  # type: ignore[index]


def in_f16(value: Value, array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16).astype(np.float32) if value.node.type == "MatMul" else array


@pytest.mark.parametrize(
    ("fault", "layer"),
    [
        ({"damage": setting("conv", pads_begin="2, 1", pads_end="0, 1")}, "conv"),
        ({"damage": setting("conv", dilations="2, 2", pads_begin="2, 2", pads_end="2, 2")}, "conv"),
        ({"damage": setting("probabilities", axis="0")}, "probabilities"),
        ({"damage": setting("product", transpose_b="true")}, "product"),
        ({"damage": without_bias}, "biased"),
        ({"change": in_f16}, "product"),
        ({"change": lambda v, a: a * np.float32(1 + 2e-5) if v.node.type == "Softmax" else a}, "probabilities"),
        ({"change": lambda v, a: np.where(a > 3, np.nan, a) if v.node.type == "Relu" else a}, "relu"),
    ],
)
def test_the_layer_of_a_planted_fault_is_named(fault: dict, layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(network(), {"x": IMAGE}, runtime=plant(monkeypatch, **fault))
    assert found.verdict == "bug"
    assert [one.layer.name for one in found.at] == [layer]
    assert found.at[0].alone
    assert "outside of f32's interval" in found.sentence


def test_a_runtime_without_a_fault_is_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(network(), {"x": IMAGE}, runtime=plant(monkeypatch))
    assert found.verdict == "agrees"
    assert found.count("inside") == len(found.layers) == 6


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_openvino_is_not_accused(precision: str) -> None:
    pytest.importorskip("openvino")
    found = judge(network(), {"x": IMAGE}, properties={"INFERENCE_PRECISION_HINT": precision})
    assert found.verdict == "agrees", found.sentence


def test_tensors_whose_inner_values_are_finer_accuse_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # The runtime gives the product in f16 to whoever asks, and keeps it in f32 itself: its Softmax is right.
    def observed_in_f16(value: Value, array: np.ndarray) -> np.ndarray:
        return array.astype(np.float16).astype(np.float32)

    found = judge(network(), {"x": IMAGE}, runtime=plant(monkeypatch, change=observed_in_f16), arithmetic="f16")
    assert found.verdict == "agrees", found.sentence


def test_layers_that_are_fused_although_they_are_observed_accuse_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # OpenVINO fuses the layers of an RMSNorm, and computes those that are asked for once more, with other roundings.
    def once_more(value: Value, array: np.ndarray) -> np.ndarray:
        return np.nextafter(array, np.float32(np.inf)) if value.node.name == "conv" else array

    found = judge(network(), {"x": IMAGE}, runtime=plant(monkeypatch, change=once_more))
    assert found.verdict == "agrees", found.sentence
    assert found.count("inside") == len(found.layers)


def test_a_fault_in_front_accuses_no_layer_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong product is given in f16, and read in f32: its Softmax is right, and outside from what is observed."""
    runtime = plant(monkeypatch, damage=setting("product", transpose_b="true"), change=in_f16)
    found = judge(network(), {"x": IMAGE}, runtime=runtime)
    assert [one.layer.name for one in found.at] == ["product"]


def test_a_folder_with_the_name_of_a_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "irexec").mkdir()
    monkeypatch.chdir(tmp_path)
    assert judge(network(), {"x": IMAGE}, runtime="irexec").verdict == "agrees"


def test_weights_of_f16_do_not_make_an_arithmetic_of_f16(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("m")
    x = b.parameter("f32", (3,), "x")
    weights = b.emit("Convert", b.constant(np.ones(3, np.float16)), destination_type="f32")
    halves = b.emit("Multiply", b.constant(np.ones(3, np.float16)), b.constant(np.ones(3, np.float16)))
    scaled = b.emit("Multiply", b.emit("Add", x, weights), b.emit("Convert", halves, destination_type="f32"))
    b.result(scaled)
    assert judge(b.model(), {"x": np.ones(3, np.float32)}, runtime=plant(monkeypatch)).arithmetic == "f32"


def test_a_runtime_in_f16_holds_tensors_of_bf16_in_either_type(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("m")
    x = b.parameter("f32", (2, 50), "x")
    b.result(b.emit("Reshape", x, b.constant(np.array([100])), special_zero=False))
    b.result(b.emit("Convert", x, destination_type="bf16"))
    monkeypatch.setattr(Faulty, "precision", "f16")
    given = {"x": np.random.default_rng(0).standard_normal((2, 50)).astype(np.float32)}
    runtime = plant(monkeypatch, change=lambda value, array: array.astype(np.float16).astype(array.dtype))
    found = judge(b.model(), given, runtime=runtime)
    assert (found.verdict, found.arithmetic) == ("agrees", "bf16-f16"), found.sentence


def test_a_fault_of_fused_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fused(model: Model, values: Sequence[Value]) -> None:
        # The bias is lost where the sum itself is not asked for, as in a fusion of the convolution and Relu.
        if not any(value.node.name == "biased" for value in values):
            without_bias(model, values)

    found = judge(network(), {"x": IMAGE}, runtime=plant(monkeypatch, damage=fused))
    assert found.verdict == "fusion", found.sentence
    assert found.at[0].layer.name == "relu"
    assert found.at[0].region == ("biased",)


def test_rounding_that_a_difference_amplifies(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("m")
    big = b.constant(np.array([1e6], np.float32))
    x = b.parameter("f32", (3,), "x")
    b.result(b.emit("Subtract", b.emit("Add", x, big, name="sum"), big, name="rest"))

    def downward(model: Model, values: Sequence[Value]) -> None:
        # 1e6 + 0.34375 is halfway between two f32 values, 0.0625 apart: NumPy gives the upper one, this the lower one.
        for node in model.nodes:
            if node.name == "sum" and node.inputs[0] is not None and node.inputs[0].node.type == "Parameter":
                step = irexec.Builder("s").constant(np.array([-0.01], np.float32)).node
                model.nodes.append(step)
                step.id, step.name = 99, "step"
                moved = irexec.Builder("s")
                added = moved.emit("Add", moved.parameter("f32", (3,), "y"), moved.constant(np.float32(0.0))).node
                added.id, added.name = 100, "moved"
                added.ports[0].source, added.ports[1].source = node.inputs[0], step.outputs[0]
                model.nodes.append(added)
                node.ports[0].source = added.outputs[0]

    found = judge(b.model(), {"x": np.full(3, 0.34375, np.float32)}, runtime=plant(monkeypatch, damage=downward))
    assert found.verdict == "precision", found.sentence
    assert "amplified by 'rest'" in found.sentence
    # A relative change of 1e6 is (1e6 / 0.34375) times as large beside 0.34375.
    assert float(found.sentence.split("condition ")[1].rstrip(")")) == pytest.approx(1e6 / 0.34375, rel=0.1)


def test_infinities_of_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("m")
    x = b.parameter("f32", (2,), "x")
    b.result(b.emit("Exp", b.emit("Relu", x, name="relu"), name="power"))
    found = judge(b.model(), {"x": np.array([1, 1000], np.float32)}, runtime=plant(monkeypatch))
    assert found.verdict == "model"
    assert "'power'" in found.sentence


def test_nan_that_fused_layers_lose_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO 2022.3 gives max(0, sqrt(-1)) = NaN where the root is observed, and 0 where it is not."""
    b = irexec.Builder("m")
    root = b.emit("Sqrt", b.parameter("f32", (2,), "x"), name="root")
    b.result(b.emit("Maximum", b.constant(np.float32([0])), root, name="largest"))

    def fused(model: Model, values: Sequence[Value]) -> None:
        for node in model.nodes:
            if node.name == "root" and node.outputs[0] not in values:
                node.type = "Relu"

    found = judge(b.model(), {"x": np.float32([-1, 1])}, runtime=plant(monkeypatch, damage=fused))
    assert found.verdict == "open", found.sentence
    assert "1 of 2 values of 'largest'" in found.sentence


def test_nan_of_a_clamped_function_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """HardSigmoid is max(0, min(1, ...)): it is not accused of what Minimum is not."""
    b = irexec.Builder("m")
    limits = [b.constant(np.float32(one)) for one in (0.2, 0.5)]
    b.result(b.emit("HardSigmoid", b.parameter("f32", (2,), "x"), *limits, name="gate"))
    runtime = plant(monkeypatch, change=lambda value, array: np.where(np.isnan(array), np.float32(1), array))
    assert judge(b.model(), {"x": np.array([np.nan, 0], np.float32)}, runtime=runtime).verdict == "open"


def test_nan_that_one_of_several_results_lost_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN stays in one element in both, and is lost in another one: the model does not explain the difference."""
    b = irexec.Builder("m")
    x, y = b.parameter("f32", (2,), "x"), b.parameter("f32", (2,), "y")
    b.result(b.emit("Minimum", x, y, name="least"))
    runtime = plant(monkeypatch, change=lambda v, a: np.float32([np.nan, 7]) if v.node.name == "least" else a)
    given = {"x": np.array([np.nan, 7], np.float32), "y": np.array([np.nan, np.nan], np.float32)}
    assert judge(b.model(), given, runtime=runtime).verdict == "open"


@pytest.mark.parametrize(("gives", "verdict"), [(0.0, "open"), (np.nan, "model")])
def test_what_becomes_of_nan_is_open(monkeypatch: pytest.MonkeyPatch, gives: float, verdict: str) -> None:
    """maxps and fmax differ for NaN: a runtime with the other one is not wrong, and rounding is not the reason."""
    b = irexec.Builder("m")
    b.result(b.emit("Relu", b.parameter("f32", (3,), "x"), name="relu"))
    runtime = plant(monkeypatch, change=lambda value, array: np.where(np.isnan(array), np.float32(gives), array))
    found = judge(b.model(), {"x": np.array([1, np.nan, -2], np.float32)}, runtime=runtime)
    assert found.verdict == verdict, found.sentence
    assert found.sentence.startswith(
        "left open: 1 of 3 values of 'relu' (Relu, layer 1), which NaN, infinity or overflow reaches"
        if verdict == "open"
        else "the model itself: NaN or infinity comes from the input 'x'"
    )


def test_what_has_no_bound_is_named_and_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "rule_of", lambda type: None if type == "RandomUniform" else rule_of(type))
    b = irexec.Builder("m")
    x = b.parameter("f32", (3,), "x")
    ends = [b.constant(np.float32(0)), b.constant(np.float32(1))]
    shape = b.constant(np.array([3]))
    noise = b.emit("RandomUniform", shape, *ends, output_type="f32", global_seed=1, op_seed=2, name="noise")
    b.result(b.emit("Add", x, noise, name="sum"))
    moved = plant(monkeypatch, change=lambda v, a: a + 1 if v.node.name in ("noise", "sum") else a)
    found = judge(b.model(), {"x": np.zeros(3, np.float32)}, runtime=moved)
    assert found.verdict == "no-bound"
    assert "'noise'" in found.sentence


def test_a_recording_without_the_inputs_or_without_tensors_is_refused(tmp_path: Path) -> None:
    """With random inputs the first layers would be accused, and of no tensor nothing agrees."""
    model = network()
    tensors = {"relu": np.zeros((1, 3, 6, 6), np.float32)}
    np.savez(tmp_path / "alone.npz", **tensors)
    with pytest.raises(InputError, match=r"does not have the input 'x' of the model: give it with -i"):
        judge(model, runtime=str(tmp_path / "alone.npz"))
    np.savez(tmp_path / "inputs.npz", x=IMAGE)
    with pytest.raises(InputError, match="has no tensor that the model computes"):
        judge(model, runtime=str(tmp_path / "inputs.npz"))


@pytest.mark.parametrize("measure", [judge, irexec.sensitivity])
def test_a_damaged_file_is_named(measure: Callable[..., object]) -> None:
    damaged = ROOT / "samples" / "digits" / "damaged.xml"
    with pytest.raises(ModelError, match=r"damaged\.xml, line 353: an edge .* \(and 1 more, see validate\)"):
        measure(damaged)


def test_a_runtime_that_does_not_run_the_model_is_not_judged() -> None:
    """Nothing is inside of its interval then, and nothing outside."""
    with pytest.raises(EngineError, match=r"cannot run|ended"):
        judge(network(), {"x": IMAGE}, runtime=f"command:{sys.executable} -c 'raise SystemExit(1)'")


def test_a_recording_states_its_arithmetic(tmp_path: Path) -> None:
    """A device that computes in bf16 is not wrong."""
    path = tmp_path / "recorded.npz"
    recorded = dict(irexec.infer(network(), {"x": IMAGE}, outputs=["conv", "biased"]))
    bits = recorded["conv"].view(np.uint32)
    recorded["conv"] = (bits + 0x8000 & 0xFFFF0000).astype(np.uint32).view(np.float32)
    np.savez(path, **recorded)
    assert judge(network(), {"x": IMAGE}, runtime=str(path)).verdict == "bug"
    np.savez(path, **recorded, **{"irexec.arithmetic": "bf16"})
    assert judge(network(), {"x": IMAGE}, runtime=str(path)).arithmetic == "bf16"
    assert judge(network(), {"x": IMAGE}, runtime=str(path)).verdict != "bug"
    assert judge(network(), {"x": IMAGE}, runtime=str(path), arithmetic="f32").verdict == "bug"
    assert "irexec.arithmetic" not in str(irexec.compare(path, network(), inputs={"x": IMAGE}))
    np.savez(path, **recorded, **{"irexec.arithmetic": "f99"})
    with pytest.raises(InputError, match="arithmetic 'f99' is not known"):
        judge(network(), {"x": IMAGE}, runtime=str(path))


def test_recorded_tensors(tmp_path: Path) -> None:
    model = network()
    names = ["x", "conv", "biased", "relu", "rows", "product", "probabilities"]
    compiled = irexec.compile_model(model)
    tensors = compiled.session().values({"x": IMAGE}, [find_value(model, name) for name in names])
    arrays = dict(zip(names, tensors, strict=True))
    np.savez(tmp_path / "right.npz", **arrays)
    assert judge(model, runtime=str(tmp_path / "right.npz")).verdict == "agrees"
    arrays["relu"] = np.abs(arrays["relu"] - 1)
    np.savez(tmp_path / "wrong.npz", **arrays)
    found = judge(model, runtime=str(tmp_path / "wrong.npz"))
    assert found.verdict == "bug"
    assert found.at[0].layer.name == "relu"


def test_layers_that_are_computed_as_one_may_have_another_form(tmp_path: Path) -> None:
    """oneDNN computes x * clamp(x + 3, 0, 6) as x * clamp(x / 6 + 1 / 2, 0, 1) * 6."""
    x = irexec.opset.parameter([4096], "f32", "x")
    model = Model([irexec.opset.multiply(x, irexec.opset.clamp(x + np.float32(3), min=0, max=6), name="y")], [x])
    array = np.linspace(-4, 4, 4096, dtype=np.float32)
    part = np.clip(array * np.float32(1 / 6) + np.float32(0.5), np.float32(0), np.float32(1))
    right = array * part * np.float32(6)
    path = tmp_path / "recorded.npz"
    for values, verdict in ((right, "agrees"), (right * np.float32(1.00001), "bug")):
        np.savez(path, y=values)
        assert judge(model, {"x": array}, runtime=str(path)).verdict == verdict


def test_a_result_that_only_the_runtime_computes_is_not_said_to_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("m")
    x = b.parameter("f32", (ANY, ANY, 6), "x")
    b.result(b.emit("Reshape", x, np.array([0, 7, 2, 3]), special_zero=True, name="heads"))
    model = b.model()
    made = np.zeros((1, 7, 2, 3), np.float32)

    def answered(runtime: object, runs: object, values: Sequence[Value]) -> list[list[np.ndarray]]:
        return [[made for _ in values]]

    name = plant(monkeypatch)
    monkeypatch.setattr(Faulty, "run_all", answered)
    found = judge(model, {"x": np.zeros((1, 1, 6), np.float32)}, runtime=name)
    assert found.verdict == "no-bound"
    assert "irexec does not run 'heads' (Reshape, layer 2) with these inputs, and the runtime does" in found.sentence


def test_a_runtime_that_runs_the_model_only_while_it_is_observed_does_not_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ONNX Runtime, where it fuses layers into one that refuses their shapes."""
    run_all, name = Faulty.run_all, plant(monkeypatch)

    def refused(runtime: Faulty, runs: Sequence[dict[str, np.ndarray]], values: Sequence[Value]) -> list:
        if [value.name for value in values] == ["probabilities"]:
            raise EngineError("the fused layer is refused")
        return run_all(runtime, runs, values)

    monkeypatch.setattr(Faulty, "run_all", refused)
    with pytest.raises(EngineError, match="the fused layer is refused"):
        judge(network(), {"x": IMAGE}, runtime=name)


def test_inputs_that_fit_only_the_branch_that_they_take(tmp_path: Path) -> None:
    """As in Silero's VAD: one size of the input belongs to one rate, which is an input too."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    branches = [f"{name}_branch = b () => (float[A,B] r) {{ r = MatMul (x, {name}) }}" for name in ("then", "else")]
    weights = "<float[4,2] then = {1, 2, 3, 4, 5, 6, 7, 8}, float[2,2] else = {1, 2, 3, 4}>"
    text = f"g (float[N,M] x, bool c) => (float[N,K] y) {weights} {{ y = If (c) <{', '.join(branches)}> }}"
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), path)
    for size, takes in ((4, True), (2, False)):
        inputs = {"x": np.ones((1, size), np.float32), "c": np.array(takes)}
        found = judge(path, inputs, runtime="onnxruntime")
        assert (found.verdict, found.layers[0].state) == ("agrees", "inside"), found.sentence


def quantised() -> Model:
    """A product of bytes as a converted QLinearMatMul has it: the result is a u8."""
    rng = np.random.default_rng(3)
    b = irexec.Builder("m")
    x = b.parameter("u8", (4, 16), "x")
    data = b.emit("Subtract", b.emit("Convert", x, destination_type="f32"), np.float32(120), name="data")
    weights = b.emit("Convert", rng.integers(-127, 128, (16, 6)).astype(np.int8), destination_type="f32")
    scaled = b.emit("Multiply", b.emit("MatMul", data, weights, name="product"), np.float32(0.0021), name="scaled")
    level = b.emit("Add", b.emit("Round", scaled, mode="half_to_even"), np.float32(128))
    level = b.emit("Clamp", level, min=0.0, max=255.0)
    b.result(b.emit("Convert", level, destination_type="u8", name="level"))
    return b.model()


@pytest.mark.parametrize("size", [0, 1, 3])
def test_levels_of_integers_have_a_bound(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime with products of integers shows the levels alone, of which rounding moves few by one."""

    def rescaled(model: Model, values: Sequence[Value]) -> None:
        for node in model.nodes:
            if node.constant is not None and node.array.dtype == np.float32 and node.array == np.float32(0.0021):
                node.constant = packed(node.array * np.float32(1 + 0.02 * size), irexec.f32)

    inputs = {"x": np.random.default_rng(4).integers(0, 256, (4, 16)).astype(np.uint8)}
    found = judge(quantised(), inputs, runtime=plant(monkeypatch, rescaled))
    assert found.verdict == ("bug" if size else "agrees"), found.sentence
