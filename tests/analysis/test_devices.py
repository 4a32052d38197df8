"""What a device refuses, and how a model is written for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model
from irexec.analysis.builder import Builder
from irexec.analysis.portability.findings import DEVICES, NOT_TAKEN, Target, parse_target
from irexec.analysis.portability.releases import NEWEST
from irexec.authoring.downgrade import downgrade
from irexec.cli.main import run
from irexec.errors import InputError
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import opset_versions

Capture = pytest.CaptureFixture[str]

_WINDOWS = {"strides": [1], "pads_begin": [0], "pads_end": [0], "dilations": [1]}


def _of(type: str, version: int, *shapes: str, **attributes: object) -> Model:
    """A model of one layer, whose inputs are as "f32 2,?" says."""
    builder, operands = Builder("m"), []
    for i, text in enumerate(shapes):
        element, _, sizes = text.partition(" ")
        shape = None if sizes == "..." else [irexec.Dim() if size == "?" else int(size) for size in sizes.split(",")]
        operands.append(builder.parameter(element, shape, f"x{i}"))
    found = builder.emit(type, *operands, version=version, **attributes)
    builder.result(found[0] if isinstance(found, tuple) else found)
    return builder.model()


def test_the_tables_name_versions_of_operations() -> None:
    assert set(NOT_TAKEN) == set(DEVICES)
    assert set().union(*NOT_TAKEN.values()) <= set(opset_versions())


def test_targets() -> None:
    assert parse_target("gpu") == Target(NEWEST, "GPU")
    assert str(parse_target("2023.3.0")) == "2023.3"
    with pytest.raises(InputError, match=r"'TPU' is not a known release of OpenVINO, .*, CPU, GPU or NPU"):
        parse_target("TPU")


@pytest.mark.parametrize(
    ("device", "model", "says"),
    [
        ("NPU", _of("IsNaN", 10, "f32 2"), "the NPU does not have IsNaN-10"),
        ("NPU", _of("Relu", 1, "f32 ?"), "the NPU does not take sizes without an upper bound"),
        ("NPU", _of("Relu", 1, "f32 ..."), "the NPU does not take tensors of unknown rank; so it is in 1 more layer"),
        ("NPU", _of("Identity", 16, "string 2"), "the NPU does not compute in string; so it is in 1 more layer"),
        ("GPU", _of("Inverse", 14, "f32 2,2", adjoint=False), "the GPU does not have Inverse-14"),
        ("GPU", _of("Softmax", 8, "f32 ...", axis=1), "the GPU does not take a Softmax of unknown rank"),
        ("CPU", _of("RGBtoNV12", 17, "u8 1,4,4,3", single_plane=True), "has no kernel for it (IR959)"),
    ],
)  # fmt: skip
def test_what_a_device_refuses(device: str, model: Model, says: str) -> None:
    found = irexec.validate(model, release=device)
    assert {(one.code, one.severity) for one in found} == {("IR908", "error")}
    assert any(one.message.endswith(says) for one in found)


def test_what_is_computed_from_constants_never_comes_to_a_device() -> None:
    builder = Builder("m")
    unique = builder.emit("Unique", np.array([3, 3, 1], np.int32), version=10, sorted=True)
    builder.result(builder.emit("Add", builder.parameter("i32", [1], "x"), unique[0], version=1))
    assert not irexec.validate(builder.model(), release="NPU")


@pytest.mark.parametrize(
    ("device", "model", "into"),
    [
        ("NPU", _of("SoftSign", 9, "f32 3"), ("Abs-1", "Add-1", "Divide-1")),
        ("GPU", _of("BitwiseNot", 13, "i32 3"), ("Subtract-1",)),
        (
            "CPU",
            _of("GroupConvolutionBackpropData", 1, "f32 1,2,4", "f32 1,2,3,2", **_WINDOWS),
            ("Squeeze-1", "ConvolutionBackpropData-1"),
        ),
        ("CPU", _of("Subtract", 1, "f32 2,3,4", "f32 2,3", auto_broadcast="pdpd"), ("Unsqueeze-1", "Subtract-1")),
    ],
)
def test_layers_are_written_for_a_device(device: str, model: Model, into: tuple[str, ...]) -> None:
    found = downgrade(model, device)
    assert not found.findings
    assert [one.into for one in found.changes] == [into]
    assert not irexec.validate(found.model, release=device)


def test_the_command_that_fixes(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "m.xml", tmp_path / "npu.xml"
    irexec.save_model(_of("SoftSign", 9, "f32 3"), source)
    assert run(["validate", str(source), "--for", "npu", "--fix", str(target), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in document["findings"]] == ["IR908"]
    assert [one["agrees"] for one in document["fix"]["verify"]["outputs"]] == [True]
    x = np.array([-1, 0, 3], np.float32)
    np.testing.assert_allclose(CompiledModel(irexec.read_model(target))([x])[0], x / (1 + abs(x)), rtol=1e-6)


def test_the_command_says_what_it_cannot_fix(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "m.xml"
    irexec.save_model(_of("Inverse", 14, "f32 2,2", adjoint=False), source)
    assert run(["validate", str(source), "--for", "GPU", "--fix", str(tmp_path / "gpu.xml")]) == 4
    assert "1 finding: nothing is written for the GPU" in capsys.readouterr().out
    assert not (tmp_path / "gpu.xml").exists()
    assert run(["validate", str(source), "--for", "GPU", "--fix", str(source)]) == 2
    assert f"--fix {source} is the model, which would be overwritten" in capsys.readouterr().err
    for arguments in (["--fix", "a.xml"], ["--for", "GPU", "--fix", "a.xml", "--format", "sarif"]):
        assert run(["validate", str(source), *arguments]) == 2
