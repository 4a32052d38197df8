"""Checks by themselves: which failures are the same, and what becomes of runtimes that end or hang."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import irexec
from irexec.errors import EngineError, RunTimeoutError
from irexec.tools.reduce import Candidate, CommandCheck, ReduceOptions, ValuesCheck, reduce
from irexec.tools.reduce.checks import runtime
from irexec.tools.reduce.checks.check import Files
from irexec.tools.reduce.checks.runtime import RuntimeCheck, essence


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
    monkeypatch.setattr(runtime, "open_runtime", Fake)
    monkeypatch.setattr(runtime, "require_runtime", lambda name: None)
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
        "irexec",
        "compare",
        "min.xml",
        "--b-runtime",
        "reference",
        "-i",
        "min.npz",
        "--rtol=0.001",
    ]


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

    monkeypatch.setattr(runtime, "open_runtime", Wrong)
    builder = irexec.Builder("m")
    x = builder.emit("Tanh", builder.emit("Exp", builder.parameter("f32", (4,), "x")), name="tanh")
    builder.result(builder.emit("NonZero", builder.emit("Relu", x), output_type="i64"))
    with RuntimeCheck("reference", timeout=1) as check:
        report = reduce(builder.model(), check, {"x": np.ones(4, np.float32)})
    assert [layer.type for layer in report.layers] == ["Tanh"]


def test_an_input_with_nan_is_no_cause() -> None:
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
