"""Several steps of a model with state: inputs of each step, and states that are saved and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run

# The sum of the inputs so far is 1, 4, 9 and 4, 9, -11; the result is its square root.
STEPS = np.array([[[1, 4]], [[3, 5]], [[5, -20]]], np.float32)


def _counter(factor: float = 1.0) -> irexec.Model:
    """The square root of ``factor`` times the sum of all inputs."""
    builder = irexec.Builder("counter")
    x = builder.parameter("f32", (1, 2), "x")
    past = builder.emit("ReadValue", variable_id="v", variable_type="f32", variable_shape="1,2", name="past")
    total = builder.emit("Add", past, x, name="total")
    builder.emit("Assign", total, variable_id="v")
    scaled = builder.emit("Multiply", total, builder.constant([factor], "f32"), name="scaled")
    builder.result(builder.emit("Sqrt", scaled, name="root"))
    return builder.model()


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    irexec.save_model(_counter(), "m.xml")
    np.savez("all.npz", x=STEPS)
    for step, array in enumerate(STEPS, 1):
        np.savez(f"s{step}.npz", x=array)


@pytest.mark.parametrize("source", ["all.npz", "s{}.npz", "x=s{}.npz"])
def test_results_inputs_and_state_of_steps(source: str) -> None:
    words = ["-o", "r{}.npz", "--save-inputs", "i{}.npz", "--save-state", "state.npz"]
    assert run(["infer", "m.xml", "-i", source, "--steps", "3", *words]) == 0
    roots = [[[1, 2]], [[2, 3]], [[3, np.nan]]]
    for step, (root, given) in enumerate(zip(roots, STEPS, strict=True), 1):
        np.testing.assert_array_equal(np.load(f"r{step}.npz")["root"], root)
        np.testing.assert_array_equal(np.load(f"i{step}.npz")["x"], given)
    np.testing.assert_array_equal(np.load("state.npz")["v"], [[9, -11]])


def test_a_state_is_loaded_and_saved_in_one_file() -> None:
    np.savez("state.npz", v=np.float32([[8, 20]]))
    words = ["--load-state", "state.npz", "--save-state", "state.npz", "-o", "r.npz"]
    assert run(["infer", "m.xml", "-i", "s1.npz", *words]) == 0
    np.testing.assert_array_equal(np.load("state.npz")["v"], [[9, 24]])
    np.testing.assert_array_equal(np.load("r.npz")["root"][0, 0], 3)


def test_the_step_of_a_trap(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infer", "m.xml", "-i", "all.npz", "--steps", "3", "--trap", "nan"]) == 1
    assert "the run stops in step 3 of 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-i", "all.npz", "--steps", "2"], "'all.npz' has 3 steps of input 'x', and there are 2 steps"),
        (["-i", "-", "--steps", "2"], "standard input can be read only once"),
        (["-i", "s1.npz", "--steps", "2", "--save-inputs", "i.npz"], "is one file for 2 steps"),
        (["-i", "s1.npz", "--load-state", "s1.npz"], "there is no variable 'x': the model has v: f32[1,2]"),
        (["-i", "s1.npz", "--save-state", "s1.npz"], "is an input, which would be overwritten"),
        (["-i", "s{}.npz", "--steps", "3", "-o", "s{}.npz"], "is an input, which would be overwritten"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infer", "m.xml", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_model_without_state_has_none_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (1, 2), "x")))
    irexec.save_model(builder.model(), "plain.xml")
    assert run(["infer", "plain.xml", "-i", "s1.npz", "--save-state", "state.npz"]) == 2
    assert "the model changes no variable, and has no state to write" in capsys.readouterr().err
    assert not Path("state.npz").exists()


def test_compare_finds_the_step_and_the_layer(capsys: pytest.CaptureFixture[str]) -> None:
    # Twice a sum differs from half of it only where the sum is not 0: in the second step.
    irexec.save_model(_counter(2.0), "a.xml")
    irexec.save_model(_counter(0.5), "b.xml")
    np.savez("state.npz", v=np.float32([[-1, -4]]))
    words = ["-i", "all.npz", "--steps", "3", "--load-state", "state.npz"]
    assert run(["compare", "a.xml", "b.xml", *words]) == 1
    shown = capsys.readouterr()
    first = next(line for line in shown.out.splitlines() if line.startswith("first divergence"))
    assert "'scaled' (Multiply" in first and first.endswith("run 2")
    assert "reduce b.xml -o min.xml --against a.xml -i all.npz --steps=3 --load-state state.npz" in shown.err


def test_reduce_begins_with_the_state_and_has_the_inputs_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    irexec.save_model(_counter(2.0), "a.xml")
    irexec.save_model(_counter(0.5), "b.xml")
    np.savez("state.npz", v=np.float32([[-1, -4]]))
    words = ["-i", "all.npz", "--steps", "3", "--load-state", "state.npz"]
    assert run(["reduce", "b.xml", "-o", "min.xml", "--against", "a.xml", *words]) == 0
    shown = capsys.readouterr()
    assert "scaled" in shown.out and "it fails in run 2" in shown.err
    # The sum of the first two steps, after the state.
    (given,) = np.load("min.npz").values()
    np.testing.assert_array_equal(given, [[3, 5]])
    assert run(["reduce", "b.xml", "-o", "min.xml", "--against", "a.xml", *words[:2], "--steps", "3"]) == 0
    assert "it fails in run" not in capsys.readouterr().err


def test_openvino_has_the_same_state() -> None:
    pytest.importorskip("openvino")
    np.savez("state.npz", v=np.float32([[7, 30]]))
    words = ["-i", "all.npz", "--steps", "3", "--load-state", "state.npz"]
    assert run(["compare", "m.xml", "--b-runtime", "openvino", *words]) == 0
