"""Faults of models with variables that the first run does not show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.backend import registry
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.tools.reduce import DoesNotFail, ReduceOptions, reduce
from irexec.tools.reduce.checks.values import ValuesCheck
from irexec.tools.reduce.later_runs import after_run

_X = {"x": np.array([[1.0, 2.0]], np.float32)}


def _model(factor: float, step: float = 1.0, kind: str = "f32") -> irexec.Model:
    """A state that begins as zeros and grows by ``step`` times x in each run; the result is Sqrt of ``factor`` times the state."""
    builder = irexec.Builder("counter")
    x = builder.parameter(kind, (1, 2), "x")
    past = builder.emit("ReadValue", variable_id="v", variable_type=kind, variable_shape="1,2", name="past")
    scaled = builder.emit("Multiply", past, builder.constant([factor], kind), name="scaled")
    builder.emit("Assign", builder.emit("Add", past, builder.emit("Multiply", x, builder.constant([step], kind), name="grown"),
                                        name="next"), variable_id="v")  # fmt: skip
    builder.result(builder.emit("Sqrt", scaled, name="root"))
    return builder.model()


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_a_factor_of_a_state_of_zeros(kind: str) -> None:
    arrays = {"x": _X["x"].astype(np.float16 if kind == "f16" else np.float32)}
    found = reduce(_model(3.0, kind=kind), against=_model(2.0, kind=kind), inputs=arrays)
    assert [layer.name for layer in found.layers] == ["scaled"]
    assert "it fails in run 2: its variables begin with what the runs before leave" in found.notes
    # What stands for the state is that of the run before.
    (state,) = found.found.inputs.values()
    np.testing.assert_array_equal(state, arrays["x"])


def test_what_is_assigned_differs_in_the_first_run() -> None:
    found = reduce(_model(2.0, step=3.0), against=_model(2.0), inputs=_X)
    assert [layer.name for layer in found.layers] == ["grown"]
    assert not any("run" in note for note in found.notes)


def test_nan_in_a_later_run(tmp_path: Path) -> None:
    out = tmp_path / "small.xml"
    with ValuesCheck(["nan"]) as check:
        found = reduce(_model(-1.0), check, _X, ReduceOptions(output=str(out)))
    assert {layer.type for layer in found.layers} == {"Sqrt"}
    assert np.isnan(irexec.compile_model(out)(np.load(found.inputs or ""))[0]).all()


def test_a_model_that_agrees_in_all_runs() -> None:
    with pytest.raises(DoesNotFail, match="does not fail this check in any of 8 runs"):
        reduce(_model(2.0), against=_model(2.0), inputs=_X)


def _wrong_root(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
    np.sqrt(x, out=out)
    out[out > 1.5] = 0


def test_a_kernel_that_is_wrong_for_the_values_of_a_later_run(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.loader.load()
    wrong = BlockOperation(_wrong_root)
    monkeypatch.setitem(registry._BLOCK_OPERATIONS, ("Sqrt", 1), lambda task: wrong)
    found = reduce(_model(2.0), against="reference", inputs=_X)
    assert [layer.name for layer in found.layers] == ["root"]
    assert "it fails in run 2: its variables begin with what the runs before leave" in found.notes


def test_what_is_assigned_is_compared_with_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not show it before the second run."""
    registry.loader.load()
    wrong = BlockOperation(_one_too_many, (0, 1))
    monkeypatch.setitem(registry._BLOCK_OPERATIONS, ("Add", 1), lambda task: wrong)
    found = reduce(_model(2.0), against="reference", inputs=_X)
    assert "next" in [layer.name for layer in found.layers]
    assert not any("run" in note for note in found.notes)


def _one_too_many(scratch: Scratch, out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    np.add(x, y, out=out)
    np.add(out, 1, out=out)


def test_variables_begin_with_what_a_run_leaves() -> None:
    later = after_run(_model(2.0), _X, "f32", None)
    assert later is not None
    assert not [one for one in irexec.validate(later) if one.severity == "error"]
    np.testing.assert_allclose(irexec.compile_model(later)(_X)[0], np.sqrt(2 * _X["x"]), rtol=1e-6)
    assert after_run(_stateless(), _X, "f32", None) is None


def _stateless() -> irexec.Model:
    builder = irexec.Builder()
    x = builder.parameter("f32", (1, 2), "x")
    builder.result(builder.emit("Relu", x))
    return builder.model()
