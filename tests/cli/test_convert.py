"""irexec convert: what it writes, what it refuses, and how it verifies."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import external_data_helper

import irexec
from irexec.cli.main import run
from tests.cli.calling import streams
from tests.support.onnx_models import model_of
from tests.support.paths import DIGITS

Capture = pytest.CaptureFixture[str]

DYNAMIC = "(float[N,4] x, float[N,M] z) => (float[N,K] y) { y = Concat <axis = 1> (x, z) }"
CONTRADICTORY = "(float[2,4] x) => (float[2,7] y) { y = Relu (x) }"
NOTICE = "output 'y' is declared as f32[2,7], but its node produces f32[2,4]"


def _saved(folder: Path, graph: str, opset: int = 20, **constants: np.ndarray) -> Path:
    path = folder / "m.onnx"
    onnx.save(model_of(graph, opset, **constants), path)
    return path


def _convert(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What the command writes to stdout and stderr."""
    assert run(["convert", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def test_contradictory_shapes_are_warnings(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(tmp_path, CONTRADICTORY)
    assert _convert(capsys, path)[1] == f"warning: {NOTICE}\n"
    out, err = _convert(capsys, path, "--json")
    assert json.loads(out)["warnings"] == [NOTICE]
    assert err == f"warning: {NOTICE}\n"


def test_strict_refuses_contradictory_shapes(tmp_path: Path, capsys: Capture) -> None:
    out, err = _convert(capsys, _saved(tmp_path, CONTRADICTORY), "--strict", code=3)
    assert (out, err) == ("", f"error: the model contradicts itself: {NOTICE}\n")
    assert not (tmp_path / "m.xml").exists()


@pytest.mark.parametrize("text", ["x[2,4]", "x=2,4", "x=[2,4]"])
def test_input_shapes(text: str, tmp_path: Path, capsys: Capture) -> None:
    _convert(capsys, _saved(tmp_path, DYNAMIC), "--input", text)
    shapes = {port.name: str(port) for port in irexec.read_model(tmp_path / "m.xml").inputs}
    assert shapes == {"x": "x: f32[2,4]", "z": "z: f32[?,?]"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "2,4"], "a shape has no name"),
        (["--input", "x[2,4]", "--input", "x=3,4"], "the shape of 'x' is given twice"),
        (["--input", "x[2"], "is not of the form NAME"),
        (["--verify-shape", "q[2]"], "'q'"),
        (["--verify-shape", "x[2,5]"], "shape [2,5] does not fit input x: f32[?,4]: sizes 4 and 5 differ"),
        (["--rtol", "1"], "--rtol is for --verify, which is not given"),
        (["--atol", "1"], "--atol is for --verify, which is not given"),
        (["--seed", "1"], "--seed is for --verify, which is not given"),
        (["-o", ""], "'' is not a path"),
        (["-o", "."], "-o . does not end in .xml"),
        (["-o", "out/"], "-o out does not end in .xml"),
        (["-o", "m.onnx"], "-o m.onnx is the model, which would be overwritten"),
        (["-o", "none/m.xml"], "the folder none does not exist"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _saved(tmp_path, DYNAMIC)
    monkeypatch.chdir(tmp_path)
    before = path.read_bytes()
    assert message in _convert(capsys, "m.onnx", *arguments, code=2)[1]
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("model", [".", "..", "/"])
def test_a_folder_is_not_a_model(model: str, capsys: Capture) -> None:
    assert f"{model!r} is not a file" in _convert(capsys, model, code=2)[1]
    assert f"{model!r} is not a file" in streams(capsys, "script", model, code=2)[1]


def test_a_model_in_a_folder_that_does_not_exist(tmp_path: Path, capsys: Capture) -> None:
    assert "cannot be read" in _convert(capsys, tmp_path / "none" / "m.onnx", code=3)[1]


def test_an_xml_that_is_not_an_ir_is_replaced_only_where_it_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(tmp_path, DYNAMIC)
    target = path.with_suffix(".xml")
    target.write_text("<notes>mine</notes>", encoding="utf-8")
    assert "m.xml' exists and is not an IR: -o names another file to write" in _convert(capsys, path, code=2)[1]
    assert target.read_text(encoding="utf-8") == "<notes>mine</notes>"
    _convert(capsys, path, "-o", target)
    _convert(capsys, path)
    assert irexec.validate(irexec.read_model(target)) == []


@pytest.mark.parametrize("xml", [None, "<notes>mine</notes>"])
def test_a_bin_without_an_ir_is_replaced_only_where_that_is_asked_for(
    xml: str | None, tmp_path: Path, capsys: Capture
) -> None:
    """It may be the weights of another program; each command that writes an IR refuses it."""
    path = _saved(tmp_path, DYNAMIC)
    binary = path.with_suffix(".bin")
    binary.write_bytes(b"mine")
    target = path.with_suffix(".xml")
    if xml is not None:
        target.write_text(xml, encoding="utf-8")
    says = "m.bin exists without m.xml beside it" if xml is None else "m.bin exists, and m.xml is not an IR"
    other = str(DIGITS / "classifier.xml")
    for arguments in (
        ["convert", path, "-o", target],
        ["convert", other, "-o", target, "--for", "2022.3"],
        ["edit", path, "-o", target, "--batch", "1"],
        ["join", other, other, "-o", target, "--map", "probabilities=image"],
        ["upgrade", other, "-o", target],
        ["extract", other, "-o", target, "--layers", "conv1", "-i", "zeros"],
        ["validate", other, "--for", "2022.3", "--fix", target],
        ["reduce", other, "-o", target, "--trap", "nan"],
    ):
        assert run([str(argument) for argument in arguments]) == 2
        assert says in capsys.readouterr().err
        assert binary.read_bytes() == b"mine"
    with pytest.raises(irexec.InputError, match=re.escape(f"{binary} exists")):
        irexec.save_model(other, target)
    _convert(capsys, path, "-o", target, "--overwrite")
    _convert(capsys, path)
    assert irexec.validate(irexec.read_model(path.with_suffix(".xml"))) == []


@pytest.mark.parametrize("name", ["m.xml", "m.bin"])
def test_the_model_is_not_overwritten(name: str, tmp_path: Path, capsys: Capture) -> None:
    """Whatever the name of the model is, also by way of a link."""
    path = _saved(tmp_path, DYNAMIC).rename(tmp_path / name)
    before = path.read_bytes()
    (tmp_path / "link.xml").symlink_to(path)
    for arguments in ([path], [path, "-o", tmp_path / "link.xml"]):
        assert "is part of the model, which would be overwritten" in _convert(capsys, *arguments, code=2)[1]
    assert path.read_bytes() == before


def test_weights_outside_the_model_are_not_overwritten(tmp_path: Path, capsys: Capture) -> None:
    model = model_of("(float[4] x) => (float[4] y) { y = Add (x, w) }", w=np.arange(4, dtype=np.float32))
    external_data_helper.convert_model_to_external_data(model, location="m.bin", size_threshold=0)
    onnx.save(model, tmp_path / "m.onnx")
    before = (tmp_path / "m.bin").read_bytes()
    assert "m.bin is part of the model" in _convert(capsys, tmp_path / "m.onnx", code=2)[1].replace(f"{tmp_path}/", "")
    assert (tmp_path / "m.bin").read_bytes() == before
    _convert(capsys, tmp_path / "m.onnx", "-o", tmp_path / "other.xml")


@pytest.fixture(params=["onnxruntime", "onnx"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What runs the ONNX model."""
    if request.param == "onnx":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    else:
        pytest.importorskip("onnxruntime")
    return str(request.param)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "shapes"),
    [
        ([], None),
        (["--verify-shape", "z[5,2]"], {"x": [5, 4], "z": [5, 2]}),
        (["--verify-shape", "z=5,?", "--verify-shape", "x[5,4]"], None),
        (["--input", "x[3,4]"], None),
    ],
)
def test_verify_with_dynamic_dimensions(
    arguments: list[str], shapes: object, engine: str, tmp_path: Path, capsys: Capture
) -> None:
    """Sizes with the same symbol are equal, the same seed gives the same sizes, and the IR stays dynamic."""
    path = _saved(tmp_path, DYNAMIC)
    first, second = (
        json.loads(_convert(capsys, path, "--verify", "--json", *arguments)[0])["verify"] for _ in range(2)
    )
    assert first == second
    assert first["against"] == engine
    assert [output["agrees"] for output in first["outputs"]] == [True]
    assert first["inputs"]["x"] == [first["inputs"]["z"][0], 4]
    assert shapes is None or first["inputs"] == shapes
    assert str(irexec.read_model(tmp_path / "m.xml").inputs[1]) == "z: f32[?,?]"


@pytest.mark.parametrize("kernel", [30, 100])
def test_sizes_that_the_model_can_run_with_are_found(kernel: int, tmp_path: Path, capsys: Capture) -> None:
    """The first sizes that are tried are smaller than a kernel of 100."""
    pytest.importorskip("onnxruntime")
    graph = "(float[N,1,W] x) => (float[N,1,V] y) { y = Conv (x, w) }"
    path = _saved(tmp_path, graph, w=np.ones((1, 1, kernel), np.float32))
    found = json.loads(_convert(capsys, path, "--verify", "--json")[0])["verify"]
    assert [output["agrees"] for output in found["outputs"]] == [True]
    assert found["inputs"]["x"][2] >= kernel


def test_a_model_that_the_reference_cannot_run_is_kept(engine: str, tmp_path: Path, capsys: Capture) -> None:
    """None of the sizes that are tried is 77."""
    path = _saved(tmp_path, "(float[N] x) => (float[7,11] y) { y = Reshape (x, s) }", s=np.array([7, 11]))
    out, err = _convert(capsys, path, "--verify")
    assert out == f"{tmp_path / 'm.xml'}: {len(irexec.read_model(tmp_path / 'm.xml').nodes)} layers\n"
    assert err.startswith(f"warning: not verified: {engine}")
    assert ("pip install onnxruntime" in err) == (engine == "onnx")
    assert err.count("\n") == 1
    document = json.loads(_convert(capsys, path, "--verify", "--json")[0])
    assert f"cannot run {path}: " in document["verify"]["error"]
    assert document["verify"]["outputs"] == []


def test_an_engine_that_crashes_does_not_end_the_converter(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "onnxruntime.py").write_text("import os\nos.abort()")
    monkeypatch.syspath_prepend(tmp_path)
    out, err = _convert(capsys, _saved(tmp_path, "(float[2] x) => (float[2] y) { y = Relu (x) }"), "--verify")
    assert out.endswith("m.xml: 3 layers\n")
    assert err == "warning: not verified: the process of onnxruntime ended with exit code -6\n"


def test_a_difference_is_exit_code_1(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    out, _ = _convert(
        capsys, _saved(tmp_path, "(float[N] x) => (float[N] y) { y = RandomNormalLike (x) }"), "--verify", code=1
    )
    assert "differs" in out
    assert (tmp_path / "m.xml").exists()


def test_an_input_of_unknown_rank_needs_a_shape(tmp_path: Path, capsys: Capture) -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Relu (x) }")
    for info in (model.graph.input[0], model.graph.output[0]):
        info.type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    assert (
        "the rank of input 'x' is not known: give its shape with --verify-shape"
        in _convert(capsys, tmp_path / "m.onnx", "--verify", code=2)[1]
    )
    out, _ = _convert(capsys, tmp_path / "m.onnx", "--verify-shape", "x[2,3]")
    assert "agrees" in out
    assert "verified with x[2,3]" in out


def _softmax_and_unique(folder: Path) -> Path:
    x = irexec.opset.parameter([2, 3], "f32", "x")
    soft = irexec.opset.softmax(x, axis=-1, name="soft")
    found = irexec.opset.unique(x, name="found")[0]
    irexec.save_model(irexec.Model([soft, found], [x]), folder / "m.xml")
    return folder / "m.xml"


def test_an_older_release_gets_what_it_reads(tmp_path: Path, capsys: Capture) -> None:
    source, target = _softmax_and_unique(tmp_path), tmp_path / "old.xml"
    out, _ = _convert(capsys, source, "-o", target, "--for", "2022.3", "--verify")
    assert "agrees" in out and out.endswith("layers, IR version 11 for OpenVINO 2022.3\n")
    out, _ = _convert(capsys, source, "-o", target, "--for", "2021.4", code=4)
    assert "IR905" in out and "OpenVINO 2021.4 does not have Unique-10" in out


def test_nothing_is_written_for_a_release_that_cannot_have_a_layer(tmp_path: Path, capsys: Capture) -> None:
    out, _ = _convert(
        capsys, _softmax_and_unique(tmp_path), "-o", tmp_path / "old.xml", "--for", "2021.4", "--json", code=4
    )
    document = json.loads(out)
    assert (document["model"], [one["layer"] for one in document["changes"]]) == (None, ["soft"])
    assert {one["code"] for one in document["findings"]} >= {"IR905"}
    assert not (tmp_path / "old.xml").exists()


def test_an_onnx_model_is_written_for_a_release(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(tmp_path, "(float[2,4] x) => (float[2,4] y) { y = Softmax <axis = -1> (x) }")
    _convert(capsys, path, "--for", "2021.4")
    model = irexec.read_model(tmp_path / "m.xml")
    assert model.version == 10
    assert [node.version for node in model.nodes if node.type == "Softmax"] == ["opset1"]


def test_an_ir_is_not_written_over_itself(tmp_path: Path, capsys: Capture) -> None:
    source = _softmax_and_unique(tmp_path)
    assert "-o names the .xml to write" in _convert(capsys, source, "--for", "2022.3", code=2)[1]
    assert (
        "is the model, which would be overwritten"
        in _convert(capsys, source, "-o", source, "--for", "2022.3", code=2)[1]
    )
