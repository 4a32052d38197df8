"""ONNX models wherever a model is read: what decides that a source is one, what is refused, and what commands do with them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import external_data_helper

import irexec
from irexec.cli.main import run
from irexec.io.onnx_bytes import is_onnx
from irexec.tools.engines.engine import EngineJob, EngineProcess
from tests.support.onnx_models import model_of

Capture = pytest.CaptureFixture[str]

GRAPH = "(float[2] x) => (float[2] y) { t = Add (x, w)  y = Relu (t) }"
WEIGHTS = np.array([1, -5], np.float32)
CONTRADICTORY = "(float[2] x) => (float[3] y) { y = Relu (x) }"
WARNING = "output 'y' is declared as f32[3], but its node produces f32[2]"
XML = b'<?xml version="1.0"?><net name="n" version="11"><layers/><edges/></net>'


def saved(path: Path, graph: str = GRAPH, *, external: str | None = None) -> Path:
    """The path of a new file with a model, whose weights may be in a file of their own."""
    model = model_of(graph, w=WEIGHTS) if "w)" in graph else model_of(graph)
    if external is not None:
        external_data_helper.convert_model_to_external_data(model, location=external, size_threshold=0)
    onnx.save(model, path)
    return path


def result(model: irexec.Model) -> list[float]:
    """What the model of GRAPH gives for [1, 1]."""
    return irexec.compile_model(model)({"x": np.ones(2, np.float32)})["y"].tolist()


@pytest.mark.parametrize("name", ["m.onnx", "m.ONNX", "m.pb", "m", "m.xml"])
def test_a_path(tmp_path: Path, name: str) -> None:
    """A name that ends in .onnx is that of an ONNX model; of any other file its bytes decide."""
    path = saved(tmp_path / name)
    for source in (path, str(path)):
        model = irexec.read_model(source)
        assert result(model) == [2, 0]
        assert model.path == path


_SYNTAX = """
# ONNX's own syntax
<ir_version: 8, opset_import: ["": 18]>
g (float[2] x) => (float[2] y) <float[2] w = {1, -5}> { t = Add (x, w)  y = Relu (t) }
"""


@pytest.mark.parametrize("name", ["m.onnx", "m.onnxtxt", "m.prototxt", "m.textproto", "m.pbtxt", "m", "m.xml"])
@pytest.mark.parametrize("form", ["protobuf", "syntax"])
@pytest.mark.sampled(16)
def test_a_model_as_text(tmp_path: Path, name: str, form: str, capsys: Capture) -> None:
    """The bytes decide, not the name."""
    text = _SYNTAX if form == "syntax" else f"# text\n{onnx.parser.parse_model(_SYNTAX)}"
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert result(irexec.read_model(path)) == [2, 0]
    assert result(irexec.read_model(text.encode())) == [2, 0]
    assert run(["ops", "--check", str(path)]) == run(["validate", str(path)]) == 0
    assert capsys.readouterr().err == ""
    target = tmp_path / "out" / "o.xml"
    target.parent.mkdir()
    assert run(["convert", str(path), "-o", str(target), "--verify"]) == 0
    assert "agrees" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ir_version: 8\ngraph { nodes { } }", 'which is text, is damaged: 2:9 : Message type "onnx.GraphProto"'),
        ('<ir_version: 8, opset_import: ["": 18]> g (float x => ', "which is text, is damaged: [ParseError"),
        ("ir_version: 8\nproducer_name: 'a'", "it has no graph"),
        ("\n\n<!DOCTYPE html>\n<html lang='en'></html>", "is an HTML page, probably"),
        ("<html><body>404</body></html>", "is an HTML page, probably"),
        ("<?xml version='1.0'?>\n<!-- page -->\n<!doctype HTML>", "is an HTML page, probably"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n", "is a Git LFS pointer (size 7)"),
    ],
)
@pytest.mark.parametrize("name", ["m.onnx", "m.xml", "m.prototxt"])
def test_what_is_not_a_model_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises((irexec.ModelError, irexec.ConversionError)) as raised:
        irexec.read_model(path)
    assert str(raised.value).startswith(str(path))
    assert words in str(raised.value)


def test_bytes_and_files(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    data = path.read_bytes()
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        model = irexec.read_model(source)
        assert result(model) == [2, 0]
        assert model.path is None
    with path.open("rb") as file:
        assert result(irexec.read_model(file)) == [2, 0]


def test_compile_model_takes_one(tmp_path: Path) -> None:
    compiled = irexec.compile_model(saved(tmp_path / "m.onnx"))
    np.testing.assert_array_equal(compiled([WEIGHTS])["y"], [2, 0])


def test_its_names_are_those_of_onnx(tmp_path: Path) -> None:
    model = irexec.read_model(saved(tmp_path / "m.onnx"))
    assert {name for node in model.nodes for value in node.outputs for name in value.names} == {"x", "w", "t", "y"}


@pytest.mark.parametrize("external", ["w.bin", "m.bin", "m.onnx.data"])
def test_external_data(tmp_path: Path, external: str) -> None:
    model = irexec.read_model(saved(tmp_path / "m.onnx", external=external))
    assert result(model) == [2, 0]
    assert model.external_files == (tmp_path / external,)


def test_external_data_without_a_path(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", external="w.bin")
    with pytest.raises(irexec.ConversionError, match="external data, but the model is not a file"):
        irexec.read_model(path.read_bytes())


@pytest.mark.parametrize("graph", [GRAPH, "(float[2] x) => (float[2] y) { y = Relu (x) }"], ids=["weights", "none"])
def test_bytes_that_are_onnx(graph: str) -> None:
    model = model_of(graph, w=WEIGHTS) if "w)" in graph else model_of(graph)
    assert is_onnx(model.SerializeToString())
    model.doc_string = "long" * 50_000
    model.producer_name, model.producer_version, model.domain, model.model_version = "tests", "1.2", "example.org", -1
    onnx.helper.set_model_props(model, {"key": "<net>"})
    data = model.SerializeToString()
    assert is_onnx(data)
    assert is_onnx(memoryview(data)[:1000])


@pytest.mark.parametrize(
    "data",
    [b"", XML, b"\xef\xbb\xbf" + XML, b"\n \t" + XML, XML.decode().encode("utf-16"), XML.decode().encode("utf-16-be"), b"no model at all",
     b"\x08\x0a", b"\x08" * 200, b"\x12" * 200, b"\xff" * 200, b"\x93NUMPY", b"PK\x03\x04", bytes(200)],
)  # fmt: skip
def test_bytes_that_are_not_onnx(data: bytes) -> None:
    assert not is_onnx(data)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"weights": b""}, "it has no .bin whose weights could be given"),
        ({"mmap": False}, "that could be read at once"),
    ],
)
def test_what_is_for_a_bin_is_refused(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    path = saved(tmp_path / "m.onnx")
    for source, name in ((path, str(path)), (path.read_bytes(), "<bytes>")):
        with pytest.raises(irexec.InputError, match=reason) as caught:
            irexec.read_model(source, **options)
        assert str(caught.value).startswith(f"{name} is an ONNX model: ")


def test_what_is_wrong_is_a_warning_of_the_caller(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", CONTRADICTORY)
    with pytest.warns(irexec.ConversionWarning, match=r"f32\[3\]") as caught:
        irexec.read_model(path)
    assert [(str(one.message), one.filename) for one in caught] == [(f"{path}: {WARNING}", __file__)]


@pytest.mark.parametrize("content", [b"", b"no model", XML], ids=["empty", "text", "xml"])
def test_a_file_that_is_not_a_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(irexec.ConversionError, match="not an ONNX model"):
        irexec.read_model(path)


def test_an_ir_under_the_name_of_an_onnx_model_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(XML)
    with pytest.raises(irexec.ConversionError, match="it is XML, probably an IR"):
        irexec.read_model(path)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    path = saved(tmp_path / "m.onnx")
    for name in [name for name in sys.modules if name.startswith("converters")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert run(["inspect", str(path)]) == 4
    assert "an ONNX model needs the package onnx (pip install onnx)" in capsys.readouterr().err


def test_progress_ends() -> None:
    parts: list[float] = []
    irexec.read_model(model_of(GRAPH, w=WEIGHTS).SerializeToString(), progress=parts.append)
    assert sum(parts) == 1


def test_onnx_is_imported_only_for_an_onnx_model(tmp_path: Path) -> None:
    irexec.save_model(irexec.read_model(saved(tmp_path / "m.onnx")), tmp_path / "m.xml")
    program = f"import sys, irexec; irexec.read_model({str(tmp_path / 'm.xml')!r}); sys.exit('onnx' in sys.modules or 'converters' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_an_engine_process_takes_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=WEIGHTS)
    with EngineProcess(
        EngineJob("irexec", str(saved(tmp_path / "m.onnx")), str(tmp_path / "x.npz"), outputs=str(tmp_path / "y.npz"))
    ):
        assert np.load(tmp_path / "y.npz")["arr_0"].tolist() == [2, 0]


def test_a_warning_is_shown_once(tmp_path: Path, capsys: Capture) -> None:
    """Also where a command reads the model twice; the filters of the caller are as they were."""
    path, filters = saved(tmp_path / "m.onnx", CONTRADICTORY), list(warnings.filters)
    assert run(["inspect", str(path), "--plan", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == f"warning: {path}: {WARNING}\n"
    assert json.loads(out)["version"] == 11
    assert warnings.filters == filters


@pytest.mark.parametrize("option", [["--bin", "m.bin"], ["--no-mmap"]])
def test_options_for_a_bin_are_refused(tmp_path: Path, option: list[str], capsys: Capture) -> None:
    path = saved(tmp_path / "m.onnx")
    for command in (["infer"], ["validate"], ["inspect"], ["profile"]):
        assert run([*command, str(path), *option]) == 2, command
        assert "is an ONNX model: it has no .bin" in capsys.readouterr().err


def test_nothing_of_the_model_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    """Neither the model nor its external data, whatever their names are."""
    path = saved(tmp_path / "m.onnx", external="w.npz")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for output in (["-o", tmp_path / "w.npz"], ["--dump-layers", tmp_path], ["-o", path]):
        assert run(["infer", str(path), "-i", "random", *map(str, output)]) == 2, output
    assert run(["profile", str(path), "--trace", str(tmp_path / "w.npz")]) == 2
    assert "is the model's external data, which would be overwritten" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_folder_has_models_of_both_kinds(tmp_path: Path, capsys: Capture) -> None:
    path = saved(tmp_path / "m.onnx")
    irexec.save_model(irexec.read_model(path), tmp_path / "m.xml")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    assert run(["validate", str(tmp_path), "--json"]) == 3
    models = json.loads(capsys.readouterr().out)["models"]
    assert [Path(one["model"]).name for one in models] == ["broken.onnx", "m.onnx", "m.xml"]
    assert [one["error"] is None for one in models] == [False, True, True]


STATIC_ONLY = "(float[1,1,H,W] x, float[1,1,3,3] k) => (float[1,1,8,8] y) { y = ConvTranspose <strides = [2, 2], output_shape = [8, 8]> (x, k) }"


def test_shapes_of_inputs_are_for_an_onnx_model(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", STATIC_ONLY)
    model = irexec.read_model(path, inputs={"x": (1, 1, 4, 4)})
    assert [str(port) for port in model.inputs] == ["x: f32[1,1,4,4]", "k: f32[1,1,3,3]"]
    irexec.save_model(model, tmp_path / "m.xml")
    with pytest.raises(irexec.InputError, match="is an IR: it takes other shapes of inputs when it has been read"):
        irexec.read_model(tmp_path / "m.xml", inputs={"x": (1, 1, 4, 4)})
