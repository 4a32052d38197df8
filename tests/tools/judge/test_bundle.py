"""Bundles, verdicts about several steps of a model with state, and verdicts about public reports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.model import Model
from irexec.cli.main import run
from irexec.dtypes.elements import F32, I64
from irexec.errors import InputError
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.tools.bundling import judge_into
from irexec.tools.judge import JudgeOptions, judge
from tests.judge_sweep.language import MODELS
from tests.judge_sweep.public import FAULTS, PublicFault
from tests.reduce_sweep import Editing
from tests.support.paths import DIGITS, ROOT
from tests.tools.judge.faulty import plant
from tests.tools.judge.test_judge import IMAGE, network, setting, without_bias

FAULT = {"damage": setting("conv", pads_begin="2, 1", pads_end="0, 1")}


def test_the_smallest_model_has_the_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge_into(
        str(tmp_path / "out"), network(), {"x": IMAGE}, JudgeOptions(runtime=plant(monkeypatch, **FAULT))
    )
    assert found.bundle is not None
    assert (found.bundle.before, found.bundle.after) == (6, 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(found.bundle.files)
    model = irexec.read_model(tmp_path / "out/model.xml")
    inputs, interval = np.load(tmp_path / "out/inputs.npz"), np.load(tmp_path / "out/interval.npz")
    right = irexec.infer(model, dict(inputs))[0]
    assert ((right >= interval["low_0"]) & (right <= interval["high_0"])).all()
    wrong = interval["actual_0"]
    assert ((wrong < interval["low_0"]) | (wrong > interval["high_0"])).any()
    assert "(Convolution" in (tmp_path / "out/report.md").read_text("utf-8")


def test_weights_that_are_replaced_keep_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = JudgeOptions(runtime=plant(monkeypatch, **FAULT))
    found = judge_into(str(tmp_path), network(), {"x": IMAGE}, options, strip_weights=True)
    assert found.bundle is not None
    assert found.bundle.kept == ()
    (weights,) = (
        node.constant for node in irexec.read_model(tmp_path / "model.xml").nodes if node.constant is not None
    )
    own = next(node.constant for node in network().nodes if node.name == "w")
    assert own is not None
    assert weights.shape == own.shape
    assert not np.isin(constant_value(weights), constant_value(own)).any()
    interval = np.load(tmp_path / "interval.npz")
    assert (interval["actual_0"] > interval["high_0"]).any()


def test_a_fault_of_fused_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fused(model, values) -> None:  # type: ignore[no-untyped-def]
        if not any(value.node.name == "biased" for value in values):
            without_bias(model, values)

    found = judge_into(str(tmp_path), network(), {"x": IMAGE}, JudgeOptions(runtime=plant(monkeypatch, damage=fused)))
    assert found.verdict == "fusion"
    layers = {node.type for node in irexec.read_model(tmp_path / "model.xml").nodes}
    assert layers - {"Parameter", "Constant", "Result"} == {"Add", "Relu"}


@pytest.mark.slow
def test_a_recording_made_by_the_script_and_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    monkeypatch.chdir(tmp_path)
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    assert run(["judge", "m.xml", "--record-script", "record.py"]) == 0
    done = subprocess.run([sys.executable, "record.py"], capture_output=True, text=True, check=True)
    assert "irexec judge m.xml --runtime recorded.npz" in done.stdout
    assert run(["judge", "m.xml", "--runtime", "recorded.npz"]) == 0
    tensors = dict(np.load("recorded.npz"))
    assert len(tensors) == 16
    # OpenVINO computes in bf16 where the processor does.
    assert str(tensors["irexec.arithmetic"]).partition(" ")[0] in ("f32", "bf16")
    assert "of OpenVINO" in str(tensors["irexec.arithmetic"])
    np.savez("wrong.npz", **(tensors | {"conv0": tensors["conv0/Convolution"]}))
    assert run(["judge", "m.xml", "--runtime", "wrong.npz", "--bundle", "out"]) == 1
    # OpenVINO is right today: the recording was damaged.
    done = subprocess.run([sys.executable, "check.py"], cwd="out", capture_output=True, text=True)
    assert done.returncode == 0
    assert "output 0: 0 of 1024 values outside of their interval" in done.stdout
    interval = dict(np.load("out/interval.npz"))
    np.savez("out/interval.npz", **(interval | {"low_0": interval["high_0"] + 1, "high_0": interval["high_0"] + 2}))
    assert subprocess.run([sys.executable, "check.py"], cwd="out", capture_output=True).returncode == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--record-script", "m.xml"], "--record-script m.xml is the model, which would be overwritten"),
        (["--record-script", "m.bin"], "--record-script m.bin is the model's weights, which would be overwritten"),
        (["-i", "x.inputs.npz", "--record-script", "x.py"], "x.inputs.npz is an input, which would be overwritten"),
        (["--record-script", "x.py"], "x.inputs.npz exists, and is not the one of x.py"),
        (["--record-script", "x.xml"], "--record-script x.xml does not end in .py"),
        (["--record-script", "own.py"], "--record-script own.py exists, and irexec has not written it"),
        (["--record-script", "no/r.py"], "the folder no does not exist"),
        (["--runtime", "reference", "--bundle", "m.bin"], "m.bin is not an empty folder"),
        (["--runtime", "reference", "--bundle", "."], ". is not an empty folder"),
    ],
)
def test_no_file_of_the_user_is_overwritten(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix in (".xml", ".bin"):
        Path(f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    np.savez("x.inputs.npz", image=np.ones((1, 1, 8, 8), np.float32))
    Path("own.py").write_text("print(1)\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(["judge", "m.xml", *options]) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strip-weights"], "--strip-weights is for --bundle, which is not given"),
        (["--record-script", "r.py"], "--record-script judges nothing: no --runtime"),
    ],
)
def test_options_without_effect(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["judge", str(DIGITS / "classifier.xml"), "--runtime", "reference", *options]) == 2
    assert message in capsys.readouterr().err


def test_an_option_without_effect_is_named_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge", str(DIGITS / "classifier.xml"), "--sensitivity", "f16", "-p", "A=b"]) == 2
    assert "--sensitivity judges no runtime: no --property" in capsys.readouterr().err


def test_a_known_difference_of_openvino_is_not_accused(tmp_path: Path) -> None:
    b = irexec.Builder("m")
    x = b.parameter("i32", (4,), "x")
    b.result(b.emit("Divide", x, b.constant(np.array([2], np.int32)), m_pythondiv=True, name="halves"))
    values = np.array([-3, 3, -5, 4], np.int32)
    # OpenVINO's CPU plugin rounds towards zero, as recorded from 2026.4.
    halves = np.array([-1, 1, -2, 2], np.int32)
    said = {"irexec.arithmetic": "f32 of OpenVINO 2026.4 on CPU"}
    np.savez(tmp_path / "recorded.npz", x=values, halves=halves, **said)
    found = judge(b.model(), runtime=str(tmp_path / "recorded.npz"))
    assert found.verdict == "open"
    assert found.at[0].codes == ("IR911",)
    # The difference excuses its own values, and OpenVINO alone.
    np.savez(tmp_path / "beyond.npz", x=values, halves=halves + np.int32(2), **said)
    assert judge(b.model(), runtime=str(tmp_path / "beyond.npz")).verdict == "bug"
    np.savez(tmp_path / "nobody.npz", x=values, halves=halves)
    assert judge(b.model(), runtime=str(tmp_path / "nobody.npz")).verdict == "bug"


# Verdicts about several steps of a model with state.


X = {"x": np.array([1, 2], np.float32)}


def counter() -> Model:
    """The sum of the inputs of all steps, and its double."""
    b = irexec.Builder("counter")
    x = b.parameter("f32", (2,), "x")
    zero = b.constant(np.zeros(2, np.float32))
    variable = {"variable_id": "sum", "variable_type": "f32", "variable_shape": "2"}
    read = b.emit("ReadValue", zero, name="read", **variable)
    total = b.emit("Add", read, x, name="total")
    b.emit("Assign", total, variable_id="sum", name="write")
    b.result(b.emit("Add", total, total, name="double"))
    return b.model()


def test_a_runtime_that_is_right_agrees_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(counter(), X, runtime=plant(monkeypatch), steps=3)
    assert found.verdict == "agrees"
    assert found.sentence.startswith("agrees in 3 steps: ")
    assert found.steps == 3


def test_the_first_step_its_layer_and_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    # The sums are (1, 2), (2, 4), (3, 6), and their doubles (2, 4), (4, 8), (6, 12): the fault shows in step 3 alone.
    runtime = plant(monkeypatch, change=lambda v, a: a + (a > 10) if v.node.name == "double" else a)
    found = judge(counter(), X, runtime=runtime, steps=4)
    assert (found.verdict, found.step, found.steps) == ("bug", 3, 4)
    assert found.sentence.startswith("step 3: bug of the runtime: 'double'")
    assert (found.at[0].layer.name, found.at[0].position, found.at[0].value) == ("double", (1,), 13)


def test_two_steps_are_the_default_of_a_model_with_state(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(counter(), X, runtime=plant(monkeypatch)).steps == 2


def test_a_state_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(counter(), X, runtime=plant(monkeypatch, forgets=True), steps=2)
    assert (found.verdict, found.step) == ("bug", 2)
    assert "step 2: bug of the runtime: 'read' (ReadValue, layer 2): 2 of 2 values not what the step before wrote" in (
        found.sentence
    )
    assert (found.at[0].value, found.at[0].outside) == (0, 2)


def _loses_state_when_observed(model: Model, values: Sequence[Value]) -> None:
    """The sum is written as zeros if more than the result is asked for."""
    if len(values) > 1:
        edit = Editing(model)
        write = next(node for node in model.nodes if node.type == "Assign")
        write.ports[0].source = edit.constant(np.zeros(2, np.float32), F32)


def test_a_state_that_only_the_observed_copy_loses_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(counter(), X, runtime=plant(monkeypatch, _loses_state_when_observed), steps=3)
    assert found.verdict == "agrees"
    apart = [one for one in found.layers if one.state == "unconfirmed"]
    assert {(one.layer.name, one.reason) for one in apart} == {
        ("read", "it is outside in a copy with observed tensors alone, whose results are not those of the model")
    }


def test_inputs_of_each_step_and_a_state_before_the_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savez(tmp_path / "state.npz", sum=np.array([8, 0], np.float32))
    runtime = plant(monkeypatch, change=lambda v, a: a + (a > 23) if v.node.name == "double" else a)
    runs = [{"x": np.array([x, 0], np.float32)} for x in (1, 2, 1)]
    # 8 + 1 + 2 + 1 = 12.
    found = judge(counter(), runs, runtime=runtime, load_state=str(tmp_path / "state.npz"))
    assert (found.verdict, found.step, found.at[0].position) == ("bug", 3, (0,))
    with pytest.raises(InputError, match="inputs are given for 3 steps, and steps is 2"):
        judge(counter(), runs, runtime=runtime, steps=2)


def test_a_recording_has_one_step(tmp_path: Path) -> None:
    one = {name: np.array([1, 2], np.float32) for name in ("x", "total")}
    np.savez(tmp_path / "t.npz", **one, read=np.zeros(2, np.float32), double=np.array([2, 4], np.float32))
    assert judge(counter(), runtime=str(tmp_path / "t.npz")).verdict == "agrees"
    with pytest.raises(InputError, match="holds the tensors of one step"):
        judge(counter(), runtime=str(tmp_path / "t.npz"), steps=2)


def test_rounding_that_the_state_lets_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 + 2^-24 + 2^-24 is 1 from the left and 1 + 2^-23 from the right; each step multiplies the difference by 1000."""
    b = irexec.Builder("growing")
    x = b.parameter("f32", (3,), "x")
    one, thousand = b.constant(np.float32([1])), b.constant(np.float32([1000]))
    variable = {"variable_id": "s", "variable_type": "f32", "variable_shape": "1"}
    read = b.emit("ReadValue", b.constant(np.zeros(1, np.float32)), name="read", **variable)
    total = b.emit("ReduceSum", x, b.constant(np.array([0])), keep_dims=True, name="sum")
    rest = b.emit("Subtract", total, one, name="rest")
    state = b.emit("Add", b.emit("Multiply", read, thousand, name="scaled"), rest, name="state")
    b.emit("Assign", state, variable_id="s", name="write")
    b.result(b.emit("Add", state, one, name="result"))

    def from_the_right(model: Model, values: Sequence[Value]) -> None:
        for node in model.nodes:
            if node.type == "ReduceSum":
                edit = Editing(model)
                order, axis = edit.constant(np.array([2, 1, 0]), I64), edit.constant(np.array(0), I64)
                turned = edit.layer("Gather", "opset8", [node.inputs[0], order, axis], Fact(F32, (3,)))
                node.ports[0].source = turned.outputs[0]
                return

    given = {"x": np.array([1, 2**-24, 2**-24], np.float32)}
    runtime = plant(monkeypatch, damage=from_the_right)
    assert judge(b.model(), given, runtime=runtime, steps=1).verdict == "agrees"
    found = judge(b.model(), given, runtime=runtime, steps=4)
    assert (found.verdict, found.step) == ("precision", 3), found.sentence


@pytest.mark.slow
def test_caches_in_blocks_are_what_earlier_steps_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, steps = MODELS["paged"](tmp_path)
    first = next(node for node in model.nodes if node.type == "PagedAttentionExtension")
    # The prompt has five tokens and the third step has two.
    runtime = plant(
        monkeypatch,
        change=lambda v, a: a * np.float32(1.001) if v.node.name == first.name and v.index == 0 and len(a) == 2 else a,
    )
    found = judge_into(str(tmp_path / "paged"), model, steps, JudgeOptions(runtime=runtime))
    assert (found.verdict, found.step, found.at[0].layer.name) == ("bug", 3, first.name), found.sentence
    with np.load(tmp_path / "paged" / "inputs.npz") as inputs:
        keys = next(inputs[name] for name in inputs.files if inputs[name].shape == (4, 2, 32, 6))
    # Six tokens before it are in the first block of the sequence.
    assert keys.any((1, 3))[2].tolist() == [True] * 6 + [False] * 26 and not keys[[0, 1, 3]].any()


@pytest.mark.slow
def test_caches_that_two_layers_share_have_no_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, steps = MODELS["paged"](tmp_path)
    first, second = (node for node in model.nodes if node.type == "PagedAttentionExtension")
    second.ports[3].source = first.inputs[3]
    found = judge(model, steps, runtime=plant(monkeypatch))
    free = {one.layer.name: one.reason for one in found.layers if one.state == "no bound"}
    assert free == dict.fromkeys((first.name, second.name), "what earlier steps wrote to its caches is not known")


def test_the_bundle_of_a_step_and_none_of_a_state_that_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = plant(monkeypatch, change=lambda v, a: a + (a > 10) if v.node.name == "double" else a)
    found = judge_into(str(tmp_path / "step"), counter(), X, JudgeOptions(runtime=wrong, steps=4))
    assert found.bundle is not None and found.bundle.after == 1
    inputs, interval = (np.load(tmp_path / "step" / f"{name}.npz") for name in ("inputs", "interval"))
    # The third sums are (3, 6), and 13 is wrong for the double of 6.
    assert [inputs[name].tolist() for name in inputs.files] == [[3, 6]]
    assert interval["exact_0"].tolist() == [6, 12] and interval["actual_0"].tolist() == [6, 13]
    forgetful = plant(monkeypatch, forgets=True)
    found = judge_into(str(tmp_path / "state"), counter(), X, JudgeOptions(runtime=forgetful, steps=2))
    assert found.bundle is None and "shows in two steps" in found.notes[-1]
    assert not (tmp_path / "state").exists()


# Public reports of wrong results get the verdicts that the documentation says.


_VERDICTS = {
    "bug": "bug", "fusion": "bug while unobserved", "precision": "precision", "agrees": "agrees",
    "open": "left open", "model": "the model itself", "no-bound": "no bound", "unexplained": "not explained",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.thread)
def test_the_verdict_about_a_public_report(fault: PublicFault) -> None:
    assert fault.judged().verdict == fault.verdict


def test_the_page_has_a_row_for_each_report() -> None:
    page = (ROOT / "docs" / "tutorials" / "which-is-right.md").read_text("utf-8")
    expected = [f"| {fault.link} | {fault.what} | {_VERDICTS[fault.verdict]} |" for fault in FAULTS]
    assert [line for line in page.splitlines() if line.startswith("| [")] == expected
