"""Models, findings and results can be copied and sent to other processes."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.dtypes.elements import F32
from tests.support.equality import differences

IRS = sorted((Path(__file__).parent.parent / "data" / "openvino").rglob("*.xml"))
COPIES = {"pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy, "copy": copy.copy}


def _in_another_process(model: irexec.Model) -> tuple[irexec.Model, list[irexec.Finding], irexec.Outputs]:
    inputs = [
        np.ones([size if isinstance(size, int) else 2 for size in port.shape or ()], np.float32)
        for port in model.inputs
    ]
    return model, irexec.validate(model), irexec.compile_model(model)(inputs)


@pytest.mark.parametrize("path", IRS, ids=lambda path: path.stem)
def test_copies_of_models_are_equal(path: Path) -> None:
    model = irexec.read_model(path)
    for how in COPIES.values():
        copied = how(model)
        assert type(copied) is irexec.Model
        assert differences(model, copied, ports=True) == []
        assert io.write_text(copied) == io.write_text(model)


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
def test_a_copy_shares_no_node(how: object) -> None:
    model = irexec.read_model(next(path for path in IRS if path.stem == "loop"))
    assert callable(how)
    copied = how(model)
    assert not {id(node) for node in copied.walk()} & {id(node) for node in model.walk()}
    copied.nodes[0].attributes["shape"] = "changed"
    copied.nodes[0].outputs[0].names.append("changed")
    assert differences(model, irexec.read_model(model.path)) == []


@pytest.mark.parametrize(
    "weights", [None, b"\0\0\x80\x3f\0\0\0\x40", np.array([1, 2], np.float32)], ids=["file", "bytes", "array"]
)
def test_results_come_back_from_a_process(weights: object, tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant([1.0, 2.0]), names=["y"]))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml", weights)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        copied, findings, outputs = pool.submit(_in_another_process, model).result()
    assert differences(model, copied, ports=True) == []
    assert findings == []
    np.testing.assert_array_equal(outputs["y"], [2, 3])
    np.testing.assert_array_equal(outputs[0], [2, 3])


def test_a_built_model_can_be_pickled() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant([1.0, -2.0])))
    model = pickle.loads(pickle.dumps(builder.model()))
    np.testing.assert_array_equal(irexec.compile_model(model)()[0], [1, 0])


def test_long_models_do_not_recurse() -> None:
    builder = irexec.Builder("long")
    value = builder.parameter(F32, (2,), "x")
    for _ in range(3000):
        value = builder.emit("Relu", value)
    builder.result(value)
    model = builder.model()
    for how in COPIES.values():
        assert differences(model, how(model)) == []
    assert len(repr(model)) < 200


def test_results_do_not_carry_the_model() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant(np.ones((100_000, 2), np.float32))))
    model = builder.model()
    assert len(pickle.dumps(irexec.compile_model(builder.model()).inputs)) < 2000
    port = pickle.loads(pickle.dumps(model.inputs[0]))
    assert (str(port), port.node.name, port.node.ports) == ("x: f32[2]", "x", [])


def test_findings_can_be_pickled() -> None:
    model = io.read_text('<net name="n" version="11"><layers/><edges/></net>')
    findings = irexec.validate(model)
    assert pickle.loads(pickle.dumps(findings)) == findings != []
