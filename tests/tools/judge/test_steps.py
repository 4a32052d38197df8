"""Verdicts about several steps of a model with state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.model import Model
from irexec.dtypes.elements import F32, I64
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.tools.bundling import judge_into
from irexec.tools.judge import JudgeOptions, judge
from tests.reduce_sweep import Editing
from tests.tools.judge.faulty import plant

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
