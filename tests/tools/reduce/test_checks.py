"""Checks of a reduction, later runs of models with variables, bisection and delta debugging."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irexec
from irexec.backend import registry
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch
from irexec.errors import EngineError, RunTimeoutError
from irexec.tools.reduce import Candidate, CommandCheck, DoesNotFail, ReduceOptions, ValuesCheck, against, reduce
from irexec.tools.reduce.against import RuntimeCheck, essence
from irexec.tools.reduce.checks import Files
from irexec.tools.reduce.recording import after_run
from irexec.tools.reduce.search import ddmin, shortest_prefix, shortest_suffix


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "openvino cannot run net: While validating node 'opset1::Add a (opset1::Relu r[0]:f32[1,2]) -> ()' with friendly_name 'a': Argument shapes are inconsistent.",
            "openvino cannot run min: While validating node 'opset1::Add b/c (opset1::Parameter x[0]:f32[7]) -> ()' with friendly_name 'b/c': Argument shapes are inconsistent.",
            True,
        ),
        ("axis 9 is out of range for rank 4", "axis 12 is out of range for rank 2", True),
        ("axis 9 is out of range for rank 4", "axis 9 is not unique", False),
        ("element types f32 and i64 differ", "shapes [1,2] and [3,4] cannot be broadcast together", False),
    ],
)  # fmt: skip
def test_errors_are_the_same_but_for_names_and_values(one: str, other: str, same: bool) -> None:
    assert (essence(one) == essence(other)) is same
    assert re.search("[a-z]{3}", essence(one))


def model(*types: str) -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (2, 3), "x")
    for i, type in enumerate(types):
        x = builder.emit(type, x, name=f"{type} {i}")
    builder.result(x)
    return builder.model()


class Fake:
    """A runtime that fails on layers of some types, as ``errors`` says, and gives what irexec gives otherwise."""

    errors: ClassVar[dict[str, Exception]] = {}

    def __init__(self, name: str, model: irexec.Model, **options: Any) -> None:
        self.model = model

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def run(self, inputs: Any, values: Sequence[Any]) -> list[np.ndarray]:
        for node in self.model.nodes:
            if node.type in self.errors:
                raise self.errors[node.type]
        return irexec.compile_model(self.model).values(inputs, values)


def crashed(code: int) -> EngineError:
    return EngineError(f"the process of openvino ended with exit code {code}", engine="openvino", exit_code=code)


@pytest.mark.parametrize(
    ("errors", "left"),
    [
        ({"Tanh": crashed(-11)}, "Tanh"),
        ({"Tanh": RunTimeoutError("openvino took longer than 1 s for m", seconds=1)}, "Tanh"),
        ({"Tanh": crashed(-11), "Sigmoid": crashed(-6)}, "Tanh"),
        ({"Sigmoid": RunTimeoutError("too long"), "Tanh": crashed(-11)}, "Tanh"),
        ({"Abs": EngineError("openvino cannot run m: no such thing", engine="openvino"), "Sin": crashed(-11)}, "Abs"),
    ],
)
def test_a_runtime_that_ends_or_hangs(errors: dict[str, Exception], left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against, "open_runtime", Fake)
    monkeypatch.setattr(against, "require_runtime", lambda name: None)
    # The first layer of the graph that fails is what the model fails with.
    monkeypatch.setattr(Fake, "errors", errors)
    order = ["Relu", left, *(type for type in errors if type != left), "Exp"]
    with RuntimeCheck("openvino", timeout=1) as check:
        report = reduce(model(*order), check)
    assert [layer.type for layer in report.layers] == [left]
    assert report.command == ()


def test_the_command_of_a_runtime(tmp_path: Any) -> None:
    check = RuntimeCheck("reference", rtol=1e-3)
    assert check.command(Files("min.xml", "min.npz")) == [
        "irexec", "compare", "min.xml", "--b-runtime", "reference", "-i", "min.npz", "--rtol=0.001",
    ]  # fmt: skip


def test_other_values_that_become_another_shape_are_one_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Fake):
        """Its Tanh is too small, so that nothing after it is above 0."""

        def run(self, inputs: Any, values: Sequence[Any]) -> list[np.ndarray]:
            made = irexec.compile_model(self.model)
            tanh = next((node.outputs[0] for node in self.model.nodes if node.type == "Tanh"), None)
            if tanh is None:
                return made.values(inputs, values)
            arrays = made.values(inputs, values)
            return [array - 2 if value is tanh else array[..., :0] for value, array in zip(values, arrays, strict=True)]

    monkeypatch.setattr(against, "open_runtime", Wrong)
    builder = irexec.Builder("m")
    x = builder.emit("Tanh", builder.emit("Exp", builder.parameter("f32", (4,), "x")), name="tanh")
    builder.result(builder.emit("NonZero", builder.emit("Relu", x), output_type="i64"))
    with RuntimeCheck("reference", timeout=1) as check:
        report = reduce(builder.model(), check, {"x": np.ones(4, np.float32)})
    assert [layer.type for layer in report.layers] == ["Tanh"]


def test_an_input_with_nan_is_not_a_cause() -> None:
    made = model("Relu")
    check = ValuesCheck(["nan"])
    assert check(Candidate(made, {"x": np.ones((2, 3), np.float32)})) is None
    assert check(Candidate(made, {"x": np.full((2, 3), np.nan, np.float32)})) is None
    of_nan = ValuesCheck(["nan"])
    assert of_nan(Candidate(made, {"x": np.full((2, 3), np.nan, np.float32)})) is not None


def test_a_command_gets_the_files_of_the_result() -> None:
    check = CommandCheck("tool --model={} -i '{inputs}' {other} 'a b'")
    assert check.command(Files("x y.xml", "x y.npz")) == ["tool", "--model=x y.xml", "-i", "x y.npz", "{other}", "a b"]


def test_only_a_file_can_be_resumed() -> None:
    with pytest.raises(irexec.InputError, match="can be resumed"):
        reduce(model("Relu"), ValuesCheck(["nan"]), options=ReduceOptions(resume=True))


# Faults of models with variables that the first run does not show.


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


# Bisection and delta debugging: what they return, and how often they ask.


Part = tuple[int, ...]


class Counted:
    """A predicate that keeps what it was asked."""

    def __init__(self, fails: Callable[[Part], bool]) -> None:
        self.fails, self.asked = fails, list[Part]()

    def __call__(self, part: Part) -> bool:
        self.asked.append(part)
        return self.fails(part)


culprits = st.integers(1, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=5))
)


@given(culprits)
def test_ddmin_finds_exactly_the_items_that_are_needed(case: tuple[int, set[int]]) -> None:
    n, needed = case
    fails = Counted(lambda part: needed <= set(part))
    assert ddmin(range(n), fails) == tuple(sorted(needed))
    assert len(fails.asked) <= n * n + 3 * n


@given(st.integers(1, 4000), st.data())
def test_one_item_takes_a_logarithm_of_tests(n: int, data: st.DataObject) -> None:
    needed = data.draw(st.integers(0, n - 1))
    fails = Counted(lambda part: needed in part)
    assert ddmin(range(n), fails) == (needed,)
    assert len(fails.asked) <= 2 * math.ceil(math.log2(n)) + 2


@given(st.integers(1, 24), st.randoms(use_true_random=False), st.floats(0, 1))
def test_of_any_predicate_the_part_fails_and_nothing_can_be_left_out(n: int, random: object, share: float) -> None:
    answers: dict[Part, bool] = {tuple(range(n)): True, (): False}
    fails = Counted(lambda part: answers.setdefault(part, random.random() < share))
    found = ddmin(range(n), fails)
    assert answers[found]
    if len(found) > 1:
        assert not any(answers[found[:i] + found[i + 1 :]] for i in range(len(found)))
    assert len(fails.asked) <= n * n + 3 * n
    assert all(list(part) == sorted(part) and part for part in fails.asked)


@given(st.integers(1, 3000), st.data())
def test_bisection_finds_where_a_monotone_predicate_changes(n: int, data: st.DataObject) -> None:
    last = data.draw(st.integers(0, n - 1))
    fails = Counted(lambda part: last in part)
    assert shortest_prefix(range(n), fails) == tuple(range(last + 1))
    assert len(fails.asked) <= math.ceil(math.log2(n)) + 1
    assert shortest_suffix(range(n), fails) == tuple(range(last, n))


@given(st.integers(1, 200), st.randoms(use_true_random=False))
def test_bisection_gives_what_fails_for_any_predicate(n: int, random: object) -> None:
    answers: dict[Part, bool] = {tuple(range(n)): True}
    for bisect in (shortest_prefix, shortest_suffix):
        assert answers[bisect(range(n), lambda part: answers.setdefault(part, random.random() < 0.5))]


@pytest.mark.parametrize("items", [(), (3,)])
def test_nothing_to_leave_out_is_not_tested(items: Part) -> None:
    fails = Counted(lambda part: True)
    assert ddmin(items, fails) == items
    assert not fails.asked
