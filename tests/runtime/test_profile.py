"""Profiles and callbacks of runs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.runtime import compiled_model
from irexec.runtime.session import StepRun
from tests.support.paths import DIGITS, IRS

MODEL = DIGITS / "classifier.xml"
IMAGE = np.ones((1, 1, 8, 8), np.float32)
LAYERS = [
    "conv0/Convolution", "conv0", "relu1", "maxpool2", "conv3/Convolution", "conv3", "relu4", "maxpool5", "dense6.flat", "dense6/MatMul",
    "dense6", "probabilities",
]  # fmt: skip


def test_every_step_is_measured() -> None:
    found = irexec.compile_model(MODEL).profile(IMAGE, runs=3)
    assert (found.runs, found.times.step_seconds.shape) == (3, (3, len(found.steps)))
    assert all(row.milliseconds is not None and row.milliseconds > 0 for row in found.steps)
    assert sum(row.share or 0 for row in found.steps) == pytest.approx(1)
    assert found.minimum <= found.milliseconds
    # Steps run within their run, one after the other.
    times = found.times
    assert (times.step_begins[:, 0] >= times.begins).all() and (
        times.step_begins[:, -1] + times.step_seconds[:, -1] <= times.ends
    ).all()
    assert (np.diff(times.step_begins, axis=1) >= times.step_seconds[:, :-1]).all()


def test_costs_are_those_of_the_layers() -> None:
    found = irexec.compile_model(MODEL).profile(IMAGE, runs=1)
    # Two convolutions of 3 x 3 and one matrix product.
    macs = 16 * 64 * 9 + 32 * 16 * 16 * 9 + 128 * 10
    assert found.cost.macs == macs
    for rows in (found.steps, found.layers, found.types):
        assert sum(row.macs or 0 for row in rows) == macs
        assert sum(row.parameters for row in rows) == 144 + 16 + 4608 + 32 + 1280 + 10


def test_rows_by_layer_have_the_time_of_the_step_at_its_main_layer() -> None:
    found = irexec.compile_model(MODEL).profile(IMAGE, runs=1)
    assert [row.name for row in found.layers] == LAYERS
    by_name = {row.name: row for row in found.layers}
    assert by_name["conv0/Convolution"].milliseconds == found.steps[0].milliseconds
    assert by_name["relu1"].milliseconds is None
    assert sum(row.milliseconds or 0 for row in found.layers) == pytest.approx(found.in_steps)


def test_rows_can_be_sorted() -> None:
    found = irexec.compile_model(MODEL).profile(IMAGE, runs=1)
    assert found.rows("layer", "macs")[0].name == "conv3/Convolution"
    times = [row.milliseconds or 0 for row in found.rows("step", "time")]
    assert times == sorted(times, reverse=True)
    sizes = [row.bytes or 0 for row in found.rows("layer", "memory")]
    assert sizes == sorted(sizes, reverse=True)
    assert found.rows("type")[0] is found.types[0]


def test_a_layer_that_several_steps_compute_counts_once() -> None:
    from tests.compile.test_sequences import fed, iterator

    model = iterator("LSTMCell", axis=0)
    found = irexec.compile_model(model).profile(fed(model), runs=1)
    assert sum(row.macs or 0 for row in found.steps) == 5 * 2 * (16 * 3 + 16 * 4) == found.cost.macs


def test_dynamic_models_are_profiled_for_the_shapes_of_the_inputs() -> None:
    builder = Builder("dynamic")
    x = builder.parameter("f32", "?,4", "x")
    builder.result(builder.emit("MatMul", x, np.ones((4, 3), np.float32), transpose_a=False, transpose_b=False))
    compiled = irexec.compile_model(builder.model())
    assert [compiled.profile(np.ones((n, 4), np.float32), runs=1).cost.macs for n in (2, 5)] == [24, 60]


def test_profiling_leaves_the_state_of_variables_alone() -> None:
    compiled = irexec.compile_model(IRS / "state.xml")
    inputs = [np.ones([int(size) for size in port.shape], port.element.carrier) for port in compiled.inputs]
    compiled(inputs)
    before = {name: array.copy() for name, array in compiled.variables.items()}
    compiled.profile(inputs, runs=2)
    assert before and all(np.array_equal(compiled.variables[name], array) for name, array in before.items())


@pytest.mark.parametrize("runs", [0, -1, 1.5, True, "3"])
def test_runs_must_be_a_number(runs: Any) -> None:
    with pytest.raises(irexec.InputError, match="expected a whole number of at least 1"):
        irexec.compile_model(MODEL).profile(IMAGE, runs=runs)


def test_it_is_printable() -> None:
    found = irexec.compile_model(MODEL, threads=1).profile(IMAGE, runs=2)
    assert repr(found).startswith("<Profile: ") and "median of 2 runs" in repr(found)
    assert str(found).splitlines()[0].split()[:3] == ["ms", "share", "layers"]
    assert "1 thread" in str(found)


def test_on_layer_sees_every_layer_with_the_arrays_that_it_gives() -> None:
    seen: list[StepRun] = []
    arrays: dict[str, np.ndarray] = {}

    def look(run: StepRun) -> None:
        seen.append(run)
        if run.outputs[0] is not None:
            arrays[run.layers[-1]] = run.outputs[0].copy()

    compiled = irexec.compile_model(MODEL, optimize=False)
    compiled.run(IMAGE, on_layer=look)
    assert [run.layers for run in seen] == [(name,) for name in LAYERS]
    expected = compiled.run(IMAGE, ["conv0", "maxpool2:0", "probabilities"])
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name.removesuffix(":0")], array)
    assert all(run.seconds > 0 and run.algorithm == "reference" for run in seen)


def test_on_layer_of_fused_steps_names_all_their_layers() -> None:
    seen: list[StepRun] = []
    result = irexec.compile_model(MODEL).run(IMAGE, on_layer=seen.append)
    assert seen[0].layers == ("conv0/Convolution", "conv0", "relu1")
    assert seen[0].operation == "Convolution+Add+Relu"
    np.testing.assert_array_equal(result[0], irexec.compile_model(MODEL)(IMAGE)[0])


def test_arrays_of_a_callback_cannot_be_written() -> None:
    def spoil(run: StepRun) -> None:
        if run.outputs[0] is not None:
            run.outputs[0][...] = 0

    with pytest.raises(ValueError, match="read-only"):
        irexec.compile_model(MODEL).run(IMAGE, on_layer=spoil)


def test_what_a_callback_raises_ends_the_run_and_reaches_the_caller() -> None:
    class Enough(Exception):
        pass

    def stop(run: StepRun) -> None:
        raise Enough

    compiled = irexec.compile_model(MODEL)
    with pytest.raises(Enough):
        compiled.run(IMAGE, on_layer=stop)
    assert compiled(IMAGE)[0].shape == (1, 10)


def test_the_time_of_a_run_is_that_of_a_plain_loop() -> None:
    """Many small steps of C kernels are one call then: a run whose steps are measured takes much longer."""
    b = irexec.Builder("small")
    x = b.parameter("f32", (4, 16), "x")
    for i in range(40):
        x = b.emit("Softmax", b.emit("MatMul", x, np.eye(16, dtype=np.float32) * (i + 1)), axis=1)
    b.result(x, "y")
    compiled, given = irexec.compile_model(b.model(), threads=1), np.ones((4, 16), np.float32)

    def are_alike() -> bool:
        found, loop = compiled.profile(given, 50), []
        for _ in range(50):
            begin = time.perf_counter()
            compiled(given)
            loop.append((time.perf_counter() - begin) * 1e3)
        assert found.in_steps < found.observed
        return found.minimum < 1.5 * min(loop)

    # Other work of the machine may come between.
    assert any(are_alike() for _ in range(10))


def test_a_run_that_is_not_observed_takes_as_long_as_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the binding of its inputs, which is most of the time of a small model."""
    compiled = irexec.compile_model(DIGITS / "classifier.xml")
    inputs = np.zeros((1, 1, 8, 8), np.float32)
    bind = compiled_model.bind_inputs

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.01)
        return bind(*arguments, **options)

    monkeypatch.setattr(compiled_model, "bind_inputs", slow)
    assert compiled.profile(inputs, 2).minimum >= 10
