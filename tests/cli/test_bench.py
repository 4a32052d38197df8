"""irexec bench; other runtimes are stood in for by modules of a few lines, so that none needs to be installed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irexec import Builder, save_model
from irexec.tools.engines.engine import peak_bytes
from tests.cli.calling import Capture, streams
from tests.support.paths import DIGITS

MODEL = DIGITS / "classifier.xml"

# What irexec uses of each; both compute the sum of all inputs, slowly.
OPENVINO = """
import json, os, time
import numpy as np
__version__ = "2030.1.0-12345-abc"
class _Node:
    def __init__(self, name): self.name = name
    def get_friendly_name(self): return self.name
class _Port:
    def get_names(self): return {"image"}
    def get_node(self): return _Node("image")
class _Model:
    inputs = [_Port()]
    shapes = None
    def reshape(self, shapes): self.shapes = {index: tuple(shape) for index, shape in shapes.items()}
class _Request:
    def __init__(self, model, properties): self.model, self.properties = model, properties
    def infer(self, feeds, share_inputs):
        time.sleep(0.02)
        record = {"shapes": {k: v.shape for k, v in feeds.items()}, "reshaped": self.model.shapes, "properties": self.properties}
        if "RECORD" in os.environ:
            open(os.environ["RECORD"], "w").write(json.dumps(record))
        return self
    def to_tuple(self): return (np.zeros(1),)
    def create_infer_request(self): return self
    def get_property(self, name): return []
class Core:
    def read_model(self, *files):
        print("a runtime that prints on stdout")
        if "FAILS" in os.environ:
            raise RuntimeError("Exception from src/core.cpp:1:\\n\\nno such layer\\n")
        if "DIES" in os.environ:
            os._exit(9)
        return _Model()
    def compile_model(self, model, device, properties): return _Request(model, properties)
"""
ONNXRUNTIME = """
import time
__version__ = "1.99"
class SessionOptions: pass
class InferenceSession:
    def __init__(self, path, options, providers): self.path = path
    def run(self, outputs, feeds):
        time.sleep(0.01)
        return [sum(array.sum() for array in feeds.values())]
"""


@pytest.fixture
def runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both modules, found first by this process and those that it starts; where files may be written."""
    folder = tmp_path / "runtimes"
    folder.mkdir()
    (folder / "openvino.py").write_text(OPENVINO)
    (folder / "onnxruntime.py").write_text(ONNXRUNTIME)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in ("openvino", "onnxruntime"):
        # find_spec asks the modules that are imported first.
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.slow
def test_the_document(capsys: Capture) -> None:
    document = json.loads(streams(capsys, "bench", MODEL, "--runs", 7, "--threads", 1, "--json")[0])
    assert {key: document[key] for key in ("schema", "model", "shapes", "runs", "threads")} == {
        "schema": 1, "model": str(MODEL), "shapes": {"image": [1, 1, 8, 8]}, "runs": 7, "threads": 1,
    }  # fmt: skip
    (engine,) = document["engines"]
    assert set(engine) == {
        "engine", "version", "load", "first", "minimum", "p50", "p90", "p99", "throughput", "peak_bytes", "ratio",
    }  # fmt: skip
    assert engine["engine"] == "irexec"
    assert 0 < engine["minimum"] <= engine["p50"] <= engine["p90"] <= engine["p99"]
    assert 1000 / engine["p99"] <= engine["throughput"] <= 1000 / engine["minimum"]
    assert engine["peak_bytes"] > 10e6
    assert engine["ratio"] == 1


@pytest.mark.slow
def test_other_runtimes_are_measured_in_turns_and_compared(runtimes: Path, capsys: Capture) -> None:
    document = json.loads(
        streams(capsys, "bench", MODEL, "--runs", 3, "--against", "openvino", "--against", "onnxruntime", "--json")[0]
    )
    own, openvino, onnxruntime = document["engines"]
    assert [one["engine"] for one in document["engines"]] == ["irexec", "openvino", "onnxruntime"]
    assert openvino["minimum"] >= 20 and onnxruntime["minimum"] >= 10
    assert openvino["ratio"] == pytest.approx(openvino["p50"] / own["p50"])
    assert list((runtimes / "temporary").iterdir()) == []


@pytest.mark.slow
def test_the_table_fits_80_columns(runtimes: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text, _ = streams(
        capsys, "bench", MODEL, "--runs", 1, "--against", "openvino", "--against", "onnxruntime", "--threads", 2
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "openvino 2030.1.0 " in text
    assert "1 run with 2 threads, inputs image[1,1,8,8]" in text
    assert "openvino / irexec: " in text


@pytest.mark.slow
def test_inputs_shapes_and_threads_reach_the_other_runtime(
    runtimes: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECORD", str(runtimes / "record.json"))
    np.save(runtimes / "x.npy", np.zeros((3, 1, 8, 8), np.float32))
    streams(
        capsys,
        "bench",
        MODEL,
        "--runs",
        1,
        "--against",
        "openvino",
        "--threads",
        2,
        "-i",
        runtimes / "x.npy",
        "--shape",
        "?,1,8,8",
    )
    record = json.loads((runtimes / "record.json").read_text())
    assert record["shapes"] == record["reshaped"] == {"0": [3, 1, 8, 8]}
    assert record["properties"]["INFERENCE_NUM_THREADS"] == 2
    assert record["properties"]["INFERENCE_PRECISION_HINT"] == "f32"


@pytest.mark.parametrize(
    ("variable", "message"),
    [("FAILS", "openvino cannot run {}: no such layer"), ("DIES", "the process of openvino ended with exit code 9")],
)
@pytest.mark.sampled(4)
def test_a_runtime_that_fails(
    variable: str, message: str, runtimes: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    err = streams(capsys, "bench", MODEL, "--runs", 1, "--against", "openvino", "-i", "random", code=3)[1]
    assert err == f"error: {message.format(MODEL)}\n"
    assert list((runtimes / "temporary").iterdir()) == []


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_a_runtime_that_is_not_installed(engine: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    err = streams(capsys, "bench", MODEL, "--against", engine, code=4)[1]
    assert (
        err == f"error: --against {engine} needs the package {engine} (pip install {engine}), which is not installed\n"
    )


def _without_onnx(folder: Path) -> Path:
    builder = Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", "3", "x")))
    save_model(builder.model(), folder / "m.xml")
    return folder / "m.xml"


def _of_bf16(folder: Path) -> Path:
    builder = Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("bf16", "3", "x")))
    save_model(builder.model(), folder / "m.xml")
    return folder / "m.xml"


@pytest.mark.parametrize(
    ("model", "arguments", "code", "message"),
    [
        (_without_onnx, ["--against", "onnxruntime"], 2, "m.onnx does not exist: --onnx names another file"),
        (_without_onnx, ["--against", "onnxruntime", "--onnx", "nowhere.onnx"], 3, "nowhere.onnx: no such file"),
        (_without_onnx, ["--onnx", "m.onnx"], 2, "--onnx is for --against onnxruntime, which is not given"),
        (_of_bf16, ["--against", "openvino"], 4, "input x: bf16[3] is of a type that NumPy lacks"),
        (_without_onnx, ["--against", "tensorrt"], 2, "'tensorrt' is not one of"),
        (_without_onnx, ["--runs", "0"], 2, "0 is not in the range 1<=x<=1000000"),
        (_without_onnx, ["--shape", "y[1]"], 2, "there is no input 'y'"),
        (lambda folder: "nowhere.xml", [], 3, "nowhere.xml: cannot be read"),
        (lambda folder: DIGITS / "damaged.xml", [], 3, "layer"),
    ],
)
def test_what_is_wrong(
    model: Callable[[Path], Path], arguments: list[str], code: int, message: str, runtimes: Path, capsys: Capture
) -> None:
    err = streams(capsys, "bench", model(runtimes), "-i", "random", *arguments, code=code)[1]
    assert message in err
    assert err.count("\n") == 1


def test_an_error_is_a_document(capsys: Capture) -> None:
    document = json.loads(streams(capsys, "bench", DIGITS / "damaged.xml", "--json", code=3)[0])
    assert document["error"]["type"] == "ModelError"


def test_types_that_numpy_lacks_and_text_are_measured_too(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(streams(capsys, "bench", _of_bf16(tmp_path), "--runs", 1, "--json")[0])
    assert document["engines"][0]["p50"] > 0


def test_peak_memory_grows_with_what_is_held() -> None:
    before = peak_bytes()
    held = np.ones(40_000_000, np.uint8)
    assert peak_bytes() >= max(before, held.nbytes)
