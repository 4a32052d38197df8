"""A run ends when its time is over: between steps, between the iterations of loops, and between the blocks of a step."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.runtime import execute
from tests.support.endless_loop import endless_loop

X = np.zeros((1, 4), np.float32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> itertools.count[int]:
    """A clock that is a second further each time it is looked at."""
    seconds = itertools.count()
    # The clock of limits alone: memory and cores are asked for by another.
    monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    return seconds


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("has_steps", "layer"), [(True, r"loop(/count)?"), (False, "loop")])
def test_an_endless_loop_ends(clock: itertools.count[int], optimize: bool, has_steps: bool, layer: str) -> None:
    compiled = irexec.compile_model(endless_loop(has_steps=has_steps), optimize=optimize)
    with pytest.raises(
        irexec.RunTimeoutError, match=f"^the run took longer than 100 s and was stopped at layer '{layer}'$"
    ) as caught:
        compiled.run({"x": X}, timeout=100)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.seconds == 100
    assert next(clock) == 102


def test_a_chain_of_steps_ends_at_the_next_layer(clock: itertools.count[int]) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (1, 4), "x")
    for i in range(10):
        x = builder.emit("Relu", x, name=f"relu{i}")
    builder.result(x)
    compiled = irexec.compile_model(builder.model(), optimize=False)
    with pytest.raises(irexec.RunTimeoutError, match="'relu5'"):
        compiled.run({"x": X}, timeout=5)
    assert compiled.run({"x": X}, timeout=11)[0].shape == (1, 4)
    with pytest.raises(irexec.RunTimeoutError, match="'relu2'"):
        compiled.profile({"x": X}, 5, timeout=13)
    with pytest.raises(irexec.RunTimeoutError, match="'relu5'"):
        compiled.session().values({"x": X}, [x], timeout=5)


def _sequence(builder: irexec.Builder) -> Any:
    state, lengths = np.zeros((1, 1, 2), np.float32), np.array([60])
    weights = [np.zeros((1, 8, 3), np.float32), np.zeros((1, 8, 2), np.float32), np.zeros((1, 8), np.float32)]
    x = builder.parameter("f32", (1, 60, 3), "x")
    return builder.emit(
        "LSTMSequence", x, state, state, lengths, *weights, name="long", hidden_size=2, direction="forward"
    )


def _regions(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8, 8), "x")
    attributes = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 7, "spatial_scale": 1.0, "mode": "max"}
    return builder.emit("ROIAlign", x, np.array([[0, 0, 7, 7]], np.float32), np.array([0]), name="long", **attributes)


def _large_region(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8, 8), "x")
    attributes = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 1000, "spatial_scale": 1.0, "mode": "max"}
    return builder.emit("ROIAlign", x, np.array([[0, 0, 7, 7]], np.float32), np.array([0]), name="long", **attributes)


def _transposed(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (1, 1, 8), "x")
    attributes = {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)}
    return builder.emit("ConvolutionBackpropData", x, np.ones((1, 1, 60), np.float32), name="long", **attributes)


def _small_products(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (4_500, 30, 30), "x")
    return builder.emit("MatMul", x, x, name="long")


def _product_of_integers(builder: irexec.Builder) -> Any:
    x = builder.parameter("f32", (500, 500), "x")
    return builder.emit(
        "MatMul", builder.emit("Convert", x, destination_type="i32"), np.ones((500, 500), np.int32), name="long"
    )


def _boxes(type: str, coordinates: int = 4, **attributes: Any) -> Any:
    """A suppression of 20 boxes in each of 40 classes, apart and of equal score."""

    def build(builder: irexec.Builder) -> Any:
        x = builder.parameter("f32", (1, 40, 20), "x")
        boxes = np.ones((1, 20, coordinates), np.float32)
        boxes[0, :, :2] = 5 * np.arange(20)[:, None]
        boxes[0, :, 2:4] = 1 if coordinates == 5 else boxes[0, :, :2] + 1
        limits = [np.array(20), np.float32(0.5), np.float32(0)] if "NMS" in type or "NonMax" in type else []
        return builder.emit(type, boxes, x, *limits, name="long", **attributes)

    return build


def _texts(type: str, *constants: Any, **attributes: Any) -> Any:
    def build(builder: irexec.Builder) -> Any:
        x = builder.parameter("f32", (60,), "x")
        text = builder.emit("AsString", x, version="irexec")
        return builder.emit(
            type, text, *(np.array(one, object) for one in constants), name="long", version="irexec", **attributes
        )

    return build


@pytest.mark.parametrize(
    "build",
    [
        _sequence, _regions, _large_region, _transposed, _small_products, _product_of_integers,
        _boxes("NonMaxSuppression"), _boxes("NMSRotated", 5), _boxes("MulticlassNms"), _boxes("MatrixNms"),
        _texts("RegexFullMatch", "1*"), _texts("StringTokenizer", ["1"], "", mode="separators"),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_a_long_kernel_ends_before_it_is_done(build: Any, clock: itertools.count[int]) -> None:
    builder = irexec.Builder("m")
    results = build(builder)
    builder.result(results[0] if isinstance(results, tuple) else results)
    compiled = irexec.compile_model(builder.model(), optimize=False)
    x = np.ones(compiled.inputs[0].shape, np.float32)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([x], timeout=10)
    assert next(clock) == 12
    compiled.run([x], timeout=1000)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_ends_between_its_blocks(
    clock: itertools.count[int], monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """In C, the clock is looked at every so many nanoseconds."""
    monkeypatch.setattr("irexec.backend.calls.LOOK", 0)
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (4000, 64, 64), "x")
    builder.result(builder.emit("MatMul", x, x, name="long"))
    compiled = irexec.compile_model(builder.model(), threads=threads)
    array = np.ones((4000, 64, 64), np.float32)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([array], timeout=10)
    assert compiled.run([array], timeout=1_000_000)[0][-1, -1, -1] == 64


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_a_pad_ends_between_its_blocks(clock: itertools.count[int], monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Of every axis: the result of [62, 6] is cut into blocks of at most 8 elements."""
    monkeypatch.setattr("irexec.reference.windows._BLOCK", 8)
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (60, 4), "x")
    builder.result(builder.emit("Pad", x, np.array([1, 1]), np.array([1, 1]), version=1, name="long", pad_mode=mode))
    compiled = irexec.compile_model(builder.model(), threads=1, native=False)
    array = np.arange(240, dtype=np.float32).reshape(60, 4)
    with pytest.raises(irexec.RunTimeoutError, match="'long'"):
        compiled.run([array], timeout=10)
    np.testing.assert_array_equal(compiled.run([array], timeout=1000)[0], np.pad(array, 1, mode))  # type: ignore[call-overload]


def test_variables_are_as_before(clock: itertools.count[int]) -> None:
    folder = Path(__file__).parent.parent / "data" / "openvino"
    compiled = irexec.compile_model(folder / "state.xml", optimize=False)
    inputs = [
        np.ones([s if isinstance(s, int) else 1 for s in port.shape or ()], np.float32) for port in compiled.inputs
    ]
    compiled(inputs)
    before = {name: array.copy() for name, array in compiled.variables.items()}
    assert before
    for timeout in range(1, 20):
        try:
            compiled.run(inputs, timeout=timeout)
        except irexec.RunTimeoutError:
            assert {name: array.tolist() for name, array in compiled.variables.items()} == {
                n: a.tolist() for n, a in before.items()
            }
        else:
            break
    assert timeout > 1


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_a_timeout_is_a_positive_number(timeout: Any) -> None:
    with pytest.raises(irexec.InputError, match=r"^timeout is .*, expected a number of seconds above 0$"):
        irexec.compile_model(endless_loop()).run({"x": X}, timeout=timeout)
