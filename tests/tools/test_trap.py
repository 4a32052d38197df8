"""Where a run stops: at the layer that makes NaN, infinities or large values, not at those that only pass them on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import InputError, ModelError
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.trapping import TrapOptions
from irexec.tools.trapping.report import Trap, read_ranges
from irexec.tools.trapping.trap import TrapWatcher, record_ranges, trap, watched_values
from tests.support.paths import IRS

NAN, INF = np.nan, np.inf


def _quotient(divisor: list[float] | None = None) -> irexec.Model:
    """relu(x) / d, then the exponential function and a sum; d is an input or a constant."""
    builder = irexec.Builder("quotient")
    x = builder.parameter("f32", (4,), "x")
    relu = builder.emit("Relu", x, name="relu")
    d = (
        builder.parameter("f32", (4,), "d")
        if divisor is None
        else builder.constant(np.array(divisor, np.float32), "f32", "d")
    )
    exp = builder.emit("Exp", builder.emit("Divide", relu, d, name="quotient"), name="exp")
    builder.result(builder.emit("ReduceSum", exp, np.array([0]), name="sum"))
    return builder.model()


def _trap(
    model: irexec.Model, *inputs: list[float], kinds: tuple[str, ...] = ("nan", "inf"), **options: object
) -> Trap | None:
    return trap(model, [np.array(values, np.float32) for values in inputs], kinds, **options).trap


def _found(found: Trap | None) -> tuple[object, ...]:
    assert found is not None
    return found.kind, found.origin, found.name, found.index, found.count, found.fine


@pytest.mark.parametrize(
    ("x", "d", "kinds", "expected"),
    [
        ([1, 2, 3, 4], [1, 1, 1, 1], ("nan", "inf", "f16"), None),
        # 0/0 is NaN and 3/0 infinite; what is looked for first is named.
        ([1, -2, 3, 0], [1, 0, 0, 1], ("nan", "inf"), ("nan", "layer", "quotient", (1,), 1, 1)),
        ([1, -2, 3, 0], [1, 0, 0, 1], ("inf", "nan"), ("inf", "layer", "quotient", (2,), 1, 1)),
        ([1, -2, 3, 0], [1, 0, 0, 1], ("f16",), None),
        # exp(12) is 162754.8, exp(11) is 59874.1.
        ([11, 12, 12, 0], [1, 1, 1, 1], ("nan", "inf", "f16"), ("f16", "layer", "exp", (1,), 2, 2)),
        # A sum of four of 59874.1 is the first that is too large; it has a shape of one element.
        ([11, 11, 11, 11], [1, 1, 1, 1], ("f16",), ("f16", "layer", "sum", (), 1, 3)),
        ([1, 90, 3, 4], [1, 1, 1, 1], ("inf",), ("inf", "layer", "exp", (1,), 1, 2)),
        # NaN of an input stops the run at once, infinities of an input do not.
        ([1, NAN, NAN, 4], [1, 1, 1, 1], ("nan", "inf"), ("nan", "input", "x", (1,), 2, 0)),
        ([1, INF, 3, 4], [1, 1, 1, 1], ("nan", "inf"), None),
        ([1, INF, 3, 4], [1, INF, 1, 1], ("nan", "inf"), ("nan", "layer", "quotient", (1,), 1, 1)),
        ([1, 2, 3, 70000], [1, 1, 1, 1], ("f16",), None),
        ([1, NAN, 3, 4], [1, 1, 1, 1], ("inf",), None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("constant", [False, True])
def test_by_hand(
    x: list[float], d: list[float], kinds: tuple[str, ...], expected: tuple[object, ...] | None, constant: bool
) -> None:
    found = _trap(_quotient(d), x, kinds=kinds) if constant else _trap(_quotient(), x, d, kinds=kinds)
    if expected is None:
        assert found is None
    else:
        assert _found(found) == expected


def test_a_constant_is_said_to_be_the_source() -> None:
    found = _trap(_quotient([1, NAN, 1, 1]), [1, 2, 3, 4])
    assert _found(found) == ("nan", "constant", "quotient", (1,), 1, 1)
    assert found is not None
    assert found.source == "d"
    assert _trap(_quotient([1, NAN, 1, 1]), [1, 2, 3, 4], ignore=["d"]) is None


def test_statistics_of_what_the_layer_has_read() -> None:
    found = _trap(_quotient(), [6, -2, 3, 0], [1, 0, 2, 1])
    assert found is not None
    relu, d = found.inputs
    assert (relu.name, relu.source, relu.fact, relu.statistics.max, relu.statistics.zeros) == (
        "relu", "Relu", "f32[4]", 6, 2,
    )  # fmt: skip
    assert (d.name, d.source, d.statistics.mean) == ("d", "Parameter", 1)
    assert (found.output.statistics.nans, found.output.statistics.max) == (1, 6)
    assert np.isnan(found.value)
    assert (found.type, found.version, found.iterations, found.limits) == ("Divide", "opset1", (), None)


@pytest.mark.parametrize("ignore", [["quotient"], ["quo*"], ["*ent", "sum"], ["3"]])
def test_a_layer_that_is_left_out_hides_what_comes_of_it(ignore: list[str]) -> None:
    model = _quotient()
    assert next(node.name for node in model.nodes if node.id == 3) == "quotient"
    report = trap(model, [np.array(v, np.float32) for v in ([0, 1, 1, 1], [0, 1, 1, 1])], ignore=ignore)
    assert report.trap is None
    assert "quotient" in report.ignored


def test_a_name_to_ignore_that_nothing_has() -> None:
    with pytest.raises(InputError, match=r"--trap-ignore quot: no layer, tensor or input has this name"):
        trap(_quotient(), None, ignore=["quot"])


def test_inputs_with_infinities_are_named() -> None:
    report = trap(_quotient(), [np.array([1, INF, 3, 4], np.float32), np.ones(4, np.float32)])
    assert (report.infinite, report.layers) == (("x",), 4)


def test_f16_is_not_beyond_itself() -> None:
    builder = irexec.Builder("half")
    x = builder.parameter("f16", (2,), "x")
    builder.result(builder.emit("Multiply", x, x, name="square"))
    half = np.array([200, 300], np.float16)
    model = builder.model()
    assert trap(model, half, ("f16",), precision="as-written").trap is None
    assert _found(trap(model, half, ("f16", "inf"), precision="as-written").trap) == (
        "inf", "layer", "square", (1,), 1, 0,
    )  # fmt: skip
    # In f32 it is known how large the value is.
    found = trap(model, half, ("f16", "inf")).trap
    assert found is not None and (found.kind, found.output.name, found.value) == ("f16", "square", 90000)


def test_a_constant_that_f16_cannot_hold_is_named_and_does_not_hide_what_follows() -> None:
    builder = irexec.Builder("weights")
    x = builder.parameter("f32", (2,), "x")
    scaled = builder.emit("Multiply", x, np.array([3e6, 1], np.float32), name="scaled")
    small = builder.emit("Multiply", scaled, np.float32(1e-6), name="small")
    builder.result(builder.emit("Multiply", small, np.float32(6e4), name="large"))
    found = trap(builder.model(), np.ones(2, np.float32), ("f16",)).trap
    assert found is not None and (found.origin, found.source, found.name) == ("constant", "Constant", "scaled")
    after = trap(builder.model(), np.ones(2, np.float32), ("f16",), ignore=["Constant", "scaled"]).trap
    assert after is not None and (after.origin, after.name) == ("layer", "large")


def _loop_inputs(value: float) -> list[np.ndarray]:
    return [np.full((2, 4, 3), value, np.float32), np.zeros((2, 3), np.float32)]


def test_the_iteration_and_the_layer_of_a_body(tmp_path: Path) -> None:
    """NaN come into the loop with the third slice, of infinity and minus infinity."""
    model = irexec.read_model(IRS / "tensor_iterator.xml")
    inputs = _loop_inputs(1)
    inputs[0][0, 2, 1] = INF
    inputs[1][0, 1] = 1
    path = str(tmp_path / "ranges.json")
    record_ranges(model, [_loop_inputs(1)], path)
    found = trap(model, inputs, (), ranges=path, ignore=["x", "start"]).trap
    assert found is not None
    # The slices before are those of the reference run; the state is not.
    assert found.iterations[0][:2] == ("TensorIterator_243", "body")
    inputs[1][0, 1] = 0
    found = trap(model, inputs, (), ranges=path, ignore=["x", "start"]).trap
    assert found is not None
    assert (found.iterations, found.type) == ((("TensorIterator_243", "body", 2),), "Squeeze")
    assert found.output.name == "TensorIterator_243/body/Squeeze_235"


def test_ranges_of_several_runs(tmp_path: Path) -> None:
    model, path = _quotient([1, 1, 1, 1]), str(tmp_path / "ranges.json")
    record_ranges(model, [np.array([1, 2, 3, 4], np.float32)], path)
    found = record_ranges(model, [np.array([-3, 0, 2, NAN], np.float32), np.array([0, 0, 0, 5], np.float32)], path)
    assert found.runs == read_ranges(path).runs == 3
    assert read_ranges(path).tensors["x"] == (-3, 5)
    assert read_ranges(path).tensors["relu"] == (0, 5)
    assert read_ranges(path).tensors["exp"] == pytest.approx((1, np.exp(5)))

    assert _trap(model, [-3, 0, 5, 0], kinds=(), ranges=path) is None
    # 1 % more is beyond the margin of 0.1 %, and within one of 2 %.
    found_at = _trap(model, [-3, 0, 5.05, 0], kinds=(), ranges=path)
    assert _found(found_at) == ("range", "input", "x", (2,), 1, 0)
    assert found_at is not None
    assert found_at.limits == pytest.approx((-3.005, 5.005))
    assert _trap(model, [-3, 0, 5.05, 0], kinds=(), ranges=path, margin=0.1) is None
    assert _found(_trap(model, [-3, 0, 5.05, 0], kinds=(), ranges=path, ignore=["x"])) == (
        "range", "layer", "relu", (2,), 1, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "[" * 100_000, '{"format": "irexec ranges", "model": "m", "runs": 1, "tensors": {"x": [2, 1]}}',
     '{"format": "irexec ranges", "model": "m", "runs": 1, "tensors": {"x": [NaN, 1]}}', "\x00\xff",
     '{"format": "irexec ranges", "model": "m", "runs": 1, "tensors": {"x": [0, 1' + "0" * 400 + "]}}",
     '{"format": "irexec ranges", "model": "m", "runs": Infinity, "tensors": {}}',
     '{"format": "irexec ranges", "model": "m", "runs": -1, "tensors": {}}'],
)  # fmt: skip
def test_a_file_that_is_not_of_ranges_is_refused_and_kept(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ModelError, match="not a file of ranges"):
        trap(_quotient([1, 1, 1, 1]), np.ones(4, np.float32), (), ranges=str(path))
    with pytest.raises(InputError, match="--record-range would overwrite"):
        record_ranges(_quotient([1, 1, 1, 1]), [np.ones(4, np.float32)], str(path))
    assert path.read_text("utf-8") == text


def test_ranges_of_another_model(tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    path.write_text(json.dumps({"format": "irexec ranges", "model": "other", "runs": 1, "tensors": {"y": [0, 1]}}))
    with pytest.raises(InputError, match="no tensor of the model has a range in the file, which has those of 'other'"):
        trap(_quotient([1, 1, 1, 1]), np.ones(4, np.float32), (), ranges=str(path))


@pytest.mark.parametrize("kinds", [(), ("nan", "none"), ("range",)])
def test_wrong_kinds(kinds: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="kind"):
        trap(_quotient([1, 1, 1, 1]), np.ones(4, np.float32), kinds)


@pytest.mark.parametrize("name", ["loop", "tensor_iterator", "if"])
@pytest.mark.parametrize("optimize", [False, True])
def test_a_watched_run_gives_what_a_run_gives(name: str, optimize: bool) -> None:
    path = IRS / f"{name}.xml"
    if not path.exists():
        pytest.skip("there is no such model")
    model = irexec.read_model(path)
    compiled = CompiledModel(model, optimize=optimize)
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(0, 2, [size if isinstance(size, int) else 2 for size in port.shape or ()]).astype(
            port.element.carrier
        )
        for port in compiled.inputs
        if port.element is not None
    ]
    values = [node.inputs[0] for node in compiled.model.results if node.inputs[0] is not None]
    watched = watched_values(compiled, inputs, values, TrapWatcher(compiled, TrapOptions(kinds=("nan", "inf"))))
    for ours, theirs in zip(watched, compiled.values(inputs, values), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_inputs_are_as_the_layer_has_read_them() -> None:
    """Also those that a kernel would otherwise write over, and those after views."""
    builder = irexec.Builder("chain")
    x = builder.parameter("f32", (64,), "x")
    y = builder.emit("Sigmoid", builder.emit("Negative", x, name="n"), name="s")
    flat = builder.emit("Reshape", y, np.array([8, 8]), special_zero=False, name="r")
    builder.result(builder.emit("Sqrt", builder.emit("Add", flat, np.float32(-1), name="a"), name="root"))
    array = np.linspace(-1, 1, 64, dtype=np.float32)
    found = trap(builder.model(), array).trap
    assert found is not None
    assert (found.name, found.count) == ("root", 64)
    assert found.inputs[0].statistics.min == pytest.approx(1 / (1 + np.exp(1)) - 1)
