"""LSTM, GRU and RNN of ONNX against recorded results of ONNX Runtime, and reductions of booleans."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import converters
import irexec
from irexec import io
from tests.onnx.control import Row, check_gives, model_of
from tests.onnx.recurrent_rows import RECORDED, ROWS


@functools.cache
def _recorded() -> dict[str, np.ndarray]:
    with np.load(RECORDED, allow_pickle=False) as file:
        return dict(file)


def _expected(name: str) -> list[np.ndarray]:
    count = sum(key.rpartition("|")[0] == name for key in _recorded())
    return [_recorded()[f"{name}|{i}"] for i in range(count)]


def test_nothing_else_is_recorded() -> None:
    assert {key.rpartition("|")[0] for key in _recorded()} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.sampled(8)
def test_gives(name: str, live: bool, tmp_path: Path) -> None:
    row, expected = ROWS[name], _expected(name)
    model, inputs = row.model()
    converted = converters.convert(model)
    assert [str(finding) for finding in irexec.validate(converted) if finding.severity != "info"] == []
    read = io.read_text(*io.write_text(converted))
    for optimize in (False, True):
        results = list(irexec.compile_model(read, optimize=optimize)(inputs).values())
        _compare(results, expected)
    if live and not row.openvino:
        irexec.save_model(converted, tmp_path / "m.xml")
        _compare(_by_openvino(tmp_path / "m.xml", inputs), expected)


def _compare(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(results) == len(expected)
    for result, reference in zip(results, expected, strict=True):
        assert result.shape == reference.shape
        np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-5)


def _by_openvino(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    ov = pytest.importorskip("openvino")
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled([inputs[port.any_name] for port in compiled.inputs])
    return [results[port] for port in compiled.outputs]


def _types(name: str) -> set[str]:
    return {node.type for node in converters.convert(ROWS[name].model()[0]).walk()}


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_options_that_ir_has_give_one_layer(operator: str) -> None:
    """Weights are reordered during conversion, so that no operation for it remains."""
    types = _types(f"{operator}, bidirectional, every input")
    assert f"{operator}Sequence" in types
    assert not types & {"TensorIterator", "Split", "Concat"}


def test_the_size_of_the_state_is_that_of_its_weights() -> None:
    model, inputs = ROWS["GRU, forward"].model()
    del model.graph.node[0].attribute[:]
    results = list(irexec.compile_model(converters.convert(model))(inputs).values())
    _compare(results, _expected("GRU, forward"))


def test_directions_that_differ_are_two_layers() -> None:
    model = converters.convert(ROWS["RNN, each direction has its own activation"].model()[0])
    assert [node.attributes["direction"] for node in model.nodes if node.type == "RNNSequence"] == [
        "forward",
        "reverse",
    ]


def test_a_constant_state_with_batches_first_is_cut_by_its_directions() -> None:
    """The same network as the recorded one, which has time first."""
    name = "RNN, each direction has its own activation"
    row = ROWS[name]
    model, _ = row._replace(attributes={**row.attributes, "layout": 1}).model()
    inputs = {key: array if key == "sequence_lens" else array.swapaxes(0, 1) for key, array in row.model()[1].items()}
    model.graph.initializer.append(numpy_helper.from_array(inputs.pop("initial_h"), "initial_h"))
    model.graph.input.remove(next(info for info in model.graph.input if info.name == "initial_h"))
    y, state = irexec.compile_model(converters.convert(model))(inputs).values()
    _compare([y.transpose(1, 2, 0, 3), state.swapaxes(0, 1)], _expected(name))


def test_options_that_ir_lacks_give_a_loop() -> None:
    assert "TensorIterator" in _types("LSTM, peepholes")
    assert "LSTMSequence" not in _types("LSTM, peepholes")


_REFUSED: dict[str, dict[str, Any]] = {
    "direction is 'sideways', expected forward, reverse or bidirectional": {"direction": "sideways"},
    "activation 'Sine' is not one of affine": {"activations": ["Sine"]},
    "activation Affine needs beta, which is not given": {"activations": ["Affine"], "activation_alpha": [1.0]},
    "activation ThresholdedRelu needs alpha, which is not given": {"activations": ["ThresholdedRelu"]},
    "activations are Tanh, expected 2": {"activations": ["Tanh"], "direction": "bidirectional"},
    "layout is 2, expected 0 or 1": {"layout": 2},
}


@pytest.mark.parametrize("message", _REFUSED)
def test_refuses(message: str) -> None:
    with pytest.raises(irexec.ConversionError, match="node 'node'") as caught:
        converters.convert(_refused(_REFUSED[message]))
    assert message in str(caught.value)


def _refused(attributes: dict[str, Any]) -> onnx.ModelProto:
    model, _ = ROWS["RNN, forward"].model()
    node = model.graph.node[0]
    for name, value in attributes.items():
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return model


# Reductions of booleans from ONNX, with axes that are constants, computed by other nodes, or inputs of the model.


X = np.array([[True, False, True], [False, False, False]])
_COMPUTED = "one = Constant <value_ints = [1]> () rank = Shape (s) axes = Sub (rank, one)"
_RANK_UNKNOWN = "its CPU plugin needs a known rank of the result"


def _both(declared: str, before: str, axes: str, attributes: str = "keepdims = 0") -> str:
    return f"""g ({declared}) => (bool[...] y, bool[...] z) {{
        {before} y = ReduceMax <{attributes}> (x{axes}) z = ReduceMin <{attributes}> (x{axes}) }}""".replace(
        "[...]", ""
    )


REDUCTION_ROWS = [
    Row("axes of another node", _both("bool[2, 3] x", f"s = Shape (x) {_COMPUTED}", ", axes"), {"x": X}, [X.any(1), X.all(1)], 20),
    Row("constant axes", _both("bool[2, 3] x", "a = Constant <value_ints = [0]> ()", ", a"), {"x": X}, [X.any(0), X.all(0)], 20),
    Row("no axes", _both("bool[2, 3] x", "", ""), {"x": X}, [X.any(), X.all()], 20),
    Row("empty axes", _both("bool[2, 3] x", "a = Constant <value = int64[0] {}> ()", ", a"), {"x": X}, [X.any(), X.all()], 20),
    Row("empty axes that do nothing", _both("bool[2, 3] x", "a = Constant <value = int64[0] {}> ()", ", a", "noop_with_empty_axes = 1"), {"x": X}, [X, X], 20),
    Row("axes from an input", _both("bool[2, 3] x, int64[1] a", "", ", a"), {"x": X, "a": np.array([-1])}, [X.any(1), X.all(1)], 20),
    Row("axes from an input, of which there may be any number", _both("bool[2, 3] x, int64[n] a", "", ", a"), {"x": X, "a": np.array([-1])}, [X.any(1), X.all(1)], 20, openvino=_RANK_UNKNOWN),
    Row("an axis of size 0 from an input", _both("bool[2, 0] x, int64[1] a", "", ", a"), {"x": X[:, :0], "a": np.array([1])}, [np.array([False, False]), np.array([True, True])], 20, runtime="it refuses to reduce an axis of size 0"),
]  # fmt: skip


@pytest.mark.parametrize("row", REDUCTION_ROWS, ids=[row.name for row in REDUCTION_ROWS])
def test_reductions(row: Row, live: bool) -> None:
    check_gives(row, live)


def test_known_axes_are_constants() -> None:
    """OpenVINO's CPU plugin refuses logical reductions with other axes."""
    model = converters.convert(model_of(REDUCTION_ROWS[0].graph, 20))
    logical = [node for node in model.nodes if node.type.startswith("ReduceLogical")]
    assert len(logical) == 2
    assert all(node.inputs[1] is not None and node.inputs[1].node.type == "Constant" for node in logical)
