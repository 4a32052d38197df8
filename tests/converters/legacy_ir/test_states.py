"""TensorIterator, Memory pairs, pre-processing, results and their names."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from tests.converters.legacy_ir.files import OldFile, port
from tests.converters.legacy_ir.rows import random

S, H = random(2, 3, 4), random(2, 4)


def _iterator(start: int, end: int, stride: int) -> OldFile:
    """h = tanh(x_t + h), with x_t squeezed by a Reshape; outputs: every h, and the last one."""
    file = OldFile(7)
    s, h = file.input("s", S.shape), file.input("h", H.shape)
    sliced = f'axis="1" start="{start}" end="{end}" stride="{stride}" part_size="1"'
    shape = (2, 4)
    body = (
        "<body><layers>"
        '<layer id="0" name="flat" type="Reshape" precision="FP32"><data dim="2,4"/>'
        f"<input>{port(0, (2, 1, 4))}</input><output>{port(1, shape)}</output></layer>"
        '<layer id="1" name="sum" type="Eltwise" precision="FP32"><data operation="sum"/>'
        f"<input>{port(0, shape)}{port(1, shape)}</input><output>{port(2, shape)}</output></layer>"
        f'<layer id="2" name="out" type="TanH" precision="FP32"><input>{port(0, shape)}</input>'
        f"<output>{port(1, shape)}</output></layer>"
        '<layer id="3" name="row" type="Reshape" precision="FP32"><data dim="2,1,4"/>'
        f"<input>{port(0, shape)}</input><output>{port(1, (2, 1, 4))}</output></layer></layers><edges>"
        '<edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>'
        '<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></body>'
        f'<port_map><input external_port_id="0" internal_layer_id="0" internal_port_id="0" {sliced}/>'
        '<input external_port_id="1" internal_layer_id="1" internal_port_id="1"/>'
        f'<output external_port_id="2" internal_layer_id="3" internal_port_id="1" {sliced}/>'
        '<output external_port_id="3" internal_layer_id="2" internal_port_id="1"/></port_map>'
        '<back_edges><edge from-layer="2" from-port="1" to-layer="1" to-port="1"/></back_edges>'
    )
    file.layer("TensorIterator", "y", [(s, 0, S.shape), (h, 0, H.shape)], [S.shape, H.shape], inside=body)
    return file


@pytest.mark.parametrize(("steps", "times"), [((0, -1, 1), [0, 1, 2]), ((-1, 0, -1), [2, 1, 0])])
def test_an_iterator(steps: tuple[int, int, int], times: list[int]) -> None:
    file = _iterator(*steps)
    model = irexec.read_model(file.text, file.data)
    assert list(irexec.validate(model)) == []
    outputs = irexec.infer(model, {"s": S, "h": H})
    h, found = H, np.zeros_like(S)
    for time in times:
        h = np.tanh(S[:, time] + h)
        found[:, time] = h
    np.testing.assert_allclose(outputs["y.0"], found, rtol=1e-5)
    np.testing.assert_allclose(outputs["y.1"], h, rtol=1e-5)


def test_a_fault_in_a_body_is_found_there() -> None:
    file = _iterator(0, -1, 1)
    file.layers[2] = file.layers[2].replace('type="TanH"', 'type="TanG"')
    with pytest.raises(irexec.ConversionError, match=r"layer 2 'out' \(TanG\): 'TanG' is not a layer type"):
        irexec.read_model(file.text, file.data)


def test_a_memory_pair_keeps_its_value() -> None:
    file = OldFile(7)
    x = file.input("x", (1, 3))
    before = file.layer("Memory", "read", (), [(1, 3)], {"id": "m", "index": "1", "size": "2"})
    total = file.layer("Eltwise", "sum", [(x, 0, (1, 3)), (before, 0, (1, 3))], [(1, 3)], {"operation": "sum"})
    file.layer("Memory", "write", [(total, 2, (1, 3))], (), {"id": "m", "index": "0", "size": "2"})
    file.layer("Power", "y", [(total, 2, (1, 3))], [(1, 3)], {"power": 1, "scale": 2, "shift": 0})
    model = irexec.read_model(file.text, file.data)
    assert list(irexec.validate(model)) == []
    assert [output.name for output in model.outputs] == ["y"]
    compiled = irexec.compile_model(model)
    one = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(compiled({"x": one})["y"], 2 * one)
    np.testing.assert_array_equal(compiled({"x": one})["y"], 4 * one)


@pytest.mark.parametrize("precision", ["FP32", "U8", "FP16"])
def test_means_are_subtracted(precision: str) -> None:
    file = OldFile(6)
    x = file.input("data", (1, 2, 2, 3), precision)
    file.layer("ReLU", "y", [(x, 0, (1, 2, 2, 3))], [(1, 2, 2, 3)])
    image = np.arange(6, dtype=np.float32)
    file.data = image.tobytes()
    file.after = (
        '<pre-process reference-layer-name="data" mean-precision="FP32"><channel id="1"><mean value="3.5"/></channel>'
        '<channel id="0"><mean offset="0" size="24"/></channel></pre-process>'
    )
    model = irexec.read_model(file.text, file.data)
    assert str(model.inputs[0].element) == {"FP32": "f32", "U8": "u8", "FP16": "f32"}[precision]
    given = np.full((1, 2, 2, 3), 4, np.uint8 if precision == "U8" else np.float32)
    expected = np.stack([np.maximum(4 - image.reshape(2, 3), 0), np.full((2, 3), 0.5)])[None]
    np.testing.assert_array_equal(irexec.infer(model, {"data": given})["y"], expected)


def test_results_are_the_ports_that_nobody_reads() -> None:
    file = OldFile(6)
    x = file.input("x", (1, 4))
    parts = file.layer("Split", "a/b:c", [(x, 0, (1, 4))], [(1, 2), (1, 2)], {"axis": 1})
    file.layer("ReLU", "second", [(parts, 1, (1, 2))], [(1, 2)])
    model = irexec.read_model(file.text, file.data)
    assert [output.name for output in model.outputs] == ["a/b:c.1", "second"]
    assert [node.id for node in model.nodes if node.name in ("x", "a/b:c", "second")] == [0, 1, 2]


def test_an_output_of_i64_is_given_as_i32() -> None:
    file = OldFile(7)
    x = file.input("x", (2,), "I64")
    file.layer(
        "Unsqueeze", "y", [(x, 0, (2,)), (file.const("a", np.int32([0])), 0, (1,))], [(1, 2)], precisions=["I64"]
    )

    model = irexec.read_model(file.text, file.data)
    assert str(model.outputs[0]) == "y: i32[1,2]"


def test_a_written_model_is_of_version_11(tmp_path) -> None:
    file = OldFile(2)
    x = file.input("x", (1, 2, 3, 3))
    weights = random(1, 2, 3, 3)
    file.layer("Convolution", "y", [(x, 0, (1, 2, 3, 3))], [(1, 1, 1, 1)], {"kernel-x": 3, "kernel-y": 3, "output": 1},
               {"weights": weights.astype(np.float16)}, "FP16", tag="convolution_data")  # fmt: skip
    model = irexec.read_model(file.text, file.data)
    model.save(tmp_path / "new.xml")
    again = irexec.read_model(tmp_path / "new.xml")
    given = {"x": random(1, 2, 3, 3)}
    assert again.version == 11
    np.testing.assert_array_equal(irexec.infer(again, given)["y"], irexec.infer(model, given)["y"])
